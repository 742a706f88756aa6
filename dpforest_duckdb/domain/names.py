"""Names of columns, tables and schemas, compared as DuckDB compares them."""

from __future__ import annotations

from collections.abc import Iterable

_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")


def fold(name: str) -> str:
    """A name in the form in which equal names are equal: the case of A to Z makes no difference.

    That of all other letters does: a table of DuckDB may have the columns É and é.

    >>> fold("Straße É")
    'straße É'
    """
    return name.translate(_LOWER)


def spellings(names: Iterable[str]) -> dict[str, str]:
    """Each name by its `fold`."""
    return {fold(name): name for name in names}
