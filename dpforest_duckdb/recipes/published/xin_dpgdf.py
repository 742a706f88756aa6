"""DPGDF: Xin, Yang, Wang & Huang, Differentially Private Greedy Decision Forest, poster, University
of Science and Technology of China.

Trees on disjoint rows, each with all of B. A tree of depth d has d − 1 layers that are split, with
ε/(2(d − 1)) each and P(a) ∝ exp(−ε Gini(a) / (2(d − 1) Δ(Gini))), and a layer of leaves with ε/2,
whose labels are drawn with smooth sensitivity. d from m/2 to m.
Assumed: d = ⌈m/2⌉, at least 2; τ = 10, where the poster adjusts it to the data set; Gini as a mean
over the rows, with Δ = ½; the changes that one row makes to two attributes are at most ½ apart, so
that the factor 2 is not needed; a child per category, two for a number, split at a bin edge;
majority; the year, 2019.
"""

from __future__ import annotations

from dpforest_duckdb.domain import Domain
from dpforest_duckdb.postprocess.pipeline import alone, each
from dpforest_duckdb.postprocess.voting import vote_by_label
from dpforest_duckdb.privacy.selection import EXPONENTIAL
from dpforest_duckdb.recipes.conformance import NO_TEXT, Line
from dpforest_duckdb.recipes.leaf_queries import LABEL, SMOOTH_FLAWS, SMOOTH_LABEL
from dpforest_duckdb.recipes.plans import half_to_leaves
from dpforest_duckdb.recipes.recipe import Recipe, repaired
from dpforest_duckdb.splits.choose import by_utility
from dpforest_duckdb.splits.published import by_published
from dpforest_duckdb.splits.utilities import GINI, constant, published_gini


def depth(domain: Domain) -> int:
    """⌈m/2⌉ layers, one of them of leaves."""
    return max(2, (len(domain.attributes) + 1) // 2)


LINES = (
    Line("The data sets of the trees do not overlap.", "poster, 3", "rows"),
    Line(
        "The number of trees is adjusted to the data set.",
        "poster, 2a",
        "trees",
        assumed="There are 10 trees.",
    ),
    Line(
        "d is from m/2 to m, and d − 1 layers split.",
        "poster, 2a and 3",
        "depth",
        assumed="d is ⌈m/2⌉.",
    ),
    Line(
        "A split has a child per category.",
        NO_TEXT,
        "split_type",
        assumed="A numeric attribute has two children.",
    ),
    Line(
        "P(a) ∝ exp(−ε Gini(a) / (2(d − 1) Δ(Gini))).",
        "poster, 3",
        "choose: by_published",
        repaired="Gini is weighted by rows, with Δ = 2.",
    ),
    Line(
        "A numeric attribute has a point.",
        NO_TEXT,
        "choose: by_published",
        assumed="Each edge between its bins is a candidate of the same draw, beside the other "
        "attributes.",
    ),
    Line(
        "Gini has a sensitivity.",
        NO_TEXT,
        "choose: constant",
        assumed="It is ½: one more row changes the means of two attributes by amounts that are at "
        "most ½ apart.",
        repaired="It is 2, for Gini weighted by rows.",
    ),
    Line(
        "A layer has ε/(2(d − 1)), and the leaves have ε/2.",
        "poster, 2c",
        "plan: half_to_leaves",
        repaired="The parts are the same, with another mechanism at the leaves.",
    ),
    Line(
        "Leaves use smooth sensitivity.",
        "poster, 2b",
        "leaf: SMOOTH_LABEL",
        assumed="They do so as in smooth-forest: the poster has no formula.",
        repaired="They use permute-and-flip on class counts.",
    ),
    Line(
        "The trees vote.",
        NO_TEXT,
        "finish: vote_by_label",
        assumed="The majority of their votes decides.",
    ),
)

_PUBLISHED = Recipe(
    name="xin-dpgdf",
    title="DPGDF (Xin et al.)",
    year=2019,
    paper="Differentially Private Greedy Decision Forest, poster",
    rows="disjoint",
    split_type="mixed",
    choose=by_published(published_gini, constant(0.5), factor=1),
    trees=10,
    depth=depth,
    depth_of_root=1,
    plan=half_to_leaves(EXPONENTIAL, SMOOTH_LABEL.answer, by="Gini"),
    leaf=SMOOTH_LABEL,
    finish=each(alone(vote_by_label)),
    flaws=SMOOTH_FLAWS,
    lines=LINES,
)

XIN_DPGDF = repaired(
    _PUBLISHED,
    "Labels are drawn by permute-and-flip on class counts. Splits are drawn by count-weighted "
    "Gini, monotone with sensitivity 2, so they need no factor 2 either and are sharper.",
    choose=by_utility(GINI, EXPONENTIAL),
    plan=half_to_leaves(EXPONENTIAL, LABEL.answer, by="Gini"),
    leaf=LABEL,
)
