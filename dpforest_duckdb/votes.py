"""Log-odds as the integer votes that scoring adds up."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpforest_duckdb.forest import LEAF, SCALE, Tree
from dpforest_duckdb.privacy.accountant import Plan
from dpforest_duckdb.privacy.noise import laplace_deviation
from dpforest_duckdb.recipe import Counts, Request

Floats = NDArray[np.float64]

FINENESS = 1000  # votes are rounded to thousandths: what differs by less is read as one


def integer_votes(log_odds: Floats) -> Counts:
    """Votes `[leaf, class]` of at least 0: what is the same for all classes does not matter.

    Votes of two classes sum to the same at every leaf of a tree, so that SQL needs one of them.
    """
    votes = np.rint(log_odds * FINENESS).astype(np.int64) * (SCALE // FINENESS)
    if log_odds.shape[1] == 2:
        votes[:, 0] = -votes[:, 1]
    least: Counts = votes.min(axis=1, keepdims=True)
    return votes - (least if log_odds.shape[1] > 2 else least.min())


def of_two(log_odds: Floats) -> Floats:
    """Log-odds `[leaf]` of the second of two classes, as those of both."""
    return np.stack([-log_odds, log_odds], axis=1) / 2


def intercept(log_odds: Floats, request: Request, plan: Plan) -> Tree:
    """A tree without a split that votes for all rows, by log-odds `[class]`."""
    rows = plan.query("rows")
    assert rows is not None, "log-odds of all rows need a noisy number of them"
    return Tree(
        kind=np.array([LEAF]),
        attribute=np.array([-1]),
        cell=np.array([0]),
        first=np.array([-1]),
        counts=np.array([request.histogram], dtype=np.int64),
        votes=integer_votes(log_odds[None]),
        noise=np.array([laplace_deviation(rows.by_depth[0], request.rows_per_unit)]),
    )
