"""Class means of all attributes in one release, as the weights of a linear discriminant.

`splits.positions` gives every cell a number. The sums of these numbers in each class are released
together, with joint noise: one figure for each numeric or ordered attribute and class, where a
table has one for each value and class. So the noise grows with the number of these attributes, but
not with that of their values. Other attributes still have a figure for each contrast or value. The
sums of squares over all classes are released too; or, if rows allow it, the sums of products of all
pairs. Boosting may start at class means of the numeric and ordered attributes alone. Where the plan
is in μ², the noise of all of these is Gaussian.

A row is in one class, and adds at most REACH in L1 to each block of its sums, and at most REACH² to
each square and product. So k rows of a unit change the sums by at most k times as much in the norm
of joint noise; in L2, by at most √d times that with d blocks (`l2_squared` in `privacy.measure`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from dpforest_duckdb.arrays import Floats, Integers
from dpforest_duckdb.engine.base import CodedRows, tables_of_all
from dpforest_duckdb.learners.growth import one_split
from dpforest_duckdb.learners.mixtures import weighed, weighed_by_rows
from dpforest_duckdb.postprocess.discriminant import Moments, discriminant, noise_of_log_odds
from dpforest_duckdb.postprocess.noisy_shares import counted_shares
from dpforest_duckdb.postprocess.voting import integer_votes, intercept
from dpforest_duckdb.privacy.plan import PlannedQuery
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.progress import Event, Phase
from dpforest_duckdb.request import Grown, Learner, Request, TrainingContext
from dpforest_duckdb.splits import positions
from dpforest_duckdb.splits.choose import draw_best
from dpforest_duckdb.splits.positions import REACH, Positions
from dpforest_duckdb.tree import SCALE, Tree

UNRATED = 14  # the weight of sums that no row has rated, in units of 1 / MIXTURE_PARTS


def release_means(rows: CodedRows, context: TrainingContext) -> Grown:
    """A tree without a split, and one of a single split for each attribute, with log-odds as votes.

    Attributes that are correlated within a class are counted twice, so the sums of log-odds get a
    weight: a private choice, if the plan has "mixture". With "products" the correlations are known,
    and the sums need none. Without either, the weight is UNRATED, and then all log-odds, those of
    all rows too, are multiplied by UNRATED again. That changes no prediction.
    """
    context.observe(Event(Phase.COUNT_TABLES))
    request, accountant = context.request, context.accountant
    private = tables_of_all(rows)
    found = _positions(private, context)
    start = intercept(np.log(counted_shares(request, accountant.plan)), request, accountant.plan)
    ends = np.cumsum([0, *(each.shape[1] for each in found.values())])
    if not ends[-1]:  # every attribute has one value: there is nothing to sum
        return Grown([start])
    weights, constants = discriminant(_moments(rows, private, found, context))
    trees = [
        _tree(request, number, each.weighed(weights[a:b]) + constants[a:b].sum(axis=0))
        for (number, each), (a, b) in zip(found.items(), pairwise(ends), strict=True)
    ]
    if accountant.plan.query(Purpose.PRODUCTS):
        return Grown([start, *trees])
    if accountant.plan.query(Purpose.MIXTURE):
        return Grown(weighed_by_rows(start, trees, rows, context))
    summed = [start, *(weighed(tree, UNRATED) for tree in trees)]
    return Grown([weighed(tree, UNRATED) for tree in summed])


def start_at_means(rows: CodedRows, context: TrainingContext) -> dict[int, Tree]:
    """Trees of one split with log-odds as votes, by the numbers of their attributes: those that
    have cells in order.

    Boosting starts at them, and corrects them. It costs the plan's "means" and "products". No
    windows are drawn, because boosting mostly cuts numbers into bins of about equal frequency.
    """
    context.observe(Event(Phase.COUNT_TABLES))
    request, trees = context.request, dict[int, Tree]()
    private = tables_of_all(rows)
    attributes = request.domain.attributes
    ordered = ordered_attributes(request)
    found = {number: positions.positions(attributes[number]) for number in ordered}
    moments = _moments(rows, private, found, context)
    weights, constants = discriminant(moments)
    noise = noise_of_log_odds(moments, [each.table[:, 0] / REACH for each in found.values()])
    for dimension, (number, each) in enumerate(found.items()):
        tree = _tree(request, number, each.weighed(weights[[dimension]]) + constants[dimension])
        vote_noise = np.zeros(tree.votes.shape)
        vote_noise[tree.leaves] = SCALE * noise[dimension]
        trees[number] = replace(tree, vote_noise=vote_noise)
    return trees


def ordered_attributes(request: Request) -> list[int]:
    """The numbers of the attributes that have cells in order."""
    return [
        number for number, attribute in enumerate(request.domain.attributes) if attribute.in_order
    ]


def _positions(private: Sequence[Integers], context: TrainingContext) -> dict[int, Positions]:
    """The positions of each attribute, from private `[cell, class]`."""
    request, found = context.request, dict[int, Positions]()
    narrowed = [
        number
        for number, each in enumerate(request.domain.attributes)
        if positions.has_window(each)
    ]
    planned = context.accountant.plan.query(Purpose.WINDOW)
    cost = context.accountant.spend(Purpose.WINDOW, times=len(narrowed)) if planned else 0
    for number, attribute in enumerate(request.domain.attributes):
        window = None
        if planned and number in narrowed:
            counts = private[number][: attribute.proper].sum(axis=1)
            utilities = positions.window_utilities(counts, max(request.rows, 1))
            drawn = draw_best(
                utilities,
                planned.measure.drawn_epsilon(cost),
                request.rows_per_unit,
                context.randomness.bits,
                planned.measure.mechanism,
            )
            first, end = positions.windows(attribute.proper)
            window = int(first[drawn]), int(end[drawn])
        found[number] = positions.positions(attribute, window)
    return found


@dataclass(frozen=True)
class _Release:
    """Sums after noise, `noisy[vector, dimension]`, and the standard deviation of the noise,
    `deviation[dimension]`, in parts of the most that a row adds; released.
    """

    noisy: Floats
    deviation: Floats


def _release(
    private: Integers, blocks: Sequence[int], reach: int, purpose: Purpose, context: TrainingContext
) -> _Release:
    """Release `private[vector, dimension]`, of which a row changes each block of one vector by at
    most `reach` in L1.
    """
    query, k = context.accountant.plan.planned(purpose), context.request.rows_per_unit
    cost, noise = context.accountant.spend(purpose), context.randomness.noise
    noisy = query.measure.noisy_blocks(noise, private, blocks, cost, reach * k) / reach
    of_size = _deviations(query, blocks, reach, k)
    return _Release(noisy, np.array([of_size[size] for size in blocks for _ in range(size)]))


def _deviations(query: PlannedQuery, blocks: Sequence[int], reach: int, k: int) -> dict[int, float]:
    """The standard deviation of the noise in a sum, by the size of its block, in parts of `reach`.

    It is public, because it follows from the plan and the domain.
    """
    (cost,), deviation = query.by_depth, query.measure.block_deviation
    return {size: deviation(blocks, size, cost, reach * k) / reach for size in set(blocks)}


def _moments(
    rows: CodedRows,
    private: Sequence[Integers],
    found: Mapping[int, Positions],
    context: TrainingContext,
) -> Moments:
    """The released moments of positions `found[attribute]`, from private counts
    `private[attribute][cell, class]`.
    """
    request = context.request
    n = max(sum(request.histogram), len(request.domain.classes))
    counted = n * counted_shares(request, context.accountant.plan)
    blocks = _blocks(request, found)
    sums = _release(class_sums(private, found), blocks, REACH, Purpose.MEANS, context)
    size, products, noise = sum(blocks), None, 0.0
    if context.accountant.plan.query(Purpose.PRODUCTS):
        upper = np.triu_indices(size)
        released = _release(
            product_sums(rows, private, found)[upper][None],
            [1] * len(upper[0]),
            REACH**2,
            Purpose.PRODUCTS,
            context,
        )
        products = np.zeros((size, size))
        products[upper] = released.noisy[0] / n
        np.fill_diagonal(products, (np.diag(products) + 1) / 2)
        products = np.triu(products) + np.triu(products, 1).T
        squares, noise = np.diag(products), float((released.deviation[0] / n) ** 2)
        square_noise = noise / 4
    else:
        released = _release(
            square_sums(private, found), [1] * size, REACH**2, Purpose.SQUARES, context
        )
        squares = (released.noisy[0] / n + 1) / 2
        square_noise = float((released.deviation[0] / n / 2) ** 2)
    return Moments(counted, sums.noisy, sums.deviation**2, squares, square_noise, products, noise)


def _blocks(request: Request, numbers: Iterable[int]) -> list[int]:
    """The sizes of the blocks of positions of these attributes."""
    attributes = request.domain.attributes
    return [size for number in numbers for size in positions.blocks(attributes[number])]


def class_sums(private: Sequence[Integers], found: Mapping[int, Positions]) -> Integers:
    """The sums `[class, dimension]` of positions, from private counts `[cell, class]`."""
    return np.concatenate([each.sums(private[number]) for number, each in found.items()]).T


def square_sums(private: Sequence[Integers], found: Mapping[int, Positions]) -> Integers:
    """The sums `[1, dimension]` of 2x² - REACH² over all rows."""
    sums = [each.square_sums(private[number].sum(axis=1)) for number, each in found.items()]
    return np.concatenate(sums)[None]


def product_sums(
    rows: CodedRows, private: Sequence[Integers], found: Mapping[int, Positions]
) -> Integers:
    """The sums `[dimension, dimension]` of products of positions over all rows; on the diagonal
    those of 2x² - REACH².
    """
    sums = rows.sum_products({number: each.table for number, each in found.items()})
    np.fill_diagonal(sums, square_sums(private, found)[0])
    return sums


def _tree(request: Request, attribute: int, log_odds: Floats) -> Tree:
    """A tree of one split with log-odds `[cell, class]` as votes."""
    tree = one_split(request.domain, attribute)
    votes = np.zeros_like(tree.votes)
    votes[tree.leaves] = integer_votes(log_odds)
    return replace(tree, votes=votes)


def means_deviation(query: PlannedQuery, request: Request, numbers: Iterable[int]) -> float:
    """The standard deviation of the noise in a sum of positions, in parts of the largest one.

    `numbers` are those of the attributes whose positions are summed. It is 0 if there are none.
    """
    blocks = _blocks(request, numbers)
    if query.purpose == Purpose.SQUARES:
        blocks = [1] * sum(blocks)
    if query.purpose == Purpose.PRODUCTS:
        blocks = [1] * (sum(blocks) * (sum(blocks) + 1) // 2)
    reach = REACH if query.purpose == Purpose.MEANS else REACH**2
    return max(_deviations(query, blocks, reach, request.rows_per_unit).values(), default=0.0)


def _deviation(query: PlannedQuery, request: Request) -> float:
    return means_deviation(query, request, range(len(request.domain.attributes)))


CLASS_MEANS = Learner(
    release_means,
    rates_mixtures=True,
    noise=dict.fromkeys((Purpose.MEANS, Purpose.SQUARES, Purpose.PRODUCTS), _deviation),
)
