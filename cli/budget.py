"""dpforest budget"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpforest_duckdb.cli import options
from dpforest_duckdb.cli.output import emit, say, show_table
from dpforest_duckdb.errors import UsageError

if TYPE_CHECKING:
    from dpforest_duckdb.engine.duckdb import DuckDBEngine
    from dpforest_duckdb.ledger.account import Account
    from dpforest_duckdb.ledger.entries import Budget


class Action(StrEnum):
    show = "show"
    set = "set"


def budget(
    db: options.Db,
    action: Annotated[Action, typer.Argument()] = Action.show,
    table: options.MaybeTable = None,
    epsilon: Annotated[
        str | None, typer.Option(metavar="E", help="The most ε that may ever be spent.")
    ] = None,
    delta: options.MaybeDelta = None,
    privacy_unit: options.PrivacyUnit = None,
    rows_per_unit: options.RowsPerUnit = None,
    raise_cap: Annotated[
        bool, typer.Option("--raise", help="Allow a higher cap than the present one.")
    ] = False,
    ledger: options.Ledger = None,
    as_json: options.AsJson = False,
    show_sql: options.ShowSql = False,
) -> None:
    """Cap what may be spent on a table, or show what was spent."""
    from dpforest_duckdb.ledger.account import Account
    from dpforest_duckdb.privacy.amounts import atto_delta, nano_epsilon

    setting = action is Action.set
    if setting and (table is None or epsilon is None):
        raise UsageError("budget set needs --table and --epsilon.")
    if not setting:
        options.refuse_idle(
            "goes with budget set: budget show changes nothing",
            epsilon=epsilon,
            delta=delta,
            privacy_unit=privacy_unit,
            rows_per_unit=rows_per_unit,
            **{"raise": raise_cap},
        )
    with options.opened(db, read_only=not setting, show_sql=show_sql) as engine:
        if table is None:
            account = _only(engine, ledger)
        else:
            account = Account.of(engine, engine.table(table), ledger)
        found = account.budget()
        if setting:
            found = account.set_cap(
                nano_epsilon(str(epsilon), cap=True),
                atto_delta("0" if delta is None else delta, cap=True),
                account.unit(privacy_unit, rows_per_unit),
                raise_cap=raise_cap,
            )
    if found.overspent:
        say("Warning: more is spent already than the cap allows, so every run is refused.")
    if as_json:
        emit(_facts(account, found))
    else:
        _show(account, found)


def _only(engine: DuckDBEngine, ledger: str | None) -> Account:
    """The one table of the database that has a budget, or that there is at all."""
    from dpforest_duckdb.ledger.account import Account
    from dpforest_duckdb.ledger.entries import Budget

    tables = engine.tables(engine.run("SELECT current_database()")[0][0])
    accounts = [Account.of(engine, table, ledger) for table in tables]
    spent = [account for account in accounts if account.budget() != Budget((), ())]
    known = spent or accounts
    if len(known) != 1:
        listed = ", ".join(account.info.reference for account in known) or "none"
        raise UsageError(f"Name the table with --table: the database has {listed}.")
    return known[0]


def _facts(account: Account, budget: Budget) -> dict[str, Any]:
    from dpforest_duckdb.privacy.amounts import NANO

    left = budget.left_epsilon
    return {
        "table": account.info.display,
        "cap": budget.cap.epsilon / NANO if budget.cap else None,
        "spent": budget.spent_epsilon / NANO,
        "left": None if left is None else left / NANO,
        "entries": [
            {
                "time": run.time,
                "recipe": run.recipe,
                "model": run.model,
                "epsilon": run.epsilon / NANO,
                "private": run.private,
                "state": run.state,
            }
            for run in budget.entries
        ],
    }


def _show(account: Account, budget: Budget) -> None:
    from dpforest_duckdb.privacy.amounts import ATTO, show

    cap, left = budget.cap, budget.left_epsilon
    delta = f", δ = {show(cap.delta, ATTO)}" if cap and cap.delta else ""
    print(f"table   {account.info.display}")
    print(f"cap     {f'ε = {show(cap.epsilon)}{delta}, for {cap.unit}' if cap else 'none'}")
    print(f"spent   ε = {show(budget.spent_epsilon)}")
    print(f"left    {'no limit' if left is None else f'ε = {show(left)}'}")
    print(f"ledger  {account.ledger.path}")
    facts = _facts(account, budget)["entries"]
    if facts:
        show_table(list(facts[0]), [list(fact.values()) for fact in facts])
