"""What the released counts of a forest say about the table and the domain: post-processing.

A wrong table, misspelt classes or values of another form leave few rows, or none. Nothing is
refused then, because that would depend on private rows. But the noisy counts show it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from dpforest_duckdb.scoring.content import ForestContent
from dpforest_duckdb.tree import MULTIWAY, Tree

FEW = 20  # one in so many rows has a listed value: so few that the domain is likely wrong


def doubts(forest: ForestContent) -> list[str]:
    """A sentence if there seem to be no rows, or one for each attribute without listed values."""
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
    return [
        f'By the noisy counts, "{name}" is NULL or outside of the domain in nearly all rows: check '
        "the domain, and how the values are written."
        for name in names
    ]


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
