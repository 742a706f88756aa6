"""Proofs that run: a split costs what it claims, for every pair of neighbouring tables tried.

ε is a whole multiple of ln 2, so that every coin e^−exponent is a power of two and every output
probability a fraction; exponents come from the code, given ε in units of ln 2. Ratios of
probabilities are then compared with e^ε exactly, in both directions. Each proof has a twin with a
tightened bound or a broken premise, in which a violation must be found.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from closed_form import CLOSED_FORMS
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from variants import some

from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.privacy.selection import EXPONENTIAL, PERMUTE_AND_FLIP, Mechanism, exponents
from dpforest_duckdb.splits.utilities import GINI, MAX_COUNT, Utility

Tables = NDArray[np.int64]  # [table, candidate, branch, class]

# Not monotone: one row more may even out one candidate and unbalance another.
BALANCE = Utility(
    "balance", lambda c: -abs(c[..., 0, :].sum(axis=-1) - c[..., 1, :].sum(axis=-1)), 1, False
)
MECHANISMS = [PERMUTE_AND_FLIP, EXPONENTIAL]
each_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: m.name)
each_utility = pytest.mark.parametrize("utility", [GINI, MAX_COUNT, BALANCE], ids=lambda u: u.name)


@cache
def output(mechanism: Mechanism, halvings: tuple[int, ...]) -> list[Fraction]:
    """P(candidate) with coins of 2^−halvings."""
    return CLOSED_FORMS[mechanism]([Fraction(1, 2**number) for number in halvings])


def violated(
    mechanism: Mechanism,
    utility: Utility,
    before: Tables,
    after: Tables,
    *,
    steps: int = 1,
    rows: int = 1,
    share: Fraction = Fraction(1),
) -> bool:
    """Whether an output of some pair distinguishes the tables by more than `share` · ε.

    ε in units of ln 2 is `steps` per unit of gap: steps · Δ · rows, twice that if not monotone.
    """
    epsilon = steps * utility.sensitivity * rows * (1 if utility.monotone else 2)

    def halvings(tables: Tables) -> Iterator[tuple[int, ...]]:
        worth = utility.function(tables)
        allowed = np.ones(worth.shape, dtype=bool)
        found = exponents(
            worth, allowed, epsilon * NANO, utility.sensitivity * rows, utility.monotone
        )
        assert found.whole is None
        assert found.denominator == 1
        return map(tuple, found.numerator.tolist())

    bound = 2 ** (epsilon * share.numerator)
    # in which order the candidates stand does not matter: each pair is compared once
    every = zip(halvings(before), halvings(after), strict=True)
    for pair in {tuple(sorted(zip(*both, strict=True))) for both in every}:
        one, other = zip(*pair, strict=True)
        for p, q in zip(output(mechanism, one), output(mechanism, other), strict=True):
            one_way, other_way = p.numerator * q.denominator, q.numerator * p.denominator
            least, most = sorted((one_way, other_way))  # most / least is p / q or q / p
            if most**share.denominator > bound * least**share.denominator:
                return True
    return False


@cache
def small(attributes: int, classes: int, rows: int) -> tuple[Tables, Tables]:
    """Every table of up to `rows` rows on binary attributes, with each row that may be added."""
    kinds = list(product(*[range(2)] * attributes, range(classes)))
    where = np.zeros((len(kinds), attributes, 2, classes), dtype=np.int64)
    for kind, (*values, label) in enumerate(kinds):
        where[kind, np.arange(attributes), values, label] = 1
    drawn = [
        np.bincount(rows_, minlength=len(kinds))
        for size in range(rows + 1)
        for rows_ in combinations_with_replacement(range(len(kinds)), size)
    ]
    tables = np.tensordot(np.array(drawn, dtype=np.int64), where, axes=1)
    before = np.repeat(tables, len(kinds), axis=0)
    return before, before + np.tile(where, (len(tables), 1, 1, 1))


@each_mechanism
@each_utility
@pytest.mark.parametrize(
    ("attributes", "classes", "rows"),
    [(2, 2, 5), (2, 3, 4), (3, 2, 4), pytest.param(3, 2, 5, marks=pytest.mark.slow)],
)
@some("steps", [1, 3], keep=1)
def test_all_small_tables(
    mechanism: Mechanism, utility: Utility, attributes: int, classes: int, rows: int, steps: int
) -> None:
    assert not violated(mechanism, utility, *small(attributes, classes, rows), steps=steps)


# Worst pairs: one row (or two) of class 1 moves candidate 0 alone, or against all the others, which
# are so much better that they keep their probability. Candidates: `[branch, class]`.
WORST = {
    "Gini": (GINI, [[6, 1], [0, 0]], [[6, 0], [0, 1]], (0, 1)),
    "max count": (MAX_COUNT, [[9, 9], [0, 0]], [[9, 0], [0, 9]], (0, 0)),
    "balance": (BALANCE, [[12, 0], [0, 0]], [[6, 0], [6, 0]], (1, 0)),
}
each_worst = pytest.mark.parametrize("case", WORST)


def worst(case: str, rows: int = 1, others: int = 40) -> tuple[Utility, Tables, Tables]:
    utility, first, other, (lands, other_lands) = WORST[case]
    before = np.array([[first] + [other] * others], dtype=np.int64)
    after = before.copy()
    after[0, 0, lands, 1] += rows
    after[0, 1:, other_lands, 1] += rows
    return utility, before, after


@each_mechanism
@each_worst
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_the_bound_holds_on_the_worst_pairs_and_is_nearly_reached(
    mechanism: Mechanism, case: str, steps: int
) -> None:
    assert not violated(mechanism, *worst(case), steps=steps)
    assert violated(mechanism, *worst(case), steps=steps, share=Fraction(19, 20))


@each_mechanism
@each_worst
def test_half_the_sensitivity_is_found_out(mechanism: Mechanism, case: str) -> None:
    """Twin: utilities that change by twice their claimed sensitivity (1 for Gini's 2)."""
    utility, before, after = worst(case)
    if utility.sensitivity == 2:
        broken = replace(utility, sensitivity=1)
    else:
        broken = replace(utility, function=lambda counts: 2 * utility.function(counts))
    assert violated(mechanism, broken, before, after)


@each_mechanism
def test_the_monotone_form_of_another_utility_is_found_out(mechanism: Mechanism) -> None:
    """Twin: without the factor 2, on small tables and on the worst pair."""
    broken = replace(BALANCE, monotone=True)
    assert violated(mechanism, broken, *small(3, 2, 4))
    assert violated(mechanism, broken, *worst("balance")[1:])


@each_mechanism
@each_worst
@pytest.mark.parametrize("rows", [2, 3])
def test_rows_per_unit_are_paid_for(mechanism: Mechanism, case: str, rows: int) -> None:
    assert not violated(mechanism, *worst(case, rows), rows=rows)
    assert violated(mechanism, *worst(case, rows), rows=1)


def test_tightened_bounds_are_found_out_on_small_tables() -> None:
    """Permute-and-flip needs no designed pair where Δ is reached on five rows."""
    for utility in (MAX_COUNT, BALANCE):
        assert violated(PERMUTE_AND_FLIP, utility, *small(3, 2, 4), share=Fraction(19, 20))


@st.composite
def neighbours(draw: st.DrawFn) -> tuple[Tables, Tables, int]:
    """A table of up to 60 rows and the same with 1 to 3 more: counts, and how many more."""
    candidates, branches = draw(st.integers(2, 6)), draw(st.integers(2, 3))
    classes, more = draw(st.integers(2, 3)), draw(st.integers(1, 3))
    size = draw(st.integers(0, 60))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    skew = random.dirichlet([draw(st.sampled_from([0.1, 0.5, 5.0]))] * classes)
    label = random.choice(classes, size + more, p=skew)
    noise = random.random((candidates, size + more)) < draw(st.sampled_from([0.0, 0.3, 1.0]))
    branch = np.where(noise, random.integers(0, branches, noise.shape), label % branches)
    counts = np.zeros((2, candidates, branches, classes), dtype=np.int64)
    for candidate in range(candidates):
        np.add.at(counts[0, candidate], (branch[candidate, :size], label[:size]), 1)
        np.add.at(counts[1, candidate], (branch[candidate], label), 1)
    return counts[:1], counts[1:], more


@each_mechanism
@each_utility
@settings(deadline=None)
@given(neighbours(), st.integers(1, 2))
def test_larger_tables(
    mechanism: Mechanism, utility: Utility, pair: tuple[Tables, Tables, int], steps: int
) -> None:
    before, after, rows = pair
    assert not violated(mechanism, utility, before, after, steps=steps, rows=rows)


@each_mechanism
@pytest.mark.parametrize(("classes", "most"), [(2, 20), (3, 12)])
@pytest.mark.parametrize("steps", [1, 3])
def test_labels_of_leaves_on_every_pair(
    mechanism: Mechanism, classes: int, most: int, steps: int
) -> None:
    """Class counts of up to that many rows are the utilities themselves: monotone, Δ = 1."""
    vectors = np.array([v for v in product(range(most + 1), repeat=classes) if sum(v) <= most])
    before = np.repeat(vectors, classes, axis=0)
    after = before + np.tile(np.eye(classes, dtype=np.int64), (len(vectors), 1))
    label = Utility("class counts", lambda counts: counts, 1, monotone=True)
    assert not violated(mechanism, label, before, after, steps=steps)
    assert violated(mechanism, label, before, after, steps=steps, share=Fraction(19, 20))
    assert violated(mechanism, replace(label, function=lambda c: 2 * c), before, after)


@pytest.mark.parametrize("utility", [GINI, MAX_COUNT], ids=lambda u: u.name)
@pytest.mark.parametrize(("classes", "most"), [(2, 20), (3, 12)])
def test_nodes_of_many_rows_against_others(utility: Utility, classes: int, most: int) -> None:
    """Every vector of one branch, against a candidate that splits the same rows evenly."""
    vectors = [v for v in product(range(most + 1), repeat=classes) if sum(v) <= most]
    one = np.array([[v, (0,) * classes] for v in vectors])
    halves = np.stack([one[:, 0] // 2, one[:, 0] - one[:, 0] // 2], axis=1)
    tables = np.stack([one, halves], axis=1)
    row = np.zeros((classes, 2, 2, classes), dtype=np.int64)
    row[np.arange(classes), :, 0, np.arange(classes)] = 1  # in the first branch of both
    before = np.repeat(tables, classes, axis=0)
    after = before + np.tile(row, (len(tables), 1, 1, 1))
    for mechanism in MECHANISMS:
        assert not violated(mechanism, utility, before, after)
