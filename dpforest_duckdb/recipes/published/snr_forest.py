"""DP-RF: Fletcher & Islam, A Differentially Private Random Decision Forest Using Reliable
Signal-to-Noise Ratios, AI 2015; thesis §4.5 and (4.38) to (4.40).

Random multiway trees on all rows, with different attributes at their roots. A node is split while
its estimated support is above θ = √2 |C| / ε. The number of trees is the largest that leaves θ
below the support of nodes of depth 3. The class counts of leaves are queried with B/τ and summed
upward. Nodes with more noise than signal are pruned. A leaf votes as the most confident node of its
path, and the most confident tree wins.
Assumed: numeric attributes split into their five bins at once; the ratio of (4.39), not of (4.40);
pruning from the leaves upward; negative counts as 0 in confidences; the first of several classes
that are equally confident.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.postprocess.pipeline import each, with_cells, with_noise
from dpforest_duckdb.postprocess.pruning import prune_by_signal
from dpforest_duckdb.postprocess.shrinkage import sum_upward
from dpforest_duckdb.postprocess.voting import vote_by_surest
from dpforest_duckdb.privacy.noise import noise_scale
from dpforest_duckdb.privacy.plan import LAPLACE
from dpforest_duckdb.recipes.conformance import NO_TEXT, Line
from dpforest_duckdb.recipes.plans import leaves_only
from dpforest_duckdb.recipes.recipe import Adaptation, Recipe, as_many_as_attributes, repaired
from dpforest_duckdb.recipes.row_count_queries import NOISY_ROWS, PUBLIC_ROWS, ROWS_SHARE
from dpforest_duckdb.recipes.stopping import unsupported
from dpforest_duckdb.request import Request
from dpforest_duckdb.splits.choose import at_random, distinct_roots
from dpforest_duckdb.tree import Voting

BINS = 5


def adapt(histogram: Integers, request: Request, spent: Fraction = ROWS_SHARE) -> Request:
    """The most trees for which θ is below |D| / δ² (4.38), from the class counts of all rows.

    δ is the mean size of the attributes' declared domains. `spent` is the part of B that the number
    of rows has cost, so that θ is the noise of the leaves.
    """
    rows, domain = max(int(histogram.sum()), 1), request.domain
    share = noise_scale(int(request.epsilon * (1 - spent)), request.rows_per_unit)
    theta = math.sqrt(2) * len(domain.classes) * share  # times τ
    sizes = [len(attribute.described) for attribute in domain.attributes]
    bearable = math.ceil(rows / float(np.mean(sizes)) ** 2 / theta) - 1
    return replace(request, rows=rows, trees=max(1, min(request.trees, len(sizes), bearable)))


LINES = (
    Line("Every tree sees all rows.", "thesis §4.4.1", "rows"),
    Line(
        "Numeric attributes are cut into 5 bins of equal size.",
        "thesis §4.3.1",
        "bins: BINS",
        assumed="There are 5 bins, unless the domain names bins.",
    ),
    Line(
        "t is the largest t ≤ |A| with √2 |C| / ε < |D| / δ², where δ is the mean size "
        "of a domain.",
        "thesis (4.38)",
        "adaptation: adapt",
        repaired="ε is what the leaves have after the number of rows is paid for.",
    ),
    Line(
        "The number of rows, |D|, is known, and a tree has ε = B / t.",
        "thesis §4.5.1 and §4.4.1",
        "plan: leaves_only",
        repaired="A noisy number of rows is paid for with 4 % of the budget. A tree has .96 B / t.",
    ),
    Line("t is |A| at first.", "thesis §4.5.1", "trees"),
    Line("Only θ and the attributes left limit the depth.", "thesis §4.5.1 and §4.5.3", "depth"),
    Line(
        "A random attribute is used, once on a path.",
        "thesis Table 4.1 and §4.5.3",
        "choose: at_random",
    ),
    Line(
        "Trees have different attributes at their roots.",
        "its code, SNR_DP_Forest.py",
        "choose: distinct_roots",
    ),
    Line("A split has a child for each value.", "thesis §4.5.3", "split_type"),
    Line(
        "A number lies on one of the two sides of a bin edge.",
        NO_TEXT,
        "split_type",
        assumed="Each of the five bins has a child. A value equal to an edge lies below it.",
    ),
    Line(
        "The estimated support of a node must be above θ. It is that of its parent "
        "divided by the domain size of the attribute.",
        "thesis §4.5.3",
        "stop: unsupported",
    ),
    Line("Each leaf has one noisy count per class.", "thesis §4.5.3", "plan: leaves_only"),
    Line(
        "The counts of a parent are the sums of its children's.",
        "thesis §4.5.3",
        "finish: sum_upward",
    ),
    Line(
        "Nodes of SNR < 1 are pruned, with SNR = ε ΣΣ L_c / (|C| √(2 |Leafs|)).",
        "thesis (4.39); (4.40) prints √2 × |Leafs|",
        "finish: prune_by_signal",
        assumed="(4.39) is used, in which the noise of a sum averages out. From the leaves "
        "upward, a node is pruned if none of its children stays.",
    ),
    Line(
        "A leaf predicts as the most confident node of its path.",
        "thesis §4.5.2",
        "finish: vote_by_surest",
    ),
    Line("The class with the highest confidence wins.", "thesis §4.5.2", "voting"),
    Line(
        "Several classes may be equally confident.",
        NO_TEXT,
        "finish: vote_by_surest",
        assumed="The first of the domain's classes wins. In its code it is the one with the "
        "largest mean share over the trees. Such ties are common: negative counts are 0, so a node "
        "with one positive count has a confidence of 1.",
    ),
)

_PUBLISHED = Recipe(
    name="snr-forest",
    title="Signal-to-noise forest (Fletcher & Islam)",
    year=2015,
    paper="A Differentially Private Random Decision Forest Using Reliable Signal-to-Noise Ratios, "
    "AI 2015",
    rows="all",
    split_type="multiway",
    bins=BINS,
    choose=distinct_roots(at_random),
    trees=as_many_as_attributes,
    one_tree_per_attribute=True,
    depth=as_many_as_attributes,
    plan=leaves_only(LAPLACE),
    adaptation=Adaptation(lambda histogram, request: adapt(histogram, request, Fraction(0))),
    stop=unsupported,
    finish=each(with_cells(sum_upward), with_noise(prune_by_signal), with_cells(vote_by_surest)),
    voting=Voting.SUREST,
    flaws=(PUBLIC_ROWS, "Trees and depth follow from it."),
    lines=LINES,
)

SNR_FOREST = repaired(
    _PUBLISHED,
    NOISY_ROWS + " Trees and depth follow from that.",
    plan=leaves_only(LAPLACE, rows=ROWS_SHARE),
    adaptation=Adaptation(adapt),
)
