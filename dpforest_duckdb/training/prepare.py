"""Prepare a run: check everything public before any row is read."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import lru_cache
from pathlib import Path

from dpforest_duckdb.arguments import NAMES, optional, refuse_wrong_types
from dpforest_duckdb.domain import Domain
from dpforest_duckdb.domain.file import load_domain
from dpforest_duckdb.domain.names import fold
from dpforest_duckdb.domain.table import TableInfo, refuse_folders
from dpforest_duckdb.engine.base import Trace
from dpforest_duckdb.engine.declarations import declared_domain
from dpforest_duckdb.errors import (
    DpforestError,
    NotPrivateWarning,
    PlainSpillWarning,
    PublicFactWarning,
    UsageError,
    in_python,
    warn,
)
from dpforest_duckdb.guarantee import EACH_ROW
from dpforest_duckdb.ledger.accounts import AnyAccount, ruled_out
from dpforest_duckdb.ledger.entries import Cap
from dpforest_duckdb.model import store
from dpforest_duckdb.privacy.amounts import atto_delta, large_delta, large_epsilon, nano_epsilon
from dpforest_duckdb.privacy.plan import Plan
from dpforest_duckdb.privacy.randomness import Randomness
from dpforest_duckdb.privacy.unit import PrivacyUnit, requested_unit
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.recipes import find
from dpforest_duckdb.recipes.adaptation import DENSE, plans
from dpforest_duckdb.recipes.recipe import Recipe
from dpforest_duckdb.request import Request
from dpforest_duckdb.training.check_domain import fit, unused_columns
from dpforest_duckdb.training.found_rows import FoundRows
from dpforest_duckdb.training.opening import Connection, Rows, find_rows
from dpforest_duckdb.training.run import Run

PLAIN_SPILL = (
    "The database is encrypted, but DuckDB's temporary files are not: SET temp_file_encryption = "
    "true on the connection first."
)


def prepare(
    con: Connection,
    table: Rows,
    *,
    epsilon: float | str | Decimal,
    delta: float | str | Decimal = 0,
    domain: Domain | str | Path | None = None,
    target: str | None = None,
    privacy_unit: str | None = None,
    rows_per_unit: int | None = None,
    recipe: str = "auto",
    trees: int | None = None,
    depth: int | None = None,
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    name: str | None = None,
    replace: bool = False,
    as_published: bool = False,
    seed: int | None = None,
    rows_at_most: int | None = None,
    ledger: str | Path | None = None,
    dataset: str | None = None,
    account: AnyAccount | None = None,
    leaks: Sequence[str] = (),
    file: str = "",
    trace: Trace | None = None,
) -> Run:
    """Plan a run and check all that is public, without reading a row and without a debit.

    Arguments are those of `train` without `progress`, which `Run.execute` takes, and three more:
    `account` is the budget of a DataFrame, in place of `ledger` and `dataset`; `leaks` are the
    caller's reasons why the model is not private; `file` names the file that it will be written to.

    Warns as `train` does. Raises `UsageError` for arguments that are wrong whatever the table is,
    else `DpforestError`. `Run.execute` and `train_many` check whether the cap allows the run.
    """
    refuse_wrong_types(locals(), columns=optional(NAMES))
    nano, atto = nano_epsilon(epsilon), atto_delta(delta)
    trees, depth, rows_at_most = _in_range(trees, depth, rows_at_most)
    chosen = find(recipe, as_published=as_published)
    rows = find_rows(con, table, trace)
    declared = _declared(rows, domain, target)
    kept = declared.keep(columns, exclude)
    own_account = rows.account_or(account, ledger, dataset)
    budget = own_account.budget(rows.table if rows.in_table else None)
    unit = _unit(kept, rows.table, privacy_unit, rows_per_unit, budget.cap)
    fitted = fit(rows, kept, unit)
    request = _request(chosen, fitted.domain, unit, nano, atto, trees, depth)
    rows.engine.refuse_unseen(fitted.table, [*fitted.domain.columns, *unit.columns])
    if name is not None:
        store.check_name(rows.engine.models, name, replace=replace)
    notes = (
        *filter(None, [own_account.new_dataset]),
        *_storage_notes(rows, name),
        *fitted.remarks,
        *ruled_out(own_account, budget, unit, given=privacy_unit is not None),
        *rows.remarks(fitted.domain, fitted.table.columns),
        *_budget_notes(chosen, request, wanted_delta=atto),
        *chosen.remarks(trees, depth),
    )
    run = Run(
        engine=rows.engine,
        account=own_account,
        table=fitted.table,
        recipe=chosen,
        request=request,
        plan=chosen.whole_plan(request),
        unit=unit,
        randomness=Randomness.secure(),
        name=name,
        replace=replace,
        leaks=tuple(leaks),
        file=file,
        notes=notes,
        unused_columns=unused_columns(rows.table, declared, unit),
        left_out=_left_out(declared, fitted.domain, unit),
        rows_at_most=rows_at_most,
    )
    run.refuse_if_too_large()
    _warn(run)
    if seed is not None:  # which warns too
        run = dataclasses.replace(run, randomness=Randomness.seeded(int(seed)))
    return run


def _warn(run: Run) -> None:
    """Warn of all notes, of the recipe's flaws, and of temporary files that are not encrypted."""
    if run.engine.spills_plain(run.table):
        warn(PLAIN_SPILL, PlainSpillWarning)
    for note in run.notes:
        warn(in_python(note), PublicFactWarning)
    for flaw in run.recipe.flaws:
        warn(f"Recipe {run.recipe.label} is not private: {flaw}", NotPrivateWarning)


