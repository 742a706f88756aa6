"""The audit of every mechanism and every recipe, and its page.

    python benchmarks/audit.py --results audit.jsonl --markdown docs/audit.md

Takes about ten minutes of one processor. Every finding is kept in the file of results, so that a
stopped audit can go on. Writes docs/audit.md and beside it the plot, audit.svg.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from shared import Results, markdown_table, say

from dpforest_duckdb.audit.bound import guessing_bound
from dpforest_duckdb.audit.mechanisms import Finding, audit, cases
from dpforest_duckdb.audit.recipes import (
    DELTA,
    OTHERS,
    ROWS,
    WITH_DELTA,
    audit_recipe,
    learnt_from,
)
from dpforest_duckdb.recipes import RECIPES

SECOND_OPINION = """## A second opinion

OpenDP is a library for differential privacy that others have reviewed. It has discrete Laplace and
Gaussian noise of its own, and its noisy maximum with exponential noise is permute-and-flip. A χ²
test at 1e-6 compares the draws of both with the same formula (50,000 draws, 12,500 of OpenDP's
permute-and-flip). OpenDP also confirms the costs that we claim (for Gaussian noise as ρ = μ²/2 of
zero-concentrated DP):

| mechanism        | parameters                                       | claim             |
| ---------------- | ------------------------------------------------ | ----------------- |
| discrete Laplace | ε = 1, 1/3; ε = 2 with 7 rows per unit           | sensitivity/scale |
| Gaussian         | μ² = 1/400; 1/25 with Δ² = 90; 1/500 with Δ² = 2 | Δ²/σ²             |
| permute-and-flip | four utilities of Δ = 2, monotone and not        | ε = 1             |

```console
$ pytest -m slow tests/privacy/test_second_opinion.py
```

"""
PACKAGES = ("dpforest-duckdb", "duckdb", "opendp")
ROW, LEFT, WIDE, MOST = 18, 290, 320, 2.3  # of the plot: pixels, and the largest ε


def main() -> None:
    """Find what is not found yet, write page and plot."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=1_000_000, help="of each mechanism")
    parser.add_argument("--runs", type=int, default=40, help="of each recipe")
    parser.add_argument("--kept", action="store_true", help="run nothing: the page of the results")
    parser.add_argument("--results", type=Path, help="keep the findings here, and use those there")
    parser.add_argument("--markdown", type=Path, default=Path("docs/audit.md"))
    given = parser.parse_args()
    known = Results(given.results, ("name", "number"))
    wanted: dict[tuple[str, int], Callable[[], Finding]] = {
        (case.name, given.draws): lambda case=case: audit(case, given.draws) for case in cases()
    }
    trainings = [
        (name, delta)
        for name in RECIPES
        for delta in (("0", DELTA) if name in WITH_DELTA else ("0",))
    ]
    for name, delta in trainings:
        wanted[f"{name}, δ = {delta}", given.runs] = lambda name=name, delta=delta: audit_recipe(
            name, given.runs, delta=delta
        )
    missing = [key for key in wanted if given.kept and not known.get(*key)]
    found = [_found(known, *key, find) for key, find in wanted.items() if key not in missing]
    names = {case.name for case in cases()}
    mechanisms = [f for f in found if f["name"] in names]
    recipes = [f for f in found if f["name"] not in names]
    page = _page(mechanisms, recipes, given.draws, given.runs)
    if missing:
        page += f"\nNot run for this page: {', '.join(name for name, _ in missing)}.\n"
    given.markdown.write_text(page, encoding="utf-8")
    given.markdown.with_suffix(".svg").write_text(_plot(mechanisms), encoding="utf-8")
    broken = [str(f["title"]) for f in (*mechanisms, *recipes) if f["refuted"]]
    if broken:
        raise SystemExit(f"The claim does not hold for {', '.join(broken)}.")


def _found(
    known: Results, name: str, number: int, find: Callable[[], Finding]
) -> Mapping[str, Any]:
    """A finding, as it is kept."""
    kept = known.get(name, number)
    if kept is None:
        start = time.process_time()
        found = find()
        say(f"{name}: ε ≥ {found.bound.epsilon:.3f}, {time.process_time() - start:.0f} s")
        kept = {
            "name": name,
            "number": number,
            "title": found.name,
            "claim": found.claim,
            "exact_loss": found.loss,
            "bound": found.bound.epsilon,
            "seen": found.bound.seen,
            "private": found.private,
            "refuted": found.broken,
            "date": str(date.today()),
        }
        known.add(kept)
    return kept


