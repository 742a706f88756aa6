"""Queries of a plan in words: what each is for, and what it is repeated for."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass


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


# in the order in which recipes ask them
_WORDINGS = {
    "rows": Wording("count the rows of each class"),
    "rows again": Wording("count them again, with less noise"),
    "bounds": Wording("check the bounds of numbers"),
    "bounds window": Wording("find narrower bounds", each="attributes"),
    "strongest": Wording("see how well the best attribute classifies alone"),
    "window": Wording("find the range of most numbers", each="attributes"),
    "bins": Wording("cut numbers into bins", "turns", "attributes"),
    "attribute": Wording("choose attributes", "draws"),
    "root": Wording("choose the root attributes", "draws"),
    "tables": Wording("count the rows of each class at each value", "attributes", "attributes"),
    "squares": Wording("add up the squares of positions"),
    "means": Wording("add up positions of values in each class"),
    "products": Wording("add up the products of positions"),
    "sweep": Wording("fit each attribute", each="attributes"),
    "sweep again": Wording("fit some of them again", divided="attributes"),
    "forest": Wording("fit random trees to the remaining errors"),
    "size": Wording("count the rows of nodes"),
    "histogram": Wording("count the rows of each class in nodes"),
    "split": Wording("choose splits"),
    "leaf": Wording("count the rows of each class in leaves"),
    "leaf of a layer": Wording("count the rows of each class in leaves", "layers"),
    "scores": Wording("calibrate the sum of the trees"),
    "mixture": Wording("choose between models"),
    "aggregation": Wording("choose trees to leave out", "rounds"),
}


def wording(purpose: str) -> Wording:
    """The words for a query; its purpose may end in the number of a turn."""
    plain = _plain(purpose)
    return _WORDINGS.get(plain, Wording(plain))


def is_known(purpose: str) -> bool:
    """Whether some recipe asks a query for this purpose."""
    return _plain(purpose) in _WORDINGS


def _plain(purpose: str) -> str:
    return re.sub(r" \d+$", "", purpose)


def steps(purposes: Iterable[str]) -> str:
    """What queries are for, each once, in the order in which they are asked."""
    order = list(_WORDINGS.values())
    found = [wording(purpose) for purpose in purposes]
    found.sort(key=lambda one: order.index(one) if one in order else len(order))
    return ", ".join(dict.fromkeys(one.step for one in found))
