"""The two measures in which costs add up: ε of pure DP, and μ² of Gaussian DP.

A measure says what a cost buys: noise in sums, and the ε of a draw. So a learner spends a planned
cost without asking in which measure it is. Costs are integers, in nano-ε or atto-μ².

Each measure bounds in a norm of its own how much sums change: pure DP in L1, Gaussian DP by the
square of L2. Such bounds are for that measure alone. `privacy.noise` has the proofs for noise,
`privacy.gaussian_dp` those for costs.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Protocol

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.privacy.amounts import ATTO, NANO, show, significant
from dpforest_duckdb.privacy.gaussian_dp import (
    drawn_cost,
    drawn_epsilon,
    pure_cost,
    pure_epsilon,
    squared_mu_of,
)
from dpforest_duckdb.privacy.noise import (
    CountNoise,
    gaussian_variance,
    joint_deviation,
    noise_scale,
)
from dpforest_duckdb.privacy.selection import EXPONENTIAL, PERMUTE_AND_FLIP, Mechanism


class Costs(Protocol):
    """What has a cost in each measure, such as a plan."""

    @property
    def epsilon(self) -> int: ...

    @property
    def squared_mu(self) -> int: ...


class Measure(ABC):
    """What costs in one measure buy.

    `symbol` and `json_key` name the measure, for people and in JSON; a cost of `unit` is 1. `sums`
    and `blocks` name the noise of `noisy_sums` and `noisy_blocks` in plans. `mechanism` draws best
    at a given cost.
    """

    symbol: ClassVar[str]
    json_key: ClassVar[str]
    unit: ClassVar[int]
    sums: ClassVar[str]
    blocks: ClassVar[str]
    mechanism: ClassVar[Mechanism]

    def __str__(self) -> str:
        return self.symbol

    @abstractmethod
    def shown(self, cost: int) -> str:
        """A cost in ε or μ², for people."""

    @abstractmethod
    def allowed(self, epsilon: int, delta: int) -> int:
        """The largest cost that nano-ε and atto-δ cover; 0 if this measure needs a δ."""

    @abstractmethod
    def spent(self, plan: Costs) -> int:
        """The cost of a plan in this measure."""

    @abstractmethod
    def squared_mu(self, cost: int) -> int:
        """The atto-μ² of a release of that cost, rounded up."""

    @abstractmethod
    def pure_epsilon(self, cost: int) -> int:
        """The nano-ε of any release that costs at most that much."""

    @abstractmethod
    def drawn_epsilon(self, cost: int) -> int:
        """The nano-ε of a draw that costs at most that much, by `mechanism` or the exponential
        mechanism; of no other.
        """

    @abstractmethod
    def drawn_cost(self, epsilon: int) -> int:
        """The cost of such a draw of nano-ε, rounded up."""

    @abstractmethod
    def part(self, of_epsilon: int | Fraction) -> int | Fraction:
        """The part of costs that makes noise as small as that part of ε would.

        More exactly: if these parts of ε make a weighted sum of variances least, their `part`s do
        so in this measure.
        """

    @abstractmethod
    def scaled(self, change: int, factor: int) -> int:
        """The bound of sums times `factor`, or of as many rows, if that of one is `change`."""

    @abstractmethod
    def noisy_sums(self, noise: CountNoise, sums: Integers, cost: int, change: int) -> Integers:
        """Private integer sums with noise, to be published; the whole array costs `cost`.

        One privacy unit changes the array by at most `change`, in the norm of this measure.
        """

    @abstractmethod
    def variance(self, cost: int, change: int) -> Fraction:
        """The variance of the noise of `noisy_sums`, before it is rounded to integers."""

    @abstractmethod
    def noisy_blocks(
        self, noise: CountNoise, sums: Integers, blocks: Sequence[int], cost: int, change: int
    ) -> Integers:
        """Private `sums[vector, dimension]` with noise, to be published; together they cost `cost`.

        `blocks` are the dimensions of each block of a vector. One privacy unit changes the array by
        at most `change` in the norm of `CountNoise.joint`, in either measure.
        """

    @abstractmethod
    def block_deviation(self, blocks: Sequence[int], size: int, cost: int, change: int) -> float:
        """The standard deviation of the noise of `noisy_blocks` in a block of `size`."""


@dataclass(frozen=True)
class _PureDP(Measure):
    """Costs in nano-ε: of noise in proportion to a change in L1, or in the norm of blocks."""

    symbol, json_key, unit = "ε", "epsilon", NANO
    sums, blocks = "discrete Laplace", "joint noise"
    mechanism = PERMUTE_AND_FLIP  # never worse than the exponential one (McKenna & Sheldon 2020)

    def shown(self, cost: int) -> str:
        return show(cost)

    def allowed(self, epsilon: int, delta: int) -> int:
        return epsilon

    def spent(self, plan: Costs) -> int:
        return plan.epsilon

    def squared_mu(self, cost: int) -> int:
        return pure_cost(cost)

    def pure_epsilon(self, cost: int) -> int:
        return cost

    def drawn_epsilon(self, cost: int) -> int:
        return cost

    def drawn_cost(self, epsilon: int) -> int:
        return epsilon

    def part(self, of_epsilon: int | Fraction) -> int | Fraction:
        return of_epsilon

    def scaled(self, change: int, factor: int) -> int:
        return change * factor

    def noisy_sums(self, noise: CountNoise, sums: Integers, cost: int, change: int) -> Integers:
        return noise.laplace(sums, cost, change)

    def variance(self, cost: int, change: int) -> Fraction:
        return 2 * noise_scale(cost, change) ** 2

    def noisy_blocks(
        self, noise: CountNoise, sums: Integers, blocks: Sequence[int], cost: int, change: int
    ) -> Integers:
        return noise.joint(sums, blocks, cost, change)

    def block_deviation(self, blocks: Sequence[int], size: int, cost: int, change: int) -> float:
        return joint_deviation(blocks, size, cost, change)


@dataclass(frozen=True)
class _GaussianDP(Measure):
    """Costs in atto-μ²: of normal noise, by the square of a change in L2."""

    symbol, json_key, unit = "μ²", "mu_squared", ATTO
    sums = blocks = "rounded Gaussian"
    mechanism = EXPONENTIAL  # for the same ε it costs a quarter of what permute-and-flip does

    def shown(self, cost: int) -> str:
        return significant(cost / ATTO)

    def allowed(self, epsilon: int, delta: int) -> int:
        return squared_mu_of(epsilon, delta)

    def spent(self, plan: Costs) -> int:
        return plan.squared_mu

    def squared_mu(self, cost: int) -> int:
        return cost

    def pure_epsilon(self, cost: int) -> int:
        return pure_epsilon(cost)

    def drawn_epsilon(self, cost: int) -> int:
        return drawn_epsilon(cost)

    def drawn_cost(self, epsilon: int) -> int:
        return drawn_cost(epsilon)

    def part(self, of_epsilon: int | Fraction) -> int | Fraction:
        """The part to the power of 3/2.

        Standard deviations fall with a part s of ε, and with the square root of a part t of μ². A
        weighted sum Σ w/s² is least for s in proportion to the cube roots of the weights w, and
        Σ w/t for t in proportion to their square roots.
        """
        return Fraction(float(of_epsilon) * math.sqrt(of_epsilon))

    def scaled(self, change: int, factor: int) -> int:
        return change * factor**2

    def noisy_sums(self, noise: CountNoise, sums: Integers, cost: int, change: int) -> Integers:
        return noise.gaussian(sums, cost, change)

    def variance(self, cost: int, change: int) -> Fraction:
        return gaussian_variance(cost, change)

    def noisy_blocks(
        self, noise: CountNoise, sums: Integers, blocks: Sequence[int], cost: int, change: int
    ) -> Integers:
        return noise.gaussian(sums, cost, l2_squared(blocks, change))

    def block_deviation(self, blocks: Sequence[int], size: int, cost: int, change: int) -> float:
        return math.sqrt(gaussian_variance(cost, l2_squared(blocks, change)))


def l2_squared(blocks: Sequence[int], change: int) -> int:
    """How much sums change in L2 squared, if by at most `change` in the norm of `CountNoise.joint`.

    A vector of d blocks, none of which changes by more than c in L1, changes by at most √d·c in L2.
    The norm is the sum of such c over the vectors, so all of them change by at most √d times it.
    """
    return len(blocks) * change**2


PURE_DP, GAUSSIAN_DP = _PureDP(), _GaussianDP()
