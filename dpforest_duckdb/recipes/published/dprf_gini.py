"""DPRF-Gini: Li & Li, Random forest algorithm under differential privacy, ICCT 2017; known through
the thesis.

Trees on bootstrap samples. The points of a numeric attribute are the midpoints of neighbouring
values (4.5); the best is the one of least Gini (4.6). Then the attribute is drawn by the
exponential mechanism on Gini. The class counts of the leaves have Laplace noise.
Assumed: τ = 20, d = 5, and the budget as in DiffPRF, because the thesis supposes similar
parameters: B/τ per tree, at every level half for a noisy node size and half for the split. A node
whose noisy size is within its own noise is a leaf. √m random attributes per node. Gini weighted by
rows, with Δ = 2. A child per category. Points are public bin edges instead of the midpoints, which
are private. Majority.
"""

from __future__ import annotations

from dpforest_duckdb.arrays import Mask
from dpforest_duckdb.postprocess.pipeline import alone, each
from dpforest_duckdb.postprocess.voting import vote_by_majority
from dpforest_duckdb.privacy.noise import laplace_deviation
from dpforest_duckdb.recipes.conformance import NO_TEXT, Line
from dpforest_duckdb.recipes.plans import LAPLACE, per_node
from dpforest_duckdb.recipes.recipe import ALL_ROWS, BOOTSTRAP, Recipe, repaired
from dpforest_duckdb.request import Level
from dpforest_duckdb.splits.choose import among, attribute_first, by_utility
from dpforest_duckdb.splits.published import by_best_points, where_points_are_left
from dpforest_duckdb.splits.utilities import GINI, with_factor_2


def within_noise(level: Level) -> Mask:
    """A noisy size of less than its own standard deviation, √2 k / ε."""
    size = level.plan.query("size")
    assert level.noisy is not None, "the plan asks for sizes"
    assert size is not None, "the plan asks for sizes"
    small: Mask = level.noisy.sum(axis=1) < laplace_deviation(
        min(size.by_depth), level.request.rows_per_unit
    )
    return small


LINES = (
    Line(
        "a bootstrap sample for each tree",
        "thesis 3.2: bagging",
        "rows",
        repaired="every tree sees all rows once",
    ),
    Line("the number of trees", NO_TEXT, "trees", assumed="20, as in DiffPRF"),
    Line("the depth", NO_TEXT, "depth", assumed="5, as in DiffPRF"),
    Line(
        "midpoints of neighbouring values are the points of a number",
        "thesis (4.5)",
        "split_type",
        assumed="edges of public bins",
    ),
    Line(
        "the best point of an attribute by Gini, then the exponential mechanism on Gini",
        "thesis (4.6) and 4.2",
        "choose: by_best_points",
        repaired="the attribute by its best point, then a point, by two paid draws",
    ),
    Line("a child per category, two for a number", NO_TEXT, "split_type", assumed="as C4.5 has it"),
    Line(
        "the split is chosen among a random subset of the attributes",
        "thesis 4.3.4",
        "choose: among",
        assumed="√m of them",
    ),
    Line(
        "the sensitivity of Gini",
        NO_TEXT,
        "choose: GINI",
        assumed="Gini weighted by rows, with Δ = 2",
    ),
    Line("the class counts of leaves have Laplace noise", "thesis 4.2", "plan: per_node"),
    Line(
        "how the budget is divided",
        NO_TEXT,
        "plan: per_node",
        assumed="B/τ, at every level half for a size and half for a split",
    ),
    Line(
        "when a node ends",
        NO_TEXT,
        "stop: within_noise",
        assumed="if its noisy size is within its noise",
    ),
    Line(
        "the majority of the trees' votes",
        NO_TEXT,
        "finish: vote_by_majority",
        assumed="one vote a tree, for its class of most noisy rows",
    ),
)

_PUBLISHED = Recipe(
    name="dprf-gini",
    title="DPRF-Gini (Li & Li)",
    year=2017,
    paper="Random forest algorithm under differential privacy, ICCT 2017",
    rows="bootstrap",
    split_type="mixed",
    choose=among(by_best_points(with_factor_2(GINI))),
    trees=20,
    depth=5,
    plan=per_node("exponential mechanism", LAPLACE),
    stop=within_noise,
    finish=each(alone(vote_by_majority)),
    flaws=(BOOTSTRAP, "The best point of each attribute is read off the true counts, unpaid."),
    lines=LINES,
)

DPRF_GINI = repaired(
    _PUBLISHED,
    ALL_ROWS + " The attribute is drawn by its best point, which is monotone as Gini is, and a "
    "point of it by a second draw, for half of the share each.",
    rows="all",
    choose=among(
        where_points_are_left(
            attribute_first(GINI, GINI, "exponential"), otherwise=by_utility(GINI, "exponential")
        )
    ),
)
