"""Whole trainings in DuckDB on a pair of neighbouring tables: a check of the plumbing.

Losses of a training are spread over many releases, so the bounds are far below what a mechanism
alone shows (`dpforest_duckdb.audit.mechanisms`); a cost that is forgotten in between shows here.
The event is chosen on one half of the runs and counted on the other.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

from dpforest_duckdb.audit.bound import lower_bound
from dpforest_duckdb.audit.mechanisms import Finding
from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.privacy.randomness import Randomness
from dpforest_duckdb.recipes import find
from dpforest_duckdb.training.prepare import prepare

Features = NDArray[np.int64]  # [run, feature]
Row = tuple[str, ...]

DEPTH, TREES = 2, 10  # at most
DELTA = "1e-5"
EVENTS = 60  # thresholds tried of each feature

# A row that agrees with forty others in nothing: a cell, a leaf and a class of its own.
_MANY: list[Row] = [("x", "xy"[i % 2], "x", "k0") for i in range(40)]
_FAR: Row = ("y", "y", "y", "k1")
# One row, and another of the next class that shares its value of the first attribute alone: the
# first is then the only attribute that does not tell the two apart.
_ONE: list[Row] = [("x",) * 6 + ("k0",)]
_NEXT: Row = ("x",) + ("y",) * 5 + ("k1",)


def audit_recipe(
    name: str,
    runs: int,
    *,
    as_published: bool = False,
    progress: Callable[[int], None] = lambda done: None,
) -> Finding:
    """Train `runs` times on each side, with at most ten trees, and bound ε from below.

    DPDF, whose published form loses most on two rows, is tried on those, at ε = 0.1; the others on
    forty rows and one more at ε = 1, with a δ for the recipe that needs one. Raises `DpforestError`
    for an unknown recipe.
    """
    rows, more, epsilon = (_ONE, _NEXT, "0.1") if name == "dpdf" else (_MANY, _FAR, "1")
    delta = DELTA if name == "boosted" else "0"
    domain = _domain(len(more) - 1, 18 if name == "dpdf" else 2)
    found = [
        _features(name, side, domain, more, (epsilon, delta), runs, as_published, progress)
        for side in (rows, [*rows, more])
    ]
    half = runs // 2
    event = _best_event(*(features[:half] for features in found))
    seen = [int(event(features[half:]).sum()) for features in found]
    bound = lower_bound((seen[0], seen[1]), runs - half, delta=float(delta))
    private = not find(name, as_published=as_published).flaws
    said = f"{name} as published" if as_published else name
    return Finding(said, float(epsilon), None, bound, private)


def _domain(attributes: int, classes: int) -> Domain:
    made = [Attribute(f"a{i}", "categorical", ("x", "y")) for i in range(attributes)]
    return Domain(tuple(made), "k", tuple(f"k{i}" for i in range(classes)))


def _features(
    name: str,
    rows: list[Row],
    domain: Domain,
    more: Row,
    claim: tuple[str, str],
    runs: int,
    as_published: bool,
    progress: Callable[[int], None],
) -> Features:
    """What is told of the row in question by each of a number of forests."""
    con, trees = duckdb.connect(), find(name, as_published=as_published).trees
    con.execute("SET threads = 1")  # a query of forty rows has nothing to share out
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
        found = []
        for done in range(runs):
            forest = replace(run, randomness=Randomness.secure()).release_uncapped()
            found.append(_told(forest, more))
            progress(done + 1)
    return np.array(found)


def _told(forest: Forest, row: Row) -> list[int]:
    """Figures of a forest that may depend on the row: splits, sizes, counts and votes about it."""
    codes = np.array([[a.code(v) for a, v in zip(forest.domain.attributes, row, strict=False)]])
    label = forest.domain.classes.index(row[-1])
    first = forest.trees[1 if forest.link == "softmax" and len(forest.trees) > 1 else 0]
    leaves = [(tree, int(tree.find(codes)[0])) for tree in forest.trees]
    counts = [(tree.counts, leaf) for tree, leaf in leaves if tree.counts is not None]
    votes = sum(int(tree.votes[leaf, label]) for tree, leaf in leaves)
    return [
        int(first.attribute[0]),
        first.nodes,
        sum(int(told[leaf, label]) for told, leaf in counts),
        sum(int(told[0, label]) for told, _ in counts),
        sum(int(told[leaf].sum()) for told, leaf in counts),
        votes,
        int(sum(tree.votes[leaf] for tree, leaf in leaves).argmax() == label),
    ]


def _best_event(one: Features, other: Features) -> Callable[[Features], NDArray[np.bool_]]:
    """Of "a feature is v", "at least v" and "at most v", what tells the two sides apart best."""
    best, event = -1.0, (0, 0, 0)
    for feature in range(one.shape[1]):
        values = np.unique(np.concatenate([one[:, feature], other[:, feature]]))
        for value in values[:: max(1, len(values) // EVENTS)]:
            for kind in (0, 1, 2):
                tried = (feature, int(value), kind)
                seen = [int(_happens(side, tried).sum()) for side in (one, other)]
                bound = lower_bound((seen[0], seen[1]), len(one)).epsilon
                if bound > best:
                    best, event = bound, tried
    return lambda features: _happens(features, event)


def _happens(features: Features, event: tuple[int, int, int]) -> NDArray[np.bool_]:
    feature, value, kind = event
    told = features[:, feature]
    happens: NDArray[np.bool_] = (told == value, told >= value, told <= value)[kind]
    return happens
