"""The quality of a model on rows with known classes: exact figures, or private ones.

The engine scores and counts the rows. Those counts are private, and so are exact figures computed
from them. With ε the rows are counted on a fixed public grid, and noise is added to every cell.
What is computed from the noisy grid may be published.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

from dpforest_duckdb.arguments import refuse_wrong_types
from dpforest_duckdb.domain import Attribute
from dpforest_duckdb.domain.domain import bound_labels
from dpforest_duckdb.domain.names import fold, hint, spellings
from dpforest_duckdb.domain.table import TableInfo, refuse_folders
from dpforest_duckdb.engine.base import Engine, Snapshot, Trace
from dpforest_duckdb.errors import (
    BudgetError,
    DpforestError,
    NotPrivateWarning,
    PublicFactWarning,
    UsageError,
    in_python,
    warn,
)
from dpforest_duckdb.guarantee import EACH_ROW
from dpforest_duckdb.ledger.account import Account
from dpforest_duckdb.ledger.accounts import AnyAccount, NoAccount, refuse_capped
from dpforest_duckdb.ledger.entries import Charge
from dpforest_duckdb.ledger.note import has_note
from dpforest_duckdb.ledger.open_run import debited
from dpforest_duckdb.model.figures import EDGES, Evaluation, exact_figures, noisy_figures
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.privacy.amounts import nano_epsilon
from dpforest_duckdb.privacy.noise import OpenDPNoise
from dpforest_duckdb.privacy.plan import counting
from dpforest_duckdb.privacy.unit import ROW, PrivacyUnit
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.scoring.content import ForestContent
from dpforest_duckdb.scoring.inputs import fitted, refuse_missing
from dpforest_duckdb.training.found_rows import FoundRows
from dpforest_duckdb.training.known_models import reason_to_withhold, trained_on
from dpforest_duckdb.training.opening import Connection, Rows, find_rows

EVALUATE = "evaluate"  # stands for the recipe in the ledger
UNSEEN = "the model never saw these rows"  # what --unseen records in the ledger
DECLARE = f"Pass --unseen if {UNSEEN}."


@dataclass(frozen=True)
class EvaluationTerms:
    """What is asked of an evaluation, and what it may cost: see `evaluate`.

    Without `epsilon` the figures are exact.
    """

    target: str | None = None
    epsilon: float | str | Decimal | None = None
    privacy_unit: str | None = None
    rows_per_unit: int | None = None
    unseen: bool = False

    @property
    def cost(self) -> int | None:
        """Nano-ε, or None for exact figures.

        Raises `UsageError` for an ε that is none, and for what exact figures cannot have.
        """
        if self.epsilon is not None:
            return nano_epsilon(self.epsilon)
        if self.privacy_unit is not None or self.rows_per_unit is not None or self.unseen:
            raise UsageError(
                "--privacy-unit, --rows-per-unit and --unseen go with --epsilon: exact figures "
                "protect nobody."
            )
        return None


def evaluate(
    con: Connection,
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
    epsilon : what the noisy figures cost; by default the figures are exact, and cost nothing.
    privacy_unit, rows_per_unit : whom the figures protect; by default the unit of the cap, or else
        the forest's.
    unseen : declare, in the ledger, that the forest was trained without these rows.

    Raises `UsageError` for wrong arguments, `BudgetError` if a cap does not allow the figures, and
    for the rest `DpforestError`, one sentence. Warns if noisy figures will not be private, and if
    figures say nothing, because no row has a class of the forest or because they are mostly noise.
    """
    refuse_wrong_types(locals())
    if not isinstance(forest, Forest):
        raise UsageError(
            "forest must be a Forest: train one, or read it with stored_forest or load_forest."
        )
    found = find_rows(con, table, trace)
    figures = evaluate_table(
        found.engine,
        forest,
        found.table,
        _account(found, ledger, dataset, exact=epsilon is None),
        EvaluationTerms(target, epsilon, privacy_unit, rows_per_unit, unseen),
    )
    warn_if_doubtful(figures)
    return figures


def warn_before_debit(consequence: str, advice: str) -> None:
    """Warn with `NotPrivateWarning` that figures will cost ε and not be private."""
    warn(in_python(f"{consequence} {advice}".strip()), NotPrivateWarning)


