"""The contents of a forest: the published value, as arrays of nodes.

Everything here is released: noisy counts, splits drawn under the budget, integer votes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpforest_duckdb.arrays import Floats, Integers
from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.guarantee import Guarantee
from dpforest_duckdb.scoring.links import SHARES, Link
from dpforest_duckdb.tree import LEAF, Tree, Voting


@dataclass(frozen=True)
class ForestContent:
    """The parts of a trained forest. `model.forest.Forest` adds what users do with one.

    `recipe` made it; `picked` is the recipe that this one continued as, by released figures, "" if
    it is the same. `table` is the name of the table that it was trained on, `version` that of the
    package. `limited` is the number of nodes that stayed leaves because of a size limit.

    `voting` says how the trees vote together, `link` how these votes become probabilities.
    """

    name: str
    recipe: str
    guarantee: Guarantee
    domain: Domain
    trees: tuple[Tree, ...]
    link: Link = SHARES
    table: str = ""
    version: str = ""
    voting: Voting = Voting.SUM
    limited: int = 0
    picked: str = ""

    @property
    def system(self) -> str:
        """The recipe, and the one that it picked, for people."""
        return f"{self.recipe} ({self.picked})" if self.picked else self.recipe

    @property
    def private(self) -> bool:
        return self.guarantee.private

    @cached_property
    def used(self) -> dict[int, Attribute]:
        """The attributes that some tree splits on, by number: scoring reads no other columns."""
        found = {int(a) for tree in self.trees for a in tree.attribute[tree.kind != LEAF]}
        return {number: self.domain.attributes[number] for number in sorted(found)}

    @property
    def read_columns(self) -> list[str]:
        """The columns that scoring reads."""
        return [attribute.column for attribute in self.used.values()]

    @cached_property
    def nodes(self) -> int:
        return sum(tree.nodes for tree in self.trees)

    @cached_property
    def depth(self) -> int:
        return max(tree.depth(self.domain.cells) for tree in self.trees)

    def votes(self, rows: Iterable[Mapping[str, object]]) -> Integers:
        """Votes of all trees `[row, class]` for raw rows, computed in Python."""
        listed = list(rows)
        codes = np.zeros((len(listed), len(self.domain.attributes)), dtype=np.int64)
        for number, attribute in self.used.items():
            codes[:, number] = [attribute.code(row[attribute.column]) for row in listed]
        total = np.zeros((len(codes), len(self.domain.classes)), dtype=np.int64)
        for tree in self.trees:
            total = self.voting.combine(total, tree.votes[tree.find(codes)])
        return total

    def probabilities(self, votes: Integers) -> Floats:
        """Summed votes `[row, class]` as class probabilities of the same shape."""
        return self.link.probabilities(votes)
