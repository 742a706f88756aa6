"""The types of Python's arguments: a wrong one is refused in one sentence, before anything else."""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TypeGuard

from dpforest_duckdb.errors import UsageError

ArgumentKind = tuple[Callable[[object], bool], str]


def is_whole(value: object) -> TypeGuard[numbers.Integral]:
    """Whether this is a whole number, of Python or NumPy."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _is_seed(value: object) -> bool:
    return is_whole(value) and int(value) >= 0


def is_list(value: object) -> TypeGuard[Sequence[object]]:
    """Whether this is a list, a tuple or another sequence, but no text and no bytes."""
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)


def _is_texts(value: object) -> bool:
    return is_list(value) and all(isinstance(one, str) for one in value)


def _is_groups(value: object) -> bool:
    return is_list(value) and all(
        is_list(group) and len(group) == 2 and isinstance(group[0], str) and _is_texts(group[1])
        for group in value
    )


def _is_levels(value: object) -> bool:
    return is_list(value) and all(map(_is_groups, value))


def _is_path(value: object) -> bool:
    try:
        return isinstance(value, str | os.PathLike) and b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:  # such as half of a surrogate pair
        return False


def optional(kind: ArgumentKind) -> ArgumentKind:
    """A kind that None is of too."""
    fits, words = kind
    return lambda value: value is None or fits(value), words


TEXT: ArgumentKind = (lambda value: isinstance(value, str), "text")
WHOLE: ArgumentKind = (is_whole, "a whole number")
SEED: ArgumentKind = (_is_seed, "a whole number from 0")
FLAG: ArgumentKind = (lambda value: isinstance(value, bool), "True or False")
NAMES: ArgumentKind = (_is_texts, "a list of column names")
TEXTS: ArgumentKind = (_is_texts, "a list of texts")
NUMBERS: ArgumentKind = (is_list, "a list of numbers or dates")
GROUPS: ArgumentKind = (_is_groups, "a list of pairs: a group and the list of its categories")
LEVELS: ArgumentKind = (_is_levels, "a list of levels, each as a taxonomy")
PATH: ArgumentKind = (_is_path, "a path that a file can have: text or a pathlib.Path")
FUNCTION: ArgumentKind = (callable, "a function")

KINDS = {
    **dict.fromkeys(("target", "privacy_unit", "name", "dataset", "attribute"), optional(TEXT)),
    **dict.fromkeys(("recipe", "prefix", "form", "dialect", "file"), TEXT),
    **dict.fromkeys(("trees", "depth", "rows_per_unit", "rows_at_most"), optional(WHOLE)),
    **dict.fromkeys(("replace", "as_published", "fast", "force", "unseen", "raise_cap"), FLAG),
    **dict.fromkeys(("columns", "exclude", "key"), NAMES),
    "tree": WHOLE,
    "trace": optional(FUNCTION),
    "seed": optional(SEED),
    "ledger": optional(PATH),
    "path": PATH,
    "leaks": TEXTS,
}


def refuse_wrong_types(given: Mapping[str, object], **more: ArgumentKind) -> None:
    """Raise `UsageError` for the first argument, by name, that is not of its kind.

    `more` gives kinds to names that have none here; other arguments are left out.
    """
    for name, (fits, words) in (KINDS | more).items():
        if name in given and not fits(given[name]):
            raise UsageError(f"--{name.replace('_', '-')} must be {words}.")
