"""How a budget is divided over queries and depths."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import isqrt

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.learners.private_bins import MEDIANS, to_be_cut
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.privacy.plan import (
    AGAIN,
    COUNTS,
    LAPLACE,
    ROWS,
    Measure,
    Plan,
    PlannedQuery,
    counting,
    evenly,
    share,
)
from dpforest_duckdb.privacy.selection import EXPONENTIAL, PERMUTE_AND_FLIP
from dpforest_duckdb.request import Request

BINS = 8  # percent of a budget for private medians
START = 20  # percent of what bins leave, for class means where boosting starts at them
FEW_TREES = 20  # percent of what then remains, for random trees, if only a few pay
FIRST_COUNT = 400  # ε / FIRST_COUNT is the cost of a first count of the rows
CLEAR_COUNT = 30  # times the noise in the rows of a class: what a second count aims at
ROWS_SHARE = Fraction(1, 25)  # of the budget, for a noisy number of rows; the most for two counts
ROWS_SHARE_OF_SEVERAL = Fraction(1, 10)  # the same for several classes, whose noise adds up
PUBLIC_ROWS = "The number of rows is taken as public."
NOISY_ROWS = "A noisy number of rows is paid for with 4 % of the budget."

Weights = Sequence[int | Fraction]
PlanRule = Callable[[Request], Plan]


def spread(
    request: Request,
    queries: Mapping[str, tuple[str, Weights]],
    *,
    disjoint: bool = False,
    whole: int | Fraction | None = None,
    rows: int | Fraction = 0,
) -> Plan:
    """A plan that gives each query at each depth its weight's part of a tree's budget.

    `queries[purpose]` is its mechanism, which is LAPLACE if it returns counts, and its weights by
    depth. A tree has B if trees hold disjoint rows, else B/τ. `whole` is the sum of the weights by
    default; another number is for published forms that charge less, or more, than they spend.
    `rows` is the part of B that first goes to a noisy number of rows.
    """
    first = int(request.epsilon * rows)
    times = 1 if disjoint else request.trees
    tree = (request.epsilon - first) // times
    total = whole or sum(sum(weights) for _, weights in queries.values())
    planned = [counting(ROWS, (first,))] if first else []
    for purpose, (mechanism, weights) in queries.items():
        parts = tuple(int(Fraction(tree * weight) / total) for weight in weights)
        query = PlannedQuery(purpose, mechanism, parts, times, per_row=int(mechanism == LAPLACE))
        planned.append(query)
    return Plan(tuple(query for query in planned if query.by_depth))


# up to RANKED trees, each gets FADING times the share of the one before
RANKED, FADING = 4, Fraction(7, 10)


def rows_share(request: Request) -> Fraction:
    """The most of ε that this package's own recipes spend on a noisy number of rows."""
    return ROWS_SHARE if len(request.domain.classes) == 2 else ROWS_SHARE_OF_SEVERAL


