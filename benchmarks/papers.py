"""Published figures beside both forms of the systems, on the tables and settings of their papers.

    python benchmarks/papers.py --markdown docs/reproduction.md
    python benchmarks/papers.py --recipe thesis-forest --seeds 20

A quarter of the rows is held out, divided again for each run; Adult has its own test table. Noise
comes from seeds: an experiment on public data, not private. Both forms see the same rows and seeds.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import tempfile
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from holdout import accuracy
from shared import markdown_table, say

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.recipes import RECIPES, find
from dpforest_duckdb.splits.choose import Chooser


@dataclass(frozen=True)
class Case:
    """A system on a table: published accuracy by ε (None where the paper has a figure alone).

    `trees` and `depth` are the paper's, where they are not the recipe's.
    """

    recipe: str
    table: str
    published: dict[str, float | None]
    trees: int | None = None
    depth: int | None = None


CASES = (
    Case("diffp-id3", "nursery", {"0.5": None, "1": None, "2": None}),
    Case("diffp-id3:normalised", "nursery", {"0.5": None, "1": None, "2": None}),
    Case("dpdf", "nursery", {"0.5": None, "1": None, "2": None}),
    Case("xin-dpgdf", "nursery", {"0.5": None, "1": None, "2": None}),
    Case("diffprf", "mushroom", {"0.1": 0.9334, "1": 0.9351}),
    Case("diffprf", "adult", {"0.1": 0.8512, "1": 0.8592}),
    Case("dprf-gini", "car", {"0.1": 0.8228}),
    Case("dprf-gini", "mushroom", {"0.1": 0.9201}),
    Case("dprf-gini", "credit_approval", {"0.1": 0.8062}),
    Case("dprf-gini", "iris", {"0.1": 1.0}),
    Case("hou-forest", "mushroom", {"0.1": 0.92, "1": 0.95}),
    Case("hou-forest", "adult", {"1": 0.85}),
    Case("tpdprf", "mammographic_mass", {"1": None}, 30, 8),
    Case("tpdprf", "tic_tac_toe", {"1": None}, 30, 8),
    Case("privatree", "adult", {"1": 0.822}),
    Case("privatree", "mushroom", {"1": 0.949}),
    Case("privatree", "congressional_voting", {"1": 0.867}),
    Case("privatree", "breast_cancer_wisconsin", {"1": 0.939}),
    Case("privatree", "pima_diabetes", {"1": 0.681}),
    Case("thesis-forest", "banknote", {"0.1": 0.838, "0.5": 0.888, "1": 0.885}, 9, 4),
    Case("thesis-forest", "mushroom_complete", {"0.1": 0.951, "0.5": 0.994, "1": 0.999}, 6, 11),
    Case("thesis-forest", "adult_complete", {"0.1": 0.752, "0.5": 0.783, "1": 0.785}, 15, 7),
)


def runs(case: Case, epsilon: str, seeds: int, ledgers: Path, **options: object) -> list[float]:
    """The accuracies of a cell, seed by seed; options in the place of the paper's."""
    settings = {"trees": case.trees, "depth": case.depth, **options}
    return [
        accuracy(case.table, case.recipe, epsilon, seed, ledgers, **settings)
        for seed in range(seeds)
    ]


def mean(found: Sequence[float], places: str = ".3f") -> str:
    """Mean and standard error."""
    error = statistics.stdev(found) / math.sqrt(len(found)) if len(found) > 1 else 0.0
    return f"{statistics.mean(found):{places}} ± {error:.3f}"


def line(case: Case, epsilon: str, seeds: int, ledgers: Path) -> list[str]:
    """One row of the table of figures."""
    warnings.simplefilter("ignore")  # seeded noise warns at every run; this is an experiment
    rigorous = runs(case, epsilon, seeds, ledgers)
    published = case.published[epsilon]
    cells = ["one form", mean(rigorous), "-"]
    if find(case.recipe).published is not None:
        literal = runs(case, epsilon, seeds, ledgers, as_published=True)
        gains = [r - p for r, p in zip(rigorous, literal, strict=True)]
        cells = [mean(literal), mean(rigorous), mean(gains, "+.3f")]
    row = [
        case.recipe,
        case.table,
        epsilon,
        "-" if published is None else f"{published:.3f}",
        *cells,
    ]
    say(" ".join(row))
    return row


def sharp(choose: Chooser) -> Chooser:
    """The same splits, drawn at an ε that leaves no noise in them."""
    return lambda choice: choose(replace(choice, epsilon=10**6 * NANO))


def true_label(counts: Integers, *_: object) -> Integers:
    """The most frequent class of each leaf, exactly."""
    return np.eye(counts.shape[1], dtype=np.int64)[counts.argmax(axis=1)]


