"""Small forests made by hand, for tests that need no training."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from unittest import mock

import numpy as np

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import VARCHAR
from dpforest_duckdb.guarantee import Guarantee
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.scoring.links import SOFTMAX, Link
from dpforest_duckdb.tree import EQUALS, LEAF, MULTIWAY, SCALE, THRESHOLD, Tree


def bit_sets() -> AbstractContextManager[object]:
    """The fast SQL of every forest uses bit sets meanwhile, even where nested CASE is faster."""
    return mock.patch("dpforest_duckdb.scoring.score_sql.bit_sets_pay", return_value=True)


def groups_of_one() -> AbstractContextManager[object]:
    """Bit sets look up each attribute on its own meanwhile, so trees of several need words."""
    return mock.patch.multiple("dpforest_duckdb.scoring.lookups", GRID=1, FILLED=0)


COLOURS = ("red", "green", "blue")


def two_attributes(
    names: Sequence[str] = ("colour", "size"), labels: Sequence[str] = ("no", "yes")
) -> Domain:
    """An attribute of three categories and one of two, no NULL, and a target."""
    made = (
        Attribute(names[0], "categorical", COLOURS, nullable=False),
        Attribute(names[1], "categorical", ("small", "large"), nullable=False),
    )
    types = dict.fromkeys([*names, "target"], VARCHAR)
    return Domain(made, "target", tuple(labels)).bind(types)


def one_split(
    domain: Domain,
    attribute: int,
    votes: Sequence[Sequence[int]],
    counts: Sequence[Sequence[int]] | None = None,
    noise: float = 1.0,
) -> Tree:
    """A tree of one multiway split by `votes[cell, class]` and, where given, noisy counts."""
    cells = domain.cells[attribute]
    leaves = np.array(votes, dtype=np.int64)
    every = np.concatenate([np.zeros((1, leaves.shape[1]), dtype=np.int64), leaves])
    held = None if counts is None else np.array(counts, dtype=np.int64)
    return Tree(
        kind=np.array([MULTIWAY] + [LEAF] * cells),
        attribute=np.array([attribute] + [-1] * cells),
        cell=np.zeros(cells + 1, dtype=np.int64),
        first=np.array([1] + [-1] * cells),
        counts=None if held is None else np.concatenate([held.sum(axis=0, keepdims=True), held]),
        votes=every,
        noise=None if held is None else np.full(cells + 1, noise),
    )


def two_splits(domain: Domain, seed: int, attributes: tuple[int, int] = (0, 1)) -> Tree:
    """A tree that splits every row by two attributes, with votes at random."""
    first, second = (domain.cells[attribute] for attribute in attributes)
    inner, leaves = 1 + first, first * second
    votes = np.random.default_rng(seed).integers(1, SCALE, (leaves, len(domain.classes)))
    return Tree(
        kind=np.array([MULTIWAY] * inner + [LEAF] * leaves),
        attribute=np.array([attributes[0]] + [attributes[1]] * first + [-1] * leaves),
        cell=np.zeros(inner + leaves, dtype=np.int64),
        first=np.array([1, *range(inner, inner + leaves, second), *[-1] * leaves]),
        counts=None,
        votes=np.concatenate([np.zeros((inner, votes.shape[1]), dtype=np.int64), votes]),
    )


def random_tree(
    domain: Domain,
    random: np.random.Generator,
    reach: int,
    *,
    exact: bool,
    kinds: Sequence[int] = (MULTIWAY, EQUALS, EQUALS),
) -> Tree:
    """A tree of splits of these kinds and by thresholds, three deep at most; votes up to `reach`.

    With `exact` the votes of a leaf are positive and sum to the same everywhere.
    """
    kind, attribute, cell, first = [LEAF], [-1], [0], [-1]
    level = [0]
    for _ in range(3):
        born: list[int] = []
        for node in level:
            a = int(random.integers(len(domain.attributes)))
            cells, proper = domain.cells[a], domain.attributes[a].proper
            split = int(random.choice([*kinds] + [THRESHOLD] * (proper > 1)))
            if split == LEAF or cells < 2 or len(kind) > 40:
                continue
            kind[node], attribute[node], first[node] = split, a, len(kind)
            cell[node] = int(random.integers(proper - 1 if split == THRESHOLD else cells))
            for _ in range(cells if split == MULTIWAY else 2):
                born.append(len(kind))
                kind.append(LEAF)
                attribute.append(-1)
                cell.append(0)
                first.append(-1)
        level = born
    classes = len(domain.classes)
    votes = random.integers(1, reach, size=(len(kind), classes))
    if exact:
        votes[:, 0] = reach * classes - votes[:, 1:].sum(axis=1)
    found = np.array(kind)
    leaves = np.where((found == LEAF)[:, None], votes, 0)
    return Tree(found, np.array(attribute), np.array(cell), np.array(first), None, leaves)


def forest_of(
    domain: Domain, *trees: Tree, link: Link = SOFTMAX, private: bool = True, **fields: str
) -> Forest:
    """A forest with a guarantee of ε = 1."""
    reasons = () if private else ("The noise comes from a seed.",)
    return Forest(
        name=fields.get("name", "made"),
        recipe="by-hand",
        guarantee=Guarantee("1", private=private, reasons=reasons, plan=("leaf: by hand, ε = 1",)),
        domain=domain,
        trees=trees,
        link=link,
        table=fields.get("table", ""),
        version="0",
    )


def log_odds(*rows: Sequence[float]) -> list[list[int]]:
    """Votes of leaves, none negative, from log-odds of two classes of at most 8 either way."""
    return [[round((4 - value / 2) * SCALE), round((4 + value / 2) * SCALE)] for (value,) in rows]
