"""The tables of a Spark session, how to read their rows, and where their budgets are anchored."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from dpforest_duckdb.domain import Domain
from dpforest_duckdb.domain.names import fold, split_name
from dpforest_duckdb.domain.table import TableInfo, columns_changed
from dpforest_duckdb.domain.types import BOOLEAN, ColumnType, column_type
from dpforest_duckdb.engine.base import DeclaredColumn, Engine, StoredRow, Trace
from dpforest_duckdb.engine.spark.snapshot import SparkSnapshot, hashable
from dpforest_duckdb.engine.spark.steps import (
    Frame,
    Session,
    Steps,
    own_steps,
    private_views,
)
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.ledger.anchor import Home, UnanchoredError
from dpforest_duckdb.privacy.unit import PrivacyUnit
from dpforest_duckdb.sql import Sql

PROPERTY = "dpforest.budget"  # the table property with the note on its budget
_HIDDEN = "(redacted)"  # is in what Spark shows instead of a value
_HIDDEN_OPTION = re.compile(r"(multiline|mode|ignore(corrupt|missing)files)=\**\(redacted\)")
# formats in which one row hides no other; text files only if each line is a row
_ROW_BY_ROW = (
    *("parquet", "orc", "avro", "delta", "iceberg", "hudi", "hive", "jdbc"),
    *("csv", "json", "text"),
)
_DETAILS = "# Detailed Table Information"  # the line of DESCRIBE after the columns
_STORED = ("MANAGED", "EXTERNAL")  # the types of tables; there are several types of views
_TYPES = {
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp_ntz": "TIMESTAMP",
}
SPARK_NAMES = {kind: name for name, kind in _TYPES.items()}


class SparkEngine:
    """The tables of one session. Models go to files, because Spark stores none."""

    def __init__(self, session: Session, trace: Trace | None = None) -> None:
        self.session = session
        self.trace = trace
        self.models = NoModels()
        self.steps = Steps(session, trace)

    @property
    def catalog(self) -> str:
        """The session's present catalogue."""
        return str(self.steps.call(self.session.catalog.currentCatalog))

    def table(self, name: str, *, option: str = "--table") -> TableInfo:
        """Resolve `t`, `schema.t` or `catalog.schema.t` to a base table.

        `option` is what gives the name, for errors. Raises `DpforestError` for a missing table, a
        view, or a stream.
        """
        return self.resolved(self.steps.dialect.ident(*split_name(name)), name, option)

    def resolved(self, ident: Sql, name: str, option: str = "--table") -> TableInfo:
        """The base table that a quoted identifier names; `name` and its `option` are for people.

        Raises `DpforestError` for a missing table, a view, a stream, and a table in which one row
        may hide others.
        """
        catalog = self.session.catalog
        try:
            found = self.steps.call(lambda: catalog.getTable(ident))
        except DpforestError:
            raise DpforestError(f'There is no table "{name}" in Spark: check {option}.') from None
        if found.isTemporary or found.tableType not in _STORED:
            raise DpforestError(
                f'"{name}" is a view, and views have no budget: name the table that it reads.'
            )
        where = [*found.namespace, found.name]
        info = TableInfo(found.catalog, ".".join(where[:-1]), found.name, {})
        self._refuse_options(info)
        frame = self.steps.call(lambda: self.frame(info))
        if self.steps.call(lambda: frame.isStreaming):
            raise DpforestError(f'"{name}" is a stream: store its rows in a table first.')
        columns = self.steps.call(lambda: types(frame))
        return replace(info, columns=columns, comment=self.note(info))

    def _refuse_options(self, info: TableInfo) -> None:
        """Raise `DpforestError` for a table in which one row may hide others from Spark.

        A value that cannot be decoded hides the rest of a file that may be corrupt. A quote, or a
        damaged value, hides the lines after it if one row may have several lines.
        """
        rows = self.steps.rows(f"DESCRIBE TABLE EXTENDED {self.ident(info)}")
        details = max((n for n, row in enumerate(rows) if row[0] == _DETAILS), default=0)
        facts = {str(name): str(value).lower() for name, value, *_ in rows[details:]}
        options = facts.get("Storage Properties", "") + facts.get("Table Properties", "")
        if "ignorecorruptfiles=true" in options or "ignoremissingfiles=true" in options:
            raise DpforestError(
                f'Table "{info.display}" ignores corrupt or missing files, so one row may hide '
                "others: set these options to false, or copy its rows to another table."
            )
        kind = facts.get("Provider", "")
        if kind and kind not in _ROW_BY_ROW:
            raise DpforestError(
                f'Table "{info.display}" is of the kind {kind}, in which one row may hide others: '
                "copy its rows to a table of Parquet files."
            )
        if _HIDDEN_OPTION.search(options):
            raise DpforestError(
                f'Spark hides an option of table "{info.display}" that may let one row hide '
                "others: change spark.sql.redaction.options.regex."
            )
        if "multiline=true" in options or "mode=failfast" in options:
            raise DpforestError(
                f'Table "{info.display}" has the option multiLine or the mode FAILFAST, so one row '
                "may hide others or end a run: copy its rows to a table of Parquet files."
            )

    def ident(self, info: TableInfo) -> Sql:
        """The full name of a table, quoted."""
        return self.steps.dialect.ident(info.catalog, *info.schema.split("."), info.name)

    def frame(self, info: TableInfo) -> Frame:
        """All columns of a table. Raises what Spark raises."""
        return whole_files(self.session).table(self.ident(info))

    def fields(self, info: TableInfo) -> list[Any]:
        """The columns of a table, as Spark describes them."""
        return list(self.steps.call(lambda: self.frame(info).schema.fields))

    def fresh(self, session: Session, info: TableInfo) -> Frame:
        """All columns of a table in another session, with rows that others wrote meanwhile."""
        session.catalog.refreshTable(self.ident(info))
        return whole_files(session).table(self.ident(info))

    def seen(self, info: TableInfo) -> TableInfo | None:
        """What has the name of a table now; None for rows that are in no table."""
        return self.resolved(self.ident(info), info.display)

    def note(self, info: TableInfo) -> str:
        """The budget note in a table's properties; "" if there is none.

        Raises `DpforestError` if Spark does not show it: a hidden note may be a budget.
        """
        found: list[tuple[str, str]]
        try:
            found = self.steps.rows(f"SHOW TBLPROPERTIES {self.ident(info)}")
        except DpforestError:
            raise DpforestError(
                f'Spark does not show the properties of table "{info.display}", which keep its '
                "budget: check that this account may read them."
            ) from None
        note = dict(found).get(PROPERTY, "")
        if _HIDDEN in note:
            raise DpforestError(
                f'Spark hides the property {PROPERTY} of table "{info.display}", which keeps its '
                "budget: change spark.sql.redaction.options.regex."
            )
        return note

    def typed(self, table: TableInfo, domain: Domain, unit: PrivacyUnit) -> TableInfo:
        """The table with the columns that a run reads."""
        wanted = {*domain.columns, domain.target, *unit.columns}
        names = {fold(name) for name in wanted}
        read = {name: kind for name, kind in table.columns.items() if fold(name) in names}
        return replace(table, columns=read)

    def tables(self, catalog: str) -> list[TableInfo]:
        """The base tables of a catalogue, with their notes, and without their columns."""
        ident, found = self.steps.dialect.ident, []
        for (schema,) in self.steps.rows(f"SHOW SCHEMAS IN {ident(catalog)}"):
            inside = ident(catalog, *schema.split("."))
            for space, name, temporary in self.steps.rows(f"SHOW TABLES IN {inside}"):
                if not temporary:
                    info = TableInfo(catalog, space, name, {})
                    with contextlib.suppress(DpforestError):  # else known by its name alone
                        info = replace(info, comment=self.note(info))
                    found.append(info)
        return found

    def declared(self, table: TableInfo) -> list[DeclaredColumn]:
        """The types and the comments of columns; JSON in a comment declares a domain."""
        found = []
        for field in self.fields(table):
            kind = type_of(field)
            comment = str((field.metadata or {}).get("comment", ""))
            categories = (False, True) if kind == BOOLEAN else None
            found.append(DeclaredColumn(field.name, kind, field.nullable, comment, categories))
        return found

    def home(self, catalog: str) -> Home:
        """No file: a ledger must be named."""
        return Home("", read_only=False, name=catalog)

    @contextlib.contextmanager
    def stored_comment(self, table: TableInfo) -> Iterator[SparkComment]:
        """A property of a table, which is replaced at the end."""
        comment = SparkComment(self, table)
        yield comment
        comment.commit()

    def refuse_unseen(self, table: TableInfo, columns: Collection[str] = ()) -> None:
        """Raise `DpforestError` for a name that Spark's SQL cannot hold, and for columns whose
        values Spark cannot compare.
        """
        for name in table.columns:
            self.steps.dialect.check_name(name)
        for field in self.fields(table):
            kind = field.dataType.simpleString()
            within = "<" in kind and " collate " in kind  # equal values may have other hashes
            if field.name in columns and (within or not hashable(field)):
                raise DpforestError(
                    f'Column "{field.name}" has a type whose values Spark does not compare: use '
                    "another one."
                )

    def spills_plain(self, table: TableInfo) -> bool:
        """Whether to warn of plain temporary files. No: the cluster decides on their encryption."""
        return False

    def same_rows(self, other: Engine) -> bool:
        """Only if it is this engine: each run reads the rows of its own table or files."""
        return other is self

    def room(self) -> float:
        """Infinite, because it is unknown: the executors spill to their disks."""
        return math.inf

    def bytes_of_a_row(self, stored: StoredRow) -> int:
        """An estimate: 40 bytes, 8 for each column of nodes or scores, 4 for each attribute; twice,
        because the rows are stored again before the old ones are freed.
        """
        attributes = stored.tables[-1].domain.attributes
        return 2 * (40 + 8 * (stored.node_columns + stored.scores) + 4 * len(attributes))

    @contextlib.contextmanager
    def snapshot(self, table: TableInfo, *, shared: bool = False) -> Iterator[SparkSnapshot]:
        """The rows of a table (see `dpforest_duckdb.engine.spark.snapshot`).

        Runs that share a snapshot each read the rows again. Raises `DpforestError` if the table is
        no longer as it was planned.
        """

        def opened() -> Frame:
            self.seen(table)  # a view may have its name now
            frame = self.fresh(steps.session, table)
            found = types(frame)
            if any(found.get(name) != kind for name, kind in table.columns.items()):
                raise columns_changed(f'"{table.display}"')
            return frame

        with own_steps(self.steps) as steps:
            steps.call(opened)  # a table that is not there, or has changed, fails at once
            with private_views(steps) as views:
                yield SparkSnapshot(steps, views, table, opened, partial(self.seen, table))


