"""Boosting: trees with a structure that no private figure decides, fitted block after block.

Every row has a score, its log-odds so far, stored in the database. A block of trees queries the
sums of gradients and hessians of the logistic loss at its leaves, receives them with noise, and
adds a Newton step at each leaf. Everything but the sums is public or released. The first scores may
be those of a linear discriminant (`learners.class_means`).

A row adds (g, h) for the second of two classes, or for each of several, to one leaf of each tree.
Let p be the class shares and y the class, in parts of `WHOLE` rounded down.

- Two classes: |g| + h <= 1, because |g| + p(1-p) <= 1 - p². And g² + (3.33 h)² <= 1, because the
  maxima of (1-p)²(1 + 3.33² p²) are 1 at p = 0 and .99993 at about p = .382.
- Several classes: Σ|g| + Σh <= 3, because with q = 1 - p_y it is at most 2q + q(1-q) + q = 4q - q².
  And Σg² + Σ(2h)² <= 2, because x² + 4x²(1-x)² <= x on [0, 1], applied to q and to the other
  classes' shares.

The bounds hold for any shares that sum to 1 or less, so also for shares that are rounded down, and
for hessians that are rounded down.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dpforest_duckdb.arrays import Floats
from dpforest_duckdb.domain import Domain
from dpforest_duckdb.engine.base import CodedRows, Gradients
from dpforest_duckdb.learners.class_means import means_deviation, ordered_attributes, start_at_means
from dpforest_duckdb.learners.growth import Growth, one_split
from dpforest_duckdb.postprocess.attribute_gains import (
    FittedValues,
    draw_weights,
    worth_another_step,
)
from dpforest_duckdb.postprocess.newton_steps import StepWidths, steps
from dpforest_duckdb.postprocess.noisy_shares import counted_shares
from dpforest_duckdb.postprocess.voting import integer_votes, intercept, of_two
from dpforest_duckdb.privacy.bits import Bits
from dpforest_duckdb.privacy.measure import GAUSSIAN_DP, PURE_DP
from dpforest_duckdb.privacy.plan import Plan, PlannedQuery
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.progress import Event, Phase
from dpforest_duckdb.request import Grown, Learner, Request, TrainingContext
from dpforest_duckdb.scoring.links import centred_variance
from dpforest_duckdb.splits.candidates import candidates
from dpforest_duckdb.splits.choose import weighted_split
from dpforest_duckdb.tree import MULTIWAY, SCALE, Tree

WHOLE = 2**16  # gradients and hessians are multiples of 1 / WHOLE
# the part of a Newton step that random trees take; without a δ they are few, so they take more
RATES = {GAUSSIAN_DP: 0.4, PURE_DP: 0.6}
LARGEST_MOVE = 1.6  # in Newton steps, of all trees that are fitted to the same gradients
LARGEST_STEP = 2.0  # in the log-odds of any two classes; Newton's first step for equal shares
# for two classes and for several: how hessians are scaled, and the most that a row then adds to the
# sums at a tree's leaves, in parts of WHOLE: in L1 for pure DP, in L2 squared for Gaussian DP
HESSIANS = {
    PURE_DP: (Gradients(WHOLE, 1, 1), Gradients(WHOLE, 1, 1)),
    GAUSSIAN_DP: (Gradients(WHOLE, 333, 100), Gradients(WHOLE, 2, 1)),
}
PER_ROW = {PURE_DP: (1, 3), GAUSSIAN_DP: (1, 2)}


def gradient_scale(query: PlannedQuery, classes: int) -> Gradients:
    """The largest hessian scale that leaves the sensitivity unchanged."""
    return HESSIANS[query.measure][classes > 2]


def l1_per_row(classes: int) -> int:
    """The most that a row adds to the sums of gradients and hessians at a tree's leaves, in L1."""
    return PER_ROW[PURE_DP][classes > 2]


def sensitivity(query: PlannedQuery, classes: int, k: int) -> int:
    """How much the sums at a tree's leaves change with one privacy unit: in L1, or L2 squared."""
    return query.measure.scaled(PER_ROW[query.measure][classes > 2], k * WHOLE)


