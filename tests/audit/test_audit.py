"""The audit: exact intervals, bounds below the claims, and broken mechanisms found out."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pytest
from shell import dpforest
from variants import some

from dpforest_duckdb.audit.bound import guessing_bound, interval, lower_bound
from dpforest_duckdb.audit.mechanisms import audit, cases
from dpforest_duckdb.audit.recipes import DELTA, WITH_DELTA, audit_recipe
from dpforest_duckdb.privacy.noise import ExactNoise, OpenDPNoise
from dpforest_duckdb.recipes import RECIPES
from dpforest_duckdb.training.prepare import prepare

CASES = {case.name: case for case in cases()}


def up_to(count: int, draws: int, p: float) -> Fraction:
    """P(Binomial ≤ count), exactly for the float p."""
    q = Fraction(p)
    terms = (math.comb(draws, n) * q**n * (1 - q) ** (draws - n) for n in range(count + 1))
    return sum(terms, Fraction(0))


@pytest.mark.parametrize(("count", "draws"), [(0, 10), (3, 10), (10, 10), (1, 40), (39, 40)])
def test_intervals_are_those_of_the_binomial(count: int, draws: int) -> None:
    low, high = interval(count, draws, 0.025)
    if count:
        assert float(1 - up_to(count - 1, draws, low)) == pytest.approx(0.025, rel=1e-6)
    else:
        assert low == 0
    if count < draws:
        assert float(up_to(count, draws, high)) == pytest.approx(0.025, rel=1e-6)
    else:
        assert high == 1


def test_intervals_of_a_million_draws_are_the_normal_ones() -> None:
    low, high = interval(500_000, 10**6, 0.025)
    assert low == pytest.approx(0.5 - 1.96 * 0.0005, abs=2e-6)
    assert high == pytest.approx(0.5 + 1.96 * 0.0005, abs=2e-6)
    assert interval(3, 10**6, 0.025)[1] == pytest.approx(8.767e-6, rel=1e-3)  # Poisson


def test_a_bound_is_larger_in_the_direction_with_more_evidence_and_zero_for_equals() -> None:
    assert lower_bound((700, 100), 1000).epsilon == lower_bound((100, 700), 1000).epsilon
    assert 1.5 < lower_bound((700, 100), 1000).epsilon < math.log(7)
    assert lower_bound((500, 510), 1000).epsilon == 0
    assert lower_bound((0, 0), 1000).epsilon == 0
    assert lower_bound((700, 100), 1000, delta=0.2).epsilon < math.log(5)
    assert lower_bound((20, 0), 1000, delta=0.1).epsilon == 0


def test_a_bound_from_guesses_is_that_of_the_paper() -> None:
    """Steinke, Nasr & Jagielski, NeurIPS 2023, appendix D: 75 of 100 guesses of 1,000 coins."""
    found = guessing_bound(75, 100, 1000, error=0.05, delta=1e-4)
    assert found.epsilon == pytest.approx(0.673, abs=1e-3)
    assert found.seen == (75, 25)
    low, _ = interval(75, 100, 0.05)
    assert guessing_bound(75, 100, 1000, error=0.05).epsilon == pytest.approx(
        math.log(low / (1 - low)), abs=1e-6
    )
    assert guessing_bound(50, 100, 100).epsilon == guessing_bound(0, 0, 100).epsilon == 0
    assert guessing_bound(300, 300, 300).epsilon > 3.7


@some(
    "name",
    [
        # OpenDP takes seconds for so many draws; the exact sampler stands for both
        pytest.param(name, marks=pytest.mark.slow if case.delta and "OpenDP" in name else ())
        for name, case in CASES.items()
    ],
    keep=4,
)
def test_no_mechanism_loses_more_than_it_claims_and_each_shows_much_of_it(name: str) -> None:
    case = CASES[name]
    found = audit(case, 300_000 if case.delta else 40_000)  # a δ shows in rare events only
    assert not found.broken
    assert case.loss is None or found.bound.epsilon <= case.loss
    least = 0.2 if case.delta else 0.4 if case.private else 1.1 * case.claim
    assert found.bound.epsilon > least
    if case.loss is not None:
        assert case.private == (case.loss <= case.claim + 1e-9)


def test_noise_of_half_the_scale_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    laplace = ExactNoise.laplace
    monkeypatch.setattr(
        ExactNoise, "laplace", lambda self, c, e, s: laplace(self, c, 2 * e, s)
    )  # fmt: skip
    found = audit(CASES["counts, exact sampler"], 40_000)
    assert found.broken
    assert found.bound.epsilon > 1.5


@pytest.mark.more
def test_trainings_stay_below_their_claim_and_show_part_of_it() -> None:
    found = audit_recipe("auto", 24)
    assert found.private
    assert not found.broken
    assert found.bound.epsilon > 0.5


@pytest.mark.parametrize(
    ("part", "trainings"),
    [(16, 40), *(pytest.param(*more, marks=pytest.mark.slow) for more in ((4, 128), (2, 864)))],
)
@pytest.mark.more
def test_a_training_of_auto_with_noise_of_part_of_the_scale_is_refuted(
    part: int, trainings: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    laplace, joint = OpenDPNoise.laplace, OpenDPNoise.joint
    monkeypatch.setattr(
        OpenDPNoise, "laplace", lambda self, counts, e, s: laplace(self, counts, part * e, s)
    )
    monkeypatch.setattr(
        OpenDPNoise,
        "joint",
        lambda self, sums, blocks, e, s: joint(self, sums, blocks, part * e, s),
    )
    assert audit_recipe("auto", trainings).broken


def test_a_training_whose_leaves_have_no_noise_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OpenDPNoise, "laplace", lambda self, counts, e, s: counts.copy())
    assert audit_recipe("greedy-tree", 40).broken


@pytest.mark.more
def test_published_dpdf_loses_many_times_its_claim() -> None:
    """One row or two, a size that is all noise: the first split distinguishes them."""
    found = audit(CASES["root of DPDF, n by (26) (as published)"], 40_000)
    assert found.bound.seen[0] / found.bound.draws == pytest.approx(1 / 6, abs=0.01)
    assert found.bound.seen[1] / found.bound.draws == pytest.approx(0.023, abs=0.004)
    assert found.bound.epsilon > 10 * found.claim


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "delta"),
    [(name, delta) for name in sorted(n for n in RECIPES if not RECIPES[n].flaws)
     for delta in (("0", DELTA) if name in WITH_DELTA else ("0",))],
)  # fmt: skip
def test_every_recipe_stays_below_its_claim(name: str, delta: str) -> None:
    assert not audit_recipe(name, 100, delta=delta).broken


def test_only_the_recipes_that_are_audited_with_a_delta_use_one(tmp_path: Path) -> None:
    con = duckdb.connect()
    con.execute("CREATE TABLE t (a BOOLEAN, k BOOLEAN)")
    using = {
        name
        for name in RECIPES
        if prepare(
            con, "t", target="k", epsilon=1, delta=DELTA, recipe=name, ledger=tmp_path / "book"
        ).delta
    }
    assert using == set(WITH_DELTA)


@pytest.mark.more
def test_the_verb() -> None:
    facts = dpforest("audit", "recipes", "--recipe", "greedy-tree", "--runs", "100", "--json").facts
    (found,) = facts["findings"]
    assert set(found) == {
        "name", "claim", "exact_loss", "bound", "seen", "draws", "private", "refuted"
    }  # fmt: skip
    assert found["refuted"] is False
    assert found["private"] is True
    assert found["draws"] == sum(found["seen"])
    said = dpforest("audit", "recipes", "--recipe", "zzz")
    assert said.code == 2
    assert "zzz" in said.err
    assert dpforest("audit", "mechanisms", "--recipe", "dpdf").code == 2
    for words in (("mechanisms", "--runs", "100"), ("recipes", "--draws", "100")):
        said = dpforest("audit", *words)
        assert (said.code, "goes with audit" in said.err) == (2, True)
    for words in (("--draws", "5"), ("--draws", "1_000"), ("recipes", "--runs", "99")):
        said = dpforest("audit", *words)
        assert (said.code, "must be a whole number from 100" in said.err) == (2, True)
    assert np.isfinite(found["bound"])
