"""How often a forest is right about a DuckDB table: its own scoring SQL, counted by class."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import duckdb
import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.domain import Attribute
from dpforest_duckdb.domain.names import fold
from dpforest_duckdb.domain.table import TableInfo
from dpforest_duckdb.engine.base import Outcomes
from dpforest_duckdb.engine.statements import Statements
from dpforest_duckdb.privacy.unit import PrivacyUnit
from dpforest_duckdb.scoring.codes import Codes
from dpforest_duckdb.scoring.content import ForestContent
from dpforest_duckdb.scoring.score_sql import Scored, score_sql, share_names
from dpforest_duckdb.sql import Sql, render


class DuckDBOutcomes:
    """The counted outcomes of one forest on one table.

    `labels` is the table's column of classes. `cursor` is the connection that reads the rows.
    """

    def __init__(
        self,
        statements: Statements,
        cursor: duckdb.DuckDBPyConnection,
        table: TableInfo,
        forest: ForestContent,
        labels: Attribute,
    ) -> None:
        self._statements, self._cursor = statements, cursor
        self._table, self._forest, self._labels = table, forest, labels

    def groups(self) -> Outcomes:
        """Rows by class, prediction and exact probability."""
        found = self._counted((), None)
        label, right, rows = (
            np.asarray(found[key], np.int64) for key in ("class", "right", "rows")
        )
        return Outcomes(label, right, np.asarray(found["value"], np.float64), rows)

    def grid(self, unit: PrivacyUnit, edges: Sequence[float], salt: int) -> Integers:
        """Dense `counts[label, right, bin]` between edges, with empty cells filled in."""
        classes = len(self._forest.domain.classes)
        found = self._counted(edges, unit, {"salt": salt})
        grid = np.zeros((2 if classes == 2 else 1, 2, len(edges) + 1), dtype=np.int64)
        keys = tuple(np.asarray(found[key], np.int64) for key in ("class", "right", "bin"))
        grid[keys] = found["rows"]
        return grid

    def _counted(
        self,
        edges: Sequence[float],
        unit: PrivacyUnit | None,
        salt: Mapping[str, int] | None = None,
    ) -> Any:
        """The counts by class, prediction and probability, or its bin between `edges`."""
        dialect, table = self._statements.dialect, self._table
        prefix = free_prefix(table.columns)
        asked = compared(self._forest, self._labels, table, unit, dialect, prefix)
        read = [*self._forest.domain.columns, self._labels.name]
        if unit and asked["unit"]:
            read.append(unit.column)
        source = Scored(self._statements.rows_of(table, self._spelt(read)), table.columns)
        scored = score_sql(self._forest, source, prefix=prefix, fast=True)
        sql = render(
            "evaluate",
            scored=Sql(scored.rstrip()),
            edges=[Sql(str(edge)) for edge in edges],
            **asked,
        )
        needed = salt if asked["unit"] else None  # DuckDB refuses a parameter that is not used
        run = self._statements.run
        return run(sql, needed, step="evaluate", fetch="fetchnumpy", on=self._cursor)

    def _spelt(self, columns: list[str]) -> list[str]:
        """Columns as the table spells them."""
        wanted = {fold(name) for name in columns}
        return [name for name in self._table.columns if fold(name) in wanted]


def compared(
    forest: ForestContent,
    labels: Attribute,
    table: TableInfo,
    unit: PrivacyUnit | None,
    dialect: Codes,
    prefix: str,
) -> dict[str, Any]:
    """What the templates `evaluate` compare in the scored rows `s`, in an engine's SQL.

    `class` and `predicted` are the numbers of a row's class and of its prediction, `value` is a
    probability: with two classes (`binary`) that of the second, else that of the row's own class.
    `unit` is None if it is the row.
    """
    classes, by_column = forest.domain.classes, None
    if unit and not unit.is_row:
        name = dialect.ident("s", unit.column)
        canonical = dialect.canonical_unit(name, table.columns[unit.column])
        by_column = SimpleNamespace(canonical=canonical, rows=unit.rows)
    shares = [dialect.ident("s", name) for name in share_names(forest, prefix)]
    label = dialect.class_code(labels.values, labels.type, dialect.ident("s", labels.name))
    arms = " ".join(f"WHEN {number} THEN {share}" for number, share in enumerate(shares))
    predicted = dialect.ident("s", f"{prefix}prediction")
    binary = len(classes) == 2
    return {
        "class": label,
        "predicted": dialect.class_code(classes, forest.domain.target_type, predicted),
        "binary": binary,
        "value": shares[1] if binary else Sql(f"CASE {label} {arms} END"),
        "unit": by_column,
    }


def free_prefix(columns: Iterable[str]) -> str:
    """A prefix that no column of the table begins with."""
    prefix = "dpforest_"
    while any(fold(name).startswith(prefix) for name in columns):
        prefix += "_"
    return prefix
