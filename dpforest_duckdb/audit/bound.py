"""From counts of an event on two neighbouring tables to a lower bound on ε.

If a mechanism is (ε, δ)-DP, P(event | one) ≤ e^ε P(event | other) + δ. Clopper & Pearson's exact
intervals (Biometrika 1934) bound both probabilities from the draws, and these bound ε (Jagielski,
Ullman & Oprea, NeurIPS 2020). Or rows are put into a table by fair coins, all at once, and the
guesses of these coins are counted (Steinke, Nasr & Jagielski, NeurIPS 2023). A bound above the
claim proves the claim wrong, up to the stated error. A bound below the claim proves nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

ERROR = 1e-3  # the chance that a bound is wrong: confidence 99.9 %
_STEPS = 60  # of bisection: to the last bit of a probability
MOST = 30.0  # no bound from guesses is above this ε


@dataclass(frozen=True)
class Bound:
    """The lower bound on ε from `draws` on each of two tables, an event `seen` so often on each; or
    from `draws` guesses, of which so many were right and so many wrong.
    """

    seen: tuple[int, int]
    draws: int
    epsilon: float


def lower_bound(seen: tuple[int, int], draws: int, delta: float = 0.0) -> Bound:
    """The lower bound on ε at confidence 1 - ERROR, in the direction where it is larger; at least
    0.

    `delta` is subtracted from the larger probability first. Each direction gets half of the error,
    and each of its two intervals half of that.
    """
    least, most = zip(*(interval(count, draws, ERROR / 4) for count in seen), strict=True)
    ratios = [
        math.log((least[one] - delta) / most[other])
        for one, other in ((0, 1), (1, 0))
        if least[one] > delta
    ]
    return Bound(seen, draws, max([0.0, *ratios]))


def guessing_bound(
    right: int, guesses: int, coins: int, error: float = ERROR, delta: float = 0.0
) -> Bound:
    """The lower bound on ε at confidence 1 - `error` from guesses of `coins` fair coins, each of
    which put a row into a table; rows without a guess count among the coins.

    If ε holds for each row, the number of right guesses is at most Binomial(guesses, e^ε / (1 +
    e^ε)) in distribution; δ adds to the probability (Steinke, Nasr & Jagielski, Theorem 5.2).
    """
    low, high = 0.0, MOST
    for _ in range(_STEPS):
        middle = (low + high) / 2
        tried = _chance(right, guesses, coins, middle, delta) < error
        low, high = (middle, high) if tried else (low, middle)
    return Bound((right, guesses - right), guesses, low)


def _chance(right: int, guesses: int, coins: int, epsilon: float, delta: float) -> float:
    """The most probability of so many right guesses, if the claim (`epsilon`, `delta`) holds."""
    p = 1 / (1 + math.exp(-epsilon))
    tail = 1 - _up_to(right - 1, guesses, p)
    if not delta:
        return tail
    below = [
        _up_to(right - 1, guesses, p) - _up_to(right - 1 - i, guesses, p)
        for i in range(1, right + 1)
    ]
    return tail + 2 * coins * delta * max((b / i for i, b in enumerate(below, 1)), default=0.0)


@cache
def interval(count: int, draws: int, error: float) -> tuple[float, float]:
    """Clopper & Pearson's bounds of a probability; each is wrong with probability ≤ `error`."""
    low = 0.0 if count == 0 else _root(lambda p: 1 - _up_to(count - 1, draws, p) < error)
    high = 1.0 if count == draws else _root(lambda p: _up_to(count, draws, p) >= error)
    return low, high


def _root(below: Callable[[float], bool]) -> float:
    """Where a monotone test changes from true to false, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) else (low, middle)
    return low


def _up_to(count: int, draws: int, p: float) -> float:
    """P(Binomial(draws, p) ≤ count): the incomplete beta function I(1-p; draws-count, count+1)."""
    if count < 0:
        return 0.0
    if count >= draws or p <= 0:
        return 1.0
    if p >= 1:
        return 0.0
    return _incomplete_beta(draws - count, count + 1, 1 - p)


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function, by its continued fraction (DLMF 8.17.22)."""
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    if x > (a + 1) / (a + b + 2):
        return 1 - front * _fraction(b, a, 1 - x) / b
    return front * _fraction(a, b, x) / a


def _fraction(a: float, b: float, x: float) -> float:
    """Lentz's method for the continued fraction."""
    tiny = 1e-300
    c, d = 1.0, 1 / max(1 - (a + b) * x / (a + 1), tiny)
    found = d
    for m in range(1, 10_000):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 + numerator * d
            c = 1 + numerator / c
            d = 1 / (d if abs(d) > tiny else tiny)
            c = c if abs(c) > tiny else tiny
            found *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return found
