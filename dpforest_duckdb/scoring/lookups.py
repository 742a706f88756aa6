"""What the fast form of scoring looks up: which trees by keys, and which by bit sets.

`dpforest_duckdb.scoring.quickscorer` writes the SQL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.scoring.content import ForestContent
from dpforest_duckdb.tree import LEAF, Tree, Voting

BITS = 64
GRID = 1024  # most cells of a group; a larger group needs fewer lookups but longer lists
COMBINED = 256  # most combinations of leaves whose votes are in one list
FILLED = 4  # most combinations of codes for each leaf of a tree with a key of its own

Group = tuple[int, ...]  # attributes that are looked up together


@dataclass(frozen=True)
class Part:
    """The leaves of a tree that one word holds: those from `first` on. `whole`: they are all."""

    tree: int
    first: int
    leaves: int
    whole: bool

    @property
    def states(self) -> int:
        """A row is in one of the leaves, or, if the tree has others, perhaps in none."""
        return self.leaves + (not self.whole)

    def with_none(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values of the leaves, and 0 for none of them if that is a state."""
        return values if self.whole else np.append(values, values.dtype.type(0))


@dataclass(frozen=True)
class Bundle:
    """Parts of trees, side by side in a word from bit `shift` on, with one list of votes."""

    word: int
    shift: int
    parts: tuple[Part, ...]

    @property
    def mask(self) -> int:
        return ((1 << sum(part.leaves for part in self.parts)) - 1) << self.shift

    @property
    def modulus(self) -> int:
        return modulus(tuple((part.leaves, part.whole) for part in self.parts))

    def states(self) -> NDArray[np.uint64]:
        """The bits of each combination of leaves, `[leaf of first part, leaf of second …]`."""
        found, shift = np.zeros((), dtype=np.uint64), self.shift
        for part in self.parts:
            bits = np.uint64(1) << np.arange(shift, shift + part.leaves, dtype=np.uint64)
            found = np.bitwise_or.outer(found, part.with_none(bits))
            shift += part.leaves
        return found

    def votes(self, trees: Sequence[Tree], label: int) -> Integers:
        """The votes `[leaf of first part, leaf of second …]` for a class, summed over trees."""
        found = np.zeros((), dtype=np.int64)
        for part in self.parts:
            tree = trees[part.tree]
            leaves = tree.leaves[part.first : part.first + part.leaves]
            found = np.add.outer(found, part.with_none(tree.votes[leaves, label]))
        return found


@dataclass(frozen=True)
class Lookups:
    """How the trees of a forest are looked up.

    `by_key[group]` are the trees that split by attributes of that group alone. `bundles` hold the
    other trees that split: `groups` are those of all their attributes. `constant` are the trees
    that have the same votes at all leaves.
    """

    groups: list[Group]
    by_key: dict[Group, list[int]]
    bundles: list[Bundle]
    constant: list[int]

    @staticmethod
    def of(forest: ForestContent) -> Lookups:
        cells = forest.domain.cells
        keyed = {
            n: split_by(tree) for n, tree in enumerate(forest.trees) if fills_grid(tree, cells)
        }
        others = [tree for number, tree in enumerate(forest.trees) if number not in keyed]
        found = groups(others, cells)
        group_of = {attribute: group for group in found for attribute in group}
        by_key: dict[Group, list[int]] = {}
        constant, parts = list[int](), list[Part]()
        for number, tree in enumerate(forest.trees):
            at = {keyed[number]} if number in keyed else {group_of[each] for each in split_by(tree)}
            leaves = len(tree.leaves)
            if not at:  # no split, or none that matters
                constant.append(number)
            elif len(at) == 1:
                by_key.setdefault(at.pop(), []).append(number)
            else:
                parts += [
                    Part(number, first, min(BITS, leaves - first), leaves <= BITS)
                    for first in range(0, leaves, BITS)
                ]
        return Lookups(found if parts else [], by_key, bundles(parts, forest.voting), constant)

    @property
    def words(self) -> int:
        return self.bundles[-1].word + 1 if self.bundles else 0

    @property
    def keys(self) -> list[Group]:
        """The groups by whose keys rows look something up."""
        return list(dict.fromkeys([*self.groups, *self.by_key]))


def split_by(tree: Tree) -> Group:
    """The attributes that a tree splits by, in ascending order; none if all leaves have the same
    votes.
    """
    votes = tree.votes[tree.leaves]
    if (votes == votes[0]).all():
        return ()
    return tuple(sorted(set(tree.attribute[tree.kind != LEAF].tolist())))


def fills_grid(tree: Tree, cells: Sequence[int]) -> bool:
    """Whether a tree has a key of its own: it has too many leaves to share a list with another
    like it, and a leaf for most combinations of its attributes.
    """
    leaves, used = len(tree.leaves), split_by(tree)
    full = prod(cells[attribute] for attribute in used) <= FILLED * leaves
    return bool(used) and leaves**2 > COMBINED and full


def groups(trees: Sequence[Tree], cells: Sequence[int]) -> list[Group]:
    """The attributes that trees split by, grouped as long as their joint grid stays small."""
    found: list[Group] = []
    for attribute in sorted({each for tree in trees for each in split_by(tree)}):
        if found and prod(cells[a] for a in (*found[-1], attribute)) <= GRID:
            found[-1] = (*found[-1], attribute)
        else:
            found.append((attribute,))
    return found


def bundles(parts: Sequence[Part], voting: Voting) -> list[Bundle]:
    """Parts side by side in words; those of a bundle have few combinations of leaves.

    Where the largest votes count, not their sum, each part has a list of its own.
    """
    found: list[Bundle] = []
    word, used = -1, BITS
    for part in sorted(parts, key=lambda part: part.leaves):
        fits = used + part.leaves <= BITS
        if not fits:
            word, used = word + 1, 0
        last = found[-1] if fits and voting == Voting.SUM else None
        if last and prod(p.states for p in (*last.parts, part)) <= COMBINED:
            found[-1] = Bundle(word, last.shift, (*last.parts, part))
        else:
            found.append(Bundle(word, used, (part,)))
        used += part.leaves
    return found


@cache
def modulus(parts: tuple[tuple[int, bool], ...]) -> int:
    """The smallest odd number modulo which all combinations of bits differ (`Bundle.states`).

    They differ wherever the bits are in a word, as two has an inverse modulo an odd number.
    """
    bundle = Bundle(0, 0, tuple(Part(0, 0, leaves, whole) for leaves, whole in parts))
    values = bundle.states().reshape(-1)
    return next(
        odd
        for odd in count(len(values) | 1, 2)
        if np.bincount((values % np.uint64(odd)).astype(np.int64)).max() == 1
    )
