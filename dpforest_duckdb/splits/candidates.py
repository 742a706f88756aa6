"""Candidate splits: the possible splits of a node, and the class counts of their branches.

Candidates depend on the public domain alone. A candidate is allowed at a node if the path to the
node leaves at least two of its branches reachable, which is public too. So an attribute is split by
category at most once on a path, and no threshold is outside the interval that the path leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal

import numpy as np

from dpforest_duckdb.arrays import Floats, Integers, Mask
from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.tree import EQUALS, MULTIWAY, THRESHOLD

SplitType = Literal["multiway", "mixed", "binary"]


@dataclass(frozen=True)
class Refinement:
    """A group attribute of a column, and a finer attribute of the same column.

    `by_group` is a level of the column's taxonomy, `finer` a lower level or the categories. A level
    is split into one branch per group.
    `holds[group, cell]` says which cells of the finer attribute each group holds.
    """

    by_group: int
    finer: int
    holds: Mask


@dataclass(frozen=True)
class Candidates:
    """All candidates of a domain, in a public order: parallel arrays [candidate]."""

    attribute: Integers
    kind: Integers
    cell: Integers
    width: Integers
    cells: tuple[int, ...]
    refinements: tuple[Refinement, ...]
    described: tuple[tuple[int, ...], ...]  # per attribute the cells that its domain describes

    def __len__(self) -> int:
        return len(self.attribute)

    @property
    def numeric(self) -> tuple[int, ...]:
        """The attributes that are split at thresholds."""
        return tuple(sorted(set(self.attribute[self.kind == THRESHOLD].tolist())))

    def of(self, attribute: int) -> Integers:
        """The numbers of the candidates that split by one attribute, ascending."""
        return np.flatnonzero(self.attribute == attribute)

    def _goes(self, attribute: int, chosen: Integers, branch: Integers) -> Mask:
        """`goes[child, cell]`: which cells of an attribute go to each `branch[child]` of the
        `chosen[child]` candidates, as in `branch_of`.

        Those of all candidates of an attribute would grow with the square of its cells.
        """
        code, kind, cell = np.arange(self.cells[attribute]), self.kind[chosen], self.cell[chosen]
        if (kind == MULTIWAY).all():  # either all splits of an attribute or none
            return np.equal(branch[:, None], code)
        second = code != cell[:, None]
        threshold = kind == THRESHOLD
        second[threshold] = code > cell[threshold, None]
        goes: Mask = second == (branch[:, None] == 1)
        return goes

    def branch_counts(self, counts: Sequence[Integers], attribute: int) -> Integers:
        """`counts[node, candidate, branch, class]` from an attribute's `[node, value, class]`."""
        listed, table = self.of(attribute), counts[attribute]
        if (self.kind[listed] == MULTIWAY).all():
            return table[:, None]
        first, both = self._first_of_two(listed, table)
        return np.stack([first, both - first], axis=2)

    def _first_of_two(self, listed: Integers, table: Integers) -> tuple[Integers, Integers]:
        """The sums `[node, candidate, ...]` in the first branch of binary candidates, and those in
        both, from an attribute's `[node, value, ...]`.
        """
        up_to = table.cumsum(axis=1)
        threshold = self.kind[listed] == THRESHOLD
        first = table[:, self.cell[listed]].astype(up_to.dtype, copy=False)
        first[:, threshold] = up_to[:, self.cell[listed[threshold]]]
        return first, up_to[:, -1:]

    def allowed(self, reachable: Mask) -> Mask:
        """`[node, candidate]`: at least two branches are reachable, by `reachable[node, cell]`."""
        found = np.empty((len(reachable), len(self)), dtype=np.bool_)
        for attribute, columns in enumerate(self.slices):
            listed, cells = self.of(attribute), reachable[:, columns]
            if (self.kind[listed] == MULTIWAY).all():
                found[:, listed] = (np.count_nonzero(cells, axis=1) >= 2)[:, None]
            else:
                first, both = self._first_of_two(listed, cells.astype(np.int64))
                found[:, listed] = (first > 0) & (first < both)
        places = self.slices
        for pair in self.refinements:  # a taxonomy is split from its top
            settled = reachable[:, places[pair.by_group]].sum(axis=1) == 1
            found[:, self.of(pair.finer)] &= settled[:, None]
        return found

    def left(self, allowed: Mask) -> Mask:
        """`[node, attribute]`: whether any candidate of the attribute is allowed."""
        every = range(len(self.cells))
        return np.stack([allowed[:, self.of(a)].any(axis=1) for a in every], axis=1)

    @cached_property
    def arity(self) -> Integers:
        """How many children a split by each `[candidate]` has."""
        return np.where(self.kind == MULTIWAY, np.array(self.cells)[self.attribute], 2)

    @cached_property
    def described_branches(self) -> Integers:
        """How many branches of each `[candidate]` hold cells that the domain describes."""
        cells = np.array([len(categories) for categories in self.described])
        return np.where(self.kind == MULTIWAY, cells[self.attribute], 2)

    def parts(self, size: Floats, chosen: Integers) -> Floats:
        """`size[node]` in equal parts to the children `[child]` of each node's `chosen` split.

        A cell that the domain does not describe, such as "other", is expected to be empty.
        """
        parent, branch = self._children(chosen)
        described = np.zeros((len(self.cells), max(self.cells)), dtype=np.bool_)
        for attribute, cells in enumerate(self.described):
            described[attribute, list(cells)] = True
        binary = self.kind[chosen] != MULTIWAY
        full = binary[parent] | described[self.attribute[chosen][parent], branch]
        return np.where(full, (size / self.described_branches[chosen])[parent], 0.0)

    @cached_property
    def slices(self) -> list[slice]:
        """The slice of each attribute's cells among all cells."""
        ends = np.cumsum(self.cells)
        return [slice(int(e - c), int(e)) for e, c in zip(ends, self.cells, strict=True)]

    def _children(self, chosen: Integers) -> tuple[Integers, Integers]:
        """The node `[child]` and the branch `[child]` of the children of `chosen[node]` splits."""
        arity = self.arity[chosen]
        parent = np.repeat(np.arange(len(chosen)), arity)
        return parent, np.arange(len(parent)) - np.repeat(arity.cumsum() - arity, arity)

    def descend(self, reachable: Mask, chosen: Integers) -> Mask:
        """`reachable[child, cell]` of the children of nodes.

        `reachable[node, cell]` are the cells of the nodes, `chosen[node]` the candidates that split
        them.
        """
        attribute = self.attribute[chosen]
        parent, branch = self._children(chosen)
        below, columns = reachable[parent], self.slices
        for split_attribute in np.unique(attribute):
            children = np.flatnonzero(attribute[parent] == split_attribute)
            goes = self._goes(split_attribute, chosen[parent[children]], branch[children])
            below[children, columns[split_attribute]] &= goes
            for pair in self.refinements:
                if pair.by_group == split_attribute:  # a child holds the cells of its one group
                    below[children, columns[pair.finer]] &= pair.holds[branch[children]]
        return below


