"""Private-RDT: Jagannathan, Pillaipakkamnatt & Wright, A Practical Differentially Private Random
Decision Tree Classifier, ICDMW 2009.

Random trees, which ask no row; B/τ for the class counts of the leaves of each, all rows in every
tree; class probabilities are averaged. Depth m/2.
Assumed: numeric attributes split in two at a random bin edge.
"""

from __future__ import annotations

from dpforest_duckdb.postprocess.pipeline import alone, each
from dpforest_duckdb.postprocess.voting import vote_by_counts
from dpforest_duckdb.recipes.plans import LAPLACE, leaves_only
from dpforest_duckdb.recipes.recipe import Recipe, half_the_attributes
from dpforest_duckdb.splits.choose import at_random

PRIVATE_RDT = Recipe(
    name="private-rdt",
    title="Private-RDT (Jagannathan et al.)",
    year=2009,
    paper="A Practical Differentially Private Random Decision Tree Classifier, ICDMW 2009",
    rows="all",
    split_type="mixed",
    choose=at_random,
    trees=10,
    depth=half_the_attributes,
    plan=leaves_only(LAPLACE),
    finish=each(alone(vote_by_counts)),
    only="Its proof holds: trees rest on no row and leaf counts are noised.",
)
