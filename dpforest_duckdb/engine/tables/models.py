"""Models at rest in DuckDB: a table of names and JSON text in the schema `dpforest`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Literal

import duckdb

from dpforest_duckdb.engine.base import NameTakenError
from dpforest_duckdb.engine.connection.statements import Statements
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.scoring.dialects.duckdb import DUCKDB
from dpforest_duckdb.sql import Sql

Opener = Callable[[], AbstractContextManager[duckdb.DuckDBPyConnection]]
_WRITING = threading.Lock()


class DuckDBModels:
    """The models of the database that a connection is in.

    Reads go through the user's connection. A write is one transaction on a connection of its own,
    which `opened` gives. Threads write one after the other: DuckDB refuses all but one of the
    transactions that create the schema at the same time.
    """

    def __init__(self, statements: Statements, opened: Opener) -> None:
        self._statements = statements
        self._opened = opened

    @property
    def writable(self) -> bool:
        return not self._home("readonly")

    @property
    def lasting(self) -> bool:
        return self._home("path") is not None

    def names(self) -> list[str]:
        return self._names(None) if self._exists() else []

    def read(self, name: str) -> str:
        rows = self._statements.run(f"SELECT model FROM {self._table} WHERE name = ?", [name])
        return str(rows[0][0] or "") if rows else ""

    def write(self, name: str, text: str, *, instead_of: str | None = None) -> None:
        self._exists()  # refuses a table of another kind
        table, schema = self._table, DUCKDB.ident(self._database, "dpforest")
        with _WRITING, self._opened() as cursor:
            self._run("BEGIN", cursor)
            self._run(f"CREATE SCHEMA IF NOT EXISTS {schema}", cursor)
            columns = "(name VARCHAR PRIMARY KEY, model VARCHAR)"
            self._run(f"CREATE TABLE IF NOT EXISTS {table} {columns}", cursor)
            taken = {known.casefold() for known in self._names(cursor)}
            if instead_of is not None and instead_of.casefold() in taken:
                change = f"UPDATE {table} SET name = ?, model = ? WHERE name = ?"
                self._run(change, cursor, [name, text, instead_of])
            elif name.casefold() in taken:
                raise NameTakenError(f'There is a model "{name}" already: choose another name.')
            else:
                self._run(f"INSERT INTO {table} VALUES (?, ?)", cursor, [name, text])
            self._run("COMMIT", cursor)

    def delete(self, name: str) -> None:
        self._statements.run(f"DELETE FROM {self._table} WHERE name = ?", [name])

    @property
    def _database(self) -> str:
        return str(self._statements.run("SELECT system.main.current_database()")[0][0])

    @property
    def _table(self) -> Sql:
        return DUCKDB.ident(self._database, "dpforest", "models")

    def _home(self, fact: Literal["readonly", "path"]) -> Any:
        """A fact about the connection's current database."""
        found = self._statements.run(
            f"SELECT {fact} FROM system.main.duckdb_databases() "
            "WHERE database_name = system.main.current_database()"
        )
        return found[0][0]

    def _run(self, sql: str, cursor: duckdb.DuckDBPyConnection | None, values: Any = None) -> Any:
        return self._statements.run(sql, values, on=cursor)

    def _names(self, cursor: duckdb.DuckDBPyConnection | None) -> list[str]:
        found = self._run(f"SELECT name FROM {self._table} ORDER BY name ASC", cursor)
        return [name for (name,) in found]

    def _exists(self) -> bool:
        """Whether there is a table of models.

        Raises `DpforestError` for another table of its name.
        """
        found = self._statements.run(
            "SELECT column_name, data_type IN ('VARCHAR', 'JSON') AND table_oid IN "
            "(SELECT table_oid FROM system.main.duckdb_tables() "
            "WHERE database_name = system.main.current_database()) "
            "FROM system.main.duckdb_columns() "
            "WHERE database_name = system.main.current_database() "
            "AND system.main.lower(schema_name) = 'dpforest' "
            "AND system.main.lower(table_name) = 'models' ORDER BY column_index ASC"
        )
        if found not in ([], [("name", True), ("model", True)]):
            raise DpforestError(
                '"dpforest"."models" is not a table of models: rename what is there.'
            )
        return bool(found)
