"""A cap binds a privacy unit: which runs it refuses, what they protect, when it may change."""

from __future__ import annotations

import warnings
from typing import Any

import duckdb
import pytest
from ledger_entries import account, spend
from small_tables import fill, ready
from steps import charge

from dpforest_duckdb import BudgetError, DpforestError, UsageError, set_budget
from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.errors import PublicFactWarning
from dpforest_duckdb.privacy.amounts import NANO, atto_delta
from dpforest_duckdb.privacy.unit import ROW, PrivacyUnit
from dpforest_duckdb.training.budget import set_cap


def test_the_unit_of_a_cap_can_change_while_nothing_is_spent(
    con: duckdb.DuckDBPyConnection,
) -> None:
    account(con).set_cap(NANO, 0, ROW, raise_cap=False)
    with pytest.raises(BudgetError, match="budget set --table t --privacy-unit who"):
        ready(con, privacy_unit="who", rows_per_unit=3).execute()
    account(con).set_cap(NANO, 0, PrivacyUnit("who", 3), raise_cap=False)
    with pytest.raises(BudgetError, match=r"raise"):
        account(con).set_cap(2 * NANO, 0, ROW, raise_cap=False)
    with pytest.raises(BudgetError, match="each row may protect less"):
        account(con).set_cap(NANO, 0, ROW, raise_cap=False)
    account(con).set_cap(NANO, 0, ROW, raise_cap=True)
    spend(account(con), 1)
    with pytest.raises(BudgetError, match="cannot be changed"):
        account(con).set_cap(NANO, 0, PrivacyUnit("who", 3), raise_cap=False)


def test_a_first_cap_has_the_unit_of_all_earlier_runs(con: duckdb.DuckDBPyConnection) -> None:
    """Another number of rows could not be corrected, because something is spent."""
    account(con).debit(charge(1, unit=PrivacyUnit("who", 3)))
    with warnings.catch_warnings(action="error"):
        assert set_budget(con, "t", epsilon=1).facts()["rows_per_unit"] == 3
        assert set_budget(con, "t", epsilon=1, privacy_unit="WHO").facts()["rows_per_unit"] == 3


def test_a_first_cap_says_that_it_allows_one_row_if_nobody_said_how_many(
    con: duckdb.DuckDBPyConnection,
) -> None:
    with pytest.warns(PublicFactWarning, match="Only one row of each"):
        set_budget(con, "t", epsilon=1, privacy_unit="who")
    account(con).debit(charge(1, unit=PrivacyUnit("who", 1)))
    fill(con, "u")
    for rows in (2, 3):
        account(con, "u").debit(charge(1, unit=PrivacyUnit("who", rows)))
    with pytest.warns(PublicFactWarning, match="Only one row of each"):
        set_budget(con, "u", epsilon=1, privacy_unit="who")
    set_budget(con, "u", privacy_unit="who", rows_per_unit=2)
    account(con, "u").debit(charge(1, unit=PrivacyUnit("who", 2)))
    set_budget(con, "u", epsilon=1)
    with pytest.raises(BudgetError, match="cannot be changed"):
        set_budget(con, "u", privacy_unit="who", rows_per_unit=3)
    with warnings.catch_warnings(action="error"):
        set_budget(con, "t", epsilon=0.5)
        fill(con, "v")
        set_budget(con, "v", epsilon=1, privacy_unit="who", rows_per_unit=1)


def test_a_check_refuses_what_a_debit_would(con: duckdb.DuckDBPyConnection) -> None:
    found = account(con)
    found.check(found.ledger.read(), charge(NANO))
    found.set_cap(NANO, 0, ROW, raise_cap=False)
    for epsilon, unit, private in (
        (2 * NANO, ROW, True),
        (NANO, PrivacyUnit("who"), True),
        (NANO, ROW, False),
    ):
        with pytest.raises(BudgetError):
            found.check(found.ledger.read(), charge(epsilon, unit, private=private))
    assert len(found.ledger.read().entries) == 1


def test_a_column_that_differs_in_the_case_of_an_accent_is_another_unit(
    con: duckdb.DuckDBPyConnection,
) -> None:
    con.execute(
        "CREATE TABLE two (\"É\" INTEGER, \"é\" INTEGER, a VARCHAR CHECK (a IN ('x', 'y')), "
        "k BOOLEAN)"
    )
    for name in ("É", "é"):
        unit = ready(con, "two", privacy_unit=name, columns=["a"]).unit
        assert unit == PrivacyUnit(name)
    assert ready(con, "two", privacy_unit="é", columns=["A"]).unit == PrivacyUnit("é")


