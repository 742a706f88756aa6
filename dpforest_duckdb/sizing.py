"""How large a forest of one-split trees may be, by public figures and a noisy number of rows.

What counts is strength, the rows times ε: noise in a count, against the rows that it counts. The
constants were set on the whole of eighteen public tables, none of them on one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from dpforest_duckdb.budgets import ROWS_SHARE
from dpforest_duckdb.evidence import COARSE, FINE
from dpforest_duckdb.privacy.units import ATTO, NANO
from dpforest_duckdb.recipe import Counts, Request

ATTRIBUTES = 0.22  # attributes for each √(strength / √classes); all of them, if that is half
BINS = 0.18  # bins for each strength / attributes / √classes: the fewer, the more rows in each
FEWEST, MOST = 4, 32  # bins
CAUTION = 0.75  # standard deviations: too large a forest loses more than too small a one
DENSE = 4000  # the strength from which a greedy tree may do better than sums
COMPARE, FIT = 250, 1500  # the strength from which sums of log-odds are compared, and fitted


def strength(request: Request) -> float:
    """Noisy rows times ε, over the rows of a unit; without end before the rows are known."""
    if not request.rows:
        return math.inf
    return request.rows * request.epsilon / NANO / request.rows_per_unit


def signal(request: Request) -> float:
    """Noisy rows over the noise of a sweep's sums and classes; endless before rows are known.

    The noise is that of sums of gradients if each attribute had an equal part of the budget.
    """
    if not request.rows:
        return math.inf
    attributes, classes = len(request.domain.attributes), len(request.domain.classes)
    noise = attributes * math.sqrt(2) / (request.epsilon / NANO)
    if request.rho:
        noise = math.sqrt(attributes / 2 / (request.rho / ATTO))
    return request.rows / request.rows_per_unit / noise / classes


def dense(request: Request) -> bool:
    """Whether a greedy tree does better: many rows, several classes, mostly numeric attributes.

    Sums of several classes are not put right, and attributes that say the same count twice in them.
    """
    attributes = request.domain.attributes
    numeric = sum(attribute.kind == "numeric" for attribute in attributes)
    mostly = 2 * numeric > len(attributes) and len(request.domain.classes) > 2
    return mostly and strength(request) >= DENSE


def careful(rows: int, request: Request) -> Request:
    """The request for a noisy number of rows, less CAUTION standard deviations of its noise."""
    noise = request.rows_per_unit * NANO / request.epsilon / ROWS_SHARE
    less = CAUTION * noise * math.sqrt(2 * len(request.domain.classes))
    return replace(request, rows=max(int(rows - less), 1))


def adapt(histogram: Counts, request: Request) -> Request:
    """Trees and bins by strength, from noisy class counts of all rows, less CAUTION."""
    seen = replace(careful(int(histogram.sum()), request), histogram=tuple(histogram.tolist()))
    attributes, classes = len(request.domain.attributes), len(request.domain.classes)
    wanted = max(1, round(ATTRIBUTES * math.sqrt(strength(seen) / math.sqrt(classes))))
    trees = min(request.trees, attributes if wanted >= attributes / 2 else wanted)
    bins = 2 * round(BINS / 2 * strength(seen) / trees / math.sqrt(classes))
    bins = min(max(bins, FEWEST), MOST)
    recut = tuple(attribute.recut(bins) for attribute in request.domain.attributes)
    return replace(seen, trees=trees, depth=1, domain=replace(request.domain, attributes=recut))


def cuts(request: Request) -> Sequence[float]:
    """Where sums of log-odds are cut to be counted: finely, at 0, or not at all.

    Only two classes have one sum, and few rows cannot tell sums apart.
    """
    if len(request.domain.classes) > 2 or strength(request) < COMPARE:
        return ()
    return FINE if strength(request) >= FIT else COARSE if request.trees > 1 else ()
