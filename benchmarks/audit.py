"""The page of the audit, from what its two commands say.

    dpforest audit mechanisms --json > mechanisms.json
    dpforest audit recipes 2> recipes.log
    python benchmarks/audit.py mechanisms.json recipes.log --markdown docs/audit.md

Writes docs/audit.md and beside it the plot, audit.svg.
"""

from __future__ import annotations

import argparse
import json
import re
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from shared import markdown_table

SECOND_OPINION = """## A second opinion

OpenDP has discrete Laplace and Gaussian noise of its own, and reports the noisy maximum of
exponential noise, which is permute-and-flip. At the same parameters its draws and ours have the
same closed forms (χ² at 1e-6, 50,000 draws, 12,500 of OpenDP's permute-and-flip), and its privacy
maps give the costs that we claim:

| mechanism         | parameters                                     | claim             |
| ----------------- | ---------------------------------------------- | ----------------- |
| discrete Laplace  | ε = 1, 1/3; ε = 2 with 7 rows per unit         | sensitivity/scale |
| discrete Gaussian | ρ = 1/2; 1/50 with Δ² = 9; 1/7 with Δ² = 2     | Δ²/2σ²            |
| permute-and-flip  | four utilities of Δ = 2, monotone and not      | ε = 1             |

```console
$ pytest -m slow tests/privacy/test_second_opinion.py
```

"""
PACKAGES = ("dpforest-duckdb", "duckdb", "opendp")
LINE = re.compile(r"^(?P<name>.+): ε ≥ (?P<bound>[\d.]+), claimed (?P<claim>[\d.]+)$")
ROW, LEFT, WIDE, MOST = 18, 290, 320, 2.3  # of the plot: pixels, and the largest ε


def main() -> None:
    """Read the findings, write page and plot."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("mechanisms", type=Path)
    parser.add_argument("recipes", type=Path, nargs="+", help="logs of audit recipes")
    parser.add_argument("--runs", type=int, default=2000, help="of each recipe, on either side")
    parser.add_argument("--trained", default=str(date.today()), help="when the recipes were run")
    parser.add_argument("--markdown", type=Path, default=Path("docs/audit.md"))
    given = parser.parse_args()
    found = json.loads(given.mechanisms.read_text(encoding="utf-8"))["findings"]
    lines = [line for log in given.recipes for line in log.read_text("utf-8").splitlines()]
    trained = [match.groupdict() for line in lines if (match := LINE.match(line))]
    given.markdown.write_text(_page(found, trained, given.runs, given.trained), encoding="utf-8")
    given.markdown.with_suffix(".svg").write_text(_plot(found), encoding="utf-8")


def _page(found: list[dict[str, Any]], trained: list[dict[str, str]], runs: int, when: str) -> str:
    mechanisms = [
        [
            f["name"],
            f"{f['claim']:g}",
            "-" if f["exact_loss"] is None else f"{f['exact_loss']:.3f}",
            f"{f['bound']:.3f}",
            " \\| ".join(map(str, f["seen"])),
            "REFUTED" if f["refuted"] else "holds" if f["private"] else "**not private**",
        ]
        for f in found
    ]
    recipes = [[t["name"], t["claim"], t["bound"]] for t in trained]
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return (
        "# The audit\n\n"
        "Lower bounds on the true ε of mechanisms and of whole trainings, by Clopper and Pearson's "
        "exact intervals at 99.9 % confidence. A bound above its claim proves the claim wrong. A "
        "bound below it proves nothing; but the pairs of tables have the largest possible loss, so "
        "a bound close to the claim shows that a larger ε would have been found.\n\n"
        "```console\n$ dpforest audit mechanisms --json > mechanisms.json\n"
        "$ dpforest audit recipes 2> recipes.log\n"
        "$ python benchmarks/audit.py mechanisms.json recipes.log --markdown docs/audit.md\n```\n\n"
        f"## Mechanisms alone, {found[0]['draws']:,} draws on each table\n\n"
        f"Run on {date.today()} with {versions}.\n\n"
        "![claims and bounds](audit.svg)\n\n"
        + markdown_table(["", "claim", "exact loss", "bound", "events", "verdict"], mechanisms)
        + "\n\nThe last rows are what published systems do. A row that a bootstrap draws several "
        "times moves a count by more than the one it is noised for; a label with smooth "
        "sensitivity changes its own scale; and a split of DPDF has the sensitivity of a size that "
        "is all noise, so that one row more is seen at many times the claim.\n\n"
        + SECOND_OPINION
        + f"## Whole trainings, {runs:,} on each table, two splits deep, at most ten trees\n\n"
        f"Run on {when}. "
        "In DuckDB, on forty rows and one more (DPDF: on one and one more). The event is chosen on "
        "half of the runs and counted on the other half. The loss is divided over many releases, "
        "so this finds a cost that was forgotten, but not one that is slightly too small.\n\n"
        + markdown_table(["recipe", "claim", "bound"], recipes)
        + "\n"
    )


def _plot(found: list[dict[str, Any]]) -> str:
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
            f'<text x="{LEFT - 6}" y="{top + 12:g}" text-anchor="end">{escape(f["name"])}</text>',
            f'<rect x="{LEFT}" y="{top + 2:g}" width="{wide:.1f}" height="12" fill="{color}"/>',
            f'<line x1="{place(f["claim"]):.1f}" x2="{place(f["claim"]):.1f}" y1="{top:g}" '
            f'y2="{top + 16:g}" stroke="black" stroke-width="2"/>',
        ]
    foot = ROW * (len(found) + 1.3)
    parts.append(f'<text x="{LEFT}" y="{foot:g}">ε: bar = proved, line = claimed</text>')
    return "\n".join([*parts, "</svg>\n"])


if __name__ == "__main__":
    main()
