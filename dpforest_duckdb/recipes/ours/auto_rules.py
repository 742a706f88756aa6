"""How `auto` decides: the size of a forest, from public figures and a noisy number of rows.

The main quantity is the strength n·ε: the rows in a count divided by the noise in it. The constants
that were varied are in `constants`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.postprocess.log_odds import CUTS
from dpforest_duckdb.privacy.noise import gaussian_variance, laplace_deviation, noise_scale
from dpforest_duckdb.privacy.plan import Plan
from dpforest_duckdb.recipes.ours import constants
from dpforest_duckdb.recipes.plans import count_queries, evenness
from dpforest_duckdb.recipes.strongest_query import STRONGEST, strongest_is_cheap
from dpforest_duckdb.request import Learner, Request
from dpforest_duckdb.splits import positions
from dpforest_duckdb.splits.table_codes import blocks, deviations

LEAST_PART = Fraction(1, 1000)  # of a budget, for a choice
PURE = 3  # boosting of two classes without a δ, and private medians, start at PURE · ENOUGH
LATE = 3  # the start is LATE times higher if most attributes are not numeric
COARSEST, FEWEST, MOST = 2, 4, 32  # bins: least of joint tables, least of others, most
# with at least so many classes, class means are tried before tables of a few attributes
MANY_CLASSES = 6


def strength(request: Request) -> float:
    """n·ε / k, with n the noisy rows and k the rows per unit; infinite before n is known."""
    if not request.rows:
        return math.inf
    return float(request.rows / noise_scale(request.epsilon, request.rows_per_unit))


def signal(request: Request) -> float:
    """n divided by the noise of a sweep's sums and by √classes; infinite before n is known.

    The noise is that of sums of gradients if each attribute gets an equal part of the budget.
    """
    if not request.rows:
        return math.inf
    attributes, k = len(request.domain.attributes), request.rows_per_unit
    noise = attributes * math.sqrt(2) * noise_scale(request.epsilon, k)
    if request.rho:
        noise = math.sqrt(attributes * gaussian_variance(request.rho, k**2))
    return request.rows / noise / math.sqrt(_classes(request))


def boosting_pays(request: Request) -> bool:
    """Whether the sums that boosting needs are well above their noise.

    With a δ boosting starts at CLEAR times √classes; without one and with two classes at three
    times ENOUGH, because each of two sweeps gets about a third of the budget. It starts LATE times
    later if most attributes are not numeric. Numbers can start earlier because boosting cuts them
    at private medians and begins with their class means. With a δ it also starts later if the δ
    does not make the noise of a sweep smaller. Without a δ and with several classes it starts where
    deep random trees pay.
    """
    early = mostly_numeric(request)
    if request.rho:
        early = early and signal(request) > signal(replace(request, delta=0))
        needed = constants.CLEAR * math.sqrt(_classes(request))
    elif _classes(request) == 2:
        needed = PURE * constants.ENOUGH
    else:
        return deep_trees_pay(request)
    return signal(request) >= needed * (1 if early else LATE)


def one_tree_shows_all(request: Request) -> bool:
    """Whether a greedy tree beside sums is better than boosting, where boosting pays.

    With two attributes and two classes, if there is no δ: one tree shows what the two attributes
    say together, and boosting divides ε among many trees.
    """
    return len(request.domain.attributes) == _classes(request) == 2 and not request.rho


def medians_pay(request: Request) -> bool:
    """Whether `tree-beside-sums` cuts numeric attributes at private medians.

    It does from the signal at which boosting starts without a δ, for two classes and mostly numeric
    attributes. The signal is that without a δ, because sums use none.
    """
    return signal(replace(request, delta=0)) >= PURE * constants.ENOUGH


def random_trees_pay(request: Request) -> bool:
    """Whether random trees of boosting are worth half of the budget. Without a δ only deep ones
    are.
    """
    if request.rho:
        return signal(request) >= constants.ENOUGH
    return deep_trees_pay(request)


def deep_trees_pay(request: Request) -> bool:
    """Whether the signal is strong enough for deep random trees and finer bins."""
    most = 1 if request.rho else _most_of_a_row(request)
    return signal(request) >= constants.AMPLE * most


def _most_of_a_row(request: Request) -> int:
    """The most that a row adds to the sums of gradients and hessians (`learners.boosting`)."""
    return 1 if _classes(request) == 2 else 3


def mostly_numeric(request: Request) -> bool:
    attributes = request.domain.attributes
    return 2 * sum(attribute.kind == "numeric" for attribute in attributes) > len(attributes)


def tree_pays(request: Request) -> bool:
    """Whether a greedy tree beside the sums is worth its share: if most attributes are numeric.

    A tree finds rules on several attributes, which sums cannot; and sums count overlapping
    attributes twice. It needs rows for two leaves. The sums of two classes are fitted, and where a
    tree would pay, boosting is better. With several classes boosting is better from where it
    starts.
    """
    if not mostly_numeric(request) or _classes(request) == 2:
        return False
    return leaves(request) >= 2 and not boosting_pays(request)


def tree_percent(request: Request) -> int:
    """The tree's percentage of the budget of tree and sums: the more leaves rows allow, the more.

    It is a quarter for few rows, which only the recipe by name has.
    """
    return int(min(max(100 * leaves(request) / 7, 25), 60))


def leaves(request: Request) -> float:
    """How many leaves of a greedy tree the rows fill.

    The strength is divided by the classes of a leaf, and by √classes for the noise in them. It is
    also multiplied by the Gini impurity of the class shares, in parts of the largest one: 1 if
    all classes are equally frequent, 0 if all rows have one class.
    """
    classes = len(request.domain.classes)
    seen = np.clip(np.array(request.histogram or [1] * classes), 0, None)
    shares = seen / max(seen.sum(), 1)
    mixed = float(1 - (shares**2).sum()) * classes / (classes - 1)
    return strength(request) * mixed / math.pow(classes, 1.5) / constants.ENOUGH


def careful(rows: int, request: Request) -> Request:
    """The request with `rows` minus CAUTION standard deviations of their noise, at least 1."""
    less = constants.CAUTION * _row_noise(request) * math.sqrt(_classes(request))
    return replace(request, rows=max(int(rows - less), 1))


def _row_noise(request: Request) -> float:
    """The standard deviation of the noise in the rows of a class."""
    return Plan(count_queries(request)).row_noise(request.rows_per_unit)


def recut(domain: Domain, bins: int) -> Domain:
    """The domain with its numeric attributes in about that many bins."""
    return replace(domain, attributes=tuple(each.recut(bins) for each in domain.attributes))


def releases_all_tables(request: Request) -> bool:
    """Whether the recipe is one of joint tables: all tables are released together.

    Never if fewer trees are requested than there are attributes. The request should have a careful
    number of rows.
    """
    return _every(request) and joint_tables_fit(request)


def releases_no_table(request: Request) -> bool:
    """Whether there are too few rows for the table of any attribute. Never if fewer trees are
    requested than there are attributes.
    """
    return _every(request) and out_of_reach(request)


def sums_use_all(request: Request) -> bool:
    """Whether `log-odds` would use the table of every attribute, and joint tables show all of them.

    Not if there is a number of more than MOST / 2 values. Never if fewer trees are requested than
    there are attributes. The request should have a careful number of rows.
    """
    attributes = request.domain.attributes
    if not _every(request) or not all(_shown(each, MOST // 2) for each in attributes):
        return False
    return _shown_together(request) == _wanted(request) == len(attributes)


def _every(request: Request) -> bool:
    return request.trees == len(request.domain.attributes)


def out_of_reach(request: Request) -> bool:
    """Whether there are three classes or more, and fewer rows in a cell of a table than half the
    scale of the noise in its count.

    n is at least LEAST_ROWS. The request should have a careful number of rows.
    """
    cells = [len(each.expected) for each in recut(request.domain, FEWEST).attributes]
    rows = max(request.rows, constants.LEAST_ROWS) / _classes(request) * len(cells) / sum(cells)
    noise = noise_scale(request.epsilon, request.rows_per_unit) / (1 - draw_percent(request) / 100)
    return _classes(request) > 2 and 2 * rows < noise


def joint_tables_fit(request: Request) -> bool:
    """Whether the tables of all attributes can be released together, by a careful number of rows.

    Attributes are shown by such a table unless they are numbers of more values than joint noise
    allows bins; if there are few figures, of more than half of MOST. With two classes most
    attributes must be shown. With more classes all must be, because `log-odds` draws a number
    together with its bins. If joint noise is too much for any bins, tables fit only if all
    attributes are shown and say much more than those of the few that would be chosen.

    Not if sums are to be fitted, unless the tables of all attributes together have less noise than
    those of the few.
    """
    attributes, bins = len(request.domain.attributes), _joint_bins(request)
    two = _classes(request) == 2
    if _shown_together(request) < (attributes // 2 + 1 if two and bins else attributes):
        return False
    if not bins and not _all_say_more(request):
        return False
    fitted = two and models_differ(request)
    return not fitted or _finer_together(request)


def _shown_together(request: Request) -> int:
    """How many attributes are shown by tables that are released together."""
    bins = _joint_bins(request)
    values = max(bins, MOST // 2) if few_figures_fit(request) else bins
    return sum(_shown(attribute, values) for attribute in request.domain.attributes)


def _shown(attribute: Attribute, values: int) -> bool:
    """Whether it is no number, or has at most so many values, or a bin for each in any case."""
    most = attribute.recut(MOST).proper
    return attribute.kind != "numeric" or most <= max(values, attribute.recut(COARSEST).proper)


def _joint_bins(request: Request) -> int:
    """The bins that joint noise allows numeric attributes; 0 if it is too much for any."""
    bins = MOST
    while bins >= COARSEST and (
        roughness(_figures(request.domain.attributes, bins), request) > constants.CLEAN
    ):
        bins //= 2
    return bins if bins >= COARSEST else COARSEST if few_figures_fit(request) else 0


def few_figures_fit(request: Request) -> bool:
    """Whether there are few joint figures, at most MOST, with little noise for the rows of a class.

    Then an ordered attribute counts as one figure, because its neighbouring values are similar. All
    figures count once for each pair of classes: the more pairs, the more often noise reverses one.
    The request should have a careful number of rows; CAUTION is taken off once more. With two
    classes they count as at least LEAST_ROWS, because sums of so few rows would have only one
    table.
    """
    attributes, classes = request.domain.attributes, _classes(request)
    if _figures(attributes, COARSEST) > MOST:
        return False
    others = [each for each in attributes if not each.in_order]
    sure = careful(request.rows, request)
    if classes == 2:
        sure = replace(sure, rows=max(sure.rows, constants.LEAST_ROWS))
    figures = _figures(others, COARSEST) + len(attributes) - len(others)
    return above_noise(math.comb(classes, 2) * figures, sure)


def _figures(attributes: Iterable[Attribute], bins: int) -> int:
    return sum(blocks([each.recut(bins) for each in attributes]))


def roughness(figures: int, request: Request) -> float:
    """The noise of one of that many joint figures, divided by the rows of a class.

    All classes are taken to be equally frequent.
    """
    noise = figures * noise_scale(request.epsilon, request.rows_per_unit) / math.sqrt(3)
    return noise * _classes(request) / max(request.rows, 1)


def above_noise(figures: int, request: Request) -> bool:
    """Whether a class has at least as many rows as `figures` scales of the noise.

    The largest noise of so many joint figures is about that: above it in nearly half of all cases.
    `few_figures_fit` counts each figure once for each pair of classes, which asks for more.
    """
    noise = noise_scale(request.epsilon, request.rows_per_unit)
    return figures * _classes(request) * noise <= request.rows


def adapt_jointly(histogram: Integers, request: Request) -> Request:
    """All attributes, in as many bins as joint noise allows; none if they are out of reach."""
    seen = replace(careful(int(histogram.sum()), request), histogram=tuple(histogram.tolist()))
    domain = recut(seen.domain, max(_joint_bins(seen), COARSEST))
    trees = 0 if out_of_reach(seen) else len(domain.attributes)
    return replace(seen, trees=trees, depth=1, domain=domain)


def models_differ(request: Request) -> bool:
    """Whether the rows can tell models of the same tables apart, in a choice."""
    return strength(request) >= constants.AMPLE


def choice_part(request: Request) -> Fraction:
    """The part of a budget for a choice by the rows: CHECK percent up to n·ε = AMPLE, then less.

    A choice that costs a part s of ε errs by about 1 / (s·n·ε) of the rows, and what it takes from
    all other queries grows with s. So the best s is proportional to 1 / √(n·ε). It is never less
    than LEAST_PART.
    """
    rows = request.rows and strength(request)  # CHECK percent too if n is not known
    falling = math.sqrt(constants.AMPLE / max(rows, constants.AMPLE))
    return max(Fraction(round(constants.CHECK * falling * 100), 10_000), LEAST_PART)


def draw_percent(request: Request) -> int:
    """The percentage of a budget for drawing attributes; the rest is for their tables.

    With three classes or more it is a quarter less, because their tables have more counts.
    """
    return constants.CHOICE if _classes(request) == 2 else constants.CHOICE * 3 // 4


def means_fit(request: Request) -> bool:
    """Whether the class means of all attributes have little noise, by a careful number of rows.

    For MANY_CLASSES or more, and mostly numeric attributes: with fewer classes tables of the
    strongest attributes, in bins that suit them, are better. Not if an attribute has many
    categories in no order, nor if it would cost too much to ask whether one attribute suffices.
    CAUTION is taken off the rows once more.
    """
    attributes = request.domain.attributes
    if _classes(request) < MANY_CLASSES or not mostly_numeric(request):
        return False
    if request.trees < len(attributes) or not strongest_is_cheap(request, request.rows):
        return False
    sizes = [size for each in attributes for size in positions.blocks(each)]
    sure = careful(request.rows, request)
    return max(sizes, default=1) == 1 and above_noise(len(sizes), sure)


def noise_of_products(learner: Learner, plan: Plan, request: Request) -> float:
    """The noise of the query "products" in a plan, divided by the noisy number of rows.

    It is 0 while that number is unknown, and infinite if the plan gives the query no budget.
    """
    query = plan.query("products")
    if not query or not query.total:
        return math.inf
    deviation = learner.deviation(query, request)
    assert deviation is not None, "a query of sums has noise"
    return deviation / request.rows if request.rows else 0.0


def _finer_together(request: Request) -> bool:
    """Whether joint tables of all attributes have less noise than tables of a chosen few."""
    attributes, k = request.domain.attributes, request.rows_per_unit
    if _wanted(request) == len(attributes):
        return False
    joint = deviations(attributes, attributes, request.epsilon, k)
    return float(np.mean(joint)) < _noise_of_few(request)


def _all_say_more(request: Request) -> bool:
    """Whether joint tables of all attributes say half as much again as tables of a chosen few.

    What tables say is measured by their number divided by the variance of their noise. They must
    say more because the few are not any attributes, but the strongest.
    """
    attributes, k = recut(request.domain, COARSEST).attributes, request.rows_per_unit
    joint = deviations(attributes, attributes, request.epsilon, k)
    said = len(attributes) / float(np.mean(np.square(joint)))
    return said >= 1.5 * _wanted(request) / _noise_of_few(request) ** 2


def _noise_of_few(request: Request) -> float:
    """The standard deviation of the noise in tables of the few attributes that would be chosen."""
    part = (1 - draw_percent(request) / 100) / _wanted(request)
    return math.sqrt(2) * noise_scale(request.epsilon, request.rows_per_unit) / part


def _wanted(request: Request) -> int:
    """The number of attributes that are worth a table each; all, if that is half of them.

    The noise in a sum of K tables, each of which gets 1/K of the budget, has a variance of about
    K³/(n·ε)². So K grows with (n·ε)^(2/3). Above four attributes it grows with √(n·ε). They are
    fewer if the strongest attribute leaves little unexplained, and fewer if some classes are rare.
    """
    attributes = len(request.domain.attributes)
    clear = strength(request) * unexplained(request) / math.sqrt(_classes(request))
    if request.histogram:
        clear *= evenness(np.array(request.histogram), _row_noise(request))
    scaled = constants.TABLES * clear
    wanted = max(1, round(min(math.sqrt(scaled) / 2, math.pow(scaled, 2 / 3) / 4)))
    return attributes if wanted >= attributes / 2 else wanted


def unexplained(request: Request) -> float:
    """The rows that the strongest attribute alone classifies wrongly, plus CAUTION standard
    deviations of their noise, divided by those outside the most frequent class; at most 1.

    It is 1 if the figure was not queried. Without noise it is 1 - λ, with the λ of Goodman and
    Kruskal (Measures of association for cross classifications, JASA, 1954).
    """
    if request.misclassified is None:
        return 1.0
    query = Plan(request.first).query(STRONGEST)
    assert query is not None, "the figure has been queried"
    noise = laplace_deviation(query.total, request.rows_per_unit)
    others = sum(request.histogram) - max(request.histogram)
    wrong = request.misclassified + constants.CAUTION * noise
    return min(max(wrong, 0.0) / max(others, 1), 1.0)


def _classes(request: Request) -> int:
    return len(request.domain.classes)


def adapt(histogram: Integers, request: Request) -> Request:
    """Trees and bins by strength, from noisy class counts of all rows, minus CAUTION deviations."""
    seen = replace(careful(int(histogram.sum()), request), histogram=tuple(histogram.tolist()))
    trees = min(request.trees, _wanted(seen))
    bins = 2 * round(constants.TABLES / 2 * strength(seen) / trees / math.sqrt(_classes(request)))
    bins = min(max(bins, FEWEST), MOST)
    return replace(seen, trees=trees, depth=1, domain=recut(request.domain, bins))


def sums_are_fitted(request: Request) -> bool:
    """Whether sums of log-odds are counted in bins and fitted. Only those of two classes are.

    A cell of the histogram of two sums should have at least as many rows, on average, as the
    standard deviation of its noise.
    """
    cells = 2 * (len(CUTS) + 1) ** 2
    rows = strength(request) * constants.CHECK / 100 / cells
    return _classes(request) == 2 and rows >= math.sqrt(2)
