"""From the votes of a row to its prediction and the probability of each class, as SQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dpforest_duckdb.scoring.content import ForestContent
from dpforest_duckdb.scoring.dialects import Dialect
from dpforest_duckdb.scoring.layers import Helper
from dpforest_duckdb.sql import Sql
from dpforest_duckdb.tree import SCALE, Voting

STEEPEST = 700 * SCALE  # log-odds beyond which e^x overflows: an error in some engines
MANY = 8  # classes; from this number on, terms that all classes share are columns of their own


@dataclass(frozen=True)
class Outcome:
    """The prediction and the probability of each class, in terms of a row `t`.

    They need the columns of `layers`, by their names; each layer can use those before it.
    """

    prediction: Sql
    shares: list[Sql]
    layers: dict[str, list[Helper]]


def outcome(
    dialect: Dialect,
    forest: ForestContent,
    votes: Sequence[Sql],
    whole: int,
    name: Callable[[str], Sql],
) -> Outcome:
    """The outcome of votes `[class]`, which sum to `whole` if that is not 0.

    `name` gives the names of columns. With many classes the length of the statement is proportional
    to their number, not to its square.
    """
    if len(votes) < MANY:
        prediction = _prediction(dialect, forest, votes, dialect.greatest(*votes))
        return Outcome(prediction, _shares(dialect, forest, votes, whole), {})
    best = Helper("the most votes of a class", dialect.greatest(*votes), name("best"))
    most, total = Sql(f"t.{best.column}"), name("total")
    prediction = _prediction(dialect, forest, votes, most)
    parts = [dialect.as_double(vote) for vote in votes]
    layers = {"most": [best]}
    if forest.link == "shares":
        value = Sql(str(whole)) if whole else combined(dialect, votes, "sum")
        layers["most"].append(Helper("the votes of all classes", value, total))
    else:
        odds = [
            Helper(
                f"odds of {label} against the class with most votes",
                Sql(_odds(dialect, forest, vote, most)),
                name(f"odds_{number}"),
            )
            for number, (label, vote) in enumerate(zip(forest.domain.classes, votes, strict=True))
        ]
        parts = [Sql(f"t.{one.column}") for one in odds]
        layers["odds"] = odds
        value = combined(dialect, parts, "sum")
        layers["sum"] = [Helper("the odds of all classes", value, total)]
    return Outcome(prediction, [Sql(f"{part} / t.{total}") for part in parts], layers)


def combined(dialect: Dialect, terms: Sequence[Sql], voting: Voting) -> Sql:
    """The sum of trees, or the largest of them, as a balanced expression."""
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    left = combined(dialect, terms[:half], voting)
    right = combined(dialect, terms[half:], voting)
    if voting == "surest":
        return dialect.greatest(left, f"\n    {right}")
    return Sql(f"({left}\n    + {right})")


def _shares(dialect: Dialect, forest: ForestContent, votes: Sequence[Sql], whole: int) -> list[Sql]:
    """The probability of each class: its part of the votes, or their softmax."""
    if forest.link == "shares":
        total = whole or f"({' + '.join(votes)})"
        return [Sql(f"{dialect.as_double(vote)} / {total}") for vote in votes]
    if len(votes) == 2:
        second = f"1.0 / (1.0 + {_odds(dialect, forest, *votes)})"
        return [Sql(f"1.0 - {second}"), Sql(second)]
    return [
        Sql(
            "1.0 / (1.0 + "
            + " + ".join(
                _odds(dialect, forest, other, vote) for other in votes if other is not vote
            )
            + ")"
        )
        for vote in votes
    ]


def _odds(dialect: Dialect, forest: ForestContent, other: Sql, vote: Sql) -> str:
    """The odds of the class of `other` against the class of `vote`."""
    more = f"({other} - {vote})"
    if 2 * reach(forest) > STEEPEST:
        more = dialect.clamped(more, STEEPEST)
    return dialect.call("exp", f"{dialect.as_double(more)} / {SCALE}")


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
