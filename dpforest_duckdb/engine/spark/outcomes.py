"""How often a forest is right about a table: its own scoring SQL in Spark, counted by class."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.domain import Attribute
from dpforest_duckdb.domain.table import TableInfo
from dpforest_duckdb.engine.base import Outcomes
from dpforest_duckdb.engine.shared.comparisons import (
    compared,
    free_prefix,
    outcome_grid,
    outcome_groups,
)
from dpforest_duckdb.engine.spark.steps import Rows, Steps
from dpforest_duckdb.privacy.unit import PrivacyUnit
from dpforest_duckdb.scoring.content import ForestContent
from dpforest_duckdb.scoring.score_sql import Scored, score_sql
from dpforest_duckdb.sql import Sql, bracketed, render


class SparkOutcomes:
    """The counted outcomes of one forest on the rows of a view.

    `labels` is the table's column of classes.
    """

    def __init__(
        self, steps: Steps, view: Sql, table: TableInfo, forest: ForestContent, labels: Attribute
    ) -> None:
        self._steps, self._view = steps, view
        self._table, self._forest, self._labels = table, forest, labels

    def groups(self) -> Outcomes:
        """Rows by class, prediction and exact probability."""
        found = np.array(self._counted((), None, 0), dtype=np.float64).reshape(-1, 4)
        label, right, rows = (found[:, n].astype(np.int64) for n in (0, 1, 3))
        return outcome_groups(label, right, found[:, 2], rows)

    def grid(self, unit: PrivacyUnit, edges: Sequence[float], salt: int) -> Integers:
        """Dense `counts[label, right, bin]` between edges, with empty cells filled in."""
        found = np.array(self._counted(edges, unit, salt), dtype=np.int64).reshape(-1, 4)
        *keys, rows = found.T
        return outcome_grid(keys, rows, len(self._forest.domain.classes), edges)

    def _counted(self, edges: Sequence[float], unit: PrivacyUnit | None, salt: int) -> Rows:
        """The counts by class, prediction and probability, or its bin between `edges`."""
        dialect, table = self._steps.dialect, self._table
        prefix = free_prefix(table.columns)
        comparison = compared(self._forest, self._labels, table, unit, dialect, prefix)
        keep = [self._labels.name]
        if unit and comparison.unit:
            keep.append(unit.column)
        source = Scored(self._view, table.columns)
        scored = score_sql(self._forest, source, prefix=prefix, dialect=dialect, keep=keep)
        sql = render(
            "spark/evaluate",
            scored=bracketed(Sql(scored)),
            edges=[Sql(str(edge)) for edge in edges],
            **vars(comparison),
        )
        return self._steps.rows(sql, {"salt": salt} if comparison.unit else None, step="evaluate")