def warn_if_doubtful(figures: Evaluation) -> None:
    """Warn with `PublicFactWarning` if the figures say nothing."""
    if figures.doubt:
        warn(in_python(figures.doubt), PublicFactWarning)


def evaluate_table(
    engine: Engine,
    forest: ForestContent,
    table: TableInfo,
    account: AnyAccount,
    terms: EvaluationTerms = EvaluationTerms(),
    say: Callable[[str, str], None] = warn_before_debit,
) -> Evaluation:
    """Evaluate a forest on rows; those without a class of the class list are left out.

    Without ε the figures are exact and must be kept as secret as the rows. A table with a cap
    refuses them.

    With ε the figures are noisy, and ε is debited before a row is read. The privacy unit is
    that of the cap, else the model's or a larger one. The figures may be published if the model is
    private: a model that was trained on these rows without a guarantee would reveal them by its
    figures, whatever the noise. So the ledger must have the model's hash, as what a private run
    released, or the caller declares with `unseen` that the model never saw these rows, which the
    ledger records, and refuses if it knows better. Otherwise a table with a cap refuses, and
    figures on a table without a cap are marked as not private, with the reason. `say` gets what
    that means, and advice, before the debit.

    `account` is the budget of the rows. `NoAccount` is for rows that cannot have one. Raises
    `DpforestError`.
    """
    nano, target = terms.cost, terms.target or forest.domain.target
    _refuse_other_account(engine, table, account, exact=nano is None)
    unit = ROW if nano is None else _unit(account, table, forest, terms)
    info = _typed(engine, forest, table, target, unit)
    engine.refuse_unseen(info, _read(forest, info, target, unit))
    labels = _labels(forest, info, target, unit)
    if nano is None:
        return _exact(engine, info, forest, labels, account)
    if terms.unseen and trained_on(account, forest, table):
        raise BudgetError(
            f"Refused: the ledger shows that the model was trained on {account.noun} "
            f'"{account.display}": leave out --unseen. If its rows are new, store them under '
            "another name."
        )
    reason = "" if terms.unseen else reason_to_withhold(account, forest)
    if reason and account.budget().cap:
        raise BudgetError(
            f'Refused: {account.noun} "{account.display}" has a cap. {reason} {DECLARE}'
        )
    if reason:
        advice = "" if trained_on(account, forest, table) else DECLARE
        say(f"{_consequence(account)} {reason}", advice)
    declared = {"declared": UNSEEN} if terms.unseen else {}
    plan = ({**counting(Purpose.FIGURES, (nano,)).facts(), **declared},)
    charge = Charge(nano, 0, unit, EVALUATE, forest.name, private=not reason, plan=plan)
    with (
        engine.snapshot(info) as rows,  # what cannot be read costs nothing
        debited(account, charge, rows.table_seen),
    ):
        found = _noisy(rows, forest, labels, nano, unit)
    return replace(found, private=False, reasons=(reason,)) if reason else found


def _consequence(account: AnyAccount) -> str:
    """What it means to pay for figures that are not private."""
    cost = "This costs ε, but the figures will not be private."
    if account.ledger is None or not all(run.private for run in account.budget().entries):
        return cost  # no cap is possible anyway
    return f"{cost} After that, this {account.noun} cannot be capped."


def _exact(
    engine: Engine,
    info: TableInfo,
    forest: ForestContent,
    labels: Attribute,
    account: AnyAccount,
) -> Evaluation:
    """Figures of the rows without noise, for a table without a cap."""
    with engine.snapshot(info) as rows:
        seen = rows.table_seen()
        if seen and isinstance(account, NoAccount) and has_note(seen.comment):
            account = Account.of(engine, seen)  # it has got a budget meanwhile
        refuse_capped(
            account,
            seen,
            f'Refused: {account.noun} "{account.display}" has a cap, and exact figures are not '
            "private: ask for noisy ones with --epsilon.",
        )
        return exact_figures(rows.count_outcomes(forest, labels), len(forest.domain.classes))


def _noisy(
    rows: Snapshot, forest: ForestContent, labels: Attribute, nano: int, unit: PrivacyUnit
) -> Evaluation:
    """Figures of the rows for a budget that is paid."""
    salt = secrets.randbits(63)
    grid = rows.count_outcome_grid(forest, labels, unit, EDGES, salt)
    return noisy_figures(grid, nano, unit, len(forest.domain.classes), OpenDPNoise())


