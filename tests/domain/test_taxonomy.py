"""Groups of categories: public, split before what is in them, and carried into SQL and JSON."""

from __future__ import annotations

import json
from collections.abc import Callable

import duckdb
import numpy as np
import pytest

from dpforest_duckdb.domain import Domain
from dpforest_duckdb.domain.file import domain_from_mapping
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.scoring.score_sql import score_sql, share_names
from dpforest_duckdb.splits.candidates import candidates
from dpforest_duckdb.tree import LEAF

GROUPS = {"north": ["Oslo", "Turku"], "south": ["Rome", "Bari", "Nice"]}
CITIES = [city for held in GROUPS.values() for city in held]


def column(**more: object) -> dict[str, object]:
    return {"name": "city", "kind": "categorical", "domain": CITIES, **more}


def domain(**more: object) -> Domain:
    target = {"name": "ill", "kind": "categorical", "domain": ["no", "yes"]}
    age = {"name": "age", "kind": "numeric", "lower": 0, "upper": 7}
    return domain_from_mapping(
        {"target": "ill", "column": [column(taxonomy=GROUPS, **more), age, target]}
    )


def visits(con: duckdb.DuckDBPyConnection, rows: int = 4000) -> None:
    """The group predicts well; the city within the south predicts a little better."""
    cities = ", ".join(f"'{city}'" for city in [*CITIES, "Mars"])
    con.execute(f"""
        CREATE TABLE visits AS
        SELECT [{cities}][i % 6 + 1] AS city, i % 9 AS age,
          CASE WHEN i % 6 IN (0, 1) OR (i % 6 = 2 AND i % 7 > 1) THEN 'yes' ELSE 'no' END AS ill
        FROM range({rows}) r(i)""")
    con.execute("INSERT INTO visits VALUES (NULL, 3, 'no'), ('O''slo', NULL, 'yes')")


@pytest.mark.parametrize("nullable", [False, True])
def test_each_value_is_in_the_group_that_the_taxonomy_says_and_null_in_none(nullable: bool) -> None:
    general = domain(nullable=nullable).generalised()
    city, _, group = general.attributes
    (found,) = candidates(general, "multiway").refinements
    assert (found.by_group, found.finer) == (2, 0)
    assert (found.holds.sum(axis=0) == 1).all(), "each value is in one group"
    held_by = found.holds.argmax(axis=0)
    groups = {city.label(cell): group.label(int(held_by[cell])) for cell in range(city.proper)}
    assert groups == {name: key for key, held in GROUPS.items() for name in held}
    assert found.holds[group.other, city.other]
    assert found.holds[group.null, city.null]
    assert (group.null == group.other) is not nullable


@pytest.mark.parametrize("recipe", ["diffgen", "dt-diff"])
def test_groups_are_split_before_their_categories(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest], recipe: str
) -> None:
    visits(con)
    forest = fit(con, "visits", domain=domain(), recipe=recipe, epsilon=50, depth=4)
    names = [attribute.name for attribute in forest.domain.attributes]
    assert names == ["city", "age", "city (group)"]
    (tree,) = forest.trees
    by_city, by_group = np.flatnonzero(tree.attribute == 0), np.flatnonzero(tree.attribute == 2)
    assert len(by_city)
    assert len(by_group)
    parents = tree.parents(forest.domain.cells)
    for node in by_city:
        above, path = int(node), set()
        while (above := int(parents[above])) >= 0:
            path.add(int(tree.attribute[above]))
        assert 2 in path, "a city is asked for only where the group is known"
    engine = DuckDBEngine(con)
    cursor = con.execute(score_sql(forest, engine.scored("visits")))
    head = [part[0] for part in cursor.description]
    rows = [dict(zip(head, row, strict=True)) for row in cursor.fetchall()]
    shares = forest.probabilities(forest.votes(rows))
    for row, own in zip(rows, shares, strict=True):
        assert [row[name] for name in share_names(forest, "")] == pytest.approx(own.tolist())
    again = Forest.from_json(forest.to_json())
    assert again.to_sql("visits") == forest.to_sql("visits")
    assert any("city (group) = south" in rule["rule"] for rule in forest.rules())
    assert "IN ('Rome', 'Bari', 'Nice')" in forest.to_sql("visits")
    unlike = json.loads(forest.to_json())
    unlike["domain"]["attributes"][2]["taxonomy"][0][0] = "west"
    with pytest.raises(DpforestError, match="damaged"):
        Forest.from_json(json.dumps(unlike))


def test_other_recipes_do_not_use_groups(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest]
) -> None:
    visits(con)
    for recipe in ("auto", "dpdf"):
        forest = fit(con, "visits", domain=domain(), recipe=recipe)
        assert [attribute.name for attribute in forest.domain.attributes] == ["city", "age"]


def test_a_comment_can_declare_groups(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest]
) -> None:
    con.execute("CREATE TABLE t (city VARCHAR, k BOOLEAN)")
    note = json.dumps({"kind": "categorical", "domain": CITIES, "taxonomy": GROUPS})
    con.execute(f"COMMENT ON COLUMN t.city IS '{note}'")
    con.execute("INSERT INTO t SELECT 'Rome', i % 2 = 0 FROM range(100) r(i)")
    forest = fit(con, "t", target="k", recipe="diffgen")
    assert forest.domain.attributes[-1].values == ("north", "south")


def test_integers_are_grouped_as_integers(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest]
) -> None:
    con.execute("CREATE TABLE t (a INTEGER, k BOOLEAN)")
    con.execute("INSERT INTO t SELECT i % 4, i % 4 > 1 FROM range(1000) r(i)")
    public = domain_from_mapping(
        {
            "target": "k",
            "column": [
                {
                    "name": "a",
                    "kind": "categorical",
                    "domain": [0, 1, 2, 3],
                    "taxonomy": {"low": [0, 1], "high": [2, 3]},
                },
                {"name": "k", "kind": "categorical", "domain": [False, True]},
            ],
        }
    )
    forest = fit(con, "t", domain=public, recipe="diffgen", epsilon=50, depth=1)
    (tree,) = forest.trees
    assert tree.kind[0] != LEAF
    assert forest.domain.attributes[tree.attribute[0]].name == "a (group)"
    right = forest.predict(con, "t").filter("prediction = k").aggregate("count(*)").fetchall()
    assert right == [(1000,)]


@pytest.mark.parametrize(
    ("taxonomy", "sentence"),
    [
        ({"north": ["Oslo"]}, "every category"),
        ({**GROUPS, "west": ["Oslo"]}, "every category"),
        ({**GROUPS, "west": ["Cork"]}, "every category"),
        (["Oslo"], "groups of categories"),
        ({"north": "Oslo"}, "groups of categories"),
        ("north", "groups of categories"),
    ],
)
def test_impossible_groups_are_refused(taxonomy: object, sentence: str) -> None:
    with pytest.raises(DpforestError, match=sentence) as refused:
        domain_from_mapping({"target": "ill", "column": [
            column(taxonomy=taxonomy), {"name": "ill", "kind": "categorical", "domain": ["n", "y"]}
        ]})  # fmt: skip
    assert '"city"' in str(refused.value)
    with pytest.raises(DpforestError, match="numeric"):
        domain_from_mapping({"target": "ill", "column": [
            {"name": "n", "kind": "numeric", "lower": 0, "upper": 1, "taxonomy": GROUPS},
            {"name": "ill", "kind": "categorical", "domain": ["n", "y"]},
        ]})  # fmt: skip
