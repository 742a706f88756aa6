"""Errors and warnings a user can act on: one sentence, never a value from a private row."""

import re
import shlex
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

_WORD = r"""(?:'[^']*'|"'"|[\w@%+=:,./-])*(?:'[^']*'|"'"|[\w@%+=:/-])"""  # of a shell
# what became of a table, another whole command, which stays as it is, a privacy unit, or an option
_OPTION = re.compile(
    r"dpforest budget (?P<verb>move|retire)"
    rf"(?: --table (?P<old>{_WORD})(?: --to (?P<new>{_WORD}))?)?(?! --)"
    r"|dpforest [a-z]+(?: [a-z]+)?(?: --[a-z-]+(?: \S+)?)*"
    r"|--privacy-unit (?P<unit>(?:'[^']*'|\"'\"|[\w@%+=:,./-])+) --rows-per-unit (?P<rows>\d+)"
    r"|--privacy-unit (?P<each>row)\b"
    r"|--(?P<name>[a-z][a-z-]*)"
)
RAISE = "dpforest budget set --raise"
STAYS = "The debit stays: see dpforest budget."
_COLUMN = re.compile(r'[Cc]olumn (".*?")')
SHOWN = 5  # errors of one domain file
# options whose name in Python is another one
_PARAMETERS = {
    "db": "the path",
    "from": "table",
    "as": "form",
    "temp-dir": "DuckDB's temp_directory",
    "out": "Forest.save",
    "memory-limit": "DuckDB's memory_limit",
    "threads": "DuckDB's threads",
    "raise": "raise_cap=True",
    "show-sql": "trace=print",
}
_names: ContextVar[Mapping[str, str]] = ContextVar("_names", default=MappingProxyType({}))


def one_line(text: object) -> str:
    """Text on one line; characters that could steer a terminal become question marks."""
    return "".join(c if c.isprintable() else "?" for c in str(text))


def number_of(things: int, noun: str) -> str:
    """A number of things, for people.

    >>> number_of(1, "row"), number_of(2, "row")
    ('1 row', '2 rows')
    """
    return f"{things} {noun}{'s'[: things != 1]}"


@contextmanager
def naming(parameters: Mapping[str, str]) -> Iterator[None]:
    """In the `with` block, messages have these parameters for options, by the options' names."""
    token = _names.set(parameters)
    try:
        yield
    finally:
        _names.reset(token)


def in_python(sentence: str) -> str:
    """A sentence with Python's parameters for the options of the command line, and its functions
    for the commands that raise a cap or say what became of a table: while Python has a database
    open, no command can open it.

    >>> in_python("Correct --privacy-unit, or run dpforest budget show --table t.")
    'Correct privacy_unit, or run dpforest budget show --table t.'
    >>> in_python("Pass --privacy-unit 'the person' --rows-per-unit 3.")
    "Pass privacy_unit='the person', rows_per_unit=3."
    >>> in_python("Run dpforest budget move --table t --to 'new ones'.")
    "Run move_budget(con, 't', 'new ones')."
    """

    def parameter(found: re.Match[str]) -> str:
        if found["verb"]:
            words = [word for word in (found["old"], found["new"]) if word]
            names = [repr("".join(shlex.split(word))) for word in words] or ["…"]
            return f"{found['verb']}_budget({', '.join(['con', *names])})"
        if found["each"]:
            return "privacy_unit='row'"
        if found["unit"]:
            column = "".join(shlex.split(found["unit"]))
            return f"privacy_unit={column!r}, rows_per_unit={found['rows']}"
        name, known = found["name"], {**_PARAMETERS, **_names.get()}
        return known.get(name, name.replace("-", "_")) if name else found[0]

    return _OPTION.sub(parameter, sentence.replace(RAISE, "set_budget(…, raise_cap=True)"))


class DpforestError(Exception):
    """Refused or failed: one sentence that says what is wrong, where, and what to do.

    It may quote names and paths of any kind, and stays on one line. It is written with the options
    of the command line, which prints `sentence` and exits with 1; its text in Python names the
    parameters instead.
    """

    def __init__(self, sentence: str) -> None:
        self.sentence = one_line(sentence)
        super().__init__(in_python(self.sentence))

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return type(self), (self.sentence,)


class Refusals:
    """What is wrong in several places, so that users can correct all of it at once."""

    def __init__(self) -> None:
        self._found: list[DpforestError] = []

    @contextmanager
    def gathered(self) -> Iterator[None]:
        """Keep a `DpforestError` for later."""
        try:
            yield
        except DpforestError as error:
            self._found.append(error)

    def refuse(self) -> None:
        """Raise what was kept, if anything: several as one `DpforestError`, a sentence for each."""
        match self._found:
            case []:
                return
            case [error]:
                raise error
            case errors:
                found = _by_words([error.sentence for error in errors])
                if len(found) > SHOWN:
                    found[SHOWN:] = [f"Further errors: {len(found) - SHOWN}."]
                raise DpforestError(" ".join(found))


def _by_words(sentences: Sequence[str]) -> list[str]:
    """The sentences; those that differ by their column alone are one, which names all columns.

    >>> _by_words(['Column "a" is odd.', 'Column "b" is odd.', 'Column "c" is old.'])
    ['Column "a" is odd. The same holds for "b".', 'Column "c" is old.']
    """
    others: dict[str, list[str]] = {}
    first: dict[str, str] = {}
    for sentence in sentences:
        column = _COLUMN.search(sentence)
        words = _COLUMN.sub("", sentence, count=1)
        if words in first and column:
            others.setdefault(words, []).append(column[1])
        first.setdefault(words, sentence)
    for words, names in others.items():
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        first[words] += f" The same holds for {', '.join(names[:SHOWN])}{more}."
    return list(first.values())


class DebitStaysError(DpforestError):
    """A failure whose sentence says that what was debited stays spent."""


def after_debit(error: DpforestError) -> DebitStaysError:
    """The error of a run that was debited before it failed: its sentence says that."""
    if isinstance(error, DebitStaysError):
        return error
    return DebitStaysError(f"{error.sentence} {STAYS}")


class RefusedStatementError(DpforestError):
    """DuckDB refused a statement. Its message is withheld, because it can quote data."""


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


class UnrecordedWarning(UserWarning):
    """The ledger has a debit, but could not record how the run ended."""


class UnanchoredWarning(UserWarning):
    """Nothing about the budget is stored with the table.

    So a rename gives it a new budget, and another ledger does too.
    """


class PublicFactWarning(UserWarning):
    """Something public or released deserves a second look, such as a large ε, or no rows."""


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the line of the user's code that led here: the last one outside of this package, and
    of the library through which its context managers call it.
    """
    ours, level = (__name__.partition(".")[0], contextmanager.__module__), 1
    frame = sys._getframe()
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in ours:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
