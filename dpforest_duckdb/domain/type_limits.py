"""Refuses numbers and categories that no value of a column's type can be compared with.

The database would find them out only after the debit.
"""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Iterable, Sequence
from decimal import Decimal

from dpforest_duckdb.domain.types import ColumnType, Number
from dpforest_duckdb.domain.values import ordinal
from dpforest_duckdb.errors import DpforestError


def refuse_beyond(name: str, kind: ColumnType, numbers: Iterable[Number | Decimal]) -> None:
    """Raise `DpforestError` for numbers that a column of a type cannot be compared with.

    Otherwise the database would refuse them after the debit.
    """
    low, high = kind.limits
    if not all(low < number < high for number in numbers):
        raise DpforestError(
            f'Column "{name}" is {kind.base}, but a bound, edge or category of its domain is '
            "beyond that: correct the domain."
        )


def refuse_categories(name: str, kind: ColumnType, categories: Sequence[str]) -> None:
    """Raise `DpforestError` for categories that no value of a column can be compared with.

    They are in canonical text. A finer category than a DECIMAL would widen it, past 38 digits for
    its largest values.
    """
    finer = False
    if kind.family in ("integer", "decimal", "float"):
        refuse_beyond(name, kind, map(Decimal, categories))
    if kind.family == "timestamp":
        moments = [dt.datetime.fromisoformat(category) for category in categories]
        refuse_beyond(name, kind, [ordinal(moment, kind.family) for moment in moments])
        finer = any(moment.microsecond % kind.microseconds for moment in moments)
    if kind.family == "decimal":
        digits = [len(category.partition(".")[2]) for category in categories]
        finer = max(digits) > kind.scale
    if finer:
        raise DpforestError(
            f'Column "{name}" is {kind}, but its domain lists a category with more '
            "digits than that holds: correct the domain."
        )


def refuse_inexact(name: str, kind: ColumnType, categories: Sequence[str]) -> None:
    """Raise `DpforestError` for categories that a FLOAT column does not hold exactly.

    No value would equal them.
    """
    for category in categories if kind.base == "FLOAT" else ():
        (held,) = struct.unpack("f", struct.pack("f", float(category)))
        if held != float(category):
            near = "correct its domain"
            if 0 < abs(held) < math.inf:
                near = f"write {held!r} in its domain"
            raise DpforestError(
                f'Column "{name}" is FLOAT, which does not hold {category} exactly: {near}, or '
                "make the column DOUBLE."
            )
