"""All recipes by name, and how to find one."""

from __future__ import annotations

import difflib
from dataclasses import replace

from dpforest_duckdb.errors import UsageError
from dpforest_duckdb.recipes.ours.auto import AUTO
from dpforest_duckdb.recipes.ours.boosted import BOOSTED
from dpforest_duckdb.recipes.ours.class_means import CLASS_MEANS
from dpforest_duckdb.recipes.ours.greedy_tree import GREEDY_TREE
from dpforest_duckdb.recipes.ours.joint_tables import JOINT_TABLES
from dpforest_duckdb.recipes.ours.log_odds import LOG_ODDS
from dpforest_duckdb.recipes.ours.rooted_tables import ROOTED_TABLES
from dpforest_duckdb.recipes.ours.tree_beside_sums import TREE_BESIDE_SUMS
from dpforest_duckdb.recipes.published.bojarski_forest import BOJARSKI_FOREST
from dpforest_duckdb.recipes.published.diffgen import DIFFGEN
from dpforest_duckdb.recipes.published.diffp_c45 import DIFFP_C45
from dpforest_duckdb.recipes.published.diffp_id3 import DIFFP_ID3
from dpforest_duckdb.recipes.published.diffprf import DIFFPRF
from dpforest_duckdb.recipes.published.diffprfs import DIFFPRFS
from dpforest_duckdb.recipes.published.diprime import DIPRIME
from dpforest_duckdb.recipes.published.dpdf import DPDF
from dpforest_duckdb.recipes.published.dprf_gini import DPRF_GINI
from dpforest_duckdb.recipes.published.dprfmaxtree import DPRFMAXTREE
from dpforest_duckdb.recipes.published.dt_diff import DT_DIFF
from dpforest_duckdb.recipes.published.guan_dpgdf import GUAN_DPGDF
from dpforest_duckdb.recipes.published.hou_forest import HOU_FOREST
from dpforest_duckdb.recipes.published.pinq_id3 import PINQ_ID3
from dpforest_duckdb.recipes.published.private_rdt import PRIVATE_RDT
from dpforest_duckdb.recipes.published.privatree import PRIVATREE
from dpforest_duckdb.recipes.published.rana_forest import RANA_FOREST
from dpforest_duckdb.recipes.published.smooth_forest import SMOOTH_FOREST
from dpforest_duckdb.recipes.published.snr_forest import SNR_FOREST
from dpforest_duckdb.recipes.published.sulq_id3 import SULQ_ID3
from dpforest_duckdb.recipes.published.thesis_forest import THESIS_FOREST
from dpforest_duckdb.recipes.published.tpdprf import TPDPRF
from dpforest_duckdb.recipes.published.xin_dpgdf import XIN_DPGDF
from dpforest_duckdb.recipes.recipe import Recipe

# our own first, the others by year
RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        AUTO, LOG_ODDS, CLASS_MEANS, JOINT_TABLES, ROOTED_TABLES, TREE_BESIDE_SUMS, BOOSTED,
        GREEDY_TREE,
        SULQ_ID3, PINQ_ID3, PRIVATE_RDT, DIFFP_ID3, DIFFP_C45, DIFFGEN, DT_DIFF, DIFFPRF,
        DPDF, SNR_FOREST, BOJARSKI_FOREST, RANA_FOREST, DIFFPRFS, SMOOTH_FOREST, DPRF_GINI,
        HOU_FOREST, XIN_DPGDF, GUAN_DPGDF, DPRFMAXTREE, DIPRIME, TPDPRF,
        THESIS_FOREST, PRIVATREE,
    )
}  # fmt: skip


def find(name: str, *, as_published: bool = False) -> Recipe:
    """A recipe by name, or NAME:VARIANT, in its rigorous form unless `as_published`.

    Raises `UsageError` for an unknown name or variant, or a form that does not exist.
    """
    name, _, variant = name.partition(":")
    if name not in RECIPES:
        near = difflib.get_close_matches(name, RECIPES, n=1)
        hint = f"did you mean {near[0]}?" if near else "dpforest recipes lists all of them."
        raise UsageError(f'There is no recipe "{name}": {hint}')
    recipe = RECIPES[name]
    if as_published:
        if recipe.published is None:
            raise UsageError(
                f"Recipe {name} has one form only, so leave out --as-published. {recipe.one_form}"
            )
        recipe = recipe.published
    if not variant:
        return recipe
    if variant in recipe.refused:
        raise UsageError(f"Recipe {name}:{variant} does not exist: {recipe.refused[variant]}.")
    if variant not in recipe.variants:
        if not recipe.variants:
            raise UsageError(f"Recipe {name} has no variants in this form: write {name} alone.")
        known = ", ".join(f"{name}:{other}" for other in recipe.variants)
        raise UsageError(f'There is no "{name}:{variant}" in this form; variants are {known}.')
    return replace(recipe, name=f"{name}:{variant}", **recipe.variants[variant])
