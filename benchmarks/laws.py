"""Laws that a default should obey, on every table: more of anything must not make a model worse.

    python benchmarks/laws.py --markdown docs/laws.md     # all tables; goes on where it was stopped
    python benchmarks/laws.py --quick                     # generated tables alone, under a minute

- Accuracy and log loss do not get worse as ε grows, as rows are added, or as a δ is granted.
- Neither is worse than the better of a uniform guess and a class histogram that costs all of ε.
- No other recipe of this package is ahead of the default by more than .02 in accuracy or AUC.

Runs are paired: a seed draws the test rows, the training rows, of which each part holds the smaller
ones, and the noise. Three seeds screen every comparison. What looks worse by more than its limit
gets twenty fresh seeds, and these alone count: a violation is a lower 99 % bound of the worsening
above the limit, by Student's t. Five are enough if they show less than the limit. Noise comes from
seeds: an experiment on public data, not private.
"""

from __future__ import annotations

import argparse
import functools
import math
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np
from generated import BAD, GENERATED
from in_memory import Figures, Table, evaluated, figures, load, trained
from shared import (
    Results,
    code_digest,
    command_of,
    markdown_table,
    say,
    standard_error,
    table_files,
)

from dpforest_duckdb.arrays import Floats, Integers

SIZES = (400, 1_500, 5_000, 20_000)  # training rows
EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0)
DELTA = 1e-5
DEFAULT = "auto"
RECIPES = ("joint-tables", "greedy-tree", "boosted", "log-odds")
UNIFORM, HISTOGRAM = "uniform guess", "class histogram"
SCREENING, FRESH = range(3), range(100, 120)
FIRST = 5  # fresh seeds, which are enough if they show no worsening above the limit
LIMIT, LIMIT_OF_RECIPES = 0.01, 0.02
T_99 = 2.539  # Student's t, one-sided 99 %, 19 degrees of freedom
MOST_TESTED = 5_000  # test rows; a third of a table that has less than three times as many
KEYS = ("table", "rows", "recipe", "epsilon", "delta", "seed")


@dataclass(frozen=True)
class Grid:
    """What is compared. Other recipes are compared at some of the ε only, if time is short."""

    sizes: Sequence[int] = SIZES
    epsilons: Sequence[float] = EPSILONS
    deltas: Sequence[float] = (0.0, DELTA)
    recipe_epsilons: Sequence[float] = EPSILONS


@dataclass(frozen=True)
class Point:
    """A model to measure: what it is trained on, how, and under which guarantee."""

    table: str
    rows: int
    recipe: str
    epsilon: float
    delta: float

    def __str__(self) -> str:
        given = f"ε = {self.epsilon:g}" + (f", δ = {self.delta:g}" if self.delta else "")
        return f"{self.recipe}, {self.rows:,} rows, {given}"


@dataclass(frozen=True)
class Comparison:
    """A law at one point: `point` should not be worse than `other` in a figure."""

    law: str
    point: Point
    other: Point
    figure: str

    @property
    def limit(self) -> float:
        return LIMIT_OF_RECIPES if self.law == RECIPE_LAW else LIMIT


@dataclass(frozen=True)
class Verdict:
    """The worsening by the screening seeds, and by fresh ones if they were needed."""

    comparison: Comparison
    screened: float
    mean: float | None = None
    error: float | None = None

    @property
    def bound(self) -> float:
        """The lower 99 % bound of the worsening; minus infinity if few seeds settled it."""
        if self.mean is None or self.error is None:
            return -math.inf
        return self.mean - T_99 * self.error

    @property
    def violated(self) -> bool:
        return self.bound > self.comparison.limit


