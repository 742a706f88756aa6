"""DPRF: Hou, Li, Meng, Ni, Chen & Liu, DPRF: A Differential Privacy Protection Random Forest, IEEE
Access 2019; thesis (4.8), (4.9), (4.28) to (4.30) and §4.6.2.

Bootstrap samples. A split point of each numeric attribute is drawn first, then the attribute, by
w1 · information gain + w2 · gain ratio. A tree has ε = B/τ; layer i of d_m has the weight
2/(d_m − i + 1), half for class counts and half for a split. The last layer has class counts only,
with weight 1. The ε of weight 1 is ε_u = ε/w here; the variant `sparing` has the ε/(2d_m − 1) of
(4.30), which leaves much unspent. τ = 50; d_m = 7 counts nodes on a path.
Assumed: ε_u = ε/w; w1, w2, Δ and the least SI; the share of the split points, which are public bin
edges and scored by IG_GR too; all attributes that a node has left; a child per category; majority.
"""

from __future__ import annotations

from dpforest_duckdb.postprocess.pipeline import alone, each
from dpforest_duckdb.postprocess.voting import vote_by_majority
from dpforest_duckdb.privacy.plan import LAPLACE, Plan, drawn
from dpforest_duckdb.privacy.selection import EXPONENTIAL
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.recipes.conformance import NO_TEXT, Line
from dpforest_duckdb.recipes.plans import harmonic, spread
from dpforest_duckdb.recipes.recipe import ALL_ROWS, BOOTSTRAP, LOSS, Recipe, repaired
from dpforest_duckdb.request import Request
from dpforest_duckdb.splits.published import by_points, halves
from dpforest_duckdb.splits.utilities import GAIN_AND_RATIO

LINES = (
    Line(
        "Each tree has a bootstrap sample.",
        "thesis §3.2: bagging",
        "rows",
        repaired="Every tree sees all rows once.",
    ),
    Line("The forest has 50 trees.", "thesis Table 4.1", "trees"),
    Line("A tree has d_m = 7 layers.", "thesis Table 4.1 and §4.4.1", "depth"),
    Line("A tree has ε = B / t.", "thesis §4.4.1", "plan: plan"),
    Line(
        "Layer i has the weight 2 / (d_m − i + 1), the last one 1 / (d_m − d + 1).",
        "thesis (4.29)",
        "plan: harmonic",
        assumed="d = d_m, so w = 2/d_m + … + 2/2 + 1, also if a limit cuts the trees.",
    ),
    Line(
        "Half of a layer's budget counts classes, half chooses the split. The last "
        "layer counts only.",
        "thesis §4.4.1",
        "plan: plan",
    ),
    Line(
        "The ε of weight 1 is ε_u = ε / w, and in (4.30) ε / (2d_m − 1).",
        "thesis §4.4.1",
        "plan: plan",
        assumed="It is ε / w, by which the layers add up to ε. The other is the variant `sparing`.",
    ),
    Line(
        "Part of the budget chooses the split points of numeric attributes.",
        "thesis §4.6.2",
        "choose: by_points",
    ),
    Line(
        "That part has a size.",
        NO_TEXT,
        "choose: halves",
        assumed="It is half of what a split has, in equal parts for the numeric attributes.",
    ),
    Line(
        "The split is chosen among some attributes.",
        "thesis §4.3.4: usually a random subset",
        "choose: by_points",
        assumed="It is chosen among all that a node has left.",
    ),
    Line(
        "The exponential mechanism draws the attribute by IG_GR = (w1 + w2 / SI) · IG, where IG is "
        "the information gain and SI the split information.",
        "thesis (4.8), (4.9), (4.20)",
        "choose: GAIN_AND_RATIO",
    ),
    Line(
        "Points are scored by the gain ratio.",
        "thesis §4.3.2",
        "choose: GAIN_AND_RATIO",
        assumed="They are scored by IG_GR too.",
    ),
    Line(
        "IG_GR has weights w1 and w2, and a sensitivity.",
        NO_TEXT,
        "choose: GAIN_AND_RATIO",
        assumed="w1 = w2 = ½. IG_GR is at most Δ = log2 |C|, because IG is never above SI. SI is "
        "at least 2^-10 bits, to avoid 0 / 0.",
    ),
    Line(
        "A split has a child per category, and two for a numeric attribute.",
        NO_TEXT,
        "split_type",
        assumed="ID3 and C4.5, which IG_GR combines, do so. Numeric points are bin edges.",
    ),
    Line("Nodes have noisy class counts.", "thesis (4.19)", "plan: LAPLACE"),
    Line(
        "A leaf votes.",
        NO_TEXT,
        "finish: vote_by_majority",
        assumed="It votes for its most frequent class by noisy counts.",
    ),
    Line(
        "The trees vote.",
        NO_TEXT,
        "finish: vote_by_majority",
        assumed="The forest predicts the class that most trees predict.",
    ),
)


def plan(request: Request, *, sparing: bool = False) -> Plan:
    """Class counts at every layer and a split at all but the last, by weight."""
    weights = harmonic(request.depth + 1)
    queries = {
        Purpose.HISTOGRAM: (LAPLACE, weights),
        Purpose.SPLIT: (drawn(EXPONENTIAL), weights[:-1]),
    }
    return spread(request, queries, whole=2 * request.depth + 1 if sparing else None)


VARIANTS = {"sparing": {"plan": lambda request: plan(request, sparing=True)}}

_PUBLISHED = Recipe(
    name="hou-forest",
    title="DPRF by gain and ratio (Hou et al.)",
    year=2019,
    paper="DPRF: A Differential Privacy Protection Random Forest, IEEE Access 2019",
    rows="bootstrap",
    split_type="mixed",
    choose=by_points(GAIN_AND_RATIO, GAIN_AND_RATIO, halves),
    trees=50,
    depth=7,
    depth_of_root=1,
    plan=plan,
    finish=each(alone(vote_by_majority)),
    flaws=(BOOTSTRAP, LOSS),
    variants=VARIANTS,
    lines=LINES,
)

HOU_FOREST = repaired(
    _PUBLISHED,
    ALL_ROWS + " The gain ratio is at most 1, so the utility IG_GR has a bound.",
    rows="all",
)