def _storage_notes(rows: FoundRows, name: str | None) -> Iterator[str]:
    """Where a model will be stored, if it will not last as long as its rows and their budget."""
    if name is not None and rows.lasting and not rows.engine.models.lasting:
        yield (
            "The model will be stored in the connection's current database, which is in memory, so "
            "it is lost when the connection is closed: keep it with forest.save(path), or first "
            "run USE with the name of a database that is a file."
        )


def _budget_notes(recipe: Recipe, request: Request, *, wanted_delta: int) -> Iterator[str]:
    """What is to be said about ε and δ of a request, and about a δ that it does without."""
    if request.delta != wanted_delta:
        yield f"Recipe {recipe.name} uses pure ε and spends no δ."
    yield from large_epsilon(request.epsilon)
    yield from large_delta(request.delta)


def _in_range(
    trees: int | None, depth: int | None, rows_at_most: int | None
) -> tuple[int | None, int | None, int | None]:
    """The numbers as Python's integers; NumPy's are others. Raises `UsageError`."""
    trees, depth, rows_at_most = (
        None if number is None else int(number) for number in (trees, depth, rows_at_most)
    )
    for option, value, most in (("--trees", trees, 1000), ("--depth", depth, 20)):
        if value is not None and not 1 <= value <= most:
            raise UsageError(f"{option} must be a whole number from 1 to {most}.")
    if rows_at_most is not None and rows_at_most < 1:
        raise UsageError("--rows-at-most must be a whole number from 1.")
    return trees, depth, rows_at_most


def _declared(rows: FoundRows, domain: Domain | str | Path | None, target: str | None) -> Domain:
    """The domain as given, from a file, or from DuckDB's declarations."""
    if isinstance(domain, Domain):
        if target and fold(target) != fold(domain.target):
            raise UsageError(
                f'--target is "{target}", but the domain predicts "{domain.target}": leave it out, '
                f'or load the domain\'s file with load_domain(path, target="{target}").'
            )
        return domain
    if isinstance(domain, str | Path):
        return load_domain(domain, target)
    if domain is not None:
        raise UsageError(
            "domain must be a Domain, the path of a domain file, or None for what DuckDB declares."
        )
    return declared_domain(rows.engine, rows.table, target)


