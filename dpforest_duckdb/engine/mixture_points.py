"""The points that a row gives a mixture of models, as whole numbers that all engines compute alike.

Scores, log-odds and losses are in units of 1 / `SCALE`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

from dpforest_duckdb.engine.base import MIXTURE_PARTS, POINTS
from dpforest_duckdb.engine.exponentials import Column, Ident, exponential, logarithm
from dpforest_duckdb.sql import Sql
from dpforest_duckdb.tree import SCALE


@dataclass(frozen=True)
class Mixture:
    """The points that a row gives a mixture of models, in four layers of a statement.

    `odds` from the models' scores, the columns `s<model>_<label>`; `powers` from the odds; `loss`
    from the powers; `points` from the loss.
    """

    odds: list[Column]
    powers: list[Column]
    loss: Column
    points: Column

    @staticmethod
    def of(number: int, weights: Sequence[int | Sql], classes: int, ident: Ident) -> Mixture:
        """The mixture of some weights, for a column `class` with the class of a row.

        Weights may be the names of columns. Then one `Mixture` is enough for all mixtures: the
        statement has a row for each, and the columns hold its weights.
        """
        odds = [
            Column(_mixed(weights, label, ident), ident(f"z{number}_{label}"))
            for label in range(classes)
        ]
        names = [odd.name for odd in odds]
        highest = f"greatest({', '.join(names)})"
        cases = " ".join(f"WHEN {label} THEN {name}" for label, name in enumerate(names))
        below = Column(
            Sql(f"{highest} - CASE {ident('class')} {cases} END"), ident(f"below{number}")
        )
        powers = [
            Column(exponential(f"{highest} - {name}"), ident(f"power{number}_{label}"))
            for label, name in enumerate(names)
        ]
        total = " + ".join(power.name for power in powers)
        loss = Column(Sql(f"{logarithm(total)} + {below.name}"), ident(f"loss{number}"))
        worst, half = round(4 * SCALE * log(classes)), POINTS // 2
        left = f"greatest({worst} - {loss.name}, 0)"
        right = f"CASE WHEN {below.name} = 0 THEN {half} ELSE 0 END"
        points = Sql(f"{right} + floor({half}e0 * {left} / {worst}e0)")
        return Mixture(odds, [*powers, below], loss, Column(points, ident(f"points{number}")))


def _mixed(weights: Sequence[int | Sql], label: int, ident: Ident) -> Sql:
    """A class's log-odds in a mixture, rounded down."""
    terms = [f"{weight} * {ident(f's{n}_{label}')}" for n, weight in enumerate(weights) if weight]
    return Sql(f"floor(({' + '.join(terms)}) / {MIXTURE_PARTS}e0)")
