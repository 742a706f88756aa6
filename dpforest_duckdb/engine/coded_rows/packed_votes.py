"""Packs the votes for several classes into one integer, so that one look-up gives all of them.

Every class has bits of its own, enough for the weighted sum over all trees. So a weighted sum of
packed votes holds the weighted sums of the votes. All votes are released figures.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.engine.base import MIXTURE_PARTS
from dpforest_duckdb.engine.shared.packing import WORD
from dpforest_duckdb.sql import Sql
from dpforest_duckdb.tree import SCALE


@dataclass(frozen=True)
class PackedVotes:
    """The votes that rows look up, in groups, with several classes in each word.

    `words[word][group]` are the look-ups of a group whose votes differ for the classes of a word:
    the number of the look-up in its group, and the index of its first place in `votes`, from 0. A
    class has `bits` bits of a word; the first class has the lowest. Votes are in units of `unit`
    and above the lowest of their look-up: so no packed number is negative, and the differences of
    classes stay the same.
    """

    votes: list[int]
    words: list[dict[int, list[tuple[int, int]]]]
    bits: int
    unit: int

    @classmethod
    def of(
        cls, groups: Sequence[Sequence[Integers]], mixtures: Sequence[Sequence[int]]
    ) -> PackedVotes:
        """The packed votes of `groups[group][look-up][place, class]`, multiples of `MIXTURE_PARTS`.

        A mixture has a weight for each group. Its weighted votes may differ by less than 2^63.
        """
        above = [[votes - votes.min() for votes in group] for group in groups]
        steps = [int(np.gcd.reduce(votes, axis=None)) for group in above for votes in group]
        unit = math.gcd(*steps, MIXTURE_PARTS * SCALE)
        assert unit % MIXTURE_PARTS == 0, "weighted votes are whole numbers"
        above = [[votes // unit for votes in group] for group in above]
        most = [sum(int(votes.max()) for votes in group) for group in above]
        bits = max(sum(map(operator.mul, weights, most)) for weights in mixtures).bit_length() or 1
        assert bits <= WORD, "votes are log-odds in millionths, far below this limit"
        found, words = list[int](), list[dict[int, list[tuple[int, int]]]]()
        for first in range(0, groups[0][0].shape[1], WORD // bits):
            words.append({})
            for number, group in enumerate(above):
                for look_up, votes in enumerate(group):
                    part = votes[:, first : first + WORD // bits]
                    if part.any():
                        words[-1].setdefault(number, []).append((look_up, len(found)))
                        found += (part << bits * np.arange(part.shape[1])).sum(axis=1).tolist()
        return cls(found, words, bits, unit)

    def of_classes(self, sums: Sequence[Sql], classes: int) -> list[Sql]:
        """The votes for each class, from the columns with the sums of the words."""
        each, mask = WORD // self.bits, (1 << self.bits) - 1
        return [
            Sql(f"({sums[label // each]} >> {self.bits * (label % each)}) & {mask}")
            for label in range(classes)
        ]
