"""dpforest sql"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, cast, get_args

import typer

from dpforest_duckdb.cli import opening, options
from dpforest_duckdb.cli.output import emit, inform, note, warn
from dpforest_duckdb.errors import DpforestError, UsageError

if TYPE_CHECKING:
    from dpforest_duckdb.engine.tables.engine import DuckDBEngine
    from dpforest_duckdb.scoring.score_sql import Scored


WARNED_BYTES, MAX_BYTES = 250_000, 1_000_000  # of a statement


def _completed_dialect(start: str) -> list[str]:
    from dpforest_duckdb.scoring.dialects import DIALECTS

    return [name for name in DIALECTS if name.startswith(start)]


def _completed_form(start: str) -> list[str]:
    from dpforest_duckdb.scoring.dialects import Form

    return [form for form in get_args(Form) if form.startswith(start)]


def sql(
    model: options.Model,
    db: options.MaybeDb = None,
    form: Annotated[
        str,
        typer.Option(
            "--as",
            metavar="FORM",
            help="What to print: select, view, table, macro, dbt or dbt-schema.",
            autocompletion=_completed_form,
        ),
    ] = "select",
    dialect: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The engine to write for: duckdb, postgres, sqlite, mysql, clickhouse, "
            "datafusion, polars, spark, bigquery, snowflake, redshift, trino or tsql.",
            autocompletion=_completed_dialect,
        ),
    ] = "duckdb",
    source: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="TABLE", help="The table to score. [default: the training table]"
        ),
    ] = None,
    into: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The view, table or macro that the SQL creates. [default: MODEL_scored]",
        ),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace an existing view, table or macro.")
    ] = False,
    columns: Annotated[
        list[str] | None,
        typer.Option(metavar="A,B", help="The table's columns, if it is not in --db."),
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(metavar="A,B", help="Keep only these columns. [default: all]"),
    ] = None,
    prefix: options.Prefix = "",
    fast: Annotated[
        bool,
        typer.Option("--fast", help="The fastest SQL, for DuckDB only."),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Print SQL even if it is larger than 1 MB.")
    ] = False,
    as_json: options.AsJson = False,
    show_sql: options.ShowSql = False,
) -> None:
    """Print a model as SQL with the same result as score.

    \b
    Example:
      dpforest sql --db data.duckdb --model visits --from new_visits > visits.sql
    """
    from dpforest_duckdb.scoring.dialects import Form
    from dpforest_duckdb.scoring.dialects import dialect as find
    from dpforest_duckdb.scoring.publish import publish_sql

    if form not in get_args(Form):
        raise UsageError(f"--as must be one of {', '.join(get_args(Form))}.")
    if form in ("select", "dbt") and into is not None:
        why = {
            "select": "--into goes with --as view, table or macro: a select creates nothing.",
            "dbt": "A dbt model has the name of its file: leave --into out, or pass it with "
            "--as dbt-schema.",
        }
        raise UsageError(why[form])
    chosen = find(dialect)
    with opening.opened_for_model(db, model, show_sql=show_sql) as (engine, forest):
        table = source or forest.table
        scored, remark = None, None
        if engine is not None and form != "macro":
            scored, remark = _known(engine, table)
        text = publish_sql(
            forest,
            table,
            form=cast(Form, form),
            name=into,
            prefix=prefix,
            scored=scored,
            replace=replace,
            fast=fast,
            dialect=chosen,
            columns=options.column_names("--columns", columns),
            key=options.column_names("--key", key),
            force=force,
        )
    if remark is not None:
        note(remark)
    _check_size(text, force=force, faster=not fast and chosen.name == "duckdb")
    if as_json:
        emit({"model": forest.name, "as": form, "dialect": chosen.name, "sql": text})
    else:
        print(text, end="")


def _check_size(text: str, *, force: bool, faster: bool) -> None:
    """Print the size of a statement; refuse one that is too large for many databases.

    `faster` says that --fast can be added, which makes the SQL shorter.
    """
    size = len(text.encode())
    if size > MAX_BYTES and not force:
        remedy = "add --fast, or pass --force" if faster else "pass --force if yours accepts it"
        raise DpforestError(
            f"The SQL has {size / 1e6:.1f} MB, too much for many databases: {remedy}, or use "
            "dpforest score."
        )
    inform(f"{size / 1000:.0f} KB of SQL")
    if size > WARNED_BYTES:
        warn("Some databases do not accept so much in one statement (Athena: 262 KB).")


def _known(engine: DuckDBEngine, table: str) -> tuple[Scored | None, str | None]:
    """The table if this database has it, or else a remark: in another it may have any columns."""
    from dpforest_duckdb.domain.names import hint

    try:
        return engine.scored(table), None
    except DpforestError:
        known = [each.reference for each in engine.tables(engine.catalog)]
        return None, (
            f'The database has no table "{table}"{hint(table, known)}: the SQL is for one of '
            "that name in another database."
        )
