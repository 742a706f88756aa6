"""DiffGen: Mohammed, Chen, Fung & Yu, Differentially Private Data Release, KDD 2011.

Non-interactive: h times the exponential mechanism draws a specialisation (an attribute by category,
an interval at its split point), which is applied to the whole table: the tree is oblivious. Then
every cell tells its noisy class counts with half of B. ε' = B / (2(numeric + 2h)): a split point
for each numeric attribute at the start, then a draw and a new point at each step.
Taxonomies are the domain's, of one level; a step goes down one in all of its groups, and without
one from any category to each. Assumed: the max operator as the utility.
"""

from __future__ import annotations

from dpforest_duckdb.postprocess.pipeline import alone, each
from dpforest_duckdb.postprocess.voting import vote_by_counts
from dpforest_duckdb.privacy.plan import Plan
from dpforest_duckdb.recipes.plans import LAPLACE, spread
from dpforest_duckdb.recipes.recipe import Recipe, repaired
from dpforest_duckdb.request import Request
from dpforest_duckdb.splits.published import for_all_nodes
from dpforest_duckdb.splits.utilities import INFORMATION_GAIN, MAX_COUNT, with_factor_2


def plan(request: Request) -> Plan:
    numeric = sum(a.kind == "numeric" for a in request.domain.attributes)
    splits = (numeric + 2, *(2 for _ in range(request.depth - 1)))
    return spread(
        request,
        {
            "split": ("exponential mechanism", splits),
            "leaf": (LAPLACE, (numeric + 2 * request.depth,)),
        },
    )


_PUBLISHED = Recipe(
    name="diffgen",
    title="DiffGen (Mohammed et al.)",
    year=2011,
    paper="Differentially Private Data Release for Data Mining, KDD 2011",
    rows="all",
    split_type="mixed",
    choose=for_all_nodes(with_factor_2(MAX_COUNT), with_factor_2(MAX_COUNT)),
    trees=1,
    taxonomies=True,
    depth=6,
    plan=plan,
    finish=each(alone(vote_by_counts)),
)

DIFFGEN = repaired(
    _PUBLISHED,
    "It is private as published if every cell is noised, as it is here. The max operator is "
    "monotone, so the factor 2 is left out.",
    choose=for_all_nodes(MAX_COUNT, MAX_COUNT),
    variants={"ig": {"choose": for_all_nodes(INFORMATION_GAIN, INFORMATION_GAIN)}},
)
