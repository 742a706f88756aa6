"""A domain against the declared types of a table's columns."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.checks import remarks
from dpforest_duckdb.domain.types import VARCHAR, ColumnType, column_type
from dpforest_duckdb.errors import DpforestError

DAY = dt.date(2020, 1, 31)


def enum(*labels: str) -> ColumnType:
    return column_type("ENUM(" + ", ".join(f"'{label}'" for label in labels) + ")")


def checked(attribute: Attribute, kind: ColumnType, classes: ColumnType = VARCHAR) -> Any:
    domain = Domain((attribute,), "ill", ("no", "yes"))
    return remarks(domain, {attribute.name.upper(): kind, "ill": classes})


@pytest.mark.parametrize("sql_type", ["INTEGER", "DECIMAL(9,2)", "DOUBLE"])
def test_dates_bound_no_numbers(sql_type: str) -> None:
    attribute = Attribute("X", "numeric", lower=DAY, upper=dt.date(2021, 1, 31))
    with pytest.raises(DpforestError, match=r'"X" is .*, but its bounds are dates'):
        checked(attribute, column_type(sql_type))


@pytest.mark.parametrize("sql_type", ["DATE", "TIMESTAMP"])
def test_numbers_bound_no_dates(sql_type: str) -> None:
    with pytest.raises(DpforestError, match=r'"X" is .*, but its bounds are numbers'):
        checked(Attribute("X", "numeric", lower=0, upper=9), column_type(sql_type))


def test_labels_that_domain_and_enum_do_not_share_are_said_without_those_of_the_enum() -> None:
    """Those of the ENUM may have been made from the rows. Names of columns ignore case."""
    city = Attribute("City", "categorical", ("Bern", "Rome"))
    assert checked(city, enum("Bern", "Rome")) == ()
    assert checked(city, enum("Bern", "Oslo")) == (
        'The domain of "CITY" lists "Rome", which its ENUM type does not have.',
        'The domain of "CITY" does not list all labels of its ENUM type. They count as other.',
    )
    assert checked(city, VARCHAR, enum("no", "yes", "unknown")) == (
        'The domain of "ill" does not list all labels of its ENUM type. Rows of these classes are '
        "left out.",
    )


def test_a_misspelt_label_and_classes_that_no_row_can_have_are_refused() -> None:
    city = Attribute("City", "categorical", ("Bern", "Rome"))
    for spelt in ("bern", "Berne"):
        with pytest.raises(DpforestError, match='lists "Bern", but its ENUM type has a label of'):
            checked(city, enum(spelt, "Rome"))
    with pytest.raises(DpforestError, match=r'No class of the domain is a label of .* "ill"'):
        checked(city, VARCHAR, enum("sick", "healthy"))