class SparkComment:
    """The property of a table that carries its budget; it stands for the table's comment."""

    exclusive = False

    def __init__(self, engine: SparkEngine, table: TableInfo) -> None:
        self._engine, self._table = engine, table
        self._written: str | None = None

    def read(self) -> TableInfo:
        """The table as it is now. Raises `DpforestError` if it no longer exists."""
        try:
            return self._engine.resolved(self._engine.ident(self._table), self._table.display)
        except DpforestError:
            raise DpforestError(
                f'Table "{self._table.display}" is no longer in the catalogue.'
            ) from None

    def write(self, text: str) -> None:
        """Replace the property when `commit` is called; now write its present value, as a test.

        Raises `UnanchoredError` if the catalogue stores no properties, or not for this user.
        """
        if self._written is None:
            self._store(self._engine.note(self._table))
        self._written = text

    def commit(self) -> None:
        if self._written is not None:
            self._store(self._written)
        self._written = None

    def _store(self, text: str) -> None:
        """Write the property. Raises `UnanchoredError` if it cannot be written."""
        quoted = self._engine.steps.dialect.text
        try:
            self._engine.steps.rows(
                f"ALTER TABLE {self._engine.ident(self._table)} "
                f"SET TBLPROPERTIES ({quoted(PROPERTY)} = {quoted(text)})"
            )
        except DpforestError:
            raise UnanchoredError(
                f'The properties of table "{self._table.display}", which keep its budget, cannot '
                "be written: use a catalogue that stores them, and an account that may write them."
            ) from None


