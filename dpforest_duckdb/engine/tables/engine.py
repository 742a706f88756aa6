"""DuckDB as the engine: the catalogue of one connection, and the way to its rows."""

from __future__ import annotations

import contextlib
import functools
import shlex
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import duckdb

from dpforest_duckdb.domain import Domain
from dpforest_duckdb.domain.names import fold, hint, spellings, split_name
from dpforest_duckdb.domain.table import TableInfo, quoted_name
from dpforest_duckdb.domain.types import column_type, column_types
from dpforest_duckdb.engine.base import DeclaredColumn, Engine, StoredRow, Trace
from dpforest_duckdb.engine.connection.connect import CATALOG
from dpforest_duckdb.engine.connection.statements import (
    Statements,
    current_settings,
    second_connection,
)
from dpforest_duckdb.engine.connection.temp_space import bytes_of_a_row, room
from dpforest_duckdb.engine.tables.constraints import declared_by_checks
from dpforest_duckdb.engine.tables.models import DuckDBModels
from dpforest_duckdb.engine.tables.snapshot import DuckDBSnapshot, new_cursor, taken
from dpforest_duckdb.errors import BudgetError, DpforestError, UsageError
from dpforest_duckdb.ledger.anchor import Home
from dpforest_duckdb.privacy.unit import PrivacyUnit
from dpforest_duckdb.scoring.score_sql import Scored

COLUMNS = (
    "SELECT column_index, column_name, data_type, is_generated FROM system.main.duckdb_columns() "
    "WHERE database_name = ? AND schema_name = ? AND table_name = ?"
)

LISTED = (
    "SELECT database_name, schema_name, table_name, temporary, comment, 'table' "
    "FROM system.main.duckdb_tables() UNION ALL "
    "SELECT database_name, schema_name, view_name, temporary, NULL, 'view' "
    "FROM system.main.duckdb_views() WHERE NOT internal"
)


@dataclass(frozen=True)
class Listed:
    """A table or a view, by LISTED."""

    catalog: str
    schema: str
    name: str
    temporary: bool
    comment: str | None
    kind: str

    @property
    def key(self) -> tuple[str, str, str]:
        return self.catalog, self.schema, self.name

    @property
    def spellings(self) -> list[list[str]]:
        """The spellings of its name, in lower case; `catalog.name` means the main schema."""
        full = [fold(name) for name in self.key]
        short = [[full[0], full[2]]] if full[1] == "main" else []
        return [full, full[1:], full[2:], *short]


@dataclass(frozen=True)
class _Database:
    """An attached database: its kind, its file ("" in memory), and how it is opened."""

    kind: str
    path: str
    read_only: bool
    encrypted: bool


