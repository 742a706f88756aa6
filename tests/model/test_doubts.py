"""What released counts show to be wrong with the table or the domain."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.guarantee import Guarantee
from dpforest_duckdb.model.doubts import doubts
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.tree import Tree


@pytest.mark.parametrize(("rows", "warned"), [(0, True), (140, True), (150, False), (600, False)])
def test_noisy_rows_are_compared_with_the_noise_of_all_trees(rows: int, warned: bool) -> None:
    """The noise of the mean is 73, of one tree with 100 in each of two counts, and one with 60."""
    domain = Domain((Attribute("a", "categorical", ("x",)),), "k", ("no", "yes"))

    def tree(noise: float, first: int) -> Tree:
        leaf = {name: np.full(1, -1) for name in ("attribute", "cell", "first")}
        counts, votes = np.array([[first, rows - first]]), np.zeros((1, 2), dtype=np.int64)
        return Tree(kind=np.zeros(1), **leaf, counts=counts, votes=votes, noise=np.array([noise]))

    trees = [tree(np.nan, 0), tree(100.0, rows), tree(60.0, 0)]
    forest = Forest("m", "auto", Guarantee(epsilon="1"), domain, tuple(trees))
    assert [("may have seen no row" in found) for found in doubts(forest)] == [True] * warned


def _of_values(listed: int, missing: int) -> Forest:
    """A forest of one tree that divides 1,000 rows by a category and NULL; no noise to speak of."""
    attribute = Attribute("a", "categorical", ("x", "y"))
    counts = np.array([[listed + missing, 0], [listed, 0], [0, 0], [0, 0], [missing, 0]])
    tree = Tree(
        kind=np.array([1, 0, 0, 0, 0]),
        attribute=np.array([0, -1, -1, -1, -1]),
        cell=np.full(5, -1),
        first=np.array([1, -1, -1, -1, -1]),
        counts=counts,
        votes=np.zeros((5, 2), dtype=np.int64),
        noise=np.full(5, 1.0),
    )
    domain = Domain((attribute,), "k", ("no", "yes"))
    return Forest("m", "auto", Guarantee(epsilon="1"), domain, (tree,))


@pytest.mark.parametrize(("listed", "warned"), [(0, True), (40, True), (60, False), (1000, False)])
def test_values_that_the_domain_does_not_list_get_a_warning(listed: int, warned: bool) -> None:
    found = doubts(_of_values(listed, 1000 - listed))
    assert ['"a" is NULL or outside' in each for each in found].count(True) == warned


def test_an_attribute_gets_one_warning_however_many_trees_split_by_it() -> None:
    """Its values are in no row, which the warning says already."""
    forest = _of_values(0, 1000)
    full = replace(forest.trees[0], counts=np.array([[500, 500]] + [[0, 0]] * 3 + [[500, 500]]))
    (warning,) = doubts(replace(forest, trees=(full, full)))
    assert '"a" is NULL or outside' in warning


@pytest.mark.parametrize(("listed", "warned"), [(8, True), (9, False)])
def test_values_not_listed_get_a_warning_only_beyond_the_noise(listed: int, warned: bool) -> None:
    """Of 1,000 rows ± 14, listed ± 20 are too few with two deviations in favour of both."""
    forest = _of_values(listed, 1000 - listed)
    tree = replace(forest.trees[0], noise=np.full(5, 10.0))
    found = doubts(replace(forest, trees=(tree,)))
    assert ['"a" is NULL or outside' in each for each in found].count(True) == warned


@pytest.mark.parametrize(
    ("rows", "noise", "value", "label"),
    [
        (1000, 35.0, 1, 1),
        (1000, 36.0, 0, 1),
        (1000, 49.0, 0, 1),
        (1000, 51.0, 0, 0),
        (18, 1.0, 0, 0),
    ],
)
def test_a_value_and_a_class_that_no_row_seems_to_have_get_a_warning(
    rows: int, noise: float, value: int, label: int
) -> None:
    """If the mean is above ten times the noise, which in a value is that of two counts."""
    forest = _of_values(rows, 0)
    tree = replace(forest.trees[0], noise=np.full(5, noise))
    found = " ".join(doubts(replace(forest, trees=(tree,))))
    assert found.count('perhaps these values of "a" are in no row: "y".') == value
    assert found.count('perhaps these values of "k" are in no row: "yes".') == label
    more = " ".join(doubts(replace(forest, trees=(tree,) * 4)))
    assert more.count('perhaps these values of "a"') == 1, "four trees have half of the noise"
    full = replace(tree, counts=np.array([[500, 500], [250, 250], [250, 250], [0, 0], [0, 0]]))
    assert not doubts(replace(forest, trees=(full,)))


@pytest.mark.parametrize(("seen", "hidden"), [(19, True), (21, False)])
def test_a_value_counts_as_seen_from_two_deviations_on(seen: int, hidden: bool) -> None:
    """The noise in the rows of a value is 10, of two counts."""
    forest = _of_values(1000, 0)
    counts = np.array([[500, 500], [500, 481], [0, seen], [0, 0], [0, 0]])
    tree = replace(forest.trees[0], counts=counts, noise=np.full(5, np.sqrt(50)))
    assert bool(doubts(replace(forest, trees=(tree,)))) == hidden


def test_trees_without_counts_are_passed_over() -> None:
    """They say nothing, and a tree whose root alone has a count says nothing of its values."""
    forest = _of_values(40, 960)
    (tree,) = forest.trees
    silent = replace(tree, counts=None, noise=None)
    assert doubts(replace(forest, trees=(silent,))) == []
    assert doubts(replace(forest, trees=(silent, tree))) == doubts(forest) != []
    root = replace(tree, noise=np.array([1.0, *[np.nan] * 4]))
    (warning,) = doubts(replace(forest, trees=(root,)))
    assert '"k" are in no row: "yes"' in warning


@pytest.mark.parametrize("place", [0, 1])
def test_the_attribute_that_is_named_is_the_one_that_a_tree_splits_by(place: int) -> None:
    other = Attribute("b", "numeric", lower=0, upper=4, edges=(1, 2, 3), nullable=False)
    for forest in (_of_values(0, 1000), _of_values(1000, 0), _of_bins(999, 3, 4, 1.0)):
        alone, (tree,) = doubts(forest), forest.trees
        attributes = (
            [*forest.domain.attributes, other] if not place else [other, *forest.domain.attributes]
        )
        domain = replace(forest.domain, attributes=tuple(attributes))
        split = replace(tree, attribute=np.where(tree.attribute == 0, place, -1))
        assert doubts(replace(forest, domain=domain, trees=(split,))) == alone
        assert any('"a"' in each for each in alone)


def _of_bins(held: int, bin_: int, bins: int, noise: float) -> Forest:
    """A forest of one tree that divides 1,000 rows by a number, `held` of them in one bin."""
    edges = tuple(range(1, bins))
    attribute = Attribute("a", "numeric", lower=0, upper=bins, edges=edges, nullable=False)
    counts = np.zeros((1 + bins, 2), dtype=np.int64)
    counts[0] = 1000, 0
    counts[1 + bin_] = held, 0
    counts[1 + (bin_ + 1) % bins] = 1000 - held, 0
    leaf = {name: np.full(bins, -1) for name in ("attribute", "cell", "first")}
    root = {"attribute": 0, "cell": -1, "first": 1}
    tree = Tree(
        kind=np.array([1] + [0] * bins),
        **{name: np.concatenate([[root[name]], below]) for name, below in leaf.items()},
        counts=counts,
        votes=np.zeros((1 + bins, 2), dtype=np.int64),
        noise=np.full(1 + bins, noise),
    )
    return Forest(
        "m", "auto", Guarantee(epsilon="1"), Domain((attribute,), "k", ("a", "b")), (tree,)
    )


@pytest.mark.parametrize(
    ("held", "bin_", "bins", "noise", "warned"),
    [
        (999, 0, 4, 1.0, True),
        (999, 3, 4, 1.0, True),
        (999, 2, 4, 1.0, False),
        (999, 2, 3, 1.0, False),
        (940, 3, 4, 1.0, False),
        (960, 3, 4, 1.0, True),
        (960, 3, 4, 3.0, False),
        (999, 3, 4, 8.0, True),
        (999, 3, 4, 10.0, False),
        (999, 3, 4, np.nan, False),
    ],
)
def test_bounds_that_leave_nearly_all_rows_in_an_end_bin_get_a_warning(
    held: int, bin_: int, bins: int, noise: float, warned: bool
) -> None:
    """Only beyond the noise of the bin and of all rows: two deviations of both."""
    found = " ".join(doubts(_of_bins(held, bin_, bins, noise)))
    assert ('in the last one of "a": check the bounds' in found) is warned
