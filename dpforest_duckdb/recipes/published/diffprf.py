"""DiffPRF: Patil & Singh, Differential Private Random Forest, ICACCI 2014.

ID3 trees on bootstrap samples. A tree has ε' = B/τ. At every depth, half pays for a noisy node size
and half for the exponential mechanism among √m random attributes. A leaf predicts its most frequent
class. A node ends at the greatest depth, or if its rows are of one class. The utility is ID3's
information gain; the variants `max` and `gini` use the paper's other two. In the rigorous form no
node ends by its class, splits are drawn by Gini, and there is no query for the size of a node,
because nothing would use it.
Assumed: the budget of a depth, √m, Δ of information gain and Gini, and public bins instead of those
that entropy finds in the rows.
"""

from __future__ import annotations

from dpforest_duckdb.postprocess.pipeline import alone, each
from dpforest_duckdb.postprocess.voting import vote_by_majority
from dpforest_duckdb.privacy.plan import drawn
from dpforest_duckdb.privacy.selection import EXPONENTIAL
from dpforest_duckdb.recipes.conformance import NO_TEXT, Line
from dpforest_duckdb.recipes.plans import one_per_depth, per_node
from dpforest_duckdb.recipes.recipe import BOOTSTRAP, Recipe, repaired
from dpforest_duckdb.splits.choose import Chooser, among, by_utility
from dpforest_duckdb.splits.published import unless_pure
from dpforest_duckdb.splits.utilities import (
    GAIN_OF_RANGE,
    GINI,
    INFORMATION_GAIN,
    MAX_COUNT,
    Utility,
    with_factor_2,
)

UTILITIES = {"ig": GAIN_OF_RANGE, "max": MAX_COUNT, "gini": GINI}


def choose(utility: Utility) -> Chooser:
    return among(by_utility(utility, EXPONENTIAL))


LINES = (
    Line(
        "A random forest draws a bootstrap sample for each tree.",
        "DiffPRFs §2.2 and §2.3",
        "rows",
        repaired="Every tree sees all rows once.",
    ),
    Line("The forest has 20 trees.", "thesis Table 4.1", "trees"),
    Line("The depth is 5.", "thesis Table 4.1", "depth"),
    Line("ID3 makes a child per value of an attribute.", "thesis §4.2 and (3.5)", "split_type"),
    Line(
        "Numeric attributes are cut by entropy until the rule of minimum description length "
        "(4.4) ends it.",
        "thesis §4.3.1",
        "split_type",
        assumed="Both forms have public bins, because these cuts are read from the rows.",
    ),
    Line(
        "A tree has ε' = B / τ. The published figures state ε'.",
        "thesis §4.4.1 and Figure 4.11",
        "plan: per_node",
    ),
    Line(
        "A tree divides its budget.",
        NO_TEXT,
        "plan: per_node",
        assumed="It does so as in DiffPRFs, which improves on it: d + 1 depths have equal "
        "parts, half for the size of a node and half for its split or its class counts.",
    ),
    Line(
        "A node has a noisy size, which nothing uses.",
        "DiffPRFs §3.2, step 1",
        "plan: per_node",
        repaired="It is not queried, so all of a depth's budget goes to the split or the leaf.",
    ),
    Line(
        "Each node has a random subset of the attributes.",
        "DiffPRFs §2.2.1",
        "choose: among",
        assumed="The subset has √m attributes, as in DiffPRFs.",
    ),
    Line(
        "The exponential mechanism has ID3's utility, information gain.",
        "thesis §4.2 and §4.6.2",
        "choose: by_utility",
        repaired="It has Gini weighted by counts, which is monotone, so the factor 2 is left out.",
    ),
    Line(
        "Or it has the max operator (4.10) or Gini.",
        "thesis §4.6.2",
        "choose: by_utility",
        assumed="These are the variants `max` and `gini`.",
    ),
    Line(
        "The max operator has Δ = 1.",
        "thesis §4.3.2",
        "choose: MAX_COUNT",
    ),
    Line(
        "The other utilities have sensitivities.",
        NO_TEXT,
        "choose: GAIN_OF_RANGE",
        assumed="Gini weighted by counts has Δ = 2. Information gain in bits has Δ = log2 |C| as "
        "published, and 1 in the rigorous form: one more row changes it by at most that.",
    ),
    Line(
        "A node of a random forest ends at the greatest depth or when its rows, if any, are of "
        "one class.",
        "DiffPRFs §2.2.1",
        "choose: unless_pure",
        repaired="It ends at the greatest depth only, because the true classes are private. (n / "
        "(t |C|) < √2 / ε is DiffP-ID3's rule.)",
    ),
    Line(
        "A leaf votes for its most frequent class by noisy counts.",
        "thesis (4.3)",
        "finish: vote_by_majority",
    ),
    Line(
        "The forest predicts the class that most trees predict.",
        "DiffPRFs §2.2",
        "finish: vote_by_majority",
    ),
)

_PUBLISHED = Recipe(
    name="diffprf",
    title="DiffPRF (Patil & Singh)",
    year=2014,
    paper="Differential Private Random Forest, ICACCI 2014",
    rows="bootstrap",
    split_type="multiway",
    choose=unless_pure(choose(GAIN_OF_RANGE)),
    ends_early=True,
    trees=20,
    depth=5,
    plan=per_node(drawn(EXPONENTIAL)),
    finish=each(alone(vote_by_majority)),
    flaws=(BOOTSTRAP, "Whether the rows of a node are of one class is read from the true rows."),
    variants={
        name: {"choose": unless_pure(choose(with_factor_2(u)))} for name, u in UTILITIES.items()
    },
    lines=LINES,
)

DIFFPRF = repaired(
    _PUBLISHED,
    "Every tree sees all rows once, no node ends by its class, and no size is asked for. Splits "
    "are drawn by Gini, which is monotone, so that the factor 2 is left out.",
    rows="all",
    plan=one_per_depth,
    choose=choose(GINI),
    ends_early=False,
    variants={
        name: {"choose": choose(u)} for name, u in {**UTILITIES, "ig": INFORMATION_GAIN}.items()
    },
)
