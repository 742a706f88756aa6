"""Rows that are in no table of a database: files, DataFrames and queries, as one more engine.

What a column is read as comes from the domain, or from the schema of the file where it has one,
never from the values: one private row must not turn a number into text. What cannot be cast is
NULL.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Protocol

import duckdb
import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.names import fold, spellings
from dpforest_duckdb.domain.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    TIMESTAMP,
    VARCHAR,
    ColumnType,
    column_type,
    column_types,
)
from dpforest_duckdb.engine.base import (
    CodedTable,
    Coding,
    DeclaredColumn,
    Engine,
    ModelStore,
    Outcomes,
)
from dpforest_duckdb.engine.duckdb import DuckDBEngine
from dpforest_duckdb.engine.rows import DuckDBRows
from dpforest_duckdb.engine.snapshot import DuckDBSnapshot
from dpforest_duckdb.engine.statements import Statements
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.ledger.anchor import BudgetNote, Home, TableInfo
from dpforest_duckdb.privacy.unit import PrivacyUnit
from dpforest_duckdb.scoring.codes import DuckDBDialect
from dpforest_duckdb.scoring.content import ForestContent
from dpforest_duckdb.sql import Sql

_NUMBERS = ("integer", "decimal", "float", "boolean")
_WIDEST = {  # what the numeric columns of a model are read as
    "integer": BIGINT,
    "decimal": DOUBLE,
    "float": DOUBLE,
    "date": DATE,
    "timestamp": TIMESTAMP,
}
FEW_VALUES = 32  # with fewer whole numbers between the bounds, rounding loses much of a fraction
_WHOLE = 2**53  # whole numbers up to this are exact as DOUBLE


@dataclass(frozen=True)
class ReadableRows:
    """A database that the rows can be read in.

    `fill` makes them readable under the name of the table, by reading them once or by a view.
    """

    statements: Statements
    cursor: duckdb.DuckDBPyConnection
    fill: Callable[[], None]


class Source(Protocol):
    """Rows that are in no table.

    `columns` are the names and the types as DuckDB reads them. `schema` says that the types are
    declared where the rows are, as in a Parquet file, `by_values` that they follow from the values,
    as in a DataFrame. `catalog` is the database that they are read in. `in_transaction` says that
    they are read in a transaction of the user's connection, which can have one only.
    """

    @property
    def name(self) -> str: ...

    @property
    def catalog(self) -> str: ...

    @property
    def columns(self) -> Mapping[str, str]: ...

    @property
    def schema(self) -> bool: ...

    @property
    def by_values(self) -> bool: ...

    @property
    def in_transaction(self) -> bool: ...

    def opened(self, table: TableInfo) -> AbstractContextManager[ReadableRows]:
        """A database with the columns of `table` in the types of `table`; gone at the end."""


class SourceEngine:
    """An engine for rows that are in no table. Models are stored in the user's database."""

    def __init__(self, source: Source, user: DuckDBEngine) -> None:
        self.source = source
        self._user = user

    @property
    def models(self) -> ModelStore:
        return self._user.models

    @property
    def database(self) -> str:
        """The file of the user's database; "" if it is in memory."""
        path = (
            "SELECT path FROM system.main.duckdb_databases() "
            "WHERE database_name = current_database()"
        )
        return str(self._user.run(path)[0][0] or "")

    def table(self, name: str) -> TableInfo:
        """The rows as a table; there is one, so its name is not looked up."""
        return TableInfo(self.source.catalog, "main", name, column_types(self.source.columns))

    def typed(self, table: TableInfo, domain: Domain, unit: str | None) -> TableInfo:
        """The table with the columns that a run reads, in the types that they are read as.

        Raises `DpforestError` for a type that is no attribute's, or no privacy unit's.
        """
        found = spellings(table.columns)
        label = Attribute(domain.target, "categorical", domain.classes)
        columns: dict[str, ColumnType] = {}
        for attribute in (*domain.attributes, label):
            name = found.get(fold(attribute.column), "")
            if name:
                stored = table.columns[name]
                columns[name] = self._type(attribute, stored, is_label=attribute is label)
        name = found.get(fold(unit or domain.privacy_unit or ""), "")
        if name and self.source.by_values and table.columns[name].family == "float":
            raise DpforestError(
                f'The privacy unit "{name}" is a column of floating-point numbers, as pandas makes '
                'of whole numbers if one is missing: convert it to "Int64" or to text.'
            )
        if name and columns.get(name, _plain(table.columns[name])) != _plain(table.columns[name]):
            raise DpforestError(
                f'The privacy unit "{name}" is an attribute too, and read as {columns[name].base}, '
                "which may make one unit of several: leave it out of the attributes."
            )
        if name:
            columns[name] = _plain(table.columns[name])
        name = found.get(fold(label.name), "")
        if name and self._whole(label, table.columns[name]):
            columns[name] = BIGINT  # else the predictions of whole classes would have fractions
        if not self.source.by_values:
            return replace(table, columns=columns)
        compared = {
            name: categories_of(attribute)
            for attribute in (*domain.attributes, label)
            if (name := found.get(fold(attribute.column), ""))
        }
        return replace(table, columns=columns, categories=compared)

    def _whole(self, label: Attribute, stored: ColumnType) -> bool:
        """Whether the classes are read as whole numbers."""
        if self.source.by_values:
            return stored.family in _NUMBERS and all(map(_is_whole, label.values))
        return not self.source.schema and stored.family == "integer"

    def _type(self, attribute: Attribute, stored: ColumnType, *, is_label: bool) -> ColumnType:
        if self.source.schema:
            return stored
        if not _plain(stored).usable:
            raise DpforestError(
                f'Column "{attribute.name}" has type {stored.base}, which cannot be an '
                "attribute: leave it out of the domain or pass --exclude."
            )
        if self.source.by_values and attribute.kind != "numeric":
            plain = all(map(_is_plain_number, categories_of(attribute)))
            text = is_label and stored.family not in _NUMBERS  # predictions are of the same type
            return declared_type(attribute, DOUBLE if plain and not text else VARCHAR)
        return declared_type(attribute, stored)

    def declared(self, table: TableInfo) -> list[DeclaredColumn]:
        """The columns: nothing is declared about them but types."""
        return [DeclaredColumn(name, kind, True) for name, kind in table.columns.items()]

    def refuse_unseen(self, table: TableInfo, columns: Collection[str] = ()) -> None:
        """Nothing is unseen: the rows are read where they are."""
        if self.source.in_transaction:
            self._user.refuse_transaction()

    def spills_plain(self, table: TableInfo) -> bool:
        return False

    def same_rows(self, other: Engine) -> bool:
        """Only if it is this engine: each engine reads the rows of its source again."""
        return other is self

    def room(self) -> float:
        return self._user.room()

    def bytes_of_a_row(
        self,
        tables: Sequence[CodedTable],
        *,
        unit: ColumnType | None,
        copies: int,
        scores: int,
        before: Sequence[CodedTable] = (),
    ) -> int:
        return self._user.bytes_of_a_row(
            tables, unit=unit, copies=copies, scores=scores, before=before
        )

    def home(self, table: TableInfo) -> Home:
        return Home("", read_only=True)

    def tables(self, catalog: str) -> list[TableInfo]:
        return []

    def budget_note(self, table: TableInfo) -> AbstractContextManager[BudgetNote]:
        """Raises `DpforestError`: nothing can be stored with these rows."""
        raise DpforestError(
            f'"{table.display}" is no table, so its budget is not stored with it: name a ledger '
            "with --ledger."
        )

    @contextlib.contextmanager
    def snapshot(self, table: TableInfo, *, shared: bool = False) -> Iterator[SourceSnapshot]:
        with self.source.opened(table) as opened:
            yield SourceSnapshot(opened, table, shared=shared)


