"""The quality of a model on a table with known classes: exact figures, or private ones.

The rows are scored and counted inside DuckDB. The result is counts per group, which are private,
and so are exact figures computed from them. With ε the groups are a fixed public grid, noise is
added to their counts, and everything after that may be published.
"""

from __future__ import annotations

import contextlib
import math
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpforest_duckdb.arrays import Floats, Integers
from dpforest_duckdb.domain import Attribute
from dpforest_duckdb.engine.duckdb import DuckDBEngine
from dpforest_duckdb.errors import BudgetError, DpforestError, UsageError
from dpforest_duckdb.ledger.account import Account
from dpforest_duckdb.ledger.anchor import TableInfo
from dpforest_duckdb.ledger.entries import outcome
from dpforest_duckdb.privacy.amounts import ATTO, NANO, nano_epsilon, show
from dpforest_duckdb.privacy.noise import CountNoise, OpenDPNoise, laplace_deviation
from dpforest_duckdb.privacy.plan import PlannedQuery
from dpforest_duckdb.privacy.unit import PrivacyUnit
from dpforest_duckdb.scoring.content import ForestContent
from dpforest_duckdb.scoring.score_sql import Scored, score_sql, share_names
from dpforest_duckdb.sql import Sql, render

BINS = 20  # of the probability, in private figures; even, so that 1/2 is an edge
MAX_ROWS_PER_UNIT = 1_000_000
EVALUATE = "evaluate"  # stands for the recipe in the ledger
UNSEEN = "the model never saw these rows"  # what --unseen records in the ledger
LEAST = 1e-15  # smaller probabilities are replaced by this in the log loss


@dataclass(frozen=True)
class Evaluation:
    """Figures of a model on a table; None if there is nothing to compute them from.

    `private` says whether they may be published, and `reasons` why not, if noise was paid for.
    Noisy figures cost `epsilon`, in nano-ε, for each privacy `unit`; `noise` is the standard
    deviation of the noise in each count that they are computed from.
    """

    rows: int | None
    accuracy: float | None
    log_loss: float | None
    auc: float | None
    private: bool = False
    epsilon: int | None = None
    unit: PrivacyUnit | None = None
    noise: float | None = None
    reasons: tuple[str, ...] = ()

    def facts(self) -> dict[str, Any]:
        """The figures as a JSON object; with their cost and unit if they are noisy."""
        names = ("rows", "accuracy", "log_loss", "auc", "private")
        found = {name: getattr(self, name) for name in names}
        if self.epsilon is None or self.unit is None:
            return found
        return {
            **found,
            **({"reasons": list(self.reasons)} if self.reasons else {}),
            "epsilon": self.epsilon / NANO,
            "privacy_unit": self.unit.column,
            "rows_per_unit": self.unit.rows,
            "noise": self.noise,
        }


