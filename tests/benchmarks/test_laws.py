"""Bad input obeys the laws of the default, and training in memory is training in DuckDB."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import duckdb
import numpy as np
import pytest
from variants import some

sys.path.append(str(Path(__file__).resolve().parent.parent.parent / "benchmarks"))

import generated
import in_memory
import laws
from shared import Results

from dpforest_duckdb.training.evaluate import evaluate
from dpforest_duckdb.training.train import train

RECIPES = [
    ("log-odds", 0),
    ("class-means", 0),
    ("joint-tables", 0),
    ("rooted-tables", 0),
    ("greedy-tree", 0),
    ("tree-beside-sums", 0),
    ("boosted", 0),
    ("boosted", 1e-5),
]


@pytest.fixture(scope="module")
def case() -> generated.Case:
    """Seven classes, three numbers and a category."""
    whole = generated.terrain(n=1_500)
    return laws.replace(
        whole,
        columns=[*whole.columns[:3], whole.columns[-2]],
        attributes=(*whole.attributes[:3], whole.attributes[-2]),
    )


@some(("recipe", "delta"), RECIPES, keep=3)
def test_a_forest_trained_in_memory_is_the_forest_trained_in_duckdb(
    recipe: str, delta: float, case: generated.Case, tmp_path: Path
) -> None:
    con = duckdb.connect()
    case.write(con, "rows")
    table = in_memory.Table(con, "rows", case.domain)
    rows = np.arange(len(table.labels))
    own = in_memory.trained(table, rows, recipe, 2, delta, seed=5)
    with warnings.catch_warnings(action="ignore"):
        theirs = train(
            con,
            "rows",
            epsilon=2,
            delta=delta,
            domain=case.domain,
            recipe=recipe,
            seed=5,
            ledger=tmp_path / "ledger",
        )
    assert own.domain.attributes == theirs.domain.attributes
    for mine, other in zip(own.trees, theirs.trees, strict=True):
        assert np.array_equal(mine.kind, other.kind)
        assert np.array_equal(mine.attribute, other.attribute)
        assert np.abs(mine.votes - other.votes).max() <= 20  # of a million: e^x may differ in a bit
    found = in_memory.evaluated(own, table, rows)
    expected = evaluate(con, theirs, "rows", ledger=tmp_path / "ledger")
    assert found.accuracy == pytest.approx(expected.accuracy, abs=1e-3)
    assert found.log_loss == pytest.approx(expected.log_loss, abs=1e-4)


def test_missing_values_have_the_same_codes_in_memory() -> None:
    con = duckdb.connect()
    con.execute(
        "CREATE TABLE t AS SELECT CASE WHEN i % 7 = 0 THEN NULL ELSE i END AS a, "
        "CASE WHEN i % 5 = 0 THEN NULL WHEN i % 5 = 1 THEN 'x' ELSE 'z' END AS b, "
        "CASE WHEN i % 11 = 0 THEN 'else' WHEN i % 7 < 3 THEN 'no' ELSE 'yes' END AS class "
        "FROM range(400) AS r(i)"
    )
    domain = generated.Domain(
        (
            generated.Attribute("a", "numeric", lower=0, upper=300),
            generated.Attribute("b", "categorical", ("x", "y")),
        ),
        "class",
        ("no", "yes"),
    )
    table = in_memory.Table(con, "t", domain)
    rows = con.execute("SELECT a, b FROM t WHERE class <> 'else'").fetchall()
    codes = table.codes(table.domain, np.arange(len(rows)))
    for attribute, code, values in zip(
        table.domain.attributes, codes, zip(*rows, strict=True), strict=True
    ):
        assert code.tolist() == [attribute.code(value) for value in values]


@pytest.mark.more
def test_bad_input_obeys_the_laws() -> None:
    found = laws.verdicts(list(generated.BAD), Results(None, laws.KEYS), laws.QUICK)
    broken = [f"{one.comparison} by {one.mean:.3f}" for one in found if one.violated]
    assert len(found) >= 100
    assert len(broken) <= 0.05 * len(found), broken


def test_a_law_that_is_broken_is_found() -> None:
    point = laws.Point("made", 400, "auto", 1.0, 0.0)
    less, unlucky = laws.replace(point, epsilon=0.5), laws.replace(point, epsilon=0.25)
    results = Results(None, laws.KEYS)
    for one, right in ((point, 0.7), (less, 0.75), (unlucky, 0.7)):
        for seed in (*laws.SCREENING, *laws.FRESH):
            values = (one.table, one.rows, one.recipe, one.epsilon, one.delta, seed)
            lucky = 0.1 * (one == unlucky and seed in laws.SCREENING)
            accuracy = right + 0.01 * (seed % 5) + lucky
            run = {"accuracy": accuracy, "auc": None, "log_loss": 1 - accuracy}
            results.add({**dict(zip(laws.KEYS, values, strict=True)), **run})
    found = laws.Measured(results, lambda name: pytest.fail("everything is measured"))

    def verdict(one: laws.Point, other: laws.Point, figure: str) -> laws.Verdict:
        return laws.verdict(found, laws.Comparison(laws.EPSILON_LAW, one, other, figure))

    for figure in ("accuracy", "log_loss"):
        assert verdict(point, less, figure).violated
        assert verdict(point, less, figure).mean == pytest.approx(0.05)
        assert verdict(less, point, figure).mean is None, "it does not look worse"
        assert not verdict(less, point, figure).violated
        assert not verdict(point, unlucky, figure).violated, "fresh seeds alone count"
        assert verdict(point, unlucky, figure).screened > laws.LIMIT


def test_results_of_a_stopped_run_are_read_back(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    Results(file, ("table", "seed")).add({"table": "t", "seed": 1, "accuracy": 0.5})
    file.write_text(file.read_text() + '{"table": "t", "seed": 2, "acc')
    again = Results(file, ("table", "seed"))
    assert again.get("t", 1) == {"table": "t", "seed": 1, "accuracy": 0.5}
    assert again.get("t", 2) is None
    again.add({"table": "t", "seed": 2, "accuracy": 0.25})
    assert Results(file, ("table", "seed")).get("t", 2) is not None


def test_runs_of_other_code_count_once_a_repeated_run_is_the_same(tmp_path: Path) -> None:
    file, keys = tmp_path / "results.jsonl", ("table", "seed")

    def results(code: str) -> Results:
        return Results(file, keys, code, ("seed",))

    before = results("before")
    for table in ("same", "other"):
        for seed in (1, 2):
            before.add({"table": table, "seed": seed, "accuracy": 0.5})
    after = results("after")
    assert after.get("same", 1) is None
    after.add({"table": "same", "seed": 1, "accuracy": 0.5})
    after.add({"table": "other", "seed": 1, "accuracy": 0.6})
    for read in (after, results("after")):
        assert read.get("same", 1) is not None
        assert read.get("same", 2) is not None
        assert read.get("other", 1) is not None
        assert read.get("other", 2) is None
        assert "1 of 3 runs" in read.code_note()
    assert results("later").get("same", 2) is None
