"""The effect of each attribute on the prediction. It uses released figures only, so it costs no ε.

The effect of a value is the forest's mean output if every row has that value and the other
attributes keep their distribution (partial dependence, Friedman 2001). At a split on another
attribute the branches are weighted by their noisy rows, or by their parts of the public domain if
no counts were released. For a sum of one-split trees this is exactly what the value adds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpforest_duckdb.arrays import Floats
from dpforest_duckdb.scoring.content import ForestContent
from dpforest_duckdb.tree import LEAF, MULTIWAY, SCALE, Tree, branch_of, counts_of

ROUNDING = 1e-9  # an effect below it comes from rounding: votes are in units of 1e-6
TINY_VARIANCE = 1e-12  # so that none is 0
BAND = 2.0  # standard deviations of the noise on either side of an effect
LARGEST_BLOCK = 2**20  # values times nodes that are looked at together
CLEAR_RATIO = 10.0  # by how much log-odds vary more than their noise, if a weight follows from them


@dataclass(frozen=True)
class Effect:
    """The effect of one attribute, over the cells that its domain describes.

    `values[cell, class]` are log-odds, or class probabilities minus those of the mean row (see
    `Link.effects`). `deviation[cell, class]` is the standard deviation of the noise in them, to
    first order, with the trees' weights as they are; NaN if the noise is not recorded.
    `weights[cell]` are the parts of the rows, from noisy counts; equal if none were released.
    """

    attribute: int
    labels: tuple[str, ...]
    values: Floats
    deviation: Floats
    weights: Floats

    @property
    def importance(self) -> float:
        """The weighted mean over cells of the mean absolute effect on a class."""
        return float(self.weights @ np.abs(self.values).mean(axis=1))

    @property
    def noise_is_known(self) -> bool:
        """Whether the noise is recorded at every value."""
        return bool(np.isfinite(self.deviation).all())


def effects(forest: ForestContent) -> list[Effect]:
    """The effect of every attribute that a tree splits by, the most important first."""
    cells = forest.domain.cells
    weights = _weights(forest)
    flows = [
        _Flow(tree, cells, _branch_weights(tree, cells), weight)
        for tree, weight in zip(forest.trees, weights, strict=True)
    ]
    found = [_effect(forest, flows, attribute) for attribute in forest.used]
    return sorted(found, key=lambda effect: -effect.importance)


def importances(forest: ForestContent) -> Floats:
    """The importance of each attribute `[attribute]`; they sum to 1 unless all are 0."""
    total = np.zeros(len(forest.domain.attributes))
    for effect in effects(forest):
        total[effect.attribute] = effect.importance
    return total / total.sum() if total.any() else total


def _effect(forest: ForestContent, flows: Sequence[_Flow], attribute: int) -> Effect:
    """The effect of one attribute, from the `flows` of all trees."""
    domain = forest.domain
    split_by = domain.attributes[attribute]
    cells = list(split_by.described)
    values = np.zeros((len(cells), len(domain.classes)))
    variance, rows = np.zeros_like(values), np.zeros(len(cells))
    for flow in flows:
        tree = flow.tree
        if not (tree.attribute == attribute).any():
            continue  # the same for every value
        outputs = forest.link.outputs(tree)
        noise = flow.weight**2 * _variances(forest, tree)
        for some in _blocks(len(cells), tree.nodes):
            reached = flow.reached(attribute, cells[some])
            values[some] += reached @ outputs
            variance[some] += _spread(reached, noise)
            rows[some] += _rows(tree, reached, attribute)
    weights = np.clip(rows, 0, None)
    weights = weights / weights.sum() if weights.any() else np.full(len(cells), 1 / len(cells))
    values, variance = forest.link.effects(values, variance, weights, len(forest.trees))
    values = np.where(np.abs(values) < ROUNDING, 0.0, values)
    labels = tuple(split_by.label(cell) for cell in cells)
    return Effect(attribute, labels, values, np.sqrt(variance), weights)


def _blocks(values: int, nodes: int) -> list[slice]:
    """Parts of the values, of which a matrix `[value, node]` does not need much memory."""
    size = max(1, LARGEST_BLOCK // nodes)
    return [slice(start, start + size) for start in range(0, values, size)]


def _spread(reached: Floats, noise: Floats) -> Floats:
    """The variance `[value, class]` of the noise in mean outputs, from that of each node.

    The noise of a leaf counts only where rows reach it: it can be unknown elsewhere.
    """
    used = (reached > 0).any(axis=0)
    known = np.isfinite(noise[used]).all(axis=1)
    parts = reached[:, used] ** 2
    found: Floats = parts[:, known] @ noise[used][known]
    found[(parts[:, ~known] > 0).any(axis=1)] = math.nan
    return found


@dataclass(frozen=True)
class _Flow:
    """How rows go down a tree: `parts[node]` is the part of its parent's rows that a node gets.

    `weight` is that of the tree's log-odds, as `_weights` gives it.
    """

    tree: Tree
    cells: tuple[int, ...]
    parts: Floats
    weight: float

    def reached(self, attribute: int, values: Sequence[int]) -> Floats:
        """The part of the rows in each leaf `[value, node]` if all rows had one cell of `values` in
        the attribute; 0 at inner nodes.
        """
        tree = self.tree
        mass = np.zeros((len(values), tree.nodes))
        mass[:, 0] = 1.0
        for nodes, above in tree.descents(self.cells):
            taken = branch_of(tree.kind[above], tree.cell[above], np.array(values)[:, None])
            fixed = tree.attribute[above] == attribute
            mine = taken == nodes - tree.first[above]
            mass[:, nodes] = mass[:, above] * np.where(fixed, mine, self.parts[nodes])
        mass[:, tree.kind != LEAF] = 0.0
        return mass


def _branch_weights(tree: Tree, cells: tuple[int, ...]) -> Floats:
    """The part of its parent's rows `[node]` that a node holds; 1 for the root."""
    parts = np.ones(tree.nodes)
    for node in np.flatnonzero(tree.kind != LEAF):
        children = list(tree.children(int(node), cells))
        size: Floats = np.zeros(len(children))
        if tree.counts is not None and (
            tree.noise is None or np.isfinite(tree.noise[children]).all()
        ):
            size = np.clip(tree.counts[children].sum(axis=1), 0, None).astype(np.float64)
        if not size.any():
            width = cells[tree.attribute[node]]
            codes = np.arange(width)
            kind, cell = np.full(width, tree.kind[node]), np.full(width, tree.cell[node])
            branches = branch_of(kind, cell, codes)
            size = np.bincount(branches, minlength=len(children)).astype(np.float64)
        parts[children] = size / size.sum()
    return parts


