"""TpDPRF: Liu, Li, Wei, Liu, Liu & Wang, A two-phase random forest with differential privacy,
Applied Intelligence 2022; known through the thesis (4.3.4, 4.4.1, 4.5.2).

Trees on bootstrap samples in two phases: the second draws row i with the weight v_i / Σv, v_i the
trees of the first that misclassify it. B/τ a tree, in d_m layers, the root the first: layer d_t has
the share 1 / (d_m − d_t + 1) (4.31), (4.32), for one query, a split or the counts of the leaves.
Attributes are weighed by symmetrical uncertainty (4.24) and normalised interaction gain (4.26), and
a split is drawn among those of most weight. τ = 90, d_m = 5 (30 and 8 in its figures).
Assumed: α = ½; Gini by the exponential mechanism; numeric attributes split in two at bin edges.
The weights of IG-RFE, the threshold of relevance and p are not given: an attribute weighs its
uncertainty times its mean interaction, once for all trees of a phase, those below a hundredth of
the largest uncertainty go, and p = √m of those that a node has left.
"""

from __future__ import annotations

from fractions import Fraction

from dpforest_duckdb.learners.feature_selection import relevant
from dpforest_duckdb.learners.levels import LEVELS
from dpforest_duckdb.postprocess.pipeline import alone, each
from dpforest_duckdb.postprocess.voting import vote_by_majority
from dpforest_duckdb.privacy.plan import Plan
from dpforest_duckdb.recipes.plans import LAPLACE, harmonic, spread
from dpforest_duckdb.recipes.recipe import ALL_ROWS, BOOTSTRAP, Recipe, Second, repaired
from dpforest_duckdb.request import Request
from dpforest_duckdb.splits.choose import among, by_utility
from dpforest_duckdb.splits.published import among_the_relevant
from dpforest_duckdb.splits.utilities import GINI, with_factor_2


def plan(request: Request) -> Plan:
    """One query a layer: a split at the inner ones, the counts of the leaves at the last."""
    *inner, last = harmonic(request.depth + 1)
    return spread(request, {"split": ("exponential", inner), "leaf": (LAPLACE, (last,))})


_PUBLISHED = Recipe(
    name="tpdprf",
    title="TpDPRF (Liu et al.)",
    year=2022,
    paper="A two-phase random forest with differential privacy, Applied Intelligence 2022",
    rows="bootstrap",
    split_type="mixed",
    choose=among_the_relevant(by_utility(with_factor_2(GINI), "exponential")),
    trees=90,
    depth=5,
    depth_of_root=1,
    plan=plan,
    learner=relevant(LEVELS),
    finish=each(alone(vote_by_majority)),
    second=Second(Fraction(1, 2), misclassified_weight=1),
    flaws=(BOOTSTRAP, "Rows and attributes are weighed by the true rows, which nothing pays for."),
)

TPDPRF = repaired(
    _PUBLISHED,
    ALL_ROWS + " Misclassified rows count twice in the second phase, at twice the sensitivity, and "
    "a split is drawn among √m random attributes instead of selected ones.",
    rows="all",
    choose=among(by_utility(GINI, "exponential")),
    learner=LEVELS,
    second=Second(Fraction(1, 2), misclassified_weight=2),
)
