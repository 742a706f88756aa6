"""A run from its debit to its closing: the entries that it makes in a ledger."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dpforest_duckdb.domain.table import TableInfo
from dpforest_duckdb.errors import STAYS, DpforestError, UnrecordedWarning, after_debit, warn
from dpforest_duckdb.ledger.accounts import AnyAccount
from dpforest_duckdb.ledger.entries import Charge, Ending, ending

NOT_CLOSED = (
    "The debit stays, but the ledger could not record which model the run made. So evaluate treats "
    "the model as if no private run had made it."
)


@dataclass
class OpenRun:
    """A run that is debited. Once its forest is finished, `made` is the hash of it."""

    made: str = ""


@contextlib.contextmanager
def debited(
    account: AnyAccount, charge: Charge, table_seen: Callable[[], TableInfo | None]
) -> Iterator[OpenRun]:
    """Debit a run for the work in the `with` block, and close it at the end, however it ends.

    `table_seen` gives the table as the transaction that reads the rows sees it. Raises
    `DpforestError` if it is another one than was debited. Errors say that the debit stays, and so
    does a note of Ctrl-C.

    A run that `made` a forest is done, even if it was then interrupted or could not store it: the
    forest may have been stored or shown. The ledger gets the hash of a private one.
    """
    numbers, run = account.debit(charge), OpenRun()
    state: Ending = "done"
    try:
        account.refuse_replaced(numbers, table_seen())
        yield run
    except BaseException as error:
        state = "done" if run.made else ending(error)
        if isinstance(error, DpforestError):
            raise after_debit(error) from None
        if isinstance(error, KeyboardInterrupt):
            error.add_note(STAYS)
        raise
    finally:
        _close(account, numbers, state, run.made if charge.private else "")


def _close(account: AnyAccount, numbers: tuple[int, ...], state: Ending, forest: str) -> None:
    """Record how a run ended. If that fails, there is a warning at most: what it made is paid."""
    try:
        account.close_run(numbers, state, forest)
    except DpforestError:
        if forest:
            with contextlib.suppress(UserWarning):
                warn(NOT_CLOSED, UnrecordedWarning)
