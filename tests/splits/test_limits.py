"""Limits of size: those of public facts are announced; past the others nodes stay leaves."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from grown_trees import domain, grown, mixed
from shell import dpforest
from steps import seeded, spending

from dpforest_duckdb.domain import Domain
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.learners import informative_tables, levels, specialisation
from dpforest_duckdb.learners.levels import LEVELS
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.model.json_format import MAX_CHARACTERS, MAX_NODES
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.recipes import RECIPES, find
from dpforest_duckdb.recipes.recipe import Recipe
from dpforest_duckdb.splits.candidates import Candidates, candidates
from dpforest_duckdb.splits.choose import NO_SPLIT, Choice
from dpforest_duckdb.splits.limits import (
    MAX_COUNTS,
    MAX_LEAVES,
    MAX_REACHED,
    MAX_SHARES,
    deepest_complete,
    fitting,
    most_counted,
    most_leaves,
    most_reached,
)
from dpforest_duckdb.tree import LEAF


def test_the_largest_nodes_are_split_until_one_does_not_fit() -> None:
    arity, size = np.array([3, 2, 4, 2]), np.array([10.0, 5.0, 90.0, 5.0])
    # in order of size: +3 leaves, +2, +1, +1
    for leaves, fits in ((2, []), (3, [2]), (5, [0, 2]), (6, [0, 1, 2]), (7, [0, 1, 2, 3])):
        assert np.flatnonzero(fitting(arity, size, leaves, 99)).tolist() == fits
    # the children opened are 4, 7, 9, 11
    for opened, fits in ((3, []), (7, [0, 2]), (10, [0, 1, 2])):
        assert np.flatnonzero(fitting(arity, size, 99, opened)).tolist() == fits


def test_the_smallest_complete_tree_bounds_the_depth() -> None:
    assert deepest_complete(domain(cells=2, attributes=9), "multiway", 729) == 6  # with "other"
    assert deepest_complete(domain(cells=2, attributes=9), "multiway", 728) == 5
    assert deepest_complete(domain(cells=2, attributes=5), "multiway", 729) is None
    assert deepest_complete(mixed(), "mixed", 1024) == 10, "numbers are split in two, repeatedly"
    assert deepest_complete(mixed(), "binary", 1023) == 9


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_the_budget_of_a_query_follows_the_published_depth(name: str) -> None:
    """This holds for attributes of any width: a plan does not depend on the limits."""
    recipe = RECIPES[name]
    narrow, wide = domain(cells=2, attributes=8), domain(cells=900, attributes=8)
    for form in filter(None, (recipe, recipe.published)):
        plans = [form.plan(form.request(each, NANO, trees=2)) for each in (narrow, wide)]
        assert plans[0] == plans[1]


def test_a_public_limit_is_announced_and_refuses_a_requested_depth() -> None:
    recipe, many = find("smooth-forest"), domain(cells=2, attributes=22)
    request = recipe.request(many, NANO)
    assert (request.depth, request.deepest) == (11, 6), "2,000 leaves a tree, 3^7 is more"
    assert request.cut.startswith("Depth cut from 11 to 6")
    with pytest.raises(DpforestError, match="ask for depth 6 at most"):
        recipe.request(many, NANO, depth=11)
    assert not recipe.request(many, NANO, depth=6).cut
    assert not recipe.request(many, NANO, trees=1, depth=10).cut


def test_trees_with_an_end_of_their_own_are_not_cut_beforehand() -> None:
    request = find("dpdf").request(domain(cells=900, attributes=8), NANO)
    assert (request.depth, request.deepest, request.cut) == (4, 4, "")


def test_a_chooser_that_ends_nodes_leaves_trees_uncut() -> None:
    """Published DiffPRF ends nodes of one class; the rigorous form splits every node."""
    wide = domain(cells=900, attributes=8)
    published = find("diffprf", as_published=True).request(wide, NANO, depth=5)
    assert (published.depth, published.deepest, published.cut) == (5, 5, "")
    assert find("diffprf").request(wide, NANO).cut.startswith("Depth cut from 5 to 1")


@pytest.mark.parametrize("name", ["diffgen", "dt-diff"])
def test_steps_that_split_one_entry_are_no_complete_tree(name: str) -> None:
    request = find(name).request(mixed(), NANO, depth=40)
    assert (request.depth, request.deepest, request.cut) == (40, 40, "")


FORMS = [
    form for recipe in RECIPES.values() for form in (recipe, recipe.published) if form is not None
]


@pytest.mark.parametrize("form", [f for f in FORMS if f.choose], ids=lambda form: form.label)
def test_a_form_says_whether_its_chooser_ends_nodes(form: Recipe) -> None:
    """A node of one class, with many rows: only a form that ends early may leave it unsplit."""
    public = mixed()
    ways = candidates(public, form.split_type)
    counts = [np.zeros((1, cells, 2), dtype=np.int64) for cells in public.cells]
    for table in counts:
        table[0, 0, 0] = 100
    source = seeded()
    choice = Choice(
        candidates=ways,
        counts=counts,
        allowed=np.ones((1, len(ways)), dtype=np.bool_),
        reachable=np.ones((1, sum(public.cells)), dtype=np.bool_),
        noisy=np.array([[100, 0]]),
        epsilon=NANO,
        rows_per_unit=1,
        noise=source.noise,
        bits=source.bits,
        rows=100,
    )
    if NO_SPLIT in form.choose(choice).candidate:
        assert form.ends_early
    elif form.learner is LEVELS and form.ends_early:
        assert form.name == "rana-forest", "it ends nodes whose children are few, not pure ones"


def test_roots_that_cannot_be_split_are_refused_before_anything_is_read() -> None:
    for name, attributes, trees in (("diffprf", 2, 60), ("snr-forest", 60, 60)):
        wide = domain(cells=4000, attributes=attributes)
        with pytest.raises(DpforestError, match=rf'{name} .*"a0".*recipe dprfmaxtree'):
            find(name).request(wide, NANO, trees=trees)
        assert find(name).request(wide, NANO, trees=2).trees == 2
    assert find("dprfmaxtree").request(wide, NANO, trees=60).trees == 60


def test_roots_that_cannot_be_counted_are_refused_before_anything_is_read() -> None:
    wide = domain(cells=1000, attributes=40, classes=100)
    with pytest.raises(DpforestError, match=r"50 roots by 40040 cells.*ask for trees 16 at most"):
        find("dprfmaxtree").request(wide, NANO)
    assert find("dprfmaxtree").request(wide, NANO, trees=16).trees == 16
    many = domain(cells=1000, attributes=40, classes=2000)
    with pytest.raises(DpforestError, match="too much: leave out attributes"):
        find("dprfmaxtree").request(many, NANO, trees=1)
    assert find("bojarski-forest").request(many, NANO).trees == 10, "it draws splits at random"


@pytest.mark.parametrize("name", ["hou-forest", "private-rdt", "xin-dpgdf", "sulq-id3"])
def test_nodes_past_the_limit_stay_leaves(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, _, public = grown(find(name), epsilon=1000 * NANO, trees=2)
    everything = sum(len(tree.leaves) for tree in whole)
    monkeypatch.setattr(levels, "most_leaves", lambda _: 30)
    trees, account, _ = grown(find(name), epsilon=1000 * NANO, trees=2)
    assert 24 < sum(len(tree.leaves) for tree in trees) <= 30 < everything
    assert spending(account).epsilon <= account.plan.epsilon
    for tree in trees:
        assert tree.counts is not None
        assert tree.noise is not None
        leaves, labels = tree.kind == LEAF, find(name).leaf.gives == "label"
        released = tree.counts.sum(axis=1) == 1 if labels else np.isfinite(tree.noise)
        assert released[leaves].all(), "a leaf is asked as any other"
        assert tree.depth(public.cells) < 5


def test_no_more_is_counted_than_memory_bears(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels, "most_counted", lambda public: 9)
    trees, _, public = grown(find("hou-forest"), epsilon=1000 * NANO)
    widths = [len(children) for children, _ in trees[0].descents(public.cells)]
    assert max(widths[:-1]) <= 9 < widths[-1], "the last depth is not counted by attribute"
    assert most_counted(domain()) == MAX_COUNTS // (6 * 4 * 2)


def test_no_more_is_split_at_random_than_memory_bears(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels, "most_reached", lambda public: 9)
    trees, _, public = grown(find("private-rdt"), epsilon=1000 * NANO, trees=1)
    widths = [len(children) for children, _ in trees[0].descents(public.cells)]
    assert max(widths[:-1]) <= 9 < widths[-1], "at the last depth no node is split"
    assert most_reached(domain()) == MAX_REACHED // (6 * 4)


def test_nodes_of_the_last_depth_have_no_marks_for_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """They would be a hundred thousand nodes times all cells."""
    calls, descend = [], Candidates.descend

    def counted(*given: Any) -> Any:
        calls.append(given)
        return descend(*given)

    monkeypatch.setattr(Candidates, "descend", counted)
    trees, _, public = grown(find("private-rdt"), epsilon=1000 * NANO, trees=2)
    assert len(calls) == max(tree.depth(public.cells) for tree in trees) - 1


def test_no_forest_is_larger_than_a_model_file_may_be() -> None:
    assert most_leaves(domain()) == MAX_LEAVES < MAX_NODES
    many = replace(domain(), classes=tuple(map(str, range(10_000))))
    assert most_leaves(many) == MAX_SHARES // 10_000
    with pytest.raises(DpforestError, match="too many for 2 trees and 10000 classes"):
        find("private-rdt").request(
            replace(domain(cells=900, attributes=2), classes=many.classes), NANO, trees=2
        )
    written = "10000,10000,-999999,"  # two counts and a vote: trees have up to two nodes per leaf
    assert MAX_SHARES * len(written) < MAX_CHARACTERS


def filled(con: duckdb.DuckDBPyConnection, classes: int = 2) -> Domain:
    """A table "t" of three attributes with two values each, and its domain."""
    con.execute(
        "CREATE TABLE t AS SELECT CAST(i % 2 AS VARCHAR) AS a0, CAST(i // 2 % 2 AS VARCHAR) AS a1, "
        f"CAST(i // 4 % 2 AS VARCHAR) AS a2, 'c' || (i % 3 % {classes}) AS y FROM range(800) r(i)"
    )
    return domain(cells=2, attributes=3, classes=classes)


def test_a_model_says_how_many_nodes_the_limit_stopped(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest], monkeypatch: pytest.MonkeyPatch
) -> None:
    public = filled(con)
    assert fit(con, "t", domain=public, recipe="dpdf", epsilon=100).limited == 0
    monkeypatch.setattr(levels, "most_leaves", lambda _: 6)
    forest = fit(con, "t", domain=public, recipe="dpdf", epsilon=100)
    assert forest.limited > 0
    assert Forest.from_json(forest.to_json()).limited == forest.limited


@pytest.mark.parametrize("classes", [2, 3])
def test_a_model_says_how_many_tables_the_limit_left_out(
    con: duckdb.DuckDBPyConnection,
    fit: Callable[..., Forest],
    monkeypatch: pytest.MonkeyPatch,
    classes: int,
) -> None:
    public = filled(con, classes)
    forest = fit(con, "t", domain=public, recipe="log-odds", epsilon=100)
    assert ([len(tree.leaves) for tree in forest.trees], forest.limited) == ([1, 3, 3, 3], 0)
    monkeypatch.setattr(informative_tables, "most_leaves", lambda _: 7)
    forest = fit(con, "t", domain=public, recipe="log-odds", epsilon=100)
    assert ([len(tree.leaves) for tree in forest.trees], forest.limited) == ([1, 3, 3], 1)


@pytest.mark.parametrize("limit", ["most_leaves", "most_reached"])
@pytest.mark.parametrize("name", ["diffgen", "dt-diff"])
def test_a_model_says_what_the_limit_kept_from_being_refined(
    con: duckdb.DuckDBPyConnection,
    fit: Callable[..., Forest],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    limit: str,
) -> None:
    public = filled(con)
    forest = fit(con, "t", domain=public, recipe=name, epsilon=100)
    assert (len(forest.trees[0].leaves), forest.limited) == (27, 0)
    monkeypatch.setattr(specialisation, limit, lambda _: 26)
    forest = fit(con, "t", domain=public, recipe=name, epsilon=100)
    assert (len(forest.trees[0].leaves), forest.limited) == (9, 9)
    wide = (replace(public.attributes[0], values=tuple("0123456789")), *public.attributes[1:])
    monkeypatch.setattr(specialisation, limit, lambda _: 10)
    fitted = fit(con, "t", domain=replace(public, attributes=wide), recipe=name, depth=1)
    assert fitted.limited == 0, "its only leaf was split by another attribute"


def test_thousands_of_parts_of_a_cut_are_found_in_little_time() -> None:
    wide = domain(cells=2000, attributes=1)
    marks = np.eye(sum(wide.cells), dtype=np.bool_)
    cut = specialisation._Cut(candidates(wide, "mixed"), 10**5, np.arange(len(marks)), marks)
    started = time.process_time()
    assert cut.entries() == [], "parts of one cell are not refined"
    assert time.process_time() - started < 1


def test_train_says_what_is_cut_before_the_debit(tmp_path: Path) -> None:
    columns = [f"a{i}" for i in range(16)]
    with duckdb.connect(str(tmp_path / "t.duckdb")) as con:
        made = ", ".join(f"CAST(i % 2 AS VARCHAR) AS {name}" for name in [*columns, "y"])
        con.execute(f"CREATE TABLE t AS SELECT {made} FROM range(50) r(i)")
    file = tmp_path / "t.toml"
    file.write_text(
        'target = "y"\n'
        + "".join(
            f'[[column]]\nname = "{name}"\nkind = "categorical"\ndomain = ["0", "1"]\n'
            "nullable = false\n"
            for name in [*columns, "y"]
        ),
        encoding="utf-8",
    )
    words = ["train", "--db", str(tmp_path / "t.duckdb"), "--table", "t", "--domain", str(file)]
    words += ["--epsilon", "1", "--recipe", "smooth-forest", "--dry-run"]
    assert "Depth cut from 8 to 6" in dpforest(*words).err
    refused = dpforest(*words, "--depth", "8")
    assert refused.code == 1
    assert "ask for --depth 6 at most" in refused.err