def evaluate(
    engine: DuckDBEngine,
    forest: ForestContent,
    table: str,
    *,
    target: str | None = None,
    epsilon: float | str | Decimal | None = None,
    privacy_unit: str | None = None,
    rows_per_unit: int | None = None,
    unseen: bool = False,
    ledger: str | Path | None = None,
) -> Evaluation:
    """Evaluate a forest on a base table; rows without a class of the class list are left out.

    Without `epsilon` the figures are exact and as private as the rows; a table with a cap refuses
    them. With `epsilon`, it is debited before a row is read, and the figures are free to publish if
    the model is private. (A model that was trained on these rows without a guarantee would reveal
    them through its figures, whatever the noise.) So a private run in the ledger must have made the
    model, or the caller declares with `unseen` that it never saw these rows, which the ledger
    records. Otherwise a table with a cap refuses, and elsewhere the figures state that they are not
    private, and why. The unit is that of the cap, or else the model's or a larger one. Raises
    `DpforestError`.
    """
    nano = None if epsilon is None else nano_epsilon(epsilon)
    if nano is None and (privacy_unit is not None or rows_per_unit is not None or unseen):
        raise UsageError(
            "--privacy-unit, --rows-per-unit and --unseen go with --epsilon: exact figures protect "
            "nobody."
        )
    info = engine.table(table)
    engine.refuse_unseen(info, _read(forest, info, target, privacy_unit))
    account = _account(engine, info, ledger, needed=nano is not None)
    if nano is None:
        if account and account.budget().cap:
            raise BudgetError(
                f'Refused: table "{info.display}" has a cap, and exact figures are not private: '
                "ask for noisy ones with --epsilon."
            )
        return exact_figures(*_counted(engine, forest, info, target), len(forest.domain.classes))
    assert account is not None
    unit = _unit(account, forest, privacy_unit, rows_per_unit)
    doubt = "" if unseen else _doubt(account, forest)
    if doubt and account.budget().cap:
        raise BudgetError(
            f'Refused: table "{info.display}" has a cap. {doubt} Pass --unseen if the model never '
            "saw these rows."
        )
    statement = _statement(engine, forest, info, target, bins=BINS, unit=unit)
    planned = asdict(PlannedQuery("figures", "discrete Laplace", (nano,)))
    run = account.debit(
        nano,
        0,
        unit,
        recipe=EVALUATE,
        model=forest.name,
        private=not doubt,
        plan=[{**planned, **({"declared": UNSEEN} if unseen else {})}],
    )
    try:
        classes = len(forest.domain.classes)
        grid = _grid(engine, statement, unit, classes)
        noisy = noisy_figures(grid, nano, unit, classes, OpenDPNoise())
    except BaseException as error:
        with contextlib.suppress(DpforestError):
            account.close_run(run, outcome(error))
        raise
    with contextlib.suppress(DpforestError):  # the debit stands whatever becomes of this line
        account.close_run(run, "done")
    return replace(noisy, private=False, reasons=(doubt,)) if doubt else noisy


def _unit(
    account: Account, forest: ForestContent, column: str | None, rows: int | None
) -> PrivacyUnit:
    """The privacy unit of the figures: the cap's, or else the model's or a larger one."""
    if rows is not None and (type(rows) is not int or not 1 <= rows <= MAX_ROWS_PER_UNIT):
        raise UsageError(f"--rows-per-unit must be a whole number from 1 to {MAX_ROWS_PER_UNIT:,}.")
    if account.budget().cap:
        return account.unit(column, rows)
    promise = forest.guarantee
    if column is None and promise.unit != "row":
        column = promise.unit
        if column.casefold() not in {name.casefold() for name in account.info.columns}:
            raise DpforestError(
                f'The model protects each "{column}", which the table does not have: name the '
                "column of the same persons with --privacy-unit."
            )
    if rows is None and column not in (None, "row"):
        rows = promise.rows_per_unit
    unit = account.unit(column, rows)
    if (unit.column == "row" and promise.unit != "row") or unit.rows < promise.rows_per_unit:
        raise UsageError(
            f"The figures would protect {unit}, which is less than the model protects: pass "
            f"--privacy-unit and --rows-per-unit {promise.rows_per_unit} or more, or leave both "
            "out."
        )
    return unit


def _doubt(account: Account, forest: ForestContent) -> str:
    """Why figures of a model may reveal rows that it was trained on; "" if they do not."""
    promise = forest.guarantee
    if not promise.private:
        return "The model is not private: a single row may have decided its figures."
    unit = PrivacyUnit(promise.unit, promise.rows_per_unit, promise.neighbours)
    known = any(
        run.private
        and run.recipe == forest.recipe != EVALUATE
        and (run.model or run.table.name) in (forest.name, forest.table)
        and run.unit == unit
        and (show(run.epsilon), show(run.delta, ATTO)) == (promise.epsilon, promise.delta)
        for run in account.ledger.runs()
    )
    return "" if known else "The ledger has no private run that made this model."