def test_a_higher_cap_of_epsilon_keeps_that_of_delta(con: duckdb.DuckDBPyConnection) -> None:
    found = account(con)
    set_cap(found, 1, "1e-5", None, None, raise_cap=False)
    kept = set_cap(found, 2, None, None, None, raise_cap=True).cap
    assert kept is not None
    assert (kept.epsilon, kept.delta) == (2 * NANO, atto_delta("1e-5"))
    none = set_cap(found, None, 0, None, None, raise_cap=False).cap
    assert none is not None
    assert (none.epsilon, none.delta) == (2 * NANO, 0)


@pytest.mark.parametrize("options", [{}, {"rows_per_unit": 2}, {"privacy_unit": "WHO"}])
def test_a_run_protects_the_unit_of_the_cap(
    con: duckdb.DuckDBPyConnection, options: dict[str, Any]
) -> None:
    account(con).set_cap(NANO, 0, PrivacyUnit("who", 2), raise_cap=False)
    assert ready(con, **options).unit == PrivacyUnit("who", 2)
    assert ready(con, **options).execute().guarantee.rows_per_unit == 2


def test_a_column_of_a_cap_may_get_other_case(con: duckdb.DuckDBPyConnection) -> None:
    account(con).set_cap(9 * NANO, 0, PrivacyUnit("who", 2), raise_cap=False)
    ready(con).execute()
    con.execute("ALTER TABLE t RENAME who TO WHO")
    assert ready(con).execute().guarantee.unit == "WHO"
    assert ready(con, privacy_unit="who").unit == PrivacyUnit("WHO", 2)
    con.execute("ALTER TABLE t RENAME WHO TO other")
    with pytest.raises(DpforestError, match="which the cap protects"):
        ready(con)


def test_a_column_called_row_is_not_each_row(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("ALTER TABLE t RENAME who TO Row")
    account(con).set_cap(NANO, 0, ROW, raise_cap=False)
    assert ready(con, privacy_unit="Row").unit == PrivacyUnit("Row")
    with pytest.raises(BudgetError, match="protects each row"):
        ready(con, privacy_unit="Row").execute()


def test_a_column_spelt_row_is_no_privacy_unit(con: duckdb.DuckDBPyConnection) -> None:
    """Its name would mean each row, and protect a person's many rows as one."""
    con.execute('ALTER TABLE t RENAME who TO "row"')
    for spelling in ("Row", "ROW"):
        with pytest.raises(UsageError, match='"row" cannot be the privacy unit'):
            ready(con, privacy_unit=spelling)
    assert ready(con, privacy_unit="row").unit == ROW
    named = {"attributes": (Attribute("a", "categorical", ("x", "y")),), "target": "k"}
    for unit, identifier in (("row", "row"), ("Row", "row"), ("row", "Row")):
        with pytest.raises(DpforestError, match=f'has an identifier "{identifier}"'):
            Domain(**named, classes=("false", "true"), privacy_unit=unit, identifiers=(identifier,))
    Domain(**named, classes=("false", "true"), privacy_unit="Row", identifiers=("Row",))


def test_identifiers_are_asked_about_under_a_cap_of_rows(con: duckdb.DuckDBPyConnection) -> None:
    domain = Domain(
        (Attribute("a", "categorical", ("x", "y")),), "k", ("false", "true"), identifiers=("who",)
    )
    account(con).set_cap(NANO, 0, ROW, raise_cap=False)
    with pytest.raises(DpforestError, match="say whom to protect"):
        ready(con, domain=domain)
    account(con).set_cap(NANO, 0, PrivacyUnit("who", 2), raise_cap=False)
    assert ready(con, domain=domain).unit == PrivacyUnit("who", 2)


def test_a_cap_below_the_spending_is_a_warning(con: duckdb.DuckDBPyConnection) -> None:
    spend(account(con), 2 * NANO)
    with pytest.warns(PublicFactWarning) as caught:
        assert set_budget(con, "t", epsilon=1).overspent == ["ε"]
    assert [str(warning.message) for warning in caught] == [
        "More ε is spent already than the cap allows, so every run is refused: raise the cap with "
        "set_budget(…, raise_cap=True)."
    ]
    with warnings.catch_warnings(action="error"):
        set_budget(con, "t", epsilon=2, raise_cap=True)
