"""Effects of attributes: exact for sums of one-split trees, partial dependence elsewhere."""

from __future__ import annotations

import json
from dataclasses import replace
from operator import attrgetter
from pathlib import Path

import numpy as np
import pytest
from models import forest_of, log_odds, one_split, two_attributes
from shell import dpforest

from dpforest_duckdb.cli.show import ellipsized
from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import INTEGER, VARCHAR
from dpforest_duckdb.errors import UsageError
from dpforest_duckdb.model.effects import _blocks, effects, importances
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.postprocess.voting import integer_votes, of_two
from dpforest_duckdb.scoring.links import SHARES, centred_variance
from dpforest_duckdb.tree import LEAF, MULTIWAY, Tree

DOMAIN = two_attributes()
by_number = attrgetter("attribute")


def additive() -> Forest:
    """Colours add -1, 0 and 1 to the log-odds of yes; sizes add -0.25 and 0.25."""
    first = one_split(DOMAIN, 0, log_odds([-1.0], [0.0], [1.0], [0.0]))
    second = one_split(DOMAIN, 1, log_odds([-0.25], [0.25], [0.0]))
    return forest_of(DOMAIN, first, second)


def deep(counts: bool) -> Forest:
    """Size below colour = red: 30 rows small (all no), 10 rows large (all yes); else 60 no."""
    held = np.array([[90, 10], [30, 10], [30, 0], [30, 0], [0, 0], [30, 0], [0, 10], [0, 0]])
    votes = np.where(held.sum(axis=1, keepdims=True) > 0, held, 1)
    votes[:2] = 0
    tree = Tree(
        kind=np.array([MULTIWAY, MULTIWAY] + [LEAF] * 6),
        attribute=np.array([0, 1] + [-1] * 6),
        cell=np.zeros(8, dtype=np.int64),
        first=np.array([1, 5] + [-1] * 6),
        counts=held if counts else None,
        votes=votes,
        noise=np.full(8, 1.0) if counts else None,
    )
    return forest_of(DOMAIN, tree, link=SHARES)


def test_the_effects_of_a_sum_are_what_its_values_add() -> None:
    colour, size = effects(additive())
    assert (colour.attribute, size.attribute) == (0, 1)
    assert colour.labels == ("red", "green", "blue")
    assert colour.values[:, 1] == pytest.approx([-1.0, 0.0, 1.0])
    assert colour.values[:, 0] == pytest.approx([1.0, 0.0, -1.0])
    assert size.values[:, 1] == pytest.approx([-0.25, 0.25])


def test_importances_are_in_the_order_of_the_attributes_and_sum_to_one() -> None:
    found = importances(additive())
    assert found == pytest.approx(np.array([1 / 3, 1 / 8]) / (1 / 3 + 1 / 8))
    stump = forest_of(DOMAIN, one_split(DOMAIN, 0, log_odds([0.0], [0.0], [0.0], [0.0])))
    assert importances(stump).tolist() == [0.0, 0.0]


def test_other_attributes_keep_their_noisy_distribution() -> None:
    """If all were large: the red 40 of 100 rows say yes, the others no. If small: none does."""
    size = next(effect for effect in effects(deep(counts=True)) if effect.attribute == 1)
    small, large = size.values[:, 1]
    assert large - small == pytest.approx(0.4)


def test_without_counts_branches_weigh_by_their_part_of_the_domain() -> None:
    size = next(effect for effect in effects(deep(counts=False)) if effect.attribute == 1)
    small, large = size.values[:, 1]
    assert large - small == pytest.approx(1 / 4)  # red is one of four cells
    assert np.isnan(size.deviation).all(), "no noise is recorded"


def test_the_band_is_that_of_log_odds_of_noisy_counts() -> None:
    """Var of log n1 - log n0 is s²/n0² + s²/n1²; counts below s are taken as s."""
    table = [[100, 50], [3, 200], [80, 80], [0, 0]]
    tree = one_split(DOMAIN, 0, log_odds(*[[0.0]] * 4), table, noise=10.0)
    (effect,) = effects(forest_of(DOMAIN, tree))
    expected = [np.sqrt((10 / n0) ** 2 + (10 / n1) ** 2) for n0, n1 in ((100, 50), (10, 200))]
    assert effect.deviation[:2, 1] == pytest.approx(expected)
    assert effect.weights == pytest.approx(np.array([150, 203, 160]) / 513)


