"""How votes become probabilities: in NumPy, in SQL, and in the effects of attributes.

`SHARES`: in proportion to the votes. `SOFTMAX`: in proportion to e to the power of them, because
they are log-odds. Votes are in units of 1 / `SCALE`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpforest_duckdb.arrays import Floats, Integers
from dpforest_duckdb.scoring.dialects import Dialect
from dpforest_duckdb.scoring.layers import Helper, combined
from dpforest_duckdb.sql import Sql
from dpforest_duckdb.tree import SCALE, Tree, Voting

STEEPEST = 700 * SCALE  # log-odds beyond which e^x overflows: an error in some engines


@dataclass(frozen=True)
class RowVotes:
    """The votes of a row `t` for each class, as SQL.

    They sum to `whole` if that is not 0, and none exceeds `reach`. `name` gives names of columns.
    """

    dialect: Dialect
    classes: Sequence[str]
    of_class: Sequence[Sql]
    whole: int
    reach: int
    name: Callable[[str], Sql]


Layers = dict[str, list[Helper]]  # by name; each can use those before it


class Link(ABC):
    """How votes become probabilities.

    `name` stands for it in JSON. `log_odds`: votes are log-odds, so no leaf predicts alone.
    `effect_scale` is what the effect of an attribute changes, and no effect exceeds
    `largest_effect`, whatever the noise.
    """

    name: ClassVar[str]
    log_odds: ClassVar[bool]
    effect_scale: ClassVar[str]
    largest_effect: ClassVar[float]

    def __str__(self) -> str:
        return self.name

    @abstractmethod
    def allows(self, votes: Integers) -> bool:
        """Whether the votes of every `[leaf, class]` have probabilities."""

    @abstractmethod
    def probabilities(self, votes: Integers) -> Floats:
        """Summed votes `[row, class]` as class probabilities of the same shape."""

    @abstractmethod
    def shares(self, votes: RowVotes) -> list[Sql]:
        """The probability of each of a few classes."""

    @abstractmethod
    def layered_shares(self, votes: RowVotes, best: Helper) -> tuple[list[Sql], Layers]:
        """The probability of each of many classes, and the layers that they need, by their names.

        The first layer has `best`, the most votes of a class. The length of all is proportional to
        the number of classes, not to its square.
        """

    @abstractmethod
    def outputs(self, tree: Tree) -> Floats:
        """What each node adds to the output of each class `[node, class]`."""

    @abstractmethod
    def variance(self, counts: Integers, noise: Floats) -> Floats:
        """The variance `[node, class]` of `outputs` of counts, by the delta method.

        `noise[node, 1]` is the standard deviation of the noise in each count. Counts below it are
        replaced by it, so that the variance stays finite.
        """

    @abstractmethod
    def effects(
        self, outputs: Floats, variance: Floats, weights: Floats, trees: int
    ) -> tuple[Floats, Floats]:
        """Effects `[cell, class]` and their variance, from those of the `outputs` of all trees.

        `weights[cell]` are the parts of the rows; their mean has no effect.
        """


@dataclass(frozen=True)
class _Shares(Link):
    """Probabilities in proportion to the votes."""

    name, log_odds = "shares", False
    effect_scale, largest_effect = "probability", 1.0

    def allows(self, votes: Integers) -> bool:
        return not (votes.sum(axis=1) < 1).any()

    def probabilities(self, votes: Integers) -> Floats:
        shares: Floats = votes / votes.sum(axis=1, keepdims=True)
        return shares

    def shares(self, votes: RowVotes) -> list[Sql]:
        total = votes.whole or f"({' + '.join(votes.of_class)})"
        return [Sql(f"{votes.dialect.as_double(vote)} / {total}") for vote in votes.of_class]

    def layered_shares(self, votes: RowVotes, best: Helper) -> tuple[list[Sql], Layers]:
        dialect, whole = votes.dialect, Sql(str(votes.whole))
        value = whole if votes.whole else combined(dialect, votes.of_class, Voting.SUM)
        total = Helper("the votes of all classes", value, votes.name("total"))
        shares = [Sql(f"{dialect.as_double(v)} / t.{total.column}") for v in votes.of_class]
        return shares, {"most": [best, total]}

    def outputs(self, tree: Tree) -> Floats:
        shares: Floats = tree.votes / np.maximum(tree.votes.sum(axis=1, keepdims=True), 1)
        return shares

    def variance(self, counts: Integers, noise: Floats) -> Floats:
        """That of shares is s²/n², for noise of deviation s in n rows."""
        held = np.maximum(counts.sum(axis=1, keepdims=True), np.maximum(noise, 1.0))
        same: Floats = (noise / held) ** 2 * np.ones(counts.shape)
        return same

    def effects(
        self, outputs: Floats, variance: Floats, weights: Floats, trees: int
    ) -> tuple[Floats, Floats]:
        """Probabilities minus those of the mean row."""
        mean = outputs / trees
        return mean - weights @ mean, variance / trees**2


@dataclass(frozen=True)
class _Softmax(Link):
    """Probabilities in proportion to e to the power of the votes, which are log-odds."""

    name, log_odds = "softmax", True
    effect_scale, largest_effect = "log-odds", math.inf

    def allows(self, votes: Integers) -> bool:
        return True

    def probabilities(self, votes: Integers) -> Floats:
        odds = np.exp((votes - votes.max(axis=1, keepdims=True)) / SCALE)
        softmax: Floats = odds / odds.sum(axis=1, keepdims=True)
        return softmax

    def shares(self, votes: RowVotes) -> list[Sql]:
        if len(votes.of_class) == 2:
            second = f"1.0 / (1.0 + {_odds(votes, *votes.of_class)})"
            return [Sql(f"1.0 - {second}"), Sql(second)]
        against = [
            [_odds(votes, other, vote) for other in votes.of_class if other is not vote]
            for vote in votes.of_class
        ]
        return [Sql(f"1.0 / (1.0 + {' + '.join(odds)})") for odds in against]

    def layered_shares(self, votes: RowVotes, best: Helper) -> tuple[list[Sql], Layers]:
        most = Sql(f"t.{best.column}")
        odds = [
            Helper(
                f"odds of {label} against the class with most votes",
                _odds(votes, vote, most),
                votes.name(f"odds_{number}"),
            )
            for number, (label, vote) in enumerate(zip(votes.classes, votes.of_class, strict=True))
        ]
        parts = [Sql(f"t.{one.column}") for one in odds]
        value = combined(votes.dialect, parts, Voting.SUM)
        total = Helper("the odds of all classes", value, votes.name("total"))
        shares = [Sql(f"{part} / t.{total.column}") for part in parts]
        return shares, {"most": [best], "odds": odds, "sum": [total]}

    def outputs(self, tree: Tree) -> Floats:
        return tree.votes / SCALE

    def variance(self, counts: Integers, noise: Floats) -> Floats:
        """That of log n is s²/n², for noise of deviation s in n rows; log-odds are log n minus the
        mean over the classes.
        """
        return centred_variance((noise / np.maximum(counts, np.maximum(noise, 1.0))) ** 2)

    def effects(
        self, outputs: Floats, variance: Floats, weights: Floats, trees: int
    ) -> tuple[Floats, Floats]:
        """Log-odds against the other of two classes, or minus the mean over several."""
        values = outputs - weights @ outputs
        against = 2.0 if values.shape[1] == 2 else 1.0  # the other class has the opposite
        values = against * (values - values.mean(axis=1, keepdims=True))
        return values, against**2 * variance


SHARES, SOFTMAX = _Shares(), _Softmax()
LINKS: dict[str, Link] = {link.name: link for link in (SHARES, SOFTMAX)}


def _odds(votes: RowVotes, other: Sql, vote: Sql) -> Sql:
    """The odds of the class of `other` against the class of `vote`."""
    more = f"({other} - {vote})"
    if 2 * votes.reach > STEEPEST:
        more = votes.dialect.clamped(more, STEEPEST)
    return votes.dialect.call("exp", f"{votes.dialect.as_double(more)} / {SCALE}")


def centred_variance(variance: Floats) -> Floats:
    """The variance `[node, class]` of scores minus their mean, from that of independent scores."""
    classes = variance.shape[1]
    mean = variance.sum(axis=1, keepdims=True) / classes**2
    centred: Floats = variance * (1 - 2 / classes) + mean
    return centred
