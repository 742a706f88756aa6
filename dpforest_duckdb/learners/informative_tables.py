"""Trees of one split on attributes that are drawn one after the other, with noisy counts.

The utility of an attribute is a sum of rows: those that it classifies correctly by itself, and
those that it classifies correctly together with each attribute drawn before. Correct is the most
frequent class at each value, or at each pair of values. So an attribute that repeats another is
rarely drawn beside it.

A row of the most frequent class has a smaller weight, so that all rows of this class weigh about as
much as all rows of the second one. Otherwise all attributes would have the same utility where one
class is the most frequent one at every value.

One more row raises each term of the sum by its weight at most. So with m terms and k rows per
privacy unit, the sensitivity is m·k times the largest weight, and the utility is monotone.

The tables of the drawn attributes have joint noise, in groups of attributes with blocks of similar
size (`splits.table_groups`). On average over the tables, it is smaller than independent noise.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.engine.base import CodedRows
from dpforest_duckdb.learners.candidate_bins import BinCandidates, DrawnBins, own_bins
from dpforest_duckdb.learners.growth import Growth
from dpforest_duckdb.learners.mixtures import weighed_by_rows
from dpforest_duckdb.postprocess.log_odds import log_odds, sums_cut
from dpforest_duckdb.privacy.noise import laplace_deviation
from dpforest_duckdb.privacy.plan import Plan, PlannedQuery
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.progress import Event, Phase
from dpforest_duckdb.request import Grown, Learner, Request, TrainingContext
from dpforest_duckdb.splits.choose import draw_best
from dpforest_duckdb.splits.limits import fitting, most_counted, most_leaves
from dpforest_duckdb.splits.table_codes import JointTables, TableCodes, has_contrasts
from dpforest_duckdb.splits.table_groups import like_groups
from dpforest_duckdb.tree import MULTIWAY, Tree

PARTS = 2**10  # of a row: the weights of classes are whole numbers of these


def draw_attributes(
    rows: CodedRows, tables: Sequence[Integers], context: TrainingContext
) -> list[int]:
    """The attributes of `request.drawn`, or an attribute for each tree, drawn in its own bins.

    `tables[attribute][value, class]` are the private counts of all rows. Without the query
    "attribute" in the plan, all attributes are used.
    """
    request = context.request
    if request.drawn:
        return list(request.drawn)
    if not context.accountant.plan.query(Purpose.ATTRIBUTE):
        return list(range(len(tables)))
    return [one.number for one in draw_in_bins(rows, tables, own_bins(request.domain), context)]


def draw_in_bins(
    rows: CodedRows, tables: Sequence[Integers], candidates: BinCandidates, context: TrainingContext
) -> list[DrawnBins]:
    """An attribute for each tree in one of its options, drawn one after the other, without repeats.

    `tables[attribute][cell, class]` are the private counts of all rows, in the cells of the
    candidates, as `rows` are coded. Pairs with an attribute of very many values are left out of the
    sum, because there would be too many counts. The query "attribute" has the cost of each turn.
    Utilities are in units of 1 / PARTS rows, so that the sensitivity is terms · rows per unit ·
    PARTS.
    """
    request, options, bits = context.request, candidates.options, context.randomness.bits
    drawn, terms = list[DrawnBins](), 1
    context.observe(Event(Phase.CHOOSE_SPLITS))
    weights = class_weights(request, context.accountant.plan)

    def correct(counts: Sequence[Integers]) -> list[Integers]:
        """By attribute and option, the weight of the rows that are classified correctly."""
        return [each.classified(of * weights) for each, of in zip(options, counts, strict=True)]

    utilities, most = correct(tables), most_counted(candidates.counted)
    for turn in range(request.trees):
        cost = context.accountant.spend(Purpose.ATTRIBUTE, turn)
        if drawn and request.domain.cells[drawn[-1].number] <= most:
            bins = options[drawn[-1].number].bins(drawn[-1].option)
            pairs = correct(rows.count_pairs(drawn[-1].number, bins.tolist()))
            utilities = [before + more for before, more in zip(utilities, pairs, strict=True)]
            terms += 1
        sensitivity = terms * request.rows_per_unit * PARTS
        left = sorted(set(range(len(options))) - {one.number for one in drawn})
        places = [
            DrawnBins(number, place) for number in left for place in range(options[number].count)
        ]
        worth = [utilities[n] - options[n].handicaps(cost, sensitivity) for n in left]
        drawn.append(places[draw_best(np.concatenate(worth), cost, sensitivity, bits)])
    return drawn


def class_weights(request: Request, plan: Plan) -> Integers:
    """The weight `[class]` of a row of each class, in units of 1 / PARTS: whole numbers from 1 to
    PARTS.

    PARTS · min(1, (r + σ) / (f - σ)) for the most frequent class, rounded down; PARTS for all
    others, and for all classes if there is no histogram. f and r are the noisy rows of the most
    frequent and of the second most frequent class in `request.histogram`, and σ is the standard
    deviation of their noise. All of it is released, so weights are public.
    """
    weights = np.full(len(request.domain.classes), PARTS)
    if request.histogram:
        noisy, noise = np.array(request.histogram), plan.row_noise(request.rows_per_unit)
        second, first = np.sort(noisy)[-2:]
        least, most = max(float(first) - noise, 1.0), max(float(second), 0.0) + noise
        weights[noisy.argmax()] = max(1, int(PARTS * min(1.0, most / least)))
    return weights


def trees_of(
    tables: JointTables, request: Request, drawn: Sequence[int], growth: Growth
) -> list[Tree]:
    """A tree of one split for each of the attributes `drawn`, and with totals one without a split.

    `tables` are those of these attributes, in this order. `growth` has roots for the splits, and
    grows by them.
    """
    places, none = np.arange(len(drawn)), np.zeros(len(drawn), dtype=np.int64)
    splits = growth.split(places, np.array(drawn), np.full(len(drawn), MULTIWAY), none)
    for place, first in enumerate(splits.first):
        described = np.array(request.domain.attributes[drawn[place]].described)
        growth.release(first + described, tables.counts[place], tables.noise[place])
    trees = growth.finished()[: len(drawn)]
    if tables.totals is not None:
        rows = Growth(request.domain.cells, 1, len(request.domain.classes))
        rows.release(np.arange(1), tables.totals, tables.noise_of_totals)
        trees += rows.finished()
    return trees


def release_in_groups(
    private: Sequence[Integers], drawn: Sequence[int], context: TrainingContext
) -> JointTables:
    """Release the tables of the attributes `drawn`, of private `private[attribute][cell, class]`.

    A table by itself has independent noise. Totals are released with the group that has contrasts,
    if there is one.

    The query "tables" has one cost for each table, in nano-ε, or one that every table pays. The
    costs of a group are added up.
    """
    context.observe(Event(Phase.COUNT_TABLES))
    request, k = context.request, context.request.rows_per_unit
    attributes = [request.domain.attributes[number] for number in drawn]
    if context.accountant.plan.planned(Purpose.TABLES).times > 1:
        costs = [context.accountant.spend(Purpose.TABLES, times=len(drawn))] * len(drawn)
    else:
        costs = [context.accountant.spend(Purpose.TABLES, rank) for rank in range(len(drawn))]
    counts, noise = [np.zeros(0, dtype=np.int64)] * len(drawn), [0.0] * len(drawn)
    totals, noise_of_totals = None, 0.0
    for group in like_groups(attributes, costs):
        released, cost = [attributes[place] for place in group], sum(costs[p] for p in group)
        if len(group) == 1:  # joint noise would not be smaller, and for contrasts larger
            (place,) = group
            described = private[drawn[place]][list(released[0].described)]
            counts[place] = context.randomness.noise.laplace(described, cost, k)
            noise[place] = laplace_deviation(cost, k)
            continue
        codes = TableCodes(released, with_totals=has_contrasts(released))
        grouped = [private[drawn[place]] for place in group]
        tables = codes.release(grouped, cost, k, context.randomness.noise)
        if codes.with_totals:
            totals, noise_of_totals = tables.totals, tables.noise_of_totals
        for place, table, deviation in zip(group, tables.counts, tables.noise, strict=True):
            counts[place], noise[place] = table, deviation
    return JointTables(counts, noise, totals, noise_of_totals)


def release_drawn_tables(rows: CodedRows, context: TrainingContext) -> Grown:
    """Tables of the drawn attributes, or of all; then a noisy histogram of sums, or a weight of
    their log-odds that the rows choose, if one of these is planned.

    With a weight, the trees have votes already.
    """
    request, accountant = context.request, context.accountant
    roots = _trees_at_once(request)
    private = [table[0] for table in rows.count_classes(0, roots)]
    drawn = draw_attributes(rows, private, context)
    sizes = np.array(request.domain.cells)[drawn]
    leaves = most_leaves(request.domain)
    fits = fitting(sizes, np.ones(len(drawn)), leaves - roots, leaves)
    kept = np.array(drawn)[fits].tolist()
    growth = Growth(request.domain.cells, max(roots, len(kept)), len(request.domain.classes))
    trees = trees_of(release_in_groups(private, kept, context), request, kept, growth)
    if accountant.plan.query(Purpose.MIXTURE):
        start, *added = log_odds(Grown(trees), request, accountant.plan)
        trees = weighed_by_rows(start, added, rows, context)
    if not accountant.plan.query(Purpose.SCORES):
        return Grown(trees, limited=len(drawn) - len(kept))
    context.observe(Event(Phase.COMPARE_SUMS))
    rows.route(growth.splits(np.arange(len(kept))), growth.nodes)
    scores = sums_cut(trees, request, accountant.plan)
    votes = [growth.spread(score) for score in scores.votes]
    counts = rows.count_scores(votes, scores.cuts)
    noise = context.randomness.noise
    noisy = noise.laplace(counts, accountant.spend(Purpose.SCORES), request.rows_per_unit)
    return Grown(trees, noisy, len(drawn) - len(kept))


def _trees_at_once(request: Request) -> int:
    """All of them with two classes, because their sums may be counted; otherwise one."""
    return request.trees if len(request.domain.classes) == 2 else 1


def single_table_deviation(query: PlannedQuery, request: Request) -> float:
    """The largest standard deviation of a count, if each table were released by itself. In groups
    it is smaller, on average over the tables.
    """
    return laplace_deviation(min(query.by_depth), request.rows_per_unit)


INFORMATIVE_TABLES = Learner(
    release_drawn_tables,
    trees_at_once=_trees_at_once,
    rates_mixtures=True,
    noise={Purpose.TABLES: single_table_deviation},
)
