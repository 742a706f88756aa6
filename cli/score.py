"""dpforest score"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpforest_duckdb.cli import opening, options, written_files
from dpforest_duckdb.cli.output import emit, note, tell, warn_if_not_private
from dpforest_duckdb.cli.progress import shown_status
from dpforest_duckdb.errors import UsageError

if TYPE_CHECKING:
    from dpforest_duckdb.engine.tables.engine import DuckDBEngine
    from dpforest_duckdb.model.forest import Forest


STEP = "scoring rows"


def score(
    db: options.DataDb,
    model: options.Model,
    table: options.MaybeTable = None,
    into: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE|FILE",
            help="The new table, with all rows and columns of --table; for data files the new "
            "file. [required]",
        ),
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace what --into names.")] = False,
    prefix: options.Prefix = "",
    as_json: options.AsJson = False,
    show_sql: options.ShowSql = False,
    threads: options.Threads = None,
    memory_limit: options.MemoryLimit = None,
    temp_dir: options.TempDir = None,
) -> None:
    """Add predictions and probabilities to a table or to data files.

    The rows of a table go to a new table of the same database, those of data files to a new
    Parquet or CSV file: all rows and columns, then `prediction` and one `p_<class>` per class. The
    leaves are found by nested CASE or by bit sets, whichever is faster for the model.

    \b
    Example:
      dpforest score --db data.duckdb --model visits --table new_visits --into scored
    """
    from dpforest_duckdb.domain.names import split_name
    from dpforest_duckdb.scoring.score_sql import fastest_form

    database, rows = opening.rows_of(db, table)
    if into is None:
        new = "table" if isinstance(rows, str) else "file"
        raise UsageError(f"Name the new {new} with --into, or see dpforest sql for a SELECT.")
    with opening.opened(
        database,
        show_sql=show_sql,
        machine=opening.Machine(threads, memory_limit, temp_dir),
    ) as engine:
        if isinstance(rows, str):
            forest, columns = _score_table(engine, model, rows, into, prefix, replace=replace)
            kind, those = "Table", "every row"
        else:
            forest, columns, those = _score_files(
                engine, model, rows, into, prefix, replace=replace
            )
            kind = "File"
    warn_if_not_private(forest)
    form = fastest_form(forest)
    if as_json:
        facts = {"into": into, "model": forest.name, "private": forest.private}
        emit({**facts, "columns": columns, "form": form})
        return
    source = str(rows) if isinstance(rows, Path) else ".".join(split_name(rows))
    scored = f'scored by model "{forest.name}" ({form})'
    tell(f'{kind} "{into}" holds {those} of "{source}", {scored}.')


def _score_files(
    engine: DuckDBEngine, model: str, files: Path, into: str, prefix: str, *, replace: bool
) -> tuple[Forest, list[str], str]:
    """Write a file; gives the forest, the columns of the file, and which rows it has, in words."""
    from dpforest_duckdb.engine.predictions.scored_files import check_format, score_files
    from dpforest_duckdb.engine.sources.files import matched
    from dpforest_duckdb.model.files import Content, replacing
    from dpforest_duckdb.training.opening import find_rows

    forest = opening.file_model(model)
    check_format(into)
    new: Content = "CSV data" if Path(into).suffix == ".csv" else "Parquet data"
    written_files.check_writable(
        into, new, *map(str, matched(files)), model, replace=replace, option="--into"
    )
    found = find_rows(engine.connection, files, engine.trace)
    for remark in found.remarks(forest.domain):
        note(remark)
    with shown_status(STEP), replacing(into, new, replace=replace) as out:
        columns = score_files(
            engine.connection,
            forest,
            files,
            out,
            suffix=Path(into).suffix,
            prefix=prefix,
            trace=engine.trace,
        )
    if not found.in_text:
        return forest, columns, "every row"
    return forest, columns, "every readable row"


def _score_table(
    engine: DuckDBEngine, model: str, table: str, into: str, prefix: str, *, replace: bool
) -> tuple[Forest, list[str]]:
    """Write a table; gives the forest, and the columns of the table."""
    from dpforest_duckdb.engine.predictions.new_tables import refuse_taken
    from dpforest_duckdb.model import store
    from dpforest_duckdb.scoring.publish import publish_sql
    from dpforest_duckdb.scoring.score_sql import added_names

    forest = store.load(engine.models, model)
    scored = engine.scored(table)
    refuse_taken(engine, table, into, replace=replace)
    statement = publish_sql(
        forest,
        form="table",
        name=into,
        prefix=prefix,
        scored=scored,
        replace=replace,
        fast=True,
    )
    with shown_status(STEP):
        engine.run(statement, step="score")
    return forest, [*scored.columns, *added_names(forest, prefix)]
