"""Whatever is public and extreme, a run is refused before its debit or ends with a forest.

Every recipe, in both forms, with budgets and bounds at the ends of what the options allow, on
tables with no row, one row, one class, and counts beyond 2^40. The rows are in memory, so that many
combinations can be tried; `test_one_row.py` has the statements that code them.
"""

from __future__ import annotations

import contextlib
import random
import warnings
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from grown_trees import Rows
from variants import some

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.engine.base import CodedRows, Coding
from dpforest_duckdb.errors import DpforestError, NotPrivateWarning
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.privacy.amounts import ATTO, NANO
from dpforest_duckdb.privacy.bits import SecureBits
from dpforest_duckdb.privacy.noise import ExactNoise, noise_scale, sampled_scale
from dpforest_duckdb.recipes import RECIPES
from dpforest_duckdb.training.prepare import affordable_plans, prepare
from dpforest_duckdb.training.run import grown_forest
from dpforest_duckdb.tree import Tree

EPSILONS = ("1e-9", "3e-9", "1e-6", "0.000123457", "0.123456789", "1", "20", "1e6")
DELTAS = ("0", "0", "1e-300", "1e-18", "1e-5", "0.5", "0.999999999999999999")
BOUNDS = (1, 7, 999_983, 1_000_000)
KINDS = {
    "one": Attribute("a", "categorical", ("x",)),
    "two": Attribute("a", "categorical", ("x", "y"), nullable=False),
    "many": Attribute("a", "categorical", tuple(map(str, range(40))), ordered=True, nullable=True),
    "cut": Attribute("a", "numeric", lower=0, upper=10),
    "binned": Attribute("a", "numeric", edges=tuple(range(11))),
}
# kinds of attributes in turn, how many there are, and classes
NARROW = (
    (("one",), 1, 2), (("cut",), 1, 2), (("two", "cut"), 3, 2), (("cut", "many", "binned"), 4, 3),
)  # fmt: skip
WIDE = ((("two",), 300, 2), (("cut",), 40, 3), (("many", "cut"), 2, 100))
OURS = ("auto", "log-odds", "class-means", "joint-tables", "boosted")  # quick with many attributes
TABLES = ("empty", "one row", "one class", "several", "huge")
FORMS = [(name, form) for name in RECIPES for form in (False, True)
         if not form or RECIPES[name].published]  # fmt: skip


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    """One for all tests, which replace its one table."""
    with duckdb.connect() as connection:
        yield connection


class Huge(Rows):
    """Rows that count 2^45 times each."""

    TIMES = 2**45

    def count_classes(self, first: int, nodes: int) -> list[np.ndarray]:
        return [table * self.TIMES for table in super().count_classes(first, nodes)]

    def count_scores(self, votes: list[np.ndarray], cuts: list[int]) -> np.ndarray:
        return super().count_scores(votes, cuts) * self.TIMES

    def sum_gradients(self, trees: Sequence[Tree], unit: Any) -> list[np.ndarray]:
        return [sums * 2**30 for sums in super().sum_gradients(trees, unit)]

    def rate_mixtures(self, *args: Any) -> np.ndarray:
        return super().rate_mixtures(*args) * self.TIMES


