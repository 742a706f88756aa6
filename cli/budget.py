"""dpforest budget"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpforest_duckdb.cli import opening, options
from dpforest_duckdb.cli.output import (
    emit,
    note,
    say_if_new,
    shortest_path,
    show_table,
    tell,
    warn,
)
from dpforest_duckdb.errors import UsageError
from dpforest_duckdb.ledger.refusals import one_row_note, overspent_note
from dpforest_duckdb.privacy.unit import single_rows

if TYPE_CHECKING:
    from dpforest_duckdb.cli.accounts import AnyEngine
    from dpforest_duckdb.ledger.account import Account
    from dpforest_duckdb.ledger.accounts import KeptAccount
    from dpforest_duckdb.ledger.entries import Budget, Holder

    Tables = AbstractContextManager[AnyEngine]  # an engine, while its database or session is open

_AMOUNTS = ("cap (ε)", "spent (ε)", "left (ε)", "spent (δ)", "runs")


class Action(StrEnum):
    show = "show"
    set = "set"
    move = "move"
    retire = "retire"


def budget(
    action: Annotated[Action, options.one_of(Action)] = Action.show,
    db: options.MaybeDataDb = None,
    table: options.MaybeTable = None,
    epsilon: Annotated[
        str | None, typer.Option(metavar="E", help="The most ε that may be spent.")
    ] = None,
    to: Annotated[
        str | None, typer.Option(metavar="TABLE", help="The new name of the table to move.")
    ] = None,
    delta: options.MaybeDelta = None,
    privacy_unit: options.PrivacyUnit = None,
    rows_per_unit: options.RowsPerUnit = None,
    raise_cap: Annotated[
        bool,
        typer.Option(
            "--raise",
            help="Allow a higher cap, or one that protects rows or another column instead.",
        ),
    ] = False,
    ledger: options.Ledger = None,
    dataset: options.Dataset = None,
    as_json: options.AsJson = False,
    show_sql: options.ShowSql = False,
    engine: options.EngineName = "duckdb",
    master: options.Master = None,
    remote: options.Remote = None,
) -> None:
    """Cap what may be spent on data, or show what was spent.

    Data are a table, data files or a dataset. Without --table, `show` lists the budgets of all
    tables of a database, with --ledger alone those of a ledger. `move` transfers the budget of a
    capped table to the name that the table has now. `retire` says that a capped table was dropped:
    after that, other tables can be used again.

    \b
    Example:
      dpforest budget set --db data.duckdb --table visits --epsilon 2
    """
    from dpforest_duckdb.engine.sources.files import is_data_file

    of_data = dataset is not None or (db is not None and is_data_file(db))
    named = dataset or (db if of_data else table)
    wanted = _NewCap(epsilon, delta, privacy_unit, rows_per_unit, raise_cap)
    _check_options(action, named, wanted, to)
    spark = opening.spark_of(engine, master, remote)
    if spark is not None:
        _check_spark(db, table, dataset, ledger)
    elif db is None and not of_data:
        _show_ledger(action, table, ledger, as_json)
        return
    if of_data and (action in (Action.move, Action.retire) or table is not None):
        raise UsageError("--table, move and retire are for tables of a database.")
    new = wanted if action is Action.set else None
    if of_data:
        _of_data(db, dataset, ledger, new, as_json)
        return
    tables = _tables(action, db, spark, show_sql)
    if action is Action.retire:
        _retire(tables, str(table), ledger, as_json)
    elif action is Action.move:
        _move(tables, str(table), str(to), ledger, as_json)
    elif table is None:
        _show_tables(tables, ledger, as_json)
    else:
        _of_table(tables, table, ledger, new, as_json)


@dataclass(frozen=True)
class _NewCap:
    """The cap that `budget set` is asked for. What is None stays as it is."""

    epsilon: str | None
    delta: str | None
    privacy_unit: str | None
    rows_per_unit: int | None
    raise_cap: bool


def _of_data(
    db: str | None, dataset: str | None, ledger: str | None, new: _NewCap | None, as_json: bool
) -> None:
    """Set the cap of data files or of a dataset if there is a `new` one, and show their budget."""
    with opening.data_account(db, dataset, ledger) as account:
        found = _set_or_read(account, new)
    _show_found(account, found, as_json, new)


def _of_table(
    tables: Tables, table: str, ledger: str | None, new: _NewCap | None, as_json: bool
) -> None:
    """Set the cap of a table if there is a `new` one, and show its budget."""
    from dpforest_duckdb.ledger.account import Account

    with tables as engine:
        account = Account.of(engine, engine.table(table), ledger)
        found = _set_or_read(account, new)
    _show_found(account, found, as_json, new)


def _set_or_read(account: KeptAccount, new: _NewCap | None) -> Budget:
    """The budget of an account, with the `new` cap if there is one."""
    from dpforest_duckdb.training.budget import set_cap

    say_if_new(account)
    if new is None:
        return account.budget()
    return set_cap(
        account,
        new.epsilon,
        new.delta,
        new.privacy_unit,
        new.rows_per_unit,
        raise_cap=new.raise_cap,
    )


def _move(tables: Tables, table: str, to: str, ledger: str | None, as_json: bool) -> None:
    """Transfer the budget of a renamed table to its new name, and show it."""
    from dpforest_duckdb.ledger.account import Account

    with tables as engine:
        account = Account.of(engine, engine.table(to, option="--to"), ledger)
        say_if_new(account)
        found = account.move_from(table)
    _show_found(account, found, as_json)


def _retire(tables: Tables, table: str, ledger: str | None, as_json: bool) -> None:
    """Record that a table was dropped."""
    from dpforest_duckdb.ledger.account import retire_missing

    with tables as engine:
        retired = retire_missing(engine, engine.catalog, ledger, table)
    if as_json:
        emit({"table": retired.name, "action": "retire"})
    else:
        tell(
            f'Table "{retired.name}" is retired: the ledger keeps what was spent on it, and other '
            "tables can be used again."
        )


def _show_tables(tables: Tables, ledger: str | None, as_json: bool) -> None:
    """List the budgets of all tables of a database, also of those that are missing. If there is
    only one, show it in full.
    """
    with tables as engine:
        known, missing = _known(engine, ledger)
        listed = [_Listed(account.display, account.budget()) for account in known]
        listed += [_Listed(holder.name, budget, missing=True) for holder, budget in missing]
        if len(listed) != 1 or missing:
            _show_all(listed, as_json)
            return
        account = known[0]
        found = _set_or_read(account, None)
    _say_if_overspent(found)
    if as_json:
        one = {"table": account.display, **found.facts()}
        emit({**one, "tables": [listed[0].facts()]})
    else:
        _show(account, found)


def _show_found(
    account: KeptAccount, found: Budget, as_json: bool, new: _NewCap | None = None
) -> None:
    """Show a budget, and say on stderr what users should know of it, or of its `new` cap."""
    if new is not None and new.privacy_unit is None:
        _say_if_single_rows(account, found)
    if new is not None and new.rows_per_unit is None and (sentence := one_row_note(found)):
        note(sentence)
    _say_if_overspent(found)
    if as_json:
        emit({"table": account.display, **found.facts()})
    else:
        _show(account, found)


def _known(
    engine: AnyEngine, ledger: str | None
) -> tuple[list[Account], list[tuple[Holder, Budget]]]:
    """The budgets to list, of tables and of missing ones; others are notes on stderr."""
    from dpforest_duckdb.cli.accounts import known_accounts

    known, missing, errors = known_accounts(engine, ledger)
    for error in errors:
        note(error.sentence)
    return known, missing


def _say_if_single_rows(account: KeptAccount, found: Budget) -> None:
    """Say on stderr that the first cap protects single rows."""
    if len(found.caps) == 1 and found.caps[0].unit.is_row:
        note(single_rows(account.noun))


def _say_if_overspent(found: Budget) -> None:
    if sentence := overspent_note(found):
        warn(sentence)


def _tables(action: Action, db: str | None, spark: opening.Spark | None, show_sql: bool) -> Tables:
    """The engine of a database, or of Spark."""
    if spark is not None:
        return opening.opened_spark(spark, show_sql)
    return opening.opened(str(db), read_only=action is Action.show, show_sql=show_sql)


def _check_spark(
    db: str | None, table: str | None, dataset: str | None, ledger: str | None
) -> None:
    """Refuse options that do not fit a table of Spark, before a session starts."""
    from dpforest_duckdb.training.found_rows import SPARK_NEEDS_LEDGER

    if db is not None or dataset is not None:
        raise UsageError(
            "--engine spark is for tables of Spark, not for --db or --dataset: leave --engine out; "
            "files and datasets have the same budget in any engine."
        )
    if table is None:
        raise UsageError("Name the table of Spark with --table.")
    if ledger is None:
        raise UsageError(SPARK_NEEDS_LEDGER)


def _check_options(action: Action, table: str | None, wanted: _NewCap, to: str | None) -> None:
    """Refuse options that are missing or have no effect."""
    if action is Action.set:
        given = (wanted.epsilon, wanted.delta, wanted.privacy_unit, wanted.rows_per_unit)
        if table is None or all(value is None for value in given):
            raise UsageError(
                "budget set needs --table, data files or --dataset, and one of --epsilon, --delta, "
                "--privacy-unit, --rows-per-unit."
            )
    else:
        options.refuse_idle(
            f"goes with budget set: budget {action} does not change a cap",
            epsilon=wanted.epsilon,
            delta=wanted.delta,
            privacy_unit=wanted.privacy_unit,
            rows_per_unit=wanted.rows_per_unit,
            **{"raise": wanted.raise_cap},
        )
    if action is Action.move and (table is None or to is None):
        raise UsageError(
            "budget move needs --table, the old name of the table, and --to, the new one."
        )
    if action is Action.retire and table is None:
        raise UsageError("budget retire needs --table, the name of the table that was dropped.")
    if action is not Action.move:
        options.refuse_idle("goes with budget move", to=to)


@dataclass(frozen=True)
class _Listed:
    """A table in a list of budgets; a `missing` one was dropped, or renamed without its comment."""

    name: str
    budget: Budget
    missing: bool = False

    def facts(self) -> dict[str, Any]:
        return {"table": self.name, "missing": self.missing, **self.budget.facts()}

    def cells(self) -> list[object]:
        name = f"{self.name} (missing)" if self.missing else self.name
        return [name, *_amounts(self.budget)]


def _show_all(listed: Sequence[_Listed], as_json: bool) -> None:
    """An overview of the budgets of several tables."""
    if as_json:
        emit({"tables": [table.facts() for table in listed]})
    elif listed:
        show_table(["table", *_AMOUNTS], [table.cells() for table in listed])
    else:
        tell("The database has no table. For all budgets of a ledger, name --ledger alone.")


def _amounts(budget: Budget) -> list[object]:
    """The figures of a budget in an overview, in the order of `_AMOUNTS`."""
    from dpforest_duckdb.privacy.amounts import ATTO, show

    return [
        show(budget.cap.epsilon) if budget.cap else "none",
        show(budget.spent_epsilon),
        "no limit" if budget.left_epsilon is None else show(budget.left_epsilon),
        show(budget.spent_delta, ATTO),
        len(budget.entries),
    ]


def _show_ledger(action: Action, table: str | None, file: str | None, as_json: bool) -> None:
    """An overview of all budgets that a ledger holds: no database is opened."""
    from dpforest_duckdb.training.budget import budgets

    if action is not Action.show or table is not None or file is None:
        raise UsageError(
            "Name the database or data files with --db, or a --dataset; or pass --ledger alone to "
            "list all its budgets."
        )
    found = budgets(file)
    if as_json:
        facts = [each.facts() for each in found]
        emit({"ledger": str(Path(file).absolute()), "budgets": facts})
        return
    if not found:
        tell("There is no budget in the ledger.")
        return
    shown = [[each.kind, each.name, each.place, *_amounts(each.budget)] for each in found]
    show_table(["kind", "name", "place", *_AMOUNTS], shown)


def _show(account: KeptAccount, budget: Budget) -> None:
    from dpforest_duckdb.privacy.amounts import ATTO, show

    cap, left = budget.cap, budget.left_epsilon
    delta = f", δ = {show(cap.delta, ATTO)}" if cap and cap.delta else ""
    tell(f"{account.noun:<7} {account.display}")
    none = f"none ({budget.cap_limit})" if budget.cap_limit else "none"
    tell(f"cap     {f'ε = {show(cap.epsilon)}{delta}, for {cap.unit}' if cap else none}")
    spent = f", δ = {show(budget.spent_delta, ATTO)}" if budget.spent_delta else ""
    rest = f", δ = {show(budget.left_delta or 0, ATTO)}" if delta else ""
    tell(f"spent   ε = {show(budget.spent_epsilon)}{spent}")
    tell(f"left    {'no limit' if left is None else f'ε = {show(left)}{rest}'}")
    tell(f"ledger  {shortest_path(account.ledger.path)}")
    if not account.ledger.path.exists() and not account.new_ledger:  # else that was said first
        note("There is no such ledger yet, so nothing is known of earlier runs.")
    if budget.entries:
        rows = [
            {"run": number, **run.facts(), "time": _hour(run.time), "protects": str(run.unit)}
            for number, run in enumerate(budget.entries, 1)
        ]
        hidden = {"privacy_unit", "rows_per_unit", *(() if budget.spent_delta else ("delta",))}
        if cap and all(run.unit == cap.unit for run in budget.entries):
            hidden.add("protects")  # the cap says it
        shown = [name for name in rows[0] if name not in hidden]
        show_table(shown, [[row[name] for name in shown] for row in rows], title="time")


def _hour(time: str) -> str:
    """A time of the ledger, which is in UTC and cut to the hour, for people.

    >>> _hour("2026-11-30T03+00:00")
    '2026-11-30 03:00 UTC'
    """
    return f"{time[:10]} {time[11:13]}:00 UTC"
