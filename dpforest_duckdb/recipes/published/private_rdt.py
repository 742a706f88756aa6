"""Private-RDT: Jagannathan, Pillaipakkamnatt & Wright, A Practical Differentially Private Random
Decision Tree Classifier, ICDMW 2009; thesis §4.2 and §4.5.1.

Random trees, whose splits do not depend on the rows. Every tree sees all rows, and has B/τ for the
class counts of its leaves. Class probabilities are averaged. Depth m/2.
Assumed: numeric attributes split in two at a random bin edge; averaged probabilities.
"""

from __future__ import annotations

from dpforest_duckdb.postprocess.pipeline import alone, each
from dpforest_duckdb.postprocess.voting import vote_by_counts
from dpforest_duckdb.recipes.conformance import NO_TEXT, Line
from dpforest_duckdb.recipes.plans import LAPLACE, leaves_only
from dpforest_duckdb.recipes.recipe import Recipe, half_the_attributes
from dpforest_duckdb.splits.choose import at_random

LINES = (
    Line("all rows in every tree", "thesis §4.4.1", "rows"),
    Line("10 trees; 5 give acceptable accuracy", "thesis §4.5.1", "trees"),
    Line("depth d_m = m/2", "thesis §4.5.1", "depth: half_the_attributes"),
    Line("random trees, drawn without the rows", "thesis §4.1.2", "choose: at_random"),
    Line(
        "how an attribute is split",
        NO_TEXT,
        "split_type",
        assumed="a child per category; a number in two at a random bin edge",
    ),
    Line(
        "a tree has B / t, all of it for the class counts of leaves",
        "thesis §4.1.2, §4.4.1",
        "plan: leaves_only",
    ),
    Line("class counts of leaves with Laplace noise", "thesis (4.3)", "plan: leaves_only"),
    Line(
        "how trees vote",
        NO_TEXT,
        "finish: vote_by_counts",
        assumed="shares of a leaf's counts are averaged over the trees",
    ),
)

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
    only="Its proof holds: trees are drawn without a look at the rows, and leaf counts are noised.",
    lines=LINES,
)
