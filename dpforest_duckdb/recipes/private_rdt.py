"""Private-RDT: Jagannathan, Pillaipakkamnatt & Wright, A Practical Differentially Private Random
Decision Tree Classifier, ICDMW 2009.

Random trees, which ask no row; B/τ for the class counts of the leaves of each, all rows in every
tree; class probabilities are averaged. Depth m/2.
Assumed: numeric attributes split in two at a random bin edge.
"""

from __future__ import annotations

from dpforest_duckdb.budgets import LAPLACE, leaves_only
from dpforest_duckdb.finishing import alone, each
from dpforest_duckdb.recipe import Recipe, half_the_attributes
from dpforest_duckdb.splits.choose import at_random
from dpforest_duckdb.voting import vote_by_counts

PRIVATE_RDT = Recipe(
    name="private-rdt",
    title="Private-RDT (Jagannathan et al.)",
    year=2009,
    paper="A Practical Differentially Private Random Decision Tree Classifier, ICDMW 2009",
    rows="all",
    ways="mixed",
    choose=at_random,
    trees=10,
    depth=half_the_attributes,
    plan=leaves_only(LAPLACE),
    finish=each(alone(vote_by_counts)),
    only="Its proof holds: trees rest on no row and leaf counts are noised.",
)
