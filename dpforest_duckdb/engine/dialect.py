"""Names, literals and tests on one attribute, as DuckDB writes them.

Training and scoring test a column through the same few functions, so a row takes the same way in
both. Another database needs another Dialect, not other templates.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from dpforest_duckdb.domain import Attribute, type_family
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.sql import Sql

_PART = re.compile(r'(?:("(?:[^"]|"")*")|([^.]*))\.')


class DuckDBDialect:
    """DuckDB's spelling."""

    name = "duckdb"

    def ident(self, *names: str) -> Sql:
        """A quoted, dot-joined identifier. Raises `DpforestError` for what cannot be one."""
        if any(not name or "\x00" in name for name in names):
            raise DpforestError("A name is empty or holds a NUL character: write another.")
        return Sql(".".join('"' + name.replace('"', '""') + '"' for name in names))

    def text(self, value: str) -> Sql:
        """A quoted string literal."""
        if "\x00" in value:
            raise DpforestError("A value of the domain holds a NUL character: remove it.")
        return Sql("'" + value.replace("'", "''") + "'")

    def literal(self, value: str | float, family: str) -> Sql:
        """A literal that compares with a column of a type family; categories come as text."""
        if family == "boolean":
            return Sql(str(value).upper())
        if family in ("date", "timestamp"):
            return Sql(f"{family.upper()} {self.text(str(value))}")
        if isinstance(value, float) or family == "float":
            digits = repr(float(value))
            return Sql(digits if "e" in digits else f"{digits}e0")
        if family in ("integer", "decimal"):
            return Sql(str(value))
        return self.text(value if isinstance(value, str) else str(value))

    def column(self, numbers: Iterable[int]) -> Sql:
        """Whole numbers as rows: read from one literal, as VALUES takes fifty times as long."""
        return Sql(f"unnest(CAST('[{', '.join(map(str, map(int, numbers)))}]' AS BIGINT[]))")

    def type(self, sql_type: str) -> Sql:
        """A column type as it may stand in a CAST."""
        if not type_family(sql_type):
            raise DpforestError("The target's type is not one that a model can have.")
        return Sql(sql_type)

    def edge(self, attribute: Attribute, cell: int) -> Sql:
        """The upper edge of a bin."""
        edge = attribute.edges[cell]
        dated = attribute.family in ("date", "timestamp")
        return self.literal(attribute.text(edge) if dated else edge, attribute.family)

    def _listed(self, attribute: Attribute, cells: Sequence[int]) -> list[Sql]:
        """The categories of some cells, as literals."""
        held = (value for cell in cells for value in attribute.categories(cell))
        return [self.literal(value, attribute.family) for value in held]

    def missing(self, attribute: Attribute, column: Sql) -> Sql:
        """True for NULL, and for NaN in a floating-point column."""
        if attribute.family == "float":
            return Sql(f"({column} IS NULL OR isnan({column}))")
        return Sql(f"{column} IS NULL")

    def is_any(self, attribute: Attribute, column: Sql, cells: Sequence[int]) -> Sql:
        """True where a value is one of several categories.

        Lists of more than four are cut up: DuckDB plans a join for each, and takes minutes over a
        forest of them.
        """
        listed = self._listed(attribute, cells)
        if len(listed) == 1:
            return Sql(f"{column} = {listed[0]}")
        parts = [f"{column} IN ({', '.join(listed[i : i + 4])})" for i in range(0, len(listed), 4)]
        return Sql(parts[0] if len(parts) == 1 else f"({' OR '.join(parts)})")

    def at_most(self, attribute: Attribute, column: Sql, cell: int) -> Sql:
        """True where a value lies in a cell up to `cell`; NULL, NaN and strangers never do."""
        if attribute.kind == "categorical":
            listed = ", ".join(self._listed(attribute, range(cell + 1)))
            return Sql(f"{column} IN ({listed})")
        return Sql(f"{column} <= {self.edge(attribute, cell)}")

    def is_cell(self, attribute: Attribute, column: Sql, cell: int) -> Sql:
        """True where a value lies in exactly one cell; never NULL for a value of no cell."""
        if cell == attribute.null and (attribute.nullable or attribute.kind == "numeric"):
            return self.missing(attribute, column)
        if attribute.kind == "categorical":
            if cell == attribute.other:
                stranger = f"NOT {self.is_any(attribute, column, range(attribute.proper))}"
                return Sql(stranger if attribute.nullable else f"({column} IS NULL OR {stranger})")
            return self.is_any(attribute, column, [cell])
        above = f"{column} > {self.edge(attribute, cell - 1)}" if cell else ""
        below = self.at_most(attribute, column, cell) if cell < len(attribute.edges) else ""
        present = f"NOT {self.missing(attribute, column)}" if not below else ""
        return Sql(" AND ".join(part for part in (above, below, present) if part))

    def code(self, attribute: Attribute, column: Sql) -> Sql:
        """The cell of a value, as an integer expression that no row can make fail."""
        if attribute.kind == "numeric":
            if not attribute.edges:
                bins = "0"
            elif attribute.family == "integer" and _consecutive(attribute.edges):
                # one bin per integer: clamping first keeps the subtraction inside the type
                low, high = attribute.edges[0], attribute.edges[-1] + 1
                bins = f"CAST(greatest(least({column}, {high}), {low}) AS BIGINT) - ({low})"
            else:
                bins = self._bins(attribute, column, 0, len(attribute.edges))
            missing = self.missing(attribute, column)
            return Sql(f"CASE WHEN {missing} THEN {attribute.null} ELSE {bins} END")
        if not attribute.of and attribute.type == self._enum(attribute.values):
            missing = self.missing(attribute, column)
            return Sql(f"CASE WHEN {missing} THEN {attribute.null} ELSE enum_code({column}) END")
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

    def _enum(self, labels: Sequence[str]) -> str:
        """The type whose own codes are those of a list of categories."""
        return f"ENUM({', '.join(map(self.text, labels))})"

    def class_code(self, classes: Sequence[str], sql_type: str, column: Sql) -> Sql:
        """The class number of a row, NULL for NULL and for what is not in the class list."""
        family = type_family(sql_type)
        whens = " ".join(
            f"WHEN {column} = {self.literal(value, family)} THEN {number}"
            for number, value in enumerate(classes)
        )
        return Sql(f"CASE {whens} END")

    def canonical_unit(self, column: Sql, sql_type: str) -> Sql:
        """A privacy unit in its one form: NaN names nobody, as NULL does."""
        if sql_type in ("FLOAT", "DOUBLE"):
            return Sql(f"CASE WHEN isnan({column}) THEN NULL ELSE {column} END")
        return column

    def _bins(self, attribute: Attribute, column: Sql, low: int, high: int) -> str:
        """Balanced CASE over bins low … high: as few comparisons as the bins allow."""
        if low == high:
            return str(low)
        middle = (low + high - 1) // 2
        return (
            f"CASE WHEN {self.at_most(attribute, column, middle)} "
            f"THEN {self._bins(attribute, column, low, middle)} "
            f"ELSE {self._bins(attribute, column, middle + 1, high)} END"
        )


def split_name(name: str) -> list[str]:
    """The parts of a dotted name; a part in double quotes may hold a dot, and a quote as two."""
    found = _PART.findall(f"{name}.")
    return [quoted[1:-1].replace('""', '"') if quoted else plain for quoted, plain in found]


def unsigned(largest: int) -> Sql:
    """The narrowest unsigned type that holds 0 … largest."""
    for name, bits in (("UTINYINT", 8), ("USMALLINT", 16), ("UINTEGER", 32)):
        if largest < 2**bits:
            return Sql(name)
    return Sql("UBIGINT")


def _consecutive(numbers: Sequence[int]) -> bool:
    """True for a run of integers that a BIGINT holds with room to spare."""
    fits = max(map(abs, numbers)) < 2**62
    return fits and list(numbers) == list(range(numbers[0], numbers[0] + len(numbers)))
