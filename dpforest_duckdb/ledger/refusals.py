"""What a budget refuses, and the sentence that says why."""

from __future__ import annotations

import shlex
from pathlib import Path

from dpforest_duckdb.errors import RAISE, BudgetError, UsageError
from dpforest_duckdb.ledger.entries import Budget, Cap, Debit, Holder
from dpforest_duckdb.privacy.amounts import ATTO, NANO, show
from dpforest_duckdb.privacy.unit import PrivacyUnit, protects, same_unit

# what else the command needs, which an entry does not know
_WHERE = {"table": "for the same database ", "dataset": "for the same --ledger ", "file": ""}


def check_amounts(epsilon: int, delta: int) -> None:
    """Raise `UsageError` for anything but integers that can be a budget."""
    # A float, NaN or negative amount would get past every comparison with a cap.
    if type(epsilon) is not int or type(delta) is not int or epsilon < 1 or not 0 <= delta < ATTO:
        raise UsageError(
            "A budget must be a whole number of nano-ε above zero and of atto-δ from 0 to below 1."
        )


def check_cap(new: Cap, budget: Budget, *, raise_cap: bool) -> None:
    """Raise `BudgetError` for a cap that cannot count what was spent, or a raise not asked for.

    A cap that may protect less than the old one, because it is for another column or for rows, is
    a raise too.
    """
    old, holder = budget.cap, new.holder
    if old and not same_unit(old.unit, new.unit) and budget.spent_under_caps:
        raise BudgetError(
            f"Refused: the cap of {holder} protects {old.unit}; it cannot be changed to "
            f"{new.unit}, because something was spent under it."
        )
    for number, run in enumerate(budget.entries, 1):
        if not run.private:
            raise BudgetError(
                f"Refused: run {number} on {holder} was not private, so no cap can count it."
            )
        if not protects(run.unit, new.unit):
            _refuse_unit(number, run, new.unit, budget)
    if old and not raise_cap:
        if not old.unit.is_row and not protects(old.unit, new.unit):
            raise BudgetError(
                f"Refused: the cap of {holder} protects {old.unit}, and a cap that protects "
                f"{new.unit} may protect less; to allow this, add --raise."
            )
        _check_not_raised("ε", NANO, old.epsilon, new.epsilon, holder)
        _check_not_raised("δ", ATTO, old.delta, new.delta, holder)


def _refuse_unit(number: int, run: Debit, unit: PrivacyUnit, budget: Budget) -> None:
    """Raise `BudgetError`: a cap that protects `unit` cannot count a run, by its `number`."""
    others = [other.unit for other in budget.entries if not protects(other.unit, run.unit)]
    if others:
        raise BudgetError(
            f"Refused: some runs on {run.holder} protected {run.unit} and some {others[0]}, so no "
            "cap can ever count them all."
        )
    if run.unit.is_row and not unit.is_row:
        raise BudgetError(
            f"Refused: run {number} on {run.holder} protected {run.unit}, so this "
            f'{run.holder.noun} can never have a cap for "{unit.column}": a cap with '
            f"{_options(run.unit)} would protect single rows only."
        )
    raise BudgetError(
        f"Refused: run {number} on {run.holder} protected {run.unit}, so a cap that protects "
        f"{unit} cannot count it: pass {_options(run.unit)}."
    )


def _check_not_raised(symbol: str, scale: int, old: int, new: int, holder: Holder) -> None:
    if new > old:
        raise BudgetError(
            f"Refused: {holder} has a cap of {symbol} = {show(old, scale)}; "
            f"to raise it to {show(new, scale)}, add --raise."
        )


def check_debit(run: Debit, budget: Budget) -> None:
    """Raise `BudgetError` if the cap does not allow a debit."""
    cap, holder = budget.cap, run.holder
    if cap is None:
        return
    if not run.private:
        raise BudgetError(
            f"Refused: {holder} has a cap, and a run that is not private cannot be counted "
            "against it: train without --seed, in the rigorous form."
        )
    if not same_unit(run.unit, cap.unit):
        hint = (
            f"pass {_options(cap.unit)}"
            if budget.spent_under_caps or not _may_become(cap.unit, run.unit, budget)
            else f"no run was made under it yet, so {_WHERE[holder.noun]}run dpforest budget set "
            f"{holder.option} {_options(run.unit)}"
        )
        raise BudgetError(
            f"Refused: the cap of {holder} protects {cap.unit}, but this run would protect "
            f"{run.unit}: {hint}."
        )
    _check_left("ε", NANO, run.epsilon, budget.spent_epsilon, cap.epsilon, holder)
    _check_left("δ", ATTO, run.delta, budget.spent_delta, cap.delta, holder)


