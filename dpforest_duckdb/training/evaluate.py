"""Evaluate a forest on whatever one can train on: a table, a query, a DataFrame or files."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

from dpforest_duckdb.arguments import refuse_wrong_types
from dpforest_duckdb.engine.base import Trace
from dpforest_duckdb.errors import UsageError
from dpforest_duckdb.model.figures import Evaluation
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.training.evaluation import evaluate_table
from dpforest_duckdb.training.opening import FoundRows, Rows, find_rows


def evaluate(
    con: Any,
    forest: Forest,
    table: Rows,
    *,
    target: str | None = None,
    epsilon: float | str | Decimal | None = None,
    privacy_unit: str | None = None,
    rows_per_unit: int | None = None,
    unseen: bool = False,
    ledger: str | Path | None = None,
    dataset: str | None = None,
    trace: Trace | None = None,
) -> Evaluation:
    """Accuracy, log loss and AUC of a forest on rows with known classes.

    Without `epsilon` the figures are exact: they are not private, and rows with a cap refuse them.
    With it they have noise, and ε is debited before a row is read. `private` says whether they may
    be published.

    Parameters
    ----------
    con, table, ledger, dataset, trace : as in `train`.
    target : the column with the classes; by default the forest's.
    epsilon : what the figures may cost.
    privacy_unit, rows_per_unit : whom the figures protect; by default the unit of the cap, or else
        the forest's.
    unseen : declare, in the ledger, that the forest was trained without these rows.

    Raises `DpforestError`, one sentence.
    """
    refuse_wrong_types(locals())
    if not isinstance(forest, Forest):
        raise UsageError("forest must be a Forest: train one, or read it with load_forest.")
    return figures(
        find_rows(con, table, trace),
        forest,
        target=target,
        epsilon=epsilon,
        privacy_unit=privacy_unit,
        rows_per_unit=rows_per_unit,
        unseen=unseen,
        ledger=ledger,
        dataset=dataset,
    )


def figures(
    found: FoundRows,
    forest: Forest,
    *,
    ledger: str | Path | None,
    dataset: str | None,
    **options: Any,
) -> Evaluation:
    """The figures of a forest on rows that were found; `options` are those of `evaluate`."""
    of_table = found.in_table and dataset is None
    account = None if of_table else found.account(ledger, dataset)
    return evaluate_table(
        found.engine, forest, found.table, account=account, ledger=ledger, **options
    )
