"""The names of new tables in a DuckDB database: which are taken."""

from __future__ import annotations

from dpforest_duckdb.domain.names import fold, split_name
from dpforest_duckdb.engine.sources.files import CSV, PARQUET
from dpforest_duckdb.engine.sources.query_reads import is_read
from dpforest_duckdb.engine.tables.engine import LISTED, DuckDBEngine, Listed
from dpforest_duckdb.errors import DpforestError, UsageError
from dpforest_duckdb.ledger.note import has_note
from dpforest_duckdb.scoring.dialects.duckdb import DUCKDB


def refuse_taken(engine: DuckDBEngine, table: str, into: str, *, replace: bool) -> None:
    """Refuse to write the scores of `table` into a name that is taken, before any work.

    A table with a budget is never replaced. Raises `DpforestError` or `UsageError`.
    """
    if not engine.models.writable:
        raise DpforestError("The database is read-only: print the SELECT with dpforest sql.")
    *path, name = split_name(into)
    if not name or len(path) > 1:
        raise UsageError(_of_file(into) or "--into must be a table name or schema.table.")
    present = engine.run("SELECT system.main.current_schema()")[0][0]
    schema = path[0] if path else present
    wanted = [engine.catalog, fold(schema), fold(name)]
    known = [Listed(*row) for row in engine.run(LISTED)]
    found = [old for old in known if [old.catalog, fold(old.schema), fold(old.name)] == wanted]
    if fold(schema) == "dpforest":
        raise DpforestError('The schema "dpforest" is for models: choose another --into.')
    if not found:
        _refuse_no_schema(engine, schema, into)
        return
    old = found[0]
    if not replace:
        raise DpforestError(
            f'There is a {old.kind} "{into}" already: choose another --into or pass --replace.'
        )
    if old.kind == "view":
        raise DpforestError(
            f'"{into}" is a view, and --replace replaces tables only: choose another --into.'
        )
    scored = [fold(part) for part in split_name(table)]
    if len(scored) == 1:  # then of the present schema, or of main
        scored = [fold(schema) if fold(schema) in (fold(present), "main") else "", *scored]
    query = f"SELECT * FROM {engine.dialect.ident(*split_name(table))}"
    rows = engine.call(lambda: engine.connection.sql(query))
    if scored in old.spellings or is_read(engine, rows, old.key):
        raise DpforestError(f'"{into}" may be the table that is scored: choose another --into.')
    if has_note(old.comment or ""):
        raise DpforestError(f'Table "{into}" has a privacy budget: choose another --into.')


def _refuse_no_schema(engine: DuckDBEngine, schema: str, into: str) -> None:
    """Refuse the schema of a new table that is not in the database; a file's name has one too."""
    schemas = engine.run(
        "SELECT schema_name FROM system.main.duckdb_schemas() "
        "WHERE database_name = system.main.current_database()"
    )
    if fold(schema) not in {fold(row[0]) for row in schemas}:
        if of_file := _of_file(into):
            raise UsageError(of_file)
        raise DpforestError(f'There is no schema "{schema}" in the database: check --into.')


def _of_file(into: str) -> str:
    """What to do in place of naming a file; "" for a name that is no data file's."""
    if not into.casefold().endswith((*PARQUET, *CSV)):
        return ""
    return (
        "--into names a file, but the rows of a table go to a table: name a new table, and then "
        f"export that in DuckDB with COPY … TO {DUCKDB.text(into)}."
    )
