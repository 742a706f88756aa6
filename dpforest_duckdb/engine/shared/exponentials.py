"""Exponentials and logarithms as whole numbers, which all engines compute alike.

The last bits of exp and ln differ from library to library. Rounded to a whole number, they do not:
for no argument is the exact value within these last bits of the middle between two whole numbers.
A test checks all arguments. So every engine uses its own functions, and all get the same numbers.

The quotients here are correctly rounded, as IEEE 754 requires. They are so small that rounding
never reaches the next whole number, so their floors are exact too.

Scores and logarithms are whole numbers in units of 1 / `SCALE`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpforest_duckdb.sql import Column, Ident, Sql, summed
from dpforest_duckdb.tree import SCALE

ONE = 2**24  # exponentials are in units of 1 / ONE
LOG_STEPS = 2**16  # logarithms are those of multiples of 1 / LOG_STEPS


def exponential(distance: str, scale: int = SCALE) -> Sql:
    """e to the power of -`distance`, which is at least 0 and in units of 1 / `scale`.

    `SCALE` is a multiple of `scale`. A quotient is the same number in all units, so no argument is
    new.
    """
    return Sql(f"floor({ONE}e0 * exp(({distance}) / -{scale}e0) + 5e-1)")


def logarithm(total: str) -> Sql:
    """The logarithm of a sum of exponentials that is at least 1, which is first rounded down."""
    rounded = f"floor(({total}) / {ONE // LOG_STEPS}e0) / {LOG_STEPS}e0"
    return Sql(f"floor({SCALE}e0 * ln({rounded}) + 5e-1)")


@dataclass(frozen=True)
class Shares:
    """The shares of classes, e to the power of a class's score over the sum of all these.

    A statement adds the columns of one layer after the other to the rows, then from these it
    computes the shares `by_class`, in units of 1 / `whole` and rounded down. One score is that of
    the second of two classes; the other class has score 0.
    """

    layers: list[list[Column]]
    by_class: dict[int, Sql]

    @staticmethod
    def of(scores: Sequence[Sql], whole: int, ident: Ident) -> Shares:
        """The layers for `scores`: one for two classes, else one for each class."""
        if len(scores) == 1:
            (score,) = scores
            smaller, likely = ident("smaller"), ident("likely")
            powers = [Column(exponential(f"abs({score})"), smaller)]
            powers.append(Column(Sql(f"{score} > 0"), likely))
            power = f"CASE WHEN {likely} THEN {ONE}e0 ELSE {smaller} END"
            return Shares([powers], {1: _part(power, f"{ONE}e0 + {smaller}", whole)})
        highest = Column(Sql(f"greatest({', '.join(scores)})"), ident("highest"))
        powers = [
            Column(exponential(f"{highest.name} - {score}"), ident(f"power{label}"))
            for label, score in enumerate(scores)
        ]
        total = Column(summed([power.name for power in powers]), ident("total"))
        shares = {label: _part(power.name, total.name, whole) for label, power in enumerate(powers)}
        return Shares([[highest], powers, [total]], shares)


def _part(power: str, total: str, whole: int) -> Sql:
    return Sql(f"floor({whole}e0 * {power} / ({total}))")
