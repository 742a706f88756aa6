"""dpforest evaluate"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from dpforest_duckdb.cli import opening, options
from dpforest_duckdb.cli.exit_codes import debiting, printing, stop_if_interrupted
from dpforest_duckdb.cli.output import (
    emit,
    note,
    number,
    rounded,
    say_if_new,
    say_spent,
    show_table,
    tell,
    warn,
)
from dpforest_duckdb.cli.progress import shown_status

if TYPE_CHECKING:
    from dpforest_duckdb.ledger.accounts import AnyAccount
    from dpforest_duckdb.model.figures import Evaluation
    from dpforest_duckdb.model.forest import Forest

HARDLY = 0.1  # of a class's rows: if fewer are predicted as it, a threshold of 1/2 is too high


@debiting
def evaluate(
    db: options.DataDb,
    model: options.Model,
    table: options.MaybeTable = None,
    target: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column with the classes. [default: the model's]"),
    ] = None,
    epsilon: Annotated[
        str | None,
        typer.Option(metavar="E", help="Release noisy figures and debit this ε."),
    ] = None,
    privacy_unit: options.PrivacyUnit = None,
    rows_per_unit: options.RowsPerUnitOfModel = None,
    unseen: Annotated[
        bool,
        typer.Option(
            "--unseen",
            help="Declare, in the ledger, that the model was trained without these rows.",
        ),
    ] = False,
    ledger: options.Ledger = None,
    dataset: options.Dataset = None,
    as_json: options.AsJson = False,
    show_sql: options.ShowSql = False,
    threads: options.Threads = None,
    memory_limit: options.MemoryLimit = None,
    temp_dir: options.TempDir = None,
) -> None:
    """Compare predictions with known classes, exactly or privately.

    Prints accuracy and log loss, with two classes also AUC and a confusion matrix. With more
    classes, exact figures include the recall of each class. Without --epsilon the figures are exact
    and not private; a table with a cap refuses them. With --epsilon they are noisy, and
    the budget is debited; probabilities are then rounded to one of 22 ranges. Noisy figures protect
    the unit of the table's cap, or else the model's. They are free to publish if a private run in
    the ledger made the model. If none did, but the model was trained without these rows, add
    --unseen.

    \b
    Example:
      dpforest evaluate --db data.duckdb --model visits --table test_visits
    """
    from dpforest_duckdb.model import store
    from dpforest_duckdb.model.json_format import fingerprint
    from dpforest_duckdb.training.evaluate import EvaluationTerms, evaluate_table
    from dpforest_duckdb.training.opening import find_rows

    database, rows = opening.rows_of(db, table)
    with opening.opened(
        database,
        read_only=epsilon is None,
        show_sql=show_sql,
        machine=opening.Machine(threads, memory_limit, temp_dir),
    ) as engine:
        source = find_rows(engine.connection, rows, engine.trace)
        forest = store.load(engine.models, model) if source.in_table else opening.file_model(model)
        account = source.account(ledger, dataset)
        say_if_new(account)
        for remark in source.remarks(forest.domain):
            note(remark)
        stop_if_interrupted()
        terms = EvaluationTerms(target, epsilon, privacy_unit, rows_per_unit, unseen)
        with shown_status("comparing rows"):
            found = evaluate_table(
                source.engine, forest, source.table, account, terms, _warn_before_debit
            )
        if epsilon is not None:
            say_spent(account)
        _say_if_trained(account, forest)
    _say_if_not_private(found)
    if found.doubt:
        warn(found.doubt)
    paid = "The figures are paid for, but cannot be printed"
    with nullcontext() if epsilon is None else printing(paid):
        if as_json:
            named = {"model": forest.name, "forest": fingerprint(forest)}
            emit({**named, "table": table or source.table.name, **found.facts()})
            return
        _show(found, forest.domain.classes)


def _warn_before_debit(consequence: str, advice: str) -> None:
    """Say on stderr that figures will cost ε and not be private."""
    warn(f"{consequence} {advice}".strip())


def _say_if_not_private(found: Evaluation) -> None:
    """Say on stderr that figures are not private."""
    if found.reasons:
        warn("These figures are not private, so do not publish them.")
    elif not found.private:
        warn(
            "These figures are exact, so they are not private: do not publish them if the table is "
            "private. For figures that you may publish, add --epsilon."
        )


def _say_if_trained(account: AnyAccount, forest: Forest) -> None:
    """Say on stderr if a private run on these rows, or on some of their dataset, made the model."""
    from dpforest_duckdb.training.known_models import made_by_a_private_run

    if not made_by_a_private_run(account, forest):
        return
    if account.rows_may_change:
        note(
            "The model was trained on rows of this dataset. If these are the same, its "
            "figures on new rows are likely worse."
        )
    else:
        note("The model was trained on these rows. On new rows its figures are likely worse.")


def _show(found: Evaluation, classes: Sequence[str]) -> None:
    """Print the figures for people."""
    from dpforest_duckdb.privacy.amounts import show

    others = found.unlabelled
    left_out = f" ({others} others have no class of the model)" if others else ""
    rows_spread = _spread(found.rows_noise)
    tell(f"rows      {'-' if found.rows is None else found.rows}{rows_spread}{left_out}")
    spread = _spread(found.accuracy_noise)
    tell(f"accuracy  {number(found.accuracy)}{spread}{_beside(found)}")
    tell(f"log loss  {number(found.log_loss)}{_spread(found.log_loss_noise)}")
    tell(f"AUC       {number(found.auc)}{_spread(found.auc_noise)}{_why(found.auc, len(classes))}")
    if found.epsilon is not None and found.unit is not None and found.noise is not None:
        tell(f"protects  {found.unit}, at ε = {show(found.epsilon)}")
        meaning = "one standard deviation in each count; every figure combines many counts"
        tell(f"noise     {rounded(found.noise)} ({meaning})")
        drawn = "".join(
            f'; which rows of each "{name}" are used also matters' for name in found.unit.columns
        )
        tell(f"±         two standard deviations of the noise in a figure{drawn}")
    if found.confusion:
        show_table(
            ["class", *(f"predicted {one}" for one in classes)],
            [[one, *rows] for one, rows in zip(classes, found.confusion, strict=True)],
        )
        if found.confusion_noise is not None:
            tell(f"Each number of rows has noise of ± {2 * found.confusion_noise:,.0f}.")
        if found.rows != 0 and not found.mostly_noise:
            _say_if_never_predicted(found, classes)
    if found.by_class:
        show_table(
            ["class", "rows", "predicted correctly", "recall"],
            [
                [one, rows, right, number(right / rows if rows else None)]
                for one, (rows, right) in zip(classes, found.by_class, strict=True)
            ],
        )


def _spread(noise: float | None) -> str:
    """How much noise changes a figure: two standard deviations."""
    if not noise:
        return ""
    twice = 2 * noise
    shown = number(twice) if 5e-5 <= twice < 1 else rounded(twice, 2)
    return f" ± {shown}"


def _beside(found: Evaluation) -> str:
    """What the accuracy is to be compared with."""
    guess = found.most_frequent
    if guess is None or found.accuracy is None:
        return ""
    return f" (always guessing the most frequent class: {number(guess)})"


def _say_if_never_predicted(found: Evaluation, classes: Sequence[str]) -> None:
    """Say on stderr if one of two classes is hardly ever predicted, and what helps.

    The noise in the rows of a prediction is that of two cells.
    """
    noise = 2 * math.sqrt(2) * (found.confusion_noise or 0)
    for position, (rows, predicted) in enumerate(
        zip(map(sum, found.confusion), map(sum, zip(*found.confusion, strict=True)), strict=True)
    ):
        if predicted - noise < HARDLY * rows:
            perhaps = "Perhaps hardly" if predicted > HARDLY * rows else "Hardly"
            note(
                f"{perhaps} any row is predicted as {classes[position]}, because its probability "
                "is rarely above 1/2. To find such rows, compare "
                f"p_{classes[position]} with a lower threshold of your own."
            )


def _why(auc: float | None, classes: int) -> str:
    """Why there is no AUC; nothing if there is one."""
    if auc is not None:
        return ""
    return " (for two classes only)" if classes > 2 else " (it needs rows of both classes)"
