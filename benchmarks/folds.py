"""The folds of a cross-validation: three stratified parts, split three times for small tables."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from in_memory import Table

from dpforest_duckdb.arrays import Integers

FOLDS, REPEATS, SMALL = 3, 3, 8_000


def folds(table: Table) -> Iterator[Integers]:
    """For every test part an array that is 0 on it: each class dealt out evenly, at random."""
    labels = np.array(table.domain.classes)[table.labels]
    for repeat in range(REPEATS if len(labels) < SMALL else 1):
        random, fold = np.random.default_rng(repeat), np.empty(len(labels), dtype=np.int64)
        dealt = 0  # classes go on where the one before ended, so that folds are of one size
        for label in np.unique(labels):
            mine = random.permutation(np.flatnonzero(labels == label))
            fold[mine] = (dealt + np.arange(len(mine))) % FOLDS
            dealt += len(mine)
        for test in range(FOLDS):
            yield (fold - test) % FOLDS
