"""TpDPRF: Liu et al., two-phase differentially private random forest, 2022; thesis (4.23), (4.31).

Trees on bootstrap samples in two phases: the second draws rows in proportion to the trees of the
first that misclassify them. Attributes of a node by symmetrical uncertainty with the class. B/τ a
tree, a layer the weight 1/(d_m − d_t + 1). τ = 90, d = 5 (30 and 8 in its figures).
Assumed: α = ½; Gini; a noisy histogram beside the draw at every node, majority. Interaction gain
and IG-RFE, of which the thesis gives no algorithm, are left out of both forms.
"""

from __future__ import annotations

from fractions import Fraction

from dpforest_duckdb.postprocess.pipeline import alone, each
from dpforest_duckdb.postprocess.voting import vote_by_majority
from dpforest_duckdb.privacy.plan import Plan
from dpforest_duckdb.recipes.plans import LAPLACE, harmonic, spread
from dpforest_duckdb.recipes.recipe import ALL_ROWS, BOOTSTRAP, Recipe, Second, repaired
from dpforest_duckdb.recipes.relevance import relevance
from dpforest_duckdb.request import Request
from dpforest_duckdb.splits.choose import among, by_utility
from dpforest_duckdb.splits.published import among_the_relevant
from dpforest_duckdb.splits.utilities import GINI, with_factor_2


def plan(request: Request, queries: int = 2) -> Plan:
    """A layer's share for each of its `queries`; the last layer asks for counts alone."""
    layers = harmonic(request.depth + 1)
    halves = tuple(layer / queries for layer in layers[:-1])
    asked = {"histogram": (LAPLACE, (*halves, layers[-1])), "split": ("exponential", halves)}
    return spread(request, asked, whole=sum(layers))


_PUBLISHED = Recipe(
    name="tpdprf",
    title="TpDPRF (Liu et al.)",
    year=2022,
    paper="TpDPRF: two-phase differentially private random forest, 2022",
    rows="bootstrap",
    split_type="mixed",
    choose=among_the_relevant(by_utility(with_factor_2(GINI), "exponential")),
    trees=90,
    depth=5,
    plan=lambda request: plan(request, 1),
    finish=each(alone(vote_by_majority)),
    second=Second(Fraction(1, 2), misclassified_weight=1, weigh=relevance),
    flaws=(BOOTSTRAP, "Rows are weighted and attributes chosen by what the true rows say, unpaid."),
)

TPDPRF = repaired(
    _PUBLISHED,
    ALL_ROWS + " Misclassified ones count twice in the second phase, at twice the sensitivity.",
    rows="all",
    choose=among(by_utility(GINI, "exponential")),
    plan=plan,
    second=Second(Fraction(1, 2), misclassified_weight=2, weigh=relevance),
)
