"""DP-RF: Fletcher & Islam, A Differentially Private Random Decision Forest using Reliable
Signal-to-Noise Ratios, AI 2015.

Random multiway trees on all rows, as many as leave the support threshold θ = √2 C / ε below what a
tree of depth 3 expects of its leaves, (4.38); a node is split while its expected support stays
above θ. Leaves tell class counts with B/τ; counts are summed upward, nodes without signal pruned
(4.40), a leaf votes as the most confident node of its path, and the most confident tree wins.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.postprocess.pipeline import each, with_cells, with_noise
from dpforest_duckdb.postprocess.pruning import prune_by_signal
from dpforest_duckdb.postprocess.shrinkage import sum_upward
from dpforest_duckdb.postprocess.voting import vote_by_surest
from dpforest_duckdb.privacy.noise import noise_scale
from dpforest_duckdb.recipes.plans import LAPLACE, NOISY_ROWS, PUBLIC_ROWS, ROWS_SHARE, leaves_only
from dpforest_duckdb.recipes.recipe import Recipe, repaired
from dpforest_duckdb.recipes.stopping import unsupported
from dpforest_duckdb.request import Request
from dpforest_duckdb.splits.choose import at_random


def adapt(histogram: Integers, request: Request) -> Request:
    """The most trees that (4.38) bears, from the class counts of all rows."""
    rows, domain = max(int(histogram.sum()), 1), request.domain
    scale = noise_scale(request.epsilon, request.rows_per_unit)  # of one tree
    theta = math.sqrt(2) * len(domain.classes) * scale  # times τ
    bearable = int(rows / float(np.mean(domain.cells)) ** 2 / theta)
    return replace(request, rows=rows, trees=max(1, min(request.trees, bearable)))


_PUBLISHED = Recipe(
    name="snr-forest",
    title="Signal-to-noise forest (Fletcher & Islam)",
    year=2015,
    paper="A Differentially Private Random Decision Forest using Reliable SNR, AI 2015",
    rows="all",
    split_type="multiway",
    choose=at_random,
    trees=lambda domain: len(domain.attributes),
    depth=lambda domain: len(domain.attributes),
    plan=leaves_only(LAPLACE),
    adapt=adapt,
    stop=unsupported,
    finish=each(with_cells(sum_upward), with_noise(prune_by_signal), with_cells(vote_by_surest)),
    voting="surest",
    flaws=(PUBLIC_ROWS, "Trees and depth rest on it."),
)

SNR_FOREST = repaired(
    _PUBLISHED,
    NOISY_ROWS + " Trees and depth rest on that.",
    plan=leaves_only(LAPLACE, rows=ROWS_SHARE),
)
