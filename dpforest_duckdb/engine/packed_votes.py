"""Packs what trees add to several scores into one integer, so that one look-up gives all of it.

Every score has bits of its own, enough for the sum over all trees. So the sum of packed votes holds
the sums of the votes. All votes are released figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.engine.packing import WORD
from dpforest_duckdb.sql import Sql


@dataclass(frozen=True)
class PackedVotes:
    """The votes of trees for scores, several scores in each word.

    `words[word]` are the trees whose votes for the scores of the word differ: the number of a tree,
    and the index of its first node in `votes`, from 0. A score has `bits` bits of a word; the first
    score has the lowest. It is in units of `unit` and starts at `least[score]`, so that no packed
    number is negative.
    """

    votes: list[int]
    words: list[list[tuple[int, int]]]
    bits: int
    unit: int
    least: list[int]

    @classmethod
    def of(cls, trees: Sequence[Integers]) -> PackedVotes:
        """The packed votes of `trees[tree][node, score]`: one tree or more.

        The votes for a score may differ by less than 2^63 in all trees together.
        """
        lowest = [votes.min(axis=0) for votes in trees]
        above = [votes - least for votes, least in zip(trees, lowest, strict=True)]
        unit = max(1, int(np.gcd.reduce(np.concatenate(above), axis=None)))
        above = [votes // unit for votes in above]
        most = sum(votes.max(axis=0).astype(object) for votes in above)  # cannot overflow
        bits = max(most).bit_length() or 1
        assert bits <= WORD, "votes are log-odds in millionths, far below this limit"
        least = np.sum(lowest, axis=0).tolist()
        flat, words = list[int](), []
        for first in range(0, len(least), WORD // bits):
            parts = [votes[:, first : first + WORD // bits] for votes in above]
            words.append(list[tuple[int, int]]())
            for number, part in enumerate(parts):
                if part.any():
                    words[-1].append((number, len(flat)))
                    flat += (part << bits * np.arange(part.shape[1])).sum(axis=1).tolist()
        return cls(flat, words, bits, unit, least)

    def scores(self, sums: Sequence[Sql]) -> list[Sql]:
        """The scores, from the columns with the `sums` of the words."""
        each, mask = WORD // self.bits, (1 << self.bits) - 1
        return [
            Sql(
                f"(({sums[score // each]} >> {self.bits * (score % each)}) & {mask}) * {self.unit}"
                f" + {least}"
            )
            for score, least in enumerate(self.least)
        ]
