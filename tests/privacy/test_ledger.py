"""The ledger: exact under races and crashes, append-only, and plain about every refusal."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpforest_duckdb.errors import BudgetError, DpforestError, UsageError
from dpforest_duckdb.ledger import book as module
from dpforest_duckdb.ledger.book import Ledger
from dpforest_duckdb.ledger.entries import Budget, Charge, Table
from dpforest_duckdb.privacy.amounts import ATTO, NANO, atto_delta, nano_epsilon
from dpforest_duckdb.privacy.unit import PrivacyUnit

VISITS = Table("0f3a", "visits", "/data/hospital.duckdb::main.visits")
OTHER = Table("77c1", "stays", "/data/hospital.duckdb::main.stays")
ROW = PrivacyUnit("row")
PERSON = PrivacyUnit("person_id", 3)
PLAN = [{"query": "count_classes", "depth": 1, "epsilon": NANO}]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "hospital.ledger")


def debit(
    ledger: Ledger, epsilon: int, delta: int = 0, table: Table = VISITS, **changes: Any
) -> int:
    run: dict[str, Any] = {
        "unit": ROW,
        "recipe": "auto",
        "model": "readmission",
        "private": True,
        "plan": PLAN,
    }
    with ledger.writing() as chain:
        return chain.debit(table, Charge(epsilon, delta, **run | changes))


def set_cap(
    ledger: Ledger, table: Table, epsilon: int, delta: int, unit: PrivacyUnit, **raised: bool
) -> Budget:
    with ledger.writing() as chain:
        chain.set_cap(table, epsilon, delta, unit, **{"raise_cap": False} | raised)
    return chain.budget(table.dataset)


def sentence(caught: pytest.ExceptionInfo[DpforestError]) -> str:
    text = str(caught.value)
    assert text.endswith(".")
    assert "\n" not in text
    assert "Traceback" not in text
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return text


def refusal(ledger: Ledger, epsilon: int, delta: int = 0, **changes: Any) -> str:
    """The sentence of a refused debit, which must leave the ledger as it was."""
    before = ledger.read().head
    with pytest.raises(BudgetError) as caught:
        debit(ledger, epsilon, delta, **changes)
    assert ledger.read().head == before
    return sentence(caught)


def holds(ledger: Ledger, anchor: str) -> bool:
    """Whether the account of a table with this anchor accepts the ledger."""
    return ledger.read().dataset_at(anchor) is not None


def edit(ledger: Ledger, *statements: str) -> None:
    """Change the file behind the ledger's back."""
    connection = sqlite3.connect(ledger.path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


# What a budget is


def test_nothing_is_created_before_the_first_write(ledger: Ledger) -> None:
    budget = ledger.read().budget(VISITS.dataset)
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
    debit(ledger, 7, table=OTHER)
    budget = ledger.read().budget(VISITS.dataset)
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
    ledger.close_run(first, "failed")
    ledger.close_run(second, "done")
    budget = ledger.read().budget(VISITS.dataset)
    assert [run.state for run in budget.entries] == ["failed", "done"]
    assert budget.spent_epsilon == 5


def test_only_an_open_run_can_be_closed(ledger: Ledger) -> None:
    number = debit(ledger, 2)
    ledger.close_run(number, "done")
    for wrong in (number, number + 1, 99):
        with pytest.raises(DpforestError) as caught:
            ledger.close_run(wrong, "failed")
        assert f"has no open run {wrong}" in sentence(caught)


def test_three_tenths_fit_exactly(ledger: Ledger) -> None:
    set_cap(ledger, VISITS, nano_epsilon(0.3, cap=True), 0, ROW)
    for _ in range(3):
        debit(ledger, nano_epsilon(0.1))
    assert ledger.read().budget(VISITS.dataset).left_epsilon == 0
    assert "needs ε = 0.000000001 but only 0 of the cap of 0.3" in refusal(ledger, 1)


def test_a_refusal_says_what_is_asked_and_left(ledger: Ledger) -> None:
    set_cap(ledger, VISITS, 3 * NANO, atto_delta("1e-6"), ROW)
    debit(ledger, nano_epsilon(2.5))
    assert refusal(ledger, NANO) == (
        'Refused: this run needs ε = 1 but only 0.5 of the cap of 3 is left for table "visits": '
        "spend less, or raise the cap with dpforest budget set."
    )
    assert refusal(ledger, 1, atto_delta("2e-6")) == (
        "Refused: this run needs δ = 0.000002 but only 0.000001 of the cap of 0.000001 is left "
        'for table "visits": spend less, or raise the cap with dpforest budget set.'
    )
    debit(ledger, 10 * NANO, table=OTHER)  # a cap binds its own table only


def test_sums_beyond_64_bits(ledger: Ledger) -> None:
    for _ in range(12):
        debit(ledger, NANO, ATTO - 1)
    assert ledger.read().budget(VISITS.dataset).spent_delta == 12 * (ATTO - 1)


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
        "but this run would protect each row: train with privacy_unit person_id rows_per_unit 3."
    )
    assert 'each "person_id" (at most 1 row used):' in refusal(
        ledger, 1, unit=PrivacyUnit("person_id", 1)
    )
    assert "each row (at most 2 rows used)" in refusal(ledger, 1, unit=PrivacyUnit("row", 2))
    refusal(ledger, 1, unit=replace(PERSON, neighbours="replace-one"))
    debit(ledger, 1, unit=PERSON)
    assert "train with privacy_unit person_id rows_per_unit 3." in refusal(ledger, 1)
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
    assert (budget.left_epsilon, budget.left_delta, budget.overspent) == (7 * NANO, 0, ["δ"])
    assert "δ = 0.000000000000000004 is spent" in refusal(ledger, 1)


