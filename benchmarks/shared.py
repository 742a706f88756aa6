"""What the benchmarks share: where the data is, and tables of text."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def data_folder() -> Path:
    """The folder of benchmark tables: DPFOREST_DATA, or ../shared/data beside the checkout.

    Ends the program with one sentence if there is none.
    """
    named = os.environ.get("DPFOREST_DATA")
    folder = Path(named) if named else ROOT.parent / "shared" / "data"
    if not (folder / "nursery.parquet").is_file():
        sys.exit(
            f"There are no benchmark tables in {folder}: set DPFOREST_DATA to the folder that "
            "holds nursery.parquet, nursery.toml and the others."
        )
    return folder


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table whose columns also line up as plain text; the first is flush left."""
    cells = [list(head), *map(list, rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]

    def line(row: Sequence[str]) -> str:
        padded = [
            text.rjust(width) if column else text.ljust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        return f"| {' | '.join(padded)} |"

    rule = [
        "-" * width if not column else "-" * (width - 1) + ":"
        for column, width in enumerate(widths)
    ]
    return "\n".join([line(cells[0]), line(rule), *map(line, cells[1:])])


def say(text: str) -> None:
    """Progress, on stderr: stdout is for the figures."""
    print(text, file=sys.stderr, flush=True)
