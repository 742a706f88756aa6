"""Train a forest, or several on the same rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path

import duckdb

from dpforest_duckdb.domain import Domain
from dpforest_duckdb.errors import BudgetError, UsageError
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.privacy.amounts import ATTO, NANO, show
from dpforest_duckdb.progress import Observer, TextObserver, as_text, unobserved
from dpforest_duckdb.training.opening import Rows
from dpforest_duckdb.training.prepare import prepare
from dpforest_duckdb.training.run import Run


def train(
    con: duckdb.DuckDBPyConnection,
    table: Rows,
    *,
    epsilon: float | str | Decimal,
    domain: Domain | str | Path | None = None,
    recipe: str = "auto",
    name: str | None = None,
    progress: TextObserver | None = None,
    **options: object,
) -> Forest:
    """Train a forest on a table inside DuckDB; the options are those of `prepare`.

    With `name` the forest is also stored in the connection's database. The table's rows stay in the
    database. The result was released under the budget and is free to publish if `forest.private`.
    Raises `DpforestError`, one sentence, before anything is read or debited if the reason is known
    by then.
    """
    run = prepare(
        con,
        table,
        epsilon=epsilon,
        domain=domain,
        recipe=recipe,
        name=name,
        **options,  # type: ignore[arg-type]
    )
    return run.execute(progress)


def train_many(
    runs: Sequence[Run], progress: TextObserver | None = None, *, observe: Observer = unobserved
) -> Iterator[Forest]:
    """Execute prepared runs on one table, one after the other; the rows are coded once for all.

    Each run sees the rows of one moment: where a table has changed since the run before, its rows
    are coded again. Each run is debited. If the cap does not allow all of them, none is. Raises as
    `train`.
    """
    if progress is not None:
        observe = as_text(progress)
    first = runs[0]
    if len({(run.table.key, run.account.ledger and run.account.ledger.path) for run in runs}) > 1:
        raise UsageError("Runs that share one pass need the same table and the same ledger.")
    check_together(runs)
    first.engine.refuse_unseen(first.table)
    with first.engine.snapshot(first.table, shared=len(runs) > 1) as rows:
        for run in runs:
            yield (
                run.execute_on(rows, observe)
                if run.engine.same_rows(first.engine)
                else run.execute(observe=observe)
            )


def check_together(runs: Sequence[Run]) -> None:
    """Raise `BudgetError` unless the cap of the table allows all runs; nothing is debited."""
    for run in runs:
        run.check()
    budget, table = runs[0].account.budget(), runs[0].table
    for symbol, scale, wanted, left in (
        ("ε", NANO, sum(run.cost for run in runs), budget.left_epsilon),
        ("δ", ATTO, sum(run.delta for run in runs), budget.left_delta),
    ):
        if len(runs) > 1 and left is not None and wanted > left:
            raise BudgetError(
                f"Refused: these runs need {symbol} = {show(wanted, scale)} together but only "
                f'{show(left, scale)} of the cap is left for table "{table.display}": ask '
                "for fewer or raise the cap."
            )