EPSILON_LAW, ROWS_LAW, DELTA_LAW = "more ε", "more rows", "a δ"
GUESS_LAW, RECIPE_LAW = "a guess", "another recipe"
LAWS = {
    EPSILON_LAW: "not worse than at the best smaller ε",
    ROWS_LAW: "not worse than with the best smaller part of the rows",
    DELTA_LAW: "not worse with a δ than without",
    GUESS_LAW: "not worse than the better of a uniform guess and a class histogram",
    RECIPE_LAW: "not behind another of our recipes by more than .02",
}


class Measured:
    """The figures of points by seed, measured when they are first needed."""

    def __init__(self, results: Results, make: Callable[[str], Table]) -> None:
        self._results = results
        self._make = functools.lru_cache(1)(make)

    def table(self, name: str) -> Table:
        return self._make(name)

    def figure(self, point: Point, seed: int, figure: str) -> float | None:
        """A figure of the model of a seed; None if the table has no such figure."""
        p = point
        key = (p.table, p.rows, p.recipe, p.epsilon, p.delta, seed)
        run = self._results.get(*key)
        if run is None:
            found = measured(self.table(point.table), point, seed)
            run = {**dict(zip(KEYS, key, strict=True)), **found.rounded()}
            self._results.add(run)
        return cast("float | None", run[figure])

    def mean(self, point: Point, figure: str) -> float | None:
        """The mean over the screening seeds, the larger the better."""
        return _mean(self.figure(point, seed, figure) for seed in SCREENING)

    def worsening(self, c: Comparison, seeds: Iterable[int]) -> list[float]:
        """By seed, how much worse the point is than the other one."""
        sign = -1 if c.figure == "log_loss" else 1
        pairs = [
            (self.figure(c.other, s, c.figure), self.figure(c.point, s, c.figure)) for s in seeds
        ]
        return [sign * (a - b) for a, b in pairs if a is not None and b is not None]


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.mean(known) if known else None


