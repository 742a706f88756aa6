"""Candidate splits: which ways there are to split a node, and what each would do to its counts.

Candidates follow from the public domain alone. A candidate is allowed at a node if at least two of
its branches can still be reached by the path to the node, which is public too: so an attribute is
split by category once per path, and no threshold lies outside what the path leaves open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.forest import MULTIWAY, ONE, THRESHOLD, branch_of

Counts = NDArray[np.int64]
Mask = NDArray[np.bool_]
Ways = Literal["multiway", "binary"]


@dataclass(frozen=True)
class Candidates:
    """All candidates of a domain, in a public order: parallel arrays [candidate]."""

    attribute: Counts
    kind: Counts
    cell: Counts
    cells: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.attribute)

    def of(self, attribute: int) -> Counts:
        """The candidates that split by one attribute."""
        return np.flatnonzero(self.attribute == attribute)

    def branches(self, attribute: int) -> NDArray[np.bool_]:
        """`goes[candidate, branch, cell]`: which cells of an attribute each branch takes."""
        own = self.of(attribute)
        code = np.arange(self.cells[attribute])
        width = self.cells[attribute] if (self.kind[own] == MULTIWAY).any() else 2
        branch = branch_of(self.kind[own, None], self.cell[own, None], code[None, :])
        goes: NDArray[np.bool_] = branch[:, None, :] == np.arange(width)[None, :, None]
        return goes

    def branch_counts(self, counts: Sequence[Counts], attribute: int) -> Counts:
        """`counts[node, candidate, branch, class]` from an attribute's `[node, value, class]`."""
        own, table = self.of(attribute), counts[attribute]
        if (self.kind[own] == MULTIWAY).all():
            return table[:, None]
        up_to = table.cumsum(axis=1)
        left = np.where(
            (self.kind[own] == THRESHOLD)[None, :, None],
            up_to[:, self.cell[own]],
            table[:, self.cell[own]],
        )
        return np.stack([left, up_to[:, -1:] - left], axis=2)

    def allowed(self, reachable: Mask) -> Mask:
        """`[node, candidate]`: two branches or more can be reached, by `reachable[node, cell]`."""
        found = np.empty((len(reachable), len(self)), dtype=np.bool_)
        for attribute, columns in enumerate(self.slices()):
            own = self.of(attribute)
            if len(own):
                # boolean matrix product: does a branch hold a reachable cell?
                open_ = np.einsum(
                    "nv,cbv->ncb",
                    reachable[:, columns].astype(np.int64),
                    self.branches(attribute).astype(np.int64),
                )
                found[:, own] = (open_ > 0).sum(axis=2) >= 2
        return found

    def slices(self) -> list[slice]:
        """Where each attribute's cells lie among all cells."""
        ends = np.cumsum(self.cells)
        return [slice(int(e - c), int(e)) for e, c in zip(ends, self.cells, strict=True)]

    def descend(self, reachable: Mask, chosen: int) -> Mask:
        """`reachable[branch, cell]` of the children that a candidate makes of one node."""
        attribute = int(self.attribute[chosen])
        position = int(np.flatnonzero(self.of(attribute) == chosen)[0])
        goes = self.branches(attribute)[position]
        below = np.repeat(reachable[None, :], len(goes), axis=0)
        below[:, self.slices()[attribute]] &= goes
        return below


def candidates(domain: Domain, ways: Ways) -> Candidates:
    """Every candidate of a domain: one per attribute (multiway), or every binary split.

    Binary: each bin edge of a numeric attribute and of an ordered category list, each category
    against the rest, and NULL against the rest where it is declared.
    """
    found: list[tuple[int, int, int]] = []
    for number, attribute in enumerate(domain.attributes):
        if ways == "multiway":
            found.append((number, MULTIWAY, 0))
        else:
            found.extend((number, kind, cell) for kind, cell in _binary(attribute))
    table = np.array(found, dtype=np.int64).reshape(-1, 3)
    return Candidates(table[:, 0], table[:, 1], table[:, 2], domain.cells)


def _binary(attribute: Attribute) -> list[tuple[int, int]]:
    null = [(int(ONE), attribute.null)] if attribute.nullable else []
    cuts = [(int(THRESHOLD), cell) for cell in range(attribute.proper - 1)]
    if attribute.kind == "numeric":
        return cuts + null
    ones = [(int(ONE), cell) for cell in range(attribute.proper)]
    return (cuts if attribute.ordered else []) + ones + null
