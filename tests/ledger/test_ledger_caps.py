"""Amounts and caps in the ledger: exact, plain about every refusal, and never passed."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger_entries import (
    PLAN,
    VISITS,
    close_run,
    debit,
    holds,
    refusal,
    sentence,
    set_cap,
)
from steps import charge

from dpforest_duckdb.errors import BudgetError, DpforestError, UsageError
from dpforest_duckdb.ledger.book import Ledger
from dpforest_duckdb.ledger.chain import Chain
from dpforest_duckdb.ledger.entries import Holder
from dpforest_duckdb.privacy.amounts import ATTO, NANO, atto_delta, nano_epsilon
from dpforest_duckdb.privacy.unit import ROW, PrivacyUnit

OTHER = Holder("77c1", "stays", "/data/hospital.duckdb::main.stays")
PERSON = PrivacyUnit("person_id", 3)


# What a budget is


def test_nothing_is_created_before_the_first_write(ledger: Ledger) -> None:
    budget = ledger.read().budget(VISITS.budget_id)
    assert (budget.cap, budget.spent_epsilon, budget.left_epsilon) == (None, 0, None)
    assert budget.entries == ()
    assert ledger.read().head == ""
    assert not holds(ledger, "ab" * 32)
    assert ledger.read().find(VISITS.place) is None
    assert not ledger.path.exists()
    debit(ledger, 1)
    assert ledger.path.exists()


def test_a_run_is_recorded_without_a_cap(ledger: Ledger) -> None:
    number = debit(ledger, NANO, 5, unit=PERSON)
    debit(ledger, 7, holder=OTHER)
    budget = ledger.read().budget(VISITS.budget_id)
    (run,) = budget.entries
    assert (run.seq, run.epsilon, run.delta, run.unit, run.state) == (
        number,
        NANO,
        5,
        PERSON,
        "open",
    )
    assert (run.recipe, run.model, run.private, list(run.plan)) == (
        "auto",
        "readmission",
        True,
        PLAN,
    )
    assert run.unit.neighbours == "add-remove"
    assert (budget.spent_epsilon, budget.spent_delta) == (NANO, 5)
    assert (budget.left_epsilon, budget.left_delta, budget.overspent) == (None, None, [])


def test_closing_a_run_gives_nothing_back(ledger: Ledger) -> None:
    first, second = debit(ledger, 2), debit(ledger, 3)
    close_run(ledger, first, "failed")
    close_run(ledger, second, "done")
    budget = ledger.read().budget(VISITS.budget_id)
    assert [run.state for run in budget.entries] == ["failed", "done"]
    assert budget.spent_epsilon == 5


def test_only_an_open_run_can_be_closed(ledger: Ledger) -> None:
    number = debit(ledger, 2)
    close_run(ledger, number, "done")
    for wrong in (number, number + 1, 99):
        with pytest.raises(DpforestError) as caught:
            close_run(ledger, wrong, "failed")
        assert f"has no open run {wrong}" in sentence(caught)


def test_a_forest_is_released_by_a_private_run_that_ended_with_its_hash() -> None:
    """One of the runs that are asked about. A run without a forest has an empty hash."""
    chain = Chain()
    private = [True, True, True, False]
    of_a, of_b, failed, seeded = (chain.debit(VISITS, charge(private=each)) for each in private)
    chain.close_run(of_a, "done", "aa")
    chain.close_run(of_b, "done", "bb")
    chain.close_run(failed, "failed")
    chain.close_run(seeded, "done", "cc")
    known = [forest for forest in ("aa", "bb", "cc", "dd", "") if chain.released(forest)]
    assert known == ["aa", "bb"]
    assert chain.released("aa", [of_a, of_b])
    assert not chain.released("aa", [of_b, failed])
    assert not chain.released("aa", [])
    assert not chain.released("cc", [seeded])


def test_three_tenths_fit_exactly(ledger: Ledger) -> None:
    set_cap(ledger, VISITS, nano_epsilon(0.3), 0, ROW)
    for _ in range(3):
        debit(ledger, nano_epsilon(0.1))
    assert ledger.read().budget(VISITS.budget_id).left_epsilon == 0
    assert "needs ε = 0.000000001 but only 0 of the cap of 0.3" in refusal(ledger, 1)


def test_a_refusal_says_what_is_asked_and_left(ledger: Ledger) -> None:
    set_cap(ledger, VISITS, 3 * NANO, atto_delta("1e-6"), ROW)
    debit(ledger, nano_epsilon(2.5))
    assert refusal(ledger, NANO) == (
        'Refused: this run needs ε = 1 but only 0.5 of the cap of 3 is left for table "visits": '
        "spend less, or raise the cap with set_budget(…, raise_cap=True)."
    )
    assert refusal(ledger, 1, atto_delta("2e-6")) == (
        "Refused: this run needs δ = 0.000002 but only 0.000001 of the cap of 0.000001 is left "
        'for table "visits": spend less, or raise the cap with set_budget(…, raise_cap=True).'
    )
    debit(ledger, 10 * NANO, holder=OTHER)  # a cap binds its own table only


def test_sums_beyond_64_bits(ledger: Ledger) -> None:
    for _ in range(12):
        debit(ledger, NANO, ATTO - 1)
    assert ledger.read().budget(VISITS.budget_id).spent_delta == 12 * (ATTO - 1)


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(0, 0), (-1, 0), (1.0, 0), (float("nan"), 0), (True, 0), (1, -1), (1, ATTO), (1, 1e-6)],
)
def test_amounts_that_are_no_budget(ledger: Ledger, epsilon: Any, delta: Any) -> None:
    for call in (
        lambda: debit(ledger, epsilon, delta),
        lambda: set_cap(ledger, VISITS, epsilon, delta, ROW),
    ):
        with pytest.raises(UsageError) as caught:
            call()
        assert "whole number of nano-ε above zero" in sentence(caught)
    assert not ledger.read().entries


# Caps


def test_a_cap_binds_unit_and_rows(ledger: Ledger) -> None:
    set_cap(ledger, VISITS, NANO, 0, PERSON)
    assert refusal(ledger, 1) == (
        'Refused: the cap of table "visits" protects each "person_id" (at most 3 rows used), '
        "but this run would protect each row: pass privacy_unit='person_id', rows_per_unit=3."
    )
    assert refusal(ledger, 1, unit=PrivacyUnit("person_id", 1)).endswith(
        'each "person_id" (at most 1 row used): no run was made under it yet, so for the same '
        "database run dpforest budget set --table visits --privacy-unit person_id "
        "--rows-per-unit 1."
    )
    assert "each row (at most 2 rows used)" in refusal(ledger, 1, unit=PrivacyUnit("row", 2))
    refusal(ledger, 1, unit=replace(PERSON, neighbours="replace-one"))
    debit(ledger, 1, unit=PERSON)
    assert "pass privacy_unit='person_id', rows_per_unit=3." in refusal(ledger, 1)
    with pytest.raises(BudgetError) as caught:
        set_cap(ledger, VISITS, NANO, 0, ROW, raise_cap=True)
    assert "cannot be changed to each row" in sentence(caught)


def test_a_cap_counts_runs_with_other_rows_of_its_unit(ledger: Ledger) -> None:
    """Each protected the persons with all their rows, of which it used some."""
    debit(ledger, NANO, unit=PrivacyUnit("person_id", 1))
    assert set_cap(ledger, VISITS, 3 * NANO, 0, PERSON).left_epsilon == 2 * NANO
    debit(ledger, NANO, unit=PERSON)


def test_a_cap_of_rows_counts_no_other_number_of_rows(ledger: Ledger) -> None:
    debit(ledger, NANO, unit=ROW)
    with pytest.raises(BudgetError, match="cannot count it"):
        set_cap(ledger, VISITS, 3 * NANO, 0, PrivacyUnit("row", 3))


def test_spending_before_the_cap_counts(ledger: Ledger) -> None:
    debit(ledger, 2 * NANO)
    assert set_cap(ledger, VISITS, 3 * NANO, 0, ROW).left_epsilon == NANO
    assert "only 1 of the cap of 3 is left" in refusal(ledger, NANO + 1)
    debit(ledger, NANO)


def test_a_cap_below_the_spending_refuses_everything(ledger: Ledger) -> None:
    debit(ledger, 2 * NANO, 4)
    budget = set_cap(ledger, VISITS, NANO, 4, ROW)
    assert (budget.left_epsilon, budget.left_delta, budget.overspent) == (0, 0, ["ε"])
    assert "ε = 2 is spent" in (said := refusal(ledger, 1))
    assert "more than its cap of 1: raise the cap" in said
    # ε is free again, but a δ that is overspent refuses pure runs too
    budget = set_cap(ledger, VISITS, 9 * NANO, 3, ROW, raise_cap=True)
    assert (budget.left_epsilon, budget.left_delta, budget.overspent) == (0, 0, ["δ"])
    assert "δ = 0.000000000000000004 is spent" in refusal(ledger, 1)


def test_raising_a_cap_needs_the_flag(ledger: Ledger) -> None:
    set_cap(ledger, VISITS, NANO, 0, ROW)
    with pytest.raises(BudgetError) as caught:
        set_cap(ledger, VISITS, 2 * NANO, 0, ROW)
    assert sentence(caught) == (
        'Refused: table "visits" has a cap of ε = 1; to raise it to 2, add raise_cap=True.'
    )
    with pytest.raises(BudgetError) as caught:
        set_cap(ledger, VISITS, NANO // 2, atto_delta("1e-9"), ROW)
    assert "has a cap of δ = 0; to raise it to 0.000000001, add raise_cap=True" in sentence(caught)
    set_cap(ledger, VISITS, NANO, 0, ROW)  # the same again, and lower, are no raise
    set_cap(ledger, VISITS, NANO // 2, 0, ROW)
    budget = set_cap(ledger, VISITS, 2 * NANO, 1, ROW, raise_cap=True)
    assert [cap.epsilon for cap in budget.caps] == [NANO, NANO, NANO // 2, 2 * NANO]
    assert (budget.left_epsilon, budget.left_delta) == (2 * NANO, 1)


def test_a_cap_that_protects_less_needs_the_flag(ledger: Ledger) -> None:
    set_cap(ledger, VISITS, NANO, 0, PERSON)
    with pytest.raises(BudgetError) as caught:
        set_cap(ledger, VISITS, NANO, 0, ROW)
    assert sentence(caught) == (
        'Refused: the cap of table "visits" protects each "person_id" (at most 3 rows used), and '
        "a cap that protects each row may protect less; to allow this, add raise_cap=True."
    )
    with pytest.raises(BudgetError, match=r'each "visit" .* may protect less'):
        set_cap(ledger, VISITS, NANO, 0, PrivacyUnit("visit", 3))  # may differ in each row
    set_cap(ledger, VISITS, NANO, 0, PrivacyUnit("PERSON_ID", 1))
    set_cap(ledger, VISITS, NANO, 0, PERSON)
    assert ledger.read().budget(VISITS.budget_id).cap.unit == PERSON
    set_cap(ledger, VISITS, NANO, 0, ROW, raise_cap=True)
    set_cap(ledger, VISITS, NANO, 0, PERSON)  # persons again are no raise


def test_a_run_that_is_not_private_is_refused_on_a_cap(ledger: Ledger) -> None:
    set_cap(ledger, VISITS, NANO, 0, ROW)
    assert refusal(ledger, 1, private=False) == (
        'Refused: table "visits" has a cap, and a run that is not private cannot be counted '
        "against it: train without seed, in the rigorous form."
    )


def test_no_cap_after_runs_it_cannot_count(ledger: Ledger) -> None:
    debit(ledger, 1, unit=PERSON)
    with pytest.raises(BudgetError) as caught:
        set_cap(ledger, VISITS, NANO, 0, ROW)
    assert sentence(caught) == (
        'Refused: run 1 on table "visits" protected each "person_id" (at most 3 rows used), '
        "so a cap that protects each row cannot count it: pass privacy_unit='person_id', "
        "rows_per_unit=3."
    )
    debit(ledger, 1, unit=ROW)
    for unit in (ROW, PERSON):
        with pytest.raises(BudgetError, match=r"some runs .* and some .* no cap"):
            set_cap(ledger, VISITS, NANO, 0, unit)
    debit(ledger, 1, holder=OTHER, private=False)
    assert not ledger.read().budget(OTHER.budget_id).entries[0].private
    with pytest.raises(BudgetError) as caught:
        set_cap(ledger, OTHER, NANO, 0, ROW)
    assert "was not private, so no cap can count it" in sentence(caught)


def test_a_refused_cap_for_persons_advises_no_weaker_one(ledger: Ledger) -> None:
    debit(ledger, 1, unit=ROW)
    with pytest.raises(BudgetError) as caught:
        set_cap(ledger, VISITS, NANO, 0, PERSON)
    assert sentence(caught) == (
        'Refused: run 1 on table "visits" protected each row, so this table can never have a cap '
        "for \"person_id\": a cap with privacy_unit='row' would protect single rows only."
    )


def test_a_renamed_table_keeps_its_budget(ledger: Ledger) -> None:
    set_cap(ledger, VISITS, NANO, 0, ROW)
    renamed = replace(VISITS, name="visits_2026", place="/data/b.duckdb::main.visits_2026")
    debit(ledger, NANO, holder=renamed)
    assert 'for table "visits_2026"' in refusal(ledger, 1, holder=renamed)
    assert ledger.read().find(renamed.place) == ledger.read().find(VISITS.place) == VISITS.budget_id
    debit(ledger, 1, holder=replace(OTHER, place=VISITS.place))
    assert ledger.read().find(VISITS.place) == OTHER.budget_id


actions = st.lists(
    st.tuples(st.sampled_from(["debit", "cap", "raise"]), st.integers(1, 6), st.integers(0, 3)),
    max_size=12,
)


@settings(max_examples=40, deadline=None)
@given(actions)
def test_no_sequence_grants_more_than_the_cap(steps: list[tuple[str, int, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "ledger")
        granted_epsilon = granted_delta = 0
        for step, epsilon, delta in steps:
            cap = ledger.read().budget(VISITS.budget_id).cap
            try:
                if step == "debit":
                    debit(ledger, epsilon, delta)
                    granted_epsilon += epsilon
                    granted_delta += delta
                    assert cap is None or granted_epsilon <= cap.epsilon
                    assert cap is None or granted_delta <= cap.delta
                else:
                    set_cap(ledger, VISITS, epsilon, delta, ROW, raise_cap=step == "raise")
            except BudgetError:
                assert cap is not None
                if step == "debit":  # and it refuses only what does not fit
                    over = granted_epsilon + epsilon > cap.epsilon
                    assert over or granted_delta + delta > cap.delta
                else:
                    assert step == "cap"
                    assert epsilon > cap.epsilon or delta > cap.delta
        budget = ledger.read().budget(VISITS.budget_id)
        assert (budget.spent_epsilon, budget.spent_delta) == (granted_epsilon, granted_delta)
