"""The published systems, one short file each."""

from __future__ import annotations

import difflib

from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.recipe import Recipe
from dpforest_duckdb.recipes.auto import AUTO
from dpforest_duckdb.recipes.dpdf import DPDF

RECIPES: dict[str, Recipe] = {recipe.name: recipe for recipe in (AUTO, DPDF)}


def find(name: str, *, as_published: bool = False) -> Recipe:
    """A recipe by name, in its rigorous form unless `as_published`.

    Raises `DpforestError` for an unknown name or a form that does not exist.
    """
    if name not in RECIPES:
        near = difflib.get_close_matches(name, RECIPES, n=1)
        hint = f"did you mean {near[0]}?" if near else f"choose from {', '.join(RECIPES)}."
        raise DpforestError(f'There is no recipe "{name}": {hint}')
    recipe = RECIPES[name]
    if not as_published:
        return recipe
    if recipe.published is None:
        raise DpforestError(
            f"Recipe {name} has no published form of its own: leave out --as-published."
        )
    return recipe.published