def boost(rows: CodedRows, context: TrainingContext) -> Grown:
    """A sweep over all attributes, one tree of one split for each; then, if they are planned, a
    sweep over those for which another step pays, and blocks of random trees.

    The trees of the first sweep start at class means, if the plan has them. The second sweep
    divides its cost among the attributes that it has, so the fewer these are, the less noise they
    get. Its attributes, and how often random trees split by each attribute, follow from what the
    sweeps released (`postprocess.attribute_gains`).
    """
    return _Boosting(rows, context).run()


@dataclass(frozen=True)
class _Step:
    """A tree with a step as votes, and the same step in log-odds with its hessians, by leaf; random
    trees do not use these `values`.
    """

    tree: Tree
    values: FittedValues


@dataclass
class _Boosting:
    """One training by boosting: the rows' scores always hold the votes of all trees so far.

    A round fits one block of trees; `done` counts the rounds, for progress alone.
    """

    rows: CodedRows
    context: TrainingContext
    done: int = field(default=0, init=False)
    attributes_again: int = field(default=0, init=False)  # of the second sweep
    fitted: dict[int, FittedValues] = field(default_factory=dict, init=False)  # by attribute

    def run(self) -> Grown:
        """Start at the class shares and the class means, sweep, then fit random trees."""
        start, single = self.start_at_shares(), self.single_splits()
        cost = self.context.accountant.spend(Purpose.SWEEP, times=len(single))
        self.sweep(single, range(len(single)), self.plan.planned(Purpose.SWEEP), cost)
        if self.plan.query(Purpose.SWEEP_AGAIN):
            self.sweep_again(single, cost)
        return Grown([start, *single, *self.fit_random_trees(single)])

    @property
    def plan(self) -> Plan:
        return self.context.accountant.plan

    @property
    def block(self) -> int:
        """The number of random trees that are fitted to the same gradients."""
        forest = self.plan.query(Purpose.FOREST)
        rate = RATES[forest.measure] if forest else 1.0
        return trees_in_block(len(self.context.request.domain.classes), rate)

    @property
    def rounds(self) -> int:
        """The number of rounds that are known of: one for each tree of a sweep, and one for each
        block. The second sweep counts from when its attributes are chosen.
        """
        forest = self.plan.query(Purpose.FOREST)
        blocks = -(-forest.times // self.block) if forest else 0
        return len(self.context.request.domain.attributes) + self.attributes_again + blocks

    def start_at_shares(self) -> Tree:
        """A tree without a split, with the log-odds of the noisy class shares in its votes."""
        request = self.context.request
        tree = intercept(np.log(counted_shares(request, self.plan)), request, self.plan)
        self.rows.add_votes([tree])
        return tree

    def single_splits(self) -> list[Tree]:
        """A tree of one split for each attribute, with votes only if it starts at class means."""
        domain = self.context.request.domain
        single = [one_split(domain, attribute) for attribute in range(len(domain.attributes))]
        if not self.plan.query(Purpose.MEANS):
            return single
        started = start_at_means(self.rows, self.context)
        self.rows.add_votes(list(started.values()))
        return [started.get(number, tree) for number, tree in enumerate(single)]

    def sweep(
        self, single: list[Tree], attributes: Sequence[int], query: PlannedQuery, cost: int
    ) -> None:
        """Replace the trees of these attributes in `single` by those after one step of each, one
        after the other.

        Their order is random, so that no attribute is always last. `cost` is that of one attribute.
        """
        numbers, widths = np.array(attributes), StepWidths()
        order = self.context.randomness.bits.words(len(numbers)).argsort()
        for number in numbers[order].tolist():
            (step,) = self.fit_block([single[number]], query, cost, 1.0, widths)
            single[number], self.fitted[number] = _added(single[number], step.tree), step.values

    def sweep_again(self, single: list[Tree], cost_before: int) -> None:
        """A sweep over the attributes for which another step pays. They divide its cost; in the
        first sweep each cost `cost_before`.
        """
        query, request = self.plan.planned(Purpose.SWEEP_AGAIN), self.context.request
        (whole,) = query.by_depth
        bound = sensitivity(query, len(request.domain.classes), request.rows_per_unit)
        attributes = worth_another_step(
            [self.fitted[number] for number in range(len(single))],
            _variance(query, cost_before, bound),
            lambda count: _variance(query, whole // count, bound),
        )
        self.attributes_again = len(attributes)
        cost = self.context.accountant.spend(Purpose.SWEEP_AGAIN, among=len(attributes))
        self.sweep(single, attributes, query, cost)

    def fit_random_trees(self, single: Sequence[Tree]) -> list[Tree]:
        """The planned random trees, fitted block by block, after the trees of `single` splits."""
        query, request = self.plan.query(Purpose.FOREST), self.context.request
        if query is None:
            return []
        bits = self.context.randomness.bits
        weights = draw_weights(
            [tree.votes[tree.leaves] / SCALE for tree in single],
            [self.fitted[number].hessians for number in range(len(single))],
        )
        random = random_trees(request.domain, query.times, request.depth, weights, bits)
        cost = self.context.accountant.spend(Purpose.FOREST, times=len(random))
        widths, fitted = StepWidths(), list[Tree]()
        for first in range(0, len(random), self.block):
            block = random[first : first + self.block]
            made = self.fit_block(block, query, cost, RATES[query.measure], widths)
            fitted += [step.tree for step in made]
        return fitted

    def fit_block(
        self,
        trees: Sequence[Tree],
        query: PlannedQuery,
        cost: int,
        rate: float,
        widths: StepWidths,
    ) -> list[_Step]:
        """One round: a step of each tree, which the rows' scores get too."""
        self.done += 1
        self.context.observe(Event(Phase.BOOST, self.done, self.rounds, "round"))
        fitted = self.newton_steps(trees, query, cost, rate, widths)
        self.rows.add_votes([step.tree for step in fitted])
        return fitted

    def newton_steps(
        self,
        trees: Sequence[Tree],
        query: PlannedQuery,
        cost: int,
        rate: float,
        widths: StepWidths,
    ) -> list[_Step]:
        """`rate` times a Newton step at each leaf of the trees, from noisy sums."""
        request, noise = self.context.request, self.context.randomness.noise
        classes = len(request.domain.classes)
        scale = gradient_scale(query, classes)
        bound = sensitivity(query, classes, request.rows_per_unit)
        hessian_unit = scale.hessian_denominator / scale.hessian_numerator / WHOLE
        variance, largest = _variance(query, cost, bound), largest_step(classes)
        found = []
        for tree, sums in zip(trees, self.rows.sum_gradients(trees, scale), strict=True):
            noisy = query.measure.noisy_sums(noise, sums[tree.leaves], cost, bound)
            gradients = noisy[:, 0::2] / WHOLE
            hessians = (noisy[:, 1::2] * hessian_unit).astype(np.float64)
            ordered = _in_order(tree, request.domain)
            by_score = [
                steps(g, h, variance, ordered, largest=largest, widths=widths)
                for g, h in zip(gradients.T, hessians.T, strict=True)
            ]
            added, spread = (rate * np.stack(part, axis=1) for part in zip(*by_score, strict=True))
            values = FittedValues(added, hessians)
            found.append(_Step(_with_votes(tree, added, spread), values))
        return found


def _with_votes(tree: Tree, added: Floats, spread: Floats) -> Tree:
    """The tree with log-odds as votes: `added[leaf, score]`, and `spread` of the noise in them."""
    votes, vote_noise = np.zeros_like(tree.votes), np.zeros(tree.votes.shape)
    votes[tree.leaves] = integer_votes(of_two(added[:, 0]) if added.shape[1] == 1 else added)
    vote_noise[tree.leaves] = SCALE * _centred(spread)
    return replace(tree, votes=votes, vote_noise=vote_noise)


def _centred(spread: Floats) -> Floats:
    """The noise `[leaf, class]` in log-odds minus their mean, from that `[leaf, score]` in scores.

    Two classes have one score, of which each has half.
    """
    if spread.shape[1] == 1:
        return np.repeat(spread / 2, 2, axis=1)
    return np.sqrt(centred_variance(spread**2))


def _added(tree: Tree, step: Tree) -> Tree:
    """A tree with the votes of a step added; their noise is independent."""
    before = np.zeros(tree.votes.shape) if tree.vote_noise is None else tree.vote_noise
    assert step.vote_noise is not None
    noise = np.hypot(before, step.vote_noise)
    return replace(tree, votes=tree.votes + step.votes, vote_noise=noise)


def _variance(query: PlannedQuery, cost: int, bound: int) -> float:
    """The variance of the noise in a sum of gradients."""
    return float(query.measure.variance(cost, bound) / WHOLE**2)


def _deviation(query: PlannedQuery, request: Request) -> float:
    """The standard deviation of the noise in a sum, in parts of the most that a row adds to it."""
    bound = sensitivity(query, len(request.domain.classes), request.rows_per_unit)
    return math.sqrt(_variance(query, min(query.by_depth), bound))


def largest_step(classes: int) -> float:
    """The bound of a step in one score: two classes have one score, several have one each."""
    return LARGEST_STEP if classes == 2 else LARGEST_STEP / 2


def trees_in_block(classes: int, rate: float) -> int:
    """How many random trees that take a `rate` of a step are fitted to the same gradients.

    Trees of a block often split alike, so their steps add up to `rate` times their number. Steps of
    more than twice Newton's end farther from the optimum than they began. With several classes,
    each score's step assumes that the other scores do not change. If two of them move apart, as
    those of two frequent classes do, their difference moves by twice Newton's step already.
    """
    return max(1, int(LARGEST_MOVE / rate) // (1 if classes == 2 else 2))


def _in_order(tree: Tree, domain: Domain) -> int:
    """The number of first leaves of a tree whose order may be used: bins, ordered categories."""
    if tree.kind[0] != MULTIWAY:
        return 0
    return domain.attributes[int(tree.attribute[0])].used_in_order


def random_trees(domain: Domain, trees: int, depth: int, weights: Floats, bits: Bits) -> list[Tree]:
    """Trees of random binary splits, without votes.

    For each split an attribute is drawn in proportion to its `weights[attribute]`, which follow
    from released figures, and then one of its splits. The trees depend on nothing else but the
    domain.
    """
    splits, growth = candidates(domain, "binary"), Growth(domain.cells, trees, len(domain.classes))
    frontier = np.arange(trees)
    reachable = np.ones((trees, sum(domain.cells)), dtype=np.bool_)
    for _ in range(depth):
        allowed = splits.allowed(reachable)
        divided = np.flatnonzero(allowed.any(axis=1))
        if not len(divided):
            break
        chosen = weighted_split(splits, allowed[divided], weights, bits)
        frontier, born = frontier[divided], growth.nodes
        growth.split_by(frontier, splits, chosen)
        reachable = splits.descend(reachable[divided], chosen)
        frontier = np.arange(born, growth.nodes)
    return [replace(tree, counts=None, noise=None) for tree in growth.finished()]


def _again_deviation(query: PlannedQuery, request: Request) -> float:
    """As `_deviation`, if the second sweep has all attributes; with fewer it is smaller."""
    (whole,) = query.by_depth
    each = replace(query, by_depth=(whole // len(request.domain.attributes),))
    return _deviation(each, request)


def _score_columns(request: Request) -> int:
    """One column for each class (one for two classes), and one more for the stored leaves of at
    most four trees, two bytes each.
    """
    return 1 + (len(request.domain.classes) if len(request.domain.classes) > 2 else 1)


def _of_means(query: PlannedQuery, request: Request) -> float:
    return means_deviation(query, request, ordered_attributes(request))


BOOSTING = Learner(
    boost,
    score_columns=_score_columns,
    noise={
        Purpose.SWEEP: _deviation,
        Purpose.SWEEP_AGAIN: _again_deviation,
        Purpose.FOREST: _deviation,
        Purpose.MEANS: _of_means,
        Purpose.PRODUCTS: _of_means,
    },
)
