"""How `auto` decides between recipes, from public figures and a noisy number of rows.

The main quantity is the strength n·ε: the rows in a count divided by the noise in it. The constants
that were varied are in `constants`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.learners.boosting import l1_per_row
from dpforest_duckdb.privacy.noise import gaussian_variance, laplace_deviation, noise_scale
from dpforest_duckdb.privacy.plan import Plan
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.recipes.ours import constants
from dpforest_duckdb.recipes.row_count_queries import count_queries, evenness
from dpforest_duckdb.recipes.strongest_query import strongest_is_cheap
from dpforest_duckdb.request import Learner, Request
from dpforest_duckdb.splits import positions

LEAST_PART = Fraction(1, 1000)  # of a budget, for a choice
FOR_TWO_CLASSES = 3  # times ENOUGH: see `signal_of_two_classes`
LATE = 3  # times the signal from which boosting starts: if most attributes are not numeric
FINER = 10  # times AMPLE: the signal for the finest bins, and without a δ for more trees
FEWEST, MOST = 4, 32  # bins; joint tables may have fewer
MOST_RATED = 2**12  # trees times classes whose sums rows rate: more make a statement too large
# From so many classes on, class means may be better than tables of a few attributes.
# With a δ, the signal from which boosting starts grows with the classes only up to so many.
MANY_CLASSES = 6
# A part of the rows outside the most frequent class. If one attribute alone misclassifies fewer
# rows than that, its table is better than boosting, whose steps have a limit, and better than a
# tree beside many tables.
LITTLE = 0.05


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
    if request.squared_mu:
        noise = math.sqrt(attributes * gaussian_variance(request.squared_mu, k**2))
    return request.rows / noise / math.sqrt(classes_in(request))


def signal_of_two_classes() -> int:
    """The limit for the signal that several rules use with two classes: FOR_TWO_CLASSES · ENOUGH.

    Without a δ boosting starts there, and so do private medians beside a greedy tree, which also
    serve several classes. With a δ boosting has a second sweep from there on.
    """
    return FOR_TWO_CLASSES * constants.ENOUGH


def boosting_pays(request: Request) -> bool:
    """Whether the sums that boosting needs are well above their noise.

    With a δ, `auto` picks boosting from a signal of CLEAR · classes on, at most MANY_CLASSES of
    them. Without one and with two classes, it does from `signal_of_two_classes` on. If most
    attributes are not numeric, the signal must be LATE times larger: only for numbers are there
    private medians and class means. Without a δ and with several classes, boosting pays where
    random trees do.

    Without a δ and with two classes, the signal times how `mixed` these are must reach
    `signal_of_two_classes` too. If one class is rare, gradients vary less, and log-odds of a few
    attributes are better.
    """
    clear = signal(request)
    if request.squared_mu:
        needed = constants.CLEAR * min(classes_in(request), MANY_CLASSES)
    elif classes_in(request) == 2:
        needed = signal_of_two_classes()
        if clear * mixed(request) < needed:
            return False
    else:
        return signal_is_strong(request)
    return clear >= needed * (1 if mostly_numeric(request) else LATE)


def one_tree_shows_all(request: Request) -> bool:
    """Whether boosting pays, but a greedy tree beside sums is better.

    With two attributes and two classes, if there is no δ: one tree shows what the two attributes
    say together, and boosting divides ε among many trees.
    """
    two = len(request.domain.attributes) == classes_in(request) == 2
    return two and not request.squared_mu and boosting_pays(request)


def signal_is_strong(request: Request) -> bool:
    """Whether the signal is AMPLE: with a δ for finer bins, without one for random trees.

    With a δ rows count in proportion to how `mixed` the classes are. Without one and with several
    classes the signal must be three times larger, because a row changes their sums by up to 3.
    """
    if request.squared_mu:
        return signal(request) * mixed(request) >= constants.AMPLE
    return signal(request) >= constants.AMPLE * l1_per_row(classes_in(request))


def finer_bins_pay(request: Request) -> bool:
    """Whether bins may be still finer, and without a δ random trees twice as many.

    The signal times how `mixed` the classes are must be FINER · AMPLE; without a δ and with several
    classes three times that, because a row changes their sums by up to 3.
    """
    per_row = 1 if request.squared_mu else l1_per_row(classes_in(request))
    return signal(request) * mixed(request) >= FINER * constants.AMPLE * per_row


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
    if not mostly_numeric(request) or classes_in(request) == 2:
        return False
    return leaves(request) >= 2 and not boosting_pays(request)


def leaves(request: Request) -> float:
    """How many leaves of a greedy tree the rows fill.

    The strength is divided by the classes of a leaf, and by √classes for the noise in them. It is
    also multiplied by how `mixed` the classes are.
    """
    rows = strength(request) * mixed(request)
    return float(filled_leaves(rows / math.pow(classes_in(request), 1.5)))


def filled_leaves(strength: float | Fraction) -> float | Fraction:
    """How many leaves of a greedy tree a strength fills: each needs ENOUGH of it."""
    return strength / constants.ENOUGH


def depth_for(leaves: float | Fraction, most: int) -> int:
    """The depth at which a tree with binary splits has about so many leaves: from 1 to `most`."""
    return max(1, min(most, round(math.log2(max(leaves, 1)))))


def mixed(request: Request) -> float:
    """The Gini impurity of the noisy class shares, divided by its largest possible value: 1 if all
    classes are equally frequent, were not counted, or if noise leaves no rows; 0 if all rows have
    one class.
    """
    classes = classes_in(request)
    seen = np.clip(np.array(request.histogram or [1] * classes), 0, None)
    shares = seen / seen.sum() if seen.any() else np.full(classes, 1 / classes)
    return float(1 - (shares**2).sum()) * classes / (classes - 1)


def careful(rows: int, request: Request) -> Request:
    """The request with `rows` minus CAUTION standard deviations of their noise, at least 1."""
    less = constants.CAUTION * _row_noise(request) * math.sqrt(classes_in(request))
    return replace(request, rows=max(int(rows - less), 1))


def with_histogram(classes: Integers, request: Request) -> Request:
    """The request after a count of the rows: `classes[class]`, which are noisy, and their sum, less
    what `careful` takes off.
    """
    return replace(careful(int(classes.sum()), request), histogram=tuple(classes.tolist()))


def _row_noise(request: Request) -> float:
    """The standard deviation of the noise in the rows of a class."""
    return Plan(count_queries(request)).row_noise(request.rows_per_unit)


def above_noise(figures: int, request: Request) -> bool:
    """Whether a class has at least as many rows as `figures` scales of the noise.

    The largest noise of so many joint figures is about that: above it in nearly half of all cases.
    `few_figures_fit` counts each figure once for each pair of classes, which asks for more.
    """
    noise = noise_scale(request.epsilon, request.rows_per_unit)
    return figures * classes_in(request) * noise <= request.rows


def models_differ(request: Request) -> bool:
    """Whether the rows can tell models of the same tables apart, in a choice."""
    return strength(request) >= constants.AMPLE


def few_sums(request: Request) -> bool:
    """Whether a statement can rate the sums of the trees of one split that are requested."""
    return request.trees * classes_in(request) <= MOST_RATED


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
    return constants.CHOICE if classes_in(request) == 2 else constants.CHOICE * 3 // 4


def means_pay(request: Request) -> bool:
    """Whether the class means of all attributes have little noise, by a careful number of rows, but
    their tables would have too much.

    False for fewer than MANY_CLASSES classes, or if most attributes are not numeric: then tables of
    the strongest attributes, in bins that suit them, are better. False if an attribute has many
    categories in no order, if it costs too much to ask whether one attribute suffices, or if
    `all_trees_wanted` is false. CAUTION is taken off the rows once more.
    """
    attributes = request.domain.attributes
    if classes_in(request) < MANY_CLASSES or not mostly_numeric(request):
        return False
    if not all_trees_wanted(request) or not strongest_is_cheap(request):
        return False
    if tables_wanted(request) == len(attributes):
        return False
    sizes = [size for each in attributes for size in positions.blocks(each)]
    sure = careful(request.rows, request)
    return max(sizes, default=1) == 1 and above_noise(len(sizes), sure)


def all_trees_wanted(request: Request) -> bool:
    """Whether no fewer trees are requested than there are attributes."""
    return request.trees >= len(request.domain.attributes)


def noise_of_products(learner: Learner, plan: Plan, request: Request) -> float:
    """The noise of the query "products" in a plan, divided by the noisy number of rows.

    It is 0 while that number is unknown, and infinite if the plan gives the query no budget.
    """
    query = plan.query(Purpose.PRODUCTS)
    if not query or not query.total:
        return math.inf
    deviation = learner.deviation(query, request)
    assert deviation is not None, "a query of sums has noise"
    return deviation / request.rows if request.rows else 0.0


def tables_wanted(request: Request) -> int:
    """The number of attributes that are worth a table each. It is all if at most one would be left
    out, or with two classes at most half of them: then nothing is spent on draws.

    The noise in a sum of K tables, each of which gets 1/K of the budget, has a variance of about
    K³/(n·ε)². So K grows with (n·ε)^(2/3). Above four attributes it grows with √(n·ε). They are
    fewer if the strongest attribute leaves little unexplained, and fewer if some classes are rare.
    """
    attributes = len(request.domain.attributes)
    clear = strength(request) * unexplained(request) / math.sqrt(classes_in(request))
    if request.histogram:
        clear *= evenness(np.array(request.histogram), _row_noise(request))
    scaled = constants.TABLES * clear
    wanted = max(1, round(min(math.sqrt(scaled) / 2, math.pow(scaled, 2 / 3) / 4)))
    enough = attributes / 2 if classes_in(request) == 2 else attributes - 1
    return attributes if wanted >= enough else wanted


def unexplained(request: Request) -> float:
    """The rows that the strongest attribute alone classifies wrongly, plus CAUTION standard
    deviations of their noise, divided by those outside the most frequent class; at most 1.

    It is 1 if the figure was not queried. Without noise it is 1 - λ, with the λ of Goodman and
    Kruskal (Measures of association for cross classifications, JASA, 1954).
    """
    if request.misclassified is None:
        return 1.0
    query = Plan(request.preliminary).planned(Purpose.STRONGEST)
    noise = laplace_deviation(query.total, request.rows_per_unit)
    others = request.outside_most_frequent
    wrong = request.misclassified + constants.CAUTION * noise
    return min(max(wrong, 0.0) / max(others, 1), 1.0)


def most_are_classified(request: Request) -> bool:
    """Whether the strongest attribute alone classifies more than half of all rows correctly."""
    assert request.misclassified is not None, "the figure has been queried"
    return 2 * request.misclassified < request.rows


def little_is_unexplained(request: Request) -> bool:
    """Whether the strongest attribute alone classifies nearly all rows correctly, so that all but
    LITTLE of those outside the most frequent class are explained.
    """
    assert request.misclassified is not None, "the figure has been queried"
    return request.misclassified < LITTLE * request.outside_most_frequent


def classes_in(request: Request) -> int:
    return len(request.domain.classes)
