"""Errors a user can act on: one sentence, never a value from a private row."""


class DpforestError(Exception):
    """Refused or failed: one sentence that says what is wrong, where, and what to do.

    The command line prints the sentence and exits with 1.
    """


class UsageError(DpforestError):
    """An option or argument that cannot be right whatever the table holds; exit code 2."""


class BudgetError(DpforestError):
    """A privacy budget does not allow the release; nothing was read and nothing was debited."""


class PlainSpillWarning(UserWarning):
    """What an encrypted database spills when memory is short would lie on the disk in plain."""


class NotPrivateWarning(UserWarning):
    """What is being made carries no privacy guarantee (seeded noise or a published flaw)."""
