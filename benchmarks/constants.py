"""Whether the constants of `auto` carry over to tables on which they were not set.

    python benchmarks/constants.py --markdown docs/constants.md

Tries each constant smaller and larger, one at a time, chooses on half of the tables and looks at
the other half, and the other way round. A table's figure is the mean over ε of how far its accuracy
is above that of the most frequent class, as a part of what an unlimited accuracy of 1 would be.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from accuracy import figures
from shared import data_folder, markdown_table, say

from dpforest_duckdb.recipes.ours import auto
from dpforest_duckdb.recipes.ours import auto_rules as sizing

EPSILONS = ("0.1", "0.5", "1")
CONSTANTS = {
    "ATTRIBUTES": (0.15, 0.22, 0.33),
    "BINS": (0.12, 0.18, 0.27),
    "CHOICE": (25, 40, 60),
    "ROUGH": (0.45, 0.7, 1.1),
    "CLEAN": (0.07, 0.1, 0.15),
    "FEW_FIGURES": (20, 30, 45),
    "LEAST_ROWS": (200, 300, 450),
}
LARGE = ("krkopt", "connect_4", "credit_default")  # slow, and far from every threshold

Setting = tuple[float, ...]


def main() -> None:
    """Try every setting on every table, and print a page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--markdown", type=Path, help="write the page here")
    given = parser.parse_args()
    tables = sorted(
        p.stem for p in data_folder().glob("*.toml") if p.stem not in ("adult_test", *LARGE)
    )
    ours = tuple(values[1] for values in CONSTANTS.values())
    settings = [ours] + [
        (*ours[:place], value, *ours[place + 1 :])
        for place, values in enumerate(CONSTANTS.values())
        for value in (values[0], values[2])
    ]
    jobs = [(table, setting) for setting in settings for table in tables]
    with ProcessPoolExecutor() as pool:
        found = {}
        for job, worth in zip(jobs, pool.map(tried, jobs, chunksize=1), strict=True):
            found[job] = worth
            say(f"{job[0]} {job[1]} {worth:.3f}")
    halves = tables[::2], tables[1::2]
    page = _page(found, settings, halves)
    print(page)
    if given.markdown:
        given.markdown.write_text(page, encoding="utf-8")


def tried(job: tuple[str, Setting]) -> float:
    """What a setting reaches on a table."""
    table, setting = job
    warnings.simplefilter("ignore")
    for name, value in zip(CONSTANTS, setting, strict=True):
        setattr(auto if name == "CHOICE" else sizing, name, value)
    with tempfile.TemporaryDirectory(prefix="constants-") as place:
        found = [figures(table, "auto", epsilon, "0", 1, Path(place)) for epsilon in EPSILONS]
    return statistics.mean((f.accuracy - f.majority) / (1 - f.majority) for f in found)


def _page(
    found: dict[tuple[str, Setting], float],
    settings: list[Setting],
    halves: tuple[list[str], list[str]],
) -> str:
    def mean(tables: list[str], setting: Setting) -> float:
        return statistics.mean(found[table, setting] for table in tables)

    ours, rows = settings[0], []
    for own, other in (halves, halves[::-1]):
        best, there = (max(settings, key=lambda s, t=t: mean(t, s)) for t in (own, other))
        rows.append(
            [
                ", ".join(own),
                " ".join(f"{value:g}" for value in best),
                *(f"{mean(own, s):.3f}" for s in (best, ours)),
                *(f"{mean(other, s):.3f}" for s in (best, ours, there)),
            ]
        )
    head = ["chosen on", " ".join(CONSTANTS), "there", "with ours", "on the other half"]
    head += ["with ours", "with its own best"]
    ranges = "; ".join(
        f"{name} {', '.join(f'{value:g}' for value in values)}"
        for name, values in CONSTANTS.items()
    )
    return (
        "# Do the constants carry over?\n\nWritten by `python benchmarks/constants.py --markdown "
        f"docs/constants.md`: pure ε, the folds of [accuracy.md](accuracy.md), {ranges}, one "
        "of them changed at a time (the middle ones are ours). A figure is the mean of "
        "(accuracy − majority) / (1 − majority) over tables and ε = .1, .5, 1, where majority is "
        "the share of the most frequent class. Left out: "
        f"{', '.join(LARGE)}.\n\n{markdown_table(head, rows)}\n"
    )


if __name__ == "__main__":
    main()
