"""Gaussian differential privacy: how much μ² an (ε, δ) allows, and what queries cost, in integers.

A release is μ-GDP if it tells two neighbouring tables apart no better than one draw tells the
normal distributions N(0, 1) and N(μ, 1) apart. The μ² of several releases add up (Dong, Roth & Su,
JRSS-B 2022, Corollary 3.3), even if each release and its cost depend on those before (Smith &
Thakurta, 2022). Normal noise of variance σ² on sums that change by at most Δ in L2 costs Δ²/σ².

A release has the range η if its privacy losses lie within an interval of length η. It costs
(π/8)·η². Proof: let a test of two neighbours be positive with probability p on one and q on the
other. Then p/q and (1 - p)/(1 - q) are weighted means of likelihood ratios, so logit p - logit q ≤
η. The derivative of Φ⁻¹(p) by logit p is p(1 - p)/φ(z) with z = Φ⁻¹(p). Two independent standard
normal draws lie in the square of side 2|z| with probability (1 - 2p)², and in the circle of radius
|z|, which is inside, with probability 1 - e^(-z²/2). So 4p(1 - p) ≤ e^(-z²/2), and the derivative
is at most √(2π)/4. Hence Φ⁻¹(p) - Φ⁻¹(q) ≤ η·√(2π)/4, which is what μ-GDP means for μ = η·√(2π)/4.
An exponential mechanism of pure cost ε has the range ε (Durfee & Rogers, NeurIPS 2019). Any ε-DP
release has the range 2ε.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from functools import cache

from dpforest_duckdb.privacy.amounts import ATTO, NANO

DIGITS = 60  # of precision: far more than μ² in steps of 1e-18 needs
FAR = 12  # normal tails from here on are below 2e-33
PI = Fraction("3.14159265358979323846264338327950288419716939937510582097494460")  # rounded up
PURE, DRAWN = PI / 2, PI / 8  # μ² of an ε-DP release, and of an exponential mechanism, for ε = 1


def pure_cost(epsilon: int) -> int:
    """The atto-μ² of any release of pure nano-ε, rounded up."""
    return math.ceil(PURE * epsilon**2 * ATTO / NANO**2)


def pure_epsilon(cost: int) -> int:
    """The nano-ε of a release whose `pure_cost` is at most that many atto-μ²."""
    return math.isqrt(math.floor(cost * NANO**2 / (PURE * ATTO)))


def drawn_cost(epsilon: int) -> int:
    """The atto-μ² of an exponential mechanism of pure nano-ε, rounded up."""
    return math.ceil(DRAWN * epsilon**2 * ATTO / NANO**2)


def drawn_epsilon(cost: int) -> int:
    """The pure nano-ε of an exponential mechanism that costs at most that many atto-μ²."""
    return math.isqrt(math.floor(cost * NANO**2 / (DRAWN * ATTO)))


@cache
def squared_mu_of(epsilon: int, delta: int) -> int:
    """The largest μ² (atto) that ε (nano) and δ (atto) allow, up to 2^-32 of it; 0 without a δ.

    One nano-ε, and 1e-9 of δ, are kept back: noise is normal up to a tiny factor (see `noise`).
    """
    if not delta:
        return 0
    low, high = 0, 1
    while delta_of(high, epsilon - 1) <= delta:
        low, high = high, 2 * high
    while high - low > max(1, low >> 32):
        middle = (low + high) // 2
        low, high = (middle, high) if delta_of(middle, epsilon - 1) <= delta else (low, middle)
    return low


def delta_of(squared_mu: int, epsilon: int) -> int:
    """A δ (atto) for which μ² (atto) gives (ε, δ)-DP, and 1e-9 of it more; rounded up.

    Dong, Roth & Su, Corollary 2.13: δ = Φ(-ε/μ + μ/2) - e^ε·Φ(-ε/μ - μ/2).
    """
    with localcontext() as context:
        context.prec = DIGITS
        mu = (Decimal(squared_mu) / ATTO).sqrt()
        near = Decimal(epsilon) / NANO / mu - mu / 2
        if abs(near) > FAR:  # δ is below 1e-32, or 1 at most
            return 1 if near > 0 else ATTO
        # φ(-ε/μ + μ/2) is e^ε·φ(-ε/μ - μ/2)
        delta = _tail(near) - _density(near) * _mills_ratio(near + mu)
        raised = delta * ATTO * (1 + Decimal("1e-9"))
        return min(int(raised.to_integral_value(ROUND_CEILING)), ATTO)


def _density(z: Decimal) -> Decimal:
    return (-z * z / 2).exp() / (2 * Decimal(PI.numerator) / PI.denominator).sqrt()


def _tail(z: Decimal) -> Decimal:
    """1 - Φ(z) for |z| ≤ FAR: a half less φ(z)·(z + z³/3 + z⁵/15 + …)."""
    term, total, factor = z, z, 1
    while abs(term) > Decimal(10) ** -DIGITS:
        factor += 2
        term *= z * z / factor
        total += term
    return Decimal("0.5") - _density(z) * total


def _mills_ratio(z: Decimal) -> Decimal:
    """(1 - Φ(z)) / φ(z); far out a bound that is slightly lower (Birnbaum, 1942)."""
    if z > FAR:
        return 2 / (z + (z * z + 4).sqrt())
    return _tail(z) / _density(z)
