"""A cut through taxonomies and intervals that is refined one entry at a time: DiffGen and DT-Diff.

The cut starts with every attribute at its top. A step draws one entry, a group of a taxonomy or an
interval of a numeric attribute, and replaces it by its parts, in the whole table at once. The tree
is the product of all attributes' cuts: a step splits every leaf inside the entry.

The utility of an entry depends on the rows in it, wherever they are in the tree. So the class
counts of the attributes' values are read once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dpforest_duckdb.arrays import Integers, Mask
from dpforest_duckdb.engine.base import CodedRows
from dpforest_duckdb.learners.growth import Growth
from dpforest_duckdb.learners.levels import release_leaves
from dpforest_duckdb.privacy.bits import Bits
from dpforest_duckdb.privacy.sampler import uniform_below
from dpforest_duckdb.privacy.selection import (
    Exponents,
    exponential_mechanism,
    exponents,
    first_accepted,
)
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.progress import Event, Phase
from dpforest_duckdb.request import Grown, Learner, TrainingContext
from dpforest_duckdb.splits.candidates import Candidates, candidates
from dpforest_duckdb.splits.limits import most_leaves, most_reached
from dpforest_duckdb.splits.utilities import Utility


@dataclass(frozen=True)
class Entry:
    """A part of a cut that can be refined: cells of an attribute that are not separated yet.

    `candidates` are the splits that separate them, `nodes` the open leaves that lie in the entry.
    """

    attribute: int
    reach: Mask
    candidates: Integers
    nodes: Integers

    @property
    def key(self) -> tuple[int, bytes]:
        return self.attribute, self.reach.tobytes()


@dataclass
class _Cut:
    """The cut of one tree: its leaves, what is reachable in them, and the points drawn so far.

    A step that would make more than `most` leaves is not offered. `limited` is the number of
    leaves that no step could split for this reason, when the last step was drawn.
    """

    splits: Candidates
    most: int
    nodes: Integers
    reachable: Mask
    points: dict[tuple[int, bytes], int] = field(default_factory=dict)
    limited: int = 0

    def entries(self) -> list[Entry]:
        """The entries that can be refined, in a public order."""
        splits, found = self.splits, []
        beyond, offered = np.zeros((2, len(self.nodes)), dtype=np.bool_)
        allowed = splits.allowed(self.reachable)
        for a, cells in enumerate(splits.slices):
            inside = defaultdict[bytes, list[int]](list)
            for node, row in enumerate(self.reachable[:, cells]):
                inside[row.tobytes()].append(node)
            for held in sorted(inside):  # np.unique takes minutes for thousands of wide rows
                reach, nodes = np.frombuffer(held, np.bool_), np.array(inside[held])
                splitting = np.flatnonzero(allowed[nodes].any(axis=0) & (splits.attribute == a))
                leaves = len(self.nodes) + len(nodes) * (splits.arity[splitting].max(initial=2) - 1)
                if len(splitting) and leaves <= self.most:
                    found.append(Entry(a, reach, splitting, nodes))
                    offered[nodes] = True
                elif len(splitting):
                    beyond[nodes] = True
        self.limited = int((beyond & ~offered).sum())
        return found

    def split(self, entry: Entry, candidate: int, growth: Growth, rows: CodedRows) -> None:
        """Replace an entry by the parts of a candidate."""
        splits, old = self.splits, entry.nodes
        born, chosen = growth.nodes, np.full(len(old), candidate)
        made = growth.split_by(self.nodes[old], splits, chosen)
        rows.route(made, growth.nodes)
        below = splits.descend(self.reachable[old], chosen)
        self.nodes = np.concatenate([np.delete(self.nodes, old), np.arange(born, growth.nodes)])
        self.reachable = np.concatenate([np.delete(self.reachable, old, axis=0), below])


def _exponents(
    tables: Sequence[Integers],
    splits: Candidates,
    offered: Sequence[Entry],
    utility: Utility,
    cost: int,
    k: int,
) -> Exponents:
    """Exponents `[1, candidate]` of a draw among the candidates of entries, by the rows in them."""
    worth = []
    for entry in offered:
        inside = list(tables)
        inside[entry.attribute] = tables[entry.attribute] * entry.reach[:, None]
        each = utility.function(splits.branch_counts([t[None] for t in inside], entry.attribute))[0]
        worth.append(each[np.isin(splits.of(entry.attribute), entry.candidates)])
    every = np.ones((1, sum(map(len, worth))), dtype=np.bool_)
    values = np.concatenate(worth)[None]
    return exponents(values, every, cost, utility.sensitivity * k, utility.monotone)


@dataclass(frozen=True)
class _ByEntry:
    """Proposals of a uniform group and a uniform candidate of it, in groups of `sizes`."""

    sizes: Integers

    def draw(self, rows: Integers, bits: Bits) -> Integers:
        """See `Proposals.draw`: the same for all rows."""
        group = uniform_below(np.full(len(rows), len(self.sizes)), bits)
        inside = uniform_below(self.sizes[group], bits)
        return (self.sizes.cumsum() - self.sizes)[group] + inside


def draw_by_entry(exponent: Exponents, sizes: Sequence[int], bits: Bits) -> int:
    """The exponential mechanism on candidates in groups of `sizes`, with equal weight per group.

    A proposal is a uniform group and a uniform candidate of it, so no computed weight can overflow.
    It is accepted by its coin; the best candidate always is.
    """
    return int(first_accepted(_ByEntry(np.array(sizes, dtype=np.int64)), exponent, bits)[0])


@dataclass(frozen=True)
class _Chooser:
    """How a step is drawn. `point` draws the split point of each new interval, if points are drawn
    first.
    """

    attribute: Utility
    point: Utility | None

    def shares(self, depth: int, splits: Candidates) -> int:
        """The draws that divide the budget of a step, along one row's entries."""
        if self.point is None or not len(splits.numeric):
            return 1
        return 2 + (len(splits.numeric) if depth == 0 else 0)

    def draw(
        self, cut: _Cut, tables: Sequence[Integers], cost: int, k: int, bits: Bits
    ) -> tuple[Entry, int] | None:
        """The entry to refine and the candidate that refines it; None if nothing is left.

        `tables[attribute][value, class]` are private; k is the rows per unit.
        """
        splits, offered = cut.splits, cut.entries()
        if not offered:
            return None
        if self.point is not None:
            for number, entry in enumerate(offered):
                if len(entry.candidates) > 1 and entry.key not in cut.points:
                    exponent = _exponents(tables, splits, [entry], self.point, cost, k)
                    every = np.ones(exponent.numerator.shape, dtype=np.bool_)
                    widths = splits.width[entry.candidates]
                    drawn = exponential_mechanism(exponent, every, bits, widths)
                    cut.points[entry.key] = int(entry.candidates[drawn[0]])
                if len(entry.candidates) > 1:
                    point = np.array([cut.points[entry.key]])
                    offered[number] = replace(entry, candidates=point)
        sizes = [len(entry.candidates) for entry in offered]
        exponent = _exponents(tables, splits, offered, self.attribute, cost, k)
        place = draw_by_entry(exponent, sizes, bits)
        number = int(np.searchsorted(np.cumsum(sizes), place, side="right"))
        return offered[number], int(np.concatenate([e.candidates for e in offered])[place])


