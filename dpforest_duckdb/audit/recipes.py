"""Whole trainings in DuckDB on made-up rows: can a forest tell which of them it was trained on?

Fair coins put some rows into the table of each training, and what the forest shows of each row is
used to guess its coin. Many right guesses prove a large ε (`guessing_bound`). Each of these rows
has cells and a class that no other row has, so no other row hides it.

A row shows in the counts of its own cells, and hardly in the choice of a split. So a bound is at
most about the share of ε that pays for counts.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import numpy as np

from dpforest_duckdb.arrays import Floats, Mask
from dpforest_duckdb.audit.bound import guessing_bound
from dpforest_duckdb.audit.mechanisms import Finding
from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.ledger.accounts import refuse_capped
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.recipes import find
from dpforest_duckdb.training.prepare import prepare
from dpforest_duckdb.training.run import Run, grown_forest

Coins = Mask  # [training, row] whether the row is in the table

EPSILON = 4  # claimed; so large that most guesses are right, so small that ROWS rows can refute it
DEPTH, TREES = 2, 4  # at most
DELTA = "1e-5"
WITH_DELTA = ("auto", "boosted")  # the recipes that make other forests with a δ, on these tables
ROWS = 24  # rows with a coin; row i has the value "v<i>" of every attribute and the class "k<i>"
ATTRIBUTES = 2
OTHERS = 40  # rows that are always there
LEARN = 4  # one in so many trainings shows how to guess; the guesses on the others count
SHARES = 20  # limits to try leave out multiples of 1 / SHARES of the guesses, up to half of them


def audit_recipe(
    name: str,
    runs: int,
    *,
    delta: str = "0",
    as_published: bool = False,
) -> Finding:
    """Train `runs` times, with few trees, and compute a lower bound on ε from guesses.

    How to guess is learnt from one in LEARN trainings, and the guesses on the others count.
    Raises `DpforestError` for an unknown recipe.
    """
    coins = np.random.default_rng().integers(0, 2, (runs, ROWS)).astype(np.bool_)
    forests = _forests(name, coins, delta, as_published=as_published)
    shown = np.array([_shown(forest) for forest in forests])
    first = learnt_from(runs)
    guess = _learnt(shown[:first], coins[:first])
    right, guesses = guess(shown[first:], coins[first:])
    bound = guessing_bound(right, guesses, coins[first:].size, delta=float(delta))
    private = not find(name, as_published=as_published).flaws
    title = f"{name} as published" if as_published else name
    title += "" if delta == "0" else f", δ = {delta}"
    return Finding(title, EPSILON, None, bound, private)


def learnt_from(runs: int) -> int:
    """How many of so many trainings show how to guess."""
    return max(runs // LEARN, 1)


def _forests(name: str, coins: Coins, delta: str, *, as_published: bool) -> Iterator[Forest]:
    """A forest for each row of coins."""
    con, trees = duckdb.connect(), find(name, as_published=as_published).trees
    con.execute("SET threads = 1")  # a query of fifty rows gains nothing from more
    columns = [*(f"a{i}" for i in range(ATTRIBUTES)), "k"]
    con.execute(f"CREATE TABLE t ({', '.join(f'{column} VARCHAR' for column in columns)})")
    cells = ", ".join(["'v' || i"] * ATTRIBUTES)
    with tempfile.TemporaryDirectory(prefix="dpforest-audit-") as folder:
        run = prepare(
            con,
            "t",
            epsilon=EPSILON,
            delta=delta,
            domain=_domain(),
            recipe=name,
            trees=min(TREES, trees) if isinstance(trees, int) else None,
            depth=DEPTH,
            as_published=as_published,
            ledger=Path(folder) / "ledger",
        )
        for present in coins:
            rows = [0] * OTHERS + (np.flatnonzero(present) + 1).tolist()
            con.execute("TRUNCATE t")
            con.execute(f"INSERT INTO t SELECT {cells}, 'k' || i FROM unnest(?) AS r(i)", [rows])
            yield release_uncapped(run)


def release_uncapped(run: Run) -> Forest:
    """The forest of a run on a made-up table, without a debit or an entry in a ledger.

    Raises `BudgetError` for a table with a cap.
    """
    with run.engine.snapshot(run.table) as rows:
        refuse_capped(
            run.account,
            rows.table_seen(),
            f'Table "{run.table.display}" has a cap, and this would spend past it: execute the '
            "run.",
        )
        return grown_forest(run, rows)


def _domain() -> Domain:
    values = tuple(f"v{i}" for i in range(ROWS + 1))
    made = [Attribute(f"a{i}", "categorical", values) for i in range(ATTRIBUTES)]
    return Domain(tuple(made), "k", tuple(f"k{i}" for i in range(ROWS + 1)))


def _shown(forest: Forest) -> Floats:
    """What a forest shows of each row with a coin: [row, figure].

    The figures are those of the row's class in its leaf of each tree: the noisy counts together,
    how many of them are at least one, the largest, the share of the votes, and how often the class
    wins. With Laplace noise, all counts from 1 up are equally strong evidence for a true count of 1
    against 0, and all counts from 0 down are equally strong evidence for 0.
    """
    row = np.arange(ROWS)
    label = row + 1
    codes = np.tile(label[:, None], ATTRIBUTES)
    counts, shares, wins = [np.zeros(ROWS)], [np.zeros(ROWS)], [np.zeros(ROWS)]
    for tree in forest.trees:
        leaf = tree.find(codes)
        votes = tree.votes[leaf]
        shares.append(votes[row, label] / (np.abs(votes).sum(axis=1) + 1))
        wins.append((votes.argmax(axis=1) == label).astype(np.float64))
        if tree.counts is not None:
            counts.append(tree.counts[leaf, label].astype(np.float64))
    figures = (
        np.sum(counts, axis=0),
        np.clip(counts, 0, 1).sum(axis=0),
        np.max(counts, axis=0),
        np.sum(shares, axis=0),
        np.sum(wins, axis=0),
    )
    return np.stack(figures, axis=1)


def _learnt(shown: Floats, coins: Coins) -> Callable[[Floats, Coins], tuple[int, int]]:
    """How to guess: a linear score by least squares, and how far from 0 it must be for a guess.

    That limit is the one of several that gives the best bound on the trainings learnt from. It
    keeps at least half of the guesses: the best bound on few guesses is often luck.
    The returned function gives the numbers of right guesses and of all guesses in other trainings.
    """
    middle, spread = shown.mean(axis=(0, 1)), shown.std(axis=(0, 1)) + 1e-9

    def standard(figures: Floats) -> Floats:
        flat = (figures - middle).reshape(-1, len(middle)) / spread
        return np.column_stack([flat, np.ones(len(flat))])

    weights = np.linalg.lstsq(standard(shown), coins.ravel() - 0.5, rcond=None)[0]

    def counted(figures: Floats, truth: Coins, limit: float) -> tuple[int, int]:
        score = standard(figures) @ weights
        sure = np.abs(score) >= limit
        return int(((score > 0) == truth.ravel())[sure].sum()), int(sure.sum())

    sureness = np.abs(standard(shown) @ weights)
    limits = np.quantile(sureness, np.arange(SHARES // 2 + 1) / SHARES)
    limit = max(
        limits, key=lambda at: guessing_bound(*counted(shown, coins, at), coins.size).epsilon
    )
    return lambda figures, truth: counted(figures, truth, float(limit))
