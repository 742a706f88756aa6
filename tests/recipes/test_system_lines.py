"""What recipes say of their systems: line by line, and on the page of systems."""

from __future__ import annotations

import importlib
import re
from dataclasses import fields
from functools import cache
from pathlib import Path
from types import ModuleType

import duckdb
import numpy as np
import pytest
from shell import dpforest
from test_systems import PUBLISHED

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import VARCHAR
from dpforest_duckdb.guarantee import Guarantee
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.postprocess.voting import vote_by_majority
from dpforest_duckdb.recipes import RECIPES
from dpforest_duckdb.recipes.conformance import NO_TEXT
from dpforest_duckdb.recipes.leaf_queries import LEAF_COUNTS
from dpforest_duckdb.recipes.recipe import FIXED, Recipe
from dpforest_duckdb.splits.candidates import candidates
from dpforest_duckdb.splits.utilities import gini
from dpforest_duckdb.tree import EQUALS, THRESHOLD, Tree, Voting

ROOT = Path(__file__).parent.parent.parent


def test_a_line_that_is_cut_says_so() -> None:
    standings = {line.standing for line in RECIPES["diprime"].lines}
    assert standings == {"as published", "repaired", "assumed", "cut"}
    assert "| cut: C is one category" in (ROOT / "docs" / "systems.md").read_text("utf-8")


FOLDER = ROOT / "dpforest_duckdb" / "recipes" / "published"


def module_of(name: str) -> ModuleType:
    return importlib.import_module(f"dpforest_duckdb.recipes.published.{name.replace('-', '_')}")


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.py")), ids=lambda file: file.stem)
def test_a_recipe_file_fits_two_screens(file: Path) -> None:
    assert len(file.read_text(encoding="utf-8").splitlines()) <= 160


STATED = [name for name in PUBLISHED if RECIPES[name].lines]
FIELDS = {field.name for field in fields(Recipe)}


# what a form consists of: a line must say where each comes from
STATED_FIELDS = {"rows", "split_type", "trees", "depth", "plan", "finish"}


@pytest.mark.parametrize("name", STATED)
def test_each_line_names_a_piece_of_the_recipe(name: str) -> None:
    for line in RECIPES[name].lines:
        assert line.field in FIELDS, line
        assert not line.name or hasattr(module_of(name), line.name), line
        assert line.step, line
        assert line.source, line
        assert not line.cut or not (line.repaired or line.assumed), line
        assert line.source != NO_TEXT or line.assumed, line


@pytest.mark.parametrize("name", STATED)
def test_the_lines_cover_every_piece_of_a_recipe(name: str) -> None:
    recipe = RECIPES[name]
    stated = {line.field for line in recipe.lines}
    needed = STATED_FIELDS | {"choose" if recipe.choose else "learner"}
    needed |= {field for field in ("stop", "second") if getattr(recipe, field)}
    if recipe.adaptation != FIXED:
        needed |= {"adaptation"}
    assert needed <= stated
    assert recipe.leaf == LEAF_COUNTS or "leaf" in stated


@pytest.mark.parametrize("name", STATED)
def test_the_lines_say_repaired_where_the_two_forms_differ(name: str) -> None:
    recipe = RECIPES[name]
    if recipe.published is None:
        assert not any(line.repaired for line in recipe.lines)
        return
    pieces = STATED_FIELDS | {"choose", "stop", "leaf", "adaptation", "second", "voting", "learner"}
    differing = {f for f in pieces if getattr(recipe, f) != getattr(recipe.published, f)}
    assert {line.field for line in recipe.lines if line.repaired} == differing


@pytest.mark.parametrize("name", STATED)
def test_a_file_with_assumptions_says_so_at_its_top(name: str) -> None:
    assumed = any(line.assumed for line in RECIPES[name].lines)
    assert assumed == ("Assumed:" in (module_of(name).__doc__ or ""))


