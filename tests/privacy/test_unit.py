"""The privacy unit that a request asks for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpforest_duckdb.errors import DpforestError, UsageError
from dpforest_duckdb.privacy.unit import MAX_ROWS, ROW, PrivacyUnit, requested_unit

COLUMNS = ("Who", "clinic")
PERSON = PrivacyUnit("Who", 3)


def asked(column: str | None, rows: Any, usual: PrivacyUnit | None = None) -> PrivacyUnit:
    return requested_unit(column, rows, usual=usual, columns=COLUMNS)


@pytest.mark.parametrize(
    ("column", "rows", "usual", "unit"),
    [
        (None, None, None, ROW),
        (None, 1, None, ROW),
        ("row", None, PERSON, ROW),
        ("who", None, None, PrivacyUnit("Who", 1)),
        ("who", MAX_ROWS, None, PrivacyUnit("Who", MAX_ROWS)),
        ("who", np.int32(2), None, PrivacyUnit("Who", 2)),
        (None, None, PERSON, PERSON),
        (None, None, PrivacyUnit("WHO", 3), PERSON),
        (None, 2, PERSON, PrivacyUnit("Who", 2)),
        ("WHO", None, PERSON, PERSON),
        ("who", 2, PERSON, PrivacyUnit("Who", 2)),
        ("clinic", None, PERSON, PrivacyUnit("clinic", 1)),
    ],
)
def test_the_unit_is_the_one_asked_for_else_the_usual_one_else_the_row(
    column: str | None, rows: int | None, usual: PrivacyUnit | None, unit: PrivacyUnit
) -> None:
    assert asked(column, rows, usual) == unit


@pytest.mark.parametrize("rows", [0, -1, MAX_ROWS + 1, 1.5, True])
@pytest.mark.parametrize("column", [None, "who"])
def test_a_unit_has_a_whole_number_of_rows_within_limits(column: str | None, rows: Any) -> None:
    """The noise is in proportion to it."""
    with pytest.raises(UsageError, match="must be a whole number from 1 to 1000000"):
        asked(column, rows)


@pytest.mark.parametrize("usual", [None, ROW])
@pytest.mark.parametrize("column", [None, "row"])
def test_several_rows_need_a_column(column: str | None, usual: PrivacyUnit | None) -> None:
    with pytest.raises(UsageError, match="goes with a privacy_unit column, not with rows"):
        asked(column, 2, usual)


def test_the_column_is_one_of_the_table_and_not_called_row() -> None:
    with pytest.raises(DpforestError, match=r'no column "whom" \(did you mean "Who"\?\)'):
        asked("whom", None)
    with pytest.raises(UsageError, match='A column called "row" cannot be the privacy unit'):
        requested_unit("Row", None, usual=None, columns=("row", "who"))
