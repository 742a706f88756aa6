"""DPRFMaxTree: Zhang, Feng & Ning, Random Forest Algorithm Based on Differential Privacy
Protection, TrustCom 2021; known through the thesis.

Binary CART trees on bootstrap samples, with B/τ each. The points of continuous attributes are drawn
by the exponential mechanism, and the attribute, among random ones, by F_Max = Σ_v M_v/n_v · M_v
(4.11). M_v is the largest class count of the n_v rows of branch v. Leaves have noisy class counts.
τ = 50.
Assumed: the allocation of a tree's budget, which is not given: half for the splits, with equal
parts at every depth, and half for the leaves; a node's share in equal parts for a point of each of
its √m random attributes and the last draw; Δ = 1; d = 5. F_Max sums over branches, where (4.11)
prints a sum over classes. F_Max for points too; one category against the rest is a point as well;
points are public bin edges; majority.
"""

from __future__ import annotations

from dpforest_duckdb.postprocess.pipeline import alone, each
from dpforest_duckdb.postprocess.voting import vote_by_majority
from dpforest_duckdb.privacy.plan import LAPLACE
from dpforest_duckdb.privacy.selection import EXPONENTIAL
from dpforest_duckdb.recipes.conformance import NO_TEXT, Line
from dpforest_duckdb.recipes.plans import half_to_leaves
from dpforest_duckdb.recipes.recipe import ALL_ROWS, BOOTSTRAP, LOSS, Recipe, repaired
from dpforest_duckdb.splits.choose import among, by_utility
from dpforest_duckdb.splits.published import by_points
from dpforest_duckdb.splits.utilities import F_MAX, WEIGHTED_MAX

LINES = (
    Line(
        "Each tree has a bootstrap sample.",
        "thesis §3.2: bagging",
        "rows",
        repaired="Every tree sees all rows once.",
    ),
    Line("The forest has 50 trees.", "thesis Table 4.1", "trees"),
    Line("The trees have a depth.", NO_TEXT, "depth", assumed="It is 5."),
    Line("CART makes two children.", "thesis §3.1.2 and §4.2", "split_type"),
    Line(
        "Continuous attributes are made discrete with the exponential mechanism.",
        "thesis §4.3.1",
        "choose: by_points",
        repaired="One draw is made among the points of all attributes in the subset.",
    ),
    Line(
        "The attribute is drawn by F_Max, among a random subset.",
        "thesis §4.2 and (4.11) to (4.13)",
        "choose: F_MAX",
        repaired="F_Max is rounded down to whole rows in each branch.",
    ),
    Line("The subset has a size.", NO_TEXT, "choose: among", assumed="It has √m attributes."),
    Line(
        "F_Max has a sensitivity.", NO_TEXT, "choose: F_MAX", assumed="It is 1, with the factor 2."
    ),
    Line(
        "Points have scores, and categorical attributes have points.",
        NO_TEXT,
        "choose: by_points",
        assumed="Points are scored by F_Max. They are one category against the rest, or an edge "
        "of a public bin.",
        repaired="The points are the same. Those of all attributes in the subset are scored in one "
        "draw.",
    ),
    Line(
        "F_Max is the sum of (Σ n_ic / n_i) · max n_ic over the classes.",
        "thesis (4.11)",
        "choose: WEIGHTED_MAX",
        assumed="It is summed over the values v_i of the attribute, as in (4.10), which it "
        "improves: each value's largest count times that count's share of the value's n_i rows. By "
        "the letter, a split that leaves one side empty could be as good as one that separates the "
        "classes.",
    ),
    Line("A tree has ε = B/τ.", "thesis §4.4.1", "plan: half_to_leaves"),
    Line(
        "A tree divides its budget.",
        NO_TEXT,
        "plan: half_to_leaves",
        assumed="Half is for the splits and half for the leaves.",
    ),
    Line(
        "A node divides its share.",
        NO_TEXT,
        "choose: by_points",
        assumed="It has equal parts: one for a point of each attribute in the subset, and one for "
        "the last draw.",
        repaired="One draw has all of it.",
    ),
    Line("The leaves have noisy class counts.", "thesis §4.1.2: commonly (4.3)", "plan: LAPLACE"),
    Line(
        "The majority of the trees' votes decides.",
        NO_TEXT,
        "finish: vote_by_majority",
        assumed="Each tree has one vote, for the class with most noisy rows.",
    ),
)

_PUBLISHED = Recipe(
    name="dprfmaxtree",
    title="DPRFMaxTree (Zhang et al.)",
    year=2021,
    paper="Random Forest Algorithm Based on Differential Privacy Protection, TrustCom 2021",
    rows="bootstrap",
    split_type="binary",
    choose=among(by_points(F_MAX, F_MAX)),
    trees=50,
    depth=5,
    plan=half_to_leaves(EXPONENTIAL, LAPLACE, by="F_Max"),
    finish=each(alone(vote_by_majority)),
    flaws=(BOOTSTRAP, LOSS),
    lines=LINES,
)

DPRFMAXTREE = repaired(
    _PUBLISHED,
    ALL_ROWS + " One draw among the points of all attributes in the subset has a node's whole "
    "share, and F_Max is rounded down, with sensitivity 1 and the factor 2.",
    rows="all",
    choose=among(by_utility(WEIGHTED_MAX, EXPONENTIAL)),
)