class SourceSnapshot:
    """The rows of a source; nothing is read before the first count or coding."""

    def __init__(self, opened: ReadableRows, table: TableInfo, *, shared: bool) -> None:
        self._opened = opened
        self._table = table
        self._shared = shared
        self._filled: DuckDBSnapshot | None = None

    def encode(self, coding: Coding, *, likely_rows: int = 0, last: bool = False) -> DuckDBRows:
        return self._read().encode(coding, likely_rows=likely_rows, last=last)

    def table_seen(self) -> None:
        """None: the rows are in no table."""

    def count_outcomes(self, forest: ForestContent, labels: Attribute) -> Outcomes:
        return self._read().count_outcomes(forest, labels)

    def count_outcome_grid(
        self, forest: ForestContent, labels: Attribute, unit: PrivacyUnit, *, bins: int, salt: int
    ) -> Integers:
        return self._read().count_outcome_grid(forest, labels, unit, bins=bins, salt=salt)

    def _read(self) -> DuckDBSnapshot:
        """The rows as a table, which is filled at the first call."""
        if self._filled is None:
            self._opened.fill()
            cursor, statements = self._opened.cursor, self._opened.statements
            self._filled = DuckDBSnapshot(statements, self._table, cursor, shared=self._shared)
        return self._filled


