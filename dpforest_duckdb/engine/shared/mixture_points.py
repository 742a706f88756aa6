"""The points that a row gives a mixture of models, as whole numbers that all engines compute alike.

Scores, log-odds and losses are in units of 1 / `SCALE`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

from dpforest_duckdb.engine.base import POINTS
from dpforest_duckdb.engine.shared.exponentials import exponential, logarithm
from dpforest_duckdb.sql import Column, Ident, Sql, summed
from dpforest_duckdb.tree import SCALE


@dataclass(frozen=True)
class MixturePoints:
    """The points that a row gives a mixture of models, in five layers of a statement.

    `odds` are the log-odds of each class; `highest` is of these; `powers` and how far the row's
    class is below the highest are of both; `loss` is of the powers; `points` are of the loss.
    """

    odds: list[Column]
    highest: Column
    powers: list[Column]
    loss: Column
    points: Column

    @staticmethod
    def of(number: int, odds: list[Column], scale: int, ident: Ident) -> MixturePoints:
        """The points of the mixture with a number, whose log-odds are in units of 1 / `scale`.

        `SCALE` is a multiple of `scale`. The column `class` has the class of a row.
        """
        highest = Column(
            Sql(f"greatest({', '.join(odd.name for odd in odds)})"), ident(f"highest{number}")
        )
        cases = " ".join(f"WHEN {label} THEN {odd.name}" for label, odd in enumerate(odds))
        below = Column(
            Sql(f"{highest.name} - CASE {ident('class')} {cases} END"), ident(f"below{number}")
        )
        powers = [
            Column(
                exponential(f"{highest.name} - {odd.name}", scale), ident(f"power{number}_{label}")
            )
            for label, odd in enumerate(odds)
        ]
        total = summed([power.name for power in powers])
        loss = Column(
            Sql(f"{logarithm(total)} + {SCALE // scale} * {below.name}"), ident(f"loss{number}")
        )
        worst, half = round(4 * SCALE * log(len(odds))), POINTS // 2
        left = f"greatest({worst} - {loss.name}, 0)"
        right = f"CASE WHEN {below.name} = 0 THEN {half} ELSE 0 END"
        points = Column(
            Sql(f"{right} + floor({half}e0 * {left} / {worst}e0)"), ident(f"points{number}")
        )
        return MixturePoints(odds, highest, [*powers, below], loss, points)