def check_join(file: Path, earlier: Budget, dataset: Holder, budget: Budget) -> None:
    """Raise `BudgetError` if the cap of a dataset cannot count the `earlier` runs on a file.

    `budget` is that of the dataset, which the file is to join.
    """
    cap, unit = budget.cap, earlier.usual_unit
    if cap is None:
        return
    start = f"Refused: the cap of {dataset} cannot count what was spent on the file {file} before"
    for number, run in enumerate(earlier.entries, 1):
        if not run.private:
            raise BudgetError(f"{start}: run {number} was not private, so leave --dataset out.")
        if not same_unit(run.unit, cap.unit):
            may = unit and not budget.spent_under_caps and _may_become(cap.unit, unit, budget)
            change = f"run dpforest budget set {dataset.option} {_options(run.unit)} first, or "
            raise BudgetError(
                f"{start}: run {number} protected {run.unit}, but the cap protects {cap.unit}, so "
                f"{_WHERE['dataset'] + change if may else ''}leave --dataset out."
            )
    for symbol, scale, needed, spent, most in (
        ("ε", NANO, earlier.spent_epsilon, budget.spent_epsilon, cap.epsilon),
        ("δ", ATTO, earlier.spent_delta, budget.spent_delta, cap.delta),
    ):
        if needed and spent + needed > most:
            raise BudgetError(
                f"{start}: that is {symbol} = {show(needed, scale)}, but only "
                f"{show(max(0, most - spent), scale)} of {show(most, scale)} is left, so raise the "
                f"cap with {RAISE}, or leave --dataset out."
            )


def _may_become(old: PrivacyUnit, new: PrivacyUnit, budget: Budget) -> bool:
    """Whether the unit of a cap can be changed without --raise."""
    counts = all(run.private and protects(run.unit, new) for run in budget.entries)
    return counts and (old.is_row or protects(old, new))


def _check_left(symbol: str, scale: int, needed: int, spent: int, cap: int, holder: Holder) -> None:
    if needed and not cap:
        raise BudgetError(
            f"Refused: the cap of {holder} allows no {symbol}: leave --delta out, or raise the "
            f"cap with {RAISE}."
        )
    if spent > cap:
        raise BudgetError(
            f"Refused: {symbol} = {show(spent, scale)} is spent on {holder}, more than its cap of "
            f"{show(cap, scale)}: raise the cap with {RAISE}."
        )
    if spent + needed > cap:
        raise BudgetError(
            f"Refused: this run needs {symbol} = {show(needed, scale)} but only "
            f"{show(max(0, cap - spent), scale)} of the cap of {show(cap, scale)} is left "
            f"for {holder}: spend less, or raise the cap with {RAISE}."
        )


def one_row_note(budget: Budget) -> str:
    """What to say of a first cap that allows one row of each unit; "" of any other.

    It is for users who named a column, but no rows per unit.
    """
    cap = budget.cap
    if cap is None or len(budget.caps) > 1 or cap.unit.is_row or cap.unit.rows > 1:
        return ""
    return (
        f'Only one row of each "{cap.unit.column}" may be used under this cap: allow more with '
        "--rows-per-unit before the next run, because then it cannot be changed."
    )


def overspent_note(budget: Budget) -> str:
    """What to say of a cap that is lower than what was spent already; "" of any other."""
    if not budget.overspent:
        return ""
    return (
        f"More {' and '.join(budget.overspent)} is spent already than the cap allows, so every run "
        f"is refused: raise the cap with {RAISE}."
    )


def _options(unit: PrivacyUnit) -> str:
    """The options of the command line for a privacy unit."""
    if unit.is_row:
        return "--privacy-unit row"
    return f"--privacy-unit {shlex.quote(unit.column)} --rows-per-unit {unit.rows}"
