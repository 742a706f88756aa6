"""What the released counts of a forest say about the table and the domain: post-processing.

A wrong table, misspelt classes or values of another form leave few rows, or none. Nothing is
refused then, because that would depend on private rows. But the noisy counts show it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from dpforest_duckdb.arrays import Floats, Integers
from dpforest_duckdb.domain.names import listed
from dpforest_duckdb.scoring.content import ForestContent
from dpforest_duckdb.tree import MULTIWAY, Tree

CLEAR = 10  # standard deviations of the noise: so many rows cannot be overlooked
FEW = 20  # one in so many rows has a listed value: so few that the domain is likely wrong


def doubts(forest: ForestContent) -> list[str]:
    """A sentence if there seem to be no rows, or one for each attribute without listed values, and
    for values and classes that no row seems to have.
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
    names = sorted(_unlisted(forest, rows, spread))
    unlisted = [
        f'By the noisy counts, "{name}" is NULL or outside of the domain in nearly all rows: check '
        "the domain, and how the values are written."
        for name in names
    ]
    unseen = [
        f'By the noisy counts, perhaps no row has {listed(values, 5)} in "{name}": check how it is '
        "written."
        for name, values in sorted(_unseen(forest))
        if name not in names
    ]
    return [*unlisted, *dict.fromkeys(unseen)]


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
    """The attributes whose listed categories or bins have fewer than one in `FEW` of the rows.

    They are those that a tree divides all rows by.
    """
    classes = len(forest.domain.classes)
    for tree in forest.trees:
        if tree.kind[0] != MULTIWAY or tree.counts is None or tree.noise is None:
            continue
        attribute = forest.domain.attributes[tree.attribute[0]]
        listed = slice(int(tree.first[0]), int(tree.first[0]) + attribute.proper)
        noise = math.sqrt(float((tree.noise[listed] ** 2).sum()) * classes)
        if math.isnan(noise):
            continue
        held = float(tree.counts[listed].sum())
        if held + 2 * noise < (rows - 2 * spread) / FEW:
            yield attribute.column


def _unseen(forest: ForestContent) -> Iterator[tuple[str, list[str]]]:
    """The columns with listed categories, or classes, that no row seems to have, and these.

    Each has a count within two standard deviations of 0, where equal parts of the rows would be
    CLEAR of them.
    """
    classes = len(forest.domain.classes)
    for tree in forest.trees:
        if tree.counts is None or tree.noise is None:
            continue
        totals, noise = tree.counts[0], tree.noise[:1]
        if none := _hidden(totals, np.broadcast_to(noise, totals.shape)):
            yield forest.domain.target, [forest.domain.classes[number] for number in none]
        attribute = forest.domain.attributes[tree.attribute[0]]
        if tree.kind[0] != MULTIWAY or attribute.kind != "categorical":
            continue
        cells = slice(int(tree.first[0]), int(tree.first[0]) + attribute.proper)
        rows, spread = tree.counts[cells].sum(axis=1), tree.noise[cells] * math.sqrt(classes)
        if none := _hidden(rows, spread):
            yield attribute.column, [attribute.values[number] for number in none]


def _hidden(rows: Integers, noise: Floats) -> list[int]:
    """The places of `rows[place]` hardly above their noise, if their mean is far above it."""
    low = (rows < 2 * noise) & (rows.mean() > CLEAR * noise)  # NaN is neither
    return [int(place) for place in np.flatnonzero(low)]