def test_raising_a_cap_needs_the_flag(ledger: Ledger) -> None:
    set_cap(ledger, VISITS, NANO, 0, ROW)
    with pytest.raises(BudgetError) as caught:
        set_cap(ledger, VISITS, 2 * NANO, 0, ROW)
    assert sentence(caught) == (
        'Refused: table "visits" has a cap of ε = 1; add raise_cap if it is to become 2.'
    )
    with pytest.raises(BudgetError) as caught:
        set_cap(ledger, VISITS, NANO // 2, atto_delta("1e-9"), ROW)
    assert "has a cap of δ = 0; add raise_cap if it is to become 0.000000001" in sentence(caught)
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
        "each row may be less; add raise_cap if it is to protect no more than that."
    )
    with pytest.raises(BudgetError, match=r'each "visit" .* may be less'):
        set_cap(ledger, VISITS, NANO, 0, PrivacyUnit("visit", 3))  # may differ in each row
    set_cap(ledger, VISITS, NANO, 0, PrivacyUnit("PERSON_ID", 1))
    set_cap(ledger, VISITS, NANO, 0, PERSON)
    assert ledger.read().budget(VISITS.dataset).cap.unit == PERSON
    set_cap(ledger, VISITS, NANO, 0, ROW, raise_cap=True)
    set_cap(ledger, VISITS, NANO, 0, PERSON)  # persons again are no raise


def test_a_run_that_is_not_private_is_refused_on_a_cap(ledger: Ledger) -> None:
    set_cap(ledger, VISITS, NANO, 0, ROW)
    assert refusal(ledger, 1, private=False) == (
        'Refused: table "visits" has a cap, and a run that is not private cannot be counted '
        "against it: leave out seed and as_published."
    )


def test_no_cap_after_runs_it_cannot_count(ledger: Ledger) -> None:
    debit(ledger, 1, unit=PERSON)
    with pytest.raises(BudgetError) as caught:
        set_cap(ledger, VISITS, NANO, 0, ROW)
    assert sentence(caught) == (
        'Refused: run 1 on table "visits" protected each "person_id" (at most 3 rows used), '
        "so a cap that protects each row cannot count it: set one for "
        'each "person_id" (at most 3 rows used).'
    )
    debit(ledger, 1, unit=ROW)
    for unit in (ROW, PERSON):
        with pytest.raises(BudgetError, match=r"some runs .* and some .* no cap"):
            set_cap(ledger, VISITS, NANO, 0, unit)
    debit(ledger, 1, table=OTHER, private=False)
    assert not ledger.read().budget(OTHER.dataset).entries[0].private
    with pytest.raises(BudgetError) as caught:
        set_cap(ledger, OTHER, NANO, 0, ROW)
    assert "was not private, so no cap can count it" in sentence(caught)


