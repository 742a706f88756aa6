"""Values of the domain: the canonical text of a category, the number of an ordered value."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

from dpforest_duckdb.domain.types import Family, Number
from dpforest_duckdb.errors import DpforestError

EPOCH = dt.date(1970, 1, 1)


def category_text(value: object, family: Family = "text") -> str:
    """The canonical text of a category in a column of a family.

    Numbers are compared as numbers, so '1', 1 and 1.0 are one category of an integer column. Raises
    `ValueError` for a value that the family does not have.
    """
    if isinstance(value, dt.datetime):
        value = value.isoformat(sep=" ")
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if family == "boolean":
        if text.lower() not in ("true", "false"):
            raise ValueError("not a boolean")
        return text.lower()
    if family in ("integer", "decimal", "float"):
        number = Decimal(text) if _is_number(text) else None
        if number is None or (family == "integer" and number != number.to_integral_value()):
            raise ValueError("not a number of this family")
        if family == "float":
            number = Decimal(repr(float(number)))
        return plain_digits(number)
    if family == "date":
        return dt.date.fromisoformat(text).isoformat()
    if family == "timestamp":
        return dt.datetime.fromisoformat(text).isoformat(sep=" ")
    return text


def ordinal(value: object, family: Family) -> Number:
    """A number for a value of an ordered type: days for DATE, seconds for TIMESTAMP.

    Raises `DpforestError` for any other value.
    """
    if isinstance(value, dt.datetime):
        delta = value.replace(tzinfo=None) - dt.datetime(1970, 1, 1)
        return delta.days if family == "date" else delta.total_seconds()
    if isinstance(value, dt.date):
        days = (value - EPOCH).days
        return days if family == "date" else days * 86_400
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, int | float):
        return value
    raise DpforestError(
        "A bound, edge or value of a numeric column is neither a number nor a date: in Python, "
        "write dates as datetime.date(2020, 1, 31)."
    )


def last_moment(seconds: float, unit: int) -> dt.datetime:
    """The last moment that is not above a number of seconds since 1970, as `ordinal` compares.

    Moments are multiples of `unit` microseconds. Far from 1970 several of them are one number.
    """
    step = dt.timedelta(microseconds=unit)
    moment = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=seconds)
    moment -= dt.timedelta(microseconds=moment.microsecond % unit)
    while ordinal(moment, "timestamp") > seconds:
        moment -= step
    while ordinal(moment + step, "timestamp") <= seconds:
        moment += step
    return moment


def plain_digits(number: Decimal) -> str:
    """Digits without exponent, trailing zeros or negative zero."""
    text = format(number, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
