"""What the released counts of a forest say about the table and the domain: post-processing.

A wrong table, misspelt classes or values of another form leave few rows, or none. Nothing is
refused then, because that would depend on private rows. But the noisy counts show it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dpforest_duckdb.arrays import Floats, Integers
from dpforest_duckdb.domain import Attribute
from dpforest_duckdb.domain.names import listed
from dpforest_duckdb.errors import one_line
from dpforest_duckdb.scoring.content import ForestContent
from dpforest_duckdb.tree import MULTIWAY, Tree

CLEAR_DEVIATIONS = 10  # of the noise: so many rows cannot be overlooked
FEW = 20  # one in so many rows has a listed value: so few that the domain is likely wrong
LEAST_BINS = 4  # with fewer, many skewed columns have nearly all rows in one


def doubts(forest: ForestContent) -> list[str]:
    """A sentence if there seem to be no rows, or one for each attribute without listed values, for
    values and classes that no row seems to have, and for bounds that seem not to fit.
    """
    classes = len(forest.domain.classes)
    rows, spread = _rows(forest.trees, classes)
    if math.isinf(spread):
        return []
    if rows < 2 * spread:
        return [
            "By its noisy counts, the model may have seen no row: check the table and the classes "
            "of the domain, or take a larger ε."
        ]
    names = sorted(set(_unlisted(forest, rows, spread)))
    unlisted = [
        f'By the noisy counts, "{name}" is NULL or outside of the domain in nearly all rows: check '
        "the domain, and how the values are written."
        for name in names
    ]
    unseen = [
        f'By the noisy counts, perhaps these values of "{name}" are in no row: '
        f"{listed(values, 5)}. Check how they are written."
        for name, values in sorted(_unseen(forest))
        if name not in names
    ]
    crowded = sorted(set(_crowded(forest, rows, spread)))
    bounds = [
        "By the noisy counts, nearly all rows are in the first bin or in the last one of "
        f"{listed(crowded, 5)}: check the bounds, unless most rows have about the same value."
    ]
    return list(map(one_line, [*unlisted, *unseen, *(bounds if crowded else [])]))


def _rows(trees: tuple[Tree, ...], classes: int) -> tuple[float, float]:
    """The noisy number of rows and its standard deviation, which is infinite if none is released.

    It is the mean over the trees, weighted by their inverse variances.
    """
    total, exactness = 0.0, 0.0
    for tree in trees:
        if tree.counts is not None and tree.noise is not None and not math.isnan(tree.noise[0]):
            weight = 1 / max(float(tree.noise[0]) ** 2 * classes, 1e-9)
            total, exactness = total + weight * tree.counts[0].sum(), exactness + weight
    if not exactness:
        return 0.0, math.inf
    return total / exactness, 1 / math.sqrt(exactness)


def _unlisted(forest: ForestContent, rows: float, spread: float) -> Iterator[str]:
    """The attributes whose listed categories or bins have fewer than one in `FEW` of the rows."""
    classes = len(forest.domain.classes)
    for attribute, counts, noise in _first_splits(forest):
        deviation = math.sqrt(float((noise**2).sum()) * classes)
        most = float(counts.sum()) + 2 * deviation
        if most < (rows - 2 * spread) / FEW:  # never if the noise is unknown
            yield attribute.column


def _crowded(forest: ForestContent, rows: float, spread: float) -> Iterator[str]:
    """The numeric attributes of which all but one in `FEW` of the rows are in the first bin, or in
    the last. This happens if nearly all values are below the bounds, or above them.
    """
    classes = len(forest.domain.classes)
    nearly_all = (1 - 1 / FEW) * (rows + 2 * spread)
    for attribute, counts, noise in _first_splits(forest):
        if attribute.kind != "numeric" or attribute.proper < LEAST_BINS:
            continue
        for cell in (0, -1):
            least = counts[cell].sum() - 2 * float(noise[cell]) * math.sqrt(classes)
            if least > nearly_all:  # never if the noise is unknown
                yield attribute.column


def _unseen(forest: ForestContent) -> Iterator[tuple[str, list[str]]]:
    """The columns with listed categories, or classes, that no row seems to have, and these.

    Each has a count within two standard deviations of 0, where equal parts of the rows would be
    CLEAR_DEVIATIONS of them. Counts are means over the trees, weighted by their inverse variances.
    """
    classes, of_classes = forest.domain.classes, _Mean()
    for tree in forest.trees:
        if tree.counts is not None and tree.noise is not None:
            of_classes.add(tree.counts[0], tree.noise[:1])
    means = {forest.domain.target: (classes, of_classes)}
    for attribute, counts, noise in _first_splits(forest):
        if attribute.kind == "categorical":
            _, mean = means.setdefault(attribute.column, (attribute.values, _Mean()))
            mean.add(counts.sum(axis=1), noise * math.sqrt(len(classes)))
    for column, (values, mean) in means.items():
        if hidden := [values[place] for place in mean.hidden()]:
            yield column, hidden


def _first_splits(forest: ForestContent) -> Iterator[tuple[Attribute, Integers, Floats]]:
    """The attributes that trees divide all rows by, with the counts of each category or bin and
    the standard deviations of their noise.
    """
    for tree in forest.trees:
        if tree.kind[0] == MULTIWAY and tree.counts is not None and tree.noise is not None:
            attribute, first = forest.domain.attributes[tree.attribute[0]], int(tree.first[0])
            cells = slice(first, first + attribute.proper)
            yield attribute, tree.counts[cells], tree.noise[cells]


@dataclass
class _Mean:
    """A mean of noisy `rows[place]`, weighted by the inverse variances."""

    weighted: Floats | float = 0.0
    exactness: Floats | float = 0.0

    def add(self, rows: Integers, noise: Floats) -> None:
        """Rows with noise of these standard deviations; where it is NaN, they have no weight."""
        weight = np.nan_to_num(1 / np.maximum(noise, 1e-9) ** 2) * np.ones(len(rows))
        self.weighted, self.exactness = self.weighted + weight * rows, self.exactness + weight

    def hidden(self) -> list[int]:
        """The places hardly above their noise, if the mean of all is far above it."""
        exactness = np.atleast_1d(self.exactness)
        if not exactness.all():
            return []
        rows, noise = np.atleast_1d(self.weighted) / exactness, 1 / np.sqrt(exactness)
        low = (rows < 2 * noise) & (rows.mean() > CLEAR_DEVIATIONS * noise)
        return [int(place) for place in np.flatnonzero(low)]