def _variances(forest: ForestContent, tree: Tree) -> Floats:
    """The variance `[node, class]` of the noise in the outputs of a tree.

    It follows from the noise in the counts. Shrinkage, which lowers the noise, is ignored. Boosted
    trees record the noise in their votes instead; it leaves out how the random order of boosting
    shares an effect between correlated attributes. NaN without recorded noise.
    """
    if tree.vote_noise is not None and forest.link.log_odds:
        recorded: Floats = (tree.vote_noise / SCALE) ** 2
        return recorded
    leaf = (tree.kind == LEAF)[:, None]
    if tree.counts is None or tree.noise is None:
        return np.where(leaf, math.nan, 0.0) * np.ones(tree.votes.shape)
    noise = np.where(leaf, tree.noise[:, None], 0.0)
    return forest.link.variance(tree.counts, noise)


def _weights(forest: ForestContent) -> list[float]:
    """By how much each tree's votes are more or less than the log-odds of its counts.

    Sums of log-odds are multiplied by a weight that a model does not record. It is the slope of a
    regression through the leaves whose counts are all above two standard deviations of their noise:
    one for all trees of one split, and one for all others. 1 if the log-odds of these leaves hardly
    vary more than their noise does.
    """
    sums = np.array([tree.nodes > 1 and (tree.kind[1:] == LEAF).all() for tree in forest.trees])
    weights = np.ones(len(sums))
    for kind in (True, False):
        moments = [_moments(forest, forest.trees[n]) for n in np.flatnonzero(sums == kind)]
        votes_by_counts, counts_by_counts, free = np.sum(moments, axis=0) if moments else (0, 0, 0)
        if votes_by_counts > 0 and counts_by_counts > CLEAR_RATIO * max(free, 1):
            weights[sums == kind] = votes_by_counts / counts_by_counts
    return weights.tolist()


def _moments(forest: ForestContent, tree: Tree) -> tuple[float, float, int]:
    """The products of a tree's votes and of the log-odds of its counts with these log-odds, summed
    over its leaves of clear counts, by the precision of the log-odds; 0 without such leaves.

    Both are taken minus their means over the leaves of the same parent: votes may be relative to
    its class shares. The last number is about what noise alone adds to the second sum.
    """
    if not forest.link.log_odds or tree.vote_noise is not None or tree.noise is None:
        return 0.0, 0.0, 0
    counts = counts_of(tree)
    clear = (counts > BAND * tree.noise[:, None]).all(axis=1) & (tree.kind == LEAF)
    if not clear.any():
        return 0.0, 0.0, 0
    precision = 1 / _variances(forest, tree)[clear].clip(TINY_VARIANCE)
    parent = np.unique(tree.parents(forest.domain.cells)[clear], return_inverse=True)[1]
    siblings = np.eye(parent.max() + 1)[parent].T  # [parent, leaf]

    def centred(scores: Floats) -> Floats:
        among = scores - scores.mean(axis=1, keepdims=True)
        means = siblings @ (precision * among) / (siblings @ precision)
        found: Floats = among - means[parent]
        return found

    logs, votes = centred(np.log(counts[clear])), centred(tree.votes[clear] / SCALE)
    free = (len(logs) - len(siblings)) * (logs.shape[1] - 1)
    return float((precision * votes * logs).sum()), float((precision * logs**2).sum()), free


def _rows(tree: Tree, reached: Floats, attribute: int) -> Floats:
    """Noisy rows `[value]`, from a tree of one split on the attribute; 0 from other trees.

    `reached[value, node]` is as of `_Flow.reached`.
    """
    single = tree.counts is not None and tree.kind[0] == MULTIWAY and tree.nodes > 1
    if not single or tree.attribute[0] != attribute or (tree.kind[1:] != LEAF).any():
        return np.zeros(len(reached))
    found: Floats = reached @ np.clip(counts_of(tree).sum(axis=1), 0, None)
    return found