class DuckDBEngine(Statements):
    """The catalogue of one connection, the rows of its tables, and its models."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, trace: Trace | None = None) -> None:
        super().__init__(connection, trace)
        self._databases: dict[str, _Database] = {}

    @property
    def models(self) -> DuckDBModels:
        """The store of models; made anew, since a cycle of references would keep the connection."""
        return DuckDBModels(self, self._cursor)

    @contextlib.contextmanager
    def _cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection of our own; uncommitted changes are rolled back at the end."""
        with contextlib.closing(new_cursor(self)) as cursor:
            yield cursor

    @property
    def catalog(self) -> str:
        """The name of the connection's database."""
        return str(self.run("SELECT system.main.current_database()")[0][0])

    def table(self, name: str, *, option: str = "--table") -> TableInfo:
        """Resolve a table name (`t`, `schema.t` or `catalog.schema.t`) to a base table.

        `option` is what gives the name, for errors. Raises `DpforestError` for a missing or
        ambiguous table, a view, a table in the schema of the models, or a base table with a
        temporary table of the same name.
        """
        parts = split_name(name)
        found = self.run(
            "SELECT system.main.current_database(), system.main.current_schema(), "
            f"system.main.current_setting('search_path'), NULL, NULL, 'session' UNION ALL {LISTED}"
        )
        ((home, path, search, *_),) = (row for row in found if row[5] == "session")
        known = [Listed(*row) for row in found if row[5] != "session"]
        wanted = [fold(part) for part in parts]
        matches = [each for each in known if wanted in each.spellings]
        if len(parts) == 1 and "," not in search:  # else a query may mean one of any schema
            places = [(home, path), (home, "main")]
            matches = [m for m in matches if m.temporary or (m.catalog, m.schema) in places]
        if any(each.temporary for each in matches) and len(matches) > 1:
            raise DpforestError(
                f'"{name}" is hidden by a temporary table or view of the same name: drop that one.'
            )
        if not matches:
            raise self._missing(name, [each.key for each in known], option)
        if len(matches) > 1:
            raise DpforestError(f'"{name}" names several tables: write schema.table.')
        (match,) = matches
        if match.kind == "view":
            raise DpforestError(
                f'"{name}" is a view, and views have no budget: name the table that it reads, '
                "or in Python pass the DataFrame or the query itself, with the name of a dataset."
            )
        if fold(match.schema) == "dpforest":
            raise DpforestError(f'"{name}" is in the schema of the models: name a table of yours.')
        if match.temporary:
            raise DpforestError(f'"{name}" is a temporary table: store it as a table first.')
        self._refuse_foreign(name, match.catalog)
        return self._info(*match.key, match.comment)

    def _refuse_foreign(self, name: str, catalog: str) -> None:
        """Refuse a table of PostgreSQL, MySQL or DuckLake, where a budget cannot be anchored."""
        kind = self._database(catalog).kind
        if kind != "duckdb":
            raise DpforestError(
                f'"{name}" is in a {kind} database, which cannot keep a budget: train on a query '
                "of it in Python, such as con.sql('FROM …'), with a dataset."
            )

    def _info(
        self,
        catalog: str,
        schema: str,
        name: str,
        comment: str | None,
        on: duckdb.DuckDBPyConnection | None = None,
    ) -> TableInfo:
        columns = self.run(COLUMNS, [catalog, schema, name], on=on)
        return _table_info((catalog, schema, name), comment, columns)

    def typed(self, table: TableInfo, domain: Domain, unit: PrivacyUnit) -> TableInfo:
        return table

    def tables(self, catalog: str) -> list[TableInfo]:
        with self._cursor() as cursor:
            return self.tables_seen_by(cursor, catalog)

    def tables_seen_by(
        self, connection: duckdb.DuckDBPyConnection, catalog: str
    ) -> list[TableInfo]:
        """The base tables of a database, by name, as a connection sees them in its transaction; no
        macro of the database can hide one.
        """
        found = self.run(
            "SELECT schema_name, table_name, comment FROM system.main.duckdb_tables() "
            "WHERE NOT internal AND NOT temporary AND database_name = ? "
            "AND system.main.lower(schema_name) <> 'dpforest' "
            "ORDER BY schema_name ASC, table_name ASC",
            [catalog],
            on=connection,
        )
        return [
            self._info(catalog, schema, name, comment, connection)
            for schema, name, comment in found
        ]

    def table_seen_by(self, connection: duckdb.DuckDBPyConnection, table: TableInfo) -> TableInfo:
        """A table as a connection sees it in its transaction.

        Raises `DpforestError` if it no longer exists, or if its database is another one now.
        """
        self._refuse_attached_again(connection, table)
        found = self.run(
            f"{COLUMNS} UNION ALL SELECT NULL, comment, NULL, NULL "
            "FROM system.main.duckdb_tables() WHERE NOT temporary "
            "AND database_name = ? AND schema_name = ? AND table_name = ?",
            [*table.key, *table.key],
            on=connection,
        )
        comments = [row[1] for row in found if row[0] is None]
        if not comments:
            raise DpforestError(f'Table "{table.display}" is no longer in the database.')
        return _table_info(table.key, comments[0], [row for row in found if row[0] is not None])

    def declared(self, table: TableInfo) -> list[DeclaredColumn]:
        """What types and CHECKs declare of each column; the type takes precedence."""
        facts = self.run(
            "SELECT column_name, data_type, is_nullable, comment FROM system.main.duckdb_columns() "
            "WHERE database_name = ? AND schema_name = ? AND table_name = ? "
            "ORDER BY column_index ASC",
            list(table.key),
        )
        checks = declared_by_checks(self, table)
        found = []
        for name, sql_type, nullable, comment in facts:
            kind = column_type(sql_type)
            stated = checks.get(fold(name), {})
            if kind.listed is not None:
                stated = {**stated, "categories": kind.listed}
            found.append(DeclaredColumn(name, kind, bool(nullable), comment or "", **stated))
        return found

    def home(self, catalog: str) -> Home:
        """The file of a database, and whether it is opened for reading only."""
        database = self._database(catalog)
        name = "" if catalog == CATALOG else catalog
        return Home(database.path, database.read_only, name)

    def _database(self, catalog: str) -> _Database:
        """What does not change while a database is attached, read once."""
        if catalog not in self._databases:
            with self._cursor() as cursor:
                self._databases[catalog] = self._attached(cursor, catalog)[0]
        return self._databases[catalog]

    def _attached(self, connection: duckdb.DuckDBPyConnection, catalog: str) -> list[_Database]:
        """The database that has a name now, in a list that is empty if none has."""
        found = self.run(
            "SELECT type, path, readonly, encrypted FROM system.main.duckdb_databases() "
            "WHERE database_name = ?",
            [catalog],
            on=connection,
        )
        return [
            _Database(kind, path or "", bool(read_only), bool(encrypted))
            for kind, path, read_only, encrypted in found
        ]

    def _refuse_attached_again(
        self, connection: duckdb.DuckDBPyConnection, table: TableInfo
    ) -> None:
        """Raise `DpforestError` if the name of the table's database now means another database.

        Its tables have budgets in another ledger, and their places would be looked up in this one.
        """
        known = self._databases.get(table.catalog)
        if known is not None and [known] != self._attached(connection, table.catalog):
            raise DpforestError(
                f'The database "{table.catalog}" of table "{table.display}" was detached, or '
                "attached again in another way, since the run was planned: plan it again."
            )

    @contextlib.contextmanager
    def stored_comment(self, table: TableInfo) -> Iterator[DuckDBComment]:
        """A table's comment, read and replaced in one transaction, committed at the end."""
        with self._cursor() as cursor:
            comment = DuckDBComment(self, cursor, table)
            yield comment
            comment.commit()

    def refuse_unseen(self, table: TableInfo, columns: Collection[str] = ()) -> None:
        """Raise `DpforestError` while the user's connection has an open transaction, and for
        computed columns that need a macro or a sequence, or that are random.
        """
        self.refuse_transaction()
        computed = sorted(table.computed.intersection(columns))
        if not computed:
            return
        with self._cursor() as cursor:
            for column in computed:
                try:  # plans the statement, and reads no row
                    self.run(f"EXPLAIN SELECT * FROM {self.rows_of(table, [column])}", on=cursor)
                except DpforestError:
                    raise DpforestError(
                        f'Column "{column}" of table "{table.display}" is computed by a macro, by '
                        "a sequence or at random: store its values in an ordinary column."
                    ) from None

    def refuse_transaction(self) -> None:
        """Raise `DpforestError` while the user's connection has an open transaction.

        Two statements then have the same transaction number. Without an open transaction each
        statement is a transaction with a new number.
        """
        numbers = [self.run("SELECT system.main.txid_current()") for _ in range(2)]
        if numbers[0] == numbers[1]:
            raise DpforestError(
                "The connection has an open transaction, and a run does not see what it changed: "
                "COMMIT or ROLLBACK first."
            )

    def same_rows(self, other: Engine) -> bool:
        """Whether both read through one connection."""
        return isinstance(other, DuckDBEngine) and other.connection is self.connection

    def room(self) -> float:
        """Bytes of memory plus the disk that DuckDB may use for temporary files."""
        found: float = self.call(lambda: room(self.connection))
        return found

    def bytes_of_a_row(self, stored: StoredRow) -> int:
        """The most bytes of a row (see `dpforest_duckdb.engine.connection.temp_space`)."""
        return bytes_of_a_row(stored)

    def spills_plain(self, table: TableInfo) -> bool:
        """Whether a database is encrypted, but its temporary files are not: DuckDB's default."""
        if not self._database(table.catalog).encrypted:
            return False
        return not self.run(current_settings("temp_file_encryption"))[0][0]

    def scored(self, name: str) -> Scored:
        """A table or view to score, with its columns. Raises `DpforestError` if there is none.

        Scoring is not private, so views, temporary and attached tables are allowed.
        """
        ident = self.dialect.ident(*split_name(name))
        try:
            rows = self.run(f"DESCRIBE SELECT * FROM {ident}")
        except DpforestError:
            tables = self.run(
                "SELECT database_name, schema_name, table_name FROM system.main.duckdb_tables()"
            )
            raise self._missing(name, tables) from None
        return Scored(ident, column_types({row[0]: row[1] for row in rows}))

    def _missing(
        self, name: str, tables: Sequence[Sequence[str]], option: str = "--table"
    ) -> DpforestError:
        """The error for a table that is not there; `tables` are full names of those that are.

        A dot in a name needs quotes, and a table of another schema or database its full name.
        """
        *schema, last = map(fold, split_name(name))
        alike = [table for table in tables if fold(table[2]) == last]
        alike.sort(key=lambda table: fold(table[1]) not in schema)
        full = [quoted_name(*table) for table in alike]
        spelt = spellings(table[2] for table in tables)
        if "." in name and fold(name) in spelt:
            remedy = f"put its name in double quotes, {option} '{quoted_name(name)}'"
        elif full:
            remedy = f"write {option} {shlex.quote(full[0])}"
        else:
            near = hint(name, spelt.values())
            return DpforestError(
                f'There is no table "{name}"{near} in the database: check {option}.'
            )
        return DpforestError(f'There is no table "{name}" in the database: {remedy}.')

    @contextlib.contextmanager
    def snapshot(self, table: TableInfo, *, shared: bool = False) -> Iterator[DuckDBSnapshot]:
        """The rows of a table at this moment (see `dpforest_duckdb.engine.tables.snapshot`)."""
        found = functools.partial(self.table_seen_by, table=table)
        with taken(self, table, found, shared=shared) as snapshot:
            yield snapshot


