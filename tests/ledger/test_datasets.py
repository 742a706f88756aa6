"""The budget of files and of named datasets, which is in the ledger alone."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import duckdb
import pytest
from ledger_entries import spend
from steps import charge

from dpforest_duckdb import budget, budgets, prepare, set_budget
from dpforest_duckdb.domain.file import domain_from_mapping
from dpforest_duckdb.errors import BudgetError, DpforestError, PublicFactWarning, UsageError
from dpforest_duckdb.ledger.book import Ledger
from dpforest_duckdb.ledger.datasets import DatasetAccount
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.privacy.unit import ROW, PrivacyUnit

A, B = Path("/data/a.csv"), Path("/data/b.csv")


def spent(ledger: Ledger, *files: Path, dataset: str | None = None) -> int:
    return DatasetAccount(ledger, files, dataset).budget().spent_epsilon


def test_only_files_without_a_name_are_known_by_their_paths(ledger: Ledger) -> None:
    assert "A copy of these files" in DatasetAccount(ledger, (A,)).caution
    assert DatasetAccount(ledger, (A,), "survey").caution == ""


def test_other_rows_may_have_the_budget_of_a_name_but_not_of_a_file(ledger: Ledger) -> None:
    assert DatasetAccount(ledger, (), "survey").rows_may_change
    assert DatasetAccount(ledger, (A,), "survey").rows_may_change
    assert not DatasetAccount(ledger, (A,)).rows_may_change


def test_every_file_of_a_glob_is_debited_and_each_run_is_closed(ledger: Ledger) -> None:
    account = DatasetAccount(ledger, (A, B))
    runs = spend(account)
    assert len(runs) == 2
    account.close_run(runs, "done")
    for file in (A, B):
        assert [r.state for r in DatasetAccount(ledger, (file,)).budget().entries] == ["done"]
    assert spent(ledger, A) == spent(ledger, B) == NANO


def test_the_runs_of_a_debit_are_closed_together_or_not_at_all(ledger: Ledger) -> None:
    account = DatasetAccount(ledger, (A, B))
    runs = spend(account)
    with pytest.raises(DpforestError, match="no open run 99"):
        account.close_run((runs[0], 99), "done")
    assert [run.state for run in DatasetAccount(ledger, (A,)).budget().entries] == ["open"]


def test_a_cap_on_one_file_refuses_the_whole_glob(ledger: Ledger) -> None:
    DatasetAccount(ledger, (B,)).set_cap(NANO, 0, ROW, raise_cap=False)
    both = DatasetAccount(ledger, (A, B))
    for refused in (
        lambda: both.check(ledger.read(), charge(2 * NANO)),
        lambda: spend(both, 2 * NANO),
    ):
        with pytest.raises(BudgetError, match=r'only 1 .* file "b.csv"'):
            refused()
    assert spent(ledger, A) == 0, "one transaction: nothing is debited"
    assert both.budget().left_epsilon == NANO, "the budget that leaves least"
    spend(both)
    with pytest.raises(BudgetError):
        spend(both, 1)


def test_a_cap_on_a_glob_is_one_on_each_of_its_files(ledger: Ledger) -> None:
    DatasetAccount(ledger, (A, B)).set_cap(NANO, 0, ROW, raise_cap=False)
    for file in (A, B):
        with pytest.raises(BudgetError, match="only 1 of the cap"):
            spend(DatasetAccount(ledger, (file,)), 2 * NANO)


def test_without_caps_a_glob_shows_the_budget_that_has_spent_most(ledger: Ledger) -> None:
    spend(DatasetAccount(ledger, (A,)))
    spend(DatasetAccount(ledger, (B,)), 3 * NANO)
    assert spent(ledger, A, B) == spent(ledger, B, A) == 3 * NANO


def test_folds_under_one_name_add_up_whatever_its_case(ledger: Ledger) -> None:
    DatasetAccount(ledger, dataset="Survey").set_cap(2 * NANO, 0, ROW, raise_cap=False)
    spend(DatasetAccount(ledger, dataset="survey"))
    spend(DatasetAccount(ledger, dataset=" SURVEY "))
    with pytest.raises(BudgetError, match="only 0 of the cap of 2"):
        spend(DatasetAccount(ledger, dataset="Survey"))


def test_a_file_of_a_dataset_is_debited_there_without_the_name_too(ledger: Ledger) -> None:
    DatasetAccount(ledger, dataset="survey").set_cap(3 * NANO, 0, ROW, raise_cap=False)
    assert len(spend(DatasetAccount(ledger, (A, B), "survey"))) == 1
    spend(DatasetAccount(ledger, (A,)))
    assert len(spend(DatasetAccount(ledger, (A, B)))) == 1, "both files have one budget"
    with pytest.raises(BudgetError):
        spend(DatasetAccount(ledger, (B,)))
    assert spent(ledger, dataset="survey") == 3 * NANO


def test_the_budget_of_a_dataset_keeps_its_name_in_runs_on_its_files(ledger: Ledger) -> None:
    for _ in range(2):
        spend(DatasetAccount(ledger, (A,), "survey"))
        spend(DatasetAccount(ledger, (A,)))
    (found,) = budgets(ledger.path)
    assert (found.kind, found.name, found.facts()["spent"]) == ("dataset", "survey", 4)


def test_what_a_file_spent_before_counts_in_its_dataset(ledger: Ledger) -> None:
    spend(DatasetAccount(ledger, (A,)))
    spend(DatasetAccount(ledger, (A, B), "survey"))
    assert spent(ledger, dataset="survey") == 2 * NANO
    DatasetAccount(ledger, dataset="small").set_cap(NANO, 0, ROW, raise_cap=False)
    spend(DatasetAccount(ledger, (Path("/data/c.csv"),)), 2 * NANO)
    with pytest.raises(BudgetError):
        spend(DatasetAccount(ledger, (Path("/data/c.csv"),), "small"), 1)
    assert spent(ledger, dataset="small") == 0


PERSON = PrivacyUnit("person", 2)


@pytest.mark.parametrize(
    ("units", "cap", "private", "advice"),
    [
        ((PERSON,), PrivacyUnit("person"), True, (
            'run 1 protected each "person" (at most 2 rows used), but the cap protects each '
            '"person" (at most 1 row used), so for the same --ledger run dpforest budget set '
            "--dataset survey --privacy-unit person --rows-per-unit 2 first, or leave --dataset "
            "out."
        )),
        ((PERSON, PrivacyUnit("person", 3)), PrivacyUnit("person"), True, (
            'run 1 protected each "person" (at most 2 rows used), but the cap protects each '
            '"person" (at most 1 row used), so leave --dataset out.'
        )),
        ((ROW,), PERSON, True, (
            'run 1 protected each row, but the cap protects each "person" (at most 2 rows used), '
            "so leave --dataset out."
        )),
        ((ROW,), ROW, False, "run 1 was not private, so leave --dataset out."),
        ((ROW, ROW, ROW), ROW, True, (
            "that is ε = 3, but only 2 of 2 is left, so raise the cap with dpforest budget set "
            "--raise, or leave --dataset out."
        )),
    ],
)  # fmt: skip
def test_a_file_whose_runs_a_cap_cannot_count_does_not_join_the_dataset(
    ledger: Ledger,
    units: tuple[PrivacyUnit, ...],
    cap: PrivacyUnit,
    private: bool,
    advice: str,
) -> None:
    """The advice is about the earlier runs, not about the one that is refused."""
    for unit in units:
        DatasetAccount(ledger, (A,)).debit(charge(NANO, unit, private=private))
    DatasetAccount(ledger, dataset="survey").set_cap(2 * NANO, 0, cap, raise_cap=False)
    start = f'Refused: the cap of dataset "survey" cannot count what was spent on the file {A} '
    with pytest.raises(BudgetError) as refused:
        DatasetAccount(ledger, (A,), "survey").debit(charge(1, cap))
    assert refused.value.sentence == f"{start}before: {advice}"
    assert spent(ledger, dataset="survey") == 0


def test_a_file_joins_one_dataset_and_none_if_it_has_a_cap(ledger: Ledger) -> None:
    spend(DatasetAccount(ledger, (A,), "survey"))
    with pytest.raises(BudgetError, match='in the dataset "survey" already'):
        spend(DatasetAccount(ledger, (A,), "other"))
    DatasetAccount(ledger, (B,)).set_cap(NANO, 0, ROW, raise_cap=False)
    with pytest.raises(BudgetError, match="cap of its own"):
        spend(DatasetAccount(ledger, (B,), "survey"))
    assert spent(ledger, dataset="survey") == NANO
    assert DatasetAccount(ledger, (B,)).budget().cap


def test_a_capped_dataset_takes_no_run_that_is_not_private(ledger: Ledger) -> None:
    account = DatasetAccount(ledger, dataset="survey")
    account.set_cap(NANO, 0, ROW, raise_cap=False)
    with pytest.raises(BudgetError, match="not private"):
        spend(account, private=False)
    with pytest.raises(BudgetError, match="protects each row"):
        account.debit(charge(1, PrivacyUnit("who")))


def test_a_dataset_needs_a_name(ledger: Ledger) -> None:
    for name in ("", "  ", "a\nb"):
        with pytest.raises(UsageError, match="dataset"):
            DatasetAccount(ledger, dataset=name)
    with pytest.raises(UsageError, match="dataset"):
        DatasetAccount(ledger)


def test_all_spellings_of_a_name_are_one_dataset(ledger: Ledger) -> None:
    DatasetAccount(ledger, dataset="Caf\u00e9").set_cap(NANO, 0, ROW, raise_cap=False)
    for name in ("cafe\u0301", "CAF\u00c9 ", "\uff43af\u00e9"):
        with pytest.raises(BudgetError, match="only 1 of the cap"):
            spend(DatasetAccount(ledger, dataset=name), 2 * NANO)
        assert spent(ledger, dataset=name) == 0


def test_a_name_that_the_ledger_does_not_have_gets_a_warning(tmp_path: Path) -> None:
    """It may be misspelt, and would have a budget of its own."""
    con = duckdb.connect()
    con.execute("CREATE TABLE t AS SELECT 'a' AS x, 'no' AS y")
    columns = [
        {"name": "x", "kind": "categorical", "domain": ["a", "b"]},
        {"name": "y", "kind": "categorical", "domain": ["no", "yes"]},
    ]
    domain = domain_from_mapping({"target": "y", "column": columns})
    given: dict[str, Any] = {"domain": domain, "epsilon": 1, "ledger": tmp_path / "l"}
    rows = con.sql("FROM t LIMIT 1")
    prepare(con, rows, dataset="hospital", **given).execute()
    with warnings.catch_warnings(action="error", category=PublicFactWarning):
        prepare(con, rows, dataset="HOSPITAL", **given)
    new = (
        r'New dataset "hopsital" \(did you mean "hospital"\?\): the ledger knows of no earlier run'
    )
    with pytest.warns(PublicFactWarning, match=new):
        prepare(con, rows, dataset="hopsital", **given)
    with pytest.warns(PublicFactWarning, match=new):
        assert budget(con, rows, dataset="hopsital", ledger=tmp_path / "l").cap is None
    with pytest.warns(PublicFactWarning, match="New ledger"):
        budget(con, rows, dataset="hospital", ledger=tmp_path / "other")
    with pytest.warns(PublicFactWarning, match=new):
        set_budget(con, rows, dataset="hopsital", epsilon=1, ledger=tmp_path / "l")


def test_a_file_with_a_cap_shows_no_empty_budget_under_another_name(ledger: Ledger) -> None:
    DatasetAccount(ledger, (A,)).set_cap(NANO, 0, ROW, raise_cap=False)
    with pytest.raises(BudgetError, match="cap of its own"):
        DatasetAccount(ledger, (A,), "other").budget()


def test_python_shows_and_caps_a_dataset_without_its_rows(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "d.duckdb")) as con:
        assert set_budget(con, None, epsilon=2, dataset="hospital").facts()["left"] == 2
        beside = Ledger(tmp_path / "d.duckdb.ledger")
        spend(DatasetAccount(beside, dataset="hospital"))
        found = budget(con, None, dataset="Hospital")
        assert (found.facts()["cap"], found.facts()["spent"]) == (2, 1)
        assert found == budget(con, None, dataset="hospital", ledger=beside.path)
        with pytest.warns(PublicFactWarning, match=r'"hospitl" \(did you mean "hospital"'):
            assert budget(con, None, dataset="hospitl").cap is None
        with pytest.warns(PublicFactWarning, match="New ledger"):
            budget(con, None, dataset="hospital", ledger=tmp_path / "other.ledger")
        assert not (tmp_path / "other.ledger").exists()
        with pytest.raises(UsageError, match="dataset"):
            budget(con, None)
    with duckdb.connect() as con, pytest.raises(DpforestError, match="ledger"):
        budget(con, None, dataset="hospital")
    with pytest.raises(UsageError, match="con must be"):
        budget("d.duckdb", None, dataset="hospital")


def test_python_lists_all_budgets_of_a_ledger(ledger: Ledger, tmp_path: Path) -> None:
    DatasetAccount(ledger, dataset="survey").set_cap(2 * NANO, 0, ROW, raise_cap=False)
    spend(DatasetAccount(ledger, (tmp_path / "a.csv",)))
    dataset, file = budgets(ledger.path)
    assert (dataset.kind, dataset.name, dataset.place) == ("dataset", "survey", "")
    assert (file.kind, file.name, file.place) == ("file", "a.csv", str(tmp_path / "a.csv"))
    assert (dataset.budget.cap.epsilon, file.facts()["spent"]) == (2 * NANO, 1)
    with pytest.raises(DpforestError, match="no ledger"):
        budgets(tmp_path / "none.ledger")
    with pytest.raises(UsageError, match="ledger must be a path"):
        budgets(None)
