"""How large a forest of one-split trees may be, by public figures and a noisy number of rows.

What counts is strength, the rows times ε: noise in a count, against the rows that it counts. The
constants were set on the whole of eighteen public tables, none of them on one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.postprocess.log_odds import COARSE, FINE
from dpforest_duckdb.privacy.noise import gaussian_variance, noise_scale
from dpforest_duckdb.recipes.plans import rows_share
from dpforest_duckdb.request import Request
from dpforest_duckdb.splits.table_codes import blocks

ATTRIBUTES = 0.22  # attributes for each √(strength / √classes); all of them, if that is half
BINS = 0.18  # bins for each strength / attributes / √classes: the fewer, the more rows in each
COARSEST, FEWEST, MOST = 2, 4, 32  # bins: the fewest of joint tables, of others, the most
CAUTION = 0.75  # standard deviations: too large a forest loses more than too small a one
WARY = 2.0  # the same, before all attributes are told, or none
ONE_TABLE = 0.6  # of ε, about, where one attribute is chosen and told
# the strength over classes^1.5 from which a greedy tree stands beside sums of several classes
BESIDE = 110
ROUGH, CLEAN = 0.7, 0.1  # noise in joint figures over a class's rows: the most, if few or many
FINE_ENOUGH = 0.15  # the same, up to which attributes are cut finer
FEW_FIGURES = 30  # so few joint figures may be rough
WHOLE_NUMBERS = 8  # numbers of so few values are told well by coarse cuts
LEAST_ROWS = 300  # that a table is taken to have: few rows are not told from none at a small ε
OUT_OF_REACH = 0.67  # rows in a cell of one table, over the noise of a count: less is not worth it
# the signal from which boosting pays, with a δ: two classes; several, by kind of attributes
CLEAR = {"two": 22, "numeric": 10, "categorical": 30}
CLEAR_PURE = 1500  # the same without a δ
COMPARE, FIT = 250, 1500  # the strength from which sums of log-odds are compared, and fitted


def strength(request: Request) -> float:
    """Noisy rows times ε, over the rows of a unit; without end before the rows are known."""
    if not request.rows:
        return math.inf
    return float(request.rows / noise_scale(request.epsilon, request.rows_per_unit))


def signal(request: Request) -> float:
    """Noisy rows over the noise of a sweep's sums and classes; endless before rows are known.

    The noise is that of sums of gradients if each attribute had an equal part of the budget.
    """
    if not request.rows:
        return math.inf
    attributes, classes = len(request.domain.attributes), len(request.domain.classes)
    k = request.rows_per_unit
    noise = attributes * math.sqrt(2) * noise_scale(request.epsilon, k)
    if request.rho:
        noise = math.sqrt(attributes * gaussian_variance(request.rho, k**2))
    return request.rows / noise / classes


def boosting_pays(request: Request) -> bool:
    """Whether the sums that boosting asks for are clear of their noise.

    With a δ it starts early for several classes of mostly numeric attributes, which it cuts at
    private medians and whose overlap it takes into account; late for several classes of
    categories, where plain sums of counts are as good.
    """
    if not request.rho:
        return signal(request) >= CLEAR_PURE
    if len(request.domain.classes) == 2:
        return signal(request) >= CLEAR["two"]
    return signal(request) >= CLEAR["numeric" if mostly_numeric(request) else "categorical"]


def mostly_numeric(request: Request) -> bool:
    attributes = request.domain.attributes
    return 2 * sum(attribute.kind == "numeric" for attribute in attributes) > len(attributes)


def tree_pays(request: Request) -> bool:
    """Whether a greedy tree beside the sums is worth its share: mostly numeric attributes.

    Of those a tree makes rules that sums cannot, and sums count twice what they say together.
    """
    if not mostly_numeric(request):
        return False
    if len(request.domain.classes) == 2:  # whose sums are fitted: only where rows are very many
        return not request.rho and boosting_pays(request)
    return _strength_by_classes(request) >= BESIDE


def tree_percent(request: Request) -> int:
    """How much of what a tree and sums have goes to the tree: more as rows allow more leaves."""
    return int(min(max(_strength_by_classes(request) / 7, 25), 60))


def _strength_by_classes(request: Request) -> float:
    """Strength for each class of a leaf, and for the √classes of noise beside them."""
    return strength(request) / math.pow(len(request.domain.classes), 1.5)


def careful(rows: int, request: Request, caution: float = CAUTION) -> Request:
    """The request for a noisy number of rows, less `caution` standard deviations of its noise."""
    noise = noise_scale(request.epsilon, request.rows_per_unit) / rows_share(request)
    less = caution * noise * math.sqrt(2 * len(request.domain.classes))
    return replace(request, rows=max(int(rows - less), 1))


def recut(domain: Domain, bins: int) -> Domain:
    """The domain with its numeric attributes in about so many bins."""
    return replace(domain, attributes=tuple(each.recut(bins) for each in domain.attributes))


def releases_all_tables(request: Request) -> bool:
    """Whether the tables of all attributes are told together, or, out of reach, none.

    Not where fewer trees are asked for than there are attributes.
    """
    few = careful(request.rows, request, WARY)
    every = request.trees == len(request.domain.attributes)
    return every and (joint_tables_fit(few) or out_of_reach(few))


def joint_tables_fit(request: Request) -> bool:
    """Whether the tables of all attributes can be told together, by rows that are careful.

    Not where most attributes are numbers of many values, which coarse cuts may miss, nor where
    sums are to be fitted. Values in an order lend each other what they tell: few rough figures
    will do, an ordered attribute counting as one.
    """
    attributes = request.domain.attributes
    if 2 * sum(_of_few_values(each) for each in attributes) <= len(attributes):
        return False
    if len(request.domain.classes) == 2 and strength(request) >= FIT:
        return False
    coarse = recut(request.domain, COARSEST).attributes
    figures = _figures(request.domain, COARSEST)
    if figures > FEW_FIGURES:
        return roughness(figures, request) <= CLEAN
    smooth = [each.kind == "numeric" or each.ordered for each in coarse]
    rest = [each for each, own in zip(coarse, smooth, strict=True) if not own]
    return roughness(sum(blocks(rest)) + sum(smooth), request) <= ROUGH


def _of_few_values(attribute: Attribute) -> bool:
    return attribute.kind != "numeric" or attribute.recut(MOST).proper <= WHOLE_NUMBERS


def _figures(domain: Domain, bins: int) -> int:
    return sum(blocks(recut(domain, bins).attributes))


def roughness(figures: int, request: Request) -> float:
    """The noise of one of so many joint figures, over the rows of a class if all had as many.

    LEAST_ROWS are taken for granted.
    """
    noise = figures * noise_scale(request.epsilon, request.rows_per_unit) / math.sqrt(3)
    return noise * len(request.domain.classes) / max(request.rows, LEAST_ROWS)


def out_of_reach(request: Request) -> bool:
    """Whether several classes have too few rows, by those that are careful, for any table."""
    coarse = recut(request.domain, FEWEST)
    cells = [len(attribute.expected) for attribute in coarse.attributes]
    rows = max(request.rows, LEAST_ROWS) / len(request.domain.classes) * len(cells) / sum(cells)
    noise = noise_scale(request.epsilon, request.rows_per_unit) * math.sqrt(2) / ONE_TABLE
    return len(request.domain.classes) > 2 and rows < OUT_OF_REACH * noise


def together(histogram: Integers, request: Request) -> Request:
    """All attributes, in as many bins as joint noise allows, or none if all are out of reach."""
    rows = int(histogram.sum())
    seen = replace(careful(rows, request), histogram=tuple(histogram.tolist()))
    bins = COARSEST
    while bins < MOST and roughness(_figures(seen.domain, 2 * bins), seen) <= FINE_ENOUGH:
        bins *= 2
    trees = 0 if out_of_reach(careful(rows, request, WARY)) else len(seen.domain.attributes)
    return replace(seen, trees=trees, depth=1, domain=recut(seen.domain, bins))


def adapt(histogram: Integers, request: Request) -> Request:
    """Trees and bins by strength, from noisy class counts of all rows, less CAUTION."""
    seen = replace(careful(int(histogram.sum()), request), histogram=tuple(histogram.tolist()))
    attributes, classes = len(request.domain.attributes), len(request.domain.classes)
    wanted = max(1, round(ATTRIBUTES * math.sqrt(strength(seen) / math.sqrt(classes))))
    trees = min(request.trees, attributes if wanted >= attributes / 2 else wanted)
    bins = 2 * round(BINS / 2 * strength(seen) / trees / math.sqrt(classes))
    bins = min(max(bins, FEWEST), MOST)
    return replace(seen, trees=trees, depth=1, domain=recut(request.domain, bins))


def cuts(request: Request) -> Sequence[float]:
    """Where sums of log-odds are cut to be counted: finely, at 0, or not at all.

    Only two classes have one sum, and few rows cannot tell sums apart.
    """
    if len(request.domain.classes) > 2 or strength(request) < COMPARE:
        return ()
    return FINE if strength(request) >= FIT else COARSE if request.trees > 1 else ()
