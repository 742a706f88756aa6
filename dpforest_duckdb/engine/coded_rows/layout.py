"""Where a coded row has its codes: the bits of a few packed columns, in blocks of attributes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from dpforest_duckdb.engine.shared.packing import PackedColumns, Place
from dpforest_duckdb.scoring.codes import unsigned
from dpforest_duckdb.sql import Ident, Sql


class Layout(PackedColumns):
    """The packed columns in DuckDB, each in the narrowest type."""

    def __init__(self, cells: Sequence[int], classes: int, ident: Ident) -> None:
        super().__init__(cells, classes, lambda word: ident(f"codes{word}"))
        self._ident = ident
        ends = {block.word: block.place.shift + block.place.bits for block in self.blocks}
        self._types = [unsigned(2**end - 1) for end in ends.values()]

    @cached_property
    def separate(self) -> list[Sql]:
        """Names of columns that hold one attribute's code alone, in statements that need them."""
        return [self._ident(f"cell{attribute}") for attribute in range(len(self.cells))]

    def shifted(self, code: str, place: Place) -> str:
        wide = f"CAST({code} AS {self._types[place.word]})"
        return f"({wide} << {place.shift})" if place.shift else wide

    def code(self, place: Place) -> Sql:
        """The code at a place, in the narrowest type: small keys are hashed faster."""
        return Sql(f"CAST({self.bits_at(place)} AS {unsigned(place.mask)})")

    def bits_at(self, place: Place) -> Sql:
        """The code at a place, in the type of its column."""
        word = self.words[place.word]
        return Sql(f"{f'({word} >> {place.shift})' if place.shift else word} & {place.mask}")

    def code_of(self, attribute: int) -> Sql:
        """The code of one attribute."""
        return self.code(self.places[attribute])

    def combination(self, attributes: Sequence[int], before: Sql | None = None) -> Sql:
        """The number of a row's combination of values; the last attribute's vary fastest.

        `before` is the number of the combination of attributes that come before these.
        """
        number = before
        for attribute in attributes:
            code = f"CAST({self.bits_at(self.places[attribute])} AS INTEGER)"
            number = Sql(f"({number}) * {self.cells[attribute]} + {code}" if number else code)
        return number or Sql("0")
