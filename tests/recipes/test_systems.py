"""The budgets and sizes of the published systems against their papers, and every form trained."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import duckdb
import numpy as np
import pytest
from agreement import assert_agree
from variants import some

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.file import load_domain
from dpforest_duckdb.domain.types import INTEGER, VARCHAR
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.learners.levels import LEVELS
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.privacy.amounts import NANO, nano_epsilon
from dpforest_duckdb.privacy.plan import Plan
from dpforest_duckdb.recipes import RECIPES, find
from dpforest_duckdb.recipes.conformance import NO_TEXT
from dpforest_duckdb.recipes.published import rana_forest
from dpforest_duckdb.recipes.published.guan_aggregation import BY_DRAWN_ERRORS, BY_TRUE_ERRORS
from dpforest_duckdb.recipes.recipe import OURS, Recipe
from dpforest_duckdb.request import Request
from dpforest_duckdb.splits.utilities import Utility

PUBLISHED = [name for name, recipe in RECIPES.items() if recipe.one_form != OURS]
FORMS = [(name, False) for name in RECIPES] + [
    (name, True) for name, recipe in RECIPES.items() if recipe.published
]


def domain(categorical: int, numeric: int = 0) -> Domain:
    """Attributes of three categories, and of 32 bins."""
    attributes = [Attribute(f"a{i}", "categorical", ("x", "y", "z")) for i in range(categorical)]
    attributes += [Attribute(f"n{i}", "numeric", lower=0, upper=31) for i in range(numeric)]
    types = {a.name: INTEGER if a.kind == "numeric" else VARCHAR for a in attributes}
    return Domain(tuple(attributes), "c", ("p", "q")).bind({**types, "c": VARCHAR})


def planned(
    name: str, *, published: bool = False, epsilon: str = "1", of: Domain, **how: int
) -> tuple[Plan, Request, Recipe]:
    recipe = find(name, as_published=published)
    request = recipe.request(of, nano_epsilon(epsilon), **how)
    return recipe.plan(request), request, recipe


def shares(plan: Plan, purpose: str) -> list[float]:
    """ε by depth."""
    query = plan.query(purpose)
    assert query is not None
    return [epsilon / NANO for epsilon in query.by_depth]


# trees and depth as the texts count them; the root has depth 1 where the last is 1
PARAMETERS = {
    # thesis, Table 4.1
    "private-rdt": (10, "m/2", 0),
    "bojarski-forest:deep": (None, 14, 0),
    "bojarski-forest:deep-majority": (None, 14, 0),
    "smooth-forest": (100, "(4.37)", 0),
    "diprime": (10, 8, 0),
    "diffprf": (20, 5, 0),
    "hou-forest": (50, 7, 1),
    "guan-dpgdf": (50, "m/2", 0),
    "dprfmaxtree": (50, None, 0),
    "tpdprf": (90, 5, 1),
    # its caption: parameters as in DiffPRF are likely
    "dprf-gini": (20, 5, 0),
    # its Figures 4.4 and 5.3
    "bojarski-forest": (None, 6, 0),
    "thesis-forest": (15, "m/2", 0),
    # Mu et al. 2016, 4.2; Fletcher & Islam 2015, 4 and 5; the code of Vos et al. 2023
    "diffprfs": (25, 5, 0),
    "dpdf": (1, 5, 1),
    "diffp-id3": (1, 5, 1),
    "privatree": (1, 4, 0),
    # Mu et al. 2016, 2.3; the thesis, 4.1.1
    **dict.fromkeys(("sulq-id3", "pinq-id3", "diffgen", "dt-diff"), (1, None, 0)),
    "diffp-c45": (1, None, 1),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_trees_and_depth_are_those_of_the_texts(name: str) -> None:
    recipe, (trees, depth, root) = find(name), PARAMETERS[name]
    assert trees is None or recipe.trees == trees
    assert recipe.depth_of_root == root
    if isinstance(depth, int):
        assert recipe.depth == depth
        assert recipe.request(domain(4), NANO).depth == depth - root
    elif depth is not None:
        assert callable(recipe.depth)


ASSUMED_SIZES = [
    (name, line.field, int(said[0]))
    for name in PUBLISHED
    for line in RECIPES[name].lines
    if line.field in ("trees", "depth") and isinstance(getattr(RECIPES[name], line.field), int)
    if (said := re.search(r"\b\d+\b", line.assumed or line.cut))
]


@pytest.mark.parametrize(("name", "field", "said"), ASSUMED_SIZES)
def test_trees_and_depth_that_no_text_gives_are_those_that_the_lines_assume(
    name: str, field: str, said: int
) -> None:
    assert getattr(RECIPES[name], field) == said


@pytest.mark.parametrize("name", [name for name, size in PARAMETERS.items() if size[1] == "m/2"])
def test_half_of_the_attributes_is_rounded_as_the_lines_say(name: str) -> None:
    recipe = find(name)
    assert callable(recipe.depth)
    (line,) = [line for line in recipe.lines if line.field == "depth"]
    rounded = math.ceil if "rounded up" in line.assumed else math.floor
    assert "rounded" in line.assumed
    assert [recipe.depth(domain(m)) for m in (2, 5, 8, 13)] == [
        rounded(m / 2) for m in (2, 5, 8, 13)
    ]


def test_numbers_are_cut_into_as_many_intervals_as_the_lines_say() -> None:
    for name in ("diprime", "diffprfs", "snr-forest"):
        recipe = RECIPES[name]
        (line,) = [line for line in recipe.lines if line.field == "bins"]
        said = re.search(r"\b\d+\b", line.assumed or line.cut or line.step)
        assert said is not None
        assert recipe.bins == int(said[0])
    assert RECIPES["snr-forest"].bins == 5, "thesis 4.3.1"


def test_rana_asks_for_a_hundredth_of_all_rows_in_a_child() -> None:
    (line,) = [line for line in RECIPES["rana-forest"].lines if line.field == "adaptation"]
    assert "a hundredth" in line.assumed
    counted = np.array([600, 399])
    adapt = RECIPES["rana-forest"].adaptation.size
    assert adapt is not None
    request = adapt(counted, planned("rana-forest", of=domain(5))[1])
    assert rana_forest.least_support(SimpleNamespace(rows=request.rows)) == 9  # type: ignore[arg-type]


def test_privatree_gives_leaves_a_thousandth_at_least_and_a_half_at_most() -> None:
    """It holds for any number of rows: 2^d / (e n 1 %) is far outside."""
    recipe = find("privatree", as_published=True)
    _, request, _ = planned("privatree", of=domain(6), published=True)
    for rows, share in ((10**9, 0.001), (10, 0.5)):
        plan = recipe.plan(replace(request, rows=rows))
        assert shares(plan, "leaf") == [share]


def test_privatree_gives_leaves_what_they_need_after_the_rows_are_paid_for() -> None:
    """2^4 · 2 / (e n 1 %), for two classes, and no less because rows cost 4 % in one form."""
    for published in (False, True):
        _, request, recipe = planned("privatree", of=domain(6), published=published)
        (leaf,) = shares(recipe.plan(replace(request, rows=10_000)), "leaf")
        assert leaf == pytest.approx(0.16 / math.e, rel=1e-3)


@pytest.mark.parametrize(
    ("budget", "each"), [("0.1", 0.01), ("0.25", 0.025), ("0.5", 0.05), ("1", 0.1), ("2", 0.2)]
)
def test_diffp_id3_in_table_1_of_fletcher_and_islam(budget: str, each: float) -> None:
    for published in (False, True):
        plan, _, _ = planned(
            "diffp-id3", published=published, epsilon=budget, of=domain(8), depth=5
        )
        assert {e for q in plan.queries for e in shares(plan, q.purpose)} == {each}
        assert plan.epsilon == nano_epsilon(budget)


def test_diffp_id3_has_the_original_budget_with_one_node_more() -> None:
    """B / (2(d + 1)) for d splits on a path, as the lines say."""
    plan, request, recipe = planned("diffp-id3", of=domain(8), depth=6)
    assert request.depth == 5
    assert {cost for query in plan.queries for cost in query.by_depth} == {NANO // (2 * (5 + 1))}
    (line,) = [line for line in recipe.lines if "2(d + 1)" in line.step]
    assert "`--depth 6` is the original's d = 5" in line.note


def test_sulq_gives_a_query_b_over_2dm() -> None:
    plan, _, _ = planned("sulq-id3", of=domain(8), depth=4)
    assert shares(plan, "split") == [0.25] * 4  # 2m queries of B/(2dm) each
    assert plan.query("leaf") is None


def test_pinq_halves_every_level() -> None:
    plan, _, _ = planned("pinq-id3", of=domain(8), depth=4)
    assert shares(plan, "size") == [0.1] * 5
    assert shares(plan, "split") == [0.1] * 4
    assert shares(plan, "leaf") == [0.1]


@pytest.mark.parametrize("depth", [1, 3, 5])
def test_diffgen_gives_a_draw_b_over_2_numeric_plus_2h(depth: int) -> None:
    plan, _, _ = planned("diffgen", of=domain(6, numeric=3), depth=depth)
    draw = 1 / (2 * (3 + 2 * depth))
    assert shares(plan, "split") == pytest.approx([(3 + 2) * draw] + [2 * draw] * (depth - 1))
    assert shares(plan, "leaf") == [pytest.approx(0.5)]


@pytest.mark.parametrize("depth", [1, 3])
def test_diffgen_draws_no_points_without_numeric_attributes(depth: int) -> None:
    plan, _, _ = planned("diffgen", of=domain(6), depth=depth)
    assert shares(plan, "split") == pytest.approx([1 / (2 * depth)] * depth)
    assert shares(plan, "leaf") == [pytest.approx(0.5)]


@pytest.mark.parametrize("depth", [2, 4])
def test_hou_by_4_28_to_4_30(depth: int) -> None:
    layers, trees = depth, 5  # d_m layers of nodes, so d_m − 1 splits
    weights = [Fraction(1, layers - i) for i in range(layers)]
    w = 2 * sum(weights[:-1]) + weights[-1]
    for name, unit in (("hou-forest", w), ("hou-forest:sparing", Fraction(2 * layers - 1))):
        for published in (False, True):
            plan, _, _ = planned(name, published=published, of=domain(8), trees=trees, depth=depth)
            expected = [float(weight / unit / trees) for weight in weights]
            assert shares(plan, "histogram") == pytest.approx(expected, abs=1e-8)
            assert shares(plan, "split") == pytest.approx(expected[:-1], abs=1e-8)
    assert w <= 2 * layers - 1, "the unit of (4.30) leaves budget unspent"


def test_guan_by_4_34_which_adds_up_to_more_than_its_half() -> None:
    """A leaf of layer i = 1 … d has ε2 (1 − ∛2) ∛2^(i+1) / (1 − ∛2^d); rigorous, all of ε2."""
    rigorous, request, _ = planned("guan-dpgdf", of=domain(8), depth=4)
    published, _, recipe = planned("guan-dpgdf", published=True, of=domain(8), depth=4)
    root, d = 2 ** (1 / 3), 4
    by_paper = [(1 - root) * root ** (i + 1) / (1 - root**d) / 2 for i in range(1, d + 1)]
    assert shares(published, "leaf of a layer") == pytest.approx(by_paper, abs=1e-7)
    assert sum(shares(published, "leaf of a layer")) == pytest.approx(1.587 / 2, abs=1e-3)
    assert shares(published, "split") == pytest.approx([0.125] * 4)
    assert rigorous.epsilon <= request.epsilon < published.epsilon
    assert recipe.flaws
    assert (recipe.learner, find("guan-dpgdf").learner) == (BY_TRUE_ERRORS, BY_DRAWN_ERRORS)
    assert shares(rigorous, "split") == pytest.approx([0.9 / 2 / 4] * 4)
    assert shares(rigorous, "leaf") == pytest.approx([0.9 / 2])
    rounds = shares(rigorous, "aggregation")
    assert rounds[:-1] == pytest.approx([0.05 / 49] * 49)
    assert rounds[-1] == pytest.approx(0.05)
    alone, _, _ = planned("guan-dpgdf", of=domain(8), trees=1, depth=4)
    assert alone.query("aggregation") is None


@pytest.mark.parametrize(("name", "medians"), [("thesis-forest", 2), ("diprime", 8)])
def test_medians_cost_more_than_the_published_form_charges(name: str, medians: int) -> None:
    """B(½ + (K + 1)/4) for K medians a node: 1.25 B at K = 2."""
    published, _, recipe = planned(name, published=True, of=domain(8), depth=4)
    assert published.epsilon / NANO == pytest.approx(0.5 + (medians + 1) / 4, abs=1e-6)
    assert recipe.flaws
    rigorous, _, _ = planned(name, of=domain(8), depth=4)
    assert rigorous.epsilon / NANO == pytest.approx(1, abs=1e-6)
    assert shares(rigorous, "leaf") == [pytest.approx(0.5)]


def test_xin_gives_d_minus_1_layers_and_the_leaves_their_half() -> None:
    plan, request, recipe = planned("xin-dpgdf", of=domain(9), depth=5)
    assert request.depth == 4
    assert shares(plan, "split") == [0.125] * 4
    assert shares(plan, "leaf") == [0.5]
    assert {query.times for query in plan.queries} == {1}, "trees of disjoint rows have all of B"
    assert callable(recipe.depth)
    assert [recipe.depth(domain(m)) for m in (1, 6, 8, 9, 22)] == [2, 3, 4, 5, 11]


def test_trees_of_all_rows_share_the_budget_whatever_the_plan() -> None:
    """The same plan, with trees that see all rows, gives each of them a part of B."""
    _, disjoint, recipe = planned("xin-dpgdf", of=domain(9), trees=4)
    all_rows = replace(recipe, rows="all")
    shared = all_rows.request(domain(9), disjoint.epsilon, trees=4)
    assert {query.times for query in recipe.plan(disjoint).queries} == {1}
    assert {query.times for query in all_rows.plan(shared).queries} == {4}
    assert all_rows.plan(shared).epsilon <= shared.epsilon


@pytest.mark.parametrize(("trees", "d_m"), [(4, 2), (30, 8), (90, 5), (7, 3)])
def test_liu_by_4_31_and_4_32_in_two_phases(trees: int, d_m: int) -> None:
    """Layer d_t of d_m, the root the first, has the share 1 / (d_m − d_t + 1), for one query."""
    s_t = sum(Fraction(1, layer) for layer in range(1, d_m + 1))
    by_paper = [float(Fraction(1, d_m - t + 1) / s_t / trees) for t in range(1, d_m + 1)]
    for published in (False, True):
        _, request, recipe = planned(
            "tpdprf",
            published=published,
            of=domain(0, 4),
            trees=trees,
            depth=d_m,
            rows_per_unit=3,
        )
        assert request.depth == d_m - 1
        assert (recipe.learner is LEVELS) is not published, "features are selected as published"
        first, second = recipe.phases(request)
        assert (first.trees, second.trees) == (trees // 2, trees - trees // 2)
        assert (first.rows_per_unit, second.rows_per_unit) == (3, 3 if published else 6)
        for phase in (first, second):
            plan = recipe.plan(phase)
            assert shares(plan, "split") == pytest.approx(by_paper[:-1], abs=1e-8)
            assert shares(plan, "leaf") == pytest.approx(by_paper[-1:], abs=1e-8)
            assert {query.purpose for query in plan.queries} == {"split", "leaf"}
            assert {query.times for query in plan.queries} == {phase.trees}
        assert recipe.whole_plan(request).epsilon / NANO == pytest.approx(1, abs=1e-6)


def test_c45_pays_for_the_points_of_every_numeric_attribute() -> None:
    """ε = B / ((2 + k)d + 2), of d splits on a path and k numeric attributes."""
    plan, request, _ = planned("diffp-c45", of=domain(5, numeric=3), depth=5)
    each = 1 / ((2 + 3) * 4 + 2)
    assert request.depth == 4
    assert shares(plan, "size") == pytest.approx([each] * 5, abs=1e-8)
    assert shares(plan, "split") == pytest.approx([4 * each] * 4, abs=1e-8)
    assert shares(plan, "leaf") == pytest.approx([each], abs=1e-8)


def test_rana_gives_every_leaf_all_of_the_budget() -> None:
    plan, _, recipe = planned("rana-forest", of=domain(5), trees=7, depth=3)
    assert shares(plan, "leaf") == [pytest.approx(1)]
    assert shares(plan, "split") == pytest.approx([1] * 3)
    assert {query.times for query in plan.queries} == {7}
    assert recipe.flaws


def test_dprf_gini_halves_every_level_as_diffprf_does() -> None:
    plan, _, _ = planned("dprf-gini", of=domain(5), trees=4, depth=4)
    assert shares(plan, "size") == [0.025] * 5
    assert shares(plan, "split") == [0.025] * 4
    assert shares(plan, "leaf") == [0.025]


@pytest.mark.parametrize("name", ["diffprf", "diffprfs"])
def test_only_the_published_form_pays_for_a_size_that_nothing_uses(name: str) -> None:
    """ε' / (2(d + 1)) a query as published, ε' / (d + 1) without the sizes."""
    plan, _, _ = planned(name, of=domain(5), trees=4, depth=4, published=True)
    assert {q.purpose: len(q.by_depth) for q in plan.queries} == {"size": 5, "split": 4, "leaf": 1}
    assert {cost for q in plan.queries for cost in q.by_depth} == {NANO // 40}
    plan, _, _ = planned(name, of=domain(5), trees=4, depth=4)
    assert {q.purpose: len(q.by_depth) for q in plan.queries} == {"split": 4, "leaf": 1}
    assert {cost for q in plan.queries for cost in q.by_depth} == {NANO // 20}


def test_the_histograms_of_privatree_cost_once_for_each_attribute() -> None:
    plan, request, recipe = planned("privatree", of=domain(6), published=True)
    assert plan.epsilon == pytest.approx(6.5 * NANO, abs=10), "the most before the rows are known"
    assert recipe.adaptation.size is not None
    settled = recipe.adaptation.size(np.array([10_000, 10_000]), request)
    plan = recipe.plan(settled)
    (leaf,) = shares(plan, "leaf")
    assert 0.01 < leaf < 0.2
    assert shares(plan, "split") == pytest.approx([6 * (1 - leaf) / 4] * 4, abs=1e-8)


@pytest.mark.parametrize(("attributes", "depth"), [(4, 2), (13, 7), (14, 7), (22, 11)])
def test_the_thesis_rounds_half_of_the_attributes_up(attributes: int, depth: int) -> None:
    assert planned("thesis-forest", of=domain(attributes))[1].depth == depth


UTILITIES = {
    **dict.fromkeys(("diffp-id3", "diffp-c45", "diffprf"), ("choose", "Gini")),
    "diffprfs": ("choose", "max count"),
    **dict.fromkeys(("diffgen", "dt-diff"), ("learner", "max count")),
}


@pytest.mark.parametrize("name", UTILITIES)
def test_information_gain_is_what_the_texts_name_first(name: str) -> None:
    """So it is the default as published, and a variant of the rigorous form."""
    field, private_utility = UTILITIES[name]
    recipe = RECIPES[name]
    published = recipe.published
    assert published is not None
    assert set(recipe.variants) == set(published.variants)
    lines = [line for line in recipe.lines if "information gain" in line.step]
    assert any(line.standing == "repaired" and line.source != NO_TEXT for line in lines)
    gain = ("information gain", False)
    most = {False: ("max count", False), True: ("max count", True)}
    for form, private in ((published, False), (recipe, True)):
        by_gain, by_max = (replace(form, **form.variants[each]) for each in ("ig", "max"))
        assert utilities_of(getattr(by_gain, field)) == {gain}
        assert utilities_of(getattr(by_max, field)) == {most[private]}, "monotone in private forms"
    assert utilities_of(getattr(published, field)) == {gain}
    assert utilities_of(getattr(recipe, field)) == {(private_utility, True)}


@pytest.mark.parametrize(
    ("name", "utility"), [("dprfmaxtree", "F_Max"), ("hou-forest", "gain and ratio")]
)
def test_points_and_attributes_have_one_utility(name: str, utility: str) -> None:
    assert utilities_of(find(name, as_published=True).choose) == {(utility, False)}


def utilities_of(piece: object) -> set[tuple[str, bool]]:
    """The utilities inside a chooser or learner, functions in functions: names, and if monotone."""
    found, left = set(), [piece]
    while left:
        inner = left.pop()
        cells = getattr(getattr(inner, "grow", inner), "__closure__", None) or ()
        left += [cell.cell_contents for cell in cells]
        utilities = (inner, getattr(inner, "attribute", None), getattr(inner, "point", None))
        found |= {(u.name, u.monotone) for u in utilities if isinstance(u, Utility)}
    return found


def test_a_single_tree_has_one_phase() -> None:
    _, request, recipe = planned("tpdprf", of=domain(8), trees=1)
    assert recipe.phases(request) == (request,)


@pytest.mark.parametrize(
    ("s", "discrete", "expected"),
    [(0, 8, 4), (1, 0, 1), (2, 0, 2), (4, 0, 3), (6, 9, 8), (20, 0, 14)],
)
def test_depth_by_the_rule_of_fletcher_and_islam_2017(s: int, discrete: int, expected: int) -> None:
    """The first d with s((s − 1)/s)^d < s/2 for numeric attributes, and half of the others."""
    rule = find("smooth-forest").depth
    assert callable(rule)
    assert rule(domain(discrete, numeric=s)) == expected


def test_variants_are_recipes_of_their_own() -> None:
    assert find("diffp-id3:max").name == "diffp-id3:max"
    assert find("diffp-id3:max").choose is not find("diffp-id3").choose
    for name, words in (
        ("bojarski-forest:probabilistic", "draws a class at random for every row"),
        ("diffp-id3:min", "diffp-id3:max"),
        ("dpdf:max", "has no variants"),
    ):
        with pytest.raises(DpforestError, match=words):
            find(name)
    for name, recipe in RECIPES.items():
        for variant in recipe.variants:
            of = find(f"{name}:{variant}")
            plan = of.plan(of.request(domain(6, numeric=2), NANO))
            assert not of.flaws
            assert 0 < plan.epsilon <= NANO
        for variant in recipe.published.variants if recipe.published else ():
            assert find(f"{name}:{variant}", as_published=True).name == f"{name}:{variant}"


def test_one_form_says_why_and_two_say_what_was_repaired() -> None:
    for recipe in RECIPES.values():
        if recipe.published is None:
            assert recipe.one_form
            with pytest.raises(DpforestError, match="one form only"):
                find(recipe.name, as_published=True)
        else:
            assert recipe.repair
            assert not recipe.flaws
    assert find("rana-forest").flaws, "never called private"


@some(("name", "published"), FORMS, keep=12)
def test_every_form_trains_and_scores_as_python_does(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest], name: str, published: bool
) -> None:
    """Categories, numbers, NULL and three classes; SQL against Python's own traversal."""
    con.execute(
        "CREATE TABLE t AS SELECT ['u', 'v', 'w'][i % 3 + 1] AS a, i % 7 > 3 AS b, "
        "CASE WHEN i % 11 > 0 THEN i % 50 END AS n, ['x', 'y', 'z'][(i % 3 + i % 7 // 3) % 3 + 1] "
        "AS k FROM range(1200) r(i)"
    )
    public = Domain(
        (
            Attribute("a", "categorical", ("u", "v", "w")),
            Attribute("b", "categorical", ("false", "true")),
            Attribute("n", "numeric", lower=0, upper=49),
        ),
        "k",
        ("x", "y", "z"),
    )
    recipe = find(name, as_published=published)
    many = name in PUBLISHED and isinstance(recipe.trees, int) and recipe.trees > 3
    trees = 3 if many else None  # three show as much as ninety
    forest = fit(
        con, "t", domain=public, recipe=name, as_published=published, epsilon=2, trees=trees
    )
    assert forest.private is False  # from a seed
    assert bool(recipe.flaws) == (len(forest.guarantee.reasons) > 1)
    assert forest.recipe == (f"{name} as published" if published or recipe.flaws else name)
    assert_agree(con, forest, "t")
    assert all(rule["votes"] is not None for rule in forest.rules() if rule["leaf"])
    if recipe.leaf.gives == "label":
        assert all(rule["counts"] is None for rule in forest.rules())


@pytest.mark.slow
@pytest.mark.parametrize(("name", "published"), FORMS)
@pytest.mark.parametrize("table", ["nursery", "adult_train", "banknote", "iris"])
def test_every_form_on_real_tables(
    con: duckdb.DuckDBPyConnection,
    fit: Callable[..., Forest],
    data_dir: Path,
    name: str,
    published: bool,
    table: str,
) -> None:
    con.execute(f"CREATE TABLE t AS FROM '{data_dir / table}.parquet'")
    public = load_domain(data_dir / f"{table}.toml")
    with warnings.catch_warnings(action="ignore"):
        forest = fit(con, "t", domain=public, recipe=name, as_published=published)
    assert_agree(con, forest, "t")
