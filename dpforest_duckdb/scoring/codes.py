"""SQL for training: codes of cells, classes and privacy units, in DuckDB's spelling and in Spark's.

Training and scoring treat a row in the same way: their tests of a column are the same, or have the
same outcome.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpforest_duckdb.domain import Attribute
from dpforest_duckdb.domain.types import VARCHAR, ColumnType
from dpforest_duckdb.privacy.unit import PrivacyUnit
from dpforest_duckdb.scoring.dialects.base import Dialect
from dpforest_duckdb.scoring.dialects.duckdb import DuckDB
from dpforest_duckdb.scoring.dialects.spark import Spark
from dpforest_duckdb.sql import Sql

MANY_EDGES = 16  # of an attribute: with more, the CASE takes longer to plan than a search
MAX_LOOKED_UP = 1024  # from the first to the last edge: a longer list takes long to parse


@dataclass(frozen=True)
class UnitColumn:
    """A column of privacy units: the `canonical` form of each, what is hashed of that (`key`), and
    the most `rows` of a unit that are used. Templates name the canonical column `unit`.
    """

    canonical: Sql
    key: Sql
    rows: int


class Codes(Dialect):
    """The codes that training reads instead of values."""

    def code(self, attribute: Attribute, column: Sql, searched: Sql | None = None) -> Sql:
        """The cell of a value, as an integer expression that cannot fail for any row.

        `searched` is a column with the number of edges below the value, if there is one.
        """
        if attribute.kind == "numeric":
            if searched or not attribute.edges:
                bins: str = searched or Sql("0")
            elif attribute.family == "integer" and _consecutive(attribute.edges):
                # one bin per integer
                low, high = attribute.edges[0], attribute.edges[-1] + 1
                bins = self._place(column, low, high)
            elif looked_up := self.looked_up(attribute, column):
                bins = looked_up
            else:
                bins = self._bins(attribute, column, 0, len(attribute.edges))
            missing = self.missing(attribute, column)
            return Sql(f"CASE WHEN {missing} THEN {attribute.null} ELSE {bins} END")
        if not attribute.of and attribute.type.labels == attribute.values:
            missing, number = self.missing(attribute, column), self.call("enum_code", column)
            return Sql(f"CASE WHEN {missing} THEN {attribute.null} ELSE {number} END")
        if searched_for := self.searched_for(attribute, column):
            return searched_for
        whole = attribute.family == "integer" and not attribute.of
        integers = [int(v) for v in attribute.values] if whole else []
        if len(integers) > 1 and _consecutive(integers):
            low, high = integers[0], integers[-1]
            offset = f"CAST({column} AS BIGINT) - ({low})"
            known = f"WHEN {column} BETWEEN {low} AND {high} THEN {offset}"
        else:
            known = " ".join(
                f"WHEN {self.is_any(attribute, column, [v])} THEN {v}"
                for v in range(attribute.proper)
            )
        null = f" WHEN {self.missing(attribute, column)} THEN {attribute.null}"
        own_null = null if attribute.null != attribute.other else ""
        return Sql(f"CASE {known}{own_null} ELSE {attribute.other} END")

    def looked_up(self, attribute: Attribute, column: Sql) -> Sql | None:
        """The bin of a whole number, looked up in a list by its value; None if there is no list."""
        return None

    def searched_for(self, attribute: Attribute, column: Sql) -> Sql | None:
        """The cell of a category, searched for in a list; None if there is no list."""
        return None

    def class_code(self, classes: Sequence[str], kind: ColumnType, column: Sql) -> Sql:
        """The class number of a row; NULL for NULL and for labels outside the class list."""
        whens = " ".join(
            f"WHEN {column} = {self.literal(value, kind.family)} THEN {number}"
            for number, value in enumerate(classes)
        )
        return Sql(f"CASE {whens} END")

    def canonical_unit(self, column: Sql, kind: ColumnType) -> Sql:
        """The canonical form of a privacy unit: NaN, NULL and a number that two persons may have
        been rounded to identify nobody.
        """
        if kind.family == "float":
            whole = 2**24 if kind.base == "FLOAT" else 2**53
            return Sql(f"CASE WHEN {column} > -{whole} AND {column} < {whole} THEN {column} END")
        return column

    def hashed_unit(self, unit: Sql, kind: ColumnType) -> Sql:
        """What is hashed of a canonical unit, so that all its rows are in one tree."""
        return unit

    def unit(
        self, row: str, unit: PrivacyUnit, columns: Mapping[str, ColumnType]
    ) -> UnitColumn | None:
        """What templates use of the privacy unit of a row with an alias; None if it is the row."""
        if unit.is_row:
            return None
        kind = columns[unit.column]
        return UnitColumn(
            canonical=self.canonical_unit(self.ident(row, unit.column), kind),
            key=self.hashed_unit(self.ident("unit"), kind),
            rows=unit.rows,
        )

    def _place(self, column: Sql, low: int, high: int) -> str:
        """The place of a whole number in low … high; clamped first, so no subtraction overflows."""
        clamped = self.greatest(self.call("least", column, str(high)), str(low))
        return f"CAST({clamped} AS BIGINT) - ({low})"

    def _bins(self, attribute: Attribute, column: Sql, low: int, high: int) -> str:
        """Balanced CASE over bins low … high, with few comparisons."""
        if low == high:
            return str(low)
        middle = (low + high - 1) // 2
        return (
            f"CASE WHEN {self.at_most(attribute, column, middle)} "
            f"THEN {self._bins(attribute, column, low, middle)} "
            f"ELSE {self._bins(attribute, column, middle + 1, high)} END"
        )


class DuckDBCodes(Codes, DuckDB):
    """Codes in DuckDB's spelling."""

    def class_code(self, classes: Sequence[str], kind: ColumnType, column: Sql) -> Sql:
        if kind.family == "text":
            return self._position(classes, kind, column)
        return super().class_code(classes, kind, column)

    def searched_for(self, attribute: Attribute, column: Sql) -> Sql | None:
        if attribute.family != "text" or attribute.of:
            return None
        position = self._position(attribute.values, attribute.type, column)
        cell = f"coalesce({position}, {attribute.other})"
        if attribute.null == attribute.other:
            return Sql(cell)
        return Sql(f"CASE WHEN {column} IS NULL THEN {attribute.null} ELSE {cell} END")

    def _position(self, values: Sequence[str], kind: ColumnType, column: Sql) -> Sql:
        """The place of a text among some values, from 0; NULL for any other, and for NULL.

        It takes much less time than a CASE, most of all with many values.
        """
        listed = Sql(f"[{', '.join(map(self.text, values))}]")
        return Sql(f"({self.call('list_position', listed, self.collated(kind, column))} - 1)")

    def looked_up(self, attribute: Attribute, column: Sql) -> Sql | None:
        edges = [int(edge) for edge in attribute.edges] if _looked_up(attribute) else []
        if not edges:
            return None
        low, high = edges[0], edges[-1] + 1
        bins = np.repeat(range(len(edges) + 1), [1, *np.diff(edges), 1]).tolist()  # of low … high
        place = self._place(column, low, high)
        return Sql(f"CAST('{bins}' AS {unsigned(len(edges))}[])[{place} + 1]")

    def hashed_unit(self, unit: Sql, kind: ColumnType) -> Sql:
        return Sql(f"encode({unit})") if kind == VARCHAR else unit

    def many_edges(self, attribute: Attribute) -> Sql | None:
        """The edges of a numeric attribute as a list, for a binary search.

        None if they are few, if values are looked up, or if comparing with the list could differ
        from comparing in a CASE.
        """
        kinds = {"float": "DOUBLE", "integer": "BIGINT"}
        edges, family = attribute.edges, attribute.family
        many = attribute.kind == "numeric" and len(edges) > MANY_EDGES
        if not many or family not in kinds or attribute.type.bits > 64 or _looked_up(attribute):
            return None
        if family == "integer" and _consecutive([int(edge) for edge in edges]):
            return None
        if family == "integer" and not (edges[0] >= -(2**63) and edges[-1] < 2**63):
            return None
        numbers = ", ".join(repr(float(e) + 0.0) if family == "float" else str(e) for e in edges)
        return Sql(f"CAST('[{numbers}]' AS {kinds[family]}[])")

    def edges_below(self, attribute: Attribute, column: Sql, step: int) -> Sql:
        """How many edges are below a value, rounded down to a multiple of `step`, by a CASE."""
        some = replace(attribute, edges=attribute.edges[step - 1 :: step])
        return Sql(f"{step} * ({self._bins(some, column, 0, len(some.edges))})")

    def column(self, numbers: Iterable[int]) -> Sql:
        """Whole numbers as rows, from one literal: VALUES takes fifty times as long."""
        return Sql(f"unnest(CAST('[{', '.join(map(str, map(int, numbers)))}]' AS BIGINT[]))")


