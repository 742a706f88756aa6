"""DiffP-C4.5: Friedman & Schuster, Data Mining with Differential Privacy, KDD 2010.

As DiffP-ID3, with numeric attributes: a split point of each is drawn first, weighted by the width
of its interval, then the attribute; the draws of a node share its split budget, one part for every
numeric attribute left and one for the last draw.
Assumed: Gini as the utility; points are bin edges over public bounds.
"""

from __future__ import annotations

from dataclasses import replace

from dpforest_duckdb.recipes.published.diffp_id3 import DIFFP_ID3
from dpforest_duckdb.recipes.recipe import Recipe, repaired
from dpforest_duckdb.splits.choose import Chooser
from dpforest_duckdb.splits.published import by_points
from dpforest_duckdb.splits.utilities import GINI, MAX_COUNT, Utility, with_factor_2


def choose(utility: Utility) -> Chooser:
    return by_points(utility, utility, by_width=True)


_PUBLISHED: Recipe = replace(
    DIFFP_ID3,
    name="diffp-c45",
    title="DiffP-C4.5 (Friedman & Schuster)",
    split_type="mixed",
    choose=choose(with_factor_2(GINI)),
    published=None,
    repair="",
    variants={},
)

DIFFP_C45 = repaired(
    _PUBLISHED,
    DIFFP_ID3.repair,
    choose=choose(GINI),
    variants={"max": {"choose": choose(MAX_COUNT)}},
)
