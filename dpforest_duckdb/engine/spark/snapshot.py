"""The private rows of a table that Spark reads, at one moment.

Spark has no transaction over several queries, so a run reads the table once. If it codes the rows
more than once, or limits the rows of each unit, it stores a copy of them, until they are coded for
the last time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.domain import Attribute
from dpforest_duckdb.domain.names import free_name, spellings
from dpforest_duckdb.domain.table import TableInfo
from dpforest_duckdb.engine.base import Coding, Outcomes
from dpforest_duckdb.engine.spark.outcomes import SparkOutcomes
from dpforest_duckdb.engine.spark.rows import SourceView, SparkRows
from dpforest_duckdb.engine.spark.steps import Frame, PrivateViews, Steps
from dpforest_duckdb.errors import DebitStaysError
from dpforest_duckdb.ledger.note import same_budget
from dpforest_duckdb.privacy.unit import PrivacyUnit
from dpforest_duckdb.scoring.content import ForestContent
from dpforest_duckdb.sql import Sql, render

_UNHASHED = ("map<", "variant", "void", "geometry", "geography")  # Spark hashes no such value


class SparkSnapshot:
    """The rows of one table.

    `opened` gives a new DataFrame of all its columns, and `seen` what has its name now.
    """

    def __init__(
        self,
        steps: Steps,
        views: PrivateViews,
        table: TableInfo,
        opened: Callable[[], Frame],
        seen: Callable[[], TableInfo | None],
    ) -> None:
        self._steps, self._views, self._table, self._opened = steps, views, table, opened
        self._seen = seen
        self._first: TableInfo | None = None
        self._source: SourceView | None = None

    def encode(self, coding: Coding, *, likely_rows: int = 0, last: bool = False) -> SparkRows:
        source = self._read(copied=not last or not coding.unit.is_row)
        coded = SparkRows(self._steps, self._views, coding.domain, coding.node_columns)
        coded.encode(source, self._table, coding)
        self._refuse_other()
        if last:
            self._views.drop(source.view)
            self._source = None
        return coded

    def table_seen(self) -> TableInfo | None:
        """What has the name of the table now; Spark has no transaction that would keep it."""
        self._first = self._seen()
        return self._first

    def _refuse_other(self) -> None:
        """Raise `DebitStaysError` if another table has the name now than when `table_seen` looked.

        The rows were read between the two, so they are those of the first.
        """
        if self._first is not None and not same_budget(self._first, self._seen()):
            raise DebitStaysError(
                f'Table "{self._table.display}" was replaced or changed after the debit: run again '
                "(the debit stays)."
            )

    def _read(self, *, copied: bool) -> SourceView:
        """The rows of this snapshot, read by the first call."""
        if self._source is None:
            ident, frame = self._steps.dialect.ident, self._steps.call(self._opened)
            view = self._views.view(frame)
            row_hash = free_name("dpforest_row", spellings(self._table.columns))
            hashed = [f.name for f in self._steps.call(lambda: frame.schema.fields) if hashable(f)]
            sql = render(
                "spark/read",
                source=view,
                columns=[ident(name) for name in self._table.columns],
                hashed=Sql(", ".join(map(ident, hashed))),
                row_hash=ident(row_hash),
            )
            read = self._steps.frame(sql, step="read")
            view = (
                self._views.stored(read, "read", view) if copied else self._views.view(read, view)
            )
            self._source = SourceView(view, ident(row_hash))
        return self._source

    def count_outcomes(self, forest: ForestContent, labels: Attribute) -> Outcomes:
        return self._outcomes(forest, labels).groups()

    def count_outcome_grid(
        self,
        forest: ForestContent,
        labels: Attribute,
        unit: PrivacyUnit,
        edges: Sequence[float],
        salt: int,
    ) -> Integers:
        return self._outcomes(forest, labels).grid(unit, edges, salt)

    def _outcomes(self, forest: ForestContent, labels: Attribute) -> SparkOutcomes:
        view = self._read(copied=True).view
        self._refuse_other()
        return SparkOutcomes(self._steps, view, self._table, forest, labels)


def hashable(field: Any) -> bool:
    """Whether Spark can hash and compare the values of a column."""
    return not any(kind in field.dataType.simpleString() for kind in _UNHASHED)
