"""Rana, Gupta & Venkatesh, Differentially Private Random Forest with High Utility, ICDM 2015; known
through the thesis.

Bootstrap samples. A node is split by the attribute of largest information gain, a numeric one at
the mean of its noisy class means (4.7), unless a child would have fewer rows than n_l, a small
fraction of all rows. There is no greatest depth. Every tree has all of B for its leaves, because
the paper rejects B/τ. It bounds the variance of an adversary's estimates, by a bound on τ (Theorems
3 and 4). By design it is not ε-differentially private, so there is no rigorous form.
Assumed: τ = 10, without a check of the bounds, which depend on the rows; n_l = 1 % of the rows, of
children that hold any; √m random attributes a node; a numeric attribute has the gain of its best
point; B for the class means of a depth too, the noise on sums of bin numbers, no noise on their
sizes; at most 10 splits on a path; majority. The paper is for two classes: with more, the point is
the mean of all class means.
"""

from __future__ import annotations

from dataclasses import replace

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.postprocess.pipeline import alone, each
from dpforest_duckdb.postprocess.voting import vote_by_majority
from dpforest_duckdb.privacy.plan import LAPLACE, Answer, Plan
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.recipes.conformance import NO_TEXT, Line
from dpforest_duckdb.recipes.plans import spread
from dpforest_duckdb.recipes.published.rana_splits import by_class_means, unless_a_child_is_small
from dpforest_duckdb.recipes.recipe import BOOTSTRAP, Adaptation, Recipe
from dpforest_duckdb.request import Request
from dpforest_duckdb.splits.choose import Choice, among


def plan(request: Request) -> Plan:
    """All of B at the leaves of every tree, and again at the splits of every depth."""
    splits = (Answer("noisy class means, true gain"), (request.trees,) * request.depth)
    queries = {Purpose.SPLIT: splits, Purpose.LEAF: (LAPLACE, (request.trees,))}
    return spread(request, queries, whole=1)


def least_support(choice: Choice) -> int:
    """n_l: a hundredth of all rows."""
    return choice.rows // 100


def adapt(histogram: Integers, request: Request) -> Request:
    """The number of rows, of which n_l is a part."""
    return replace(request, rows=int(histogram.sum()))


LINES = (
    Line("Each tree has a bootstrap sample.", "thesis §4.4.2", "rows"),
    Line(
        "There are as many trees as Theorems 3 and 4 allow.",
        "thesis (4.35), (4.36)",
        "trees",
        cut="There are 10 trees. The bounds are not checked, because they depend on the true rows.",
    ),
    Line(
        "There is no greatest depth.",
        "thesis §4.5.1",
        "depth",
        assumed="A path has at most 10 splits.",
    ),
    Line(
        "The attribute has the largest information gain.",
        "thesis §4.3.2",
        "choose: by_class_means",
        assumed="A numeric attribute has the gain of its best point.",
    ),
    Line(
        "If it is numeric, it is split in two at a point that is found then.",
        "thesis §4.3.1",
        "split_type",
    ),
    Line(
        "The point is the mean of the class means with Laplace noise.",
        "thesis (4.7)",
        "choose: by_class_means",
    ),
    Line(
        "There are two classes, C1 and C2.",
        "thesis (4.7)",
        "choose: by_class_means",
        assumed="With more classes the point is the mean of all class means. The sums of bin "
        "numbers have the noise, with the number of bins as sensitivity. The sizes have none.",
    ),
    Line(
        "Each node has a random subset of the attributes.",
        "thesis §4.3.4: usually",
        "choose: among",
        assumed="The subset has √m attributes.",
    ),
    Line(
        "A node is not split if a child has fewer than n_l rows.",
        "thesis §4.5.1",
        "choose: unless_a_child_is_small",
    ),
    Line(
        "n_l is a small fraction of all rows.",
        "thesis §4.5.1",
        "adaptation: adapt",
        assumed="It is a hundredth. Children without rows do not count, but a node without rows is "
        "not split.",
    ),
    Line(
        "Every tree has ε, not ε/τ.",
        "thesis §4.4.1",
        "plan: plan",
        assumed="B is spent at the leaves, and again at each depth for the class means.",
    ),
    Line("The leaves have noisy class counts.", "thesis §4.1.2: commonly (4.3)", "plan: LAPLACE"),
    Line(
        "The majority of the trees' votes decides.",
        NO_TEXT,
        "finish: vote_by_majority",
        assumed="Each tree has one vote, for the class with most noisy rows.",
    ),
)

FLAWS = (
    "It relaxes differential privacy by design: only variances of estimates are protected.",
    BOOTSTRAP,
    "Every tree, and every depth of it, spends all of B.",
    "The attribute is the one of largest true information gain, without noise.",
    "Class means are divided by the true sizes of the classes.",
    "A node ends by the true sizes of its children.",
    "Their least size follows from the true number of rows.",
)

RANA_FOREST = Recipe(
    name="rana-forest",
    title="Rana et al.",
    year=2015,
    paper="Differentially Private Random Forest with High Utility, ICDM 2015",
    rows="bootstrap",
    split_type="mixed",
    choose=unless_a_child_is_small(among(by_class_means), least_support),
    ends_early=True,
    trees=10,
    depth=10,
    plan=plan,
    adaptation=Adaptation(adapt),
    finish=each(alone(vote_by_majority)),
    flaws=FLAWS,
    one_form="It is not differentially private by design, so there is nothing to repair.",
    lines=LINES,
)
