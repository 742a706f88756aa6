"""The points that rows give a mixture of models, worked out in memory."""

from __future__ import annotations

import math

import numpy as np

from dpforest_duckdb.engine.base import POINTS
from dpforest_duckdb.engine.shared.exponentials import LOG_STEPS, ONE
from dpforest_duckdb.tree import SCALE


def points(odds: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The points `[row]` of log-odds `[row, class]` for rows of these classes."""
    own, top = odds[np.arange(len(labels)), labels], odds.max(axis=1)
    powers = np.floor(ONE * np.exp((odds - top[:, None]) / SCALE) + 0.5)
    total = powers.sum(axis=1) // (ONE // LOG_STEPS) / LOG_STEPS
    loss = np.floor(SCALE * np.log(total) + 0.5) + top - own
    worst, half = round(4 * SCALE * math.log(odds.shape[1])), POINTS // 2
    found: np.ndarray = half * (top == own) + half * np.maximum(worst - loss, 0) // worst
    return found.astype(np.int64)
