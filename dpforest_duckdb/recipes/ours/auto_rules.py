"""How `auto` decides: the size of a forest, from public figures and a noisy number of rows.

The main quantity is the strength n·ε: the rows in a count divided by the noise in it. The constants
were set by hand on public tables, most of them on eighteen tables together. BESIDE and
WHOLE_NUMBERS each depend on one or two of these tables.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.postprocess.log_odds import COARSE, FINE
from dpforest_duckdb.privacy.noise import gaussian_variance, noise_scale
from dpforest_duckdb.recipes.plans import row_count_query
from dpforest_duckdb.request import Request
from dpforest_duckdb.splits.table_codes import blocks, deviations

ATTRIBUTES = 0.22  # times √(strength / √classes): how many attributes; all, if that is half
BINS = 0.18  # times strength / attributes / √classes: how many bins
COARSEST, FEWEST, MOST = 2, 4, 32  # bins: least of joint tables, least of others, most
CAUTION = 0.75  # standard deviations; too large a forest loses more than too small a one
WARY = 2.0  # the same, for the choice of joint tables
ONE_TABLE = 0.6  # about the share of ε for one chosen attribute's table
# strength / classes^1.5 from which a greedy tree is added to sums of several classes
BESIDE = 104
# most noise in joint figures over a class's rows: of few figures, of many
ROUGH, CLEAN = 0.7, 0.1
FINE_ENOUGH = 0.15  # the same, if attributes are to get more bins
FEW_FIGURES = 30  # up to so many joint figures, ROUGH is the limit; else CLEAN
WHOLE_NUMBERS = 10  # coarse bins are enough for so few values
ROOT_NOISE = 1.2  # most noise in a sum of log-odds below a root
LEAST_ROWS = 300  # floor on n: at small ε the noise hides small counts
OUT_OF_REACH = 0.67  # least (rows in a cell) / (noise of a count)
# the signal from which boosting pays, with a δ: two classes; several, by kind of attributes
CLEAR = {"two": 22, "numeric": 10, "categorical": 30}
CLEAR_PURE = 1500  # the same without a δ
MODELS = 1000  # the strength from which a choice among models of joint tables beats the plain sum
COMPARE, FIT = 250, 1500  # the strength from which sums of log-odds are compared, and fitted


def strength(request: Request) -> float:
    """n·ε / k, with n the noisy rows and k the rows per unit; infinite before n is known."""
    if not request.rows:
        return math.inf
    return float(request.rows / noise_scale(request.epsilon, request.rows_per_unit))


def signal(request: Request) -> float:
    """n divided by the noise of a sweep's sums and by the classes; infinite before n is known.

    The noise is that of sums of gradients if each attribute gets an equal part of the budget.
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
    """Whether the sums that boosting needs are well above their noise.

    With a δ, boosting starts early for several classes of mostly numeric attributes, because it
    cuts them at private medians and accounts for their overlap. It starts late for several classes
    of categorical attributes, where plain sums of counts are as good.
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
    """Whether a greedy tree beside the sums is worth its share: if most attributes are numeric.

    A tree finds rules on several attributes, which sums cannot; and sums count overlapping
    attributes twice.
    """
    if not mostly_numeric(request):
        return False
    if len(request.domain.classes) == 2:  # their sums are fitted, so a tree needs far more rows
        return not request.rho and boosting_pays(request)
    return _strength_by_classes(request) >= BESIDE


def tree_percent(request: Request) -> int:
    """The tree's percentage of the budget of tree and sums: more if rows allow more leaves."""
    return int(min(max(_strength_by_classes(request) / 7, 25), 60))


def _strength_by_classes(request: Request) -> float:
    """Strength divided by the classes of a leaf, and by √classes for the noise in them.

    It is also multiplied by the Gini impurity of the class shares, in parts of the largest one: 1
    if all classes are equally frequent, 0 if all rows have one class.
    """
    classes = len(request.domain.classes)
    seen = np.clip(np.array(request.histogram or [1] * classes), 0, None)
    shares = seen / max(seen.sum(), 1)
    mixed = float(1 - (shares**2).sum()) * classes / (classes - 1)
    return strength(request) * mixed / math.pow(classes, 1.5)


def careful(rows: int, request: Request, caution: float | None = None) -> Request:
    """The request with `rows` minus `caution` standard deviations of their noise, at least 1.

    `caution` is CAUTION by default.
    """
    noise = noise_scale(row_count_query(request).total, request.rows_per_unit)
    caution = CAUTION if caution is None else caution
    less = caution * noise * math.sqrt(2 * len(request.domain.classes))
    return replace(request, rows=max(int(rows - less), 1))


def recut(domain: Domain, bins: int) -> Domain:
    """The domain with its numeric attributes in about that many bins."""
    return replace(domain, attributes=tuple(each.recut(bins) for each in domain.attributes))


def releases_all_tables(request: Request) -> bool:
    """Whether the recipe is one of joint tables: all tables are released together, or none if there
    are too few rows for any.

    Never if fewer trees are requested than there are attributes.
    """
    few = careful(request.rows, request, WARY)
    every = request.trees == len(request.domain.attributes)
    return every and (joint_tables_fit(few) or out_of_reach(few))