class Snapshot:
    """Rows in memory, coded by whatever domain a run settles on."""

    def __init__(self, rows: str, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self._number = {"empty": 0, "one row": 1}.get(rows, 9)
        self._rows = rows

    def encode(self, coding: Coding, **_: object) -> CodedRows:
        domain, trees = coding.domain, coding.trees
        shape = (self._number, len(domain.cells))
        codes = (self._random.random(shape) * domain.cells).astype(np.int64)
        classes = 1 if self._rows == "one class" else len(domain.classes)
        labels = self._random.integers(0, classes, self._number)
        kind = Huge if self._rows == "huge" else Rows
        return kind(codes, labels, domain.cells, len(domain.classes), trees)  # type: ignore[return-value]


def public(kinds: Sequence[str], attributes: int, classes: int) -> Domain:
    made = [replace(KINDS[kinds[i % len(kinds)]], name=f"a{i}") for i in range(attributes)]
    return Domain(tuple(made), "y", tuple(f"c{label}" for label in range(classes)))


def table(con: duckdb.DuckDBPyConnection, domain: Domain) -> None:
    kinds = [(a.name, "DOUBLE" if a.kind == "numeric" else "VARCHAR") for a in domain.attributes]
    columns = ", ".join(f"{name} {kind}" for name, kind in kinds)
    con.execute(f"CREATE OR REPLACE TABLE t ({columns}, y VARCHAR, who INTEGER)")


def trains_or_is_refused(
    con: duckdb.DuckDBPyConnection, ledger: Path, domain: Domain, drawn: random.Random, **fixed: Any
) -> bool:
    """Whether a run with public inputs that are drawn from the extremes trains a forest."""
    k, seeded = drawn.choice(BOUNDS), drawn.random() < 0.3
    try:
        run = prepare(
            con, "t", domain=domain, epsilon=drawn.choice(EPSILONS), delta=drawn.choice(DELTAS),
            rows_per_unit=k, privacy_unit="row" if k == 1 else "who",
            trees=drawn.choice([1, 2, 3]), seed=1 if seeded else None, ledger=ledger, **fixed,
        )  # fmt: skip
    except DpforestError:
        return False
    rows = Snapshot(drawn.choice(TABLES), drawn.randrange(10**6))
    forest = grown_forest(run, rows)
    assert Forest.from_json(forest.to_json()).trees
    return True


@pytest.mark.parametrize("times", [1, pytest.param(40, marks=pytest.mark.slow)])
@some(("name", "as_published"), FORMS, keep=16)
def test_no_public_input_ends_a_run_after_its_debit(
    con: duckdb.DuckDBPyConnection, tmp_path: Path, name: str, as_published: bool, times: int
) -> None:
    drawn, trained = random.Random(f"{name} {as_published}"), 0
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", NotPrivateWarning)
        some = NARROW[::3] if times == 1 else (*NARROW, *(WIDE if name in OURS else ()))
        for shape in some:
            domain = public(*shape)
            table(con, domain)
            for _ in range(times):
                depth = drawn.choice([None, 1, 2, 20 if shape[1] == 1 else 3])
                form = {"recipe": name, "as_published": as_published, "depth": depth}
                trained += trains_or_is_refused(con, tmp_path / "ledger", domain, drawn, **form)
    assert trained or times == 1, "not everything is refused"


@pytest.mark.parametrize(
    ("name", "as_published", "rows", "options"),
    [
        # a share of ε for the number of rows costs more than all of μ²
        ("auto", False, "empty", {"epsilon": "1e6", "delta": "1e-18"}),
        ("boosted", False, "empty", {"epsilon": "1e4", "delta": "1e-5"}),
        # the noise of joint figures is stated for an ε far above their largest change
        ("class-means", False, "empty", {"epsilon": "1e6"}),
        # the more rows there are, the less goes to the leaves
        ("privatree", True, "huge", {"epsilon": "1"}),
        ("privatree", False, "huge", {"epsilon": "1"}),
    ],
)  # fmt: skip
def test_runs_that_once_ended_after_their_debit(
    con: duckdb.DuckDBPyConnection, tmp_path: Path, name: str, as_published: bool, rows: str,
    options: dict[str, Any],
) -> None:  # fmt: skip
    domain = public(("two",), 6, 2) if name == "class-means" else public(("cut",), 6, 3)
    table(con, domain)
    run = prepare(
        con, "t", domain=domain, recipe=name, as_published=as_published,
        ledger=tmp_path / "ledger", **options,
    )  # fmt: skip
    assert grown_forest(run, Snapshot(rows, 1)).trees


@pytest.mark.parametrize(
    ("k", "delta"),
    [
        (1, 0),
        (1_000_000, ATTO // 10**5),
        pytest.param(1, ATTO // 10**5, marks=pytest.mark.slow),
        pytest.param(1_000_000, 0, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize(
    "shape",
    [
        (("two", "cut"), 4, 2),
        pytest.param((("cut",), 3, 3), marks=pytest.mark.slow),
        pytest.param((("two",), 4, 3), marks=pytest.mark.slow),
    ],
    ids=lambda shape: "-".join(shape[0]),
)
@some("name", [*OURS, "rooted-tables", "tree-beside-sums"], keep=4)
def test_the_least_budget_that_is_accepted_trains(
    con: duckdb.DuckDBPyConnection, tmp_path: Path, name: str, k: int, delta: int,
    shape: tuple[tuple[str, ...], int, int],
) -> None:  # fmt: skip
    """The first count of the rows has a 400th of ε; a choice of a root may have a 2000th."""
    domain, limit = public(*shape), max(2 * (shape[1] + 1), k)
    table(con, domain)
    options: dict[str, Any] = {
        "domain": domain, "delta": Decimal(delta) / ATTO, "recipe": name, "rows_per_unit": k,
        "privacy_unit": "row" if k == 1 else "who", "ledger": tmp_path / "ledger",
    }  # fmt: skip
    usual = prepare(con, "t", epsilon=1000, **options)

    def accepted(epsilon: int) -> bool:
        with contextlib.suppress(DpforestError):
            affordable_plans(usual.recipe, replace(usual.request, epsilon=epsilon))
            return True
        return False

    least = bisect_left(range(3000 * limit), True, key=accepted)
    assert 400 * limit <= least < 2010 * limit
    run = prepare(con, "t", epsilon=Decimal(least) / NANO, **options)
    for number, rows in enumerate(TABLES):
        assert grown_forest(run, Snapshot(rows, number)).trees


@pytest.mark.parametrize("epsilon", ["0.01", "0.1", "1"])
@some("name", RECIPES, keep=12)
def test_usual_budgets_are_not_refused(
    con: duckdb.DuckDBPyConnection, tmp_path: Path, name: str, epsilon: str
) -> None:
    domain = public(("two", "cut"), 14, 2)
    table(con, domain)
    for k in (1, 1000):
        run = prepare(
            con, "t", domain=domain, epsilon=epsilon, recipe=name, rows_per_unit=k,
            privacy_unit="row" if k == 1 else "who", ledger=tmp_path / "ledger",
        )  # fmt: skip
        assert run.cost >= Decimal(epsilon) * NANO


def test_a_scale_of_many_digits_is_rounded_up_and_used() -> None:
    """Its numerator has more than the 53 bits that the exact sampler takes."""
    noise, private = ExactNoise(SecureBits()), np.zeros((2, 3), dtype=np.int64)
    for epsilon, sensitivity in ((123_456_789, 3 * 2**16 * 999_983), (70_001, 999_983 * 4096)):
        scale = noise_scale(epsilon, sensitivity)
        assert scale.numerator > 2**53
        assert scale <= sampled_scale(scale) < scale * (1 + Fraction(1, 2**12))
        assert noise.laplace(private, epsilon, sensitivity).any()
        assert noise.joint(private, (1, 2), epsilon, sensitivity).any()