def test_a_renamed_table_keeps_its_budget(ledger: Ledger) -> None:
    set_cap(ledger, VISITS, NANO, 0, ROW)
    renamed = replace(VISITS, name="visits_2026", place="/data/b.duckdb::main.visits_2026")
    debit(ledger, NANO, table=renamed)
    assert 'for table "visits_2026"' in refusal(ledger, 1, table=renamed)
    assert ledger.read().find(renamed.place) == ledger.read().find(VISITS.place) == VISITS.dataset
    debit(ledger, 1, table=replace(OTHER, place=VISITS.place))
    assert ledger.read().find(VISITS.place) == OTHER.dataset


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
            cap = ledger.read().budget(VISITS.dataset).cap
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
        budget = ledger.read().budget(VISITS.dataset)
        assert (budget.spent_epsilon, budget.spent_delta) == (granted_epsilon, granted_delta)


# Races and crashes

WORKER = """
import sys
from dpforest_duckdb.errors import BudgetError, DpforestError
from dpforest_duckdb.ledger.book import Ledger
from dpforest_duckdb.ledger.entries import Charge, Table
from dpforest_duckdb.privacy.unit import PrivacyUnit

ledger, amount, attempts = Ledger(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
table = Table("0f3a", "visits", "/data/hospital.duckdb::main.visits")
sys.stdin.readline()
while attempts:
    try:
        with ledger.writing() as chain:
            chain.debit(table, Charge(amount, 0, PrivacyUnit("row"), "auto", "m", True, ()))
        print("granted", flush=True)
    except BudgetError:
        pass
    except DpforestError as error:
        assert "in use by another process" in str(error)  # for half a minute: ask again
        continue
    attempts -= 1
sys.stdin.readline()
"""


def worker(ledger: Ledger, amount: int, attempts: int) -> subprocess.Popen[str]:
    """A process that debits when it gets a line, and ends when it gets another."""
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, str(ledger.path), str(amount), str(attempts)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


@pytest.mark.parametrize(
    ("racing", "tries", "fit"), [(4, 30, 40), pytest.param(8, 1250, 400, marks=pytest.mark.slow)]
)
def test_racing_processes_share_the_cap_exactly(
    ledger: Ledger, racing: int, tries: int, fit: int
) -> None:
    set_cap(ledger, VISITS, NANO, 0, ROW)
    workers = [worker(ledger, NANO // fit, tries) for _ in range(racing)]
    for process in workers:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    granted = [process.communicate("\n", timeout=900)[0].count("granted") for process in workers]
    assert [process.returncode for process in workers] == [0] * racing
    assert sum(granted) == fit
    budget = ledger.read().budget(VISITS.dataset)
    assert (budget.spent_epsilon, budget.left_epsilon, len(budget.entries)) == (NANO, 0, fit)


def test_racing_threads_create_the_file_and_share_it(ledger: Ledger) -> None:
    def attempt(_: int) -> int:
        return debit(ledger, 1)

    with ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(attempt, range(40)))
    assert sorted(numbers) == list(range(1, 41))
    assert ledger.read().budget(VISITS.dataset).spent_epsilon == 40


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_killed_process_leaves_every_debit_it_was_granted(ledger: Ledger) -> None:
    process = worker(ledger, 1, 1_000_000)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    seen = sum(1 for _ in zip(range(20), process.stdout, strict=False))
    process.kill()
    # communicate would not see the lines that Python has read ahead
    seen += process.stdout.read().count("granted")
    process.wait()
    budget = ledger.read().budget(VISITS.dataset)
    # one more may have been committed and not yet announced, never the other way round
    assert seen <= budget.spent_epsilon <= seen + 1
    assert {run.state for run in budget.entries} == {"open"}
    debit(ledger, 1)


def test_an_unfinished_transaction_is_rolled_back(ledger: Ledger) -> None:
    debit(ledger, 1)
    unfinished = ledger.writing()
    chain = unfinished.__enter__()
    chain.add(replace(chain.budget(VISITS.dataset).entries[0], seq=2))
    assert unfinished.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None) is False
    assert ledger.read().budget(VISITS.dataset).spent_epsilon == 1
    assert debit(ledger, 1) == 2


