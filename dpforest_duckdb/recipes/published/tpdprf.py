"""TpDPRF: Liu, Li, Wei, Liu, Liu & Wang, A two-phase random forest with differential privacy,
Applied Intelligence 2022; known through the thesis (4.3.4, 4.4.1, 4.5.2).

Trees on bootstrap samples in two phases. The second phase draws row i with the weight v_i / Σv,
where v_i is the number of trees of the first phase that misclassify it. A tree has B/τ in d_m
layers, the root being the first. Layer d_t has the share 1 / (d_m − d_t + 1) (4.31), (4.32), for
one query: a split, or the counts of the leaves. Attributes are weighted by symmetrical uncertainty
(4.24) and normalised interaction gain (4.26), and a split is drawn among those of most weight. τ =
90, d_m = 5 (30 and 8 in its figures). A split has a feature and a point; the point of a categorical
feature is one of its values, against the rest.
Assumed: α = ½; Gini weighted by rows, Δ = 2, by the exponential mechanism; points of numbers are
public bin edges; the class that most trees predict.
The weights of IG-RFE, the threshold of relevance and p are not given, so they are assumed: the
weight of an attribute is its uncertainty times its mean interaction, computed once for all trees of
a phase. Attributes below a hundredth of the largest uncertainty have weight 0 and come last. p = √m
of the attributes that a node has left.
"""

from __future__ import annotations

from fractions import Fraction

from dpforest_duckdb.learners.levels import LEVELS
from dpforest_duckdb.postprocess.pipeline import alone, each
from dpforest_duckdb.postprocess.voting import vote_by_majority
from dpforest_duckdb.privacy.plan import LAPLACE, Plan, drawn
from dpforest_duckdb.privacy.selection import EXPONENTIAL
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.recipes.conformance import NO_TEXT, Line
from dpforest_duckdb.recipes.plans import harmonic, spread
from dpforest_duckdb.recipes.published.tpdprf_relevance import among_the_relevant, relevant
from dpforest_duckdb.recipes.recipe import ALL_ROWS, BOOTSTRAP, Recipe, SecondPhase, repaired
from dpforest_duckdb.request import Request
from dpforest_duckdb.splits.choose import among, by_utility
from dpforest_duckdb.splits.utilities import GINI, with_factor_2


def plan(request: Request) -> Plan:
    """One query a layer: a split at the inner ones, the counts of the leaves at the last."""
    *inner, last = harmonic(request.depth + 1)
    return spread(
        request, {Purpose.SPLIT: (drawn(EXPONENTIAL), inner), Purpose.LEAF: (LAPLACE, (last,))}
    )


LINES = (
    Line(
        "Each tree has a bootstrap sample.",
        "thesis §4.5.2, lines 6 and 11",
        "rows",
        repaired="Every tree sees all rows once.",
    ),
    Line("The forest has 90 trees; 30 in the figures.", "thesis Table 4.1 and §4.6.2", "trees"),
    Line("d_m = 5, with the root at 1; 8 in the figures.", "thesis Table 4.1 and §4.4.1", "depth"),
    Line(
        "A split has a feature and a point, which is one of its values or in its range.",
        "thesis §4.3.2",
        "split_type",
        assumed="The points of numbers are public bin edges.",
    ),
    Line(
        "Features have a relevance by symmetrical uncertainty, an interaction by normalised "
        "interaction gain, and a weight by the algorithm IG-RFE of Lin et al. The top p by weight "
        "are kept.",
        "thesis §4.3.4, (4.24) to (4.26)",
        "learner: relevant",
        repaired="√m random attributes are used instead.",
    ),
    Line(
        "IG-RFE is defined, and the threshold of relevance and p have values.",
        NO_TEXT,
        "learner: relevant",
        assumed="The weight is uncertainty times mean interaction, computed once for all trees "
        "of a phase. Attributes below a hundredth of the largest uncertainty come last. "
        "p is ⌊√m⌋ of the attributes left.",
        repaired="Nothing is weighed.",
    ),
    Line(
        "The split is chosen from the subset.",
        "thesis §4.3.4",
        "choose: among_the_relevant",
        repaired="It is chosen by Gini without the factor 2, among √m random attributes.",
    ),
    Line(
        "A split has a utility.",
        NO_TEXT,
        "choose: GINI",
        assumed="It is Gini weighted by rows, with Δ = 2.",
    ),
    Line(
        "A tree has B/τ. Layer d_t has 1/(d_m − d_t + 1) of s_t, for one query.",
        "thesis (4.31), (4.32)",
        "plan: plan",
    ),
    Line("The leaves have noisy class counts.", "thesis §4.1.2: commonly (4.3)", "plan: LAPLACE"),
    Line(
        "The second phase draws row i with weight v_i / Σv.",
        "thesis §4.5.2",
        "second: SecondPhase",
        assumed="If no tree misclassifies a row, v_i is 1 for all rows.",
        repaired="A row that half or more of the trees misclassify counts twice, at twice the "
        "sensitivity.",
    ),
    Line("The first phase has a share α.", NO_TEXT, "second: SecondPhase", assumed="It is ½."),
    Line(
        "The majority of the trees' votes decides.",
        NO_TEXT,
        "finish: vote_by_majority",
        assumed="Each tree has one vote, for the class with most noisy rows.",
    ),
)

_PUBLISHED = Recipe(
    name="tpdprf",
    title="TpDPRF (Liu et al.)",
    year=2022,
    paper="A two-phase random forest with differential privacy, Applied Intelligence 2022",
    rows="bootstrap",
    split_type="binary",
    choose=among_the_relevant(by_utility(with_factor_2(GINI), EXPONENTIAL)),
    trees=90,
    depth=5,
    depth_of_root=1,
    plan=plan,
    learner=relevant(LEVELS),
    finish=each(alone(vote_by_majority)),
    second=SecondPhase(Fraction(1, 2), misclassified_weight=1),
    flaws=(BOOTSTRAP, "Rows and attributes are weighed by the true rows, which nothing pays for."),
    lines=LINES,
)

TPDPRF = repaired(
    _PUBLISHED,
    ALL_ROWS + " Misclassified rows count twice in the second phase, at twice the sensitivity, and "
    "a split is drawn among √m random attributes instead of selected ones.",
    rows="all",
    choose=among(by_utility(GINI, EXPONENTIAL)),
    learner=LEVELS,
    second=SecondPhase(Fraction(1, 2), misclassified_weight=2),
)
