"""Accuracy, AUC and log loss of recipes by cross-validation, on every benchmark table.

    python benchmarks/accuracy.py --markdown docs/accuracy.md
    python benchmarks/accuracy.py --delta 1e-5 --markdown docs/accuracy-delta.md
    python benchmarks/accuracy.py --table nursery mushroom --recipe auto dpdf --epsilon 0.5

Three stratified folds; tables of fewer than 8,000 rows are split into folds three times. The
package's learners run on rows in memory, which gives the forests of DuckDB (tests compare them).
Noise comes from seeds: an experiment on public data, not private. Figures are kept in a file, so
that a stopped run goes on where it was. Figures of other people's models are kept in
peer_accuracy.csv; what to aim for is read from the folder targets beside the tables, and left out
where there is none.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from accuracy_page import CEILING, DEFAULT, EPSILONS, OURS, Cell, page, summary
from folds import FOLDS, folds
from generated import HARD
from in_memory import Figures, Table, evaluated, figures, load, trained
from plots import sheet
from shared import Results, code_digest, command_of, say, table_files

from dpforest_duckdb.arrays import Integers

KEYS = ("table", "recipe", "epsilon", "delta", "fold", "seed")
USE_DELTA = (DEFAULT, "boosted", "class-means")  # other recipes spend ε alone
MOST_IN_FOREST = 20_000  # training rows of the forest without privacy


@dataclass(frozen=True)
class Job:
    """A recipe under a guarantee, and how many runs of other noise there are for each fold."""

    recipe: str
    epsilon: float
    delta: float
    seeds: int
    measure: bool = True  # runs that are not in the results


def main() -> None:
    """Measure what is not in the results yet, print a summary, and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--table", nargs="+", help="these tables; default: all, and generated ones")
    parser.add_argument("--recipe", nargs="+", default=[*OURS, CEILING])
    parser.add_argument("--epsilon", nargs="+", type=float, default=EPSILONS)
    parser.add_argument("--delta", type=float, default=0.0, help="0 for pure ε")
    parser.add_argument(
        "--seeds", type=int, default=3, help="of auto for a fold; others have one, and three folds"
    )
    parser.add_argument("--results", type=Path, default=Path("accuracy-results.jsonl"))
    parser.add_argument(
        "--known", action="store_true", help="measure nothing: a page of the runs that are known"
    )
    parser.add_argument(
        "--references",
        type=Path,
        default=Path("reference-results.jsonl"),
        help="figures without privacy, which do not depend on this package",
    )
    parser.add_argument("--markdown", type=Path, help="write the page here")
    given = parser.parse_args()
    results = Results(given.results, KEYS, code_digest(), ("fold", "seed"))
    references = Results(given.references, KEYS)
    cells = list[Cell]()
    for recipe in given.recipe:
        seeds = given.seeds if recipe == DEFAULT else 1
        delta = given.delta if recipe in USE_DELTA else 0.0
        for name in given.table or [*table_files(), *HARD]:
            jobs = [
                Job(recipe, epsilon, delta, seeds, not given.known) for epsilon in given.epsilon
            ]
            cells += measured(references if recipe == CEILING else results, name, jobs)
    print(summary(cells, given.delta))
    if given.markdown:
        command = command_of("accuracy.py", given.markdown)
        note = results.code_note()
        text, charts = page(cells, given.delta, given.seeds, command, given.markdown.stem, note)
        given.markdown.write_text(text, encoding="utf-8")
        drawn = sheet(charts, columns=4)
        given.markdown.with_suffix(".svg").write_text(drawn, encoding="utf-8")


def measured(results: Results, name: str, jobs: Sequence[Job]) -> list[Cell]:
    """The means of jobs on a table; what is not in the results is added to them."""
    start = time.monotonic()
    table = HARD[name]().table() if name in HARD else load(table_files()[name])
    every = list(folds(table))
    cells = [cell for job in jobs if (cell := _cell(results, name, table, job, every))]
    seconds = time.monotonic() - start
    if seconds > 5:
        reached = " ".join(f"{cell.accuracy:.3f}" for cell in cells)
        say(f"{name}, {jobs[0].recipe}: {reached}, {seconds:.0f} s")
    return cells


def _cell(
    results: Results, name: str, table: Table, job: Job, every: Sequence[Integers]
) -> Cell | None:
    """The mean of a job over folds and seeds; None if there is no run."""
    forest = job.recipe == CEILING
    epsilon, delta = (0.0, 0.0) if forest else (job.epsilon, job.delta)
    runs = []
    most = 1 if forest else len(every) if job.recipe == DEFAULT else FOLDS
    for number, fold in enumerate(every[:most]):
        for seed in range(job.seeds):
            key = (name, job.recipe, epsilon, delta, number, seed)
            run = results.get(*key)
            if run is None and not job.measure:
                continue
            if run is None:
                found = _figures(table, job, fold, 1000 * seed + number)
                run = {**dict(zip(KEYS, key, strict=True)), **found.rounded()}
                results.add(run)
            runs.append(run)
    if not runs:
        return None
    shares = np.bincount(table.labels) / len(table.labels)
    missing = job.seeds * len(every[:most]) - len(runs)
    rows = len(np.flatnonzero(every[0]))
    return Cell.mean(name, job.recipe, job.epsilon, runs, shares[shares > 0], missing, rows)


def _figures(table: Table, job: Job, fold: Integers, seed: int) -> Figures:
    rows, test = np.flatnonzero(fold), np.flatnonzero(fold == 0)
    if job.recipe == CEILING:
        return _without_privacy(table, rows, test)
    forest = trained(table, rows, job.recipe, job.epsilon, job.delta, seed=seed)
    return evaluated(forest, table, test)


def _without_privacy(table: Table, rows: Integers, test: Integers) -> Figures:
    """scikit-learn's random forest on our codes, numbers in 32 equal parts."""
    from sklearn.ensemble import RandomForestClassifier

    if len(rows) > MOST_IN_FOREST:
        rows = np.random.default_rng(0).permutation(rows)[:MOST_IN_FOREST]

    def codes(chosen: Integers) -> Any:
        return table.codes(table.domain, chosen).T

    forest = RandomForestClassifier(100, random_state=0).fit(codes(rows), table.labels[rows])
    shares = np.zeros((len(test), len(table.domain.classes)))
    shares[:, forest.classes_] = forest.predict_proba(codes(test))
    return figures(shares, table.labels[test])


if __name__ == "__main__":
    main()