def test_a_clock_that_goes_backwards(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    set_cap(ledger, VISITS, 2, 0, ROW)
    for year in (2030, 1999):
        now = f"{year}-01-01T00:00:00+00:00"
        monkeypatch.setattr("dpforest_duckdb.ledger.chain._now", lambda now=now: now)
        debit(ledger, 1)
    budget = ledger.read().budget(VISITS.dataset)
    assert [run.time[:4] for run in budget.entries] == ["2030", "1999"]
    assert [run.seq for run in budget.entries] == [2, 3]
    assert "only 0 of the cap" in refusal(ledger, 1)


def test_the_time_of_an_entry_does_not_show_how_long_a_run_took(ledger: Ledger) -> None:
    debit(ledger, 1)
    (run,) = ledger.read().budget(VISITS.dataset).entries
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d\+00:00", run.time)


# Tampering


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET content = ''",
        "UPDATE OR IGNORE entries SET content = ''",
        "DELETE FROM entries",
        "INSERT OR REPLACE INTO entries VALUES (1, '', '', '')",
        "REPLACE INTO entries SELECT 1, content, previous, hash FROM entries WHERE seq = 2",
        "INSERT INTO entries VALUES (9, '', '', '')",
    ],
)
def test_the_file_is_append_only(ledger: Ledger, statement: str) -> None:
    debit(ledger, 1)
    debit(ledger, 1)
    before = ledger.read().head
    connection = sqlite3.connect(ledger.path)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute(statement)
    connection.close()
    assert ledger.read().head == before


@pytest.mark.parametrize(
    ("statement", "entry"),
    [
        ("UPDATE entries SET content = replace(content, '\"epsilon\":5', '\"epsilon\":1')", 2),
        ("UPDATE entries SET content = 'x' WHERE seq = 1", 1),
        ("UPDATE entries SET content = x'00ff' WHERE seq = 1", 1),
        ("UPDATE entries SET hash = 'x' WHERE seq = 3", 3),
        ("UPDATE entries SET previous = '' WHERE seq = 2", 2),
        ("UPDATE entries SET seq = seq + 1 WHERE seq = 3", 3),
        ("DELETE FROM entries WHERE seq = 2", 2),
        ("DELETE FROM entries WHERE seq = 1", 1),
    ],
)
def test_the_chain_shows_an_edit(ledger: Ledger, statement: str, entry: int) -> None:
    for epsilon in (3, 5, 7):
        debit(ledger, epsilon)
    triggers = module._SCHEMA[1:]
    drops = [f"DROP TRIGGER {trigger.split()[2]}" for trigger in triggers]
    edit(ledger, *drops, statement, *triggers)
    before = f"entry {entry - 1}" if entry > 1 else "an empty ledger"
    expected = (
        f"The ledger at {ledger.path} has been changed: entry {entry} does not follow from "
        f"{before}; restore it from a backup."
    )
    for use in (ledger.read, lambda: debit(ledger, 1)):
        with pytest.raises(DpforestError) as caught:
            use()
        assert sentence(caught) == expected


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TRIGGER no_update",
        "CREATE TRIGGER quiet BEFORE INSERT ON entries BEGIN SELECT RAISE(IGNORE); END",
        "ALTER TABLE entries ADD COLUMN more TEXT",
        "CREATE VIEW spent AS SELECT 0",
    ],
)
def test_another_layout_is_refused(ledger: Ledger, statement: str) -> None:
    debit(ledger, 1)
    edit(ledger, statement)
    with pytest.raises(DpforestError) as caught:
        debit(ledger, 1)
    assert "its tables or triggers are not as they were made" in sentence(caught)


def test_the_anchor_shows_a_truncated_tail(ledger: Ledger) -> None:
    debit(ledger, 3)
    first = ledger.read().head
    debit(ledger, 5)
    second = ledger.read().head
    edit(ledger, "DROP TRIGGER no_delete", "DELETE FROM entries WHERE seq = 2", module._SCHEMA[2])
    ledger.read()  # a shorter chain is a chain: only the anchor knows
    assert holds(ledger, first)
    assert not holds(ledger, second)
    debit(ledger, 6)
    assert not holds(ledger, second)


def test_the_anchor_shows_a_ledger_copied_back_or_deleted(ledger: Ledger, tmp_path: Path) -> None:
    debit(ledger, 3)
    old = ledger.read().head
    shutil.copy(ledger.path, tmp_path / "backup")
    debit(ledger, 5)
    anchor = ledger.read().head
    assert holds(ledger, old)
    assert holds(ledger, anchor)
    shutil.copy(tmp_path / "backup", ledger.path)
    assert not holds(ledger, anchor)
    ledger.path.unlink()
    assert not holds(ledger, anchor)


def test_any_plan_that_is_json_survives_the_round_trip(ledger: Ledger) -> None:
    odd: list[dict[Any, Any]] = [{2: "é\ud800", 10: (1.5, None)}, {"": [[]], "kind": "close"}]
    debit(ledger, 1, plan=odd, model='a"\n\x00b')
    ledger.read()
    (run,) = ledger.read().budget(VISITS.dataset).entries
    assert run.plan[0] == {"2": "é\ud800", "10": [1.5, None]}
    assert run.model == 'a"\n\x00b'


