"""A run from its debit to its closing: the entries that it makes in a ledger."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from dpforest_duckdb.domain.table import TableInfo
from dpforest_duckdb.errors import DpforestError, UnrecordedWarning, after_debit, warn
from dpforest_duckdb.ledger.accounts import AnyAccount
from dpforest_duckdb.ledger.entries import Charge, Ending, ending

NOT_CLOSED = (
    "The debit stays, but the ledger could not record which model it made. So evaluate takes the "
    "model for one that no private run made."
)


class OpenRun:
    """A run that is debited. How it ended is recorded once; nothing is refunded."""

    def __init__(self, account: AnyAccount, charge: Charge) -> None:
        self._account, self._open = account, True
        self.numbers = account.debit(charge)

    def close(self, forest: str = "", state: Ending = "done") -> None:
        """Record the hash of the private forest that the run made, if any, and how it ended.

        If that fails, there is a warning at most: what the run made is paid for.
        """
        if not self._open:
            return
        self._open = False
        try:
            self._account.close_run(self.numbers, state, forest)
        except DpforestError:
            if forest:
                with contextlib.suppress(UserWarning):
                    warn(NOT_CLOSED, UnrecordedWarning)


@contextlib.contextmanager
def debited(
    account: AnyAccount, charge: Charge, table_seen: Callable[[], TableInfo | None]
) -> Iterator[OpenRun]:
    """Debit a run for the work in the `with` block, and close it at the end, however it ends.

    `table_seen` gives the table as the transaction that reads the rows sees it; another one than
    was debited is refused. Errors say that the debit stays.
    """
    run = OpenRun(account, charge)
    try:
        account.refuse_replaced(run.numbers, table_seen())
        yield run
    except BaseException as error:
        run.close(state=ending(error))
        if isinstance(error, DpforestError):
            raise after_debit(error) from None
        raise
    run.close()