def dealt(rows: int, seed: int) -> tuple[Integers, Integers]:
    """Test rows, and training rows in an order of which every beginning is a part."""
    order = np.random.default_rng(seed).permutation(rows)
    test = min(rows // 3, MOST_TESTED)
    return order[:test], order[test:]


def parts(rows: int, sizes: Sequence[int]) -> list[int]:
    """The sizes of the parts of a table: those asked for, and all training rows if these are
    fewer than the largest and well above the others.
    """
    most = min(rows - min(rows // 3, MOST_TESTED), max(sizes))
    smaller = [size for size in sizes if size < most / 1.3]
    return [*smaller, most]


def measured(table: Table, point: Point, seed: int) -> Figures:
    """Train, or guess, once."""
    test, rows = dealt(len(table.labels), seed)
    if point.recipe == UNIFORM:
        classes = len(table.domain.classes)
        return Figures(1 / classes, 0.5 if classes == 2 else None, math.log(classes))
    if point.recipe == HISTOGRAM:
        shares = _histogram(table, rows[: point.rows], point.epsilon, seed)
        return figures(np.tile(shares, (len(test), 1)), table.labels[test])
    forest = trained(
        table, rows[: point.rows], point.recipe, point.epsilon, point.delta, seed=seed
    )  # fmt: skip
    return evaluated(forest, table, test)


def _histogram(table: Table, rows: Integers, epsilon: float, seed: int) -> Floats:
    """Class shares from counts with Laplace noise for all of ε."""
    classes = len(table.domain.classes)
    noise = np.random.default_rng(seed).laplace(0, 1 / epsilon, classes)
    counts = np.maximum(np.bincount(table.labels[rows], minlength=classes) + noise, 0.5)
    shares: Floats = counts / counts.sum()
    return shares


def comparisons(found: Measured, table: str, grid: Grid) -> Iterator[Comparison]:
    """Every comparison on a table; the other point is the best by the screening seeds."""
    sizes = parts(len(found.table(table).labels), grid.sizes)
    points = [
        Point(table, rows, DEFAULT, epsilon, delta)
        for rows in sizes for epsilon in grid.epsilons for delta in grid.deltas
    ]  # fmt: skip
    for point in points:
        alternatives = {
            EPSILON_LAW: [replace(point, epsilon=e) for e in grid.epsilons if e < point.epsilon],
            ROWS_LAW: [replace(point, rows=rows) for rows in sizes if rows < point.rows],
            DELTA_LAW: [replace(point, delta=0.0)] if point.delta else [],
            GUESS_LAW: [replace(point, recipe=guess, delta=0.0) for guess in (UNIFORM, HISTOGRAM)],
            RECIPE_LAW: list(_recipes(point)) if point.epsilon in grid.recipe_epsilons else [],
        }
        for law, others in alternatives.items():
            for figure in ("accuracy", "auc" if law == RECIPE_LAW else "log_loss"):
                known = [(o, found.mean(o, figure)) for o in others]
                ranked = [(other, mean) for other, mean in known if mean is not None]
                if ranked:
                    best = (min if figure == "log_loss" else max)(ranked, key=lambda one: one[1])
                    yield Comparison(law, point, best[0], figure)


def _recipes(point: Point) -> Iterator[Point]:
    """Other recipes under the point's guarantee; only `boosted` gets the δ."""
    for recipe in RECIPES:
        yield replace(point, recipe=recipe, delta=point.delta if recipe == "boosted" else 0.0)


def verdict(found: Measured, comparison: Comparison) -> Verdict:
    """Screen a comparison; measure it again with fresh seeds if it looks worse."""
    screened = statistics.mean(found.worsening(comparison, SCREENING))
    if screened <= comparison.limit:
        return Verdict(comparison, screened)
    fresh = found.worsening(comparison, FRESH[:FIRST])
    if statistics.mean(fresh) > comparison.limit:
        fresh += found.worsening(comparison, FRESH[FIRST:])
    return Verdict(comparison, screened, statistics.mean(fresh), standard_error(fresh))


def verdicts(
    tables: Sequence[str], results: Results, grid: Grid, minutes: float = math.inf
) -> list[Verdict]:
    """The verdict on every comparison, table by table; no table is begun after `minutes`."""
    files = table_files() if any(table not in GENERATED for table in tables) else {}
    made = {name: case for name, case in GENERATED.items() if name in tables}
    found = Measured(
        results, lambda name: made[name]().table() if name in made else load(files[name])
    )
    all_of_them: list[Verdict] = []
    begun = time.monotonic()
    for table in tables:
        start = time.monotonic()
        if start - begun > 60 * minutes:
            say(f"{table} and what follows is left out: {minutes:g} minutes are over")
            break
        new = [verdict(found, comparison) for comparison in comparisons(found, table, grid)]
        all_of_them += new
        bad = sum(one.violated for one in new)
        say(f"{table}: {len(new)} comparisons, {bad} violated, {time.monotonic() - start:.0f} s")
    return all_of_them


def summary(found: Sequence[Verdict]) -> str:
    """How many comparisons of each law there are, and how many are violated."""
    rows = []
    for law, meaning in LAWS.items():
        of_law = [one for one in found if one.comparison.law == law]
        rows.append([f"{law}: {meaning}", *_counted(of_law)])
    rows.append(["all laws", *_counted(found)])
    return markdown_table(["law", "comparisons", "looked worse", "violations", "part"], rows)


def _counted(found: Sequence[Verdict]) -> list[str]:
    looked = sum(one.mean is not None for one in found)
    violated = sum(one.violated for one in found)
    part = f"{violated / len(found):.1%}" if found else "-"
    return [str(len(found)), str(looked), str(violated), part]


def violations(found: Sequence[Verdict]) -> str:
    """The comparisons that break a law, the largest worsening first."""
    broken = sorted((one for one in found if one.violated), key=lambda one: -(one.mean or 0))
    rows = [
        [
            one.comparison.point.table,
            one.comparison.law,
            str(one.comparison.point),
            str(one.comparison.other),
            {"log_loss": "log loss", "auc": "AUC"}.get(one.comparison.figure, "accuracy"),
            f"{one.mean:.3f} ± {one.error:.3f}",
        ]
        for one in broken
    ]
    head = ["table", "law", "worse", "better", "figure", "worsening"]
    return markdown_table(head, rows) if rows else "There is none."


def page(found: Sequence[Verdict], grid: Grid, command: str, note: str) -> str:
    tables = list(dict.fromkeys(one.comparison.point.table for one in found))
    left = [name for name in [*table_files(), *GENERATED] if name not in tables]
    missing = f" Not measured yet: {', '.join(left)}." if left else ""
    full = f" Without these options, the benchmark has ε = {_listed(EPSILONS)} for all laws."
    whole = "" if grid == Grid() else full
    return (
        "# Laws of the default\n\nA law is what one may expect of the [default](auto.md): more ε, "
        "more rows or a δ should not make it worse, a guess should not beat it, and no other "
        "recipe of this package should be better by more than .02 of accuracy or AUC. This page "
        "counts where a law does not hold, and lists these cases. Figures are accuracy and log "
        "loss; in comparisons with other recipes, accuracy and AUC.\n\n"
        f"{summary(found)}\n\n"
        f"Written by `{command}`. The default is compared with the best smaller ε, smaller part of "
        "the rows, guess or other recipe, by three seeds that both share. If it looks worse by "
        "more than .01 (.02 in comparisons with other recipes), it is measured with five new "
        "seeds, and if these show that too, with fifteen more. Only the new seeds count. It is a "
        "violation if the lower 99 % bound of the worsening is above that limit.\n\n"
        f"Tables: {', '.join(tables)}.{missing} Parts of at most {_listed(grid.sizes)} training "
        "rows, each of which contains the smaller ones; up to "
        f"{MOST_TESTED:,} test rows. ε = {_listed(grid.epsilons)}, without a δ and with δ = "
        f"{DELTA:g}; other recipes at ε = {_listed(grid.recipe_epsilons)}.{whole}{note}\n\n"
        "## Violations\n\nMean worsening ± standard error of twenty seeds, the largest first.\n\n"
        f"{violations(found)}\n"
    )


def _listed(numbers: Sequence[float]) -> str:
    return ", ".join(f"{number:,g}" for number in numbers)


QUICK = Grid(sizes=(400, 1_500), epsilons=(0.1, 1.0), deltas=(0.0,), recipe_epsilons=())


def main() -> None:
    """Measure what is not in the results yet, print the violations, and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="bad input only, two sizes, two ε")
    parser.add_argument("--table", nargs="+", help="these tables; default: all, and generated ones")
    parser.add_argument("--rows", nargs="+", type=int, default=SIZES)
    parser.add_argument("--epsilon", nargs="+", type=float, default=EPSILONS)
    parser.add_argument("--recipe-epsilon", nargs="*", type=float, help="default: as --epsilon")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no table after them")
    parser.add_argument("--results", type=Path, default=Path("laws-results.jsonl"))
    parser.add_argument("--markdown", type=Path, help="write the page here")
    parser.add_argument("--note", default="", help="a sentence for the page")
    given = parser.parse_args()
    recipe_epsilons = given.epsilon if given.recipe_epsilon is None else given.recipe_epsilon
    grid = Grid(tuple(given.rows), tuple(given.epsilon), (0.0, DELTA), tuple(recipe_epsilons))
    if given.quick:
        grid = QUICK
    tables = given.table or (list(BAD) if given.quick else [*table_files(), *GENERATED])
    file = None if given.quick else given.results
    results = Results(file, KEYS, code_digest(), ("seed",))
    found = verdicts(tables, results, grid, given.minutes)
    print(summary(found), violations(found), sep="\n\n")
    if given.markdown:
        note = f" {results.code_note()}{given.note}"
        text = page(found, grid, command_of("laws.py", given.markdown), note)
        given.markdown.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