@pytest.mark.parametrize("weight", [0.15, 1.0])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_band_has_the_weight_of_the_log_odds(weight: float, classes: int) -> None:
    """It follows from votes and counts, of all trees of one split together."""
    domain = two_attributes(labels=("no", "maybe", "yes")[-classes:])
    tables = [np.array([[100, 50, 70], [30, 200, 90], [80, 90, 150], [0, 0, 0]])]
    tables.append(np.array([[400, 310, 330], [420, 370, 390], [0, 0, 0]]))
    trees = []
    for attribute, table in enumerate(tables):
        held = table[:, :classes]
        odds = np.log(np.maximum(held, 1) / held.sum(axis=0))
        votes = integer_votes(weight * (odds - odds.mean(axis=1, keepdims=True)))
        trees.append(one_split(domain, attribute, votes, held, noise=5.0))
    for attribute, effect in enumerate(sorted(effects(forest_of(domain, *trees)), key=by_number)):
        held = tables[attribute][: len(effect.labels), :classes]
        one = centred_variance((5.0 / held) ** 2) * (4 if classes == 2 else 1)
        assert effect.deviation == pytest.approx(weight * np.sqrt(one), rel=0.01)


def test_the_band_has_the_weight_of_log_odds_below_a_root() -> None:
    """Votes may be relative to the class shares of a leaf's parent."""
    held = np.array(
        [[0, 0], [900, 300], [50, 50], [50, 50], [50, 50], [600, 100], [300, 200], [0, 0]]
    )
    votes = np.zeros_like(held)
    votes[5:7] = integer_votes(0.5 * of_two(np.log([1 / 6, 2 / 3]) - np.log(1 / 3)))
    kinds = np.array([MULTIWAY, MULTIWAY] + [LEAF] * 6)
    places = (np.array([0, 1] + [-1] * 6), np.zeros(8, dtype=np.int64), np.array([1, 5] + [-1] * 6))
    tree = Tree(kinds, *places, held, votes, np.full(8, 5.0))
    (_, size) = sorted(effects(forest_of(DOMAIN, tree)), key=by_number)
    parts = np.array([1200, 100, 100, 100]) / 1500  # of the rows, in each child of the root
    each = [(5 / 600) ** 2 + (5 / 100) ** 2, *[2 * (5 / 50) ** 2] * 3]
    assert size.deviation[0, 1] == pytest.approx(0.5 * np.sqrt(parts**2 @ each), rel=0.01)


def test_log_odds_that_noise_hides_say_no_weight() -> None:
    counts = np.array([[100, 100], [104, 97], [98, 103], [0, 0]])
    votes = integer_votes(np.array([[0.01, -0.01], [0.03, -0.03], [-0.02, 0.02], [0.0, 0.0]]))
    tree = one_split(two_attributes(), 0, votes, counts, noise=5.0)
    (effect,) = effects(forest_of(DOMAIN, tree))
    one = 4 * centred_variance((5.0 / np.maximum(counts, 5)) ** 2)
    assert effect.deviation == pytest.approx(np.sqrt(one)[: len(effect.labels)], rel=0.01)


@pytest.mark.parametrize("trees", [1, 4])
def test_trees_that_vote_by_shares_have_a_band_of_their_mean(trees: int) -> None:
    """Each share has noise of deviation s/n, of its own in each tree."""
    table = [[100, 50], [3, 197], [80, 20], [1, 1]]
    tree = one_split(DOMAIN, 0, table, table, noise=10.0)
    (effect,) = effects(forest_of(DOMAIN, *[tree] * trees, link=SHARES))
    expected = np.array([10 / 150, 10 / 200, 10 / 100]) / np.sqrt(trees)
    assert effect.deviation[:3, 1] == pytest.approx(expected)