def pieces(case: Case, epsilon: str, seeds: int, ledgers: Path) -> list[str]:
    """The as-published form with the noise of one piece taken away, and of both."""
    warnings.simplefilter("ignore")
    recipe = RECIPES[case.recipe]
    form = recipe.published
    assert form is not None
    exact = replace(form.leaf, ask=true_label)
    row = [case.recipe, case.table, epsilon]
    for changed in (
        {"leaf": exact},
        {"choose": sharp(form.choose)},
        {"leaf": exact, "choose": sharp(form.choose)},
    ):
        RECIPES[case.recipe] = replace(recipe, published=replace(form, **changed))
        row.append(mean(runs(case, epsilon, seeds, ledgers / "pieces", as_published=True)))
    RECIPES[case.recipe] = recipe
    say(" ".join(row))
    return row


REASONS = """## What the figures say

A figure that is not reached stands here as it is. Each reason was found by changing one thing back
in the form as published; what was not found is said.

**The thesis's Banknote at ε = .5 (.888)** is reached when a draw of a split has d times its budget
(.892 ± .008), that is, if ε_a and ε_s are not divided by the depth; with labels drawn without noise
it is .878 ± .014. **Mushroom at ε = .1 (.951)** is not reached so (.917 ± .010), nor with exact
labels (.935 ± .006), but it is with exact splits (.981 ± .005): noise in the splits is what is in
the way. More attributes at a node do not help (all but one: .904 ± .011). **Banknote at .1 (.838)**
is reached with exact splits alone (.835 ± .031); d times the budget gives .702 ± .047. How nodes
end matters most: read as "not split if a child would have fewer than 4 rows", the same forests give
.663 on Mushroom at .1 and .655 on Banknote at .5, so a node of fewer than 4 rows is taken to end.

**DPRF-Gini's figures at ε = .1** are those of a forest whose every tree has about that budget or
more. With B = 2, which is .1 for each of 20 trees, Mushroom has .967 ± .008 (published .920). The
table of DiffPRF, which Li & Li compare with, is headed ε', and ε' = B/τ in Mu et al. is a tree's
budget. Iris (1.000) needs 1 for each tree to come near (.947 ± .016, and .955 ± .033 without
noise); Car (.823) and Credit (.806) lie below what the system gives without noise (.865 ± .011 and
.849 ± .018) and far above what B = 2 gives (.587 ± .022 and .639 ± .028).

**PrivaTree is above its figures** on Adult, Mushroom and Vote. Part of it is the leaves' share,
which is assumed: with a sixteenth of it the rigorous form has .969 ± .012 on Mushroom and
.919 ± .014 on Vote. The rest was not found.

**Xin's DPGDF as published** draws its splits by a mean over the rows with Δ = ½, which is weak, and
its labels by smooth sensitivity; the rigorous form does neither, and gains 10 to 25 points.

Where labels or splits are exact below, the form is the one as published.
"""


def main() -> None:
    """Run what was asked for and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--recipe", nargs="+", default=sorted({case.recipe for case in CASES}))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at a time")
    parser.add_argument("--markdown", type=Path, help="write the report to this file too")
    given = parser.parse_args()
    cases = [case for case in CASES if case.recipe in given.recipe]
    cells = [(case, epsilon) for case in cases for epsilon in case.published]
    with (
        tempfile.TemporaryDirectory(prefix="papers-") as folder,
        ProcessPoolExecutor(given.jobs) as pool,
    ):
        ledgers = Path(folder)
        (ledgers / "pieces").mkdir()
        rows = list(
            pool.map(partial(line, seeds=given.seeds, ledgers=ledgers), *zip(*cells, strict=True))
        )
        taken = [
            (case, e) for case, e in cells if case.recipe == "thesis-forest" and case.published[e]
        ]
        apart = (
            list(
                pool.map(
                    partial(pieces, seeds=given.seeds, ledgers=ledgers), *zip(*taken, strict=True)
                )
            )
            if taken
            else []
        )
    figures = markdown_table(
        ["recipe", "table", "ε", "published", "as published, here", "rigorous", "difference"], rows
    )
    without = markdown_table(
        ["recipe", "table", "ε", "labels exact", "splits exact", "both exact"], apart
    )
    text = (
        "# Published figures beside ours\n\n"
        "Written by `python benchmarks/papers.py --markdown docs/reproduction.md`: accuracy, mean "
        f"of {given.seeds} runs ± standard error, a quarter of the rows held out. The difference "
        "is rigorous less as published, run by run.\n\n"
        f"{figures}\n\n{REASONS}\n{without}\n"
    )
    print(text)
    if given.markdown:
        given.markdown.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
