"""How often a forest is right about a DuckDB table: its own scoring SQL, counted by class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.domain import Attribute
from dpforest_duckdb.domain.names import fold
from dpforest_duckdb.domain.table import TableInfo
from dpforest_duckdb.engine.base import Outcomes
from dpforest_duckdb.engine.connection.statements import Statements
from dpforest_duckdb.engine.shared.comparisons import (
    compared,
    free_prefix,
    outcome_grid,
    outcome_groups,
)
from dpforest_duckdb.privacy.unit import PrivacyUnit
from dpforest_duckdb.scoring.content import ForestContent
from dpforest_duckdb.scoring.score_sql import Scored, score_sql
from dpforest_duckdb.sql import Sql, bracketed, render


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
        return outcome_groups(label, right, np.asarray(found["value"], np.float64), rows)

    def grid(self, unit: PrivacyUnit, edges: Sequence[float], salt: int) -> Integers:
        """Dense `counts[label, right, bin]` between edges, with empty cells filled in."""
        found = self._counted(edges, unit, {"salt": salt})
        keys = [found[key] for key in ("class", "right", "bin")]
        return outcome_grid(keys, found["rows"], len(self._forest.domain.classes), edges)

    def _counted(
        self,
        edges: Sequence[float],
        unit: PrivacyUnit | None,
        salt: Mapping[str, int] | None = None,
    ) -> dict[str, Any]:
        """The counts by class, prediction and probability, or its bin between `edges`."""
        dialect, table = self._statements.dialect, self._table
        prefix = free_prefix(table.columns)
        comparison = compared(self._forest, self._labels, table, unit, dialect, prefix)
        read = [*self._forest.read_columns, self._labels.name]
        if unit and comparison.unit:
            read.append(unit.column)
        source = Scored(self._statements.rows_of(table, self._spelt(read)), table.columns)
        scored = score_sql(self._forest, source, prefix=prefix, fast=True)
        sql = render(
            "evaluate",
            scored=bracketed(Sql(scored)),
            edges=[Sql(str(edge)) for edge in edges],
            **vars(comparison),
        )
        needed = salt if comparison.unit else None  # DuckDB refuses a parameter that is not used
        return self._statements.arrays(sql, needed, step="evaluate", on=self._cursor)

    def _spelt(self, columns: list[str]) -> list[str]:
        """Columns as the table spells them."""
        wanted = {fold(name) for name in columns}
        return [name for name in self._table.columns if fold(name) in wanted]
