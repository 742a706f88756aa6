"""The ten points of a numeric attribute in the thesis; the recipe is in `thesis_forest.py`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpforest_duckdb.arrays import Mask
from dpforest_duckdb.splits.candidates import Candidates
from dpforest_duckdb.splits.choose import Choice, Chooser, Drawn
from dpforest_duckdb.splits.published import drawn_at
from dpforest_duckdb.tree import THRESHOLD


def at_points(chooser: Chooser, number: int) -> Chooser:
    """The chooser with `number` thresholds of each numeric attribute, at equal distances in value.

    A node that has none of them left, and no other split, stays a leaf. All of it is public.
    """

    def choose(choice: Choice) -> Drawn:
        allowed = choice.allowed & equidistant(choice.candidates, number)
        left: Mask = np.asarray(allowed.any(axis=1))
        return drawn_at(left, replace(choice, allowed=allowed), chooser)

    return choose


def equidistant(splits: Candidates, number: int) -> Mask:
    """`[candidate]`: which candidates remain if each attribute keeps `number` thresholds.

    They are the thresholds nearest to `number` equally spaced points between the lower bound of an
    attribute and one bin above its last edge. An attribute with fewer thresholds keeps all of them.
    """
    kept = np.ones(len(splits), dtype=np.bool_)
    for a in splits.numeric:
        cuts = splits.of(a)[splits.kind[splits.of(a)] == THRESHOLD]
        if len(cuts) > number:
            value = splits.width[cuts].cumsum()
            steps = (value[-1] + splits.width[cuts[-1]]) * np.arange(1, number + 1) / (number + 1)
            nearest = abs(value[None, :] - steps[:, None]).argmin(axis=1)
            kept[cuts] = np.isin(np.arange(len(cuts)), nearest)
    return kept
