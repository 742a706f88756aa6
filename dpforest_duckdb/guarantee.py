"""The guarantee that a forest states, and the name of its privacy unit if that is each row."""

from __future__ import annotations

from dataclasses import dataclass

from dpforest_duckdb.errors import number_of

EACH_ROW = "row"  # a privacy unit that is no column: each row is one


@dataclass(frozen=True)
class Guarantee:
    """What a forest promises about its training rows, as text for people.

    `epsilon` and `delta` are exact decimals. They hold for each value of the column `unit`, or for
    each row if that is "row"; at most `rows_per_unit` rows of each are used. `neighbours` says how
    the tables differ that the promise compares: by one unit that is added or removed. `noise` names
    the sampler. `plan` has a line for each query. If `private` is false, nothing is promised, and
    `reasons` say why.
    """

    epsilon: str
    delta: str = "0"
    private: bool = True
    reasons: tuple[str, ...] = ()
    unit: str = EACH_ROW
    rows_per_unit: int = 1
    neighbours: str = "add-remove"
    noise: str = "opendp"
    plan: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.private:
            return "NOT PRIVATE: " + " ".join(self.reasons)
        rows = number_of(self.rows_per_unit, "row")
        unit = "row" if self.unit == EACH_ROW else f'"{self.unit}" (at most {rows} used)'
        return f"ε = {self.epsilon}, δ = {self.delta}, per {unit}, {self.neighbours} neighbours"
