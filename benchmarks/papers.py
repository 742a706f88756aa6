"""Published figures beside both forms of the systems, on the tables and settings of their papers.

    python benchmarks/papers.py --markdown docs/reproduction.md
    python benchmarks/papers.py --only thesis-forest/mushroom_complete/0.1
    python benchmarks/papers.py --only privatree --again

A quarter of the rows is held out, divided again for each run; Adult has its own test table. Noise
comes from seeds: an experiment on public data, not private. Both forms see the same rows and seeds.
Every run is kept in benchmarks/results/papers.json, so a command that was stopped goes on where it
was; the page is written from that file alone. Without --only, all that is missing is run.
"""

from __future__ import annotations

import argparse
import math
import re
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from holdout import accuracy
from shared import Runs, markdown_table, say

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.recipes import RECIPES, find
from dpforest_duckdb.recipes.published.thesis_forest import LEAST_ROWS, POINTS
from dpforest_duckdb.recipes.recipe import Recipe
from dpforest_duckdb.splits.choose import Chooser, among
from dpforest_duckdb.splits.published import at_points, by_points, full_shares, unless_few_or_pure
from dpforest_duckdb.splits.utilities import BALANCE, Utility, gini

RUNS = 10


@dataclass(frozen=True)
class Case:
    """A system on a table: published accuracy by ε (None where the paper has a figure alone).

    `trees` and `depth` are the paper's, where they are not the recipe's. `experiments` are changes
    of the form as published that are tried, by ε.
    """

    recipe: str
    table: str
    published: dict[str, float | None]
    trees: int | None = None
    depth: int | None = None
    experiments: tuple[tuple[str, str], ...] = ()


CASES = (
    Case("diffp-id3", "nursery", {"0.5": None, "1": None, "2": None}),
    Case("diffp-id3:normalised", "nursery", {"0.5": None, "1": None, "2": None}),
    Case("dpdf", "nursery", {"0.5": None, "1": None, "2": None}),
    Case("xin-dpgdf", "nursery", {"0.5": None, "1": None, "2": None}),
    Case("privatree", "pima_diabetes", {"1": 0.681}),
    Case("privatree", "congressional_voting", {"1": 0.867}),
    Case("privatree", "breast_cancer_wisconsin", {"1": 0.939}),
    Case("privatree", "mushroom", {"1": 0.949}),
    Case("privatree", "adult", {"1": 0.822}),
    Case(
        "thesis-forest",
        "banknote",
        {"0.1": 0.838, "0.5": 0.888, "1": 0.885},
        9,
        4,
        (("0.1", "as its code"), ("0.5", "as its code"), ("0.1", "exact"), ("0.5", "exact")),
    ),
    Case(
        "thesis-forest",
        "mushroom_complete",
        {"0.1": 0.951, "0.5": 0.994, "1": 0.999},
        6,
        11,
        (("0.1", "as its code"), ("0.5", "as its code"), ("1", "as its code"), ("0.1", "exact")),
    ),
    Case(
        "thesis-forest",
        "adult_complete",
        {"0.1": 0.752, "0.5": 0.783, "1": 0.785},
        15,
        7,
        (("0.1", "as its code"), ("1", "as its code")),
    ),
    Case("dprf-gini", "car", {"0.1": 0.8228}, experiments=(("0.1", "B a tree"), ("0.1", "exact"))),
    Case("dprf-gini", "mushroom", {"0.1": 0.9201}, experiments=(("0.1", "B a tree"),)),
    Case(
        "dprf-gini",
        "credit_approval",
        {"0.1": 0.8062},
        experiments=(("0.1", "B a tree"), ("0.1", "exact")),
    ),
    Case("dprf-gini", "iris", {"0.1": 1.0}, experiments=(("0.1", "B a tree"), ("0.1", "exact"))),
    Case("tpdprf", "tic_tac_toe", {"1": None}, 30, 8),
    Case("tpdprf", "mammographic_mass", {"1": None}, 30, 8),
    Case(
        "diffprf:max",
        "mushroom",
        {"0.1": 0.9389, "1": 0.9314},
        experiments=(("0.1", "B a tree"), ("1", "B a tree")),
    ),
    Case(
        "diffprf",
        "mushroom",
        {"0.1": 0.9335, "1": 0.9348},
        experiments=(("0.1", "B a tree"), ("1", "B a tree")),
    ),
    Case("diffprf:gini", "mushroom", {"0.1": 0.9334}, experiments=(("0.1", "B a tree"),)),
    Case("hou-forest", "mushroom", {"0.1": 0.92, "1": 0.95}, experiments=(("0.1", "B a tree"),)),
    Case(
        "diffprf:max",
        "adult",
        {"0.1": 0.8513, "1": 0.8631},
        experiments=(("0.1", "B a tree"), ("1", "B a tree")),
    ),
    Case("hou-forest", "adult", {"1": 0.85}, experiments=(("1", "B a tree"),)),
)


