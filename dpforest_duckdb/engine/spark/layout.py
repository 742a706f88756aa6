"""Where a coded row has its codes: the bits of a few BIGINT columns, in blocks of attributes.

The blocks are those of DuckDB's coded rows (see `dpforest_duckdb.engine.shared.packing`). A block's
joint code is counted, and looked up, as one number.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpforest_duckdb.arrays import Integers, Mask
from dpforest_duckdb.engine.shared.packing import PackedColumns, Place
from dpforest_duckdb.sql import Ident, Sql


class Layout(PackedColumns):
    """The packed columns in Spark, and the numbers of the first code of each block and of the first
    cell of each attribute.
    """

    def __init__(self, cells: Sequence[int], classes: int, ident: Ident) -> None:
        super().__init__(cells, classes, lambda word: ident(f"word{word}"))
        self.offsets = np.cumsum([0, *cells])
        self.starts = np.cumsum([0, *(block.size for block in self.blocks)])

    def shifted(self, code: str, place: Place) -> str:
        return f"shiftleft(CAST({code} AS BIGINT), {place.shift})"

    def code(self, block: int) -> Sql:
        """The joint code of a block."""
        return self._at(self.blocks[block].place)

    def cell(self, attribute: int) -> Sql:
        """The code of one attribute."""
        return self._at(self.places[attribute])

    def _at(self, place: Place) -> Sql:
        shifted = f"shiftright({self.words[place.word]}, {place.shift})"
        return Sql(f"CAST({shifted} & {place.mask} AS INT)")

    def of_block(self, block: int, by_cell: Mask) -> Mask:
        """`[…, code]`: whether `by_cell[…, cell]` is true for all cells of a block's joint code."""
        codes = self.codes(block)
        whole = np.ones((*by_cell.shape[:-1], len(codes)), dtype=np.bool_)
        for attribute in self.blocks[block].attributes:
            whole &= by_cell[..., self.offsets[attribute] + codes[:, attribute]]
        return whole

    def block_of(self, attributes: Sequence[int]) -> int | None:
        """The block that holds all of some attributes, if one does."""
        for number, block in enumerate(self.blocks):
            if all(attribute in block.attributes for attribute in attributes):
                return number
        return None

    def codes(self, block: int) -> Integers:
        """`[code, attribute]`: the cells of a block's joint codes; other attributes have cell 0.

        Codes that no row has repeat the cells of others.
        """
        found = self.blocks[block]
        codes = np.zeros((found.size, len(self.cells)), dtype=np.int64)
        for attribute in found.attributes:
            place = found.place_of(attribute)
            value = np.arange(found.size) >> (place.shift - found.shift) & place.mask
            codes[:, attribute] = np.minimum(value, self.cells[attribute] - 1)
        return codes
