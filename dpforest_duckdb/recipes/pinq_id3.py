"""PINQ-based ID3: McSherry, SIGMOD 2009, as Friedman & Schuster, KDD 2010, describe it.

As SuLQ, but cells of a partition cost once, so a level pays half for a noisy node size and shares
the other half among the attributes that are left; leaves ask their class counts.
Assumed: a level is one of d + 1, and the leaf level's halves are a size and the class counts; the
stopping rule is DiffP-ID3's.
"""

from __future__ import annotations

from dpforest_duckdb.budgets import LAPLACE, per_node
from dpforest_duckdb.finishing import alone, each
from dpforest_duckdb.recipe import Recipe
from dpforest_duckdb.splits.choose import by_noisy_counts
from dpforest_duckdb.stopping import drowned
from dpforest_duckdb.voting import vote_by_counts

PINQ_ID3 = Recipe(
    name="pinq-id3",
    title="PINQ-based ID3 (McSherry; Friedman & Schuster)",
    year=2009,
    paper="Privacy Integrated Queries, SIGMOD 2009; Data Mining with Differential Privacy, 2010",
    rows="all",
    ways="multiway",
    choose=by_noisy_counts(of_all=False),
    trees=1,
    depth=3,
    plan=per_node("discrete Laplace on the attributes left", LAPLACE),
    stop=drowned,
    finish=each(alone(vote_by_counts)),
    only="Everything is computed from noisy counts: it is private as published.",
)
