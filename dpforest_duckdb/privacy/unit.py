"""The privacy unit: what ε protects."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from numbers import Integral

from dpforest_duckdb.domain.names import fold, hint, spellings
from dpforest_duckdb.errors import DpforestError, UsageError, number_of
from dpforest_duckdb.guarantee import EACH_ROW

MAX_ROWS = 1_000_000  # of a unit: the noise of a count grows with them


@dataclass(frozen=True)
class PrivacyUnit:
    """One row (`EACH_ROW`), or at most `rows` rows that share a value of `column`."""

    column: str
    rows: int = 1
    neighbours: str = "add-remove"

    @property
    def is_row(self) -> bool:
        """Whether each row is a unit of its own."""
        return self.column == EACH_ROW

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that name a unit: none for rows, even if a column is called "row"."""
        return () if self.is_row else (self.column,)

    def refuse_target(self, target: str) -> None:
        """Raise `DpforestError` if the unit is the column of the classes."""
        if fold(target) in map(fold, self.columns):
            raise DpforestError("The target cannot be the privacy unit: correct --privacy-unit.")

    def __str__(self) -> str:
        if self == ROW:
            return "each row"
        name = "row" if self.is_row else f'"{self.column}"'
        return f"each {name} (at most {number_of(self.rows, 'row')} used)"


ROW = PrivacyUnit(EACH_ROW)


def single_rows(noun: str) -> str:
    """What to say where each row is protected because nothing else was asked for."""
    return (
        "This protects single rows. If a person may have several, name their column with "
        f"--privacy-unit: after a run for rows, the {noun} can never have a cap for persons."
    )


def check_rows(rows: int) -> None:
    """Raise `UsageError` unless a unit may have so many rows."""
    whole = isinstance(rows, Integral) and not isinstance(rows, bool)
    if not whole or not 1 <= rows <= MAX_ROWS:
        raise UsageError(f"--rows-per-unit must be a whole number from 1 to {MAX_ROWS}.")


def _same(column: str, other: str) -> bool:
    """Whether two units have the same column; "row" is none, unlike a column called Row."""
    return column == other or (EACH_ROW not in (column, other) and fold(column) == fold(other))


def same_unit(unit: PrivacyUnit, other: PrivacyUnit) -> bool:
    """Whether two units protect the same, however their column is spelt."""
    return _same(unit.column, other.column) and unit == replace(other, column=unit.column)


def protects(unit: PrivacyUnit, other: PrivacyUnit) -> bool:
    """Whether a run for one unit protects another: whatever rows of a person it uses, it protects
    the person.
    """
    return same_unit(unit if unit.is_row else replace(unit, rows=other.rows), other)


def requested_unit(
    column: str | None,
    rows: int | None,
    *,
    usual: PrivacyUnit | None,
    columns: Iterable[str],
) -> PrivacyUnit:
    """The privacy unit of a request: `column` with `rows`, else the `usual` one, else the row.

    Without `rows`, the column of the usual unit has the rows of that, and any other has one.
    `columns` are the names that `column` may have, in any case. Raises `UsageError` or
    `DpforestError`.
    """
    if rows is not None:
        check_rows(rows)
        rows = int(rows)  # of a NumPy integer
    declared = spellings(columns)
    if usual and not usual.is_row:
        usual = replace(usual, column=declared.get(fold(usual.column), usual.column))
    if usual and rows is None and column is not None and _same(column, usual.column):
        return usual
    if column is None and usual and (not usual.is_row or rows in (None, 1)):
        return usual if rows is None else replace(usual, rows=rows)
    if column is None or column == EACH_ROW:
        if rows not in (None, 1):
            raise UsageError("--rows-per-unit goes with a --privacy-unit column, not with rows.")
        return ROW
    if fold(column) not in declared:
        raise DpforestError(
            f'There is no column "{column}"{hint(column, declared.values())}, the privacy unit: '
            "correct --privacy-unit, or the domain."
        )
    if declared[fold(column)] == EACH_ROW:
        raise UsageError(
            'A column called "row" cannot be the privacy unit, because "row" means each row: '
            "rename the column."
        )
    return PrivacyUnit(declared[fold(column)], rows or 1)
