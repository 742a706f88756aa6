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
from dpforest_duckdb.privacy.plan import drawn
from dpforest_duckdb.privacy.selection import EXPONENTIAL
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.recipes.conformance import NO_TEXT, Line
from dpforest_duckdb.recipes.plans import per_node
from dpforest_duckdb.recipes.published.dprf_gini_splits import by_best_points, where_points_are_left
from dpforest_duckdb.recipes.recipe import ALL_ROWS, BOOTSTRAP, Recipe, repaired
from dpforest_duckdb.request import Level
from dpforest_duckdb.splits.choose import among, attribute_first, by_utility
from dpforest_duckdb.splits.utilities import GINI, with_factor_2


def within_noise(level: Level) -> Mask:
    """A noisy size of less than its own standard deviation, √2 k / ε."""
    size = level.plan.planned(Purpose.SIZE)
    assert level.noisy is not None, "the plan asks for sizes"
    small: Mask = level.noisy.sum(axis=1) < laplace_deviation(
        min(size.by_depth), level.request.rows_per_unit
    )
    return small


LINES = (
    Line(
        "Each tree has a bootstrap sample.",
        "thesis §3.2: bagging",
        "rows",
        repaired="Every tree sees all rows once.",
    ),
    Line(
        "The forest has a number of trees.", NO_TEXT, "trees", assumed="It has 20, as DiffPRF does."
    ),
    Line("The trees have a depth.", NO_TEXT, "depth", assumed="It is 5, as in DiffPRF."),
    Line(
        "The points of a numeric attribute are the midpoints of neighbouring values.",
        "thesis (4.5)",
        "split_type",
        assumed="The points are the edges of public bins.",
    ),
    Line(
        "The best point of an attribute by Gini is taken. The exponential mechanism on "
        "Gini draws the attribute.",
        "thesis (4.6) and §4.2",
        "choose: by_best_points",
        repaired="Two paid draws are made: of the attribute by its best point, then of a point. "
        "Where no attribute has several points, one draw has the whole share.",
    ),
    Line(
        "A split has children.",
        NO_TEXT,
        "split_type",
        assumed="A category has a child of its own, and a numeric attribute two, as in C4.5.",
    ),
    Line(
        "The split is chosen among a random subset of the attributes.",
        "thesis §4.3.4: usually",
        "choose: among",
        assumed="The subset has √m attributes.",
    ),
    Line(
        "Gini has a sensitivity.",
        NO_TEXT,
        "choose: GINI",
        assumed="It is 2, for Gini weighted by rows, with the factor 2 of (4.20).",
        repaired="It is 2, without the factor 2, because Gini weighted by rows is monotone.",
    ),
    Line("The class counts of leaves have Laplace noise.", "thesis §4.2", "plan: per_node"),
    Line(
        "The budget is divided.",
        NO_TEXT,
        "plan: per_node",
        assumed="A tree has B/τ. Every level gives half of its part to a size and half to a split.",
    ),
    Line(
        "A rule ends nodes.",
        NO_TEXT,
        "stop: within_noise",
        assumed="A node ends if its noisy size is within its noise.",
    ),
    Line(
        "The majority of the trees' votes decides.",
        NO_TEXT,
        "finish: vote_by_majority",
        assumed="Each tree has one vote, for the class with most noisy rows.",
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
    plan=per_node(drawn(EXPONENTIAL)),
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
            attribute_first(GINI, GINI, EXPONENTIAL), otherwise=by_utility(GINI, EXPONENTIAL)
        )
    ),
)
