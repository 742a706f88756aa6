"""Errors a user can act on: one sentence, never a value from a private row."""


def one_line(text: object) -> str:
    """Text on one line; characters that could steer a terminal become question marks."""
    return "".join(c if c.isprintable() else "?" for c in str(text))


class DpforestError(Exception):
    """Refused or failed: one sentence that says what is wrong, where, and what to do.

    It may quote names and paths of any kind, and stays on one line. The command line prints it and
    exits with 1.
    """

    def __init__(self, sentence: str) -> None:
        super().__init__(one_line(sentence))


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
