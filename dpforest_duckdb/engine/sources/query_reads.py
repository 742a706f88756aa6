"""What a query of the user's connection reads, and whether it may.

DuckDB's parser and its plan say so; no row is read. Where they do not say, the query counts as one
that reads whatever it could, or is refused.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import duckdb

from dpforest_duckdb.domain.table import TableInfo
from dpforest_duckdb.engine.connection.statements import current_settings
from dpforest_duckdb.engine.sources.parquet_folders import refuse_any_folders
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.scoring.dialects.duckdb import DUCKDB

# table functions that read no table of DuckDB; others may, as json_execute_serialized_sql does
_NO_TABLE = {"range", "generate_series", "unnest", "json_each", "json_tree"}
_NO_TABLE |= {"read_parquet", "read_csv", "read_csv_auto"}
# table functions that may read the file of a database
_UNSEEN = {"READ_DUCKDB", "JSON_EXECUTE_SERIALIZED_SQL"}
# what queries may read: tables, and functions whose columns have types that no value decides about;
# the stored result of another query (CHUNK_GET) is refused with a sentence of its own
_TYPED = {
    *("SEQ_SCAN", "TABLE_SCAN", "INDEX_SCAN", "CTE_SCAN", "DELIM_SCAN", "DELIM_GET", "CHUNK_GET"),
    *("COLUMN_DATA_SCAN", "DUMMY_SCAN", "EMPTY_RESULT", "PARQUET_SCAN", "READ_PARQUET"),
    *("RANGE", "GENERATE_SERIES", "REPEAT", "UNNEST", "JSON_EACH", "JSON_TREE"),
    "DUCKDB_TABLE_SAMPLE",
}
# leaves of a plan that read no table: of files alone, DuckDB does not serialise the plan
_NO_TABLES = {"READ_PARQUET", "PARQUET_SCAN", "RANGE", "GENERATE_SERIES", "DUMMY_SCAN"}
# objects of Python; what reads tables of other systems ends in _SCAN too
_OBJECTS = {"PANDAS_SCAN", "ARROW_SCAN", "PYTHON_ARROW_SCAN"}
_NOWHERE: dict[str, list[str]] = {"path": []}


def scanned_table(engine: DuckDBEngine, relation: duckdb.DuckDBPyRelation) -> TableInfo | None:
    """The base table of which a query reads all and nothing else, or None."""
    parsed = _parsed(engine, relation.sql_query())
    try:
        path = parsed["from_table"]["qualified_name"]["path"]
    except (KeyError, TypeError):
        return None
    name = DUCKDB.ident(*path)
    if parsed != _parsed(engine, f"SELECT * FROM {name}"):
        return None
    with contextlib.suppress(DpforestError):  # a view, or a DataFrame
        return engine.table(name)
    return None


def read_tables(engine: DuckDBEngine, relation: duckdb.DuckDBPyRelation) -> list[TableInfo]:
    """The base tables that a query reads, through views and macros too.

    Where DuckDB cannot say, because the query calls a table function that may read tables or reads
    files beside tables, or because the session has variables, these are all tables of all databases
    of the connection.

    Raises `DpforestError` if the query reads the file of a database that is not attached, or the
    stored result of another query, which may come from such a file.
    """
    scans = _scans(engine, relation)
    if scans is None and _reads_files_alone(engine, relation):
        return []
    databases = engine.run(
        "SELECT database_name FROM system.main.duckdb_databases() WHERE NOT internal"
    )
    user = engine.connection  # the query sees what the user's transaction sees
    tables = [table for (name,) in databases for table in engine.tables_seen_by(user, name)]
    if scans is None or not all(map(_is_plain, scans)):
        return tables
    read = set(map(_place, scans))
    return [table for table in tables if table.key in read]


def is_read(engine: DuckDBEngine, relation: duckdb.DuckDBPyRelation, key: tuple[str, ...]) -> bool:
    """Whether DuckDB's plan of a query shows that it reads a table: database, schema and name."""
    return key in map(_place, _scans(engine, relation) or [])


def _place(scan: dict[str, Any]) -> tuple[str, ...]:
    """Database, schema and name of the table that a scan reads; nothing if it reads none."""
    return tuple(scan.get("function_data", {}).get("qualified_name", _NOWHERE)["path"])


def _reads_files_alone(engine: DuckDBEngine, relation: duckdb.DuckDBPyRelation) -> bool:
    """Whether a query reads Parquet files and no table, as far as DuckDB's whole plan says."""
    if _is_locked(engine) or _has_variables(engine):
        return False
    return _functions(engine, relation.sql_query(), locked=False) <= _NO_TABLES


def _is_locked(engine: DuckDBEngine) -> bool:
    """Whether the settings of the connection are locked."""
    return bool(engine.run(current_settings("lock_configuration"))[0][0])


def _has_variables(engine: DuckDBEngine) -> bool:
    """Whether the session has variables, which may hold rows."""
    return bool(engine.run("SELECT name FROM system.main.duckdb_variables() LIMIT 1"))


