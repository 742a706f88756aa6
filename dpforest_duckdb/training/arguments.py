"""Refuse arguments of a wrong type with one sentence, before anything is done."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping
from pathlib import Path

from dpforest_duckdb.errors import UsageError

Test = Callable[[object], bool]


def _is_whole(value: object) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _is_seed(value: object) -> bool:
    return isinstance(value, numbers.Integral) and _is_whole(value) and int(value) >= 0


def _is_names(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(name, str) for name in value)


TEXT: tuple[Test, str] = (lambda value: isinstance(value, str), "text")
WHOLE: tuple[Test, str] = (_is_whole, "a whole number")
SEED: tuple[Test, str] = (_is_seed, "a whole number from 0")
FLAG: tuple[Test, str] = (lambda value: isinstance(value, bool), "True or False")
NAMES: tuple[Test, str] = (_is_names, "a list of column names")
PATH: tuple[Test, str] = (lambda value: isinstance(value, str | Path), "a path")
FUNCTION: tuple[Test, str] = (callable, "a function")

KINDS = {
    **dict.fromkeys(("target", "privacy_unit", "recipe", "name", "dataset"), TEXT),
    **dict.fromkeys(("trees", "depth", "rows_per_unit", "rows_at_most"), WHOLE),
    **dict.fromkeys(("replace", "as_published"), FLAG),
    **dict.fromkeys(("columns", "exclude"), NAMES),
    "trace": FUNCTION,
    "seed": SEED,
    "ledger": PATH,
}


def refuse_wrong_types(given: Mapping[str, object]) -> None:
    """Raise `UsageError` for the first argument, by name, that is not of its kind.

    None, and what has no kind here, is left out.
    """
    for name, (fits, words) in KINDS.items():
        if given.get(name) is not None and not fits(given[name]):
            raise UsageError(f"--{name.replace('_', '-')} must be {words}.")