def declared_type(attribute: Attribute, stored: ColumnType) -> ColumnType:
    """The type to read a column as, by the domain; `stored` is what it is stored as.

    Bounds that are whole numbers declare whole numbers, dates declare dates, the categories "true"
    and "false" BOOLEAN. Where a column has numbers, categories are compared with them as numbers.
    Whether it has fractions or missing values makes no difference.
    """
    if attribute.kind == "numeric" and attribute.type.usable:
        return _WIDEST[attribute.family]
    if attribute.kind == "numeric":
        limits = [attribute.lower, attribute.upper, *attribute.edges]
        given = [limit for limit in limits if limit is not None]
        if any(isinstance(limit, dt.datetime) for limit in given):
            return TIMESTAMP
        if any(isinstance(limit, dt.date) for limit in given):
            return DATE
        whole = all(isinstance(limit, int) and abs(limit) < _WHOLE for limit in given)
        return BIGINT if whole else DOUBLE
    values = categories_of(attribute)
    if {value.casefold() for value in values} <= {"true", "false"}:
        return BOOLEAN
    numbers = stored.family in _NUMBERS and all(map(_is_number, values))
    return DOUBLE if numbers else VARCHAR


def rounded(domain: Domain, columns: Mapping[str, ColumnType]) -> list[str]:
    """A sentence on attributes of few values that are read as whole numbers, because of their
    bounds alone: 0 and 1 may stand for a share as well.
    """
    few = [
        attribute.column
        for attribute in domain.attributes
        if isinstance(attribute.lower, int)
        and isinstance(attribute.upper, int)
        and columns.get(attribute.column) == BIGINT
        and attribute.upper - attribute.lower < FEW_VALUES
    ]
    if not few:
        return []
    names = ", ".join(f'"{name}"' for name in few)
    return [
        f"Whole numbers are read from {names}, because the bounds have no decimal point; fractions "
        "are rounded up. If there are fractions, write 0.0 in place of 0."
    ]


def categories_of(attribute: Attribute) -> tuple[str, ...]:
    """The categories of an attribute; none if it is numeric."""
    if attribute.kind == "numeric":
        return ()
    cells = map(attribute.categories, range(attribute.proper))
    return tuple(value for cell in cells for value in cell)


def selected(
    stored: Mapping[str, str],
    columns: Mapping[str, ColumnType],
    categories: Mapping[str, tuple[str, ...]] | None = None,
) -> Sql:
    """The columns to read, each in its type; `stored` are the types that they are stored in.

    `categories` are those of the columns of a DataFrame (see `TableInfo`).
    """
    given = categories or {}
    return Sql(
        ", ".join(
            cast(name, column_type(stored[name]), kind, name, given.get(name))
            for name, kind in columns.items()
        )
    )


def cast(
    name: str,
    stored: ColumnType,
    kind: ColumnType,
    alias: str,
    categories: tuple[str, ...] | None = None,
) -> Sql:
    """A column in another type and under another name."""
    ident = DuckDBDialect().ident
    column = ident(name)
    if categories:
        text = f"CAST({column} AS VARCHAR)"  # of BIGINT classes no fraction may be rounded
        of_number = f"CASE WHEN {column} IS NOT NULL THEN 'nan' END"  # no category, but a value
        other = {BIGINT: "NULL", DOUBLE: of_number}.get(kind, text)
        read = Sql(f"TRY_CAST({_compared(column, categories, other)} AS {kind})")
    elif categories is not None and stored.family == "text" and kind in (BIGINT, DOUBLE):
        read = _cast(Sql(f"CAST({_number(column)} AS VARCHAR)"), stored, kind)
    else:
        read = _cast(column, stored, kind)
    return Sql(f"{read} AS {ident(alias)}")


