"""DiffP-ID3: Friedman & Schuster, Data Mining with Differential Privacy, KDD 2010.

A node asks its noisy size and one draw of the exponential mechanism among the attributes; a leaf
its size and its class counts: ε = B / (2δ), δ the nodes on a path (Table 1 of Fletcher & Islam
2015). Pruned by C4.5's rule on counts summed upward. `max` scores by the max operator.
Assumed: Gini as the utility; its published sensitivity of 2 is right, with a factor 2 to spare.
"""

from __future__ import annotations

from dpforest_duckdb.postprocess.pipeline import alone, each, with_cells
from dpforest_duckdb.postprocess.pruning import prune_by_error
from dpforest_duckdb.postprocess.shrinkage import sum_upward
from dpforest_duckdb.postprocess.voting import vote_by_counts
from dpforest_duckdb.recipes.plans import LAPLACE, per_node
from dpforest_duckdb.recipes.recipe import Recipe, repaired
from dpforest_duckdb.recipes.stopping import drowned
from dpforest_duckdb.splits.choose import by_utility
from dpforest_duckdb.splits.utilities import GINI, MAX_COUNT, with_factor_2

_PUBLISHED = Recipe(
    name="diffp-id3",
    title="DiffP-ID3 (Friedman & Schuster)",
    year=2010,
    paper="Data Mining with Differential Privacy, KDD 2010",
    rows="all",
    split_type="multiway",
    choose=by_utility(with_factor_2(GINI), "exponential"),
    trees=1,
    depth=5,
    depth_of_root=1,
    plan=per_node("exponential mechanism", LAPLACE),
    stop=drowned,
    finish=each(with_cells(sum_upward), with_cells(prune_by_error), alone(vote_by_counts)),
)

DIFFP_ID3 = repaired(
    _PUBLISHED,
    "It is private as published. Gini is monotone, so the factor 2 is left out, and splits are "
    "drawn twice as sharply.",
    choose=by_utility(GINI, "exponential"),
    variants={"max": {"choose": by_utility(MAX_COUNT, "exponential")}},
)
