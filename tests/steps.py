"""Single steps of a run, for tests that make their own counts."""

from __future__ import annotations

import contextlib
import warnings
import weakref
from dataclasses import replace
from fractions import Fraction
from typing import Any

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.domain import Domain
from dpforest_duckdb.domain.table import TableInfo
from dpforest_duckdb.engine.base import CodedRows, Coding, Engine
from dpforest_duckdb.errors import NotPrivateWarning
from dpforest_duckdb.ledger.entries import Charge
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.privacy.accountant import Accountant
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.privacy.noise import CountNoise
from dpforest_duckdb.privacy.plan import ROW_COUNTS, Plan, counting
from dpforest_duckdb.privacy.randomness import Randomness
from dpforest_duckdb.privacy.unit import ROW, PrivacyUnit
from dpforest_duckdb.progress import unobserved
from dpforest_duckdb.recipes.recipe import Recipe
from dpforest_duckdb.request import Grown, Request
from dpforest_duckdb.training.context import RunContext
from dpforest_duckdb.training.preliminary import row_counts


def charge(epsilon: int = NANO, unit: PrivacyUnit = ROW, *, private: bool = True) -> Charge:
    """What a run of that cost is charged."""
    plan = ({"purpose": "test"},)
    return Charge(epsilon, 0, unit, recipe="auto", model="m", private=private, plan=plan)


def encode(
    engine: Engine,
    table: TableInfo,
    domain: Domain,
    unit: PrivacyUnit = ROW,
    *,
    likely_rows: int = 0,
    **options: Any,
) -> Any:
    """The coded rows of a table, from a snapshot of its own, which ends when they are forgotten.

    One tree sees all of them, unless the options of `Coding` say otherwise.
    """
    coding = Coding(domain, unit, **{"trees": 1, "sample": "all", "salt": 1} | options)
    with contextlib.ExitStack() as stack:
        snapshot = stack.enter_context(engine.snapshot(table))
        rows = snapshot.encode(coding, likely_rows=likely_rows)
        weakref.finalize(rows, stack.pop_all().close)
    return rows


def seeded(seed: int = 0) -> Randomness:
    """Seeded randomness, without the warning that it protects nobody."""
    with warnings.catch_warnings(action="ignore", category=NotPrivateWarning):
        return Randomness.seeded(seed)


def adapted(
    classes: Integers, recipe: Recipe, request: Request, account: Accountant, noise: CountNoise
) -> tuple[Recipe, Request]:
    """Recipe and request once noisy class counts are known."""
    randomness = Randomness(noise, Randomness.secure().bits, 0)
    context = RunContext(recipe, request, account, randomness, unobserved)
    settled = row_counts.after_counts(classes, context)
    return settled.recipe, settled.request


def spending(account: Accountant) -> Plan:
    """The queries asked so far, as a plan."""
    queried = [
        replace(query, by_depth=tuple(query.by_depth[depth] for depth in depths))
        for query in account.plan.queries
        if (depths := account._queried.get(query.purpose))
    ]
    return Plan(tuple(queried))


def counted(request: Request, forest: Forest) -> Request:
    """The request with the queries that counted the rows of a forest, as its guarantee has them."""
    first = []
    for line in forest.guarantee.plan:
        purpose, cost = line.split(":")[0], line.split(" = ")[1]
        if purpose in ROW_COUNTS:
            first.append(counting(purpose, (int(Fraction(cost) * NANO),)))
    return replace(request, preliminary=tuple(first))


def grow(
    rows: CodedRows, recipe: Recipe, request: Request, account: Accountant, randomness: Randomness
) -> Grown:
    """What the recipe's learner makes of coded rows."""
    context = RunContext(recipe, request, account, randomness, unobserved)
    return recipe.learner.grow(rows, context)
