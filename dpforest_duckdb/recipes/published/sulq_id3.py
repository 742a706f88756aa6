"""SuLQ-based ID3: Blum, Dwork, McSherry & Nissim, PODS 2005; thesis (4.1), (4.2).

Every node asks noisy counts n_v,c and n_v of every attribute, two queries each: ε = B / (2dm), and
splits by the largest information gain of them. The counts of the attribute that wins are its
children's histograms. All of it is post-processing of Laplace counts: nothing is to be repaired.
Assumed: the leaves are told by their parents' counts, since all of B goes to splits.
"""

from __future__ import annotations

from dpforest_duckdb.postprocess.pipeline import alone, each
from dpforest_duckdb.postprocess.voting import vote_by_counts
from dpforest_duckdb.recipes.plans import spread
from dpforest_duckdb.recipes.recipe import Recipe
from dpforest_duckdb.splits.published import by_noisy_counts

SULQ_ID3 = Recipe(
    name="sulq-id3",
    title="SuLQ-based ID3 (Blum et al.)",
    year=2005,
    paper="Practical Privacy: The SuLQ Framework, PODS 2005",
    rows="all",
    split_type="multiway",
    choose=by_noisy_counts(of_all=True),
    trees=1,
    depth=3,
    plan=lambda request: spread(
        request, {"split": ("discrete Laplace on every attribute", (1,) * request.depth)}
    ),
    finish=each(alone(vote_by_counts)),
    only="Everything is computed from noisy counts: it is private as published.",
)
