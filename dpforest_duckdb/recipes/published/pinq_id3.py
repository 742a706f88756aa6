"""PINQ-based ID3: McSherry, SIGMOD 2009, as Friedman & Schuster, KDD 2010, describe it.

As SuLQ, but cells of a partition cost once, so a level pays half for a noisy node size and shares
the other half among the attributes that are left; leaves ask their class counts.
Assumed: a level is one of d + 1, and the leaf level's halves are a size and the class counts; the
stopping rule is DiffP-ID3's.
"""

from __future__ import annotations

from dpforest_duckdb.postprocess.pipeline import alone, each
from dpforest_duckdb.postprocess.voting import vote_by_counts
from dpforest_duckdb.recipes.plans import LAPLACE, per_node
from dpforest_duckdb.recipes.recipe import Recipe
from dpforest_duckdb.recipes.stopping import drowned
from dpforest_duckdb.splits.published import by_noisy_counts

PINQ_ID3 = Recipe(
    name="pinq-id3",
    title="PINQ-based ID3 (McSherry; Friedman & Schuster)",
    year=2009,
    paper="Privacy Integrated Queries, SIGMOD 2009; Data Mining with Differential Privacy, 2010",
    rows="all",
    split_type="multiway",
    choose=by_noisy_counts(of_all=False),
    trees=1,
    depth=3,
    plan=per_node("discrete Laplace on the attributes left", LAPLACE),
    stop=drowned,
    finish=each(alone(vote_by_counts)),
    only="Everything is computed from noisy counts: it is private as published.",
)
