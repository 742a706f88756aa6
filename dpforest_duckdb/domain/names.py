"""Names of columns, tables and schemas, compared as DuckDB compares them."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

_PART = re.compile(r'(?:("(?:[^"]|"")*")|([^.]*))\.')
# digits, and what else numbers, dates and times are written with
_VALUE = re.compile(r"[\d\s.,:;/+%$€£()_-]*\d(?:[\d\s.,:;/+%$€£()_-]|[eETZ](?=[\d+-]|$))*")
_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")


def fold(name: str) -> str:
    """A name in the form in which equal names are equal: the case of A to Z makes no difference.

    That of all other letters does: a table of DuckDB may have the columns É and é.

    >>> fold("Straße É")
    'straße É'
    """
    return name.translate(_LOWER)


def is_unicode(text: str) -> bool:
    """Whether a text has no half of a surrogate pair, which no database and no file holds.

    >>> is_unicode("é"), is_unicode("\\ud800")
    (True, False)
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def may_be_a_value(name: str) -> bool:
    """Whether a name in a header is written as a number, a date or a time is.

    >>> all(map(may_be_a_value, ("17", "1.5e3", "12/03/1957", "3,5 %", "2024-01-31T10:00Z")))
    True
    >>> any(map(may_be_a_value, ("age", "Q1 2020", "24h", "x1", "nan", "-", "")))
    False
    """
    return bool(_VALUE.fullmatch(name))


def split_name(name: str) -> list[str]:
    """The parts of a dotted name. A part in double quotes may contain a dot or a doubled quote."""
    found = _PART.findall(f"{name}.")
    return [quoted[1:-1].replace('""', '"') if quoted else plain for quoted, plain in found]


def spellings(names: Iterable[str]) -> dict[str, str]:
    """Each name by its `fold`."""
    return {fold(name): name for name in names}


def free_name(wanted: str, taken: Mapping[str, str]) -> str:
    """The name, with underscores until it is none of those in `spellings`."""
    while fold(wanted) in taken:
        wanted += "_"
    return wanted


def random_name() -> str:
    """A name that no table or view has; tables may also have it as a prefix."""
    return f"dpforest_{secrets.token_hex(6)}"


def listed(names: Sequence[str], most: int = 20) -> str:
    """Names in quotes; of many, the first ones and how many more there are."""
    quoted = [f'"{name}"' for name in names[:most]]
    more = len(names) - most
    return ", ".join(quoted) + (f" and {more} more" if more > 0 else "")


def meant(name: str, known: Iterable[str]) -> str:
    """The known name that another is probably meant to be; "" if there is none."""
    spelt, written = {other.casefold(): other for other in known}, name.casefold()
    near = get_close_matches(written, spelt, 1, 0.8)
    near += [other for other in spelt if sorted(other) == sorted(written)]  # knid: kind
    return spelt[near[0]] if near else ""


def hint(name: str, known: Iterable[str]) -> str:
    """A question after an unknown name, in brackets; "" if no known one is similar."""
    other = meant(name, known)
    return f' (did you mean "{other}"?)' if other else ""
