"""Noise for a norm over blocks: drawn as the proof says, and the proof's one inequality."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from chi_square import fits
from numpy.typing import NDArray
from variants import some

from dpforest_duckdb.privacy import sampler
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.privacy.bits import SecureBits
from dpforest_duckdb.privacy.noise import CountNoise, ExactNoise, OpenDPNoise, joint_deviation
from dpforest_duckdb.privacy.sampler import joint_noise

BITS = SecureBits()
BLOCKS = [(1,), (2,), (1, 1), (1, 2), (1, 1, 1), (3,), (2, 2), (1, 5), (4, 1, 1, 3)]


def ball(blocks: tuple[int, ...], radius: int) -> int:
    """How many integer vectors have no block with an L1 norm above the radius."""
    return math.prod(
        sum(2**k * math.comb(size, k) * math.comb(radius, k) for k in range(size + 1))
        for size in blocks
    )


def norm(vector: tuple[int, ...], blocks: tuple[int, ...]) -> int:
    first = np.cumsum([0, *blocks])
    return max(
        sum(map(abs, vector[start : start + size]))
        for start, size in zip(first, blocks, strict=False)
    )


def density(blocks: tuple[int, ...], room: int, rate: float, most: int) -> NDArray[np.float64]:
    """P of one vector of each norm up to `most`: the formula of the docstring, summed."""
    d, least = sum(blocks), room * max(blocks) * sum(blocks)
    last = max(most, least) + int(60 / rate)
    shell = [
        math.comb(r - least + d, d) * math.exp(-rate * (r - least)) / ball(blocks, r)
        if r >= least
        else 0.0
        for r in range(last)
    ]
    tail = np.cumsum(shell[::-1])[::-1]
    scale = sum(own * ball(blocks, r) for r, own in enumerate(shell))
    found: NDArray[np.float64] = tail[: most + 1] / scale
    return found


@pytest.mark.parametrize("blocks", BLOCKS[:6])
def test_balls_are_counted(blocks: tuple[int, ...]) -> None:
    for radius in range(5):
        points = itertools.product(range(-radius, radius + 1), repeat=sum(blocks))
        assert sum(norm(point, blocks) <= radius for point in points) == ball(blocks, radius)


@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("room", [1, 3, sampler.ROOM])
def test_a_step_of_the_norm_costs_no_more_than_it_is_charged(
    blocks: tuple[int, ...], room: int
) -> None:
    """h does not decrease, as the proof needs. With one draw fewer for the radius it would."""

    d, least = sum(blocks), room * max(blocks) * sum(blocks)

    def h(r: int, dimensions: int) -> Fraction:
        return Fraction(math.comb(r - least + dimensions, dimensions), ball(blocks, r))

    here = [h(r, d) for r in range(least, least + 60)]
    assert all(one <= after for one, after in itertools.pairwise(here))
    fewer = [h(r, d - 1) for r in range(least + 10**8, least + 10**8 + 2)]
    assert fewer[0] > fewer[1]


@some("blocks", BLOCKS[:7], keep=3)
@pytest.mark.parametrize("rate", [0.3, 1.0])
def test_vectors_are_drawn_as_the_proof_says(
    monkeypatch: pytest.MonkeyPatch, blocks: tuple[int, ...], rate: float
) -> None:
    """Every vector near the middle is a cell of its own; the others are pooled by their norm."""
    monkeypatch.setattr(sampler, "ROOM", 1)
    scale = Fraction(1) / Fraction(str(rate))
    drawn = joint_noise(40_000, blocks, scale.numerator, scale.denominator, BITS)
    assert drawn.shape == (40_000, sum(blocks))
    norms = np.max(
        [abs(part).sum(axis=1) for part in np.split(drawn, np.cumsum(blocks)[:-1], axis=1)], axis=0
    )
    chances = density(blocks, 1, rate, 400)
    near = 2 if sum(blocks) < 4 else 1
    middle = list(itertools.product(range(-near, near + 1), repeat=sum(blocks)))
    cells = {vector: number for number, vector in enumerate(middle)}
    place = [
        cells.get(tuple(vector), len(cells) + own)
        for vector, own in zip(drawn.tolist(), norms.tolist(), strict=True)
    ]
    single = np.array([chances[norm(vector, blocks)] for vector in middle])
    held = np.bincount([norm(vector, blocks) for vector in middle], minlength=401)
    sizes = [ball(blocks, r) - (ball(blocks, r - 1) if r else 0) for r in range(401)]
    shells = chances * np.array([float(size) for size in sizes]) - chances * held
    expected = np.concatenate([single, np.clip(shells, 0, None)])
    assert fits(np.bincount(place, minlength=len(expected)), expected / expected.sum())


def test_a_radius_drawn_with_a_dimension_less_does_not_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The gate detects a radius of d draws, not d + 1, which would cost more than is charged."""
    monkeypatch.setattr(sampler, "ROOM", 1)
    narrow = joint_noise(40_000, (1, 1), 2, 1, BITS)[:, :1]  # as if it were one of one dimension
    chances = density((1,), 1, 0.5, 200)
    cells = np.clip(narrow[:, 0], -200, 200) + 200
    expected = chances[abs(np.arange(-200, 201))]
    assert not fits(np.bincount(cells, minlength=401), expected / expected.sum())


