"""Errors a user can act on: one sentence, never a value from a private row.

Arguments of a wrong type get one too, before anything is done.
"""

import numbers
import os
import re
from collections.abc import Callable, Mapping

# a whole command, which stays as it is, or an option
_OPTION = re.compile(r"dpforest [a-z]+(?: [a-z]+)?(?: --[a-z-]+ \S+)*|--([a-z][a-z-]*)")
# options whose name in Python is another one
_PARAMETERS = {
    "db": "the path",
    "from": "table",
    "as": "form",
    "temp-dir": "DuckDB's temp_directory",
    "memory-limit": "DuckDB's memory_limit",
    "threads": "DuckDB's threads",
}


def one_line(text: object) -> str:
    """Text on one line; characters that could steer a terminal become question marks."""
    return "".join(c if c.isprintable() else "?" for c in str(text))


def in_python(sentence: str) -> str:
    """A sentence with Python's parameters for the options of the command line.

    >>> in_python("Correct --privacy-unit, or run dpforest budget show --table t.")
    'Correct privacy_unit, or run dpforest budget show --table t.'
    """

    def parameter(found: re.Match[str]) -> str:
        name = found[1]
        return _PARAMETERS.get(name, name.replace("-", "_")) if name else found[0]

    return _OPTION.sub(parameter, sentence)


class DpforestError(Exception):
    """Refused or failed: one sentence that says what is wrong, where, and what to do.

    It may quote names and paths of any kind, and stays on one line. It is written with the options
    of the command line, which prints `sentence` and exits with 1; its text in Python names the
    parameters instead.
    """

    def __init__(self, sentence: str) -> None:
        self.sentence = one_line(sentence)
        super().__init__(in_python(self.sentence))

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return type(self), (self.sentence,)


class UsageError(DpforestError):
    """An option or argument that is wrong whatever the table holds; exit code 2."""


class BudgetError(DpforestError):
    """A privacy budget does not allow the release; nothing was read and nothing was debited."""


class PlainSpillWarning(UserWarning):
    """The database is encrypted, but DuckDB's temporary files are not."""


class NotPrivateWarning(UserWarning):
    """The result carries no privacy guarantee (seeded noise or a published flaw)."""


class PrivacyLeakWarning(UserWarning):
    """Something that must be public was read off the private data; the result is not private."""


class NoBudgetWarning(UserWarning):
    """Nothing records what is spent on these rows, and nothing limits it."""


class UnanchoredWarning(UserWarning):
    """Nothing about the budget is stored with the table, so a rename gives it a new budget."""


class PublicFactWarning(UserWarning):
    """Something public deserves a second look: a label that the domain lacks, a large ε."""


Kind = tuple[Callable[[object], bool], str]


def _is_whole(value: object) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _is_seed(value: object) -> bool:
    return isinstance(value, numbers.Integral) and _is_whole(value) and int(value) >= 0


def _is_texts(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)


def _is_path(value: object) -> bool:
    return isinstance(value, str | os.PathLike) and "\0" not in str(value)


def optional(kind: Kind) -> Kind:
    """A kind that None is of too."""
    fits, words = kind
    return lambda value: value is None or fits(value), words


TEXT: Kind = (lambda value: isinstance(value, str), "text")
WHOLE: Kind = (_is_whole, "a whole number")
SEED: Kind = (_is_seed, "a whole number from 0")
FLAG: Kind = (lambda value: isinstance(value, bool), "True or False")
NAMES: Kind = (_is_texts, "a list of column names")
TEXTS: Kind = (_is_texts, "a list of texts")
PATH: Kind = (_is_path, "a path: text without a null character, or a pathlib.Path")
FUNCTION: Kind = (callable, "a function")

KINDS = {
    **dict.fromkeys(("target", "privacy_unit", "name", "dataset", "attribute"), optional(TEXT)),
    **dict.fromkeys(("recipe", "prefix", "form", "dialect"), TEXT),
    **dict.fromkeys(("trees", "depth", "rows_per_unit", "rows_at_most"), optional(WHOLE)),
    **dict.fromkeys(("replace", "as_published", "fast"), FLAG),
    **dict.fromkeys(("columns", "exclude", "key"), NAMES),
    "tree": WHOLE,
    "trace": optional(FUNCTION),
    "seed": optional(SEED),
    "ledger": optional(PATH),
    "path": PATH,
    "leaks": TEXTS,
}


def refuse_wrong_types(given: Mapping[str, object], **more: Kind) -> None:
    """Raise `UsageError` for the first argument, by name, that is not of its kind.

    `more` gives kinds to names that have none here; other arguments are left out.
    """
    for name, (fits, words) in (KINDS | more).items():
        if name in given and not fits(given[name]):
            raise UsageError(f"--{name.replace('_', '-')} must be {words}.")
