"""How a budget is divided over queries and depths."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from dpforest_duckdb.learners.private_bins import to_be_cut
from dpforest_duckdb.privacy.measure import GAUSSIAN_DP, PURE_DP, Measure
from dpforest_duckdb.privacy.plan import (
    LAPLACE,
    Answer,
    Plan,
    PlannedQuery,
    counted,
    counting,
    drawn,
    share,
)
from dpforest_duckdb.privacy.selection import EXPONENTIAL, PERMUTE_AND_FLIP, Mechanism
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.request import Request

MEDIANS_PERCENT = {PURE_DP: 14, GAUSSIAN_DP: 8}  # of a budget, for private medians

Weights = Sequence[int | Fraction]
PlanRule = Callable[[Request], Plan]


def spread(
    request: Request,
    queries: Mapping[Purpose, tuple[Answer, Weights]],
    *,
    whole: int | Fraction | None = None,
    rows: int | Fraction = 0,
) -> Plan:
    """A plan that gives each query at each depth its weight's part of a tree's budget.

    `queries[purpose]` is what answers it, and its weights by depth. A tree has B if the trees hold
    disjoint rows, else B/τ. `whole` is the sum of the weights by default; another number is for
    published forms that charge less, or more, than they spend. `rows` is the part of B that first
    goes to a noisy number of rows.
    """
    first = int(request.epsilon * rows)
    times = 1 if request.disjoint else request.trees
    tree = (request.epsilon - first) // times
    total = whole or sum(sum(weights) for _, weights in queries.values())
    planned = [counting(Purpose.ROWS, (first,))] if first else []
    for purpose, (answer, weights) in queries.items():
        parts = tuple(int(Fraction(tree * weight) / total) for weight in weights)
        query = PlannedQuery(purpose, answer.mechanism, parts, times, per_row=answer.per_row)
        planned.append(query)
    return Plan(tuple(query for query in planned if query.by_depth))


def counted_twice(of: str, request: Request) -> Answer:
    """Counts that have each row twice for each attribute: by its value, and by its value and
    class.
    """
    return counted(of, per_row=2 * len(request.domain.attributes))


def medians(
    request: Request, whole: int, turns: int, measure: Measure = PURE_DP
) -> tuple[tuple[PlannedQuery, ...], int]:
    """The query for private medians, which gets a part of `whole`, and what that leaves.

    Every turn cuts each interval of a numeric attribute in two. There is no query, and all is left,
    if there is no attribute to cut.
    """
    cut, percent = len(to_be_cut(request.domain)), MEDIANS_PERCENT[measure]
    if not cut:
        return (), whole
    bins, rest = share(whole, (percent, 100 - percent))
    costs = (bins // cut // turns,) * turns
    return (PlannedQuery(Purpose.BINS, EXPONENTIAL.on("balance"), costs, cut, measure),), rest


def mixture_choice(epsilon: int) -> PlannedQuery:
    """The draw of one of several mixtures of models (`learners.mixtures`), for nano-ε."""
    return PlannedQuery(Purpose.MIXTURE, PERMUTE_AND_FLIP.on("points"), (epsilon,))


def leaves_only(leaf: Answer, *, rows: int | Fraction = 0) -> PlanRule:
    """All of a tree's budget for its leaves."""
    queries = {Purpose.LEAF: (leaf, (1,))}
    return lambda request: spread(request, queries, rows=rows)


def per_node(split: Answer) -> PlanRule:
    """Two queries per node with equal budgets: a size and a split; at a leaf, a size and counts."""
    return lambda request: spread(
        request,
        {
            Purpose.SIZE: (LAPLACE, (1,) * (request.depth + 1)),
            Purpose.SPLIT: (split, (1,) * request.depth),
            Purpose.LEAF: (LAPLACE, (1,)),
        },
    )


def one_per_depth(request: Request) -> Plan:
    """One query per node with equal budgets: a split, or the counts of a leaf."""
    splits = (drawn(EXPONENTIAL), (1,) * request.depth)
    return spread(request, {Purpose.SPLIT: splits, Purpose.LEAF: (LAPLACE, (1,))})


def half_to_leaves(
    mechanism: Mechanism, leaf: Answer, *, by: str = "", rows: int | Fraction = 0
) -> PlanRule:
    """Half of the budget for the splits, drawn equally per depth; half for the leaves."""
    split = drawn(mechanism, by)
    return lambda request: spread(
        request,
        {Purpose.SPLIT: (split, (1,) * request.depth), Purpose.LEAF: (leaf, (request.depth,))},
        rows=rows,
    )


FULL_MEDIANS = (
    "Every median of a node is given the full share of all of them.",
    "With K medians a node, splits cost (K + 1)/2 times what is charged.",
)


def half_to_leaves_and_full_medians(leaf: Answer, number: Callable[[int], int]) -> PlanRule:
    """ε_s = ε_a = B/(4d) as printed, which spends (K + 1)/2 times the charge, with K medians of m
    per node.

    Published forms of DiPriMe and the thesis; `number` gives K of m.
    """

    def plan(request: Request) -> Plan:
        each, depth = number(len(request.domain.attributes)) + 1, request.depth
        queries = {
            Purpose.SPLIT: (drawn(EXPONENTIAL), (each,) * depth),
            Purpose.LEAF: (leaf, (2 * depth,)),
        }
        return spread(request, queries, whole=4 * depth)

    return plan


def harmonic(depths: int) -> tuple[Fraction, ...]:
    """1/d, 1/(d−1), …, 1: Hou et al. 2019 (4.29) and Liu et al. 2022 (4.32), per query."""
    return tuple(Fraction(1, depths - depth) for depth in range(depths))
