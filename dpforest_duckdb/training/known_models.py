"""What a ledger knows of a model: which of its runs made it, and so on which rows."""

from __future__ import annotations

from dpforest_duckdb.domain.names import fold
from dpforest_duckdb.domain.table import TableInfo
from dpforest_duckdb.ledger.accounts import AnyAccount
from dpforest_duckdb.model.json_format import fingerprint
from dpforest_duckdb.scoring.content import ForestContent


def trained_on(account: AnyAccount, forest: ForestContent, table: TableInfo) -> bool:
    """Whether the ledger has a run that trained the model on these rows. Then `unseen` is refused.

    The ledger keeps no hash of a model that is not private. So a run counts that was not private
    either, if it had the model's recipe and privacy unit, and the model the table's name. The rows
    of a dataset may be others each time.
    """
    if account.ledger is None or account.rows_may_change:
        return False
    promise = forest.guarantee
    kind = (False, forest.recipe, promise.unit, promise.rows_per_unit)
    alike = fold(forest.table) == fold(table.reference) and any(
        (run.private, run.recipe, run.unit.column, run.unit.rows) == kind
        for run in account.budget().entries
        if run.state in ("done", "open")  # others made no model
    )
    return made_by_a_private_run(account, forest) or (alike and not promise.private)


def made_by_a_private_run(account: AnyAccount, forest: ForestContent) -> bool:
    """Whether a private run that this account was charged for made the model."""
    if account.ledger is None:
        return False
    runs = {run.seq for run in account.budget().entries}
    return account.ledger.read().released(fingerprint(forest), runs)


def reason_to_withhold(account: AnyAccount, forest: ForestContent) -> str:
    """Why figures of a model may reveal rows that it was trained on; "" if they do not.

    Without an account the caller vouches for the model.
    """
    promise = forest.guarantee
    if not promise.private:
        return "The model is not private: a single row may have decided its figures."
    if account.ledger is None:
        return ""
    known = account.ledger.read().released(fingerprint(forest))
    return "" if known else "The ledger has no private run that made this model."