class DuckDBComment:
    """The comment of a table, in a transaction on a connection of our own."""

    exclusive = True

    def __init__(
        self, engine: DuckDBEngine, cursor: duckdb.DuckDBPyConnection, table: TableInfo
    ) -> None:
        self._engine = engine
        self._cursor = cursor
        self._table = table
        engine.run("BEGIN", on=cursor)

    def read(self) -> TableInfo:
        """The table as it is now. Raises `DpforestError` if it no longer exists."""
        return self._engine.table_seen_by(self._cursor, self._table)

    def write(self, text: str) -> None:
        """Replace the comment. Raises `BudgetError` while another transaction changes the table."""
        dialect, table = self._engine.dialect, self._table
        name = dialect.ident(*table.key)
        try:
            self._engine.run(f"COMMENT ON TABLE {name} IS {dialect.text(text)}", on=self._cursor)
        except DpforestError:
            raise BudgetError(
                f'The comment of table "{table.display}", which keeps its budget, cannot be '
                "written: another transaction is changing the table; end that one, then try again."
            ) from None

    def commit(self) -> None:
        self._engine.run("COMMIT", on=self._cursor)


def _table_info(
    key: tuple[str, str, str],
    comment: str | None,
    columns: Sequence[tuple[int, str, str, bool]],
) -> TableInfo:
    """A table by its full name, its comment, and its columns by COLUMNS in any order."""
    columns = sorted(columns)
    types = {column: column_type(sql_type) for _, column, sql_type, _ in columns}
    computed = frozenset(column for _, column, _, generated in columns if generated)
    return TableInfo(*key, types, comment or "", computed)


def checked_connection(con: object) -> duckdb.DuckDBPyConnection:
    """The same connection. Raises `UsageError` for what is no open one, such as a path."""
    if not isinstance(con, duckdb.DuckDBPyConnection):
        raise UsageError(
            "con must be a DuckDB connection or a Spark session: a path of a database is opened "
            "with duckdb.connect(path)."
        )
    second_connection(con).close()
    return con