def _left_out(declared: Domain, used: Domain, unit: PrivacyUnit) -> tuple[str, ...]:
    """The attributes of a domain that a request leaves out."""
    known = {fold(name) for name in (*used.columns, *unit.columns)}
    return tuple(name for name in declared.columns if fold(name) not in known)


def _request(
    recipe: Recipe,
    domain: Domain,
    unit: PrivacyUnit,
    epsilon: int,
    delta: int,
    trees: int | None,
    depth: int | None,
) -> Request:
    """What a run is asked to do, for nano-ε and atto-δ. Raises `DpforestError` as `_affordable`."""
    wanted = recipe.request(
        domain, epsilon, trees=trees, depth=depth, rows_per_unit=unit.rows, delta=delta
    )
    return _affordable(recipe, wanted)


@lru_cache(maxsize=64)  # a program may train many models with equal requests
def _affordable(recipe: Recipe, request: Request) -> Request:
    """The request, without a δ that no plan of the recipe has a use for.

    Raises `DpforestError` as `affordable_plans`.
    """
    found = affordable_plans(recipe, request)
    if not request.delta or any(plan.uses_delta for plan in found):
        return request
    if any(plan.uses_delta for plan in plans(recipe, request, DENSE)):
        return request
    return _affordable(recipe, dataclasses.replace(request, delta=0))  # which has other plans


def affordable_plans(recipe: Recipe, request: Request) -> list[Plan]:
    """The plans that a request may lead to, by the size of the table.

    Raises `DpforestError` if a chooser could not divide the budget of a query, or if the noise of
    a count could be above 10^9 rows: the samplers have limits.
    """
    # a chooser divides the budget of a query into at most 2 shares per attribute, and 2 more
    least, k = 2 * (len(request.domain.attributes) + 1), request.rows_per_unit
    counts_rows = recipe.adaptation.counts_rows and not recipe.flaws
    found = []
    for plan in plans(recipe, request):
        few = [min(q.by_depth) < max(least, q.measure.scaled(1, k)) for q in plan.queries]
        uncounted = counts_rows and plan.query(Purpose.ROWS) is None  # a share of 0 is no query
        if any(few) or uncounted:
            helps = {
                "fewer --trees": request.trees > 1 and not recipe.fixed_trees,
                "less --depth": request.depth > 1 and not recipe.fixed_depth,
                "fewer --rows-per-unit": k > 1,
            }
            remedies = " or ".join(remedy for remedy, does in helps.items() if does)
            raise DpforestError(
                "--epsilon is too small to be shared by all the queries of this recipe: raise it"
                + (f", or ask for {remedies}." if remedies else ".")
            )
        found.append(plan)
    return found


def _unit(
    domain: Domain, info: TableInfo, requested: str | None, rows: int | None, cap: Cap | None
) -> PrivacyUnit:
    """The privacy unit: as requested, else the domain's, else that of the cap, else the row.

    Raises `DpforestError` if the domain has identifiers and nothing says whom to protect, and for
    columns that the names of folders have.
    """
    column = domain.privacy_unit if requested is None else requested
    named = [] if column in (None, EACH_ROW) else [str(column)]
    refuse_folders(info, [*domain.columns, *named])
    if column is None and domain.identifiers and (cap is None or cap.unit.is_row):
        raise DpforestError(
            f'The domain names an identifier, "{domain.identifiers[0]}": say whom to protect, with '
            'a column as --privacy-unit, or "row" for each row.'
        )
    unit = requested_unit(column, rows, usual=cap.unit if cap else None, columns=info.columns)
    if not unit.is_row and unit.column not in info.columns:
        raise DpforestError(
            f'There is no column "{unit.column}", which the cap protects: name whom to protect '
            "with --privacy-unit."
        )
    return unit
