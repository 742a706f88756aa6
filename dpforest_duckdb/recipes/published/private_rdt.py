"""Private-RDT: Jagannathan, Pillaipakkamnatt & Wright, A Practical Differentially Private Random
Decision Tree Classifier, ICDMW 2009; thesis §4.2 and §4.5.1.

Random trees, whose splits do not depend on the rows. Every tree sees all rows, and has B/τ for the
class counts of its leaves. Class probabilities are averaged. Depth m/2.
Assumed: m/2 is rounded down; numeric attributes split in two at a random bin edge; averaged
probabilities.
"""

from __future__ import annotations

from dpforest_duckdb.postprocess.pipeline import alone, each
from dpforest_duckdb.postprocess.voting import vote_by_counts
from dpforest_duckdb.privacy.plan import LAPLACE
from dpforest_duckdb.recipes.conformance import NO_TEXT, Line
from dpforest_duckdb.recipes.plans import leaves_only
from dpforest_duckdb.recipes.recipe import Recipe, half_the_attributes
from dpforest_duckdb.splits.choose import at_random

LINES = (
    Line("Every tree sees all rows.", "thesis §4.4.1", "rows"),
    Line("The forest has 10 trees; 5 give acceptable accuracy.", "thesis §4.5.1", "trees"),
    Line(
        "The depth is d_m = m/2.",
        "thesis §4.5.1",
        "depth: half_the_attributes",
        assumed="m/2 is rounded down.",
    ),
    Line(
        "Trees are random: they are drawn without the rows.", "thesis §4.1.2", "choose: at_random"
    ),
    Line(
        "An attribute is split.",
        NO_TEXT,
        "split_type",
        assumed="A category has a child of its own. A number is split in two at a random bin edge.",
    ),
    Line(
        "A tree has B / t, all of it for the class counts of leaves.",
        "thesis §4.1.2, §4.4.1",
        "plan: leaves_only",
    ),
    Line("The class counts of leaves have Laplace noise.", "thesis (4.3)", "plan: leaves_only"),
    Line(
        "The trees vote.",
        NO_TEXT,
        "finish: vote_by_counts",
        assumed="The shares of a leaf's counts are averaged over the trees.",
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
    one_form="Its proof holds: trees are drawn without a look at the rows, and leaf counts are "
    "noised.",
    lines=LINES,
)