def specialised(attribute: Utility, point: Utility | None) -> Learner:
    """Refine cuts `request.depth` times, then query the leaves.

    With `point`, the split point of every new interval is drawn first, once, in proportion to the
    width of the bin below it. The new intervals hold different rows, so together their points cost
    as much as one. Without `point`, all points of all entries compete in one draw, in which every
    entry has the same weight.
    """
    chooser = _Chooser(attribute, point)

    def grow(rows: CodedRows, context: TrainingContext) -> Grown:
        request = context.request
        splits = candidates(request.domain, context.recipe.split_type)
        growth = Growth(request.domain.cells, request.trees, len(request.domain.classes))
        roots = np.ones((1, sum(request.domain.cells)), dtype=np.bool_)
        most = min(most_leaves(request.domain), most_reached(request.domain)) // request.trees
        cuts = [_Cut(splits, most, np.array([tree]), roots) for tree in range(request.trees)]
        tables = rows.count_classes(0, request.trees)
        for depth in range(request.depth):
            context.observe(Event(Phase.CHOOSE_SPLITS, depth + 1, request.depth, "depth"))
            cost = context.accountant.spend(Purpose.SPLIT, depth) // chooser.shares(depth, splits)
            for tree, cut in enumerate(cuts):
                counts = [table[tree] for table in tables]
                drawn = chooser.draw(
                    cut, counts, cost, request.rows_per_unit, context.randomness.bits
                )
                if drawn is not None:
                    cut.split(*drawn, growth, rows)
        trees = release_leaves(rows, context, growth).finished()
        return Grown(trees, limited=sum(cut.limited for cut in cuts))

    return Learner(grow, trees_at_once=lambda request: request.trees)
