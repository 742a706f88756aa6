"""Turns the class counts of all attributes into vectors for one release with joint noise, and back.

A row is in one cell of every attribute's table. With independent noise each of m tables needs m
times the noise of one table, a variance of 2m²/ε² in a count. But a row can change the tables only
in a restricted way: in the vector of its class it changes each block by 1 in L1, however many
blocks there are. Noise for that norm (`privacy.noise`) has a variance of about d²/3ε² in a block of
one dimension and of 2d²/((v+1)(v+2)ε²) in one of v, with d dimensions in all.

An attribute of at most `MOST_CONTRASTED` values is released as signed contrasts, not counts: one
dimension less than values, each its own block, because a row adds 1 or -1 to any number of them.
The number of rows is one more block, which can be left out if there are no contrasts. An attribute
with more values is one block of its counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from dpforest_duckdb.arrays import Floats, Integers
from dpforest_duckdb.domain import Attribute
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.privacy.noise import CountNoise, joint_deviation
from dpforest_duckdb.privacy.sampler import MAX_DENOMINATOR

MOST_CONTRASTED = 4  # most values for contrasts: with more, each count gets too much noise
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
    """How a table is released: as counts or contrasts of these values, in blocks of these
    dimensions.
    """

    values: tuple[int, ...]
    blocks: tuple[int, ...]

    @property
    def by_contrasts(self) -> bool:
        """Whether the table is released as contrasts, not as counts."""
        return len(self.values) <= MOST_CONTRASTED

    @property
    def signs(self) -> Integers:
        """The contrasts: 1 or -1, as `[value, contrast]`."""
        return SIGNS[len(self.values)]

    @property
    def block_size(self) -> int:
        """The dimensions of each block."""
        return 1 if self.by_contrasts else len(self.values)

    def sums(self, table: Integers) -> Integers:
        """The sums `[…, sum, class]` of a private `table[…, cell, class]`."""
        described: Integers = table[..., list(self.values), :]
        return self.signs.T @ described if self.by_contrasts else described


def code_of(attribute: Attribute) -> Code:
    """The code for the cells that the domain describes; a row in another cell is in none of the
    sums.
    """
    return _code_of(attribute.described)


@lru_cache
def _code_of(values: tuple[int, ...]) -> Code:
    if len(values) <= MOST_CONTRASTED:
        return Code(values, (1,) * (len(values) - 1))
    return Code(values, (len(values),))


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


@dataclass(frozen=True)
class TableCodes:
    """The tables of some attributes, as they are released together.

    `with_totals` says whether the rows of each class are released too. Contrasts need them.
    """

    attributes: Sequence[Attribute]
    with_totals: bool = True

    @cached_property
    def _codes(self) -> list[Code]:
        return [code_of(attribute) for attribute in self.attributes]

    @cached_property
    def blocks(self) -> tuple[int, ...]:
        """The dimensions of each block of a class's vector: totals first, then attribute by
        attribute.
        """
        of_attributes = (size for code in self._codes for size in code.blocks)
        return (1,) * self.with_totals + tuple(of_attributes)

    def parts(self, rows_per_unit: int) -> int:
        """The parts of a row: more for larger blocks, whose noise has a larger least radius.

        There are fewer if a unit has so many rows that its noise is coarse anyway.
        """
        most = MAX_DENOMINATOR // (rows_per_unit * NANO)
        return min(WHOLE * max(self.blocks), most)

    def vectors(self, tables: Sequence[Integers]) -> Integers:
        """The vectors `[…, class, dimension]`, in rows, of `tables[…, cell, class]`; both private.

        A row adds 1 to the number of rows of its class, and 1 or -1 to one or all of each
        attribute's dimensions. It adds nothing to an attribute whose domain does not describe its
        value. There may be more tables than attributes: totals are those of the first.
        """
        totals = [tables[0].sum(axis=-2, keepdims=True)] * self.with_totals
        sums = [code.sums(table) for code, table in zip(self._codes, tables, strict=False)]
        return np.concatenate([*totals, *sums], axis=-2).swapaxes(-1, -2)

    def release(
        self, tables: Sequence[Integers], cost: int, rows_per_unit: int, noise: CountNoise
    ) -> JointTables:
        """Private `tables[…, cell, class]` with joint noise for nano-ε `cost`, which may be
        published.
        """
        vectors, scale = self.vectors(tables), self.parts(rows_per_unit)
        flat = vectors.reshape(-1, vectors.shape[-1]) * scale
        noisy = noise.joint(flat, self.blocks, cost, rows_per_unit * scale) / scale
        noisy = noisy.reshape(vectors.shape)
        totals = self.with_totals
        return JointTables(
            counts=[whole(table) for table in self.tables(noisy)],
            noise=self.deviations(cost, rows_per_unit),
            totals=whole(noisy[..., 0]) if totals else None,
            noise_of_totals=self.deviation_of_totals(cost, rows_per_unit) if totals else 0.0,
        )

    def tables(self, vectors: Floats) -> list[Floats]:
        """The tables `[…, value, class]` of attributes, from noisy vectors `[…, class, dimension]`.

        Values are the cells that the domain describes.
        """
        flipped, first, found = vectors.swapaxes(-1, -2), int(self.with_totals), []
        for code in self._codes:
            end = first + sum(code.blocks)
            table = flipped[..., first:end, :]
            if code.by_contrasts:
                table = np.concatenate([flipped[..., :1, :], table], axis=-2)
                table = np.linalg.solve(_square(code), table).astype(np.float64, copy=False)
            found.append(table)
            first = end
        return found

    def deviations(self, cost: int, rows_per_unit: int) -> list[float]:
        """The standard deviation of a count of each table, in rows. All counts of a table have the
        same.
        """
        sizes = {code.block_size for code in self._codes}
        of_block = {size: self._deviation(size, cost, rows_per_unit) for size in sizes}
        return [of_block[code.block_size] * noise_ratio(len(code.values)) for code in self._codes]

    def deviation_of_totals(self, cost: int, rows_per_unit: int) -> float:
        """The standard deviation of the rows of a class."""
        return self._deviation(1, cost, rows_per_unit)

    def _deviation(self, size: int, cost: int, rows_per_unit: int) -> float:
        """That of a figure in a block of `size`."""
        scale = self.parts(rows_per_unit)
        return joint_deviation(self.blocks, size, cost, rows_per_unit * scale) / scale


def whole(figures: Floats) -> Integers:
    """The nearest whole numbers."""
    return np.rint(figures).astype(np.int64)


def _square(code: Code) -> Floats:
    """`[sum, value]`: the number of rows and the contrasts, as functions of a coded table."""
    return np.concatenate([np.ones((1, len(code.values))), code.signs.T])


@lru_cache
def noise_ratio(values: int) -> float:
    """The noise in a count of a table of so many values, divided by that in a released figure."""
    code = _code_of(tuple(range(values)))
    if not code.by_contrasts:
        return 1.0
    return math.sqrt(float((np.linalg.inv(_square(code))[0] ** 2).sum()))


def has_contrasts(attributes: Iterable[Attribute]) -> bool:
    """Whether the table of any of the attributes is released as contrasts."""
    return any(code_of(attribute).by_contrasts for attribute in attributes)
