"""Concentrated privacy: how much ρ an (ε, δ) allows, in integers.

ρ-zCDP costs add up (Bun & Steinke, TCC 2016). Pure ε-DP is ε²/2-zCDP. The exponential mechanism of
pure cost ε is ε²/8-zCDP (Cesar & Rogers, 2021).
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Decimal, localcontext
from functools import cache

from dpforest_duckdb.privacy.amounts import ATTO, NANO

DIGITS = 60  # of precision in the check: far more than ρ's steps of 1e-18 need


@cache
def rho_of(epsilon: int, delta: int) -> int:
    """The largest ρ, in atto-ρ, that ε (nano) and δ (atto) allow; 0 if δ is 0.

    Canonne, Kamath & Steinke, NeurIPS 2020, Corollary 13: ρ-zCDP gives (ε, δ)-DP with δ = (1 -
    1/α)^α e^((α-1)(αρ-ε)) / (α-1) for every α > 1. The best α is found in floating point. Then the
    bound is checked in decimals, and ρ is lowered until it holds.
    """
    if not delta:
        return 0
    low, high = 0, 1
    while delta_of(high, epsilon) <= delta:
        low, high = high, 2 * high
    while high - low > max(1, low >> 40):
        middle = (low + high) // 2
        low, high = (middle, high) if delta_of(middle, epsilon) <= delta else (low, middle)
    return low


def delta_of(rho: int, epsilon: int) -> int:
    """A δ (atto) for which ρ (atto) gives (ε, δ)-DP, rounded up."""
    alpha = _best_order(rho / ATTO, epsilon / NANO)
    with localcontext() as context:
        context.prec = DIGITS
        order = Decimal(alpha)
        exponent = (order - 1) * (order * Decimal(rho) / ATTO - Decimal(epsilon) / NANO)
        exponent += order * (1 - 1 / order).ln() - (order - 1).ln()
        bound = min(exponent, Decimal(0)).exp() * ATTO
        return int(bound.to_integral_value(ROUND_CEILING))


def _best_order(rho: float, epsilon: float) -> float:
    """The α with the least bound: where the derivative of its logarithm is zero."""

    def slope(alpha: float) -> float:
        return (2 * alpha - 1) * rho - epsilon + math.log1p(-1 / alpha)

    low, high = 1.0 + 1e-9, 2.0 + (epsilon + 1) / max(rho, 1e-18)
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return high