def test_every_published_system_has_a_recipe() -> None:
    """The 23 of the survey and the papers, by the names that users type."""
    systems = {
        *("sulq-id3", "pinq-id3", "diffp-id3", "diffp-c45", "diffgen", "dt-diff", "private-rdt"),
        *("diffprf", "dpdf", "snr-forest", "smooth-forest", "bojarski-forest", "rana-forest"),
        *("dprf-gini", "diffprfs", "hou-forest", "xin-dpgdf", "guan-dpgdf", "dprfmaxtree"),
        *("diprime", "tpdprf", "thesis-forest", "privatree"),
    }
    assert len(systems) == 23
    assert set(PUBLISHED) == systems


@cache
def page() -> str:
    """The page of systems as the command writes it."""
    return dpforest("recipes", "--markdown").text


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_repair_is_two_sentences_and_a_flaw_at_least_two(name: str) -> None:
    recipe = RECIPES[name]
    said = {"repair": recipe.repair, "flaw": " ".join((recipe.published or recipe).flaws)}
    for what, text in said.items():
        sentences = re.findall(r"[.](?= [A-Z(]|$)", text)
        assert len(sentences) in (0, 2) or (what == "flaw" and len(sentences) > 2), (what, text)
        assert text in page().replace("\n", " ")
    assert said["repair"] or recipe.one_form


def test_the_page_of_systems_is_current() -> None:
    written = (ROOT / "docs" / "systems.md").read_text(encoding="utf-8")
    assert page() == written, "write it again: dpforest recipes --markdown"
    listed = dpforest("recipes").text
    for name in RECIPES:
        assert f"## {name}\n" in written
        assert name in listed


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_in_full_shows_its_paper_and_what_it_assumes(name: str) -> None:
    shown = dpforest("recipes", name).text
    assert RECIPES[name].paper in shown
    for line in RECIPES[name].lines:
        assert line.step in shown
        assert line.source in shown
        assert not line.note or f"{line.standing}: {line.note}" in shown


def test_the_page_says_how_ordered_categories_are_cut_in_two() -> None:
    column = Attribute("a", "categorical", ("x", "y", "z"), ordered=True, nullable=False)
    public = Domain((column,), "c", ("p", "q"), VARCHAR)
    binary = candidates(public, "binary")
    assert list(zip(binary.kind.tolist(), binary.cell.tolist(), strict=True)) == [
        *((THRESHOLD, cell) for cell in range(2)),
        *((EQUALS, cell) for cell in range(3)),
    ]
    assert len(candidates(public, "mixed")) == len(candidates(public, "multiway")) == 1
    assert "an `ordered` column can also be cut in two between neighbours" in flowing(page())


def test_the_page_says_that_gini_counts_whole_rows() -> None:
    # 3 - 5/3 = 4/3 rows in each of two branches, 6 - 18/6 = 3 rows in one
    assert gini(np.array([[[2, 1], [1, 2]], [[3, 3], [0, 0]]])).tolist() == [-2, -3]
    assert "Gini weighted by rows is rounded down to whole rows in each branch" in flowing(page())


@pytest.mark.parametrize("voting", Voting)
def test_the_page_says_which_of_equal_classes_wins(
    con: duckdb.DuckDBPyConnection, voting: Voting
) -> None:
    """The first, though the tree that votes for it is the last, as the page says of all systems."""
    con.execute("CREATE TABLE t AS SELECT 'u' AS a")
    public = Domain(
        (Attribute("a", "categorical", ("u",), type=VARCHAR),), "k", ("x", "y"), VARCHAR
    )
    leaf = np.zeros(1, dtype=np.int64)
    trees = tuple(
        vote_by_majority(Tree(leaf, leaf - 1, leaf, leaf - 1, np.array([counts]), leaf[None]))
        for counts in ([0, 9], [3, 0])
    )
    forest = Forest("m", "r", Guarantee("1"), public, trees, voting=voting)
    assert forest.predict(con, "t").fetchall() == [("u", "x", 0.5, 0.5)]
    assert "equal votes of the trees, the first of the domain's classes wins" in flowing(page())
    (line,) = [each for each in RECIPES["snr-forest"].lines if "equally confident" in each.step]
    assert line.assumed.startswith("The first of the domain's classes wins.")


def flowing(text: str) -> str:
    """The text without its line breaks."""
    return " ".join(text.split())
