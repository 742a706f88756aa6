"""Fletcher & Islam, Differentially Private Random Decision Forests using Smooth Sensitivity, 2017.

Random trees on disjoint rows, so each has all of B, and all of it goes to the leaves' labels:
as published by the exponential mechanism with smooth sensitivity, in the addendum of 2021 by
report one-sided noisy arg max, which is permute-and-flip. Majority of τ ≈ 100 trees.
Depth: m/2, or where numeric attributes are left untried often, the first d with s((s−1)/s)^d < s/2.
"""

from __future__ import annotations

from dpforest_duckdb.domain import Domain
from dpforest_duckdb.postprocess.pipeline import alone, each
from dpforest_duckdb.postprocess.voting import vote_by_label
from dpforest_duckdb.recipes.leaf_queries import LABEL, SMOOTH_FLAWS, SMOOTH_LABEL
from dpforest_duckdb.recipes.plans import leaves_only
from dpforest_duckdb.recipes.recipe import Recipe, repaired
from dpforest_duckdb.splits.choose import at_random


def depth(domain: Domain) -> int:
    """Half of the discrete attributes, and the depth that leaves half of the s numeric untried."""
    s = sum(a.kind == "numeric" for a in domain.attributes)
    discrete = (len(domain.attributes) - s) // 2
    first = next((d for d in range(64) if s * ((s - 1) / s) ** d < s / 2), 0) if s else 0
    return max(1, discrete + first)


_PUBLISHED = Recipe(
    name="smooth-forest",
    title="Smooth-sensitivity forest (Fletcher & Islam)",
    year=2017,
    paper="Differentially Private Random Decision Forests using Smooth Sensitivity, ESWA 2017",
    rows="disjoint",
    split_type="mixed",
    choose=at_random,
    trees=100,
    depth=depth,
    plan=leaves_only(SMOOTH_LABEL.mechanism, disjoint=True),
    leaf=SMOOTH_LABEL,
    finish=each(alone(vote_by_label)),
    flaws=SMOOTH_FLAWS,
)

SMOOTH_FOREST = repaired(
    _PUBLISHED,
    "Labels are drawn by permute-and-flip on class counts. These are monotone with sensitivity 1, "
    "as in the authors' addendum.",
    plan=leaves_only(LABEL.mechanism, disjoint=True),
    leaf=LABEL,
)