def count_queries(request: Request, counted: Integers | None = None) -> tuple[PlannedQuery, ...]:
    """The queries that count the rows of each class, the same in all recipes that follow them.

    The first count costs ε / FIRST_COUNT. `counted[class]` are the noisy rows that it shows. If its
    noise is above 1 / CLEAR_COUNT of the rows of a class, there is a second count, which costs what
    it needs for noise of that size. The rows of a class are n/C times the `evenness` of C classes.
    Before `counted` is known, and for few rows, both together cost `rows_share`. With a δ their ε
    is at most √ρ, so that they cost at most half of ρ (an ε-DP step costs ε²/2).
    """
    if request.first:
        return tuple(query for query in request.first if query.purpose in COUNTS)
    most = int(request.epsilon * rows_share(request))
    if request.rho:
        most = min(most, isqrt(request.rho))
    first = max(min(request.epsilon // FIRST_COUNT, most), 1)  # tiny ones are refused later
    again = most - first
    if counted is not None:
        unit = math.sqrt(2) * request.rows_per_unit * NANO  # the noise of a count for 1 nano-ε
        rows = max(int(counted.sum()), 1) * evenness(counted, unit / first)
        needed = CLEAR_COUNT * unit * len(counted) / rows
        again = min(again, int(needed)) if needed > first else 0
    if again < first:
        again = 0
    costs = {ROWS: first, AGAIN: again}
    return tuple(counting(query, (cost,)) for query, cost in costs.items() if cost)


def evenness(counted: Integers, noise: float) -> float:
    """C / √Σ(1/s) of C classes with shares s: 1 if all classes are equally frequent, else less.

    In n rows, noise of a given size adds as much to the expected log loss as in n · evenness rows
    of equally frequent classes. `counted[class]` are noisy rows. Each class counts as at least
    `noise`, the standard deviation of their noise.
    """
    classes = np.maximum(counted, noise)
    return len(classes) / math.sqrt(float((classes.sum() / classes).sum()))


def count_cost(request: Request) -> int:
    """What counting the rows costs, in nano-ε."""
    return sum(query.total for query in count_queries(request))


def first_queries(request: Request) -> tuple[PlannedQuery, ...]:
    """The queries asked before the recipe's own: row counts, then bounds, windows and strongest
    if planned.
    """
    return request.first or count_queries(request)


def by_rank(request: Request, *, scores: int, choice: int) -> Plan:
    """A plan of one-split trees: a noisy number of rows, the attributes, their tables, and sums.

    `scores` is in percent of ε. `choice` is in percent of what remains: for the choice of
    attributes, unless all are used. Few tables divide the rest by rank; more tables get equal
    parts.
    """
    seen = request.epsilon * scores // 100
    rest = request.epsilon - count_cost(request) - seen
    scored = (counting("scores", (seen,)),) if seen else ()
    return Plan((*first_queries(request), *drawn_tables(request, rest, choice), *scored))


def drawn_tables(request: Request, whole: int, choice: int) -> tuple[PlannedQuery, ...]:
    """The draws of attributes, unless all are used, and the tables of those drawn.

    The draws get `choice` percent of `whole`, in nano-ε.
    """
    trees, every = request.trees, request.trees == len(request.domain.attributes)
    if every:
        return (tables_query(whole, trees, every=True),)
    chosen, tables = share(whole, (choice, 100 - choice))
    how = PERMUTE_AND_FLIP.on("sums of max counts")
    draws = PlannedQuery("attribute", how, evenly(chosen, trees))
    return draws, tables_query(tables, trees, every=False)


def tables_query(cost: int, trees: int, *, every: bool) -> PlannedQuery:
    """The query for the tables of attributes that were drawn, or of `every` attribute.

    Few drawn attributes divide the cost, in nano-ε, by rank; others bring equal parts of it.
    """
    how = "joint noise in groups"
    if every or trees > RANKED:
        return PlannedQuery("tables", how, (cost // trees,), trees)
    return PlannedQuery("tables", how, share(cost, [FADING**rank for rank in range(trees)]))


def medians(
    request: Request, whole: int, turns: int, measure: Measure = "ε"
) -> tuple[tuple[PlannedQuery, ...], int]:
    """The query for private medians, which gets BINS percent of `whole`, and what that leaves.

    Every turn cuts each interval of a numeric attribute in two. There is no query, and all is left,
    if there is no attribute to cut.
    """
    cut = len(to_be_cut(request.domain))
    if not cut:
        return (), whole
    bins, rest = share(whole, (BINS, 100 - BINS))
    costs = (bins // cut // turns,) * turns
    return (PlannedQuery(MEDIANS, EXPONENTIAL.on("balance"), costs, cut, measure),), rest


def in_rounds(
    request: Request, *, turns: int, sweeps: int, trees: int, forest: int, start: int
) -> Plan:
    """A plan of boosting: in ρ with a δ, else in ε.

    After a noisy number of rows and `turns` of `medians`, `start` percent go to class means: half
    to sums, half to products. Of what then remains, `forest` percent go to random `trees`, the
    others to `sweeps` over all attributes.
    """
    first = first_queries(request)
    measure: Measure = "ρ" if request.rho else "ε"
    whole = request.epsilon - count_cost(request)
    if request.rho:
        whole = request.rho - sum(query.rho for query in first)
    mechanism = f"{'discrete Gaussian' if request.rho else LAPLACE} on gradients"
    of_sums = "discrete Gaussian" if request.rho else "joint noise"
    bins, rest = medians(request, whole, turns, measure)
    means, rest = share(rest, (start, 100 - start))
    started = 1 if start else 0
    random, sweep = share(rest, (forest, 100 - forest))
    stages = [
        ("means", of_sums, means // 2, 1, started),
        ("products", of_sums, means // 2, 1, started),
        ("sweep", mechanism, sweep, sweeps, len(request.domain.attributes)),
        ("forest", mechanism, random, 1, trees),
    ]
    queries = (
        PlannedQuery(purpose, how, (cost // times // often,) * often, times, measure)
        for purpose, how, cost, often, times in stages
        if times
    )
    return Plan((*first, *bins, *queries))


def leaves_only(leaf: str, *, disjoint: bool = False, rows: int | Fraction = 0) -> PlanRule:
    """All of a tree's budget for its leaves."""
    return lambda request: spread(request, {"leaf": (leaf, (1,))}, disjoint=disjoint, rows=rows)


def per_node(split: str, leaf: str) -> PlanRule:
    """Two queries per node with equal budgets: a size and a split; at a leaf, a size and `leaf`."""
    return lambda request: spread(
        request,
        {
            "size": (LAPLACE, (1,) * (request.depth + 1)),
            "split": (split, (1,) * request.depth),
            "leaf": (leaf, (1,)),
        },
    )


def one_per_depth(leaf: str) -> PlanRule:
    """One query per node with equal budgets: a split, or `leaf` at a leaf."""
    return lambda request: spread(
        request,
        {"split": ("exponential mechanism", (1,) * request.depth), "leaf": (leaf, (1,))},
    )


def half_to_leaves(
    split: str, leaf: str, *, disjoint: bool = False, rows: int | Fraction = 0
) -> PlanRule:
    """Half of the budget for the splits, equally per depth; half for the leaves."""
    return lambda request: spread(
        request,
        {"split": (split, (1,) * request.depth), "leaf": (leaf, (request.depth,))},
        disjoint=disjoint,
        rows=rows,
    )


FULL_MEDIANS = (
    "Every median of a node is given the full share of all of them.",
    "With K medians a node, splits cost (K + 1)/2 times what is charged.",
)


def half_to_leaves_and_full_medians(leaf: str, medians: Callable[[int], int]) -> PlanRule:
    """ε_s = ε_a = B/(4d) as printed, which spends (K + 1)/2 times the charge, with K medians of m
    per node.

    Published forms of DiPriMe and the thesis; `medians` gives K of m.
    """

    def plan(request: Request) -> Plan:
        each, depth = medians(len(request.domain.attributes)) + 1, request.depth
        queries = {
            "split": ("exponential mechanism", (each,) * depth),
            "leaf": (leaf, (2 * depth,)),
        }
        return spread(request, queries, disjoint=True, whole=4 * depth)

    return plan


def harmonic(depths: int) -> tuple[Fraction, ...]:
    """1/d, 1/(d−1), …, 1: Hou et al. 2019 (4.29) and Liu et al. 2022 (4.32), per query."""
    return tuple(Fraction(1, depths - depth) for depth in range(depths))


def cube_roots(depths: int, first: int = 0) -> tuple[Fraction, ...]:
    """2^(first/3), 2^((first+1)/3), …: Guan et al. 2020 (4.34), to nine digits."""
    return tuple(Fraction(round(2 ** ((first + i) / 3) * 10**9), 10**9) for i in range(depths))
