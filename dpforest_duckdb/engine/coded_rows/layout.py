"""Where a coded row has its codes: the bits of a few packed columns, in blocks of attributes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from dpforest_duckdb.engine.shared.packing import Place, blocks
from dpforest_duckdb.scoring.codes import unsigned
from dpforest_duckdb.sql import Sql


class Layout:
    """The packed columns `words`, and the place in them of every attribute's code."""

    def __init__(self, cells: Sequence[int], classes: int, ident: Callable[[str], Sql]) -> None:
        self.cells = tuple(cells)
        self.blocks = blocks(self.cells, classes)
        self.places = [block.place_of(a) for block in self.blocks for a in block.attributes]
        self.words = [ident(f"codes{word}") for word in range(self.blocks[-1].word + 1)]
        self._ident = ident

    @cached_property
    def separate(self) -> list[Sql]:
        """Names of columns that hold one attribute's code alone, in statements that need them."""
        return [self._ident(f"cell{attribute}") for attribute in range(len(self.cells))]

    def packed(self, codes: Sequence[str]) -> list[Sql]:
        """The SQL of each packed column: the codes of its attributes, shifted to their bits."""
        found = []
        for word in range(len(self.words)):
            packed = [block for block in self.blocks if block.word == word]
            kind = unsigned(2 ** (packed[-1].place.shift + packed[-1].place.bits) - 1)
            shifted = [
                f"(CAST({codes[number]} AS {kind}) << {self.places[number].shift})"
                if self.places[number].shift
                else f"CAST({codes[number]} AS {kind})"
                for block in packed
                for number in block.attributes
            ]
            found.append(Sql("\n      | ".join(shifted)))
        return found

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