@pytest.mark.parametrize("counts", [True, False])
def test_many_values_are_looked_at_in_parts(counts: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A matrix of 10,000 values and the nodes below them would need gigabytes."""
    assert all(10_001 * (some.stop - some.start) <= 2**20 for some in _blocks(10_000, 10_001))
    whole = [*effects(deep(counts)), *effects(additive())]
    monkeypatch.setattr("dpforest_duckdb.model.effects.LARGEST_BLOCK", 1)
    for one, same in zip([*effects(deep(counts)), *effects(additive())], whole, strict=True):
        assert one.values == pytest.approx(same.values)
        assert one.deviation == pytest.approx(same.deviation, nan_ok=True)
        assert one.weights == pytest.approx(same.weights)


def test_a_forest_without_a_split_has_no_effects() -> None:
    leaf = Tree(*(np.zeros(1, dtype=np.int64) for _ in range(4)), None, np.array([[1, 2]]))
    found = forest_of(DOMAIN, leaf)
    assert effects(found) == []
    with pytest.raises(UsageError, match="no tree splits"):
        found.plot_effects()


@pytest.mark.more
def test_plots_show_every_attribute_and_value() -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    forest = additive()
    bars = forest.plot_importances()
    assert [text.get_text() for text in bars.get_yticklabels()] == ["size", "colour"]
    axes = forest.plot_effects("size")
    assert axes.get_lines()[0].get_ydata() == pytest.approx([-0.25, 0.25])
    assert [text.get_text() for text in axes.get_xticklabels()] == ["small", "large"]
    shown = [text.get_text() for text in deep(counts=True).plot_tree().texts]
    assert "colour = red" in shown
    assert "yes" in shown
    with pytest.raises(UsageError, match="No tree splits by"):
        forest.plot_effects("weight")
    with pytest.raises(UsageError, match="from 0 to 1"):
        forest.plot_tree(2)
    pyplot.close("all")


def test_the_labels_of_an_effect_are_inside_the_figure() -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    colours = DOMAIN.attributes[0]
    long = replace(colours, values=tuple(f"a rather unusual {value}" for value in colours.values))
    domain = replace(DOMAIN, attributes=(long, DOMAIN.attributes[1]))
    tree = one_split(domain, 0, log_odds([-1.0], [0.0], [1.0], [0.0]))
    axes = forest_of(domain, tree).plot_effects()
    axes.figure.canvas.draw()
    corners = [text.get_window_extent().corners() for text in axes.get_xticklabels()]
    assert np.min(corners) >= 0
    pyplot.close("all")


def test_a_forest_shows_itself_in_a_line_and_in_a_notebook() -> None:
    hostile = two_attributes(labels=("<b>no</b>", "yes"))
    forest = forest_of(hostile, one_split(hostile, 0, log_odds([0.0], [0.0], [1.0], [0.0])))
    assert repr(forest).count("\n") == 0
    assert "1 tree," in repr(forest)
    assert "&lt;b&gt;no" in forest._repr_html_()
    assert "<b>no" not in forest._repr_html_()


def test_show_prints_two_standard_deviations_of_recorded_noise(tmp_path: Path) -> None:
    table = [[100, 50], [3, 200], [80, 80], [0, 0]]
    tree = one_split(DOMAIN, 0, log_odds(*[[0.5]] * 4), table, noise=10.0)
    forest_of(DOMAIN, tree).save(tmp_path / "made.json")
    said = dpforest("show", "--model", tmp_path / "made.json").text
    bands = [2 * np.sqrt((10 / n0) ** 2 + (10 / n1) ** 2) for n0, n1 in ((100, 50), (10, 200))]
    assert [f"±{band:.3f}" for band in bands] == [
        line.split()[2] for line in said.splitlines()[1:3]
    ]
    assert said.rstrip().endswith("± is 2 standard deviations of the noise.")
    assert max(map(len, said.splitlines())) <= 80
    (effect,) = dpforest("show", "--model", tmp_path / "made.json", "--json").facts["effects"]
    assert effect["noise"][0] == pytest.approx([bands[0] / 2] * 2)


def test_show_prints_no_noise_that_a_model_does_not_record(saved: Path) -> None:
    assert "±" not in dpforest("show", "--model", saved).text
    effects_shown = dpforest("show", "--model", saved, "--json").facts["effects"]
    assert [effect["noise"] for effect in effects_shown] == [None, None]


def test_the_noise_of_a_probability_is_at_most_1(tmp_path: Path) -> None:
    tree = one_split(DOMAIN, 0, np.array([[1, 0], [0, 1]] * 2), [[1, 1]] * 4, noise=9.0)
    forest_of(DOMAIN, tree, link=SHARES).save(tmp_path / "made.json")
    assert "±1.000" in dpforest("show", "--model", tmp_path / "made.json").text


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    additive().save(tmp_path / "made.json")
    return tmp_path / "made.json"


def test_show_draws_effects_within_80_columns(saved: Path) -> None:
    lines = dpforest("show", "--model", saved).text.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("colour")
    assert [float(line.split()[1]) for line in lines[1:4]] == [-1.0, 0.0, 1.0]
    facts = dpforest("show", "--model", saved, "--attribute", "SIZE", "--json").facts
    assert [effect["attribute"] for effect in facts["effects"]] == ["size"]


def test_all_bars_of_one_output_have_one_scale(saved: Path) -> None:
    """Else the noise of an attribute without influence looks like a signal."""

    def bars(*words: str) -> list[int]:
        shown = dpforest("show", "--model", saved, *words).text
        return [line.count("█") for line in shown.splitlines() if "│" in line]

    assert bars() == [12, 0, 12, 3, 3]
    assert bars("--attribute", "size") == [12, 12]


def test_show_says_no_more_of_an_attribute_that_no_tree_splits_by(tmp_path: Path) -> None:
    tree = one_split(DOMAIN, 0, log_odds([-1.0], [0.0], [1.0], [0.0]))
    forest_of(DOMAIN, tree).save(tmp_path / "made.json")
    shown = dpforest("show", "--model", tmp_path / "made.json", "--attribute", "size").text
    assert shown == "No tree splits by it.\n"


def test_show_marks_a_label_that_it_cut_off() -> None:
    cuts = "> 147.890717324657 and <= 325.841945443404"
    assert ellipsized(cuts, 43) == cuts
    assert ellipsized(cuts, 28) == "> 147.890717324657 and <= 3…"


def test_show_draws_a_tree(saved: Path) -> None:
    drawn = dpforest("show", "--model", saved, "--tree", 1).text
    assert "size = small → log-odds -0.25" in drawn, "no leaf predicts alone"
    assert "size = large → log-odds +0.25" in drawn
    facts = dpforest("show", "--model", saved, "--tree", 1, "--json").facts
    assert {rule["tree"] for rule in facts["rules"]} == {facts["tree"]} == {1}
    assert [rule["node"] for rule in facts["rules"]] == [0, 1, 2, 3]


def test_in_a_pipe_each_node_of_a_tree_has_one_line(tmp_path: Path) -> None:
    domain = two_attributes(labels=("no " * 30, "yes " * 30))
    tree = one_split(domain, 0, [[1, 2]] * 4, [[1_000_000, 2]] * 4)
    forest_of(domain, tree, link=SHARES).save(tmp_path / "made.json")
    lines = dpforest("show", "--model", tmp_path / "made.json", "--tree", 0).text.splitlines()
    assert len(lines) == 5
    assert all(line == line.rstrip() for line in lines)
    assert all("[1000000, 2]" in line for line in lines[1:])


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("--tree", 2), "--tree must be from 0 to 1"),
        (("--attribute", "weight"), 'no attribute "weight"'),
        (("--tree", 1, "--attribute", "size"), "cannot be used together"),
    ],
)
def test_show_refuses_what_the_model_does_not_have(saved: Path, words: tuple, hint: str) -> None:
    said = dpforest("show", "--model", saved, *words)
    assert said.code == 2
    assert hint in said.err
    assert json.loads(saved.read_text())["name"] == "made"


def test_show_draws_neighbouring_bins_with_the_same_change_as_one(tmp_path: Path) -> None:
    number = Attribute("n", "numeric", lower=0, upper=4, edges=(0, 1, 2, 3)).bound(INTEGER)
    domain = Domain((number,), "k", ("no", "yes"), VARCHAR)
    votes = log_odds([-1.0], [1.0], [1.0], [0.5], [-1.0], [-1.0])
    forest_of(domain, one_split(domain, 0, votes)).save(tmp_path / "made.json")
    lines = dpforest("show", "--model", tmp_path / "made.json").text.splitlines()[1:-1]
    assert [line[:16].strip() for line in lines] == ["<= 0", "> 0 and <= 2", "3", "> 3", "NULL"]
    assert [line.split("│")[0].split()[-1][0] for line in lines] == ["█", "+", "+", "█", "█"]
    facts = dpforest("show", "--model", tmp_path / "made.json", "--json").facts
    assert len(facts["effects"][0]["values"]) == 6, "JSON has every bin"
