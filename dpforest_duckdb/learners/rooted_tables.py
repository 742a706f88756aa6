"""Releases the tables of all attributes below the values of up to two roots, and picks a model.

Each root is drawn by permute-and-flip. The utility of an attribute is the number of rows that have
the most frequent class among the rows with their value. One more row raises it by one or not at
all, so with k rows per unit the sensitivity is k, and the utility is monotone. Which attributes may
be roots follows from public figures. Children are the combinations of the roots' values. The tables
of all children have joint noise: a row is in one child and one class only, so it changes one vector
(`dpforest_duckdb.splits.table_codes`), and all tables together cost one ε.

Several models follow from the tables at no cost. The rows give each of them points, and
permute-and-flip draws one (`learners.mixtures`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from dpforest_duckdb.arrays import Floats, Integers, Mask
from dpforest_duckdb.domain import Domain
from dpforest_duckdb.engine.base import MIXTURE_PARTS, CodedRows
from dpforest_duckdb.learners.growth import Growth
from dpforest_duckdb.learners.joint_tables import joint_tables_deviation
from dpforest_duckdb.learners.mixtures import mixed_by_rows
from dpforest_duckdb.postprocess.additive import Odds
from dpforest_duckdb.postprocess.below_root import ChildTables, models
from dpforest_duckdb.postprocess.voting import integer_votes
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.progress import Event, Phase
from dpforest_duckdb.request import Grown, Learner, Request, TrainingContext
from dpforest_duckdb.splits.choose import draw_best
from dpforest_duckdb.splits.table_codes import TableCodes
from dpforest_duckdb.splits.utilities import classified
from dpforest_duckdb.tree import Tree

DAMPED = 13  # a weight of naive Bayes, which is overconfident if attributes are correlated
WEIGHTS = (MIXTURE_PARTS, DAMPED, 8)  # of naive Bayes, in units of 1 / MIXTURE_PARTS
Roots = Callable[[Request], Sequence[int]]


def rooted_tables(roots: Roots) -> Learner:
    """The learner whose roots are among the attributes `roots(request)`, which are public."""

    def grow(rows: CodedRows, context: TrainingContext) -> Grown:
        tables = _released(rows, context, roots(context.request))
        (shares, *added), *others = _trees(tables)
        # class shares below the roots, what attributes add by naive Bayes, and other models
        parts = [[shares], added, *others]
        return Grown(mixed_by_rows(parts, _mixtures(len(others)), rows, context))

    return Learner(
        grow,
        rates_mixtures=True,
        noise={Purpose.TABLES: joint_tables_deviation},
    )


def _released(rows: CodedRows, context: TrainingContext, allowed: Sequence[int]) -> ChildTables:
    """The roots, which are drawn, and the noisy tables below them."""
    context.observe(Event(Phase.COUNT_TABLES))
    request, accountant = context.request, context.accountant
    domain, k = request.domain, request.rows_per_unit
    roots, private = _drawn_roots(rows, context, allowed)
    others = [number for number in range(len(domain.attributes)) if number not in roots]
    codes = TableCodes([domain.attributes[a] for a in others])
    cost = accountant.spend(Purpose.TABLES)
    tables = codes.release([private[a] for a in others], cost, k, context.randomness.noise)
    assert tables.totals is not None, "the rows are one of the blocks"
    return ChildTables(
        domain=domain,
        roots=roots,
        attributes=others,
        totals=tables.totals,
        counts=tables.counts,
        noise=tables.noise,
        noise_of_totals=tables.noise_of_totals,
    )


def _drawn_roots(
    rows: CodedRows, context: TrainingContext, allowed: Sequence[int]
) -> tuple[list[int], list[Integers]]:
    """The roots, and the private tables `[child, value, class]` of all attributes below them.

    Children are the combinations of values that the domain describes; other rows are in no table.
    """
    domain, query = context.request.domain, context.accountant.plan.query(Purpose.ROOT)
    growth = Growth(domain.cells, 1, len(domain.classes))
    roots, nodes, private = list[int](), np.arange(1), rows.count_classes(0, 1)
    known = np.arange(1)  # the places of the children among the nodes of their depth
    for turn in range(len(query.by_depth) if query else 0):
        left = [attribute for attribute in allowed if attribute not in roots]
        utilities = np.array([classified(private[attribute]) for attribute in left])
        cost, k = context.accountant.spend(Purpose.ROOT, turn), context.request.rows_per_unit
        root = left[draw_best(utilities, cost, k, context.randomness.bits)]
        # other nodes are split too: then a row's node is a sum of its codes, which is fast
        rows.route(growth.split_by_cell(nodes, root), growth.nodes)
        nodes = np.arange(nodes[-1] + 1, growth.nodes)
        known = (known[:, None] * domain.cells[root] + domain.attributes[root].described).ravel()
        below = rows.count_classes(int(nodes[0]), len(nodes))
        private, roots = [table[known] for table in below], [*roots, root]
    return roots, private


def _mixtures(others: int) -> list[tuple[int, ...]]:
    """Naive Bayes with each of WEIGHTS, which the class shares do not have, or one other model."""
    alone = np.eye(others, dtype=np.int64) * MIXTURE_PARTS
    return [
        *((MIXTURE_PARTS, weight, *[0] * others) for weight in WEIGHTS),
        *((0, 0, *weights) for weights in alone.tolist()),
    ]


@dataclass(frozen=True)
class _Path:
    """A tree that splits on some attributes, one after the other, and does not vote yet.

    `leaves` are those of all combinations of the attributes' values; the last attribute's vary
    fastest. `known[leaf]` says which of them the domain describes.
    """

    tree: Tree
    leaves: Integers
    known: Mask

    @staticmethod
    def of(domain: Domain, attributes: Sequence[int], counts: Integers, noise: float) -> _Path:
        """The path with the released `counts` of each known combination, by class."""
        described = tuple(domain.attributes[attribute].described for attribute in attributes)
        bare = _bare_path(domain.cells, tuple(attributes), described)
        nodes, classes = bare.leaves[bare.known], counts.shape[-1]
        released = np.zeros((bare.tree.nodes, classes), dtype=np.int64)
        released[nodes] = counts.reshape(-1, classes)
        spread = np.full(bare.tree.nodes, np.nan)
        spread[nodes] = noise
        tree = replace(bare.tree, counts=released, votes=np.zeros_like(released), noise=spread)
        return replace(bare, tree=tree)

    def voting(self, odds: Floats, otherwise: Floats) -> Tree:
        """The tree that votes with `odds` at known combinations, and with `otherwise` elsewhere.

        `otherwise[cell, …, class]` has an axis for each of the last attributes: all, some or none.
        """
        classes = odds.shape[-1]
        at_leaves = np.empty((len(self.leaves), classes))
        at_leaves.reshape(-1, *otherwise.shape)[:] = otherwise
        at_leaves[self.known] = odds.reshape(-1, classes)
        votes = np.zeros_like(self.tree.votes)
        votes[self.leaves] = integer_votes(at_leaves)
        return replace(self.tree, votes=votes)


@lru_cache(maxsize=64)  # a program may train many models on one table
def _bare_path(
    cells: tuple[int, ...], attributes: tuple[int, ...], described: tuple[tuple[int, ...], ...]
) -> _Path:
    """The path without counts; `described` are the cells that the domain describes."""
    growth, leaves = Growth(cells, 1, 1), np.arange(1)
    for attribute in attributes:
        first = growth.nodes
        growth.split_by_cell(leaves, attribute)
        leaves = np.arange(first, growth.nodes)
    known = np.zeros([cells[attribute] for attribute in attributes], dtype=np.bool_)
    known[np.ix_(*described)] = True
    (tree,) = growth.finished()
    for array in (tree.kind, tree.attribute, tree.cell, tree.first):
        array.setflags(write=False)  # forests share them
    return _Path(tree, leaves, known.ravel())


def _trees(tables: ChildTables) -> list[list[Tree]]:
    """For each model, a tree with each child's log-odds of the classes, and one for each of the
    model's attributes; all below the roots.

    Rows whose root has a value that the domain does not describe get the log-odds of all rows.
    """
    domain, roots = tables.domain, tables.roots
    starts = _Path.of(domain, roots, tables.totals, tables.noise_of_totals)
    added = [
        _Path.of(domain, [*roots, attribute], counts, noise)
        for attribute, counts, noise in zip(
            tables.attributes, tables.counts, tables.noise, strict=True
        )
    ]
    made = dict[tuple[int, bytes, bytes], Tree]()  # several models have the same trees

    def voting(place: int, odds: Floats, of_all: Floats) -> Tree:
        key = place, odds.tobytes(), of_all.tobytes()
        if key not in made:
            otherwise = _of_cells(domain, tables.attributes[place], of_all[0])
            made[key] = added[place].voting(odds, otherwise)
        return made[key]

    return [
        [
            starts.voting(model.odds.start, _start_of_others(tables, model.otherwise)),
            *map(voting, model.places, model.odds.added, model.otherwise.added[len(roots) :]),
        ]
        for model in models(tables)
    ]


def _of_cells(domain: Domain, attribute: int, added: Floats) -> Floats:
    """What an attribute adds, `[cell, class]`, from that of its values `[value, class]`: 0 for the
    cells that the domain does not describe.
    """
    of_cells = np.zeros((domain.cells[attribute], added.shape[1]))
    of_cells[list(domain.attributes[attribute].described)] = added
    return of_cells


def _start_of_others(tables: ChildTables, otherwise: Odds) -> Floats:
    """Log-odds `[cell of a root, …, class]` of the rows in no child: those of all rows, and what
    the roots add whose value is known.
    """
    start: Floats = otherwise.start[0]
    for root, added in zip(tables.roots, otherwise.added, strict=False):
        start = start[..., None, :] + _of_cells(tables.domain, root, added[0])
    return start
