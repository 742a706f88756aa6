"""The model file: whole, checked, and nothing in it that a loader should trust."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from models import forest_of

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.file import load_domain
from dpforest_duckdb.domain.types import INTEGER, VARCHAR
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.errors import DpforestError, NotPrivateWarning, UsageError
from dpforest_duckdb.guarantee import Guarantee
from dpforest_duckdb.model import store
from dpforest_duckdb.model.forest import Forest, load_forest
from dpforest_duckdb.model.json_format import fingerprint
from dpforest_duckdb.model.rules import condition
from dpforest_duckdb.scoring.links import SHARES
from dpforest_duckdb.training.evaluate import evaluate
from dpforest_duckdb.training.prepare import prepare
from dpforest_duckdb.training.train import train, train_many
from dpforest_duckdb.tree import EQUALS, LEAF, MULTIWAY, THRESHOLD, Tree


@pytest.fixture(scope="module")
def forest(tmp_path_factory: pytest.TempPathFactory) -> Forest:
    with (
        duckdb.connect() as con,
        warnings.catch_warnings(action="ignore", category=NotPrivateWarning),
    ):
        con.execute(
            "CREATE TABLE t (a ENUM ('x', 'y', 'z'), n DOUBLE CHECK (n BETWEEN 0 AND 8), k BOOLEAN)"
        )
        con.execute("INSERT INTO t SELECT 'x', i % 9, i % 9 > 4 FROM range(3000) r(i)")
        options = {"target": "k", "epsilon": 1, "recipe": "dpdf", "trees": 2, "seed": 1}
        ledger = tmp_path_factory.mktemp("forest") / "ledger"
        return prepare(con, "t", ledger=ledger, **options).execute()  # type: ignore[arg-type]


def test_a_fingerprint_is_of_all_of_a_forest_but_its_name(forest: Forest) -> None:
    """Else a private run would vouch for a model that it did not make."""
    own, (first, last) = fingerprint(forest), forest.trees
    assert fingerprint(replace(forest, name="other")) == own
    votes = last.votes.copy()
    votes[-1, -1] += 1
    promise = replace(forest.guarantee, epsilon="2")
    for other in (
        replace(forest, trees=(first, replace(last, votes=votes))),
        replace(forest, trees=(last, first)),
        replace(forest, trees=(first,)),
        replace(forest, guarantee=promise),
        replace(forest, domain=replace(forest.domain, classes=("true", "false"))),
    ):
        assert fingerprint(other) != own


def test_a_forest_comes_back_from_json_as_it_was(forest: Forest, tmp_path: Path) -> None:
    forest.save(tmp_path / "m.json")
    again = load_forest(tmp_path / "m.json")
    assert again.to_json() == forest.to_json()
    assert again == forest
    assert {again: 1} == {forest: 1}
    assert again != forest.named("another")
    assert forest != "a forest"
    assert again.to_sql("t") == forest.to_sql("t")
    assert again.rules() == forest.rules()


def test_counts_and_votes_are_integers_in_the_file(forest: Forest) -> None:
    def numbers(value: Any) -> list[Any]:
        if isinstance(value, list):
            return [number for item in value for number in numbers(item)]
        return [value]

    for tree in json.loads(forest.to_json())["trees"]:
        assert all(type(n) is int for key in tree if key != "noise" for n in numbers(tree[key]))


def _set(path: str, value: Any) -> Callable[[dict], None]:
    def change(content: dict) -> None:
        *keys, last = path.split(".")
        for key in keys:
            content = content[int(key)] if isinstance(content, list) else content[key]
        content[int(last) if isinstance(content, list) else last] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        _set("trees.0.first.0", 0),
        _set("trees.0.noise", [1.0]),
        _set("trees.0.noise.0", -1.0),
        _set("trees.0.noise.0", "1"),
        _set("trees.0.noise.0", True),
        _set("trees.0.first.0", 2),
        _set("trees.0.first.0", 10**9),
        _set("trees.0.kind.0", 7),
        _set("trees.0.kind.0", 1.5),
        _set("trees.0.attribute.0", -1),
        _set("trees.0.attribute.0", 99),
        _set("trees.0.votes.0", [0, 0]),
        _set("trees.0.votes.0", [-5, 9]),
        _set("trees.0.votes.0", ["1; DROP TABLE t", 1]),
        _set("trees.0.votes.0", [10**30, 1]),
        _set("trees.0.counts.0", [0.5, 1]),
        _set("trees", []),
        _set("trees.0.kind", []),
        _set("domain.target_type", "INTEGER); DROP TABLE t; --"),
        _set("domain.target_type", "INTEGER"),
        _set("domain.classes", ["false"]),
        _set("domain.target_type", "ENUM('false')"),
        _set("domain.target", "\ud800"),
        _set("table", "\ud800"),
        _set("guarantee.plan.0", "\ud800"),
        _set("domain.attributes.0.type", "ENUM('a') --"),
        _set("domain.attributes.0.values", ["x", "x", "z"]),
        _set("domain.attributes.0.name", "a\x00"),
        _set("domain.attributes.0.kind", "evil"),
        _set("domain.attributes.1.edges", [1, 0]),
        _set("domain.attributes.1.edges", ["0; DROP TABLE t"]),
        _set("domain.attributes.1.edges", [10**400]),
        _set("domain.attributes", None),
        _set("guarantee.private", "yes"),
        _set("guarantee.rows_per_unit", 0),
        _set("name", 3),
        _set("schema", "dpforest/2"),
    ],
)
def test_a_hostile_model_is_refused_in_one_sentence(
    forest: Forest, change: Callable[[dict], None]
) -> None:
    content = json.loads(forest.to_json())
    change(content)
    with pytest.raises(DpforestError, match=r"^The model (is damaged|has a schema)") as caught:
        Forest.from_json(json.dumps(content))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "{}", '{"schema": "dpforest/1"}', '{"schema": NaN}', "[" * 100_000],
)
def test_what_is_no_model_is_refused(text: str) -> None:
    with pytest.raises(DpforestError, match="damaged"):
        Forest.from_json(text)


def test_noise_without_end_is_refused(forest: Forest) -> None:
    content = json.loads(forest.to_json())
    content["trees"][0]["noise"][0] = 12345.5
    with pytest.raises(DpforestError, match="damaged"):
        Forest.from_json(json.dumps(content).replace("12345.5", "1e999"))


@pytest.mark.parametrize(
    ("kind", "last"), [(THRESHOLD, 1), (EQUALS, 3)], ids=["threshold", "equals"]
)
def test_a_cut_beyond_the_last_value_is_refused(kind: int, last: int) -> None:
    """Rows can be cut at either edge, and each of three bins and missing values split off."""
    number = Attribute("n", "numeric", edges=(1, 2))
    public = Domain((number,), "y", ("no", "yes")).bind({"n": INTEGER, "y": VARCHAR})
    stump = Tree(
        kind=np.array([kind, LEAF, LEAF]),
        attribute=np.array([0, -1, -1]),
        cell=np.array([last, 0, 0]),
        first=np.array([1, -1, -1]),
        counts=None,
        votes=np.array([[0, 0], [1, 2], [2, 1]]),
    )
    content = json.loads(forest_of(public, stump, link=SHARES).to_json())
    assert len(Forest.from_json(json.dumps(content)).rules()) == 3
    content["trees"][0]["cell"][0] = last + 1
    with pytest.raises(DpforestError, match="damaged"):
        Forest.from_json(json.dumps(content))


def test_a_tree_that_is_too_deep_is_refused(forest: Forest) -> None:
    content = json.loads(forest.to_json())
    depth = 200
    nodes = 2 * depth + 1
    inner = [i % 2 == 0 and i < 2 * depth for i in range(nodes)]
    content["trees"] = [
        {
            "kind": [3 if split else 0 for split in inner],
            "attribute": [0 if split else -1 for split in inner],
            "cell": [0] * nodes,
            "first": [i + 1 if split else -1 for i, split in enumerate(inner)],
            "counts": None,
            "votes": [[1, 0]] * (nodes - sum(inner)),
        }
    ]
    # children of node i are i+1 and i+2: i+2 splits again
    with pytest.raises(DpforestError, match="damaged"):
        Forest.from_json(json.dumps(content))


def test_files_are_written_whole_or_not_at_all(forest: Forest, tmp_path: Path) -> None:
    target = tmp_path / "no" / "folder" / "m.json"
    with pytest.raises(DpforestError, match="cannot be written"):
        forest.save(target)
    (tmp_path / "m.json").mkdir()
    with pytest.raises(DpforestError, match="is not a file"):
        forest.save(tmp_path / "m.json")
    assert [p.name for p in tmp_path.iterdir() if "m.json" in p.name] == ["m.json"]
    with pytest.raises(DpforestError, match="There is no model file"):
        load_forest(tmp_path / "missing.json")


WRONG: tuple[tuple[str, Callable[[Any, Any], object]], ...] = (
    ("path", lambda forest, con: load_forest(5)),  # type: ignore[arg-type]
    ("path", lambda forest, con: load_forest("a\0b")),
    ("path", lambda forest, con: load_domain(None)),  # type: ignore[arg-type]
    ("target", lambda forest, con: load_domain("d.toml", 5)),  # type: ignore[arg-type]
    ("path", lambda forest, con: forest.save(5)),
    ("tree", lambda forest, con: forest.plot_tree("a")),
    ("attribute", lambda forest, con: forest.plot_effects(["n"])),
    ("ax", lambda forest, con: forest.plot_importances(5)),
    ("table", lambda forest, con: forest.to_sql(["t"])),
    ("dialect", lambda forest, con: forest.to_sql("t", dialect=None)),
    ("key", lambda forest, con: forest.to_sql("t", key=[5])),
    ("force", lambda forest, con: forest.to_sql("t", force="no")),
    ("name", lambda forest, con: forest.named(5)),
    ("prefix", lambda forest, con: forest.predict(con, "t", prefix=5)),
    ("runs", lambda forest, con: list(train_many("abc"))),  # type: ignore[arg-type]
    ("runs", lambda forest, con: list(train_many(5))),  # type: ignore[arg-type]
    ("exclude", lambda forest, con: train(con, "t", epsilon=1, exclude=None)),  # type: ignore[arg-type]
    ("columns", lambda forest, con: forest.domain.keep(5)),
    ("name", lambda forest, con: Attribute(5, "numeric")),  # type: ignore[arg-type]
    ("attributes", lambda forest, con: Domain("ab", "k", ("x", "y"))),  # type: ignore[arg-type]
)


@pytest.mark.parametrize(("parameter", "call"), WRONG)
def test_a_wrong_argument_gets_a_sentence(
    parameter: str, call: Callable[[Any, Any], object], forest: Forest
) -> None:
    with duckdb.connect() as con, pytest.raises(UsageError, match=f"^{parameter} must be "):
        call(forest, con)


CLOSED: tuple[Callable[[Any, Any, Any], object], ...] = (
    lambda forest, con, rows: train(con, "t", epsilon=1),
    lambda forest, con, rows: train(con, Path("t.csv"), epsilon=1),
    lambda forest, con, rows: train(duckdb.connect(), rows, epsilon=1),
    lambda forest, con, rows: forest.predict(con, "t"),
    lambda forest, con, rows: forest.predict(duckdb.connect(), rows),
    lambda forest, con, rows: evaluate(con, forest, "t"),
    lambda forest, con, rows: DuckDBEngine(con).models.names(),
    lambda forest, con, rows: DuckDBEngine(con).models.write("m", forest.to_json()),
)


@pytest.mark.parametrize("call", CLOSED)
def test_a_closed_connection_gets_a_sentence(
    call: Callable[[Any, Any, Any], object], forest: Forest
) -> None:
    with duckdb.connect() as con:
        rows = con.sql("SELECT 'x' AS a, 1.0 AS n WHERE true")
    with pytest.raises(UsageError, match="connection is closed: open it again"):
        call(forest, con, rows)


def test_a_run_refuses_a_closed_connection_before_its_debit(tmp_path: Path, forest: Forest) -> None:
    columns = {"a": np.array(["x"], dtype=object), "n": np.ones(1), "k": np.ones(1, dtype=bool)}
    ledger = tmp_path / "ledger"
    options = {"domain": forest.domain, "epsilon": 1, "recipe": "dpdf", "dataset": "d"}
    with duckdb.connect() as con:
        run = prepare(con, columns, ledger=ledger, **options)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="connection is closed"):
        run.execute()
    assert not ledger.exists()


def test_models_in_the_database(con: duckdb.DuckDBPyConnection, forest: Forest) -> None:
    engine = DuckDBEngine(con)
    assert engine.models.names() == []
    store.save(engine.models, forest.named("Ärzte; --"))
    assert engine.models.names() == ["Ärzte; --"]
    assert store.load(engine.models, "ÄRZTE; --").to_json() == forest.named("Ärzte; --").to_json()
    with pytest.raises(DpforestError, match="already"):
        store.save(engine.models, forest.named("ärzte; --"))
    store.save(engine.models, forest.named("ärzte; --"), replace=True)
    assert engine.models.names() == ["ärzte; --"]
    with pytest.raises(DpforestError, match="no model"):
        store.load(engine.models, "other")
    store.drop(engine.models, "Ärzte; --")
    assert engine.models.names() == []
    for name in ("", "a\nb", "x" * 300):
        with pytest.raises(DpforestError, match="name"):
            store.save(engine.models, forest.named(name))


def test_categories_called_null_or_other_are_quoted() -> None:
    attribute = Attribute("k", "categorical", ("NULL", "other", " ", "x"), nullable=True).bound(
        VARCHAR
    )
    labels = [attribute.label(cell) for cell in range(attribute.cells)]
    assert labels == ["'NULL'", "'other'", "' '", "x", "other", "NULL"]
    branches = [condition(attribute, MULTIWAY, 0, branch) for branch in range(attribute.cells)]
    assert branches == [
        "k = 'NULL'", "k = 'other'", "k = ' '", "k = x", "k is other", "k is NULL"
    ]  # fmt: skip
    assert condition(attribute, THRESHOLD, 1, 0) == "k in ('NULL', 'other')"
    number = Attribute("n", "numeric", edges=(1, 2)).bound(INTEGER)
    assert condition(number, THRESHOLD, 0, 1) == "(n > 1 or missing)"


@pytest.mark.parametrize(
    ("branch", "said"), [(0, "k = b"), (1, "k is not b")], ids=["equal", "other"]
)
def test_a_split_off_category_is_in_the_first_branch(branch: int, said: str) -> None:
    attribute = Attribute("k", "categorical", ("a", "b", "c")).bound(VARCHAR)
    assert condition(attribute, EQUALS, 1, branch) == said


def test_rules_list_every_path_with_released_figures(forest: Forest) -> None:
    rows = forest.rules()
    assert len(rows) == forest.nodes
    assert [r["rule"] for r in rows if r["depth"] == 0] == ["(all rows)"] * 2
    for row in rows:
        tree = forest.trees[row["tree"]]
        assert row["counts"] == tree.counts[row["node"]].tolist()
        assert 0 <= row["support"] <= 1
        assert row["noise"] == round(float(tree.noise[row["node"]]), 3) > 0
        assert row["confidence"] is None or 0.5 <= row["confidence"] <= 1
        assert (
            row["depth"] == row["rule"].count(" AND ") + (row["depth"] > 0) or "> " in row["rule"]
        )
        assert (row["votes"] is None) == (not row["leaf"])


def test_the_support_of_a_leaf_is_its_part_of_all_leaves_if_the_root_has_no_counts() -> None:
    leaf = [-1] * 3
    tree = Tree(
        kind=np.array([MULTIWAY, LEAF, LEAF, LEAF]),
        attribute=np.array([0, *leaf]),
        cell=np.array([-1, *leaf]),
        first=np.array([1, *leaf]),
        counts=np.array([[0, 0], [35, -5], [0, 65], [0, 0]]),
        votes=np.zeros((4, 2), dtype=np.int64),
        noise=np.array([np.nan, 2.0, 2.0, np.nan]),
    )
    attribute = Attribute("a", "categorical", ("x", "y"), nullable=False)
    domain = Domain((attribute,), "k", ("no", "yes"))
    found = Forest("m", "auto", Guarantee(epsilon="1"), domain, (tree,)).rules()
    assert [rule["support"] for rule in found] == [None, 0.368421, 0.684211, None]  # of 35 + 60
    counts = np.array([[40, 40], *tree.counts[1:].tolist()])
    known = replace(tree, counts=counts, noise=np.array([2.0, 2.0, 2.0, np.nan]))
    found = Forest("m", "auto", Guarantee(epsilon="1"), domain, (known,)).rules()
    assert [rule["support"] for rule in found] == [1.0, 0.4375, 0.8125, None]