def sharp(choose: Chooser) -> Chooser:
    """The same splits, drawn at an ε that leaves no noise in them."""
    return lambda choice: choose(replace(choice, epsilon=10**6 * NANO))


def true_label(counts: Integers, *_: object) -> Integers:
    """The most frequent class of each leaf, exactly."""
    return np.eye(counts.shape[1], dtype=np.int64)[counts.argmax(axis=1)]


def true_counts(counts: Integers, *_: object) -> Integers:
    """The class counts of each leaf, exactly."""
    return counts


def without_noise(form: Recipe) -> dict[str, Any]:
    """Splits and leaves without noise."""
    ask = true_label if form.leaf.gives == "label" else true_counts
    return {"leaf": replace(form.leaf, ask=ask), "choose": sharp(form.choose)}


def rows_times_gini(counts: Integers) -> Integers:
    """Gini weighted by the rows of the node twice."""
    return gini(counts) * counts.sum(axis=(-2, -1))


def as_its_code(form: Recipe) -> dict[str, Any]:
    """The draws of Forest_434.py of the thesis's code, ssuihko/DPimplementation.

    Medians go without the factor 2. The attribute is drawn by the sum of squares Σ (y − ȳ)², where
    (5.3) has the mean, at the sensitivity of the mean, 4/N: its exponent is N times (5.3).
    """
    median = replace(BALANCE, monotone=True)
    squares = Utility("N · Σ (y − ȳ)²", rows_times_gini, sensitivity=8, monotone=True)
    drawn = among(by_points(median, squares, full_shares(math.isqrt)))
    return {"choose": unless_few_or_pure(at_points(drawn, POINTS), LEAST_ROWS)}


REASONS = "(reasons)"


@dataclass(frozen=True)
class Change:
    """What an experiment changes in the form as published."""

    does: str
    pieces: Callable[[Recipe], dict[str, Any]] = lambda form: {}
    whole: bool = False  # every tree has all of B


CHANGES = {
    "exact": Change("splits and leaves without noise", without_noise),
    "exact splits": Change("splits without noise", lambda form: {"choose": sharp(form.choose)}),
    "B a tree": Change("every tree has all of B, so that B · τ is spent", whole=True),
    "as its code": Change("medians and attributes drawn as the thesis's code does", as_its_code),
}


@dataclass(frozen=True)
class Cell:
    """One figure: a form of a case at an ε, or an experiment with the form as published."""

    case: Case
    epsilon: str
    form: str  # "rigorous", "as published", or the name of a change of the latter

    @property
    def key(self) -> str:
        return "/".join((self.case.recipe, self.case.table, self.epsilon, self.form))

    def run(self, seed: int, ledgers: Path) -> float:
        """One accuracy."""
        name, change = self.case.recipe, CHANGES.get(self.form, Change(""))
        base, _, variant = name.partition(":")
        recipe, form = RECIPES[base], find(name, as_published=self.form != "rigorous")
        epsilon = self.epsilon
        if change.whole:
            assert isinstance(form.trees, int)
            epsilon = str(Decimal(epsilon) * (self.case.trees or form.trees))
        options = {"trees": self.case.trees, "depth": self.case.depth}
        changed = {**form.variants.get(variant, {}), **change.pieces(form)}
        if self.form != "rigorous":
            options["as_published"] = True
            RECIPES[base] = replace(recipe, published=replace(recipe.published, **changed))
        try:
            name = base if changed else name
            return accuracy(self.case.table, name, epsilon, seed, ledgers, **options)
        finally:
            RECIPES[base] = recipe


def cells() -> Iterator[Cell]:
    """Every figure of the page: both forms of every case, then its experiments."""
    for case in CASES:
        forms = ["rigorous"]
        if find(case.recipe).published is not None:
            forms.append("as published")
        yield from (Cell(case, epsilon, form) for epsilon in case.published for form in forms)
        yield from (Cell(case, epsilon, change) for epsilon, change in case.experiments)


def mean(results: Runs, key: str) -> str:
    """Mean and standard error, and the number of runs where it is not RUNS."""
    found = results.of(key)
    if not found:
        return "not run"
    few = "" if len(found) == RUNS else f" ({len(found)} runs)"
    return f"{spread(found)}{few}"


