"""dpforest demo"""

from __future__ import annotations

import sys
from functools import partial
from typing import Annotated

import typer

from dpforest_duckdb.cli import options
from dpforest_duckdb.cli.output import emit


def demo(
    folder: Annotated[
        str, typer.Option("--dir", metavar="DIR", help="A new or empty folder.")
    ] = "dpforest-demo",
    replace: Annotated[
        bool, typer.Option("--replace", help="Overwrite the files of an earlier demo.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Build a real table, train, score, and show every step.

    Nothing is downloaded: the table is UCI's Nursery, made from its published rules.

    \b
    Example:
      dpforest demo --dir nursery --replace
    """
    from dpforest_duckdb.demo import demo as run

    facts = run(folder, replace=replace, say=partial(print, file=sys.stderr) if as_json else print)
    if as_json:
        emit(facts)
