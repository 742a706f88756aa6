"""dpforest domain"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpforest_duckdb.cli import options
from dpforest_duckdb.cli.output import emit, say
from dpforest_duckdb.errors import DpforestError, one_line

if TYPE_CHECKING:
    from dpforest_duckdb.domain.types import ColumnType


def domain(
    db: options.Db,
    table: options.TableName,
    target: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column to predict.")
    ] = None,
    as_json: options.AsJson = False,
    show_sql: options.ShowSql = False,
) -> None:
    """Print a domain file for a table from DuckDB's declarations.

    No row is read. What is not declared is left blank and marked TODO.

    \b
    Example:
      dpforest domain --db data.duckdb --table visits --target ill > visits.toml
    """
    from dpforest_duckdb.domain.file import domain_toml
    from dpforest_duckdb.engine.declarations import declared_columns

    with options.opened(db, read_only=True, show_sql=show_sql) as engine:
        info = engine.table(table)
        found = {name.casefold(): name for name in info.columns}
        if target is not None and target.casefold() not in found:
            raise DpforestError(f'The table has no column "{target}": check --target.')
        named = found[target.casefold()] if target else None
        columns = [
            _marked(column, info.columns[column["name"]], column["name"] == named)
            for column in declared_columns(engine, info)
        ]
    content = {"target": named, "column": columns}
    blank = sum("todo" in column for column in columns)
    if blank:
        say(
            f"Columns that are not declared: {blank}. Fill in each TODO with what is public, or "
            "delete the column from the file: then it is not used."
        )
    if as_json:
        emit(content)
    else:
        print(domain_toml(content), end="")


def _marked(column: dict[str, Any], kind: ColumnType, is_target: bool) -> dict[str, Any]:
    """The column, with a note that says what to fill in if nothing is declared."""
    if is_target and "domain" not in column:
        return {"name": column["name"], "todo": 'kind = "categorical" and domain = [the classes]'}
    if "kind" in column:
        return column
    unset = "(public knowledge, not from the rows)"
    match kind.family:
        case "other" | "text" | "boolean":
            needed = 'kind = "categorical" and domain = [the categories], or delete this column'
        case "date" | "timestamp":
            needed = f'kind = "numeric", lower = "2020-01-01" and upper = "2029-12-31" {unset}'
        case family:
            needed = f'kind = "numeric", lower = 0 and upper = 100 {unset}'
            needed += ', or kind = "identifier" if it names persons' * (family == "integer")
    return {**column, "todo": one_line(f"{needed}; the type is {kind}")}
