"""Packs attributes into the bits of a few wide columns, and counts several as one code.

Counting costs one pass per code. So neighbouring attributes with a small joint grid form a block:
their bits are read as one code, counted together, and marginalised afterwards. Routing copies every
column at each depth, and DuckDB keeps some memory per column that it never spills, so few columns
are better. Each attribute has its own bits, so routing needs only shifts and masks. Everything here
depends on the public domain alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.sql import Sql

MAX_CODES = 256  # codes of a block, which fit into one byte; an attribute with more is by itself
WORD = 63  # bits of a packed column, without the sign bit
MAX_BLOCK_COUNTS = 1024  # cells times classes, per node; larger blocks cost more than they save
MAX_COUNTED = 4  # trees in one statement, which copies the rows to count of each
MAX_TABLE = 2**21  # cells times classes times nodes; above it, smaller blocks are faster


@dataclass(frozen=True)
class Place:
    """Where a code is: the column, and `bits` bits of it above `shift`."""

    word: int
    shift: int
    bits: int

    @property
    def mask(self) -> int:
        return (1 << self.bits) - 1


@dataclass(frozen=True)
class Block:
    """The attributes first … first+len(cells)-1, side by side in one column.

    The last attribute has the lowest bits, from bit `shift` of column `word`.
    """

    first: int
    cells: tuple[int, ...]
    word: int = 0
    shift: int = 0

    @cached_property
    def bits(self) -> tuple[int, ...]:
        return tuple(map(_bits, self.cells))

    @property
    def size(self) -> int:
        """The number of codes that fit into its bits; not all of them occur."""
        return 1 << self.place.bits

    @property
    def attributes(self) -> range:
        return range(self.first, self.first + len(self.cells))

    @cached_property
    def place(self) -> Place:
        """Where the joint code is."""
        return Place(self.word, self.shift, sum(self.bits))

    @cached_property
    def _places(self) -> list[Place]:
        above = accumulate(self.bits)  # the bits of each attribute and of those before it
        top = self.shift + self.place.bits
        return [
            Place(self.word, top - used, bits) for used, bits in zip(above, self.bits, strict=True)
        ]

    def place_of(self, attribute: int) -> Place:
        """Where the code of one of its attributes is."""
        return self._places[attribute - self.first]

    def parts(self, nodes: int, classes: int) -> list[Block]:
        """The same attributes in smaller blocks, whose grids are small for that many nodes."""
        limit = MAX_TABLE // max(1, nodes * classes)
        found: list[Block] = []
        for attribute in self.attributes:
            size, place = self.cells[attribute - self.first], self.place_of(attribute)
            last = found.pop() if found and found[-1].size << place.bits <= limit else None
            first, cells = (last.first, last.cells) if last else (attribute, ())
            found.append(Block(first, (*cells, size), self.word, place.shift))
        return found

    def marginals(
        self, code: Integers, node_class: Integers, rows: Integers, nodes: int, classes: int
    ) -> list[Integers]:
        """Per attribute `counts[node, value, class]`: `rows[i]` rows have the joint `code[i]` and
        `node_class[i]`, which is node * classes + class.

        Dense: groups that GROUP BY leaves out are zero. Sums below 2^53 are exact.
        """
        found, (node, label) = list[Integers](), np.divmod(node_class, classes)
        for attribute, cells in zip(self.attributes, self.cells, strict=True):
            place, shape = self.place_of(attribute), (nodes, cells, classes)
            value = (code >> (place.shift - self.shift)) & place.mask
            cell = (node * cells + value) * classes + label
            counted = np.bincount(cell, weights=rows, minlength=nodes * cells * classes)
            found.append(counted.astype(np.int64).reshape(shape))
        return found


@lru_cache(maxsize=64)
def blocks(cells: tuple[int, ...], classes: int) -> tuple[Block, ...]:
    """Put neighbouring attributes into one block as long as their joint grid is small."""
    limit = min(MAX_CODES, MAX_BLOCK_COUNTS // classes)
    groups: list[Block] = []
    for attribute, size in enumerate(cells):
        if groups and groups[-1].size << _bits(size) <= limit:
            groups[-1] = Block(groups[-1].first, (*groups[-1].cells, size))
        else:
            groups.append(Block(attribute, (size,)))
    placed: list[Block] = []
    word = used = 0
    for group in groups:
        bits = sum(group.bits)
        if used + bits > WORD:
            word, used = word + 1, 0
        placed.append(Block(group.first, group.cells, word, used))
        used += bits
    return tuple(placed)


class PackedColumns(ABC):
    """The packed columns `words`, and the place in them of every attribute's code."""

    def __init__(self, cells: Sequence[int], classes: int, name: Callable[[int], Sql]) -> None:
        self.cells = tuple(cells)
        self.blocks = blocks(self.cells, classes)
        self.places = [block.place_of(a) for block in self.blocks for a in block.attributes]
        self.words = list(map(name, range(self.blocks[-1].word + 1)))

    @abstractmethod
    def shifted(self, code: str, place: Place) -> str:
        """A code, shifted to its place."""

    def packed(self, codes: Sequence[str]) -> list[Sql]:
        """The SQL of each packed column: the codes of its attributes, shifted to their bits."""
        terms: list[list[str]] = [[] for _ in self.words]
        for code, place in zip(codes, self.places, strict=True):
            terms[place.word].append(self.shifted(code, place))
        return [Sql("\n      | ".join(of_word)) for of_word in terms]


def _bits(cells: int) -> int:
    return max(1, (cells - 1).bit_length())
