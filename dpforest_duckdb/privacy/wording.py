"""Queries of a plan in words: what each is for, and what it is repeated for."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NewType


@dataclass(frozen=True)
class Wording:
    """A query in words: `step` says what it is for.

    It is asked in several `turns`, and in each of them once for each of several `each`. Or it is
    asked once for each of some `divided`, such as "attributes": released figures choose these, and
    they divide the cost.
    """

    step: str
    turns: str = "depths"
    each: str = "trees"
    divided: str = ""

    def often(self, *ends: tuple[int, int]) -> str:
        """How often the query is asked, or among what its cost is divided; "once" if once."""
        return f"divided among {self.divided}" if self.divided else self.repeated(*ends) or "once"

    def repeated(self, *ends: tuple[int, int]) -> str:
        """How often the query is asked, such as "5 turns × 14 attributes"; empty if once.

        `ends` are the numbers of both, for the fewest and for the most rows if these differ.
        """
        if self.turns == self.each:
            ends = tuple((1, turns * each) for turns, each in ends)
        parts = [
            f"{' to '.join(dict.fromkeys(map(str, numbers)))} {word}"
            for numbers, word in zip(zip(*ends, strict=True), (self.turns, self.each), strict=True)
            if max(numbers) > 1
        ]
        return " × ".join(parts)


class Purpose(StrEnum):
    """What a query is for, in the order in which recipes ask them."""

    wording: Wording

    def __new__(cls, text: str, wording: Wording) -> Purpose:
        """A purpose is its text in plans and ledgers."""
        purpose = str.__new__(cls, text)
        purpose._value_, purpose.wording = text, wording
        return purpose

    ROWS = "rows", Wording("count the rows of each class")
    ROWS_AGAIN = "rows again", Wording("count them again, with less noise")
    BOUNDS = "bounds", Wording("check the bounds of numbers")
    BOUNDS_WINDOW = "bounds window", Wording("find narrower bounds", each="attributes")
    STRONGEST = "strongest", Wording("see how well the best attribute classifies alone")
    WINDOW = "window", Wording("find the range of most numbers", each="attributes")
    BINS = "bins", Wording("cut numbers into bins", "turns", "attributes")
    ATTRIBUTE = "attribute", Wording("choose attributes", "draws")
    ROOT = "root", Wording("choose the root attributes", "draws")
    TABLES = (
        "tables",
        Wording("count the rows of each class at each value", "attributes", "attributes"),
    )
    SQUARES = "squares", Wording("add up the squares of positions")
    MEANS = "means", Wording("add up positions of values in each class")
    PRODUCTS = "products", Wording("add up the products of positions")
    SWEEP = "sweep", Wording("fit each attribute", each="attributes")
    SWEEP_AGAIN = "sweep again", Wording("fit some of them again", divided="attributes")
    FOREST = "forest", Wording("fit random trees to the remaining errors")
    SIZE = "size", Wording("count the rows of nodes")
    HISTOGRAM = "histogram", Wording("count the rows of each class in nodes")
    SPLIT = "split", Wording("choose splits")
    LEAF = "leaf", Wording("count the rows of each class in leaves")
    LEAF_OF_A_LAYER = "leaf of a layer", Wording("count the rows of each class in leaves", "layers")
    SCORES = "scores", Wording("calibrate the sum of the trees")
    MIXTURE = "mixture", Wording("choose between models")
    AGGREGATION = "aggregation", Wording("choose trees to leave out", "rounds")
    FIGURES = "figures", Wording("compare predictions with labels")


Numbered = NewType("Numbered", str)  # a purpose and the number of a turn


def wording(purpose: str) -> Wording:
    """The words for a query; its purpose may end in the number of a turn."""
    plain = re.sub(r" \d+$", "", purpose)
    return next((known.wording for known in Purpose if known == plain), Wording(plain))


def steps(purposes: Iterable[str]) -> str:
    """What queries are for, each once, in the order in which they are asked."""
    order = [known.wording for known in Purpose]
    found = [wording(purpose) for purpose in purposes]
    found.sort(key=lambda one: order.index(one) if one in order else len(order))
    return ", ".join(dict.fromkeys(one.step for one in found))
