"""dpforest report"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dpforest_duckdb.cli import opening, options, written_files
from dpforest_duckdb.cli.output import emit, note, tell, warn, warn_if_not_private
from dpforest_duckdb.errors import DpforestError, UsageError, one_line

if TYPE_CHECKING:
    from dpforest_duckdb.engine.tables.engine import DuckDBEngine
    from dpforest_duckdb.ledger.entries import Budget
    from dpforest_duckdb.model.forest import Forest
    from dpforest_duckdb.report.page import Spent


def report(
    model: options.Model,
    out: Annotated[str, typer.Option(metavar="FILE.html", help="The page to write.")],
    db: options.MaybeDataDb = None,
    evaluation: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.json", help="Show the figures that dpforest evaluate --json printed."
        ),
    ] = None,
    ledger: options.Ledger = None,
    dataset: options.Dataset = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace an existing file.")] = False,
    as_json: options.AsJson = False,
    show_sql: options.ShowSql = False,
) -> None:
    """Write a page that explains a model, its guarantee and its cost.

    One HTML file that needs no network; it also shows what matters most for predictions. No row is
    read. With --db (and --ledger for data files) the page also shows the budget of the table or
    files that the model was trained on, and with --evaluation accuracy, calibration and ROC.

    \b
    Example:
      dpforest report --db data.duckdb --model visits --out visits.html
    """
    from dpforest_duckdb.model.files import write_file
    from dpforest_duckdb.report.evaluated import load_evaluation
    from dpforest_duckdb.report.page import report_html

    if not out.endswith((".html", ".htm")):
        raise UsageError("--out must end in .html: the report is a page for a browser.")
    written_files.check_writable(out, "report", db, ledger, evaluation, replace=replace)
    with opening.opened_for_model(db, model, show_sql=show_sql) as (engine, forest):
        if engine is None:
            spent = _spent_of_data(db, dataset, ledger)
            if spent is None:
                note(
                    "The page shows no budget: add --ledger, with --db or --dataset for the rows "
                    "that the model was trained on."
                )
        else:
            spent = _spent_of_table(engine, forest, ledger)
    evaluated = load_evaluation(evaluation, forest) if evaluation else None
    page = report_html(forest, spent=spent, evaluated=evaluated)
    write_file(out, page, "report", replace=replace)
    warn_if_not_private(forest)
    exact = evaluated is not None and not evaluated.private
    if exact:
        warn(
            "The page has figures that are not private: do not publish it if the table is private."
        )
    if as_json:
        emit({"report": out, "model": forest.name, "private": forest.private and not exact})
        return
    tell(f"The report of {one_line(forest.name)} is in {out}: open it in a browser.")


def _spent_of_table(engine: DuckDBEngine, forest: Forest, ledger: str | None) -> Spent | None:
    """The budget of the model's table; None, with a note, if the table or its ledger is missing."""
    from dpforest_duckdb.ledger.account import Account

    if not forest.table:
        return None
    try:
        table = engine.table(forest.table)
    except DpforestError:
        note(
            "The page shows no budget, because the database has no table "
            f'"{forest.table}", which the model was trained on.'
        )
        return None
    try:
        budget = Account.of(engine, table, ledger).budget()
    except DpforestError as missing:
        note(f"The page shows no budget. {missing.sentence}")
        return None
    return _shown("table", budget)


def _spent_of_data(db: str | None, dataset: str | None, ledger: str | None) -> Spent | None:
    """The budget of data files or of a dataset; None if no ledger is named."""
    if ledger is None or (db is None and dataset is None):
        return None
    with opening.data_account(db, dataset, ledger) as account:
        return _shown(f"{account.noun} {account.display}", account.budget())


def _shown(place: str, budget: Budget) -> Spent:
    from dpforest_duckdb.privacy.amounts import ATTO, NANO, show
    from dpforest_duckdb.report.page import Spent

    left = budget.left_epsilon
    return Spent(
        cap=None if budget.cap is None else budget.cap.epsilon / NANO,
        spent=budget.spent_epsilon / NANO,
        left=None if left is None else left / NANO,
        delta=show(budget.spent_delta, ATTO) if budget.spent_delta else "",
        place=place,
    )
