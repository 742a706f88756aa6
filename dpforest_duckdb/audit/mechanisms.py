"""Each mechanism by itself, on the pair of neighbouring inputs with the largest privacy loss.

Events are fixed in advance from closed forms. Draws use the system's randomness.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.audit.bound import Bound, lower_bound
from dpforest_duckdb.privacy.amounts import ATTO, NANO
from dpforest_duckdb.privacy.bits import SecureBits
from dpforest_duckdb.privacy.gaussian_dp import squared_mu_of
from dpforest_duckdb.privacy.noise import CountNoise, ExactNoise, OpenDPNoise
from dpforest_duckdb.privacy.sampler import least_radius
from dpforest_duckdb.privacy.selection import (
    EXPONENTIAL,
    PERMUTE_AND_FLIP,
    Exponents,
    Mechanism,
    exponents,
)
from dpforest_duckdb.recipes.leaf_queries import LABEL, SMOOTH_LABEL
from dpforest_duckdb.splits.table_codes import WHOLE
from dpforest_duckdb.splits.utilities import (
    BALANCE,
    GINI,
    MAX_COUNT,
    Utility,
    published_gini,
    published_sensitivity,
)

BATCH = 50_000
OTHERS = 30  # candidates besides the first


@dataclass(frozen=True)
class Case:
    """A mechanism: how often its event happens in a number of draws on each of the two inputs.

    `claim` and `delta` are its ε and δ. `loss` is |ln (P(event | one) - δ) / P(event | other)|,
    exact, if there is a closed form. `private` says if the claim has a proof.
    """

    name: str
    loss: float | None
    event: Callable[[int, int], int]
    private: bool = True
    claim: float = 1.0
    delta: float = 0.0


@dataclass(frozen=True)
class Finding:
    """The result of an audit of one case."""

    name: str
    claim: float
    loss: float | None
    bound: Bound
    private: bool

    @property
    def broken(self) -> bool:
        """Whether the audit refutes a claim."""
        return self.private and self.bound.epsilon > self.claim


def audit(case: Case, draws: int) -> Finding:
    """Draw on both sides, in batches, and bound ε."""
    seen = [0, 0]
    for side in (0, 1):
        left = draws
        while left:
            batch = min(BATCH, left)
            seen[side] += case.event(side, batch)
            left -= batch
    bound = lower_bound((seen[0], seen[1]), draws, delta=case.delta)
    return Finding(case.name, case.claim, case.loss, bound, case.private)


def cases() -> list[Case]:
    """Every mechanism of the package, then those of published forms that lose more than ε."""
    bits = SecureBits()
    exact = ExactNoise(bits)
    return [
        _noise("counts, OpenDP", OpenDPNoise()),
        _noise("counts, exact sampler", exact),
        _gaussian("sums at δ = 1e-5, OpenDP", OpenDPNoise()),
        _gaussian("sums at δ = 1e-5, exact sampler", exact),
        _joint(exact),
        *(
            _selection(mechanism, utility, bits)
            for mechanism in (PERMUTE_AND_FLIP, EXPONENTIAL)
            for utility in (GINI, MAX_COUNT, BALANCE)
        ),
        _label(bits, exact),
        _smooth_label(bits, exact),
        _bootstrap(exact),
        _split_of_dpdf(exact, bits),
    ]


def _noise(name: str, noise: CountNoise) -> Case:
    """Inputs 0 and 1; the event is a noisy count of 1 or more."""

    def event(side: int, draws: int) -> int:
        noisy = noise.laplace(np.full(draws, side, dtype=np.int64), NANO, 1)
        return int((noisy >= 1).sum())

    return Case(name, 1.0, event)


def _gaussian(name: str, noise: CountNoise) -> Case:
    """Sums of 0 and 1, with the μ² that ε = 1 allows; the event is a noisy sum of 12 or more."""
    delta, least = 1e-5, 12
    squared_mu = squared_mu_of(NANO, round(delta * ATTO))
    mu = math.sqrt(squared_mu / ATTO)
    one, other = (math.erfc((least - 0.5 - side) * mu / math.sqrt(2)) / 2 for side in (1, 0))

    def event(side: int, draws: int) -> int:
        noisy = noise.gaussian(np.full(draws, side, dtype=np.int64), squared_mu, 1)
        return int((noisy >= least).sum())

    return Case(name, math.log((one - delta) / other), event, delta=delta)


def _joint(noise: ExactNoise) -> Case:
    """Three sums, with and without a row that adds 1 to each; all three reach a common threshold.

    At this threshold the row reduces the norm by one, whatever the noise is.
    """
    dimensions, blocks = 3, [1] * 3
    smallest = least_radius(blocks)
    least, r = WHOLE + smallest, np.arange(smallest, 60 * WHOLE)
    drawn = sum(np.log(r - smallest + dimensions - i) for i in range(dimensions)) - r / WHOLE
    radii = np.exp(drawn - drawn.max())
    inside = [
        (np.clip(r - least + side * WHOLE + 1, 0, 2 * r + 1) / (2 * r + 1)) ** dimensions
        for side in (0, 1)
    ]
    loss = math.log((radii * inside[1]).sum() / (radii * inside[0]).sum())

    def event(side: int, draws: int) -> int:
        sums = np.full((draws, dimensions), side * WHOLE, dtype=np.int64)
        noisy = noise.joint(sums, blocks, NANO, WHOLE)
        return int((noisy >= least).all(axis=1).sum())

    return Case("joint noise on three sums, exact sampler", loss, event)


# One more row of class 1 helps the first candidate only, or hurts all the others and not the first:
# `[branch, class]` of the first candidate, of the others, and the branch of the row in each.
_PAIRS = {
    "Gini": ([[6, 1], [0, 0]], [[6, 0], [0, 1]], (0, 1)),
    "max count": ([[1, 1], [0, 0]], [[1, 0], [0, 1]], (0, 0)),
    "balance": ([[2, 0], [0, 0]], [[1, 0], [1, 0]], (1, 0)),
}


def _selection(mechanism: Mechanism, utility: Utility, bits: SecureBits) -> Case:
    """The event is that the first candidate is drawn."""
    first, other, (branch, other_branch) = _PAIRS[utility.name]
    tables = np.array([[first] + [other] * OTHERS] * 2, dtype=np.int64)
    tables[1, 0, branch, 1] += 1
    tables[1, 1:, other_branch, 1] += 1
    worth = utility.function(tables)

    def event(side: int, draws: int) -> int:
        many = np.repeat(worth[side : side + 1], draws, axis=0)
        allowed = np.ones(many.shape, dtype=np.bool_)
        exponent = exponents(many, allowed, NANO, utility.sensitivity, utility.monotone)
        return int((mechanism.draw(exponent, allowed, bits) == 0).sum())

    rate = 1 / utility.sensitivity / (1 if utility.monotone else 2)
    return Case(mechanism.on(utility.name), _loss(mechanism, worth, rate), event)


def _loss(mechanism: Mechanism, worth: Integers, rate: float) -> float:
    """The privacy loss of drawing the first candidate, by the closed forms."""
    chances = []
    for row in worth:
        coins = np.exp((row - row.max()) * rate)
        if mechanism is EXPONENTIAL:
            chances.append(coins[0] / coins.sum())
            continue
        heads = np.ones(1)  # chances of m heads among the others
        for coin in coins[1:]:
            heads = np.append(heads * (1 - coin), 0) + np.append(0, heads * coin)
        chances.append(coins[0] * (heads / np.arange(1, len(heads) + 1)).sum())
    return abs(math.log(chances[0] / chances[1]))


def _label(bits: SecureBits, noise: ExactNoise) -> Case:
    """Leaves of (3, 0) and (4, 0): the event is the label of the class without rows."""

    def event(side: int, draws: int) -> int:
        counts = np.tile(np.array([3 + side, 0], dtype=np.int64), (draws, 1))
        return int(LABEL.ask(counts, NANO, 1, noise, bits)[:, 1].sum())

    return Case("label of a leaf, permute-and-flip", 1.0, event)


def _smooth_label(bits: SecureBits, noise: ExactNoise) -> Case:
    """Leaves of (1, 0) and (2, 0), with smooth sensitivity e^-(lead ε) and nothing else."""

    def event(side: int, draws: int) -> int:
        counts = np.tile(np.array([1 + side, 0], dtype=np.int64), (draws, 1))
        return int(SMOOTH_LABEL.ask(counts, NANO, 1, noise, bits)[:, 1].sum())

    chances = [1 / (1 + math.exp(math.exp(lead) / 2)) for lead in (1, 2)]
    loss = math.log(chances[0] / chances[1])
    return Case("label by smooth sensitivity (as published)", loss, event, private=False)


def _bootstrap(noise: ExactNoise) -> Case:
    """A bootstrap of 50 rows, none or one of them in the cell: a noisy count of 5 or more.

    The row is drawn Binomial(50, 1/50) times, but the noise is scaled for one row.
    """
    rows, least, random = 50, 5, np.random.default_rng()

    def event(side: int, draws: int) -> int:
        counts = random.binomial(rows, side / rows, draws).astype(np.int64)
        return int((noise.laplace(counts, NANO, 1) >= least).sum())

    q = math.exp(-1)
    tail = [(q**k if k >= 0 else 1 + q - q ** (1 - k)) / (1 + q) for k in range(least, -rows, -1)]
    chances = [
        sum(
            math.comb(rows, n) * (side / rows) ** n * (1 - side / rows) ** (rows - n) * tail[n]
            for n in range(rows + 1)
        )
        for side in (0, 1)
    ]
    loss = math.log(chances[1] / chances[0])
    return Case("noisy count of a bootstrap (as published)", loss, event, private=False)


def _split_of_dpdf(noise: ExactNoise, bits: SecureBits) -> Case:
    """The root of DPDF at depth 5, with n by (26): Σ|noisy counts|, hundreds if there is one row.

    The tables have one row of class 0, or two: the second has class 1 and shares only its value of
    the first attribute. The event is that the first attribute is drawn. With one row the draw is
    uniform.
    """
    budget, attributes, classes = 0.1, 6, 18
    share = int(budget * NANO) // 9  # 2δ - 1 queries
    tables = np.zeros((2, attributes, 2, classes), dtype=np.int64)
    tables[:, :, 0, 0] = 1
    tables[1, 0, 0, 1] = 1
    tables[1, 1:, 1, 1] = 1
    worth = published_gini(tables)

    def event(side: int, draws: int) -> int:
        histogram = np.tile(tables[side, 0].sum(axis=0), (draws, 1))
        size = abs(noise.laplace(histogram, share, 1))
        rate = share / NANO / (2 * published_sensitivity(size))
        gap = (worth[side].max() - worth[side])[None, :] * rate[:, None]
        allowed = np.ones(gap.shape, dtype=np.bool_)
        return int((EXPONENTIAL.draw(Exponents.rounded(gap), allowed, bits) == 0).sum())

    name = "root of DPDF, n by (26) (as published)"
    return Case(name, None, event, private=False, claim=budget)