def exact_figures(
    label: Integers, right: Integers, value: Floats, rows: Integers, classes: int
) -> Evaluation:
    """Figures of grouped rows: `rows[i]` of them have `label`, `right` (0 or 1) and `value`.

    With two classes `label` is the class and `value` the probability of the second; with more,
    `label` is 0 and `value` the probability of the row's own class.
    """
    total = int(rows.sum())
    if not total:
        return Evaluation(0, None, None, None)
    own = np.where(label == 0, 1 - value, value) if classes == 2 else value
    return Evaluation(
        rows=total,
        accuracy=float((rows * right).sum() / total),
        log_loss=log_loss(own, rows),
        auc=auc(value, rows * (label == 1), rows * (label == 0)) if classes == 2 else None,
    )


def log_loss(own: Floats, rows: Integers | Floats) -> float:
    """The mean of -log p over rows, p being the probability of a row's own class."""
    return float(-(rows * np.log(np.clip(own, LEAST, 1))).sum() / rows.sum())


def auc(score: Floats, positive: Integers | Floats, negative: Integers | Floats) -> float | None:
    """The share of pairs (positive, negative) that the score orders well; ties count half.

    `positive[i]` and `negative[i]` rows have `score[i]`. None if either class is missing.
    """
    pairs = float(positive.sum()) * float(negative.sum())
    if positive.sum() <= 0 or negative.sum() <= 0:
        return None
    values, group = np.unique(score, return_inverse=True)
    up = np.bincount(group, weights=positive, minlength=len(values))
    down = np.bincount(group, weights=negative, minlength=len(values))
    return float((up * (np.cumsum(down) - down / 2)).sum() / pairs)


def possible(classes: int) -> NDArray[np.bool_]:
    """The cells `[class, right, bin]` of the grid that a row can be in; public.

    Bin b holds probabilities above b / BINS and up to (b + 1) / BINS; the first one also 0. With
    two classes the second is predicted only above 1/2. With more classes, a predicted class has at
    least an equal share, and a class that is not predicted has at most half.
    """
    high = np.arange(1, BINS + 1)
    above_half = high * 2 > BINS
    if classes == 2:
        return np.array([[above_half, ~above_half], [~above_half, above_half]])
    return np.array([[~above_half, high * classes >= BINS]])


def noisy_figures(
    grid: Integers, epsilon: int, unit: PrivacyUnit, classes: int, noise: CountNoise
) -> Evaluation:
    """Private figures of true counts `grid[class, right, bin]`, for nano-ε.

    One privacy unit changes the grid by at most its rows. A probability is known up to its bin, and
    the middle of the bin is used.
    """
    noisy = noise.laplace(grid, epsilon, unit.rows) * possible(classes)
    rows = int(noisy.sum())
    nothing = Evaluation(
        rows=max(rows, 0),
        accuracy=None,
        log_loss=None,
        auc=None,
        private=noise.private,
        epsilon=epsilon,
        unit=unit,
        noise=laplace_deviation(epsilon, unit.rows),
    )
    if rows < 1:
        return nothing
    middle = (np.arange(BINS) + 0.5) / BINS
    own = np.array([1 - middle, middle]) if classes == 2 else middle[None, :]
    loss = log_loss(own, noisy.sum(axis=1))
    area = auc(middle, noisy[1].sum(axis=0), noisy[0].sum(axis=0)) if classes == 2 else None
    return replace(
        nothing,
        accuracy=_between(float(noisy[:, 1].sum() / rows), 0, 1),
        log_loss=_between(loss, -math.log(middle[-1]), -math.log(middle[0])),
        auc=None if area is None else _between(area, 0, 1),
    )


def _between(value: float, low: float, high: float) -> float:
    """Limit a figure to its possible range, which noise may leave."""
    return min(max(value, low), high)


