"""DT-Diff: Zhu, Xiong, Xiang & Zhou, Decision tree with differential privacy, 2012.

As DiffGen, but a step is one draw: the points of numeric intervals carry weights and compete with
the categorical specialisations in one exponential mechanism. Half of B for h draws, half for the
noisy class counts of the cells.
Taxonomies as there. Assumed: an attribute's points together weigh as much as a categorical one.
"""

from __future__ import annotations

from dataclasses import replace

from dpforest_duckdb.recipes.plans import LAPLACE, half_to_leaves
from dpforest_duckdb.recipes.published.diffgen import DIFFGEN
from dpforest_duckdb.recipes.recipe import Recipe, repaired
from dpforest_duckdb.splits.published import for_all_nodes
from dpforest_duckdb.splits.utilities import INFORMATION_GAIN, MAX_COUNT, with_factor_2

_PUBLISHED: Recipe = replace(
    DIFFGEN,
    name="dt-diff",
    title="DT-Diff (Zhu et al.)",
    year=2012,
    paper="Differentially private decision trees by weighted specialisation, 2012",
    choose=for_all_nodes(None, with_factor_2(MAX_COUNT)),
    plan=half_to_leaves("exponential mechanism", LAPLACE),
    published=None,
    repair="",
    variants={},
)

DT_DIFF = repaired(
    _PUBLISHED,
    DIFFGEN.repair,
    choose=for_all_nodes(None, MAX_COUNT),
    variants={"ig": {"choose": for_all_nodes(None, INFORMATION_GAIN)}},
)
