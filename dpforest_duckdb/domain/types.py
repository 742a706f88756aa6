"""The types of columns: their families, and what a column can be compared with."""

from __future__ import annotations

import re

_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UHUGEINT")
_UNSIGNED = ("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")
_TIMESTAMPS = ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS")
_FAMILIES = {
    **dict.fromkeys((*_INTEGERS, *_UNSIGNED), "integer"),
    **dict.fromkeys(("FLOAT", "DOUBLE"), "float"),
    **dict.fromkeys(_TIMESTAMPS, "timestamp"),
    "VARCHAR": "text",
    "BOOLEAN": "boolean",
    "DATE": "date",
}
# matches whole types only: types also come from model files, and are written into SQL
_ENUM = re.compile(r"ENUM\('(?:[^'\x00]|'')*'(?:, ?'(?:[^'\x00]|'')*')*\)")
DECIMAL = re.compile(r"DECIMAL\(\d{1,2},\s?(\d{1,2})\)")
# Between these, exclusive, lies what a column of a type can be compared with while no value of the
# column makes the comparison fail; dates are days of the years 1 to 9999, timestamps seconds
RANGES = {
    **dict.fromkeys((*_INTEGERS, *_UNSIGNED), (-(2**126), 2**126)),
    "UHUGEINT": (-1, 2**126),  # a negative number is compared as HUGEINT, which holds half of it
    **dict.fromkeys(("FLOAT", "DOUBLE"), (-1e300, 1e300)),
    "DATE": (-719_162, 2_932_896),
    **dict.fromkeys(_TIMESTAMPS, (-719_162 * 86_400, 2_932_896 * 86_400)),
    "TIMESTAMP_NS": (-(2**63) // 10**9 + 1, 2**63 // 10**9),  # the years 1677 to 2262
}
STEPS = {"TIMESTAMP_S": 10**6, "TIMESTAMP_MS": 10**3}  # in microseconds, of coarser timestamps


def type_family(sql_type: str) -> str:
    """The family of a column type; "" for a type that cannot be an attribute.

    One of integer, decimal, float, text (VARCHAR, ENUM), boolean, date, timestamp.
    """
    if _ENUM.fullmatch(sql_type):
        return "text"
    return "decimal" if DECIMAL.fullmatch(sql_type) else _FAMILIES.get(sql_type, "")
