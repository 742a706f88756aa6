"""How `auto` decides: the size of a forest, from public figures and a noisy number of rows.

The main quantity is the strength n·ε: the rows in a count divided by the noise in it. The table of
constants was set by hand on all public tables together; `docs/constants.md` shows what other values
are worth. Constants of a single recipe are beside it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.domain import Domain
from dpforest_duckdb.postprocess.log_odds import COARSE, FINE
from dpforest_duckdb.privacy.noise import gaussian_variance, noise_scale
from dpforest_duckdb.recipes.plans import row_count_query
from dpforest_duckdb.request import Request
from dpforest_duckdb.splits.table_codes import blocks, deviation

COARSEST, FEWEST, MOST = 2, 4, 32  # bins: the fewest of joint tables, of others, the most

ATTRIBUTES = 0.22  # attributes for each √(strength / √classes); all of them, if that is half
BINS = 0.18  # bins for each strength / attributes / √classes: the fewer, the more rows in each
CAUTION = 1.0  # standard deviations; too large a forest loses more than too small a one
CLEAN = 0.12  # most noise in joint figures, over the rows of a class
ROOT_NOISE = 1.2  # most noise in a sum of log-odds below a root
COMPARE, STRONG = 250, 1000  # the strength from which two models are compared, and any number
ROWS_PER_LEAF = 100  # n·ε that a greedy tree's leaf should hold to be above its noise
# the signal from which boosting pays: with a δ (several classes of numbers; others), and without
CLEAR_NUMBERS, CLEAR, CLEAR_PURE = 10, 30, 1500
CHOICE = 40  # percent, for choosing attributes; the rest is for their tables
CHECK = 10  # percent of ε for a choice among models, or for all roots


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
    numbers = mostly_numeric(request) and _classes(request) > 2
    return signal(request) >= (CLEAR_NUMBERS if numbers else CLEAR)


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
    return _strength_by_classes(request) >= ROWS_PER_LEAF


def tree_percent(request: Request) -> int:
    """The tree's share of the budget of tree and sums, in percent: more if rows allow
    more leaves.
    """
    return int(min(max(_strength_by_classes(request) / 7, 25), 60))


def _strength_by_classes(request: Request) -> float:
    """Strength divided by the classes of a leaf, and by √classes for the noise in them.

    Rows count as far as the classes are mixed: 1 if all are as frequent, 0 if there is only one.
    """
    classes = len(request.domain.classes)
    seen = np.clip(np.array(request.histogram or [1] * classes), 0, None)
    shares = seen / max(seen.sum(), 1)
    mixed = float(1 - (shares**2).sum()) * classes / (classes - 1)
    return strength(request) * mixed / math.pow(classes, 1.5)


def careful(rows: int, request: Request) -> Request:
    """The request with the noisy number of rows minus CAUTION standard deviations of its noise."""
    noise = noise_scale(row_count_query(request).total, request.rows_per_unit)
    less = CAUTION * noise * math.sqrt(2 * len(request.domain.classes))
    return replace(request, rows=max(int(rows - less), 1))


def recut(domain: Domain, bins: int) -> Domain:
    """The domain with its numeric attributes in about that many bins."""
    return replace(domain, attributes=tuple(each.recut(bins) for each in domain.attributes))


def joint_tables_fit(request: Request) -> bool:
    """Whether the tables of all attributes can be released together.

    Not if fewer trees are requested than there are attributes; nor if most attributes are numbers
    of more values than joint noise allows bins, which coarse bins may miss. Not if sums are to be
    fitted, unless the tables of all attributes together have less noise than those of the few that
    would be chosen.
    """
    attributes = request.domain.attributes
    bins = _joint_bins(request)
    shown = sum(own.kind != "numeric" or own.recut(MOST).proper <= bins for own in attributes)
    if request.trees < len(attributes) or not bins or 2 * shown <= len(attributes):
        return False
    fitted = _classes(request) == 2 and strength(request) >= STRONG
    return not fitted or _finer_together(request)


def _joint_bins(request: Request) -> int:
    """The bins that joint noise allows numeric attributes; 0 if it is too much for any."""
    bins = MOST
    while bins >= COARSEST and roughness(bins, request) > CLEAN:
        bins //= 2
    return bins if bins >= COARSEST else 0


def roughness(bins: int, request: Request) -> float:
    """The noise of a joint figure, divided by the rows of a class, if all classes are equal."""
    figures = sum(blocks(recut(request.domain, bins).attributes))
    noise = figures * noise_scale(request.epsilon, request.rows_per_unit) / math.sqrt(3)
    return noise * _classes(request) / max(request.rows, 1)


def together(histogram: Integers, request: Request) -> Request:
    """All attributes, in as many bins as joint noise allows."""
    seen = replace(careful(int(histogram.sum()), request), histogram=tuple(histogram.tolist()))
    bins = max(_joint_bins(seen), COARSEST)
    return replace(
        seen, trees=len(seen.domain.attributes), depth=1, domain=recut(seen.domain, bins)
    )


def models_differ(request: Request) -> bool:
    """Whether the rows can tell models of the same tables apart, by a choice."""
    return strength(request) >= STRONG


def _finer_together(request: Request) -> bool:
    """Whether joint tables of all attributes have less noise than tables of a chosen few."""
    attributes, k = request.domain.attributes, request.rows_per_unit
    if _wanted(request) == len(attributes):
        return False
    joint = [deviation(own, attributes, request.epsilon, k) for own in attributes]
    alone = math.sqrt(2) * _wanted(request) / (1 - CHOICE / 100) * noise_scale(request.epsilon, k)
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
    return FINE if strength(request) >= STRONG else COARSE if request.trees > 1 else ()