def _cast(column: Sql, stored: ColumnType, kind: ColumnType) -> Sql:
    """A column in another type, NULL where that is impossible.

    Where the domain has whole numbers, fractions are rounded up: this keeps them on the same side
    of every whole edge. Functions are named in full, because the user's macros can be seen where a
    query is read.
    """
    if stored == kind:
        return column
    if kind != BIGINT or (stored.family == "integer" and stored.bits <= 64):
        return Sql(f"TRY_CAST({column} AS {kind})")
    number = f"TRY_CAST({column} AS DOUBLE)"
    schema = "system.main"
    rounded = f"{schema}.ceil({number})"
    limited = f"{schema}.greatest({schema}.least({rounded}, {_WHOLE}), -{_WHOLE})"
    return Sql(f"CASE WHEN NOT {schema}.isnan({number}) THEN CAST({limited} AS BIGINT) END")


def _compared(column: Sql, categories: Sequence[str], other: str) -> Sql:
    """The category that a value of a DataFrame is, as text, or `other`.

    Another value may have made 1.0 of 1, "True" of true, or a timestamp of a date, in all rows. So
    a value is a category if it has the same text, is the same number, or the same moment. Of equal
    numbers, that without additional digits comes first.
    """
    dialect = DuckDBDialect()
    texts = ", ".join(map(dialect.text, categories))
    text, found = f"CAST({column} AS VARCHAR)", []
    for of, keys_of in ((_number(column), _numbers_of), (_moment(column), _moments_of)):
        keyed: dict[str, str] = {}
        for category in sorted(categories, key=len):
            for known in keys_of(category):
                keyed.setdefault(known, category)
        if keyed:
            keys, values = ", ".join(keyed), ", ".join(map(dialect.text, keyed.values()))
            place = f"system.main.list_position([{keys}], {of})"
            found.append(f"WHEN {place} > 0 THEN [{values}][{place}]")
    return Sql(f"CASE WHEN {text} IN ({texts}) THEN {text} {' '.join(found)} ELSE {other} END")


def _number(column: Sql) -> str:
    """A value as a number, truth values too; NULL if it is none."""
    text = f"CAST({column} AS VARCHAR)"
    return (
        f"CASE system.main.lower({text}) WHEN 'true' THEN 1.0::DOUBLE WHEN 'false' THEN 0.0 "
        f"ELSE TRY_CAST({text} AS DOUBLE) END"
    )


def _moment(column: Sql) -> str:
    return f"TRY_CAST(CAST({column} AS VARCHAR) AS TIMESTAMP)"


def _numbers_of(category: str) -> list[str]:
    """A category as numbers in SQL; none if it is no number.

    Two if a column of 32-bit numbers would hold another one, which is then read as it is if one
    value makes 64-bit numbers or objects of the column.
    """
    if category.casefold() in ("true", "false"):
        return [f"{float(category.casefold() == 'true')!r}::DOUBLE"]
    if not (category.isascii() and _is_number(category) and math.isfinite(float(category))):
        return []
    number = float(category) + 0.0
    with np.errstate(over="ignore"):
        narrow = float(np.float32(number))
    return [f"{each!r}::DOUBLE" for each in dict.fromkeys((number, narrow)) if math.isfinite(each)]


def _moments_of(category: str) -> list[str]:
    """A category as a moment in SQL; none if it is no moment."""
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9:.]+)?", category):
        return []
    try:
        return [f"TIMESTAMP '{dt.datetime.fromisoformat(category).isoformat(sep=' ')}'"]
    except ValueError:
        return []


def _is_plain_number(text: str) -> bool:
    """Whether a text is the shortest of a number that DOUBLE holds exactly."""
    if not text.isascii() or not _is_number(text) or not math.isfinite(float(text)):
        return False
    number = float(text)
    return text == (str(int(number)) if number == int(number) else repr(number))


def _is_whole(text: str) -> bool:
    """Whether a text is a whole number of 64 bits, as DuckDB writes it."""
    return bool(re.fullmatch(r"0|-?[1-9][0-9]{0,18}", text)) and -(2**63) <= int(text) < 2**63


def _plain(stored: ColumnType) -> ColumnType:
    """A type without a list of values, which comes from the data."""
    return VARCHAR if stored.base == "ENUM" else stored


def _is_number(text: str) -> bool:
    try:
        return bool(float(text) or True)
    except ValueError:
        return False