def joint_tables_fit(request: Request) -> bool:
    """Whether the tables of all attributes can be released together, by a careful number of rows.

    Not if most attributes are numbers of many values, which coarse bins may miss; not if sums are
    to be fitted, unless the tables of all attributes together have less noise than those of the few
    that would be chosen. If there are few figures, an ordered attribute counts as one, because its
    neighbouring values are similar.
    """
    attributes = request.domain.attributes
    if 2 * sum(_of_few_values(each) for each in attributes) <= len(attributes):
        return False
    if _classes(request) == 2 and strength(request) >= FIT and not _finer_together(request):
        return False
    coarse = recut(request.domain, COARSEST).attributes
    figures = _figures(request.domain, COARSEST)
    if figures > FEW_FIGURES:
        return roughness(figures, request) <= CLEAN
    smooth = [each.kind == "numeric" or each.ordered for each in coarse]
    rest = [each for each, is_smooth in zip(coarse, smooth, strict=True) if not is_smooth]
    return roughness(sum(blocks(rest)) + sum(smooth), request) <= ROUGH


def _of_few_values(attribute: Attribute) -> bool:
    return attribute.kind != "numeric" or attribute.recut(MOST).proper <= WHOLE_NUMBERS


def _figures(domain: Domain, bins: int) -> int:
    return sum(blocks(recut(domain, bins).attributes))


def roughness(figures: int, request: Request) -> float:
    """The noise of one of that many joint figures, divided by the rows of a class.

    n is at least LEAST_ROWS, and all classes are taken to be equally frequent.
    """
    noise = figures * noise_scale(request.epsilon, request.rows_per_unit) / math.sqrt(3)
    return noise * len(request.domain.classes) / max(request.rows, LEAST_ROWS)


def out_of_reach(request: Request) -> bool:
    """Whether there are three classes or more and too few rows for any table.

    The request should have a careful number of rows.
    """
    coarse = recut(request.domain, FEWEST)
    cells = [len(attribute.expected) for attribute in coarse.attributes]
    rows = max(request.rows, LEAST_ROWS) / len(request.domain.classes) * len(cells) / sum(cells)
    noise = noise_scale(request.epsilon, request.rows_per_unit) * math.sqrt(2) / ONE_TABLE
    return len(request.domain.classes) > 2 and rows < OUT_OF_REACH * noise


def adapt_jointly(histogram: Integers, request: Request) -> Request:
    """All attributes, in as many bins as joint noise allows; none if they are out of reach."""
    rows = int(histogram.sum())
    seen = replace(careful(rows, request), histogram=tuple(histogram.tolist()))
    bins = COARSEST
    while bins < MOST and roughness(_figures(seen.domain, 2 * bins), seen) <= FINE_ENOUGH:
        bins *= 2
    trees = 0 if out_of_reach(careful(rows, request, WARY)) else len(seen.domain.attributes)
    return replace(seen, trees=trees, depth=1, domain=recut(seen.domain, bins))


def models_differ(request: Request) -> bool:
    """Whether the rows can tell models of the same tables apart, in a choice for 5 % of ε."""
    return strength(request) >= MODELS


def _finer_together(request: Request) -> bool:
    """Whether joint tables of all attributes have less noise than tables of a chosen few."""
    attributes, k = request.domain.attributes, request.rows_per_unit
    if _wanted(request) == len(attributes):
        return False
    joint = deviations(attributes, attributes, request.epsilon, k)
    alone = math.sqrt(2) * _wanted(request) / ONE_TABLE * noise_scale(request.epsilon, k)
    return float(np.mean(joint)) < alone


def _wanted(request: Request) -> int:
    """The number of attributes that are worth a table each; all, if that is half of them."""
    attributes = len(request.domain.attributes)
    wanted = max(1, round(ATTRIBUTES * math.sqrt(strength(request) / math.sqrt(_classes(request)))))
    return attributes if wanted >= attributes / 2 else wanted


def _classes(request: Request) -> int:
    return len(request.domain.classes)


def adapt(histogram: Integers, request: Request) -> Request:
    """Trees and bins by strength, from noisy class counts of all rows, minus CAUTION deviations."""
    seen = replace(careful(int(histogram.sum()), request), histogram=tuple(histogram.tolist()))
    trees = min(request.trees, _wanted(seen))
    bins = 2 * round(BINS / 2 * strength(seen) / trees / math.sqrt(_classes(request)))
    bins = min(max(bins, FEWEST), MOST)
    return replace(seen, trees=trees, depth=1, domain=recut(request.domain, bins))


def cuts(request: Request) -> Sequence[float]:
    """Where sums of log-odds are cut before they are counted: finely, at 0, or not at all.

    Only two classes have a single sum, and few rows cannot distinguish sums.
    """
    if len(request.domain.classes) > 2 or strength(request) < COMPARE:
        return ()
    return FINE if strength(request) >= FIT else COARSE if request.trees > 1 else ()