class SparkCodes(Codes, Spark):
    """Codes in Spark's spelling."""

    def numbers(self, values: Iterable[int | float], kind: str = "INT") -> Sql:
        """A constant array, from one literal: Spark reads it once."""
        return Sql(f"CAST(split('{','.join(map(repr, values))}', ',') AS ARRAY<{kind}>)")

    def number(self, digits: str) -> Sql:
        """A whole or decimal number of up to 38 digits: beyond BIGINT it is a DECIMAL."""
        return Sql(digits)

    def canonical_unit(self, column: Sql, kind: ColumnType) -> Sql:
        unit = super().canonical_unit(column, kind)
        return Sql(f"({unit}) + 0") if kind.family == "float" else unit  # makes 0 of -0

    def hashed_unit(self, unit: Sql, kind: ColumnType) -> Sql:
        """The least of the unit's spellings, where a collation takes different texts for one."""
        if " collate " not in kind.name:
            return unit
        return Sql(f"min({unit} COLLATE UTF8_BINARY) OVER (PARTITION BY {unit})")


def unsigned(largest: int) -> Sql:
    """The narrowest unsigned type for 0 … largest."""
    for name, bits in (("UTINYINT", 8), ("USMALLINT", 16), ("UINTEGER", 32)):
        if largest < 2**bits:
            return Sql(name)
    return Sql("UBIGINT")


def _looked_up(attribute: Attribute) -> bool:
    """Whether the bins of a numeric attribute are looked up: they are whole numbers, close to each
    other, and a bin holds more than one of them.
    """
    edges = attribute.edges
    if attribute.kind != "numeric" or attribute.family != "integer" or len(edges) < 2:
        return False
    near = max(map(abs, (edges[0], edges[-1]))) < 2**62
    return near and edges[-1] - edges[0] < MAX_LOOKED_UP and not _consecutive(edges)


def _consecutive(numbers: Sequence[int]) -> bool:
    """True for a run of integers well within BIGINT."""
    fits = max(map(abs, numbers)) < 2**62
    return fits and list(numbers) == list(range(numbers[0], numbers[0] + len(numbers)))
