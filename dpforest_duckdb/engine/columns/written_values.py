"""How numbers, moments and missing values are written as text; `casts.py` has the rules in SQL."""

from __future__ import annotations

import datetime as dt
import math
import re

import numpy as np

_WHOLE = re.compile(r"0|-?[1-9][0-9]*")  # as whole numbers are written
EXACT_DOUBLE = 2**53  # whole numbers up to this are exact as DOUBLE
EXACT_FLOAT = 2**24  # and up to this as FLOAT
LEAST_FLOAT = 1.2e-38  # below it FLOAT has fewer digits
# what Python and its libraries write for missing values, also in complex numbers and in bytes
MISSING = ("nan", "NaN", "NaT", "(nan+0j)", "(nan-0j)", "(nan+nanj)", "b'nan'", "b'NaN'", "b'NaT'")
# how Python writes complex numbers and bytes: their first letters, and the whole with what it holds
WRAPPED = (("(", r"\((.*)[+-]0j\)"), ("b'", "b'(.*)'"), ('b"', 'b"(.*)"'))


def plain_text(category: str) -> str | None:
    """The text of a category without what Python writes around some; None for missing values.

    As SQL in `casts.py`.
    """
    if category in MISSING:
        return None
    if category == "0j":
        return "0"
    wrapped = (re.fullmatch(pattern, category, re.DOTALL) for _, pattern in WRAPPED)
    return next((match[1] for match in wrapped if match), category)


def shortest_number(category: str) -> float | None:
    """The number that a category is; of one that 32 bits hold, the shortest that they hold so."""
    number = _truth_or_number(plain_text(category) or "")
    if number is None or abs(number) < LEAST_FLOAT:
        return number and 0.0
    with np.errstate(over="ignore"):
        narrow = np.float32(number)
    return float(str(narrow)) if float(narrow) == number else number


def written_number(text: str) -> float | None:
    """The number that a text is, if a number or a truth value may be written so; not of 01."""
    number = _truth_or_number(text)
    if number is None or text.casefold() in ("true", "false"):
        return number
    return number if _WHOLE.fullmatch(text) or text == repr(number) else None


def moment_of(text: str) -> dt.datetime | None:
    """The moment that a text is; None if it is none."""
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9:.]+)?", text):
        return None
    try:
        return dt.datetime.fromisoformat(text)
    except ValueError:
        return None


def is_plain_number(text: str) -> bool:
    """Whether a text is the shortest of a number that DOUBLE holds exactly."""
    number = _finite_number(text)
    if number is None:
        return False
    return text == (str(int(number)) if number == int(number) else repr(number))


def is_whole(text: str) -> bool:
    """Whether a text is a whole number of 64 bits, as DuckDB writes it."""
    return bool(_WHOLE.fullmatch(text)) and len(text) <= 20 and -(2**63) <= int(text) < 2**63


def is_number(text: str) -> bool:
    """Whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _finite_number(text: str) -> float | None:
    """The number that a text is; None if it is none, an infinity or NaN."""
    if not text.isascii() or not is_number(text):
        return None
    number = float(text)
    return number if math.isfinite(number) else None


def _truth_or_number(text: str) -> float | None:
    """The number that a text is, also a truth value; None if it is none."""
    if text.casefold() in ("true", "false"):
        return float(text.casefold() == "true")
    return _finite_number(text)
