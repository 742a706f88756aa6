"""What a privacy unit changes in the figures of class means, and the noise that they get for it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, cast

import duckdb
import numpy as np
import pytest
from mixed_domains import DOMAIN, LABELS, MIXED, NAMES, numbers
from steps import encode, seeded

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.domain import Domain
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.learners import class_means
from dpforest_duckdb.learners.boosting import BOOSTING
from dpforest_duckdb.learners.class_means import class_sums, product_sums, square_sums
from dpforest_duckdb.learners.strongest_attribute import coarse, misclassified
from dpforest_duckdb.privacy.accountant import Accountant
from dpforest_duckdb.privacy.amounts import ATTO, NANO
from dpforest_duckdb.privacy.measure import GAUSSIAN_DP
from dpforest_duckdb.privacy.unit import PrivacyUnit
from dpforest_duckdb.recipes import find
from dpforest_duckdb.splits.positions import REACH, blocks, has_window, positions, window_utilities

NUMBERS = (None, float("nan"), -1e9, 0.0, 10.0, 33.0, 50.0, 99.0, 100.0, 1e9)
Row = tuple[Any, ...]


def some_rows(rows: int, random: np.random.Generator) -> list[Row]:
    """Values of every kind: NULL, and those that the domain does not describe."""
    texts = ["a", "b", "c", "d", "e", "f", "elsewhere", None]
    return [
        (
            NUMBERS[random.integers(len(NUMBERS))],
            *(texts[random.integers(len(texts))] for _ in MIXED[1:]),
            LABELS[random.integers(len(LABELS))],
        )
        for _ in range(rows)
    ]


@dataclass(frozen=True)
class Figures:
    """All that is noised, or drawn by, before it is."""

    sums: Integers
    squares: Integers
    products: Integers
    windows: Integers
    strongest: int


def figures(con: duckdb.DuckDBPyConnection, units: Sequence[Sequence[Row]], k: int) -> Figures:
    """From a table in which at most k rows of a unit count."""
    kinds = ["number DOUBLE", *(f"{name} VARCHAR" for name in NAMES[1:]), "label VARCHAR"]
    con.execute(f"CREATE OR REPLACE TABLE t ({', '.join(kinds)}, who INTEGER)")
    rows = [(*row, who) for who, unit in enumerate(units) for row in unit]
    if rows:
        con.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
    engine, bounded = DuckDBEngine(con), PrivacyUnit("who", k)
    table = engine.table("t")

    def coded(domain: Domain) -> Any:
        return encode(engine, table, domain, bounded)

    counted = coded(DOMAIN)
    private = [table[0] for table in counted.count_classes(0, 1)]
    found = {
        number: positions(attribute, (4, 19) if has_window(attribute) else None)
        for number, attribute in enumerate(DOMAIN.attributes)
    }
    noised: list[int] = []
    noise = SimpleNamespace(laplace=lambda figure, cost, bound: noised.append(figure[0]) or figure)
    tables = [table[0] for table in coded(coarse(DOMAIN)).count_classes(0, 1)]
    misclassified(tables, NANO, k, cast(Any, noise))
    return Figures(
        class_sums(private, found),
        square_sums(private, found),
        product_sums(counted, private, found),
        window_utilities(private[0][: DOMAIN.attributes[0].proper].sum(axis=1), 20),
        int(noised[0]),
    )


@pytest.mark.parametrize("k", [1, 3])
def test_a_unit_more_changes_every_figure_by_its_sensitivity_at_most(
    con: duckdb.DuckDBPyConnection, k: int
) -> None:
    """By all of it, if its rows are alike and far from the middle; the bounds are tight."""
    random = np.random.default_rng(k)
    first = np.cumsum([0, *(size for a in DOMAIN.attributes for size in blocks(a))])[:-1]
    far: Row = (100.0, "e", "b", "c", None, "f", "q")
    added = [[far] * k, [(None,) * 6 + ("p",)] * k, some_rows(k, random), some_rows(k + 2, random)]
    added.append([(*far[:-1], "p")] * k)  # all attributes are wrong, if many rows are far
    most = Counter[str]()
    for units in ([], [some_rows(1 + i % 4, random) for i in range(12)], [[far] * k] * 9):
        before = figures(con, units, k)
        for unit in added:
            after = figures(con, [*units, unit], k)
            by_block = np.add.reduceat(abs(after.sums - before.sums), first, axis=1)
            changes = {
                "sums": by_block.max(axis=1).sum(),
                "squares": abs(after.squares - before.squares).max(),
                "products": abs(after.products - before.products).max(),
                "windows": (after.windows - before.windows).max(),
                "strongest": abs(after.strongest - before.strongest),
            }
            assert (after.windows >= before.windows).all(), "monotone"
            most |= Counter({name: int(change) for name, change in changes.items()})
    assert most == {
        "sums": k * REACH,
        "squares": k * REACH**2,
        "products": k * REACH**2,
        "windows": k,
        "strongest": k,
    }


@pytest.mark.parametrize("rows", [500, 10**6])
def test_the_stated_noise_is_the_noise_that_is_there(rows: int) -> None:
    """Of squares if rows are few, and of products if they are many."""
    recipe = find("class-means")
    request = replace(recipe.request(DOMAIN, NANO, rows_per_unit=2), rows=rows)
    account = Accountant(recipe.plan(request), NANO, 0)
    context = SimpleNamespace(request=request, accountant=account, randomness=seeded(rows))
    own = [size for attribute in DOMAIN.attributes for size in blocks(attribute)]
    pairs = sum(own) * (sum(own) + 1) // 2
    second = ("products", [1] * pairs) if rows > 10**4 else ("squares", [1] * sum(own))
    for purpose, of_blocks in (("means", own), second):
        query = account.plan.query(purpose)
        assert query is not None
        nothing = np.zeros((3_000, sum(of_blocks)), dtype=np.int64)
        reach = REACH if purpose == "means" else REACH**2
        released = class_means._release(nothing, of_blocks, reach, purpose, cast(Any, context))
        there = np.sqrt((released.noisy**2).mean(axis=0))
        assert (there / released.deviation).min() > 0.8
        assert (there / released.deviation).max() < 1.25
        assert recipe.learner.deviation(query, request) == pytest.approx(released.deviation.max())


def test_with_a_delta_sums_and_products_have_the_noise_of_their_l2_sensitivity() -> None:
    """A row moves each of n figures by up to 1, so √n together; k rows of a unit by k·√n."""
    domain, k = numbers(2), 3
    request = replace(
        find("boosted").request(domain, NANO, delta=ATTO // 10**5, rows_per_unit=k), rows=10**6
    )
    account = Accountant(find("boosted").plan(request), NANO, request.delta)
    context = SimpleNamespace(request=request, accountant=account, randomness=seeded(5))
    for purpose, figures, reach in (("means", 3, REACH), ("products", 6, REACH**2)):
        query = account.plan.query(purpose)
        assert query is not None
        assert query.measure == GAUSSIAN_DP
        stated = k * math.sqrt(figures * ATTO / query.total)
        nothing = np.zeros((3_000, figures), dtype=np.int64)
        blocks = [1] * figures
        released = class_means._release(nothing, blocks, reach, purpose, cast(Any, context))
        there = np.sqrt((released.noisy**2).mean(axis=0))
        assert there == pytest.approx(stated, rel=0.1)
        assert released.deviation == pytest.approx(stated)
        assert BOOSTING.deviation(query, request) == pytest.approx(stated)
