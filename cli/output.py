"""What goes to stdout (the result) and to stderr (everything else)."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dpforest_duckdb.errors import one_line

if TYPE_CHECKING:
    from dpforest_duckdb.model.forest import Forest


def tell(text: object) -> None:
    """One line of the result, on stdout.

    Names come from catalogues and files, so every verb writes them through here, `say`,
    `show_table` or `emit`: none of these lets a character through that steers a terminal.
    """
    print(one_line(text))


def say(text: object) -> None:
    """One line for people, on stderr."""
    _note(one_line(text))


def show_statement(sql: str) -> None:
    """Print a statement on stderr before it runs."""
    _note("\n".join(map(one_line, sql.rstrip().split("\n"))) + ";\n")


def _note(text: str) -> None:
    """Print on stderr; a failure to print must not stop the work."""
    try:
        print(text, file=sys.stderr)
    except OSError:  # for example a closed pipe
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115  stays open until exit


def facts(forest: Forest) -> dict[str, Any]:
    """The facts of a model, for --json."""
    return {
        "model": forest.name,
        "recipe": forest.recipe,
        "epsilon": float(forest.guarantee.epsilon),
        "delta": float(forest.guarantee.delta),
        "private": forest.private,
        "trees": len(forest.trees),
        "nodes": forest.nodes,
        "depth": forest.depth,
    }


def emit(found: object) -> None:
    """Print the one JSON object on stdout, in ASCII so that any locale can show it."""
    print(json.dumps(found, allow_nan=False))


def show_table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows under headings on stdout; in full if stdout is not a terminal."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, heading in enumerate(headings):
        numeric = bool(rows) and all(isinstance(row[number], int | float) for row in rows)
        grid.add_column(heading, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        grid.add_row(*("" if value is None else one_line(value) for value in row))
    console = Console(markup=False, highlight=False, emoji=False, soft_wrap=False)
    if not console.is_terminal:
        console.width = 10_000
    console.print(grid)


def number(value: float | None, digits: int = 4) -> str:
    """A figure for people; a dash for None."""
    return "-" if value is None else f"{value:.{digits}f}"