def _account(
    engine: DuckDBEngine, info: TableInfo, ledger: str | Path | None, *, needed: bool
) -> Account | None:
    """The table's budget; a database in memory without a ledger can have none."""
    on_disk = engine.home(info).path
    if not (needed or on_disk or ledger is not None or "dpforest-budget: " in info.comment):
        return None
    return Account.of(engine, info, ledger)


def _statement(
    engine: DuckDBEngine,
    forest: ForestContent,
    info: TableInfo,
    target: str | None,
    *,
    bins: int = 0,
    unit: PrivacyUnit | None = None,
) -> Sql:
    dialect, classes = engine.dialect, forest.domain.classes
    found = {name.casefold(): name for name in info.columns}
    wanted = target or forest.domain.target
    if wanted.casefold() not in found:
        raise DpforestError(f'The table has no column "{wanted}": name the classes with --target.')
    column = found[wanted.casefold()]
    labels = Attribute(column, "categorical", classes).bound(info.columns[column])
    prefix = _free_prefix(info.columns)
    read = _read(forest, info, target, unit.column if unit else None)
    source = Scored(dialect.rows(info, read), info.columns)
    names = [dialect.ident("s", name) for name in share_names(forest, prefix)]
    label = dialect.class_code(labels.values, labels.type, dialect.ident("s", column))
    arms = " ".join(f"WHEN {number} THEN {name}" for number, name in enumerate(names))
    binary = len(classes) == 2
    by_column = None
    if unit and unit.column != "row":
        if unit.column not in info.columns:
            raise DpforestError(f'The table has no column "{unit.column}", which its cap protects.')
        name = dialect.ident("s", unit.column)
        by_column = SimpleNamespace(
            canonical=dialect.canonical_unit(name, info.columns[unit.column]), rows=unit.rows
        )
    predicted = dialect.ident("s", f"{prefix}prediction")
    return render(
        "evaluate",
        scored=Sql(score_sql(forest, source, prefix=prefix, fast=True).rstrip()),
        binary=binary,
        bins=bins,
        unit=by_column,
        predicted=dialect.class_code(classes, forest.domain.target_type, predicted),
        value=names[1] if binary else Sql(f"CASE {label} {arms} END"),
        **{"class": label},
    )


def _read(
    forest: ForestContent, info: TableInfo, target: str | None, unit: str | None
) -> list[str]:
    """The columns of a table that an evaluation reads, as the table spells them."""
    wanted = {*forest.domain.columns, target or "", unit or forest.guarantee.unit}
    names = {name.casefold() for name in wanted}
    return [name for name in info.columns if name.casefold() in names]


def _counted(
    engine: DuckDBEngine, forest: ForestContent, info: TableInfo, target: str | None
) -> tuple[Integers, Integers, Floats, Integers]:
    """The true counts of `exact_figures`, as parallel arrays."""
    found = _run(engine, _statement(engine, forest, info, target), None)
    label, right, rows = (np.asarray(found[key], np.int64) for key in ("class", "right", "rows"))
    return label, right, np.asarray(found["value"], np.float64), rows


def _grid(engine: DuckDBEngine, statement: Sql, unit: PrivacyUnit, classes: int) -> Integers:
    """The true counts of `noisy_figures`, empty cells filled in."""
    salt = None if unit.column == "row" else {"salt": secrets.randbits(63)}
    found = _run(engine, statement, salt)
    grid = np.zeros(possible(classes).shape, dtype=np.int64)
    keys = tuple(np.asarray(found[key], np.int64) for key in ("class", "right", "value"))
    grid[keys] = found["rows"]
    return grid


def _run(engine: DuckDBEngine, statement: Sql, values: Mapping[str, int] | None) -> Any:
    return engine.read(statement, values, step="evaluate", fetch="fetchnumpy")


def _free_prefix(columns: Mapping[str, str]) -> str:
    """A prefix that no column of the table begins with."""
    prefix = "dpforest_"
    while any(name.casefold().startswith(prefix) for name in columns):
        prefix += "_"
    return prefix
