"""The two forms of scoring SQL beside each other, and which of them `score` chooses.

    python benchmarks/scoring.py --markdown docs/speed-targets.md   # the page's table of forms

Each model is trained on made-up rows, then scores 100,000 and 1 M of them into a table by nested
CASE and by bit sets. The figures are the smaller CPU time of two runs, with planning, one thread.
The page is changed only between its two comments.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import duckdb
from contenders import TABLE, domain, make_rows
from shared import around_part, markdown_table, replace_part, say

from dpforest_duckdb import Forest, train
from dpforest_duckdb.errors import number_of
from dpforest_duckdb.scoring.score_sql import fastest_form

FEW, MANY = 100_000, 1_000_000  # rows
ATTRIBUTES = 14
FIRST, LAST = "<!-- written by benchmarks/scoring.py -->", "<!-- end of forms -->"


@dataclass(frozen=True)
class Model:
    """A recipe and its options, on a table of integers or of mixed columns."""

    recipe: str
    trees: int | None = None
    depth: int | None = None
    classes: int = 2
    mixed: bool = True
    delta: str = "0"

    def __str__(self) -> str:
        options = [
            f"depth {self.depth}" if self.depth else "",
            f"δ = {self.delta}" if self.delta != "0" else "",
            f"{self.classes} classes",
            "mixed columns" if self.mixed else "integers",
        ]
        return f"{self.recipe}: {', '.join(filter(None, options))}"


MODELS = (
    Model("greedy-tree", 1, 6, mixed=False),
    Model("private-rdt", 3, 4, mixed=False),
    Model("private-rdt", 10, 4, mixed=False),
    Model("private-rdt", 10, 6, mixed=False),
    Model("private-rdt", 100, 4, mixed=False),
    Model("private-rdt", 100, 6, mixed=False),
    Model("greedy-tree", 1, 6),
    Model("log-odds"),
    Model("log-odds", classes=4),
    Model("log-odds", classes=26),
    Model("joint-tables"),
    Model("rooted-tables"),
    Model("rooted-tables", classes=4),
    Model("rooted-tables", classes=26),
    Model("boosted"),
    Model("boosted", delta="1e-5"),
)


def trained(con: duckdb.DuckDBPyConnection, model: Model, folder: Path) -> Forest:
    con.execute(f"COMMENT ON TABLE {TABLE} IS NULL")
    options = {key: value for key in ("trees", "depth") if (value := getattr(model, key))}
    with tempfile.TemporaryDirectory(dir=folder) as own:
        return train(
            con,
            TABLE,
            epsilon=1,
            delta=model.delta,
            domain=domain(ATTRIBUTES, model.mixed, model.classes),
            recipe=model.recipe,
            privacy_unit="row",
            ledger=Path(own) / "ledger",
            **options,
        )


def timed(con: duckdb.DuckDBPyConnection, forest: Forest, rows: int, *, look_up: bool) -> float:
    """The CPU seconds to score the first rows into a table."""
    con.execute(f"CREATE OR REPLACE VIEW scored_rows AS FROM {TABLE} LIMIT {rows}")
    found = []
    with mock.patch("dpforest_duckdb.scoring.score_sql.bit_sets_pay", return_value=look_up):
        for _ in range(2):
            start = time.process_time()
            sql = forest.to_sql("scored_rows", fast=True, form="table", name="o", replace=True)
            con.execute(sql)
            found.append(time.process_time() - start)
    return min(found)


def measured(model: Model, folder: Path) -> list[str]:
    """A line of the table."""
    path = folder / "rows.duckdb"
    make_rows(path, MANY, ATTRIBUTES, mixed=model.mixed, classes=model.classes)
    with duckdb.connect(str(path), config={"threads": 1}) as con:
        forest = trained(con, model, folder)
        size = f"{number_of(len(forest.trees), 'tree')} of {forest.nodes:,} nodes"
        line = [f"{model}: {size}"]
        for look_up in (False, True):
            seconds = (timed(con, forest, rows, look_up=look_up) for rows in (FEW, MANY))
            line.append(", ".join(f"{each:.2f}" for each in seconds))
    path.unlink()
    line.append(fastest_form(forest))
    say(" | ".join(line))
    return line


def main() -> None:
    """Measure every model and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--markdown", type=Path, help="the page whose table is replaced")
    parser.add_argument("--recipe", help="only models of this recipe, to try things out")
    given = parser.parse_args()
    if given.markdown:
        if given.recipe:
            parser.error("--markdown needs all models: leave --recipe out.")
        around_part(given.markdown, FIRST, LAST)
    models = [model for model in MODELS if given.recipe in (None, model.recipe)]
    with tempfile.TemporaryDirectory(prefix="scoring-") as folder:
        rows = [measured(model, Path(folder)) for model in models]
    table = markdown_table(["model", "nested CASE", "bit sets", "chosen"], rows)
    machine = f"one of {os.cpu_count()} cores, {platform.machine()}, DuckDB {duckdb.__version__}"
    text = f"By `python benchmarks/scoring.py`, {machine}:\n\n{table}"
    print(text)
    if given.markdown:
        replace_part(given.markdown, text, FIRST, LAST)


if __name__ == "__main__":
    main()
