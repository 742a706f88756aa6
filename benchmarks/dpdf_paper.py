"""The comparison of Fletcher & Islam, A Differentially Private Decision Forest (AusDM 2015).

Six tables, five budgets, stratified cross-validation: DPDF in its rigorous form beside the form as
published. Both are trained through the library on tables inside DuckDB, with seeded exact noise
(an experiment on public data), and scored with the SQL that the library emits, or in Python where
that SQL is long.

    python benchmarks/dpdf_paper.py                                 # everything, one tree
    python benchmarks/dpdf_paper.py --trees 1 4 --markdown docs/dpdf.md
    python benchmarks/dpdf_paper.py --tables nursery car --repeats 1

The paper repeats the cross-validation ten times. Every run is kept in benchmarks/results/dpdf.json,
so a command that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import numpy as np
from holdout import share_right
from numpy.typing import NDArray
from shared import Runs, data_folder, markdown_table, say, standard_error, write_page

from dpforest_duckdb import load_domain
from dpforest_duckdb.domain import Domain
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.training.prepare import prepare
from dpforest_duckdb.training.run import Run

TABLES = ("car", "krkopt", "connect_4", "mushroom", "nursery", "tic_tac_toe")
EPSILONS = ("0.1", "0.25", "0.5", "1", "2")
DEPTH, FOLDS = 5, 10
BASELINE = "DiffP-ID3"  # one tree, normalised Gini with Δ = .5, as the paper compares itself with
FORMS = ("rigorous", "as published", BASELINE)
TABLE_1_BASELINE = (".010", ".025", ".050", ".100", ".200")
TABLE_1 = {
    1: (".011", ".028", ".056", ".111", ".222"),
    4: (".003", ".007", ".014", ".028", ".056"),
}

Accuracies = NDArray[np.float64]


@dataclass(frozen=True)
class Result:
    """Accuracy of one table, `[form, epsilon, fold]`, with the folds of all repeats in one row."""

    table: str
    trees: int
    rows: int
    majority: float
    accuracy: Accuracies

    @property
    def mean(self) -> Accuracies:
        """`[form, epsilon]`."""
        return np.asarray(self.accuracy.mean(axis=2))

    @property
    def error(self) -> Accuracies:
        """Standard error over the folds, `[form, epsilon]`."""
        return np.apply_along_axis(standard_error, -1, self.accuracy)

    @property
    def gain(self) -> tuple[float, float]:
        """Rigorous less as published, mean over all ε, and its standard error by pairs of folds."""
        paired = (self.accuracy[0] - self.accuracy[1]).mean(axis=0)
        return float(paired.mean()), standard_error(paired)

    @property
    def winner(self) -> str:
        return FORMS[0] if self.gain[0] > 0 else FORMS[1]


@dataclass
class Bench:
    """One table in memory, divided into folds, with the time that its parts took."""

    name: str
    domain: Domain
    con: duckdb.DuckDBPyConnection
    ledgers: Path
    seconds: dict[str, float] = field(default_factory=dict)
    trainings: int = 0

    @staticmethod
    def load(name: str, folder: Path, ledgers: Path) -> Bench:
        con = duckdb.connect()
        con.execute(
            "CREATE TABLE source AS SELECT *, row_number() OVER () AS position "
            f"FROM '{folder / name}.parquet'"
        )
        return Bench(name, load_domain(folder / f"{name}.toml"), con, ledgers)

    def deal(self, repeat: int) -> None:
        """Divide the rows into stratified folds of equal size, at random."""
        self.con.execute(
            "CREATE OR REPLACE TABLE dealt AS SELECT * EXCLUDE (position), (row_number() OVER "
            f'(ORDER BY "{self.domain.target}", hash(position, {repeat}))) % {FOLDS} AS fold '
            "FROM source"
        )

    def cut(self, fold: int) -> None:
        """Tables `train` and `test` of one fold."""
        for table, test in (("train", f"fold <> {fold}"), ("test", f"fold = {fold}")):
            self.con.execute(
                f"CREATE OR REPLACE TABLE {table} AS "
                f"SELECT * EXCLUDE (fold) FROM dealt WHERE {test}"
            )

    def prepared(self, form: str, epsilon: str, trees: int, seed: int) -> Run:
        """A planned run of DPDF, or of its baseline, at the paper's depth, on `train`.

        Its ledger is new, because every debit checks the whole chain before it. The anchor of the
        last ledger is removed from the table.
        """
        self.con.execute("COMMENT ON TABLE train IS NULL")
        self.trainings += 1
        return prepare(
            self.con,
            "train",
            epsilon=epsilon,
            domain=self.domain,
            recipe="diffp-id3:normalised" if form == BASELINE else "dpdf",
            trees=1 if form == BASELINE else trees,
            depth=DEPTH,
            as_published=form == "as published",
            seed=seed,
            ledger=self.ledgers / f"{self.name}-{self.trainings}",
        )

    def accuracy(self, form: str, epsilon: str, trees: int, seed: int) -> float:
        """Train on `train` and score `test`."""
        start = time.perf_counter()
        forest = self.prepared(form, epsilon, trees, seed).execute()
        trained = time.perf_counter()
        share = share_right(self.con, forest)
        self.spend("train", trained - start)
        self.spend("score", time.perf_counter() - trained)
        return share

    def spend(self, part: str, seconds: float) -> None:
        self.seconds[part] = self.seconds.get(part, 0.0) + seconds

    def majority(self) -> tuple[int, float]:
        """The number of rows, and the share of the most frequent class."""
        counts = [
            row[0]
            for row in self.con.execute(
                f'SELECT count(*) FROM source GROUP BY "{self.domain.target}"'
            ).fetchall()
        ]
        return sum(counts), max(counts) / sum(counts)

    def fill(self, trees: int, repeats: int, results: Runs) -> None:
        """Every form, ε and fold; the forms of a fold share their seed. What is kept is not run."""
        trials, keys = FOLDS * repeats, self.keys(trees)
        for trial in range(min(len(results.of(key)) for key in keys), trials):
            self.deal(trial // FOLDS)
            self.cut(trial % FOLDS)
            for key, (form, epsilon) in keys.items():
                if len(results.of(key)) == trial:
                    results.add(key, self.accuracy(form, epsilon, trees, trial))

    def result(self, trees: int, repeats: int, results: Runs) -> Result | None:
        """What is kept of a table; None unless all of it is there."""
        trials = FOLDS * repeats
        kept = [results.of(key)[:trials] for key in self.keys(trees)]
        if min(map(len, kept)) < trials:
            return None
        found = np.array(kept)
        rows, majority = self.majority()
        shape = (len(FORMS), len(EPSILONS), trials)
        return Result(self.name, trees, rows, majority, found.reshape(shape))

    def keys(self, trees: int) -> dict[str, tuple[str, str]]:
        """The form and ε of each name under which accuracies are kept, fold by fold.

        The baseline has one tree, so its figures are kept once.
        """
        return {
            f"{self.name}/{1 if form == BASELINE else trees}/{form}/{epsilon}": (form, epsilon)
            for form in FORMS
            for epsilon in EPSILONS
        }


def accuracy_table(results: Sequence[Result]) -> str:
    """Mean accuracy ± standard error per table, form and ε, and the mean over the five ε."""
    rows = []
    for result in results:
        for f, form in enumerate(FORMS):
            figures = [
                f"{mean:.3f} ± {error:.3f}"
                for mean, error in zip(result.mean[f], result.error[f], strict=True)
            ]
            rows.append([f"{result.table}, {form}", *figures, f"{result.mean[f].mean():.3f}"])
    return markdown_table(["", *(f"ε = {e}" for e in EPSILONS), "mean"], rows)


def verdict_table(results: Sequence[Result]) -> str:
    """Which form wins on the mean over the five ε, with the paired standard error."""
    rows = [
        [
            result.table,
            str(result.rows),
            f"{result.majority:.3f}",
            *(f"{means.mean():.3f}" for means in result.mean),
            f"{result.gain[0]:+.3f} ± {result.gain[1]:.3f}",
            result.winner,
        ]
        for result in results
    ]
    return markdown_table(
        ["table", "rows", "majority", *FORMS, "difference", "higher"],
        rows,
    )


def shares_of(bench: Bench, form: str, trees: int) -> list[list[str]]:
    """ε of one query of a form by budget, and of its whole path."""
    plans = [bench.prepared(form, epsilon, trees, 0).plan for epsilon in EPSILONS]
    shares = [query.by_depth[0] / NANO for plan in plans for query in plan.queries[:1]]
    spent = [f"{plan.epsilon / NANO:.2f}" for plan in plans]
    return [
        [f"{form}, τ = {trees}", *(f"{s:.3f}".lstrip("0") for s in shares)],
        [f"{form}, τ = {trees}: ε of the whole path", *spent],
    ]


def table_1(folder: Path, ledgers: Path) -> str:
    """ε of one query by the accountant's plans, beside Table 1 of the paper."""
    bench = Bench.load("nursery", folder, ledgers)
    bench.deal(0)
    bench.cut(0)
    rows = [[f"paper, {BASELINE}", *TABLE_1_BASELINE], *shares_of(bench, BASELINE, 1)]
    for trees, printed in TABLE_1.items():
        rows.append([f"paper, τ = {trees}", *printed])
        for form in FORMS[:2]:
            rows += shares_of(bench, form, trees)
    return markdown_table(["ε per query", *(f"B = {e}" for e in EPSILONS)], rows)


