"""Turns the class counts of all attributes into vectors for one release with joint noise, and back.

A row is in one cell of every attribute's table. With independent noise each of m tables needs m
times the noise of one table, a variance of 2m²/ε² in a count. But a row can change the tables only
in a restricted way: in the vector of its class it changes each block by 1 in L1, however many
blocks there are. Noise for that norm (`privacy.noise`) has a variance of about d²/3ε² in a block of
one dimension and of 2d²/((v+1)(v+2)ε²) in one of v, with d dimensions in all.

An attribute of at most `CODED` values is released as signed contrasts, not counts: one dimension
less than values, each its own block, because a row adds 1 or -1 to any number of them. The number
of rows is one more block, which can be left out if there are no contrasts. An attribute with more
values is one block of its counts.

Large blocks make the noise of small ones larger. So tables can also be released in groups with
blocks of similar size, each for a part of the budget.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpforest_duckdb.arrays import Floats, Integers
from dpforest_duckdb.domain import Attribute
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.privacy.noise import CountNoise, joint_deviation, laplace_deviation
from dpforest_duckdb.privacy.sampler import MAX_DENOMINATOR

CODED = 4  # most values for contrasts: with more, each count gets too much noise
WHOLE = 2**12  # parts of a row, so that rounding noise to integers costs little
# `[value, contrast]`: with a column of ones before them these are invertible
SIGNS: dict[int, Integers] = {
    1: np.zeros((1, 0), dtype=np.int64),
    2: np.array([[1], [-1]]),
    3: np.array([[1, 1], [-1, 1], [1, -1]]),
    4: np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]),
}


@dataclass(frozen=True)
class Code:
    """How a table is released: as contrasts `signs[value, sum]`, in blocks of these dimensions."""

    values: tuple[int, ...]
    blocks: tuple[int, ...]

    @property
    def coded(self) -> bool:
        return len(self.values) <= CODED

    @property
    def signs(self) -> Integers:
        """1 or -1 for contrasts; for counts, 1 where a value is counted."""
        size = len(self.values)
        return SIGNS[size] if self.coded else np.eye(size, dtype=np.int64)

    def sums(self, table: Integers) -> Integers:
        """The sums `[sum, class]` of a private `table[cell, class]`."""
        described: Integers = table[list(self.values)]
        return self.signs.T @ described if self.coded else described


def code_of(attribute: Attribute) -> Code:
    """The code for the cells that the domain describes; a row in another cell is in none of the
    sums.
    """
    return _code_of(attribute.described)


@lru_cache
def _code_of(values: tuple[int, ...]) -> Code:
    if len(values) <= CODED:
        return Code(values, (1,) * (len(values) - 1))
    return Code(values, (len(values),))


def blocks(attributes: Sequence[Attribute], rows: bool = True) -> list[int]:
    """The dimensions of each block of a class's vector: the number of rows first, unless `rows` is
    false, then attribute by attribute.
    """
    of_attributes = [size for attribute in attributes for size in code_of(attribute).blocks]
    return [1] * rows + of_attributes


def parts(attributes: Sequence[Attribute], rows_per_unit: int) -> int:
    """The parts of a row: more for larger blocks, whose noise has a larger least radius.

    Fewer if a unit has so many rows that its noise is coarse anyway.
    """
    most = MAX_DENOMINATOR // (rows_per_unit * NANO)
    return min(WHOLE * max(blocks(attributes)), most)


def vectors_of(
    tables: Sequence[Integers], attributes: Sequence[Attribute], rows: bool = True
) -> Integers:
    """The private vectors `[class, dimension]`, in rows, of private `tables[cell, class]`.

    A row adds 1 to the number of rows of its class, and 1 or -1 to one or all of each attribute's
    dimensions. It adds nothing to an attribute whose domain does not describe its value.
    """
    of_class = tables[0].sum(axis=0)[None][: int(rows)]
    codes = [code_of(attribute) for attribute in attributes]
    signed = [code.sums(table) for code, table in zip(codes, tables[: len(codes)], strict=True)]
    return np.concatenate([of_class, *signed]).T


@dataclass(frozen=True)
class JointTables:
    """Tables that were released together or in groups, with the standard deviation of the noise in
    a count.

    `counts[attribute][…, value, class]` are of the values that the domain describes, with noise of
    `noise[attribute]`. `totals[…, class]` are the rows of each class, with noise of
    `noise_of_totals`; None if they were not released.
    """

    counts: list[Integers]
    noise: list[float]
    totals: Integers | None
    noise_of_totals: float


def release(
    vectors: Integers,
    attributes: Sequence[Attribute],
    cost: int,
    rows_per_unit: int,
    noise: CountNoise,
    rows: bool = True,
) -> JointTables:
    """The tables of private `vectors[…, class, dimension]`, as `vectors_of` makes them, with joint
    noise for nano-ε `cost`. They may be published.
    """
    scale = parts(attributes, rows_per_unit)
    all_blocks, sensitivity = blocks(attributes, rows), rows_per_unit * scale
    flat = vectors.reshape(-1, vectors.shape[-1]) * scale
    noisy = (noise.joint(flat, all_blocks, cost, sensitivity) / scale).reshape(vectors.shape)
    of_totals, *of_counts = deviations([None, *attributes], attributes, cost, rows_per_unit, rows)
    return JointTables(
        counts=[whole(table) for table in tables_of(noisy, attributes, rows)],
        noise=of_counts,
        totals=whole(noisy[..., 0]) if rows else None,
        noise_of_totals=of_totals if rows else 0.0,
    )


def whole(figures: Floats) -> Integers:
    """The nearest whole numbers."""
    return np.rint(figures).astype(np.int64)


def tables_of(vectors: Floats, attributes: Sequence[Attribute], rows: bool = True) -> list[Floats]:
    """The tables `[…, value, class]` of attributes, from noisy vectors `[…, class, dimension]`.

    Values are the cells that the domain describes.
    """
    flipped, first, found = vectors.swapaxes(-1, -2), int(rows), []
    for code in map(code_of, attributes):
        end = first + sum(code.blocks)
        table = flipped[..., first:end, :]
        if code.coded:
            table = np.concatenate([flipped[..., :1, :], table], axis=-2)
            table = np.linalg.solve(_square(code), table).astype(np.float64, copy=False)
        found.append(table)
        first = end
    return found


def _square(code: Code) -> Floats:
    """`[sum, value]`: the number of rows and the contrasts, as functions of a coded table."""
    return np.concatenate([np.ones((1, len(code.values))), code.signs.T])


def deviations(
    tables: Sequence[Attribute | None],
    attributes: Sequence[Attribute],
    cost: int,
    rows_per_unit: int,
    rows: bool = True,
) -> list[float]:
    """The standard deviation of a count of each table, in rows; None stands for the rows of a
    class. All counts of a table have the same.
    """
    all_blocks, scale = blocks(attributes, rows), parts(attributes, rows_per_unit)
    codes = [None if attribute is None else code_of(attribute) for attribute in tables]
    sizes = [1 if code is None or code.coded else code.blocks[0] for code in codes]
    of_block = {
        size: joint_deviation(all_blocks, size, cost, rows_per_unit * scale) / scale
        for size in set(sizes)
    }
    return [
        of_block[size] if code is None else of_block[size] * _spread(len(code.values))
        for code, size in zip(codes, sizes, strict=True)
    ]


@lru_cache
def _spread(values: int) -> float:
    """The noise of a count of so many values, divided by that of a figure that is released."""
    code = _code_of(tuple(range(values)))
    if not code.coded:
        return 1.0
    return math.sqrt(float((np.linalg.inv(_square(code))[0] ** 2).sum()))


def has_contrasts(attributes: Iterable[Attribute]) -> bool:
    return any(code_of(attribute).coded for attribute in attributes)


def like_groups(attributes: Sequence[Attribute], costs: Sequence[int]) -> list[list[int]]:
    """The places of attributes whose tables are released together, group by group; public.

    The costs of a group, in nano-ε, are added up. Of all ways to cut the sorted sizes of blocks
    into ranges, this is the one with the smallest variance of a count, on average over attributes.
    Attributes with contrasts have blocks of one size, so they are in one group.
    """
    places: dict[int, list[int]] = {}
    for place, attribute in enumerate(attributes):
        code = code_of(attribute)
        places.setdefault(1 if code.coded else code.blocks[0], []).append(place)
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
        dimensions = sum(sum(code.blocks) for code in codes) + int(
            has_contrasts(m[0] for m in members)
        )
        weights = (2 * _spread(len(code.values)) ** 2 / (size + 1) / (size + 2) for code in codes)
        return cls(len(codes), dimensions, sum(cost for _, cost in members), sum(weights))

    def with_larger(self, other: _Alike) -> _Alike:
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