def _typed(
    engine: Engine, forest: ForestContent, table: TableInfo, target: str, unit: PrivacyUnit
) -> TableInfo:
    """The table with the columns that an evaluation reads, in the types that they are read as."""
    attributes = {fold(attribute.column) for attribute in forest.domain.attributes}
    if fold(target) in attributes:
        raise UsageError(
            f'--target is "{target}", an attribute of the model: name the column with its classes.'
        )
    used = tuple(forest.used.values()) or forest.domain.attributes  # a domain has one at least
    return engine.typed(table, replace(forest.domain, attributes=used, target=target), unit)


def _unit(
    account: AnyAccount, info: TableInfo, forest: ForestContent, terms: EvaluationTerms
) -> PrivacyUnit:
    """The privacy unit of the figures: the cap's, or else the model's or a larger one."""
    column, rows = terms.privacy_unit, terms.rows_per_unit
    if account.budget().cap:
        return account.unit(column, rows)
    promise = forest.guarantee
    if column is None and promise.unit != EACH_ROW:
        column = promise.unit
        if fold(column) not in {fold(name) for name in info.columns}:
            raise DpforestError(
                f'The model protects each "{column}", and there is no such column: name the column '
                "of the same persons with --privacy-unit."
            )
    if rows is None and column not in (None, EACH_ROW):
        rows = promise.rows_per_unit
    unit = account.unit(column, rows)
    if (unit.is_row and promise.unit != EACH_ROW) or unit.rows < promise.rows_per_unit:
        raise UsageError(
            f"The figures would protect {unit}, which is less than the model protects: pass "
            f"--privacy-unit and --rows-per-unit {promise.rows_per_unit} or more, or leave both "
            "out."
        )
    return unit


def _account(
    found: FoundRows, ledger: str | Path | None, dataset: str | None, *, exact: bool
) -> AnyAccount:
    """The budget of the rows; exact figures of a table that cannot have one need none."""
    optional = exact and found.in_table and ledger is None and dataset is None
    if optional and not _may_have_budget(found.engine, found.table):
        return NoAccount()
    return found.account(ledger, dataset)


def _may_have_budget(engine: Engine, table: TableInfo) -> bool:
    """Whether a table may have a budget, in a ledger beside its database or by its note."""
    return bool(engine.home(table.catalog).path) or has_note(table.comment)


def _refuse_other_account(
    engine: Engine, info: TableInfo, account: AnyAccount, *, exact: bool
) -> None:
    """Raise `UsageError` for an account that stands in for that of a table."""
    is_of_table = isinstance(account, Account) and account.info.key == info.key
    none = isinstance(account, NoAccount) and exact and not _may_have_budget(engine, info)
    if is_of_table or none:
        return
    if any(found.key == info.key for found in engine.tables(info.catalog)):
        raise UsageError("account is for rows in no table: a table has a budget of its own.")


def _read(forest: ForestContent, info: TableInfo, target: str, unit: PrivacyUnit) -> list[str]:
    """The columns of a table that an evaluation reads, as the table spells them."""
    names = {fold(name) for name in (*forest.read_columns, target, *unit.columns)}
    return [name for name in info.columns if fold(name) in names]


def _labels(forest: ForestContent, info: TableInfo, target: str, unit: PrivacyUnit) -> Attribute:
    """The table's column of classes, after a check that the others can be read too.

    Raises `DpforestError` for a column that is missing or has an unsuitable type.
    """
    found = spellings(info.columns)
    refuse_folders(info, [target, *forest.read_columns, *unit.columns])
    if fold(target) not in found:
        near = hint(target, info.columns)
        raise DpforestError(
            f'There is no column "{target}"{near}: name the column of the classes with --target.'
        )
    unit.refuse_target(target)
    column = found[fold(target)]
    labels = bound_labels(forest.domain.classes, column, info.columns[column])
    refuse_missing(forest, info.columns)
    for attribute in forest.used.values():
        fitted(attribute, info.columns[found[fold(attribute.column)]])
    if not unit.is_row and unit.column not in info.columns:
        raise DpforestError(
            f'The budget protects each "{unit.column}", and there is no such column: name the '
            "column of the same persons with --privacy-unit."
        )
    return labels
