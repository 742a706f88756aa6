"""The types of columns, in terms that hold for any engine.

The name of a type is the one in model files, which is DuckDB's. Another engine makes the same types
of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Family = Literal["integer", "decimal", "float", "text", "boolean", "date", "timestamp", "other"]
Number = int | float

NUMERIC: frozenset[Family] = frozenset({"integer", "decimal", "float", "date", "timestamp"})
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # the years 1 to 9999, in days since 1970
_WIDEST = 126  # bits of a whole number that compares with a column of any integer type


@dataclass(frozen=True)
class ColumnType:
    """What the values of a column are, and how they compare.

    A column of the family "other" cannot be an attribute. `bits` are those of a signed integer that
    holds every value of an integer type. A decimal has `digits` in all and `scale` of them after
    the point; the `scale` of a timestamp are the digits after the second. `labels` are the values
    of an enumeration.
    """

    name: str
    family: Family
    bits: int = 0
    digits: int = 0
    scale: int = 0
    labels: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name

    @property
    def base(self) -> str:
        """The name without what is in brackets."""
        return self.name.partition("(")[0]

    @property
    def listed(self) -> tuple[object, ...] | None:
        """The values that the type itself lists; None if it lists none."""
        if self.family == "boolean":
            return False, True
        return self.labels or None

    @property
    def usable(self) -> bool:
        """Whether a column can be an attribute."""
        return self.family != "other"

    @property
    def nested(self) -> bool:
        """Whether values may have parts. These may be rounded numbers, or text that is no
        Unicode, or a file may hold values that are no JSON and no geometry.
        """
        return self.family == "other" and (
            bool(set("([<") & set(self.name)) or self.name in ("VARIANT", "JSON", "GEOMETRY")
        )

    @property
    def long(self) -> bool:
        """Whether values may have any number of bytes: it is not sure of types that are unknown."""
        return self.family in ("text", "other") and not self.labels

    @property
    def limits(self) -> tuple[Number, Number]:
        """The exclusive limits of the numbers that every value of a column can be compared with.

        Beyond them a comparison may fail for some values. Dates are days since 1970, timestamps
        seconds. Raises `ValueError` for a type whose values are not numbers, dates or times.
        """
        if self.family == "integer":
            # DuckDB compares UHUGEINT with a negative number as HUGEINT, which holds half of it
            return (-1 if self.bits > 128 else -(2**_WIDEST), 2**_WIDEST)
        if self.family == "decimal":
            return (-(10 ** (38 - self.scale)), 10 ** (38 - self.scale))
        if self.family == "float":
            return (-1e300, 1e300)
        if self.family == "date":
            return (_FIRST_DAY, _LAST_DAY)
        if self.family == "timestamp" and self.scale > 6:
            return (-(2**63) // 10**9 + 1, 2**63 // 10**9)  # the years 1677 to 2262
        if self.family == "timestamp":
            return (_FIRST_DAY * 86_400, _LAST_DAY * 86_400)
        raise ValueError(f"values of {self.base} are not numbers")

    def lists_others(self, values: tuple[str, ...]) -> bool:
        """Whether this is an enumeration, but not of these values in this order."""
        return bool(self.labels) and self.labels != values

    @property
    def microseconds(self) -> int:
        """The microseconds that every value of a timestamp is a multiple of."""
        return int(10 ** max(0, 6 - self.scale))


_KNOWN: dict[str, ColumnType] = {
    each.name: each
    for each in (
        *(
            ColumnType(name, "integer", bits=bits)
            for name, bits in {
                **{"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64, "HUGEINT": 128},
                **{"UTINYINT": 9, "USMALLINT": 17, "UINTEGER": 33, "UBIGINT": 65},
                "UHUGEINT": 129,
            }.items()
        ),
        ColumnType("FLOAT", "float"),
        ColumnType("DOUBLE", "float"),
        ColumnType("VARCHAR", "text"),
        ColumnType("BOOLEAN", "boolean"),
        ColumnType("DATE", "date"),
        ColumnType("TIMESTAMP_S", "timestamp", scale=0),
        ColumnType("TIMESTAMP_MS", "timestamp", scale=3),
        ColumnType("TIMESTAMP", "timestamp", scale=6),
        ColumnType("TIMESTAMP_NS", "timestamp", scale=9),
    )
}
# these match whole types only: types also come from model files, and are written into SQL
_LABEL = r"'((?:[^'\x00]|'')*)'"
_ENUM = re.compile(rf"ENUM\({_LABEL}(?:, ?{_LABEL})*\)")
_DECIMAL = re.compile(r"DECIMAL\((\d{1,2}),\s?(\d{1,2})\)")

NO_VALUES = '"NULL"'  # DuckDB's type of a column that has no value at all
UNKNOWN = ColumnType("", "other")
ANY_TEXT = ColumnType("", "text")  # a VARCHAR or an ENUM
INTEGER, BIGINT, DOUBLE, VARCHAR, BOOLEAN, DATE, TIMESTAMP = (
    _KNOWN[name]
    for name in ("INTEGER", "BIGINT", "DOUBLE", "VARCHAR", "BOOLEAN", "DATE", "TIMESTAMP")
)


def column_type(name: str) -> ColumnType:
    """The type of a name; of the family "other" if no attribute can have it."""
    if name in _KNOWN:
        return _KNOWN[name]
    if _ENUM.fullmatch(name):
        labels = tuple(label.replace("''", "'") for label in re.findall(_LABEL, name))
        return ColumnType(name, "text", labels=labels)
    decimal = _DECIMAL.fullmatch(name)
    if decimal:
        return ColumnType(name, "decimal", digits=int(decimal[1]), scale=int(decimal[2]))
    return ColumnType(name, "other")


def enumeration(values: tuple[str, ...]) -> ColumnType:
    """An ENUM of these values; text if it cannot have them."""
    quoted = ("'" + value.replace("'", "''") + "'" for value in values)
    found = column_type(f"ENUM({', '.join(quoted)})")
    return found if found.usable else VARCHAR


def column_types(names: Mapping[str, str]) -> dict[str, ColumnType]:
    """The types of columns, by the names of their types."""
    return {column: column_type(name) for column, name in names.items()}