def _page(
    found: list[Mapping[str, Any]], trained: list[Mapping[str, Any]], draws: int, runs: int
) -> str:
    mechanisms = [
        [
            f["title"],
            f"{f['claim']:g}",
            "-" if f["exact_loss"] is None else f"{f['exact_loss']:.3f}",
            f"{f['bound']:.3f}",
            " \\| ".join(map(str, f["seen"])),
            _verdict(f),
        ]
        for f in found
    ]
    recipes = [
        [
            t["title"],
            f"{t['claim']:g}",
            f"{t['bound']:.3f}",
            " \\| ".join(map(str, t["seen"])),
            _verdict(t),
        ]
        for t in trained
    ]
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return (
        "# The audit\n\n"
        "Does a mechanism, or a whole training, leak more than the ε that it claims? This page "
        "simulates each many times and gives a lower bound on its true ε, with 99.9 % confidence. "
        "The bounds of mechanisms are Clopper and Pearson's exact ones. A bound above the claim "
        "proves the claim wrong. A bound below it proves nothing. But each mechanism is "
        "tested on the two tables with the largest loss. So if its bound is close to the claim, a "
        "larger ε would have shown.\n\n"
        "```console\n$ python benchmarks/audit.py --markdown docs/audit.md    # this page: "
        f"{runs:,} trainings of each recipe\n"
        "$ dpforest audit mechanisms                              # mechanisms alone\n"
        "$ dpforest audit recipes --recipe auto --runs 500        # 500 trainings of one recipe\n"
        "```\n\n"
        f"## Mechanisms alone, {draws:,} draws on each table\n\n"
        "*Exact loss* is computed from the probabilities, without draws. *Events* says on how many "
        "draws of each table the tested event occurred.\n\n"
        f"Run on {_days(found)} with {versions}.\n\n"
        "![claims and bounds](audit.svg)\n\n"
        + markdown_table(["", "claim", "exact loss", "bound", "events", "verdict"], mechanisms)
        + "\n\nThe last three rows are mechanisms as published systems use them. A row drawn "
        "several times into a bootstrap sample changes a count by more than 1, but the noise is "
        "scaled for 1. With smooth sensitivity, a row also changes the scale of a label's noise. "
        "DPDF takes the sensitivity of a split from a noisy node size, which can be far from the "
        "true one.\n\n"
        + SECOND_OPINION
        + f"## Whole trainings, {runs:,} of each recipe, two splits deep, at most four trees\n\n"
        f"Run on {_days(trained)} with {versions}. "
        f"The trainings ran in DuckDB. Each table has {OTHERS} rows that are always there; {ROWS} "
        "more are in it or not, by a fair coin for each. Each of these has values and a class "
        "that no other row has. "
        "The audit guesses each coin from what the forest shows of the row; the number of right "
        "guesses bounds ε (Steinke, Nasr & Jagielski, NeurIPS 2023). It learns how to guess from a "
        "quarter of the trainings, and counts the guesses on the others. It may leave out up to "
        "half of the guesses: those it is least sure of. The largest bound that so many trainings "
        f"can give is {_most(runs):.1f}, so only a large error can be seen. With noise of half the "
        "scale, 864 trainings refute `auto` (`tests/audit/test_audit.py`). On these tables, "
        "recipes other than `auto` and `boosted` make the same forest with a δ as without. A "
        "single row shows in counts, but hardly in the choice of a split. So a bound sees only "
        "the part of ε that is "
        "spent on counts. An error in what splits cost would show only in the audit of single "
        "mechanisms above. The leaves of `class-means` hold no counts, so its bound is low. A "
        "recipe is not private if its proof fails, whether or not this audit refutes it.\n\n"
        + markdown_table(["recipe", "claim", "bound", "right \\| wrong", "verdict"], recipes)
        + "\n"
    )


def _most(runs: int) -> float:
    """The bound if every guess is right."""
    guesses = (runs - learnt_from(runs)) * ROWS
    return guessing_bound(guesses, guesses, guesses).epsilon


def _days(found: list[Mapping[str, Any]]) -> str:
    """When something was found, from the first day to the last."""
    return " to ".join(sorted({min(f["date"] for f in found), max(f["date"] for f in found)}))


def _verdict(found: Mapping[str, Any]) -> str:
    if found["refuted"]:
        return "REFUTED"
    return "not refuted" if found["private"] else "**not private**"


def _plot(found: list[Mapping[str, Any]]) -> str:
    """Bars of the bounds, with a mark at each claim."""

    def place(epsilon: float) -> float:
        return LEFT + WIDE * min(epsilon, MOST) / MOST

    high = ROW * (len(found) + 2)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDE + 20}" height="{high}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for number, f in enumerate(found):
        top = ROW * (number + 0.5)
        color = "#3b7a57" if f["private"] else "#b33a3a"
        wide = place(f["bound"]) - LEFT
        parts += [
            f'<text x="{LEFT - 6}" y="{top + 12:g}" text-anchor="end">{escape(f["title"])}</text>',
            f'<rect x="{LEFT}" y="{top + 2:g}" width="{wide:.1f}" height="12" fill="{color}"/>',
            f'<line x1="{place(f["claim"]):.1f}" x2="{place(f["claim"]):.1f}" y1="{top:g}" '
            f'y2="{top + 16:g}" stroke="black" stroke-width="2"/>',
        ]
    foot = ROW * (len(found) + 1.3)
    parts.append(f'<text x="{LEFT}" y="{foot:g}">ε: bar = proved, line = claimed</text>')
    return "\n".join([*parts, "</svg>\n"])


if __name__ == "__main__":
    main()
