"""Releases the tables of all attributes below the values of a root, and picks a model of them.

The root is drawn by permute-and-flip on the rows of each value's most frequent class: a row more
raises one such count by one or none, so with k rows per unit the sensitivity is k, and the utility
is monotone. Which attributes may be the root follows from public figures. The tables of all
children have joint noise: a row is in one child and one class only, so it changes one vector
(`dpforest_duckdb.splits.table_codes`), and all of them cost one ε. Several models follow from the
tables at no cost. The rows give each of them points, and permute-and-flip draws one (`POINTS` per
row: see `draw_by_points`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from dpforest_duckdb.arrays import Floats, Integers
from dpforest_duckdb.domain import Domain
from dpforest_duckdb.engine.base import MIXTURE_PARTS, POINTS, CodedRows, Mixture
from dpforest_duckdb.learners.growth import Growth
from dpforest_duckdb.learners.joint_tables import tables_deviation
from dpforest_duckdb.postprocess.below_root import ChildTables, Model, models
from dpforest_duckdb.postprocess.voting import integer_votes, of_two
from dpforest_duckdb.progress import Event, Phase
from dpforest_duckdb.request import Grown, Learner, Request, TrainingContext
from dpforest_duckdb.splits.choose import draw_attributes, draw_by_points
from dpforest_duckdb.splits.table_codes import blocks, deviation, parts, sums, table_of
from dpforest_duckdb.tree import MULTIWAY, Tree

WEIGHTS = tuple(Mixture(scores, 0) for scores in (20, 13))  # of a sum of log-odds
Roots = Callable[[Request], Sequence[int]]


def rooted_tables(roots: Roots) -> Learner:
    """The learner whose roots are among the attributes `roots(request)`, which are public."""

    def grow(rows: CodedRows, context: TrainingContext) -> Grown:
        tables = _released(rows, context, roots(context.request))
        context.observe(Event(Phase.COMPARE_SUMS))
        tried = [_trees(tables, model) for model in models(tables)]
        return Grown(_drawn(tried, rows, context))

    return Learner(
        grow,
        node_columns=lambda request: 1,
        score_columns=_score_columns,
        deviation=tables_deviation,
    )


def _released(rows: CodedRows, context: TrainingContext, allowed: Sequence[int]) -> ChildTables:
    """The roots that are drawn and the noisy tables below them."""
    context.observe(Event(Phase.COUNT_TABLES))
    request, account = context.request, context.account
    domain, k = request.domain, request.rows_per_unit
    roots, private = _drawn_roots(rows, context, allowed)
    others = [own for own in range(len(domain.attributes)) if own not in roots]
    attributes, cost = [domain.attributes[own] for own in others], account.spend("tables")
    scale = parts(attributes, k)
    true = np.concatenate(
        [sums([private[own][n] for own in others], attributes) for n in range(len(private[0]))]
    )
    noisy = context.randomness.noise.joint(true * scale, blocks(attributes), cost, k * scale)
    vectors = (noisy / scale).reshape(len(private[0]), len(domain.classes), -1)
    counts = [
        np.stack([table_of(own, number, attributes)[list(attribute.expected)] for own in vectors])
        for number, attribute in enumerate(attributes)
    ]
    return ChildTables(
        domain=domain,
        roots=roots,
        attributes=others,
        totals=_whole(vectors[:, :, 0]),
        counts=[_whole(own) for own in counts],
        noise=[deviation(attribute, attributes, cost, k) for attribute in attributes],
        noise_of_totals=deviation(None, attributes, cost, k),
    )


def _drawn_roots(
    rows: CodedRows, context: TrainingContext, allowed: Sequence[int]
) -> tuple[list[int], list[Integers]]:
    """The roots, and the private tables `[child, value, class]` of all attributes below them.

    Children are the combinations of values that the domain describes; other rows are in no table.
    """
    domain, query = context.request.domain, context.account.plan.query("root")
    growth = Growth(domain.cells, 1, len(domain.classes))
    roots, nodes, private = list[int](), np.arange(1), rows.count_classes(0, 1)
    for turn in range(len(query.by_depth) if query else 0):
        left = [own for own in allowed if own not in roots]
        tables = [private[own].reshape(-1, len(domain.classes)) for own in left]
        cost, k = context.account.spend("root", turn), context.request.rows_per_unit
        root = left[draw_attributes(tables, [cost], k, context.randomness.bits)[0]]
        born = growth.nodes
        made = growth.split(nodes, *(np.full(len(nodes), own) for own in (root, MULTIWAY, 0)))
        rows.route(made, growth.nodes)
        below = rows.count_classes(born, growth.nodes - born)
        first = np.array(made.first)[:, None] + np.array(domain.attributes[root].expected)
        nodes, roots = first.ravel(), [*roots, root]
        private = [table[nodes - born] for table in below]
    return roots, private


def _whole(counts: Floats) -> Integers:
    return np.rint(counts).astype(np.int64)


def _drawn(
    tried: Sequence[Sequence[Tree]], rows: CodedRows, context: TrainingContext
) -> list[Tree]:
    """The trees of the model, and with the weight, that the rows' points favour."""
    domain = context.request.domain
    (nothing,) = Growth(domain.cells, 1, len(domain.classes)).finished()
    points, before = [], list[Tree]()
    for trees in tried:
        rows.add_votes([*trees, *(replace(tree, votes=-tree.votes) for tree in before)])
        points.append(rows.rate_mixtures(nothing, WEIGHTS))
        before = list(trees)
    cost, bits = context.account.spend("mixture"), context.randomness.bits
    drawn = draw_by_points(
        np.concatenate(points), POINTS, cost, context.request.rows_per_unit, bits
    )
    model, weight = divmod(drawn, len(WEIGHTS))
    return [
        replace(tree, votes=tree.votes * WEIGHTS[weight].scores // MIXTURE_PARTS)
        for tree in tried[model]
    ]


def _trees(tables: ChildTables, model: Model) -> list[Tree]:
    """A tree for the start of the log-odds, and one for each attribute, below the model's roots.

    Rows whose root has a value that the domain does not describe get the shares of all rows.
    """
    start, *others = _summed(tables, model.level)
    odds = np.stack([node.start for node in model.nodes])
    grown = [_tree(tables.domain, *start, odds, model.otherwise)]
    for number, own in enumerate(others):
        grown.append(_tree(tables.domain, *own, np.stack([n.added[number] for n in model.nodes])))
    return grown


def _summed(tables: ChildTables, level: int) -> list[tuple[list[int], Integers, float]]:
    """Paths, counts and their noise below the first `level` roots, summed over the later ones.

    Those of the classes, of the later roots, and of the attributes. Noise adds up over the children
    that are summed.
    """
    path, later = tables.roots[:level], range(level, len(tables.roots))
    totals, noise = tables.totals.reshape(*tables.shape, -1), tables.noise_of_totals
    summed = math.sqrt(math.prod(tables.shape[level:]))
    found = [(path, totals.sum(axis=tuple(later)), noise * summed)]
    for own in later:
        others = tuple(other for other in later if other != own)
        scale = summed / math.sqrt(tables.shape[own])
        found.append(([*path, tables.roots[own]], totals.sum(axis=others), noise * scale))
    for attribute, counts, noise in zip(
        tables.attributes, tables.counts, tables.noise, strict=True
    ):
        shaped = counts.reshape(*tables.shape, *counts.shape[1:])
        found.append(([*path, attribute], shaped.sum(axis=tuple(later)), noise * summed))
    return found


def _tree(
    domain: Domain,
    path: Sequence[int],
    counts: Integers,
    noise: float,
    odds: Floats,
    otherwise: Floats | float = 0.0,
) -> Tree:
    """A tree that splits on the attributes of `path`, one after the other.

    `counts` and `odds` are those of the combinations of values that the domain describes, the last
    attribute's first, and of the classes; `otherwise` are the odds of the others.
    """
    described = np.ix_(*(domain.attributes[own].expected for own in path))
    shape = (*(domain.cells[own] for own in path), len(domain.classes))
    votes, known = np.full(shape, otherwise), np.zeros(shape[:-1], dtype=np.bool_)
    values = tuple(len(domain.attributes[own].expected) for own in path)
    votes[described], known[described] = odds.reshape(*values, -1), True
    growth, leaves = Growth(domain.cells, 1, len(domain.classes)), np.arange(1)
    for own in path:
        born = growth.nodes
        growth.split(leaves, *(np.full(len(leaves), value) for value in (own, MULTIWAY, 0)))
        leaves = np.arange(born, growth.nodes)
    growth.release(leaves[known.ravel()], counts.reshape(-1, len(domain.classes)), noise)
    (tree,) = growth.finished()
    tree.votes[leaves] = _votes(votes.reshape(-1, len(domain.classes)))
    return tree


def _votes(odds: Floats) -> Integers:
    """Integer votes `[leaf, class]` of log-odds `[leaf, class]`."""
    two = odds.shape[1] == 2
    return integer_votes(of_two(odds[:, 1] - odds[:, 0]) if two else odds)


def _score_columns(request: Request) -> int:
    """One for each class, or one for two."""
    return len(request.domain.classes) if len(request.domain.classes) > 2 else 1
