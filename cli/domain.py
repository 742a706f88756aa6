"""dpforest domain"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpforest_duckdb.cli import opening, options
from dpforest_duckdb.cli.output import emit, inform, tell
from dpforest_duckdb.domain.names import listed
from dpforest_duckdb.errors import number_of, one_line

if TYPE_CHECKING:
    from dpforest_duckdb.domain.types import ColumnType
    from dpforest_duckdb.training.found_rows import FoundRows


def domain(
    db: options.DataDb,
    table: options.MaybeTable = None,
    target: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column to predict.")
    ] = None,
    check: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Compare this domain file with the table's types."),
    ] = None,
    as_json: options.AsJson = False,
    show_sql: options.ShowSql = False,
) -> None:
    """Print a domain file for a table, or check one against a table.

    No row is read: types and categories come from DuckDB's declarations. What is not declared is
    left blank and marked TODO.

    \b
    Example:
      dpforest domain --db data.duckdb --table visits --target ill > visits.toml
    """
    from dpforest_duckdb.domain.file import domain_toml
    from dpforest_duckdb.engine.declarations import declared_columns, target_column
    from dpforest_duckdb.training.check_domain import refuse_row_as_names
    from dpforest_duckdb.training.opening import find_rows

    database, rows = opening.rows_of(db, table)
    with opening.opened(database, read_only=True, show_sql=show_sql) as opened_database:
        source = find_rows(opened_database.connection, rows, opened_database.trace)
        engine, info = source.engine, source.table
        if check is not None:
            _check(source, check, target, as_json)
            return
        refuse_row_as_names(source, ())
        named = None if target is None else target_column(info, target)
        types = info.columns if source.typed else {}
        columns = [
            _marked(column, types.get(column["name"]), column["name"] == named)
            for column in declared_columns(engine, info)
        ]
    content = {"target": named, "column": columns}
    blank = sum("todo" in column for column in columns)
    if blank:
        inform(
            f"Columns that are not declared: {blank}. At each TODO, remove the # of one kind and "
            "correct its values, or delete the column from the file: then it is not used."
            + ("" if source.typed else " Bounds with a decimal point are for fractions.")
        )
    if as_json:
        emit(content)
    else:
        print(domain_toml(content), end="")


def _check(rows: FoundRows, file: str, target: str | None, as_json: bool) -> None:
    """Compare a domain file with the columns: refuse what cannot be right, list other doubts."""
    from dpforest_duckdb.training.check_domain import check_domain

    found = check_domain(rows, file, target)
    if as_json:
        emit({"attributes": found.attributes, "unused": found.unused, "notes": found.notes})
        return
    for note in found.notes:
        tell(f"Note: {note}")
    if found.unused:
        tell(f"Columns not used: {listed(found.unused)}.")
    attributes = number_of(found.attributes, "attribute")
    tell(f"The domain fits the columns: {attributes} and the target.")
    tell("No row was read, so values were not compared: check how the categories are spelled.")


def _marked(column: dict[str, Any], kind: ColumnType | None, is_target: bool) -> dict[str, Any]:
    """The column, with the kinds that it may have under "todo" if nothing is declared.

    `kind` is None for a column of a CSV file, which is text that may stand for numbers.
    """
    categories = {"kind": "categorical", "domain": ["…", "…"]}
    if is_target and "domain" not in column:
        of_type = {"type": one_line(kind)} if kind is not None else {}
        return {"name": column["name"], "todo": [categories], **of_type}
    if "kind" in column:
        return column
    numbers = {"kind": "numeric", "lower": 0, "upper": 100}
    flags = {"kind": "categorical", "domain": [0, 1]}
    fractions = {"kind": "numeric", "lower": 0.0, "upper": 100.0}
    days = {"kind": "numeric", "lower": "2020-01-01", "upper": "2029-12-31"}
    person = {"kind": "identifier"}
    choices: dict[str, list[dict[str, Any]]] = {
        "other": [] if kind is not None and kind.nested else [person],
        "boolean": [categories],
        "text": [categories, person],
        "date": [days],
        "timestamp": [days],
        "integer": [numbers, flags, person],
        "decimal": [fractions, flags],
        "float": [fractions, flags],
    }
    if kind is None:
        return {**column, "todo": [categories, numbers, fractions, days, person]}
    return {**column, "todo": choices[kind.family], "type": one_line(kind)}
