"""Which tables are released together: groups of attributes whose blocks have similar sizes.

Large blocks make the joint noise of small ones larger (`splits.table_codes`). So tables can be
released in groups, each for a part of the budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpforest_duckdb.domain import Attribute
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.privacy.noise import laplace_deviation
from dpforest_duckdb.splits.table_codes import code_of, noise_ratio


def like_groups(attributes: Sequence[Attribute], costs: Sequence[int]) -> list[list[int]]:
    """The places of attributes whose tables are released together, group by group; public.

    The costs of a group, in nano-ε, are added up. Of all ways to cut the sorted sizes of blocks
    into ranges, this is the one with the smallest variance of a count, on average over attributes.
    Attributes with contrasts have blocks of one size, so they are in one group.
    """
    places: dict[int, list[int]] = {}
    for place, attribute in enumerate(attributes):
        places.setdefault(code_of(attribute).block_size, []).append(place)
    alike = [
        _Alike.of(size, [(attributes[place], costs[place]) for place in places[size]])
        for size in sorted(places)
    ]
    # for the smallest sizes: the least variance, and where the last group begins
    least, cuts = [0.0], list[int]()
    for end in range(1, len(alike) + 1):
        options, group = list[tuple[float, int]](), None
        for first in reversed(range(end)):
            group = alike[first] if group is None else alike[first].with_larger(group)
            options.append((least[first] + group.variance, first))
        variance, cut = min(options)
        least.append(variance)
        cuts.append(cut)
    groups, end = list[list[int]](), len(alike)
    while end:
        first = cuts[end - 1]
        sizes = sorted(places)[first:end]
        groups.insert(0, sorted(place for size in sizes for place in places[size]))
        end = first
    return groups


@dataclass(frozen=True)
class _Alike:
    """Attributes that are released together: their number, dimensions and cost (nano-ε).

    `weight` is the sum of their variances of a count, divided by (d+1)(d+2)/ε² with d dimensions.
    """

    attributes: int
    dimensions: int
    cost: int
    weight: float

    @classmethod
    def of(cls, size: int, members: Sequence[tuple[Attribute, int]]) -> _Alike:
        """Those with blocks of one size, with their costs."""
        codes = [code_of(attribute) for attribute, _ in members]
        counted = any(code.by_contrasts for code in codes)  # then rows are released too
        dimensions = sum(sum(code.blocks) for code in codes) + counted
        ratios = (noise_ratio(len(code.values)) for code in codes)
        weight = sum(2 * ratio**2 / (size + 1) / (size + 2) for ratio in ratios)
        return cls(len(codes), dimensions, sum(cost for _, cost in members), weight)

    def with_larger(self, other: _Alike) -> _Alike:
        """These and those with larger blocks, together."""
        return _Alike(
            self.attributes + other.attributes,
            self.dimensions + other.dimensions,
            self.cost + other.cost,
            self.weight + other.weight,
        )

    @property
    def variance(self) -> float:
        """The variances of a count of each attribute's table, added up.

        A table by itself has independent noise. Joint noise is taken as continuous.
        """
        if self.attributes == 1:
            return laplace_deviation(self.cost, 1) ** 2
        scale = NANO / self.cost
        return self.weight * (self.dimensions + 1) * (self.dimensions + 2) * scale**2
