"""What reaches the mechanisms: recorded on its way to them, or in their place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from dpforest_duckdb.arrays import Integers, Mask
from dpforest_duckdb.privacy import selection
from dpforest_duckdb.privacy.noise import ExactNoise


class Call(NamedTuple):
    """What a mechanism was given; a cost is in nano-ε, or for Gaussian noise in atto-μ²."""

    mechanism: str
    private: Integers
    cost: int
    bound: int  # the sensitivity, squared for Gaussian noise
    blocks: Sequence[int] = ()  # of joint noise
    monotone: bool = False  # of a draw

    @property
    def price(self) -> tuple[int, int]:
        return self.cost, self.bound


def record(patch: pytest.MonkeyPatch, *drawing: ModuleType) -> list[Call]:
    """All calls of noise from now on, and of exponents in some modules; they are carried out."""
    given: list[Call] = []

    def recorded(name: str, noise: Callable[..., Integers]) -> Callable[..., Integers]:
        def called(self: ExactNoise, private: Integers, *how: Any) -> Integers:
            *blocks, cost, bound = how
            given.append(Call(name, private, cost, bound, *blocks))
            return noise(self, private, *how)

        return called

    def exponents(u: Integers, allowed: Mask, cost: int, bound: int, monotone: bool) -> Any:
        given.append(Call("exponents", u, cost, bound, monotone=monotone))
        return selection.exponents(u, allowed, cost, bound, monotone)

    for name in ("laplace", "gaussian", "joint"):
        patch.setattr(ExactNoise, name, recorded(name, getattr(ExactNoise, name)))
    for module in drawing:
        patch.setattr(module, "exponents", exponents)
    return given


class NoNoise:
    """Noise of 0, or of what is given for each call, in turn; it records its calls."""

    name, private = "recorded", False

    def __init__(self, *noise: Integers) -> None:
        self.noise = noise
        self.given: list[Call] = []

    def laplace(self, counts: Integers, cost: int, bound: int) -> Integers:
        self.given.append(Call("laplace", counts, cost, bound))
        return counts + self.noise[len(self.given) - 1] if self.noise else counts

    def joint(self, sums: Integers, blocks: Sequence[int], cost: int, bound: int) -> Integers:
        self.given.append(Call("joint", sums, cost, bound, blocks))
        return sums
