"""Options that several verbs share."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from typer.models import ArgumentInfo

from dpforest_duckdb.cli import sections
from dpforest_duckdb.errors import UsageError


def whole_number(least: int | None = None, most: int | None = None) -> Callable[[str | int], int]:
    """A parser of whole numbers within limits, which refuses others in one sentence."""
    limits = {"from": least, "to": most}
    described = "".join(f" {word} {limit}" for word, limit in limits.items() if limit is not None)

    def parse(text: str | int) -> int:
        # Python would read 1_000 and ٣ too, and raises an error of its own for thousands of digits
        if re.fullmatch("-?[0-9]{1,100}", str(text)):
            number = int(text)
            if (least is None or number >= least) and (most is None or number <= most):
                return number
        raise typer.BadParameter(f"it must be a whole number{described}.")

    return parse


DataDb = Annotated[
    str,
    typer.Option(
        metavar="FILE",
        envvar="DPFOREST_DB",
        help="The DuckDB database file, or Parquet or CSV files: a path or a glob in quotes.",
    ),
]
MaybeDataDb = Annotated[
    str | None,
    typer.Option(
        "--db",
        metavar="FILE",
        envvar="DPFOREST_DB",
        help="The database file, or data files.",
        rich_help_panel=sections.DATA,
    ),
]
Dataset = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="A name for your data files: the ledger keeps their budget under it.",
        rich_help_panel=sections.BUDGET,
    ),
]
MaybeDb = Annotated[
    str | None,
    typer.Option("--db", metavar="FILE", envvar="DPFOREST_DB", help="The DuckDB database file."),
]


def completed_recipe(start: str) -> list[str]:
    """The recipes whose names begin with what was typed, for the shell."""
    from dpforest_duckdb.recipes import RECIPES

    return [name for name in RECIPES if name.startswith(start)]


EngineName = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="duckdb|spark",
        help="Where the rows are read.",
        rich_help_panel=sections.MACHINE,
    ),
]
Master = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Start Spark, such as local[4]. [default: local[*]]",
        rich_help_panel=sections.MACHINE,
    ),
]
Remote = Annotated[
    str | None,
    typer.Option(
        metavar="sc://HOST", help="The address of Spark Connect.", rich_help_panel=sections.MACHINE
    ),
]


def one_of(kind: type[StrEnum]) -> ArgumentInfo:
    """An argument that is one of a few words."""

    def parse(word: str) -> StrEnum:
        if word not in list(kind):
            raise typer.BadParameter(f'"{word}" is none of these.')
        return kind(word)

    found: ArgumentInfo = typer.Argument(parser=parse, metavar="|".join(kind))
    return found


MaybeTable = Annotated[
    str | None,
    typer.Option(
        "--table", metavar="TABLE", help="A table: t or schema.t.", rich_help_panel=sections.DATA
    ),
]
Model = Annotated[
    str, typer.Option(metavar="NAME|FILE", help="A model in the database, or its JSON file.")
]
Epsilon = Annotated[
    list[str],
    typer.Option(
        "--epsilon",
        metavar="E",
        help="ε, a decimal above zero; may be repeated.",
        rich_help_panel=sections.BUDGET,
    ),
]
Delta = Annotated[
    str,
    typer.Option(
        metavar="D",
        help="δ, such as 1e-5, far below 1 / (number of persons); 0 is pure ε.",
        rich_help_panel=sections.BUDGET,
    ),
]
MaybeDelta = Annotated[
    str | None,
    typer.Option(
        "--delta",
        metavar="D",
        help="δ, such as 1e-5, far below 1 / (number of persons). [default: the cap's, or 0]",
    ),
]
PrivacyUnit = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN|row",
        help="What ε protects: all rows with the same value of a column, or each row.",
        rich_help_panel=sections.BUDGET,
    ),
]
Prefix = Annotated[
    str,
    typer.Option(
        metavar="TEXT", help="Prefix for prediction and p_<class>, if the table has such columns."
    ),
]


def _rows_per_unit(default: str) -> typer.models.OptionInfo:
    """The option `--rows-per-unit`, with its default in words."""
    found: typer.models.OptionInfo = typer.Option(
        metavar="N",
        parser=whole_number(1, 1_000_000),
        help=f"Use at most N rows of each privacy unit. [default: {default}]",
        rich_help_panel=sections.BUDGET,
    )
    return found


RowsPerUnit = Annotated[int | None, _rows_per_unit("the cap's, or 1")]
RowsPerUnitOfModel = Annotated[int | None, _rows_per_unit("the cap's, or the model's")]


def _absolute_path(context: typer.Context, path: str | None) -> str | None:
    """The ledger's path. In the environment a relative one would mean another ledger in each
    folder.
    """
    source = context.get_parameter_source("ledger")
    if path and source and source.name == "ENVIRONMENT" and not Path(path).is_absolute():
        raise typer.BadParameter(
            "DPFOREST_LEDGER has a relative path, which means another ledger in each folder: give "
            "an absolute path."
        )
    return path


Ledger = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        envvar="DPFOREST_LEDGER",
        callback=_absolute_path,
        help="The budget ledger. [default: DB.ledger, beside the database]",
        rich_help_panel=sections.BUDGET,
    ),
]
AsJson = Annotated[
    bool,
    typer.Option(
        "--json",
        help="One JSON object on stdout, everything else on stderr.",
        rich_help_panel=sections.RESULT,
    ),
]
ShowSql = Annotated[
    bool,
    typer.Option(
        "--show-sql",
        help="Print every statement on stderr before it runs.",
        rich_help_panel=sections.RESULT,
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        parser=whole_number(1, 1024),
        metavar="N",
        help="DuckDB's threads. [default: all]",
        rich_help_panel=sections.MACHINE,
    ),
]
MemoryLimit = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE", help="DuckDB's memory limit, such as 8GB.", rich_help_panel=sections.MACHINE
    ),
]
TempDir = Annotated[
    str | None,
    typer.Option(
        metavar="DIR",
        help="A folder for DuckDB's temporary files.",
        rich_help_panel=sections.MACHINE,
    ),
]


def column_names(option: str, texts: Sequence[str] | None) -> list[str]:
    """Names from a repeated option, separated by commas; quotes protect a comma in a name.

    Raises `UsageError` if the option is given and names no column.
    """
    from dpforest_duckdb.domain.flags import between_commas

    if texts is None:
        return []
    given = [text for text in texts if text.strip()]
    if not given:  # for example an empty shell variable: not the same as leaving the option out
        raise UsageError(f"{option} names no column.")
    return [name for text in given for name in between_commas(option, text)]


def refuse_idle(why: str, **given: object) -> None:
    """Raise `UsageError` for options that would have no effect."""
    for name, value in given.items():
        if value not in (None, False):
            raise UsageError(f"--{name.replace('_', '-')} {why}.")
