"""The privacy unit: what ε protects."""

from __future__ import annotations

from dataclasses import dataclass

from dpforest_duckdb.errors import UsageError

MAX_ROWS = 1_000_000  # of a unit: the noise of a count grows with them


@dataclass(frozen=True)
class PrivacyUnit:
    """One row (`"row"`), or at most `rows` rows that share a value of `column`."""

    column: str
    rows: int = 1
    neighbours: str = "add-remove"

    def __str__(self) -> str:
        if self == PrivacyUnit("row"):
            return "each row"
        name = "row" if self.column == "row" else f'"{self.column}"'
        return f"each {name} (up to {self.rows} row{'s' if self.rows > 1 else ''})"


def check_rows(rows: int) -> None:
    """Raise `UsageError` unless a unit may have so many rows."""
    if type(rows) is not int or not 1 <= rows <= MAX_ROWS:
        raise UsageError(f"--rows-per-unit must be a whole number from 1 to {MAX_ROWS}.")