def reads_files(engine: DuckDBEngine, relation: duckdb.DuckDBPyRelation) -> bool:
    """Whether a query may read something else than tables of the connection's databases."""
    scans = _scans(engine, relation)
    return scans is None or any(scan["qname"]["path"] != ["seq_scan"] for scan in scans)


def _scans(engine: DuckDBEngine, relation: duckdb.DuckDBPyRelation) -> list[dict[str, Any]] | None:
    """What a query reads, by DuckDB's plan before it is optimised; None if that does not say.

    It does not if the session has variables, which may hold rows. The optimised plan leaves out
    what the statistics of the rows exclude, which is private.

    Raises `DpforestError` for the stored result of another query, which may come from anywhere.
    """
    plan = engine.run("SELECT system.main.json_serialize_plan(?)", [relation.sql_query()])[0][0]
    found: list[dict[str, Any]] = []
    stored: list[object] = []

    def note(node: dict[str, Any]) -> dict[str, Any]:
        if node.get("type") == "LOGICAL_GET":
            found.append(node)
        if node.get("type") == "LOGICAL_CHUNK_GET":
            stored.append(node)
        return node

    try:
        whole = json.loads(plan, object_hook=note)
    except RecursionError:
        return None
    if stored:
        raise DpforestError(
            "The query is the stored result of another one, and what that read is not seen: give "
            "the query itself, without EXECUTE, RETURNING or materialize()."
        )
    return None if whole["error"] or _has_variables(engine) else found


def refuse_unreadable(engine: DuckDBEngine, relation: duckdb.DuckDBPyRelation) -> None:
    """Raise `DpforestError` if a query reads what it must not.

    These are the file of a database that is not attached, and whatever has columns whose types may
    follow from the values: then one row may change how all are read.
    """
    sql = engine.call(relation.sql_query)
    if _has_parameters(engine, sql):
        raise DpforestError(
            "The query has parameters, so DuckDB does not say what it reads: write their values "
            "into the query."
        )
    locked = _is_locked(engine)
    read = _functions(engine, sql, locked=locked)
    if read & _UNSEEN:
        raise DpforestError(
            "The query reads the file of a database, whose budgets are not seen then: ATTACH the "
            "file, and read its tables."
        )
    guessed = {
        name
        for name in read - _TYPED
        if name in _OBJECTS or not name.endswith("_SCAN")  # which reads another system's table
    }
    if guessed:
        raise DpforestError(
            f"The query reads {min(guessed).lower()}, whose types may follow from the values, so "
            "one row may change how all are read: pass a CSV file as a pathlib.Path and a "
            "DataFrame itself, or load the rows into a table with declared types."
        )
    if read & {"READ_PARQUET", "PARQUET_SCAN"}:
        refuse_any_folders(engine, sql)
    if locked and reads_files(engine, relation):
        raise DpforestError(
            "The settings of the connection are locked, so DuckDB does not say what the query "
            "reads: give a query of tables alone, or do not set lock_configuration."
        )


def _functions(engine: DuckDBEngine, sql: str, *, locked: bool) -> set[str]:
    """What a query reads from, in capitals, by DuckDB's plan before it is optimised.

    The plan is that of the user's connection, where the names mean what they mean in the query. If
    settings are locked, it is the optimised plan, which may leave out what has no rows.

    Raises `DpforestError` for a query that is too deeply nested.
    """
    (shown,) = engine.run(current_settings("explain_output"))[0]
    try:
        if not locked:
            engine.run("SET explain_output = 'all'")
        plans = dict(engine.run(f"EXPLAIN (FORMAT json) {sql}"))
    finally:
        if not locked:
            engine.settle(f"SET explain_output = '{shown}'")
    try:
        plan = json.loads(plans.get("logical_plan") or plans["physical_plan"])
        return set(_leaves(plan if isinstance(plan, list) else [plan]))
    except RecursionError:
        raise DpforestError(
            "The query is too deeply nested to see what it reads: store parts of it in tables."
        ) from None


def _has_parameters(engine: DuckDBEngine, sql: str) -> bool:
    """Whether a query may have parameters, whose values its text does not have."""
    return '"PARAMETER"' in engine.parse_tree(sql)


def _leaves(nodes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The names of the nodes of a plan that have no children: what it reads from."""
    for node in nodes:
        if node["children"]:
            yield from _leaves(node["children"])
        else:
            yield str(node["name"]).strip().upper()


def _is_plain(scan: dict[str, Any]) -> bool:
    """Whether a scan is of the table that it names, or of no table of DuckDB."""
    name = scan["qname"]["path"][-1]
    return name in _NO_TABLE or name.endswith("_scan")  # also of databases of other systems


def _parsed(engine: DuckDBEngine, sql: str) -> Any:
    """What a query asks for, without the places of words in its text; None for several."""
    try:
        statements = json.loads(engine.parse_tree(sql), object_hook=_unplaced)["statements"]
    except (KeyError, ValueError, RecursionError):
        return None
    return statements[0]["node"] if len(statements) == 1 else None


def _unplaced(node: dict[str, Any]) -> dict[str, Any]:
    named = {"table_name", "schema_name", "catalog_name"}  # repeat the qualified name
    return {k: v for k, v in node.items() if "query_location" not in k and k not in named}
