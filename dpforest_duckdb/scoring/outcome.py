"""From the votes of a row to its prediction and the probability of each class, as SQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dpforest_duckdb.scoring.content import ForestContent
from dpforest_duckdb.scoring.dialects import Dialect
from dpforest_duckdb.scoring.layers import Helper
from dpforest_duckdb.scoring.links import Layers, RowVotes
from dpforest_duckdb.sql import Sql

MANY = 8  # classes; from this number on, terms that all classes share are columns of their own


@dataclass(frozen=True)
class Outcome:
    """The prediction and the probability of each class, in terms of a row `t`.

    They need the columns of `layers`, by their names; each layer can use those before it.
    """

    prediction: Sql
    shares: list[Sql]
    layers: Layers


def outcome(
    dialect: Dialect,
    forest: ForestContent,
    votes: Sequence[Sql],
    whole: int,
    name: Callable[[str], Sql],
) -> Outcome:
    """The outcome of votes `[class]`, which sum to `whole` if that is not 0.

    `name` gives the names of columns.
    """
    of_row = RowVotes(dialect, forest.domain.classes, votes, whole, reach(forest), name)
    most = dialect.greatest(*votes)
    if len(votes) < MANY:
        return Outcome(_prediction(dialect, forest, votes, most), forest.link.shares(of_row), {})
    best = Helper("the most votes of a class", most, name("best"))
    prediction = _prediction(dialect, forest, votes, Sql(f"t.{best.column}"))
    return Outcome(prediction, *forest.link.layered_shares(of_row, best))


def reach(forest: ForestContent) -> int:
    """The largest absolute value that the votes of a class can sum to."""
    return sum(int(np.abs(tree.votes).max()) for tree in forest.trees)


def _prediction(dialect: Dialect, forest: ForestContent, votes: Sequence[Sql], best: Sql) -> Sql:
    """The class with the `best` votes; the first of the public class list if several have them."""
    kind = forest.domain.target_type
    labels = [dialect.label(label, kind) for label in forest.domain.classes]
    if len(votes) == 2:
        test = f"{votes[0]} >= {votes[1]}"
        return Sql(f"CASE WHEN {test} THEN {labels[0]} ELSE {labels[1]} END")
    whens = "".join(
        f"\n    WHEN {vote} = {best} THEN {label}"
        for vote, label in zip(votes[:-1], labels[:-1], strict=True)
    )
    return Sql(f"CASE{whens}\n    ELSE {labels[-1]}\n  END")
