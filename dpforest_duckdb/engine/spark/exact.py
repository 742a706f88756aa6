"""Exponentials and logarithms in SQL, by exactly rounded operations.

Java's exp and ln differ from those of other libraries in the last bits. The formulas here use only
+, -, *, / and square roots, which IEEE 754 rounds in one way only, so every Java gives the same
result. Log-odds are whole numbers, in units of 1 / `unit`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace

from dpforest_duckdb.engine.base import MIXTURE_PARTS
from dpforest_duckdb.sql import Sql
from dpforest_duckdb.tree import SCALE

_PARTS = 8  # the table has e to the power of 0, -1/8, -2/8, …
_MOST = 256  # eighths; e to the power of -32 and below is taken as 0
_POWERS = [*(math.exp(-part / _PARTS) for part in range(_MOST)), 0.0]
_DEGREE = 9  # of Taylor's polynomial for the remainder, which is less than an eighth
_ROOTS = 5  # square roots before a logarithm: they bring a number of at most 2^10 below 1.25

Lookup = Callable[[Sequence[float], Sql], Sql]  # the element of a constant list at an index


@dataclass(frozen=True)
class Power:
    """e to the power of -`distance` / `unit`, for a whole number that is not negative.

    A statement computes `eighths` and `remainder` as columns `eighth` and `rest`, then
    `exponential` from those columns.
    """

    distance: Sql
    unit: int
    eighth: Sql
    rest: Sql
    lookup: Lookup

    @property
    def eighths(self) -> Sql:
        """How often an eighth goes into the distance, at most `_MOST` times."""
        times = f"floor(({self.distance}) / {self.unit // _PARTS}e0)"
        return Sql(f"CAST(least({times}, {_MOST}e0) AS INTEGER)")

    @property
    def remainder(self) -> Sql:
        """Minus what is left of the distance after the eighths, divided by `unit`."""
        return Sql(f"(({self.distance}) % {self.unit // _PARTS}) / -{self.unit}e0")

    @property
    def exponential(self) -> Sql:
        """The power, with a relative error below 1e-15: a table's value times a series."""
        series = _polynomial([1 / math.factorial(n) for n in range(_DEGREE + 1)], self.rest)
        return Sql(f"{self.lookup(_POWERS, self.eighth)} * ({series})")


@dataclass(frozen=True)
class Logarithm:
    """The logarithm of a number from 1 to 2^10, in three layers of a statement.

    Each layer replaces the value of `column`: the first by `root`, the second by `ratio` of that,
    the third by `logarithm` of that.
    """

    number: Sql
    column: Sql

    @property
    def root(self) -> Sql:
        return Sql("sqrt(" * _ROOTS + self.number + ")" * _ROOTS)

    @property
    def ratio(self) -> Sql:
        return Sql(f"({self.column} - 1e0) / ({self.column} + 1e0)")

    @property
    def logarithm(self) -> Sql:
        """2^6 · artanh of the ratio, by its series."""
        series = _polynomial([1 / odd for odd in range(1, 18, 2)], f"{self.column} * {self.column}")
        return Sql(f"{2 ** (_ROOTS + 1)}e0 * {self.column} * ({series})")


def _polynomial(coefficients: Sequence[float], x: str) -> str:
    """A polynomial with three terms in each pair of parentheses.

    One term in each would nest three times as deep, and each level doubles the time of Spark's
    parser.
    """
    first, rest = coefficients[:3], coefficients[3:]
    terms = [" * ".join([repr(number), *[x] * power]) for power, number in enumerate(first)]
    if rest:
        terms.append(f"{x} * {x} * {x} * ({_polynomial(rest, x)})")
    return " + ".join(terms)


def power_of(
    scores: Sequence[Sql], number: int, unit: int, ident: Callable[[str], Sql], lookup: Lookup
) -> Power:
    """e to the power of one of several scores, divided by that of the highest."""
    distance = Sql(f"greatest({', '.join(scores)}) - {scores[number]}")
    name = scores[number].strip('"`')
    return Power(distance, unit, ident(f"eighth_{name}"), ident(f"rest_{name}"), lookup)


def mixed(
    number: int,
    weights: Sequence[int],
    classes: int,
    ident: Callable[[str], Sql],
    lookup: Lookup,
) -> SimpleNamespace:
    """The columns of a mixture: its odds, their exponentials, and the logarithm of the sum.

    The scores of model m are the columns `s<m>_<class>`.
    """
    columns = [ident(f"z{number}_{label}") for label in range(classes)]
    odds = []
    for label, column in enumerate(columns):
        parts = [f"{w} * {ident(f's{m}_{label}')}" for m, w in enumerate(weights) if w]
        power = power_of(columns, label, MIXTURE_PARTS * SCALE, ident, lookup)
        odds.append(SimpleNamespace(column=column, value=Sql(" + ".join(parts)), power=power))
    total = Sql(" + ".join(odd.power.exponential for odd in odds))
    return SimpleNamespace(
        odds=odds,
        highest=Sql(f"greatest({', '.join(columns)})"),
        below=ident(f"below{number}"),
        sum=Logarithm(total, ident(f"sum{number}")),
        points=ident(f"points{number}"),
    )


def worst_loss(classes: int) -> Sql:
    """The log loss at which a row gives no points."""
    return Sql(repr(4 * math.log(classes)))
