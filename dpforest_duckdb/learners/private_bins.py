"""Bins of about equal numbers of rows, by private medians on a fine public grid.

The first cut of an attribute divides its rows in two, the next cuts divide both halves, and so on.
The intervals of a turn hold different rows, so a turn costs once per attribute. One row changes the
number of rows on one side of a cut by one. So −|left − right| is a utility of sensitivity 1; it is
not monotone. Only positions on the grid are released.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.privacy.accountant import Accountant
from dpforest_duckdb.privacy.bits import Bits
from dpforest_duckdb.privacy.selection import EXPONENTIAL, exponents
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.request import Request

FINEST = 240  # cells of the grid, half of equal width, half of equal width in asinh


def on_the_grid(domain: Domain, cells: int = FINEST) -> Domain:
    """The domain of the numeric attributes without declared bins, each on a grid.

    Raises `DpforestError` if there is none: check `to_be_cut` first.
    """
    grid = [attribute.recut(cells) for attribute in to_be_cut(domain)]
    return replace(domain, attributes=tuple(grid))


def to_be_cut(domain: Domain) -> list[Attribute]:
    """The numeric attributes whose bins the domain does not set."""
    return [a for a in domain.attributes if a.recut(FINEST) != a]


def domain_cut_at_medians(
    domain: Domain, counts: Sequence[Integers], epsilons: Sequence[int], k: int, bits: Bits
) -> Domain:
    """The domain with the attributes of `on_the_grid` cut at private medians.

    `counts[attribute][cell]` are private, k is the rows per privacy unit. `epsilons` is the nano-ε
    of each turn of one attribute.
    """
    cut = {
        fine.name: replace(fine, edges=_edges(fine, private, epsilons, k, bits))
        for fine, private in zip(on_the_grid(domain).attributes, counts, strict=True)
    }
    return replace(domain, attributes=tuple(cut.get(a.name, a) for a in domain.attributes))


def _edges(
    fine: Attribute, counts: Integers, epsilons: Sequence[int], k: int, bits: Bits
) -> tuple[object, ...]:
    """The edges of an attribute on the grid, from private `counts[cell]`; see
    `domain_cut_at_medians`.
    """
    up_to = np.concatenate([[0], counts[: fine.proper].cumsum()])
    bounds = [0, fine.proper]  # intervals of grid cells
    for epsilon in epsilons:
        low, high = np.array(bounds[:-1]), np.array(bounds[1:])
        wide = high - low > 1  # others hold one cell
        if not wide.any():
            break
        low, high = low[wide, None], high[wide, None]
        cuts = np.arange(fine.proper)[None, :]
        allowed = (cuts > low) & (cuts < high)
        left, right = up_to[cuts] - up_to[low], up_to[high] - up_to[cuts]
        utility = np.where(allowed, -np.abs(left - right), 0)
        parts = exponents(utility, allowed, epsilon, k, monotone=False)
        bounds = sorted({*bounds, *EXPONENTIAL.draw(parts, allowed, bits).tolist()})
    return tuple(fine.edges[cut - 1] for cut in bounds[1:-1])


def cut_at_medians(
    counts: Sequence[Integers], request: Request, accountant: Accountant, bits: Bits
) -> Request:
    """The request with numeric attributes cut at private medians.

    `counts[attribute][cell]` are private, of the attributes of `on_the_grid`.
    """
    query = accountant.plan.planned(Purpose.BINS)
    turns = [
        accountant.spend(Purpose.BINS, turn, times=len(counts))
        for turn in range(len(query.by_depth))
    ]
    epsilons = [query.measure.drawn_epsilon(cost) for cost in turns]
    cut = domain_cut_at_medians(request.domain, counts, epsilons, request.rows_per_unit, bits)
    return replace(request, domain=cut)
