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
from functools import lru_cache

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
    """How a table is released: as contrasts `signs[value, sum]`, in blocks of these dimensions."""

    values: tuple[int, ...]
    blocks: tuple[int, ...]

    @property
    def by_contrasts(self) -> bool:
        """Whether the table is released as contrasts, not as counts."""
        return len(self.values) <= MOST_CONTRASTED

    @property
    def signs(self) -> Integers:
        """1 or -1 for contrasts; for counts, 1 where a value is counted."""
        size = len(self.values)
        return SIGNS[size] if self.by_contrasts else np.eye(size, dtype=np.int64)

    def sums(self, table: Integers) -> Integers:
        """The sums `[sum, class]` of a private `table[cell, class]`."""
        described: Integers = table[list(self.values)]
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


def blocks(attributes: Sequence[Attribute], rows: bool = True) -> list[int]:
    """The dimensions of each block of a class's vector: the number of rows first, unless `rows` is
    false, then attribute by attribute.
    """
    of_attributes = [size for attribute in attributes for size in code_of(attribute).blocks]
    return [1] * rows + of_attributes


def parts(attributes: Sequence[Attribute], rows_per_unit: int) -> int:
    """The parts of a row: more for larger blocks, whose noise has a larger least radius.

    There are fewer if a unit has so many rows that its noise is coarse anyway.
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
        if code.by_contrasts:
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
    sizes = [1 if code is None or code.by_contrasts else code.blocks[0] for code in codes]
    of_block = {
        size: joint_deviation(all_blocks, size, cost, rows_per_unit * scale) / scale
        for size in set(sizes)
    }
    return [
        of_block[size] if code is None else of_block[size] * noise_ratio(len(code.values))
        for code, size in zip(codes, sizes, strict=True)
    ]


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
