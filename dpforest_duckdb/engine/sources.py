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

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.domain import Attribute, Domain
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
    DeclaredColumn,
    Engine,
    ModelStore,
    Outcomes,
    Sample,
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
from dpforest_duckdb.tree import Tree

_NUMBERS = ("integer", "decimal", "float", "boolean")
_WIDEST = {  # what the numeric columns of a model are read as
    "integer": BIGINT,
    "decimal": DOUBLE,
    "float": DOUBLE,
    "date": DATE,
    "timestamp": TIMESTAMP,
}
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
        found = {name.casefold(): name for name in table.columns}
        label = Attribute(domain.target, "categorical", domain.classes)
        columns: dict[str, ColumnType] = {}
        for attribute in (*domain.attributes, label):
            name = found.get(attribute.column.casefold(), "")
            if name:
                columns[name] = self._type(attribute, table.columns[name])
        name = found.get((unit or domain.privacy_unit or "").casefold(), "")
        if name and self.source.by_values and table.columns[name].family == "float":
            raise DpforestError(
                f'The privacy unit "{name}" is a column of floating-point numbers, as pandas makes '
                'of whole numbers if one is missing: convert it to "Int64" or to text.'
            )
        if name and name not in columns:
            columns[name] = _plain(table.columns[name])
        exact = {c for c, kind in columns.items() if self.source.by_values and kind == BOOLEAN}
        name = found.get(label.name.casefold(), "")
        if name and self._whole(label, table.columns[name]):
            columns[name] = BIGINT  # else the predictions of whole classes would have fractions
            exact.add(name)
        return replace(table, columns=columns, exact=frozenset(exact))

    def _whole(self, label: Attribute, stored: ColumnType) -> bool:
        """Whether the classes are read as whole numbers."""
        if self.source.by_values:
            whole = all(re.fullmatch(r"-?\d{1,15}", value) for value in label.values)
            return whole and declared_type(label, stored, by_values=True) == DOUBLE
        return not self.source.schema and stored.family == "integer"

    def _type(self, attribute: Attribute, stored: ColumnType) -> ColumnType:
        if self.source.schema:
            return stored
        if not _plain(stored).usable:
            raise DpforestError(
                f'Column "{attribute.name}" has type {stored.base}, which cannot be an '
                "attribute: leave it out of the domain or pass --exclude."
            )
        return declared_type(attribute, stored, by_values=self.source.by_values)

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
        raise DpforestError(f'No note can be stored with "{table.display}", which is no table.')

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

    def encode(
        self,
        domain: Domain,
        unit: PrivacyUnit,
        *,
        trees: int,
        sample: Sample,
        salt: int,
        first_phase: Sequence[Tree] = (),
        misclassified_weight: int = 1,
        likely_rows: int = 0,
        last: bool = False,
    ) -> DuckDBRows:
        return self._read().encode(
            domain,
            unit,
            trees=trees,
            sample=sample,
            salt=salt,
            first_phase=first_phase,
            misclassified_weight=misclassified_weight,
            likely_rows=likely_rows,
            last=last,
        )

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


def declared_type(
    attribute: Attribute, stored: ColumnType, *, by_values: bool = False
) -> ColumnType:
    """The type to read a column as, by the domain; `stored` is what it is stored as.

    Bounds that are whole numbers declare whole numbers, dates declare dates, the categories "true"
    and "false" BOOLEAN. Where a column has numbers, categories are compared with them as numbers.
    Whether it has fractions or missing values makes no difference. If `stored` follows from the
    values, categories that are different numbers are compared as numbers, whatever it is: one value
    that is a word makes text of a column of numbers.
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
    values = [value for cell in range(attribute.proper) for value in attribute.categories(cell)]
    if {value.casefold() for value in values} <= {"true", "false"}:
        return BOOLEAN
    if by_values:
        numbers = _are_different_numbers(values)
    else:
        numbers = stored.family in _NUMBERS and all(map(_is_number, values))
    return DOUBLE if numbers else VARCHAR


def selected(
    stored: Mapping[str, str],
    columns: Mapping[str, ColumnType],
    exact: Collection[str] = (),
) -> Sql:
    """The columns to read, each in its type; `stored` are the types that they are stored in.

    In `exact` columns of whole numbers a fraction is NULL, and in those of truth values any number
    but 0 and 1.
    """
    return Sql(
        ", ".join(
            cast(name, column_type(stored[name]), kind, name, exact=name in exact)
            for name, kind in columns.items()
        )
    )


def cast(
    name: str, stored: ColumnType, kind: ColumnType, alias: str, *, exact: bool = False
) -> Sql:
    """A column in another type and under another name."""
    ident = DuckDBDialect().ident
    return Sql(f"{_cast(ident(name), stored, kind, exact)} AS {ident(alias)}")


def _cast(column: Sql, stored: ColumnType, kind: ColumnType, exact: bool) -> Sql:
    """A column in another type, NULL where that is impossible.

    Where the domain has whole numbers, fractions are rounded up: this keeps them on the same side
    of every whole edge. If the column is `exact`, they are NULL, and so are numbers that are no
    truth values. Functions are named in full, because the user's macros can be seen where a query
    is read.
    """
    if stored == kind:
        return column
    if exact and kind == BOOLEAN:
        number, plain = f"TRY_CAST({column} AS DOUBLE)", f"TRY_CAST({column} AS BOOLEAN)"
        return Sql(
            f"CASE WHEN {number} IS NULL THEN {plain} WHEN {number} IN (0, 1) THEN {number} = 1 END"
        )
    if kind != BIGINT or stored.family == "integer":
        return Sql(f"TRY_CAST({column} AS {kind})")
    number = f"TRY_CAST({column} AS DOUBLE)"
    schema = "system.main"
    if exact:
        whole = f"{number} = {schema}.trunc({number}) AND {schema}.abs({number}) <= {_WHOLE}"
        return Sql(f"CASE WHEN {whole} THEN CAST({number} AS BIGINT) END")
    rounded = f"{schema}.ceil({number})"
    limited = f"{schema}.greatest({schema}.least({rounded}, {_WHOLE}), -{_WHOLE})"
    return Sql(f"CASE WHEN NOT {schema}.isnan({number}) THEN CAST({limited} AS BIGINT) END")


def _plain(stored: ColumnType) -> ColumnType:
    """A type without a list of values, which comes from the data."""
    return VARCHAR if stored.base == "ENUM" else stored


def _are_different_numbers(texts: Sequence[str]) -> bool:
    """Whether all are numbers, and no two of them the same as DOUBLE."""
    if not all(map(_is_number, texts)):
        return False
    numbers = [float(text) for text in texts]
    return all(map(math.isfinite, numbers)) and len(set(numbers)) == len(numbers)


def _is_number(text: str) -> bool:
    try:
        return bool(float(text) or True)
    except ValueError:
        return False
