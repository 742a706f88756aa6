"""The privacy unit: what ε protects."""

from __future__ import annotations

from dataclasses import dataclass


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
