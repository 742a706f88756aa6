"""Each form of the published systems against figures worked out by hand from the texts."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from grown_trees import domain
from recorder import NoNoise
from test_published_pieces import seeded
from test_worked_examples import five

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import INTEGER, VARCHAR
from dpforest_duckdb.privacy.amounts import NANO, nano_epsilon
from dpforest_duckdb.privacy.noise import CountNoise
from dpforest_duckdb.privacy.selection import EXPONENTIAL, PERMUTE_AND_FLIP, Mechanism
from dpforest_duckdb.recipes import RECIPES, find
from dpforest_duckdb.recipes.leaf_queries import LABEL, LEAF_COUNTS, SMOOTH_LABEL
from dpforest_duckdb.recipes.published.dprf_gini import within_noise
from dpforest_duckdb.recipes.recipe import OURS, Recipe
from dpforest_duckdb.recipes.stopping import children_within_noise, unsupported
from dpforest_duckdb.request import Grown
from dpforest_duckdb.splits import published
from dpforest_duckdb.splits.candidates import candidates
from dpforest_duckdb.splits.choose import NO_SPLIT, Choice
from dpforest_duckdb.tree import LEAF, SCALE, Voting

# what a tree sees as published and in the rigorous form, and the children of a split
SEEN = {
    **dict.fromkeys(("sulq-id3", "pinq-id3", "diffp-id3"), ("all", "all", "multiway")),
    **dict.fromkeys(("dpdf", "snr-forest"), ("all", "all", "multiway")),
    **dict.fromkeys(("private-rdt", "diffp-c45", "diffgen", "dt-diff"), ("all", "all", "mixed")),
    **dict.fromkeys(("bojarski-forest", "privatree"), ("all", "all", "binary")),
    "diffprf": ("bootstrap", "all", "multiway"),
    **dict.fromkeys(("diffprfs", "dprf-gini", "hou-forest"), ("bootstrap", "all", "mixed")),
    **dict.fromkeys(("dprfmaxtree", "tpdprf"), ("bootstrap", "all", "binary")),
    "rana-forest": ("bootstrap", "bootstrap", "mixed"),
    **dict.fromkeys(("smooth-forest", "xin-dpgdf"), ("disjoint", "disjoint", "mixed")),
    "guan-dpgdf": ("disjoint", "disjoint", "mixed"),
    **dict.fromkeys(("diprime", "thesis-forest"), ("disjoint", "disjoint", "binary")),
}  # fmt: skip


# the queries for leaves, as published and rigorous, where they do not give counts
LEAVES = {
    **dict.fromkeys(("smooth-forest", "xin-dpgdf"), (SMOOTH_LABEL, LABEL)),
    **dict.fromkeys(("thesis-forest", "privatree"), (LABEL, LABEL)),
}

# choosers or learners that leave nodes unsplit: in the published form, and in both
ENDING = {"diffprf", "diffprfs", "privatree", "thesis-forest"}
ENDING_IN_BOTH = {"rana-forest", "diffgen", "dt-diff"}

# whose rule ends nodes; that of DPDF is made for its 100 rows
STOPS = {
    **dict.fromkeys(("pinq-id3", "diffp-id3", "diffp-c45"), children_within_noise),
    "snr-forest": unsupported,
    "dprf-gini": within_noise,
}


def test_what_a_tree_sees_how_many_children_a_split_has_and_when_a_node_ends() -> None:
    assert set(SEEN) == {name for name, recipe in RECIPES.items() if recipe.one_form != OURS}
    for name, (in_text, rigorous, children) in SEEN.items():
        recipe = find(name)
        form = recipe.published or recipe
        assert (form.rows, recipe.rows) == (in_text, rigorous), name
        assert {form.split_type, recipe.split_type} == {children}, name
        assert (form.leaf, recipe.leaf) == LEAVES.get(name, (LEAF_COUNTS, LEAF_COUNTS)), name
        for each in (form, recipe):
            query = each.whole_plan(each.request(four_attributes(), NANO)).query("leaf")
            assert query is None or query.mechanism == each.leaf.answer.mechanism, name
        assert form.ends_early == (name in ENDING | ENDING_IN_BOTH), name
        assert recipe.ends_early == (name in ENDING_IN_BOTH), name
        if name != "dpdf":
            assert form.stop is recipe.stop is STOPS.get(name), name
        assert (recipe.voting == Voting.SUREST) == (name == "snr-forest")
        assert recipe.one_tree_per_attribute == (name in ("dpdf", "snr-forest"))
        assert recipe.taxonomies == (name in ("diffgen", "dt-diff"))


# Parts of B per depth, and how often, with four trees (or one) of depth 3
PARTS = {
    "private-rdt": {"leaf": ([1 / 4], 4)},
    "bojarski-forest": {"leaf": ([1 / 4], 4)},
    "smooth-forest": {"leaf": ([1], 1)},
    "smooth-forest as published": {"leaf": ([1], 1)},
    "xin-dpgdf as published": {"split": ([1 / 4] * 2, 1), "leaf": ([1 / 2], 1)},
    "snr-forest": {"rows": ([0.04], 1), "leaf": ([0.96 / 4], 4)},
    "dt-diff": {"split": ([1 / 6] * 3, 1), "leaf": ([1 / 2], 1)},
    "dprfmaxtree": {"split": ([1 / 24] * 3, 4), "leaf": ([1 / 8], 4)},
    "thesis-forest": {"split": ([1 / 6] * 3, 1), "leaf": ([1 / 2], 1)},
    "diprime": {"split": ([1 / 6] * 3, 1), "leaf": ([1 / 2], 1)},
    # ε_s = ε_a = B / (4 d_m) each, with √m = 2 medians and m = 4 of them
    "thesis-forest as published": {"split": ([3 / 12] * 3, 1), "leaf": ([1 / 2], 1)},
    "diprime as published": {"split": ([5 / 12] * 3, 1), "leaf": ([1 / 2], 1)},
    "snr-forest as published": {"leaf": ([1 / 4], 4)},
    # before the rows are known: half of what they leave, in .96 of B
    "privatree": {"rows": ([0.04], 1), "split": ([0.16] * 3, 1), "leaf": ([0.48], 1)},
}


@pytest.mark.parametrize("label", PARTS)
def test_parts_of_the_budget(label: str) -> None:
    form = form_of(label)
    trees = 1 if form.name in ("dt-diff", "privatree") else 4
    plan = form.plan(form.request(domain(attributes=4), NANO, trees=trees, depth=3))
    found = {q.purpose: ([e / NANO for e in q.by_depth], q.times) for q in plan.queries}
    assert set(found) == set(PARTS[label])
    for purpose, (parts, times) in PARTS[label].items():
        assert found[purpose][0] == pytest.approx(parts, abs=1e-8)
        assert found[purpose][1] == times


def four_attributes() -> Domain:
    """Two of two categories and two of three numbers."""
    named = [Attribute(f"a{i}", "categorical", ("x", "y"), nullable=False) for i in range(2)]
    named += [Attribute(f"n{i}", "numeric", lower=0, upper=2, nullable=False) for i in range(2)]
    types = {a.name: VARCHAR if a.kind == "categorical" else INTEGER for a in named}
    return Domain(tuple(named), "y", ("p", "q")).bind({**types, "y": VARCHAR})


# Eight rows, four of each class. a0 separates them; in a1 both categories have two of each. In n0
# and n1 the first threshold separates them, the second has 4 and 3 below and 0 and 1 above.
A0, A1 = [[4, 0], [0, 4]], [[2, 2], [2, 2]]
N = [[4, 0], [0, 3], [0, 1]]
NODES = 64  # alike, so that the random subsets of attributes differ
H = -(4 / 7 * np.log2(4 / 7) + 3 / 7 * np.log2(3 / 7))
GAIN = 1 - 7 / 8 * H  # of the second threshold; of the first it is 1 bit, and so is its entropy
SIDES = -(7 / 8 * np.log2(7 / 8) + 1 / 8 * np.log2(1 / 8))

# The draws at ε = 1 of a split: mechanism, the exponent of the worst candidate less the best, in
# how many attributes. Utilities of a0 and a1: gain 1 and 0; Gini weighted by rows 0 and -4, of the
# second threshold -24/7, rounded to -3; max 8 and 4, of the second threshold 5; its sides differ by
# 6 rows. Without monotony the exponent is ε u / 2Δ.
EXP, FLIP = EXPONENTIAL.name, PERMUTE_AND_FLIP.name
DRAWS: dict[str, set[tuple[str, float, int]]] = {
    "diffp-id3 as published": {(EXP, 1 / 2, 4)},
    "diffp-id3:normalised as published": {(EXP, 0.5 / (2 * 0.5), 4)},
    "diffp-id3:gini as published": {(EXP, 4 / (2 * 2), 4)},
    "diffp-id3:max as published": {(EXP, 4 / 2, 4)},
    "diffp-id3": {(EXP, 4 / 2, 4)},
    "diffp-id3:max": {(EXP, 4 / 1, 4)},
    # two numeric attributes: a third of ε for each point and for the attribute
    "diffp-c45 as published": {(EXP, (1 - GAIN) / 2 / 3, 1), (EXP, 1 / 2 / 3, 4)},
    "diffp-c45:gini as published": {(EXP, 3 / 4 / 3, 1), (EXP, 4 / 4 / 3, 4)},
    "diffp-c45:max as published": {(EXP, 3 / 2 / 3, 1), (EXP, 4 / 2 / 3, 4)},
    "diffp-c45": {(EXP, 3 / 2 / 3, 1), (EXP, 4 / 2 / 3, 4)},
    "diffprf as published": {(EXP, 1 / 2, 2)},
    "diffprf:max as published": {(EXP, 4 / 2, 2)},
    "diffprf:gini as published": {(EXP, 4 / 4, 2)},
    "diffprf": {(EXP, 4 / 2, 2)},
    # of √4 attributes, n are numeric: ε / (n + 1) for each draw
    "diffprfs as published": {
        *((EXP, (1 - GAIN) / 2 / (n + 1), 1) for n in (1, 2)),
        *((EXP, 1 / 2 / (n + 1), 2) for n in (0, 1)),
    },
    "diffprfs:max as published": {
        *((EXP, 3 / 2 / (n + 1), 1) for n in (1, 2)),
        *((EXP, 4 / 2 / (n + 1), 2) for n in (0, 1)),
    },
    "diffprfs": {
        *((EXP, 3 / (n + 1), 1) for n in (1, 2)),
        *((EXP, 4 / (n + 1), 2) for n in (0, 1)),
    },
    "dprf-gini as published": {(EXP, 4 / (2 * 2), 2)},
    # half for the attribute, half for a point; all of it where no point is left
    "dprf-gini": {(EXP, 4 / 2 / 2, 2), (EXP, 3 / 2 / 2, 1), (EXP, 4 / 2, 2)},
    # each category is a point too: a third for each of two points, whose F_Max is 8, 2 or 16/7 + 1
    "dprfmaxtree as published": {(EXP, 0.7856, 1), (EXP, 6 / 2 / 3, 2)},  # in parts of 1/PARTS
    "dprfmaxtree": {(EXP, 6 / 2, 2), (EXP, 5 / 2, 2)},
    "guan-dpgdf as published": {(EXP, 4 / (2 * 2), 4)},
    "guan-dpgdf": {(EXP, 4 / 2, 4)},
    # half of ε for two points, half for the attribute; w1 = w2 = ½, and the gain ratio of 1 is 1
    "hou-forest": {(EXP, (1 - GAIN / 2 - GAIN / SIDES / 2) / 2 / 4, 1), (EXP, 1 / 2 / 2, 4)},
    "tpdprf as published": {(EXP, 4 / (2 * 2), 2)},
    "tpdprf": {(EXP, 4 / 2, 2), (EXP, 3 / 2, 2)},
    "privatree": {(FLIP, 4 / 2, 4)},
    # exp(−ε N MSE / 8), labels of ±1: N MSE is 8 in a1; one of K + 1 shares for each of K medians
    "diprime as published": {(EXP, 6 / 2 / 5, 1), (EXP, 8 / 8 / 5, 4)},
    "diprime:zero-one as published": {(EXP, 6 / 2 / 5, 1), (EXP, 2 / 8 / 5, 4)},
    "diprime": {(EXP, 6 / 2 / 8, 1), (EXP, 4 / 2 / 2, 4)},
    "thesis-forest as published": {(EXP, 6 / 2 / 3, 1), (EXP, 8 / 8 / 3, 2)},
    "thesis-forest:zero-one as published": {(EXP, 6 / 2 / 3, 1), (EXP, 2 / 8 / 3, 2)},
    "thesis-forest": {(FLIP, 4 / 2 / 2, 3), (FLIP, 6 / 2 / 2, 1)},
    # the poster: −ε Gini / Δ, a mean over the rows, with Δ = ½
    "xin-dpgdf as published": {(EXP, 0.5 / 0.5, 4)},
    "xin-dpgdf": {(EXP, 4 / 2, 4)},
    # Theorem 1 at n = 8
    "dpdf as published": {(EXP, 0.5 / (2 * (1 - 64 / 81 - 1 / 81)), 4)},
    "dpdf": {(EXP, 4 / 2, 4)},
}  # fmt: skip


def nodes_of(form: Recipe, noise: CountNoise | None = None, allowed: int = 4) -> Choice:
    """Nodes of these rows, of which the first attributes are `allowed`."""
    public, source = four_attributes(), seeded(3)
    ways = candidates(public, form.split_type)
    counts = [np.zeros((NODES, cells, 2), dtype=np.int64) for cells in public.cells]
    for table, rows in zip(counts, (A0, A1, N, N), strict=True):
        table[:, : len(rows)] = rows
    reachable = np.concatenate([table.sum(axis=2) > 0 for table in counts], axis=1)
    return Choice(
        candidates=ways,
        counts=counts,
        allowed=ways.allowed(reachable) & (ways.attribute < allowed),
        reachable=reachable,
        noisy=np.full((NODES, 2), 4),
        epsilon=NANO,
        rows_per_unit=1,
        noise=noise or source.noise,
        bits=source.bits,
        depth=1,
        rows=8,
    )


def form_of(label: str) -> Recipe:
    return find(label.partition(" ")[0], as_published="published" in label)


@pytest.mark.parametrize("label", DRAWS)
def test_the_exponents_of_a_split(label: str, monkeypatch: pytest.MonkeyPatch) -> None:
    form = form_of(label)
    choice = nodes_of(form)
    ways, found, by_width = choice.candidates, set(), set()

    def select(mechanism, drawn, allowed, bits, widths=None):  # type: ignore[no-untyped-def]
        whole = 0 if drawn.whole is None else drawn.whole
        exponents = np.where(allowed, whole + drawn.numerator / drawn.denominator, np.inf)
        for parts, open_ in zip(exponents, allowed, strict=True):
            # of attributes by their best points there is one column each
            among = len(set(ways.attribute[open_])) if len(open_) == len(ways) else int(open_.sum())
            found.add((mechanism, round(float(parts[open_].max()), 4), among))
        if widths is not None:
            by_width.add(form.name.partition(":")[0])
        return exponents.argmin(axis=1)

    monkeypatch.setattr(Mechanism, "draw", lambda self, *given: select(self.name, *given))
    monkeypatch.setattr(published, "exponential_mechanism", partial(select, EXP))
    form.choose(choice)
    query = form.plan(form.request(four_attributes(), NANO)).query("split")
    assert query is not None
    assert all(query.mechanism.startswith(mechanism) for mechanism, _, _ in found)
    assert {f for f in found if f[1]} == {(m, round(float(e), 4), a) for m, e, a in DRAWS[label]}
    assert by_width == {form.name.partition(":")[0]} & {"diffp-c45", "diffprfs", "diprime"}


def asked_of(noise: NoNoise) -> set[tuple[Fraction, int]]:
    """The ε and sensitivities that it was asked for."""
    return {(Fraction(e, NANO).limit_denominator(100), s) for _, _, e, s, *_ in noise.given}


@pytest.mark.parametrize(
    ("label", "left", "epsilon", "sensitivity"),
    [
        ("sulq-id3", 4, "1/8", 1),  # two queries of each of m attributes
        ("sulq-id3", 3, "1/8", 1),
        ("pinq-id3", 4, "1/8", 1),  # of each that is left
        ("pinq-id3", 3, "1/6", 1),
        ("privatree as published", 4, "1/4", 1),  # charged once, so planned m times
    ],
)
def test_the_noise_of_a_split(label: str, left: int, epsilon: str, sensitivity: int) -> None:
    noise = NoNoise()
    choice = nodes_of(form_of(label), noise, left)  # type: ignore[arg-type]
    drawn = form_of(label).choose(choice).candidate
    assert asked_of(noise) == {(Fraction(epsilon), sensitivity)}
    assert set(choice.candidates.attribute[drawn]) == {0}, "the first that separates the classes"


def test_rana_adds_noise_to_sums_of_bins() -> None:
    """Of three bins, 0 to 2: one row changes a sum by less than 3."""
    noise = NoNoise()
    form = find("rana-forest")
    choice = nodes_of(form, noise)  # type: ignore[arg-type]
    drawn = form.choose(choice).candidate
    assert asked_of(noise) == {(Fraction(1), 3)}
    found = set(choice.candidates.attribute[drawn])
    assert found == {0, 2, 3}, "the first of two random ones that separates the classes"
    drawn = form.choose(replace(choice, rows=1000)).candidate
    assert set(drawn) == {NO_SPLIT}, "children of four rows are fewer than a hundredth"


# five nodes, of which 1, 3 and 4 are leaves, and what they vote
NOISY, DRAWN = (
    [[9, 9], [6, 2], [3, 7], [1, 4], [-2, -1]],
    [[0, 0], [1, 0], [0, 0], [0, 1], [1, 0]],
)
SHARES = (NOISY, [[0.75, 0.25], [0.2, 0.8], [0.5, 0.5]])
MAJORITY = (NOISY, [[1, 0], [0, 1], [0, 1]])
ONE_VOTE = (DRAWN, [[1, 0], [0, 1], [1, 0]])
# leaf counts alone, summed upward; two pure leaves of one class are pruned
BY_ERROR = ([[0, 0], [1, 15], [0, 0], [8, 0], [8, 0]], [[1 / 16, 15 / 16], [1, 0]])
VOTES = {
    **dict.fromkeys(("sulq-id3", "pinq-id3", "private-rdt", "diffgen", "dt-diff"), SHARES),
    **dict.fromkeys(("bojarski-forest", "bojarski-forest:deep", "diprime"), SHARES),
    **dict.fromkeys(("bojarski-forest:majority", "bojarski-forest:deep-majority"), MAJORITY),
    **dict.fromkeys(("diffprf", "diffprfs", "dprf-gini", "hou-forest", "guan-dpgdf"), MAJORITY),
    **dict.fromkeys(("dprfmaxtree", "tpdprf", "rana-forest"), MAJORITY),
    **dict.fromkeys(("smooth-forest", "xin-dpgdf", "thesis-forest", "privatree"), ONE_VOTE),
    **dict.fromkeys(("diffp-id3", "diffp-c45"), BY_ERROR),
    "dpdf": ([[20, 12], [4, 12], [16, 0], [8, 0], [8, 0]], [[0, 0.75], [1, 0]]),
    # at a noise of 5 a leaf of three rows is pruned, and votes as node 2, with 30/33
    "snr-forest": (
        [[0, 0], [40, 10], [0, 0], [0, 30], [3, 0]],
        [[40 / 50, 0], [0, 1], [0, 30 / 33]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", VOTES)
def test_pruning_and_votes_of_five_nodes(name: str) -> None:
    counts, votes = VOTES[name]
    recipe = find(name)
    for form in filter(None, (recipe, recipe.published)):
        request = replace(form.request(domain(cells=1), nano_epsilon("0.28"), trees=1), rows=100)
        (tree,) = form.finish(Grown([five(counts)]), request, form.plan(request))
        expected = np.array(votes) * SCALE
        assert tree.votes[tree.kind == LEAF].tolist() == np.rint(expected).astype(int).tolist()
