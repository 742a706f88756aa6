"""Several attributes in one code, several codes in one column, and their counts taken apart again.

Counting costs one pass per code. Attributes whose joint grid is small are coded together, counted
together and marginalised afterwards. Codes are packed as bits into few wide columns: routing copies
every column at each depth, and DuckDB keeps some memory per column that it never spills. All of it
depends on the public domain alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

MAX_CELLS = 256  # one byte per row and block
WORD = 63  # bits of a packed column: shifts stay clear of the sign
MAX_GRID = 1024  # cells times classes, per node: beyond it counting groups costs more than it saves


@dataclass(frozen=True)
class Block:
    """Attributes first … first+len(cells)-1, coded as one integer, the last varying fastest."""

    first: int
    cells: tuple[int, ...]

    @property
    def size(self) -> int:
        return prod(self.cells)

    @property
    def attributes(self) -> range:
        return range(self.first, self.first + len(self.cells))

    def stride(self, attribute: int) -> int:
        return prod(self.cells[attribute - self.first + 1 :])

    def marginals(self, counts: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """`counts[node, block cell, class]` as one `counts[node, value, class]` per attribute."""
        nodes, _, classes = counts.shape
        grid = counts.reshape(nodes, *self.cells, classes)
        axes = range(1, len(self.cells) + 1)
        return [grid.sum(axis=tuple(a for a in axes if a != own)) for own in axes]


def blocks(cells: Sequence[int], classes: int) -> tuple[Block, ...]:
    """Neighbouring attributes put together as long as their joint grid stays small."""
    found: list[Block] = []
    for attribute, size in enumerate(cells):
        last = found[-1] if found else None
        if last and last.size * size <= min(MAX_CELLS, MAX_GRID // classes):
            found[-1] = Block(last.first, (*last.cells, size))
        else:
            found.append(Block(attribute, (size,)))
    return tuple(found)


@dataclass(frozen=True)
class Place:
    """Where a code lies: the column, and the bits of it above `shift`."""

    word: int
    shift: int
    bits: int

    @property
    def mask(self) -> int:
        return (1 << self.bits) - 1


def pack(found: Sequence[Block]) -> tuple[Place, ...]:
    """A place for each block's code, as many in a column as it has bits for."""
    places: list[Place] = []
    word = used = 0
    for block in found:
        bits = max(1, (block.size - 1).bit_length())
        if used + bits > WORD:
            word, used = word + 1, 0
        places.append(Place(word, used, bits))
        used += bits
    return tuple(places)
