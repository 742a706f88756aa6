"""Packs the votes for several classes into one integer, so that one look-up gives all of them.

Every class has bits of its own, enough for the weighted sum over all trees. So a weighted sum of
packed votes holds the weighted sums of the votes. All votes are released figures.

A sum of 128 bits takes little longer than one of 64 bits, but a statement with half as many of
them takes much less time to plan. So with enough classes a word has two halves, which are taken
apart after the votes are mixed.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.engine.shared.packing import WORD
from dpforest_duckdb.sql import Column, Ident, Sql


@dataclass(frozen=True)
class PackedVotes:
    """The votes of `classes` classes that rows look up, in groups, with several in each word.

    `words[word][group]` are the look-ups of a group whose votes differ for the classes of a word:
    the number of the look-up in its group, and the index of its first place in `votes`, from 0. A
    class has `bits` bits of one half of a word; the first class has the lowest. Votes are divided
    by `unit` and above the lowest of their look-up: so no packed number is negative, and the
    differences of classes stay the same.
    """

    votes: list[int]
    words: list[dict[int, list[tuple[int, int]]]]
    classes: int
    bits: int
    unit: int

    @classmethod
    def of(
        cls, groups: Sequence[Sequence[Integers]], mixtures: Sequence[Sequence[int]], scale: int
    ) -> PackedVotes:
        """The packed votes of `groups[group][look-up][place, class]`, in units of 1 / `scale`.

        A mixture has a weight for each group. Its weighted votes may differ by less than 2^63. A
        packed unit divides `scale`.
        """
        above = [[votes - votes.min() for votes in group] for group in groups]
        steps = [int(np.gcd.reduce(votes, axis=None)) for group in above for votes in group]
        unit = math.gcd(*steps, scale)
        above = [[votes // unit for votes in group] for group in above]
        most = [sum(int(votes.max()) for votes in group) for group in above]
        bits = max(sum(map(operator.mul, weights, most)) for weights in mixtures).bit_length() or 1
        assert bits <= WORD, "votes are log-odds in millionths, far below this limit"
        packed = cls([], [], groups[0][0].shape[1], bits, unit)
        for first in range(0, packed.classes, 2 * packed.each):
            word = dict[int, list[tuple[int, int]]]()
            packed.words.append(word)
            for number, group in enumerate(above):
                for look_up, votes in enumerate(group):
                    part = votes[:, first : first + 2 * packed.each]
                    if part.any():
                        word.setdefault(number, []).append((look_up, len(packed.votes)))
                        packed.votes.extend(packed._packed(part))
        return packed

    @property
    def each(self) -> int:
        """The number of classes in a half."""
        return WORD // self.bits

    @property
    def has_halves(self) -> bool:
        """Whether a word has a second half."""
        return self.classes > self.each

    @property
    def type(self) -> Sql:
        """The type of a word."""
        return Sql("HUGEINT" if self.has_halves else "BIGINT")

    def _packed(self, votes: Integers) -> list[int]:
        """The words `[place]` of the votes `[place, class]` of two halves at most."""
        low, high = votes[:, : self.each], votes[:, self.each :]
        shifts = self.bits * np.arange(self.each)
        halves = [(half << shifts[: half.shape[1]]).sum(axis=1).tolist() for half in (low, high)]
        return [
            first + (second << self.bits * self.each) for first, second in zip(*halves, strict=True)
        ]

    def halves(self, sums: Sequence[Column], ident: Ident) -> list[Column]:
        """The sums of each half, from the columns with the sums of the words; none if these have no
        second half.
        """
        if not self.has_halves:
            return []
        used = self.bits * self.each
        parts = [
            part
            for total in sums
            for part in (f"{total.name} & {(1 << used) - 1}", f"{total.name} >> {used}")
        ]
        halves = -(-self.classes // self.each)
        return [
            Column(Sql(f"CAST({part} AS BIGINT)"), ident(f"half{number}"))
            for number, part in enumerate(parts[:halves])
        ]

    def of_classes(self, halves: Sequence[Column]) -> list[Sql]:
        """The votes for each class, from the columns with the sums of the halves, or of the words
        if these have no second half.
        """
        mask, found = (1 << self.bits) - 1, list[Sql]()
        for label in range(self.classes):
            half, place = divmod(label, self.each)
            total = halves[half].name
            votes = f"({total} >> {self.bits * place})" if place else total
            last = place == self.each - 1 or label == self.classes - 1  # no bits are above it
            found.append(Sql(votes if last else f"{votes} & {mask}"))
        return found
