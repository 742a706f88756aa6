"""Limits on the size of forests: what counting, memory and scoring SQL can handle, as measured.

Domain sizes and depth give a bound before any row is read: a complete tree has at least that many
leaves, whatever its attributes. The rest is known only while trees grow, from released decisions
and random draws: a node that would exceed a limit stays a leaf.
"""

from __future__ import annotations

import numpy as np

from dpforest_duckdb.arrays import Floats, Integers, Mask
from dpforest_duckdb.domain import Domain
from dpforest_duckdb.splits.candidates import SplitType, by_cell

MAX_LEAVES = 100_000  # of all trees together
MAX_SHARES = 2**23  # leaves times classes: with more, its file could be too large to be read
MAX_COUNTS = 2**25  # private counts of one depth: nodes times cells times classes
MAX_ROOT_COUNTS = 2**26  # the same of all roots: they are counted whatever trees are, in 3 GB
MAX_REACHED = 2**28  # nodes times cells of one depth, in bytes: several such arrays are needed


def most_leaves(domain: Domain) -> int:
    """The number of leaves that all trees together can have."""
    return min(MAX_LEAVES, MAX_SHARES // len(domain.classes))


def most_counted(domain: Domain) -> int:
    """The number of nodes of one depth that can be counted by every attribute."""
    return MAX_COUNTS // (sum(domain.cells) * len(domain.classes))


def most_roots(domain: Domain) -> int:
    """The number of trees whose roots can be counted by every attribute."""
    return MAX_ROOT_COUNTS // (sum(domain.cells) * len(domain.classes))


def most_reached(domain: Domain) -> int:
    """The number of nodes of one depth that can be split at random.

    Each has a mark for every cell that its rows can be in.
    """
    return MAX_REACHED // sum(domain.cells)


def fitting(arity: Integers, size: Floats, leaves: int, opened: int) -> Mask:
    """Which `[node]` of a depth can be split without exceeding a limit.

    A node with `arity` children and `size` released or expected rows adds arity - 1 leaves, of
    which `leaves` are left, and opens arity nodes, of which `opened` are allowed. The largest nodes
    go first, then those with lower numbers, up to the first that does not fit: a public order.
    """
    order = np.argsort(-size, kind="stable")
    wide = arity[order]
    found = np.empty(len(arity), dtype=np.bool_)
    found[order] = ((wide - 1).cumsum() <= leaves) & (wide.cumsum() <= opened)
    return found


def deepest_complete(domain: Domain, split_type: SplitType, leaves: int) -> int | None:
    """The depth at which even the smallest complete tree has the maximum of `leaves`.

    The smallest tree uses the narrowest attributes, each once on a path; a binary split can be
    repeated. None if the attributes are used up before.
    """
    widths = sorted(a.cells for a in domain.attributes if by_cell(a, split_type))
    if len(widths) < len(domain.attributes):
        return leaves.bit_length() - 1
    product = 1
    for depth, width in enumerate(widths):
        product *= width
        if product > leaves:
            return depth
    return None