def types(frame: Frame) -> dict[str, ColumnType]:
    """The types of a DataFrame's columns."""
    return types_of(frame.schema.fields)


def types_of(fields: list[Any]) -> dict[str, ColumnType]:
    """The types of columns, by name. Raises `DpforestError` if two names are one to us."""
    names = [field.name for field in fields]
    if len({fold(name) for name in names}) < len(names):
        raise DpforestError(
            "Two columns of the table differ in the case of letters alone: rename one."
        )
    return {field.name: type_of(field) for field in fields}


def whole_files(session: Session) -> Any:
    """What reads files that must be whole; Spark refuses a table with other options of its own."""
    whole = {"ignoreCorruptFiles": "false", "ignoreMissingFiles": "false"}
    return session.read.options(**whole)


def type_of(field: Any) -> ColumnType:
    """The type of a column, from Spark's description of it."""
    name = field.dataType.simpleString()
    if name.startswith("decimal("):
        return column_type(name.upper())
    return column_type(_TYPES.get(name, name))


class NoModels:
    """Spark stores no models."""

    writable = lasting = False

    def names(self) -> list[str]:
        return []

    def read(self, name: str) -> str:
        return ""

    def write(self, name: str, text: str, *, instead_of: str | None = None) -> None:
        raise DpforestError("Spark stores no models: write them to files.")

    def delete(self, name: str) -> None:
        raise DpforestError("Spark stores no models: there is none to drop.")