# Files that cannot be used


def test_a_file_that_is_no_ledger(ledger: Ledger) -> None:
    text = (
        f"The ledger at {ledger.path} is not a dpforest ledger, or no longer; "
        "restore it from a backup, or name another place with ledger."
    )
    ledger.path.write_bytes(b"age,income\n39,0\n" * 400)
    for use in (ledger.read, lambda: debit(ledger, 1)):
        with pytest.raises(DpforestError) as caught:
            use()
        assert sentence(caught) == text
    ledger.path.unlink()
    edit(ledger, "CREATE TABLE entries (seq, content, previous, hash)")
    with pytest.raises(DpforestError) as caught:
        debit(ledger, 1)
    assert sentence(caught) == text


def test_a_ledger_of_a_newer_version(ledger: Ledger) -> None:
    debit(ledger, 1)
    edit(ledger, "PRAGMA user_version=4")
    with pytest.raises(DpforestError) as caught:
        debit(ledger, 1)
    assert "was written by a newer dpforest-duckdb; update the package" in sentence(caught)


def test_an_empty_file_is_an_empty_ledger(ledger: Ledger) -> None:
    ledger.path.touch()
    assert ledger.read().head == ""
    assert debit(ledger, 1) == 1


def test_damage_is_either_harmless_or_reported_in_one_sentence(ledger: Ledger) -> None:
    for _ in range(6):
        debit(ledger, NANO)
    whole, budget, head = (
        ledger.path.read_bytes(),
        ledger.read().budget(VISITS.dataset),
        ledger.read().head,
    )
    source = random.Random(1)
    for position in [*range(100), *(source.randrange(len(whole)) for _ in range(300))]:
        damaged = bytearray(whole)
        damaged[position] ^= source.randrange(1, 256)
        ledger.path.write_bytes(damaged)
        # a damaged page can also lose the tail, which is for the anchor to tell
        with suppress(DpforestError):
            assert ledger.read().budget(VISITS.dataset) == budget or not holds(ledger, head)
    for length in range(100, len(whole), 997):
        ledger.path.write_bytes(whole[:length])
        with pytest.raises(DpforestError):
            ledger.read()


def test_a_folder_that_cannot_hold_it(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file" / "ledger", tmp_path / "absent" / "ledger", tmp_path):
        with pytest.raises(DpforestError) as caught:
            debit(Ledger(path), 1)
        assert sentence(caught) == (
            f"The ledger at {path} cannot be opened or created; check that its folder exists and "
            "is writable, or name another place with ledger."
        )


def test_a_read_only_file(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    debit(ledger, 1)
    # by way of the open mode: permissions do not bind root, which tests may run as
    connect: Callable[..., sqlite3.Connection] = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda at, **how: connect(at.replace("mode=rwc", "mode=ro"), **how)
    )
    with pytest.raises(DpforestError) as caught:
        debit(ledger, 1)
    assert "cannot be written; make the file and its folder writable" in sentence(caught)
    assert ledger.read().budget(VISITS.dataset).spent_epsilon == 1


def test_a_full_disk_debits_nothing(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    debit(ledger, 1)
    connect: Callable[..., sqlite3.Connection] = sqlite3.connect

    def connect_to_full_disk(*place: Any, **how: Any) -> sqlite3.Connection:
        connection = connect(*place, **how)
        connection.execute("PRAGMA max_page_count=4")
        return connection

    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", connect_to_full_disk)
        with pytest.raises(DpforestError) as caught:
            debit(ledger, 1, plan=[{"query": "q" * 100_000}])
    assert sentence(caught) == (
        f"The ledger at {ledger.path} cannot be written because the disk is full; "
        "free some space and try again."
    )
    assert ledger.read().budget(VISITS.dataset).spent_epsilon == 1
    assert debit(ledger, 1) == 2


def test_a_locked_ledger(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    debit(ledger, 1)
    monkeypatch.setattr(module, "_WAIT_SECONDS", 0.05)
    holder = sqlite3.connect(ledger.path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(DpforestError) as caught:
        debit(ledger, 1)
    assert ledger.read().budget(VISITS.dataset).spent_epsilon == 1  # readers are not kept out
    holder.close()
    assert "is in use by another process; try again" in sentence(caught)
    assert debit(ledger, 1) == 2


def test_odd_characters_in_the_path(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "a b%41?mode=ro#é.ledger")
    debit(ledger, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["a b%41?mode=ro#é.ledger"]