def spread(found: Sequence[float], places: str = ".3f") -> str:
    """Mean ± standard error."""
    return f"{statistics.mean(found):{places}} ± {standard_error(found):.3f}"


def standard_error(found: Sequence[float]) -> float:
    return statistics.stdev(found) / math.sqrt(len(found)) if len(found) > 1 else 0.0


def fill(wanted: Sequence[Cell], results: Runs, runs: int) -> None:
    """Run what is missing, cell by cell."""
    warnings.simplefilter("ignore")  # seeded noise warns at every run; this is an experiment
    with tempfile.TemporaryDirectory(prefix="papers-") as ledgers:
        for cell in wanted:
            start = time.perf_counter()
            missing = range(len(results.of(cell.key)), runs)
            for seed in missing:
                results.add(cell.key, cell.run(seed, Path(tempfile.mkdtemp(dir=ledgers))))
            if missing:
                took = (time.perf_counter() - start) / len(missing)
                say(f"{cell.key}: {mean(results, cell.key)}, {took:.1f} s a run")


def figures(results: Runs) -> str:
    """Published figures beside both forms."""
    rows = []
    for case in CASES:
        for epsilon, published in case.published.items():
            rigorous, literal = (
                Cell(case, epsilon, form).key for form in ("rigorous", "as published")
            )
            two = find(case.recipe).published is not None
            pairs = list(zip(results.of(rigorous), results.of(literal), strict=False))
            rows.append(
                [
                    case.recipe,
                    case.table,
                    epsilon,
                    "-" if published is None else f"{published:.3f}",
                    mean(results, literal) if two else "one form",
                    mean(results, rigorous),
                    spread([r - p for r, p in pairs], "+.3f") if pairs else "-",
                    verdict(published, results.of(literal) or results.of(rigorous)),
                ]
            )
    head = ["recipe", "table", "ε", "published", "as published, here", "rigorous", "difference"]
    return markdown_table([*head, "the published figure"], rows)


def verdict(published: float | None, found: Sequence[float]) -> str:
    """Whether the form as published comes within two standard errors of the published figure."""
    if published is None or not found:
        return "-"
    gap = statistics.mean(found) - published
    if abs(gap) <= 2 * standard_error(found):
        return "met"
    return "missed" if gap < 0 else "exceeded"


def experiments(results: Runs) -> str:
    """What one change makes of the form as published."""
    rows = []
    for case in CASES:
        for epsilon, change in case.experiments:
            cell, literal = Cell(case, epsilon, change), Cell(case, epsilon, "as published")
            published = case.published[epsilon]
            rows.append(
                [
                    f"`--only {cell.key.replace(' ', '-')}`",
                    CHANGES[change].does,
                    "-" if published is None else f"{published:.3f}",
                    mean(results, literal.key),
                    mean(results, cell.key),
                ]
            )
    return markdown_table(
        ["experiment", "what is changed", "published", "as published, here", "changed"], rows
    )


def page(results: Runs, text: str) -> str:
    """The whole page; `{{KEY}}` in the text is the figure of a cell."""
    said = re.sub(r"\{\{(.+?)\}\}", lambda found: mean(results, found[1]), text)
    return (
        "# Published figures beside ours\n\n"
        "Written by `python benchmarks/papers.py --markdown docs/reproduction.md` from the runs in "
        f"`benchmarks/results/papers.json`: accuracy, mean of {RUNS} runs ± standard error, a "
        "quarter of the rows held out. A figure of fewer runs says so. The difference is rigorous "
        "less as published, run by run. `mushroom_complete` and `adult_complete` are the thesis's "
        "tables: 5,644 and 30,162 rows without NULL. The last column compares the form as "
        "published with the published figure: met is within two standard errors.\n\n"
        f"{figures(results)}\n\n{said}\n{experiments(results)}\n"
    )


def main() -> None:
    """Run what is missing and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", default=[""], help="cells whose names start so")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--again", action="store_true", help="forget the runs of these cells")
    parser.add_argument("--page-only", action="store_true", help="run nothing")
    parser.add_argument("--markdown", type=Path, help="write the page to this file too")
    given = parser.parse_args()
    results = Runs.read("papers")
    wanted = [cell for cell in cells() if cell.key.replace(" ", "-").startswith(tuple(given.only))]
    if given.again:
        for cell in wanted:
            results.found.pop(cell.key, None)
    if not given.page_only:
        fill(wanted, results, given.runs)
    text = page(results, REASONS)
    print(text)
    if given.markdown:
        given.markdown.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