def candidates(domain: Domain, split_type: SplitType) -> Candidates:
    """Every candidate of a domain: one per attribute (multiway), every binary split, or mixed.

    Binary: each bin edge of a numeric attribute and of an ordered category list, each category
    against the rest, and NULL against the rest where it is declared. Mixed: numeric attributes
    binary, the others multiway.
    """
    found: list[tuple[int, int, int, int]] = []
    for number, attribute in enumerate(domain.attributes):
        if by_cell(attribute, split_type):
            found.append((number, MULTIWAY, 0, 1))
        else:
            found.extend((number, *split) for split in _binary(attribute))
    table = np.array(found, dtype=np.int64).reshape(-1, 4)
    return Candidates(
        table[:, 0],
        table[:, 1],
        table[:, 2],
        table[:, 3],
        domain.cells,
        _refinements(domain),
        tuple(attribute.described for attribute in domain.attributes),
    )


def _refinements(domain: Domain) -> tuple[Refinement, ...]:
    """Each level of a taxonomy with those below it. Levels come top first, after all columns."""
    found = []
    for number, general in enumerate(domain.attributes):
        for finer, one in enumerate(domain.attributes):
            if not general.of or one.column != general.of or (one.of and finer <= number):
                continue
            cells = [general.other] * one.cells
            cells[one.null] = general.null
            for cell in range(one.proper):
                cells[cell] = next(
                    group
                    for group in range(general.proper)
                    if one.categories(cell)[0] in general.categories(group)
                )
            holds = np.array(cells)[None, :] == np.arange(general.cells)[:, None]
            found.append(Refinement(number, finer, holds))
    return tuple(found)


def by_cell(attribute: Attribute, split_type: SplitType) -> bool:
    """Whether an attribute is split into one branch per cell."""
    return split_type == "multiway" or (split_type == "mixed" and attribute.kind != "numeric")


def _binary(attribute: Attribute) -> list[tuple[int, int, int]]:
    """Kind, cell and width of each binary split; the width is that of the bin below the edge."""
    null = [(int(EQUALS), attribute.null, 1)] if attribute.nullable else []
    if attribute.kind == "numeric":
        return [(int(THRESHOLD), cell, w) for cell, w in enumerate(_widths(attribute))] + null
    cuts = [(int(THRESHOLD), cell, 1) for cell in range(attribute.proper - 1)]
    ones = [(int(EQUALS), cell, 1) for cell in range(attribute.proper)]
    return (cuts if attribute.ordered else []) + ones + null


def _widths(attribute: Attribute) -> list[int]:
    """The widths of the bins that have an upper edge, as integers that sum to about 2^20."""
    edges = [float(edge) for edge in attribute.edges]
    if not edges:
        return []
    gaps = [high - low for low, high in pairwise(edges)]
    lower, first = attribute.lower, 0.0
    if isinstance(lower, int | float) and abs(lower) < 1e300:  # beyond it, sums may overflow
        first = edges[0] - lower
    widths = [first if first > 0 else (gaps[0] if gaps else 1.0), *gaps]
    if not sum(widths):  # whole numbers that are the same as floats
        widths = [1.0] * len(edges)
    return [max(1, round(2**20 * width / sum(widths))) for width in widths]