@pytest.mark.parametrize("noise", [ExactNoise(BITS), OpenDPNoise()], ids=lambda n: n.name)
@pytest.mark.parametrize("blocks", [(1,), (1, 1, 1, 1), (1, 2, 6)])
@pytest.mark.parametrize(("epsilon", "sensitivity"), [(NANO, 4096), (NANO // 10, 3)])
def test_each_dimension_has_the_deviation_that_is_claimed(
    noise: CountNoise, blocks: tuple[int, ...], epsilon: int, sensitivity: int
) -> None:
    sums = np.tile(np.arange(sum(blocks)) * 10**6, (20_000, 1))
    drawn = noise.joint(sums, blocks, epsilon, sensitivity) - sums
    claimed = np.repeat(
        [joint_deviation(blocks, size, epsilon, sensitivity) for size in blocks], blocks
    )
    assert drawn.mean(axis=0) / claimed == pytest.approx(0, abs=0.05)
    assert drawn.std(axis=0) / claimed == pytest.approx(1, abs=0.05)


def test_a_dropped_sensitivity_or_dimension_is_seen() -> None:
    whole = joint_deviation((1, 1, 1, 1), 1, NANO, 100)
    assert joint_deviation((1, 1, 1, 1), 1, NANO, 50) < 0.8 * whole
    assert joint_deviation((1, 1, 1), 1, NANO, 100) < 0.85 * whole
    coarse = joint_deviation((1, 1, 1, 1), 1, NANO, 10**6)
    assert coarse == pytest.approx(math.sqrt(5 * 6 / 3) * 10**6, rel=0.001)


def test_every_vector_has_noise_of_its_own() -> None:
    sums = np.zeros((50, 3), dtype=np.int64)
    noisy = ExactNoise(BITS).joint(sums, (1, 2), NANO // 100, 1)
    assert len(np.unique(noisy[:, 0])) > 40
    again = ExactNoise(BITS).joint(sums, (1, 2), NANO // 100, 1)
    assert (noisy != again).mean() > 0.8


@pytest.mark.parametrize("epsilon", [1, 10**6 * NANO])
@pytest.mark.parametrize("blocks", [(1,), (30, 1, 2), (1000, 1)])
def test_tiny_and_huge_budgets(epsilon: int, blocks: tuple[int, ...]) -> None:
    """No draw hangs: at a huge ε the radius is at its limit."""
    drawn = joint_noise(3, blocks, *Fraction(4096 * NANO, epsilon).as_integer_ratio(), BITS)
    first = np.cumsum([0, *blocks[:-1]])
    norms = np.add.reduceat(abs(drawn), first, axis=1).max(axis=1)
    if epsilon > NANO:
        assert (norms <= sampler.least_radius(blocks)).all()
    else:
        assert (norms > 10**5).all()  # of a scale of 4·10^12: fails once in ten million runs


@pytest.mark.parametrize(
    ("sums", "blocks", "epsilon", "sensitivity"),
    [
        (np.zeros((2, 3), dtype=np.int64), (1, 1), NANO, 1),
        (np.zeros((2, 3), dtype=np.int64), (3, 0), NANO, 1),
        (np.zeros(3, dtype=np.int64), (3,), NANO, 1),
        (np.zeros((2, 3)), (3,), NANO, 1),
        (np.zeros((2, 3), dtype=np.int64), (3,), 0, 1),
        (np.zeros((2, 3), dtype=np.int64), (3,), NANO, 0),
    ],
)
def test_arguments_that_no_caller_should_pass(
    sums: NDArray[np.int64], blocks: tuple[int, ...], epsilon: int, sensitivity: int
) -> None:
    with pytest.raises(ValueError, match=r"ε|counts|blocks"):
        ExactNoise(BITS).joint(sums, blocks, epsilon, sensitivity)


def test_a_radius_that_could_wrap_around_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each draw is in range, and their sum would not be."""
    draws = np.full(64, 2**60, dtype=np.int64)
    monkeypatch.setattr(sampler, "_magnitudes", lambda *args: draws)
    with pytest.raises(ValueError, match="out of range"):
        joint_noise(1, (3, 2, 4), 1, 1, BITS)
