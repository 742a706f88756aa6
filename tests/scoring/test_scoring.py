"""SQL and Python must send every row the same way."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import product
from math import prod
from unittest import mock

import duckdb
import numpy as np
import pytest
import sqlglot
from agreement import assert_agree
from hypothesis import given, settings
from hypothesis import strategies as st
from models import (
    bit_sets,
    forest_of,
    groups_of_one,
    one_split,
    random_tree,
    two_attributes,
    two_splits,
)
from variants import some

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import DOUBLE, TIMESTAMP, VARCHAR, ColumnType, column_type
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.errors import DpforestError, UsageError
from dpforest_duckdb.guarantee import Guarantee
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.scoring import lookups
from dpforest_duckdb.scoring.dialects import Form, dialect
from dpforest_duckdb.scoring.links import SHARES, SOFTMAX, Link
from dpforest_duckdb.scoring.lookups import Lookups, fills_grid
from dpforest_duckdb.scoring.publish import publish_sql
from dpforest_duckdb.scoring.quickscorer import votes_of_key
from dpforest_duckdb.scoring.score_sql import fastest_form, score_sql, share_names
from dpforest_duckdb.sql import Sql, comment, join
from dpforest_duckdb.training.prepare import prepare
from dpforest_duckdb.tree import EQUALS, LEAF, MULTIWAY, Tree, Voting

TABLES = [
    "adult_train",
    "banknote",
    "breast_cancer_wisconsin",
    "car",
    "congressional_voting",
    "connect_4",
    "credit_approval",
    "credit_default",
    "heart_cleveland",
    "iris",
    "krkopt",
    "mammographic_mass",
    "mushroom",
    "nursery",
    "pima_diabetes",
    "tic_tac_toe",
    "wall_following",
]
ENUM = column_type("ENUM('red', 'green', 'blue')")
HOSTILE = ['a"b', "it's", "x; DROP TABLE t --", "select", "{{ 1 }}", "é😀", " ", "A b", "t", "s"]


@some(("name", "recipe"), product(TABLES, ["auto", "dpdf"]), keep=5)
def test_sql_agrees_with_python_on_real_tables(
    con: duckdb.DuckDBPyConnection, real: Callable, fit: Callable, name: str, recipe: str
) -> None:
    """On every row of a small table, and on some fifteen hundred of a large one."""
    domain = real(name)
    if name == "connect_4":
        con.execute("DELETE FROM connect_4 WHERE rowid % 8 <> 0")
    options = {"privacy_unit": "row"} if name == "breast_cancer_wisconsin" else {}
    forest = fit(con, name, domain=domain, recipe=recipe, trees=2, depth=3, **options)
    con.execute(f'DELETE FROM "{name}" WHERE rowid % {con.table(name).shape[0] // 1_500 + 1} <> 0')
    assert_agree(con, forest, name)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_surest_tree_wins_where_the_sum_would_not(
    con: duckdb.DuckDBPyConnection, classes: int
) -> None:
    """Two trees lean to the first class, one is sure of the second."""
    con.execute("CREATE TABLE t AS SELECT 'u' AS a")
    labels = tuple("xyz"[:classes])
    public = Domain((Attribute("a", "categorical", ("u",), type=VARCHAR),), "k", labels, VARCHAR)

    def stump(number: int, votes: int) -> Tree:
        own = np.zeros((1, classes), dtype=np.int64)
        own[0, number] = votes
        leaf = np.zeros(1, dtype=np.int64)
        return Tree(leaf, leaf - 1, leaf, leaf - 1, None, own)

    trees = (stump(0, 600_000), stump(0, 700_000), stump(1, 900_000))
    added = Forest("m", "r", Guarantee("1"), public, trees)
    surest = replace(added, voting=Voting.SUREST)
    assert added.predict(con, "t").fetchall()[0][1:3] == ("x", 1_300_000 / 2_200_000)
    assert surest.predict(con, "t").fetchall()[0][1:3] == ("y", 700_000 / 1_600_000)
    for forest in (added, surest):
        assert_agree(con, forest, "t")
        assert Forest.from_json(forest.to_json()).voting == forest.voting


def hostile_attributes() -> st.SearchStrategy[list[Attribute]]:
    values = st.lists(
        st.sampled_from([*HOSTILE, "", "NULL", "0"]), min_size=1, max_size=4, unique=True
    )
    categorical = st.builds(
        lambda v, n, o: Attribute(
            "x", "categorical", tuple(v), ordered=o, nullable=n, type=VARCHAR
        ),
        values,
        st.booleans(),
        st.booleans(),
    )
    edges = st.lists(
        st.floats(-10, 10, allow_nan=False).map(lambda x: round(x, 3)), max_size=4, unique=True
    )
    numeric = st.builds(
        lambda e, n: Attribute("x", "numeric", edges=tuple(sorted(e)), nullable=n, type=DOUBLE),
        edges,
        st.booleans(),
    )
    return st.lists(st.one_of(categorical, numeric), min_size=1, max_size=3)


@settings(max_examples=20)
@given(
    attributes=hostile_attributes(),
    names=st.lists(st.sampled_from(HOSTILE), min_size=4, max_size=4, unique_by=str.casefold),
    classes=st.lists(st.sampled_from(HOSTILE), min_size=2, max_size=4, unique=True),
    seed=st.integers(0, 2**32),
    constant=st.booleans(),
)
def test_sql_agrees_with_python_on_hostile_forests(
    attributes: list[Attribute], names: list[str], classes: list[str], seed: int, constant: bool
) -> None:
    from dataclasses import replace

    random = np.random.default_rng(seed)
    domain = Domain(
        tuple(replace(a, name=n) for a, n in zip(attributes, names, strict=False)),
        target=names[3],
        classes=tuple(classes),
        target_type=VARCHAR,
    )
    kinds = (LEAF, MULTIWAY, EQUALS)
    trees = tuple(random_tree(domain, random, 5, exact=constant, kinds=kinds) for _ in range(3))
    forest = Forest("m\n; --", "test", Guarantee("1"), domain, trees)
    engine = DuckDBEngine(duckdb.connect())
    quote = engine.dialect.ident
    columns = ", ".join(f"{quote(a.name)} {a.type}" for a in domain.attributes)
    table = 'odd "table'
    engine.run(f"CREATE TABLE {quote(table)} ({columns}, {quote(names[3])} VARCHAR)")
    pool = {
        VARCHAR: [None, "", "zzz", *HOSTILE, "NULL", "0"],
        DOUBLE: [None, math.nan, math.inf, -math.inf, -0.0, 0.0, -11.0, 3.3, 1e300],
    }
    drawn: list[object] = []
    for _ in range(20):
        for a in domain.attributes:
            near = [*a.values, *a.edges, *(e + 1e-9 for e in a.edges)]
            choices = [*pool[a.type], *near]
            drawn.append(choices[int(random.integers(len(choices)))])
        drawn.append("y")
    marks = ", ".join("?" * (len(domain.attributes) + 1))
    engine.run(f"INSERT INTO {quote(table)} VALUES {', '.join([f'({marks})'] * 20)}", drawn)
    assert_agree(engine.connection, forest, quote(table))
    again = Forest.from_json(forest.to_json())
    assert again.to_json() == forest.to_json()
    sql = score_sql(again, engine.scored(quote(table)))
    assert len(sqlglot.parse(sql, dialect="duckdb")) == 1


VISITS = (
    "CREATE TABLE visits (age INTEGER CHECK (age BETWEEN 0 AND 99), "
    "city ENUM ('Bern', 'Genf'), ill BOOLEAN)",
    "INSERT INTO visits SELECT i % 100, 'Bern', i % 100 > 50 FROM range(2000) r(i)",
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Forest:
    ledger = tmp_path_factory.mktemp("trained") / "ledger"
    with duckdb.connect() as con:
        for statement in VISITS:
            con.execute(statement)
        return prepare(con, "visits", target="ill", epsilon=5, ledger=ledger).execute()


@pytest.fixture
def small(con: duckdb.DuckDBPyConnection, trained: Forest) -> Forest:
    """A forest of a table that the connection has."""
    for statement in VISITS:
        con.execute(statement)
    return trained


def test_every_form_gives_what_score_gives(con: duckdb.DuckDBPyConnection, small: Forest) -> None:
    expected = sorted(small.predict(con, "visits").fetchall(), key=str)
    assert sorted(con.execute(small.to_sql("visits")).fetchall(), key=str) == expected
    con.execute(small.to_sql("visits", form="view"))
    assert sorted(con.execute("FROM visits_scored").fetchall(), key=str) == expected
    con.execute(publish_sql(small, "visits", form="table", name="kept"))
    assert sorted(con.execute("FROM kept").fetchall(), key=str) == expected
    con.execute(publish_sql(small, form="macro", name="ill_risk"))
    assert sorted(con.execute("FROM ill_risk('visits')").fetchall(), key=str) == expected


def test_a_macro_parameter_does_not_shadow_a_column(
    con: duckdb.DuckDBPyConnection, small: Forest
) -> None:
    con.execute(publish_sql(small, form="macro", name="ill_risk"))
    con.execute("CREATE TABLE other AS SELECT *, 7 AS table_name FROM visits")
    assert con.execute("SELECT DISTINCT table_name FROM ill_risk('other')").fetchall() == [(7,)]


def test_prediction_has_the_type_of_the_target(
    con: duckdb.DuckDBPyConnection, small: Forest, fit: Callable
) -> None:
    assert str(small.predict(con, "visits").types[3]) == "BOOLEAN"
    forest = fit(con, "visits", target="city")
    assert str(forest.predict(con, "visits").types[3]) == "ENUM('Bern', 'Genf')"


def test_scoring_keeps_rows_columns_and_values_outside_the_domain(
    con: duckdb.DuckDBPyConnection, small: Forest
) -> None:
    con.execute("CREATE TABLE new (extra VARCHAR, CITY VARCHAR, Age DOUBLE)")
    con.execute("INSERT INTO new VALUES ('a', 'Rom', 1e9), (NULL, NULL, 'nan'), ('c', 'Bern', 3.5)")
    scored = small.predict(con, "new")
    assert scored.columns == ["extra", "CITY", "Age", "prediction", "p_false", "p_true"]
    assert len(scored.fetchall()) == 3


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ("age INTEGER", 'no column "city"'),
        ("age VARCHAR, city VARCHAR", 'Column "age" has type VARCHAR'),
        ("age DATE, city VARCHAR", 'Column "age" has type DATE'),
        ("age INTEGER, city VARCHAR, Prediction INTEGER", "pass prefix"),
        ("age INTEGER, city VARCHAR, P_TRUE INTEGER", "pass prefix"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(
    con: duckdb.DuckDBPyConnection, small: Forest, columns: str, sentence: str
) -> None:
    con.execute(f"CREATE TABLE odd ({columns})")
    with pytest.raises(DpforestError, match=sentence):
        small.predict(con, "odd")


def test_classes_that_differ_by_case_get_columns_of_their_own(
    con: duckdb.DuckDBPyConnection, fit: Callable
) -> None:
    con.execute("CREATE TABLE t (x BOOLEAN, y VARCHAR CHECK (y IN ('Yes', 'yes')))")
    con.execute("INSERT INTO t SELECT i % 2 = 0, 'yes' FROM range(100) r(i)")
    forest = fit(con, "t", target="y")
    assert share_names(forest, "") == ["p_Yes", "p_yes_2"]
    assert_agree(con, forest, "t")


@pytest.mark.parametrize("collation", ["COLLATE NOCASE", ""])
def test_text_is_compared_byte_by_byte_whatever_its_collation(
    con: duckdb.DuckDBPyConnection, collation: str
) -> None:
    """Of the column, or of all columns by a setting."""
    domain = two_attributes(labels=("no", "NO"))
    forest = forest_of(domain, one_split(domain, 0, [[9, 0], [0, 8], [7, 0], [0, 6]]))
    if not collation:
        con.execute("SET default_collation = 'NOCASE'")
    con.execute(f"CREATE TABLE t (colour VARCHAR {collation}, size VARCHAR)")
    con.execute("INSERT INTO t SELECT unnest(['red', 'RED', 'Green', 'green', NULL]), 'small'")
    assert con.execute("SELECT count(*) FROM t WHERE colour = 'red'").fetchone() == (2,)
    predicted = [row[2] for row in forest.predict(con, "t").fetchall()]
    assert predicted == ["no", "NO", "NO", "NO", "NO"]
    assert_agree(con, forest, "t")
    con.execute(forest.to_sql(form="macro"))
    assert con.execute("FROM made_scored('t')").fetchall() == forest.predict(con, "t").fetchall()


def test_an_enum_is_compared_byte_by_byte_whatever_the_setting(
    con: duckdb.DuckDBPyConnection,
) -> None:
    kind = column_type("ENUM('RED', 'red', 'green')")
    domain = two_attributes(labels=("no", "NO")).bind(
        {"colour": kind, "size": VARCHAR, "target": VARCHAR}
    )
    forest = forest_of(domain, one_split(domain, 0, [[9, 0], [0, 8], [7, 0], [0, 6]]))
    con.execute("SET default_collation = 'NOCASE'")
    con.execute(f"CREATE TABLE t (colour {kind}, size VARCHAR)")
    con.execute("INSERT INTO t SELECT unnest(['red', 'RED', 'green', NULL]), 'small'")
    assert con.execute("SELECT count(*) FROM t WHERE colour = 'red'").fetchone() == (2,)
    assert_agree(con, forest, "t")


@pytest.mark.parametrize("given", [VARCHAR, ENUM])
@pytest.mark.parametrize("trained", [VARCHAR, ENUM])
def test_a_macro_scores_text_and_enum_columns_alike(
    con: duckdb.DuckDBPyConnection, trained: ColumnType, given: ColumnType
) -> None:
    attribute = Attribute("colour", "categorical", ("red", "green"), type=trained)
    domain = Domain((attribute,), "y", ("no", "yes"), VARCHAR)
    forest = forest_of(domain, one_split(domain, 0, [[9, 0], [0, 8], [0, 7], [6, 0]]))
    con.execute(f"CREATE TABLE t (colour {given})")
    con.execute("INSERT INTO t VALUES ('red'), ('blue'), ('green'), (NULL)")
    for fast in (False, True):
        with bit_sets():
            con.execute(forest.to_sql(form="macro", fast=fast, replace=True))
        scored = con.execute("FROM made_scored('t')").fetchall()
        assert [row[1] for row in scored] == ["no", "yes", "yes", "no"]


@pytest.mark.parametrize("link", [SHARES, SOFTMAX], ids=str)
def test_sql_grows_with_the_number_of_classes_and_not_with_its_square(
    con: duckdb.DuckDBPyConnection, link: Link
) -> None:
    sizes = []
    for classes in (25, 100):
        domain = two_attributes(labels=tuple(f"class {n}" for n in range(classes)))
        drawn = np.random.default_rng(classes).integers(1, 3_000_000, (4, classes)).tolist()
        forest = forest_of(domain, one_split(domain, 0, drawn), link=link)
        sizes.append(len(forest.to_sql("colours")))
    assert sizes[1] < 5 * sizes[0]
    con.execute("CREATE TABLE colours AS SELECT 'red' AS colour, 'small' AS size")
    (row,) = forest.predict(con, "colours").fetchall()
    votes = forest.votes([{"colour": "red", "size": "small"}])
    assert row[2] == f"class {votes[0].argmax()}"
    assert np.abs(np.array(row[3:]) - forest.probabilities(votes)[0]).max() < 1e-12


@pytest.mark.parametrize("link", [SHARES, SOFTMAX], ids=str)
def test_votes_of_all_classes_may_sum_to_more_than_32_bits(
    con: duckdb.DuckDBPyConnection, link: Link
) -> None:
    domain = two_attributes()
    most = -1_500_000_000 if link.log_odds else 1_500_000_000
    forest = forest_of(
        domain, one_split(domain, 0, [[1_500_000_000, most - 1], [3, 4], [5, 6], [7, 8]]), link=link
    )
    con.execute("CREATE TABLE t AS SELECT unnest(['red', 'blue']) AS colour, 'small' AS size")
    assert_agree(con, forest, "t")


def test_ties_go_to_the_first_class() -> None:
    domain = Domain(
        (Attribute("x", "categorical", ("a",), type=VARCHAR),), "y", ("no", "yes"), VARCHAR
    )
    leaf = np.array([0])
    tree = Tree(leaf, leaf - 1, leaf, leaf - 1, None, np.array([[5, 5]]))
    con = duckdb.connect()
    con.execute("CREATE TABLE t AS SELECT 'a' AS x")
    forest = Forest("m", "test", Guarantee("1"), domain, (tree,))
    assert forest.predict(con, "t").fetchall() == [("a", "no", 0.5, 0.5)]


def tree_of(kind: list[int], attribute: list[int], cell: list[int], first: list[int]) -> Tree:
    """A tree whose leaves have different votes, which depend on the number of the node."""
    number = np.arange(len(kind))
    votes = np.stack([number * 7 % 101, number * 13 % 97], axis=1)
    votes[np.array(kind) != LEAF] = 0
    return Tree(*map(np.array, (kind, attribute, cell, first)), None, votes)


@pytest.mark.parametrize("voting", Voting)
def test_bit_sets_hold_trees_of_more_leaves_than_a_word(
    con: duckdb.DuckDBPyConnection, voting: Voting
) -> None:
    """82 leaves by two attributes that are looked up apart, a small tree, and one leaf alone."""
    sizes = {"x": 40, "y": 30}
    attributes = tuple(
        Attribute(name, "categorical", tuple(map(str, range(size))), nullable=False)
        for name, size in sizes.items()
    )
    types = dict.fromkeys([*sizes, "target"], VARCHAR)
    domain = Domain(attributes, "target", ("no", "yes")).bind(types)
    wide = domain.cells[0]
    leaves = 2 * wide
    large = tree_of(
        [MULTIWAY, *[EQUALS] * wide, *[LEAF] * leaves],
        [0, *[1] * wide, *[-1] * leaves],
        [0, *(number % 30 for number in range(wide)), *[0] * leaves],
        [1, *range(1 + wide, 1 + wide + leaves, 2), *[-1] * leaves],
    )
    small = tree_of(
        [EQUALS, LEAF, EQUALS, LEAF, LEAF], [0, -1, 1, -1, -1], [3, 0, 9, 0, 0], [1, -1, 3, -1, -1]
    )
    forest = forest_of(domain, large, small, tree_of([LEAF], [-1], [0], [-1]))
    con.execute(
        "CREATE TABLE t AS SELECT CAST(x AS VARCHAR) AS x, CAST(y AS VARCHAR) AS y "
        "FROM range(42) AS a(x), range(32) AS b(y)"
    )
    assert_agree(con, replace(forest, voting=voting), "t")


@pytest.mark.parametrize("voting", Voting)
@pytest.mark.parametrize("labels", [("no", "yes"), ("no", "yes", "never")])
def test_large_trees_of_few_attributes_are_looked_up_by_keys_of_their_own(
    con: duckdb.DuckDBPyConnection, voting: Voting, labels: Sequence[str]
) -> None:
    """Two by one key, one by a key that shares an attribute with it, beside bit sets. Trees with
    the same votes everywhere are not looked up.
    """
    sizes = {"x": 40, "y": 30, "z": 40}
    attributes = tuple(
        Attribute(name, "categorical", tuple(map(str, range(size)))) for name, size in sizes.items()
    )
    domain = Domain(attributes, "target", labels)
    domain = domain.bind(dict.fromkeys([*sizes, "target"], VARCHAR))
    pairs = (0, 1), (1, 0), (2, 1)
    large = [two_splits(domain, seed, pair) for seed, pair in enumerate(pairs)]
    drawn = np.random.default_rng(0)
    small = [random_tree(domain, drawn, 99, exact=False, kinds=(EQUALS,)) for _ in range(3)]
    apart = one_split(domain, 2, drawn.integers(1, 99, (domain.cells[2], len(labels))).tolist())
    same = [replace(tree, votes=np.full_like(tree.votes, 3)) for tree in (large[0], apart)]
    forest = replace(forest_of(domain, *large, *small, apart, *same), voting=voting)
    found = Lookups.of(forest)
    assert {group: numbers for group, numbers in found.by_key.items() if len(group) > 1} == {
        (0, 1): [0, 1],
        (1, 2): [2],
    }
    assert {part.tree for bundle in found.bundles for part in bundle.parts} == {3, 4, 5}
    assert found.constant == [7, 8]
    con.execute(
        "CREATE TABLE t AS SELECT nullif(x, 0)::VARCHAR AS x, nullif(y, 3)::VARCHAR AS y, "
        "((x * y) % 22)::VARCHAR AS z FROM range(42) AS a(x), range(32) AS b(y)"
    )
    assert_agree(con, forest, "t")


def test_the_votes_of_a_key_take_no_memory_for_other_attributes() -> None:
    values = list(map(str, range(100)))
    attributes = [Attribute(f"a{n}", "categorical", values) for n in range(200)]
    names = [*(attribute.name for attribute in attributes), "target"]
    domain = Domain(attributes, "target", ["no", "yes"]).bind(dict.fromkeys(names, VARCHAR))
    forest = forest_of(domain, two_splits(domain, 0, (3, 7)))
    tracemalloc.start()
    votes = votes_of_key(forest, [0], (3, 7))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 100 * votes.size, "bytes"


def test_a_tree_with_leaves_for_few_combinations_has_no_key_of_its_own() -> None:
    """Its list would be far longer than the tree."""
    domain = two_attributes()
    deep = two_splits(domain, 0)
    full, leaves = prod(domain.cells), len(deep.leaves)
    assert leaves == full
    assert not fills_grid(deep, domain.cells), "so few leaves that another tree shares their list"
    with mock.patch.object(lookups, "COMBINED", leaves):
        assert fills_grid(deep, domain.cells)
        with mock.patch.object(lookups, "FILLED", 0.99):
            assert not fills_grid(deep, domain.cells)


@pytest.mark.parametrize("labels", [("no", "yes"), ("no", "yes", "never")])
def test_the_choice_of_a_form_counts_leaves_of_the_same_votes_once(labels: Sequence[str]) -> None:
    """Nested CASE merges them: a large tree with two outcomes takes one comparison or two."""
    sizes = {"x": 40, "y": 30}
    attributes = [
        Attribute(name, "categorical", list(map(str, range(n)))) for name, n in sizes.items()
    ]
    domain = Domain(attributes, "target", labels).bind(dict.fromkeys([*sizes, "target"], VARCHAR))
    different = two_splits(domain, 0)
    votes = different.votes.copy()
    votes[different.leaves] = 1
    votes[different.leaves[0]] = 2
    assert fastest_form(forest_of(domain, different)) == "bit sets"
    assert fastest_form(forest_of(domain, replace(different, votes=votes))) == "nested CASE"


def test_a_comment_does_not_end_in_a_backslash() -> None:
    """Spark would continue it on the next line."""
    assert comment("votes for n\\") == "votes for n\\ "
    assert comment("votes for n") == "votes for n"


def test_a_list_in_a_template_has_integers_and_sql_only() -> None:
    assert join([Sql('"a"'), 1], ", ") == '"a", 1'
    with pytest.raises(TypeError, match="integers and Sql only"):
        join(["a"], ", ")


@pytest.mark.parametrize(("value", "sql"), [("1", "1BD"), ("-3", "-3BD"), ("1.5", "1.5")])
def test_spark_compares_a_decimal_with_as_many_digits_as_a_category_has(
    value: str, sql: str
) -> None:
    """It would round a DECIMAL(38, 29) to compare it with an INT."""
    assert dialect("spark").category(value, "decimal") == sql


@pytest.mark.parametrize("form", ["view", "table", "macro"])
def test_the_sql_of_a_new_model_can_replace_that_of_an_old_one(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest], form: Form
) -> None:
    con.execute("CREATE TABLE t AS SELECT i % 2 = 0 AS a, i % 3 = 0 AS y FROM range(99) r(i)")
    forest = fit(con, "t", target="y")
    con.execute(forest.to_sql("t", form=form))
    with pytest.raises(duckdb.CatalogException, match="already exists"):
        con.execute(forest.to_sql("t", form=form))
    con.execute(forest.to_sql("t", form=form, replace=True))


@pytest.mark.parametrize(
    ("engine", "form", "head"),
    [
        ("postgres", "view", "CREATE OR REPLACE VIEW"),
        ("tsql", "view", "CREATE OR ALTER VIEW"),
        ("clickhouse", "table", "CREATE OR REPLACE TABLE"),
        ("postgres", "table", None),
        ("sqlite", "view", None),
        ("duckdb", "select", None),
    ],
)
def test_what_an_engine_cannot_replace_is_refused(
    con: duckdb.DuckDBPyConnection,
    fit: Callable[..., Forest],
    engine: str,
    form: Form,
    head: str | None,
) -> None:
    con.execute("CREATE TABLE t AS SELECT i % 2 = 0 AS a, i % 3 = 0 AS y FROM range(99) r(i)")
    forest = fit(con, "t", target="y")
    given = {"form": form, "dialect": engine, "columns": ["a", "y"], "replace": True}
    if head is None:
        with pytest.raises(UsageError, match="replace"):
            forest.to_sql("t", **given)
    else:
        lines = forest.to_sql("t", **given).splitlines()
        assert any(line.startswith(head) for line in lines)


@pytest.mark.parametrize("name", ["true", "FALSE"])
def test_sqlite_has_no_columns_of_the_names_of_truth_values(name: str) -> None:
    with pytest.raises(DpforestError, match="rename it"):
        dialect("sqlite").ident(name)


@pytest.mark.parametrize("constant", [0, 70])
def test_sql_has_no_column_for_a_tree_that_adds_the_same_everywhere(
    con: duckdb.DuckDBPyConnection, constant: int
) -> None:
    con.execute(
        "CREATE TABLE t AS FROM (VALUES ('red', 'small'), ('blue', 'large')) v(colour, size)"
    )
    domain = two_attributes(labels=("a", "b", "c"))
    split = one_split(domain, 0, [[9, 0, 1], [3, 2, 1], [1, 2, 8], [4, 4, 4]])
    same = one_split(domain, 1, [[constant, 0, 5]] * 3)
    forest = forest_of(domain, same, split)
    sql = score_sql(forest, DuckDBEngine(con).scored("t"))
    assert "leaf_1" in sql
    assert "leaf_0" not in sql
    assert ("70" in sql) == bool(constant)
    assert_agree(con, forest, "t")
    assert_agree(con, forest_of(domain, same), "t")


EDGES = [(0.5, 1.5, 2.5), (-0.5, 0.0, 3.75, 9.0), (0.1, 0.5, 2.0), (-90.5, 90.25), (2.0,)]
GIVEN = ["TINYINT", "BIGINT", "HUGEINT", "DOUBLE"]


@some(("edges", "trained", "given"), product(EDGES, ["DOUBLE", "DECIMAL(6, 2)"], GIVEN), keep=10)
def test_whole_numbers_are_in_the_bins_of_a_column_of_fractions(
    con: duckdb.DuckDBPyConnection, edges: tuple[float, ...], trained: str, given: str
) -> None:
    """Two edges between the same whole numbers too."""
    made = [Attribute(name, "numeric", edges=edges).bound(column_type(trained)) for name in "ab"]
    domain = Domain(tuple(made), "y", ("no", "yes"), VARCHAR)
    con.execute(f"CREATE TABLE t (a {given}, b {given})")
    con.execute(
        "INSERT INTO t SELECT i, 3 - i FROM range(-12, 13) r(i) UNION ALL "
        "VALUES (NULL, NULL), (-100, 100), (91, -91)"
    )
    for forest in (
        forest_of(domain, two_splits(domain, 1), two_splits(domain, 2)),
        forest_of(domain, one_split(domain, 0, two_splits(domain, 1).votes[: domain.cells[0]] + 1)),
    ):
        assert_agree(con, forest, "t")
        with groups_of_one():
            assert_agree(con, forest, "t")


def test_times_and_dates_are_in_the_same_bins(con: duckdb.DuckDBPyConnection) -> None:
    edges = tuple(datetime(2020, 1, day, hour) for day, hour in ((1, 0), (2, 6), (3, 18), (4, 1)))
    made = [Attribute(name, "numeric", edges=edges).bound(TIMESTAMP) for name in "ab"]
    domain = Domain(tuple(made), "y", ("no", "yes"), VARCHAR)
    con.execute(
        "CREATE TABLE days AS SELECT DATE '2020-01-01' + i::INTEGER AS a, "
        "DATE '2020-01-05' - i::INTEGER AS b FROM range(-2, 7) r(i)"
    )
    con.execute("CREATE TABLE times AS SELECT a::TIMESTAMP AS a, b::TIMESTAMP AS b FROM days")
    forest = forest_of(domain, two_splits(domain, 1))
    assert_agree(con, forest, "times")
    found = [forest.predict(con, name).fetchall() for name in ("days", "times")]
    assert [row[2:] for row in found[0]] == [row[2:] for row in found[1]]
    with bit_sets():
        assert [row[2:] for row in forest.predict(con, "days").fetchall()] == [
            row[2:] for row in found[1]
        ]


@pytest.mark.parametrize("kind", ["TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP"])
def test_a_moment_far_from_1970_is_not_above_its_edge(
    con: duckdb.DuckDBPyConnection, kind: str
) -> None:
    """Seconds as floating-point numbers have fewer than six digits after the point there."""
    unit = column_type(kind).microseconds
    near = [datetime(342, 5, 7, 18, 22, 48, 114_000), datetime(2877, 1, 30, 20, 35, 29, 339_448)]
    edges = [moment.replace(microsecond=moment.microsecond // unit * unit) for moment in near]
    attribute = Attribute("seen", "numeric", edges=tuple(edges)).bound(column_type(kind))
    domain = Domain((attribute,), "y", ("no", "yes"), VARCHAR)
    con.execute(f"CREATE TABLE t (seen {kind})")
    con.executemany(
        "INSERT INTO t VALUES (?)",
        [[edge + timedelta(microseconds=step * unit)] for edge in edges for step in range(-9, 10)],
    )
    forest = forest_of(domain, one_split(domain, 0, [[9, 0], [0, 8], [7, 0], [0, 6]]))
    assert forest.votes([{"seen": edge} for edge in edges]).tolist() == [[9, 0], [0, 8]]
    assert_agree(con, forest, "t")
