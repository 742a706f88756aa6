"""Whole trainings in DuckDB on a pair of neighbouring tables: a check that the parts fit together.

The privacy loss of a training is divided over many releases, so these bounds are far below those of
single mechanisms (`dpforest_duckdb.audit.mechanisms`). A cost that was forgotten shows here. The
event is chosen on one half of the runs and counted on the other.

The figures that events are made of include the two on which the loss of Laplace and of joint noise
depends: by how much the noisy counts are closer to the true ones of one table than of the other.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

from dpforest_duckdb.audit.bound import lower_bound
from dpforest_duckdb.audit.mechanisms import Finding
from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.recipes import find
from dpforest_duckdb.training.prepare import prepare
from dpforest_duckdb.tree import LEAF, Tree

Features = NDArray[np.int64]  # [run, feature]
Row = tuple[str, ...]

DEPTH, TREES = 2, 4  # at most
DELTA = "1e-5"
WITH_DELTA = ("auto", "boosted")  # the recipes that make other forests with a δ
EVENTS = 60  # thresholds tried for each feature

# A row that differs from forty others in everything: it has its own cell, leaf and class.
_MANY: list[Row] = [("x", "xy"[i % 2], "x", "k0") for i in range(40)]
_FAR: Row = ("y", "y", "y", "k1")
# One row, and another of the next class that shares only its value of the first attribute: every
# other attribute separates the two.
_ONE: list[Row] = [("x",) * 6 + ("k0",)]
_NEXT: Row = ("x",) + ("y",) * 5 + ("k1",)


def audit_recipe(
    name: str,
    runs: int,
    *,
    delta: str = "0",
    as_published: bool = False,
    progress: Callable[[int], None] = lambda done: None,
) -> Finding:
    """Train `runs` times on each table, with few trees, and compute a lower bound on ε.

    The published form of DPDF has its largest loss on two rows, so it is tried on those, at ε =
    0.1. The others are tried on forty rows and one more, at ε = 1. Raises `DpforestError` for an
    unknown recipe.
    """
    rows, more, epsilon = (_ONE, _NEXT, "0.1") if name == "dpdf" else (_MANY, _FAR, "1")
    domain = _domain(len(more) - 1, 18 if name == "dpdf" else 2)
    found = [
        np.array(
            [
                _revealed(forest, more)
                for forest in _forests(
                    name, side, domain, (epsilon, delta), runs, as_published, progress
                )
            ]
        )
        for side in (rows, [*rows, more])
    ]
    half = runs // 2
    event = _best_event(*(features[:half] for features in found), delta=float(delta))
    seen = [int(event(features[half:]).sum()) for features in found]
    bound = lower_bound((seen[0], seen[1]), runs - half, delta=float(delta))
    private = not find(name, as_published=as_published).flaws
    title = f"{name} as published" if as_published else name
    title += "" if delta == "0" else f", δ = {delta}"
    return Finding(title, float(epsilon), None, bound, private)


def _domain(attributes: int, classes: int) -> Domain:
    made = [Attribute(f"a{i}", "categorical", ("x", "y")) for i in range(attributes)]
    return Domain(tuple(made), "k", tuple(f"k{i}" for i in range(classes)))


def _forests(
    name: str,
    rows: list[Row],
    domain: Domain,
    claim: tuple[str, str],
    runs: int,
    as_published: bool,
    progress: Callable[[int], None],
) -> Iterator[Forest]:
    """Forests that are trained on the same rows, each with noise of its own."""
    con, trees = duckdb.connect(), find(name, as_published=as_published).trees
    con.execute("SET threads = 1")  # a query of forty rows gains nothing from more
    columns = [*(attribute.name for attribute in domain.attributes), "k"]
    con.execute(f"CREATE TABLE t ({', '.join(f'{column} VARCHAR' for column in columns)})")
    con.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(columns))})", rows)
    with tempfile.TemporaryDirectory(prefix="dpforest-audit-") as folder:
        run = prepare(
            con,
            "t",
            epsilon=claim[0],
            delta=claim[1],
            domain=domain,
            recipe=name,
            trees=min(TREES, trees) if isinstance(trees, int) else None,
            depth=DEPTH,
            as_published=as_published,
            ledger=Path(folder) / "ledger",
        )
        for done, forest in enumerate(run.releases_uncapped(runs), 1):
            yield forest
            progress(done)


def _revealed(forest: Forest, row: Row) -> list[int]:
    """Figures of a forest that may depend on the row: its splits, sizes, counts and votes."""
    codes = np.array([[a.code(v) for a, v in zip(forest.domain.attributes, row, strict=False)]])
    label = forest.domain.classes.index(row[-1])
    first = forest.trees[1 if forest.link == "softmax" and len(forest.trees) > 1 else 0]
    leaves = [(tree, int(tree.find(codes)[0])) for tree in forest.trees]
    counts = [(tree.counts, leaf) for tree, leaf in leaves if tree.counts is not None]
    votes = sum(int(tree.votes[leaf, label]) for tree, leaf in leaves)
    closer = [_closer(tree, leaf, label) for tree, leaf in leaves if tree.counts is not None]
    return [
        int(first.attribute[0]),
        first.nodes,
        sum(int(noisy[leaf, label]) for noisy, leaf in counts),
        sum(int(noisy[0, label]) for noisy, _ in counts),
        sum(int(noisy[leaf].sum()) for noisy, leaf in counts),
        votes,
        int(sum(tree.votes[leaf] for tree, leaf in leaves).argmax() == label),
        sum(without - with_row for without, with_row in closer),
        max((without for without, _ in closer), default=0)
        - max((with_row for _, with_row in closer), default=0),
    ]


def _closer(tree: Tree, leaf: int, label: int) -> tuple[int, int]:
    """How far the noisy counts of the row's class are from those of no row, and of this row."""
    assert tree.counts is not None
    noisy = tree.counts[tree.kind == LEAF, label]
    own = np.flatnonzero(tree.kind == LEAF) == leaf
    return int(np.abs(noisy).sum()), int(np.abs(noisy - own).sum())


def _best_event(
    one: Features, other: Features, *, delta: float
) -> Callable[[Features], NDArray[np.bool_]]:
    """The event that separates the two tables best: a feature is v, at least v, or at most v.

    Where few runs bound nothing, it is the event whose counts differ by most deviations.
    """
    best, event = (-1.0, 0.0), (0, 0, 0)
    for feature in range(one.shape[1]):
        values = np.unique(np.concatenate([one[:, feature], other[:, feature]]))
        for value in values[:: max(1, len(values) // EVENTS)]:
            for kind in (0, 1, 2):
                tried = (feature, int(value), kind)
                seen = [int(_happens(side, tried).sum()) for side in (one, other)]
                bound = lower_bound((seen[0], seen[1]), len(one), delta=delta).epsilon
                apart = abs(seen[0] - seen[1]) / math.sqrt(seen[0] + seen[1] + 1)
                if (bound, apart) > best:
                    best, event = (bound, apart), tried
    return lambda features: _happens(features, event)


def _happens(features: Features, event: tuple[int, int, int]) -> NDArray[np.bool_]:
    feature, value, kind = event
    values = features[:, feature]
    happens: NDArray[np.bool_] = (values == value, values >= value, values <= value)[kind]
    return happens