def goals(results: Sequence[Result]) -> list[str]:
    """The targets of the repair, and whether they are met."""
    single = [result for result in results if result.trees == 1]
    lines = []
    for result in results:
        if result.table == "nursery":
            gain = (result.mean[1] - result.mean[2]) * 100
            points = ", ".join(f"{g:+.0f}" for g in gain)
            lines.append(
                f"Nursery, τ = {result.trees}: DPDF as published is above DiffP-ID3 by {points} "
                f"points at ε = {', '.join(EPSILONS)}; the paper has almost 25 for τ = 1."
            )
    for result in single:
        if result.table == "nursery":
            reached = result.mean[0][EPSILONS.index("1")]
            met = "met" if reached >= 0.85 else "missed"
            lines.append(f"Nursery, one tree, ε = 1, rigorous: {reached:.3f} (goal .850: {met}).")
    won = [result.table for result in single if result.winner == FORMS[0]]
    if len(single) == len(TABLES):
        met = "met" if len(won) >= 5 else "missed"
        lines.append(
            f"Rigorous above as published on the mean over the five ε: {len(won)} of "
            f"{len(single)} tables (goal 5: {met})."
        )
    return lines


def report(results: Sequence[Result], first: str, arguments: argparse.Namespace) -> str:
    """The whole report as Markdown."""
    command = f"--trees {' '.join(map(str, arguments.trees))} --repeats {arguments.repeats}"
    parts = [
        "# DPDF: rigorous against as published",
        "Does the [repair](systems.md#dpdf) of DPDF (Fletcher & Islam 2015), whose proof fails as "
        "published, cost accuracy? This page repeats the experiments of the paper with both forms. "
        "The last lines sum up.",
        "Written by `python benchmarks/dpdf_paper.py "
        f"{command} --markdown docs/dpdf.md` from the runs in `benchmarks/results/dpdf.json`. "
        f"Depth {DEPTH}, stratified cross-validation, {FOLDS} folds, repeats: "
        f"{arguments.repeats}. Noise and draws are from a seed, the same for both forms of a fold. "
        "Standard errors are over folds; those of differences are over pairs of folds.",
        "As in the paper, δ is the depth here, τ the number of trees and B the whole budget. The "
        "two forms share stopping, pruning and voting. The rigorous one draws splits by "
        "Gini weighted by rows, whose sensitivity is 2 for nodes of any size. It makes 2δ − 1 "
        "queries, and charges as many. The published form computes the sensitivity from a noisy "
        "number of rows, makes 2δ + 1 queries and charges 2δ − 1, so it is **not private**. "
        "DiffP-ID3 is the paper's baseline: one tree, Gini with Δ = .5, 2δ queries.",
        "## ε of a query, Table 1 of the paper",
        first,
    ]
    for trees in dict.fromkeys(result.trees for result in results):
        chosen = [result for result in results if result.trees == trees]
        title = "one tree" if trees == 1 else f"{trees} trees"
        parts += [f"## Accuracy, {title}", accuracy_table(chosen), verdict_table(chosen)]
    run = {(result.table, result.trees) for result in results}
    wanted = [(name, trees) for trees in arguments.trees for name in arguments.tables]
    missing = [f"{name}, τ = {trees}" for name, trees in wanted if (name, trees) not in run]
    if missing:
        parts.append(f"Not run: {'; '.join(missing)}.")
    return "\n\n".join([*parts, *goals(results)]) + "\n"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--trees", nargs="+", type=int, default=[1])
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--page-only", action="store_true", help="run nothing")
    parser.add_argument("--markdown", type=Path, help="write the report to this file too")
    return parser.parse_args()


def main() -> None:
    """Run the chosen parts and print the report."""
    given = arguments()
    warnings.simplefilter("ignore")  # seeded noise warns at every run; this is an experiment
    folder = data_folder()
    results, kept = [], Runs.read("dpdf")
    with tempfile.TemporaryDirectory(prefix="dpdf-") as ledgers:
        first = table_1(folder, Path(ledgers))
        for trees in given.trees:
            for name in given.tables:
                bench = Bench.load(name, folder, Path(ledgers))
                start = time.perf_counter()
                if not given.page_only:
                    bench.fill(trees, given.repeats, kept)
                results.append(bench.result(trees, given.repeats, kept))
                parts = ", ".join(f"{part} {spent:.1f} s" for part, spent in bench.seconds.items())
                say(f"{name}, τ = {trees}: {time.perf_counter() - start:.1f} s ({parts})")
                bench.con.close()
    text = report([result for result in results if result], first, given)
    write_page(text, given.markdown)


if __name__ == "__main__":
    main()
