"""What the scoring SQL of all engines has in common; an engine may override each part.

A `Dialect` writes names, literals, types and the tests on one column. Its defaults are standard
SQL; an engine's own file overrides what that engine does differently. Every test gives what DuckDB
gives: text is compared byte by byte whatever the column's collation, NULL and NaN are missing, and
numbers that are not whole are compared as double precision.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from dpforest_duckdb.domain import Attribute
from dpforest_duckdb.domain.names import is_unicode
from dpforest_duckdb.domain.types import BIGINT, VARCHAR, ColumnType, Family
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.sql import Sql

Form = Literal["select", "view", "table", "macro", "dbt", "dbt-schema"]

# the first of two characters that open a block; \r is written as a block, which begins with a brace
JINJA_OPENING = re.compile(r"\{(?=[{%#\r])")
_INSIDE = re.compile(r"(?<=\{)(?=[{%#\r])")  # between the two


class Dialect:
    """Standard SQL. With `jinja`, what it writes is text of a dbt model: dbt leaves it as it is."""

    name: ClassVar[str] = "standard"
    title: ClassVar[str] = "standard SQL"
    forms: ClassVar[tuple[Form, ...]] = ("select", "view", "table", "dbt", "dbt-schema")
    replaces: ClassVar[tuple[Form, ...]] = ("view",)  # what a statement can make in place of an old
    quotes: ClassVar[tuple[str, str]] = ('"', '"')
    longest_name: ClassVar[int | None] = None
    name_in_bytes: ClassVar[bool] = False
    forbidden: ClassVar[str] = ""  # characters that no name may hold
    most_bytes: ClassVar[int | None] = None  # of one statement
    most_columns: ClassVar[int | None] = None  # of one SELECT
    most_nested: ClassVar[int | None] = None  # CASE within CASE
    nested_by_sum: ClassVar[float] = 0  # levels of CASE that a sum around them counts as
    excludes: ClassVar[bool] = False  # has SELECT * EXCLUDE (…), so columns need not be known
    cte: ClassVar[Sql] = Sql("AS")
    cte_end: ClassVar[Sql] = Sql("")  # what each CTE ends with
    advice: ClassVar[str] = ""  # one line on top of the SQL
    functions: ClassVar[str] = ""  # the schema of its functions, where a user's could hide them
    double: ClassVar[str] = "DOUBLE"
    types: ClassVar[Mapping[str, str]] = {}  # by our name of the type; see `type`

    def __init__(self, *, jinja: bool = False) -> None:
        self.jinja = jinja

    # names

    def ident(self, *names: str) -> Sql:
        """A quoted, dot-joined identifier. Raises `DpforestError` for what cannot be one."""
        for name in names:
            self.check_name(name)
        left, right = self.quotes
        quoted = ".".join(left + self.escaped_name(name) + right for name in names)
        return without_jinja(quoted) if self.jinja else Sql(quoted)

    def escaped_name(self, name: str) -> str:
        """A name as it stands between quotes."""
        return name.replace(self.quotes[1], self.quotes[1] * 2)

    def check_name(self, name: str) -> None:
        """Raise `DpforestError` for a name that the engine cannot have."""
        if not name or "\x00" in name:
            raise DpforestError("A name is empty or holds a NUL character: write another.")
        if not is_unicode(name):
            raise DpforestError(f'The name "{name}" is not valid Unicode: write another.')
        size = len(name.encode(errors="replace")) if self.name_in_bytes else len(name)
        if self.longest_name is not None and size > self.longest_name:
            measure = "bytes" if self.name_in_bytes else "characters"
            raise DpforestError(
                f'The name "{name}" is longer than the {self.longest_name} {measure} that '
                f"{self.title} allows: rename the column or class, or write another name."
            )
        found = sorted(set(name) & set(self.forbidden))
        if found:
            raise DpforestError(
                f'The name "{name}" holds {found[0]!r}, which {self.title} allows in no name: '
                "rename the column or class, or write another name."
            )

    # literals

    def text(self, value: str) -> Sql:
        """A string literal. Raises `DpforestError` for text that no engine holds."""
        if "\x00" in value:
            raise DpforestError("A value of the domain holds a NUL character: remove it.")
        if not is_unicode(value):
            raise DpforestError("A value of the domain is not valid Unicode: correct it.")
        if not self.jinja:
            return self.quoted(value)
        parts = [self.quoted(part) for part in _INSIDE.split(value)]
        return without_jinja(parts[0] if len(parts) == 1 else self.concatenated(parts))

    def quoted(self, value: str) -> Sql:
        """Text between quotes, with the escapes that the engine knows."""
        return Sql("'" + value.replace("'", "''") + "'")

    def concatenated(self, parts: Sequence[Sql]) -> Sql:
        """Several string literals as one value."""
        return Sql(f"({' || '.join(parts)})")

    def literal(self, value: str | float, family: Family) -> Sql:
        """A literal that compares with a column of a type family; categories come as text."""
        if family == "boolean":
            return self.boolean(str(value).lower() == "true")
        if family == "date":
            return self.date(str(value))
        if family == "timestamp":
            return self.timestamp(str(value))
        if isinstance(value, float) or family == "float":
            digits = repr(float(value) + 0.0)  # -0.0 becomes 0.0
            return Sql(digits if "e" in digits else f"{digits}e0")
        if family == "integer":
            return self.number(str(value))
        if family == "decimal":
            return self.decimal(str(value))
        return self.text(value if isinstance(value, str) else str(value))

    def label(self, value: str, kind: ColumnType) -> Sql:
        """A class as a literal; those of a target are the branches of one CASE."""
        return self.literal(value, kind.family)

    def boolean(self, value: bool) -> Sql:
        return Sql("TRUE" if value else "FALSE")

    def date(self, text: str) -> Sql:
        return Sql(f"DATE {self.text(text)}")

    def timestamp(self, text: str) -> Sql:
        return Sql(f"TIMESTAMP {self.text(text)}")

    def number(self, digits: str) -> Sql:
        """A whole or decimal number. Raises `DpforestError` beyond ±(2⁶³ - 1)."""
        if abs(int(digits.partition(".")[0])) >= 2**63:
            raise DpforestError(
                f"The model holds the number {digits}, beyond the ±{2**63 - 1} that SQL for "
                f"{self.title} may hold: score it in DuckDB."
            )
        return Sql(digits)

    def decimal(self, digits: str) -> Sql:
        """A decimal number that equals the same number in a DECIMAL column."""
        return self.number(digits)

    # types

    def type(self, kind: ColumnType) -> Sql:
        """The engine's type for that of a target. Raises `DpforestError` for one of no target."""
        if not kind.usable:
            raise DpforestError("The target's type is not one that a model can have.")
        if kind.family == "decimal":
            pattern = self.types.get("DECIMAL", "DECIMAL({0}, {1})")
            return Sql(pattern.format(kind.digits, kind.scale))
        if kind.family == "float":
            return Sql(self.types.get(kind.base, self.double))  # a FLOAT may have a type of its own
        if kind.family == "integer":
            widths = ((16, "SMALLINT"), (32, "INTEGER"), (64, "BIGINT"))
            name = next((name for bits, name in widths if kind.bits <= bits), "WIDE")
        else:
            name = "VARCHAR" if kind.family == "text" else kind.family.upper()
        return Sql(self.types.get(name, "DECIMAL(38, 0)" if name == "WIDE" else name))

    def target_type(self, kind: ColumnType) -> Sql | None:
        """The type that a prediction is cast to; None where its literal has it already."""
        return None if kind.family in ("text", "boolean") else self.type(kind)

    def as_double(self, value: str) -> Sql:
        return Sql(f"CAST({value} AS {self.double})")

    def as_integer(self, value: str) -> Sql:
        """Votes as 64 bits, where their sum may need more than 32."""
        return Sql(f"CAST({value} AS {self.type(BIGINT)})")

    def votes(self, case: Sql) -> Sql:
        """The votes of one tree, from the CASE that gives them."""
        return case

    def call(self, function: str, *values: str) -> Sql:
        """A function of the engine."""
        return Sql(f"{self.functions}{function}({', '.join(values)})")

    def greatest(self, *values: str) -> Sql:
        return self.call("greatest", *values)

    def clamped(self, value: str, most: int) -> Sql:
        """A number brought into -most … most."""
        return Sql(
            f"CASE WHEN {value} > {most} THEN {most} WHEN {value} < -{most} THEN -{most} "
            f"ELSE {value} END"
        )

    # statements

    def create(self, form: Form, name: Sql, *, replace: bool = False) -> Sql:
        """The head of the statement that makes a view or a table."""
        verb = "CREATE OR REPLACE" if replace else "CREATE"
        return Sql(f"{verb} {form.upper()} {name} AS\n")

    def into(self, form: Form, name: Sql) -> Sql:
        """What stands before the last FROM: SELECT … INTO, where an engine makes tables so."""
        return Sql("")

    def check_size(self, sql: str) -> None:
        """Raise `DpforestError` for a statement longer than the engine takes by default."""
        size = len(sql.encode())
        if self.most_bytes is not None and size > self.most_bytes:
            raise DpforestError(
                f"The SQL has {size / 1000:.0f} KB, and {self.title} allows {self.most_bytes:,} "
                "bytes: train fewer or shallower trees, or pass --force if the limit was raised."
            )

    def check_shape(self, columns: int, nested: int) -> None:
        """Raise `DpforestError` for more columns or levels of CASE than the engine can have."""
        for found, most, what in (
            (columns, self.most_columns, "columns"),
            (nested, self.most_nested, "levels of CASE"),
        ):
            if most is not None and found > most:
                raise DpforestError(
                    f"The SQL has {found} {what} and {self.title} allows {most}: "
                    "train fewer or shallower trees, or keep fewer columns."
                )

    # tests on one column

    def input(self, attribute: Attribute, column: Sql) -> Sql:
        """The column as the tests read it: itself, or an expression that is computed once."""
        if attribute.family == "text":
            return self.bytewise(column)
        if attribute.family == "decimal" and attribute.kind == "numeric":
            return self.as_double(column)
        if attribute.family == "float" and attribute.kind == "categorical":
            return Sql(f"({column} + 0)")  # makes 0 of -0, which some engines tell apart in IN
        return column

    def bytewise(self, column: Sql) -> Sql:
        """A text column that compares byte by byte with string literals."""
        return Sql(f"CAST({column} AS {self.type(VARCHAR)})")

    def category(self, value: str, family: Family) -> Sql:
        """A category as the tests compare it."""
        return self.literal(value, family)

    def edge(self, attribute: Attribute, cell: int) -> Sql:
        """The upper edge of a bin."""
        edge = attribute.edges[cell]
        dated = attribute.family in ("date", "timestamp")
        if attribute.family == "decimal":
            edge = float(edge)
        return self.literal(attribute.text(edge) if dated else edge, attribute.family)

    def is_nan(self, column: Sql) -> Sql | None:
        """True for NaN; None where the engine has no NaN."""
        return self.call("isnan", column)

    def missing(self, attribute: Attribute, column: Sql) -> Sql:
        """True for NULL, and for NaN in a floating-point column."""
        nan = self.is_nan(column) if attribute.family == "float" else None
        return Sql(f"({column} IS NULL OR {nan})" if nan else f"{column} IS NULL")

    def listed(self, attribute: Attribute, cells: Sequence[int]) -> list[Sql]:
        """The categories of some cells, as literals."""
        held = (value for cell in cells for value in attribute.categories(cell))
        return [self.category(value, attribute.family) for value in held]

    def is_any(self, attribute: Attribute, column: Sql, cells: Sequence[int]) -> Sql:
        """True where a value is one of several categories."""
        listed = self.listed(attribute, cells)
        if len(listed) == 1:
            return Sql(f"{column} = {listed[0]}")
        return Sql(f"{column} IN ({', '.join(listed)})")

    def at_most(self, attribute: Attribute, column: Sql, cell: int) -> Sql:
        """True if a value is in a cell up to `cell`; never for NULL, NaN and other values."""
        if attribute.kind == "categorical":
            return self.is_any(attribute, column, range(cell + 1))
        return Sql(f"{column} <= {self.edge(attribute, cell)}")

    def is_cell(self, attribute: Attribute, column: Sql, cell: int) -> Sql:
        """True if a value is in this cell; false, not NULL, if it is in none."""
        if cell == attribute.null and (attribute.nullable or attribute.kind == "numeric"):
            return self.missing(attribute, column)
        if attribute.kind == "categorical":
            if cell != attribute.other:
                return self.is_any(attribute, column, [cell])
            other = f"NOT {self.is_any(attribute, column, range(attribute.proper))}"
            missing = self.missing(attribute, column)
            if not attribute.nullable:
                return Sql(f"({missing} OR {other})")
            return Sql(f"(NOT {missing} AND {other})" if attribute.family == "float" else other)
        above = f"{column} > {self.edge(attribute, cell - 1)}" if cell else ""
        below = self.at_most(attribute, column, cell) if cell < len(attribute.edges) else ""
        present = f"NOT {self.missing(attribute, column)}" if not below else ""
        return Sql(" AND ".join(part for part in (above, below, present) if part))


def without_jinja(sql: str) -> Sql:
    """SQL that dbt leaves as it is: Jinja reads some braces, and makes other line ends of \\r."""
    return Sql(JINJA_OPENING.sub("{{ '{' }}", sql).replace("\r", '{{ "\\r" }}'))
