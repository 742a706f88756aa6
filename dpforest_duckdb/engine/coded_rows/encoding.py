"""The statement that encodes the rows of a table into small integers, once for a run."""

from __future__ import annotations

from dataclasses import dataclass

from dpforest_duckdb.domain.table import TableInfo
from dpforest_duckdb.engine.base import Coding
from dpforest_duckdb.engine.coded_rows.layout import Layout
from dpforest_duckdb.engine.coded_rows.leaves import label
from dpforest_duckdb.engine.connection.statements import Statements
from dpforest_duckdb.scoring.codes import unsigned
from dpforest_duckdb.sql import Column, Sql, nested, render

STEPS_BY_CASE = 3  # of a search for edges: more by a CASE take longer to plan, fewer longer to run


@dataclass(frozen=True)
class Searched:
    """A `column` whose values are searched for among its edges.

    `edges` is the column that lists the edges, and `below` the one with the number of edges below a
    value. `start` is what it is after the first steps, a multiple of `step`.
    """

    column: Sql
    edges: Sql
    below: Sql
    step: int
    start: Sql


@dataclass(frozen=True)
class Encoding:
    """What the coded rows are like: their coding and layout, and the names of what is made.

    `name` begins the names of columns that only this statement has. `node_class` is the column of
    the first tree's node_class, and `node_class_type` its type.
    """

    coding: Coding
    statements: Statements
    layout: Layout
    name: str
    node_class: Sql
    node_class_type: str

    def sql(self, codes: Sql, table: TableInfo) -> str:
        """The statement that makes the table `codes` from the rows of `table`."""
        dialect, ident = self.statements.dialect, self.statements.dialect.ident
        domain, unit = self.coding.domain, self.coding.unit
        target = ident("t", domain.target)
        labels = [ident(f"label{number}") for number in range(len(self.coding.first_phase))]
        source = self.statements.rows_of(table, [*domain.columns, *unit.columns])
        return render(
            "encode",
            codes=codes,
            words=list(map(Column, self.layout.packed(self._codes()), self.layout.words)),
            node_class=self.node_class,
            node_class_type=self.node_class_type,
            classes=len(domain.classes),
            parts=self.coding.parts,
            bootstrap=self.coding.sample == "bootstrap",
            first_phase_labels=[
                Column(label(self.layout, tree), column)
                for tree, column in zip(self.coding.first_phase, labels, strict=True)
            ],
            wrong=Sql(" + ".join(f'CAST({column} <> "class" AS INTEGER)' for column in labels)),
            misclassified_weight=self.coding.misclassified_weight,
            unit=dialect.unit("t", unit, table.columns),
            row=self.statements.row_of(table),
            source=self._searched(source),
            **{
                "class": dialect.class_code(domain.classes, domain.target_type, target),
                "class_type": unsigned(len(domain.classes) - 1),
            },
        )

    def _codes(self) -> list[Sql]:
        """The SQL of every attribute's code."""
        dialect = self.statements.dialect
        return [
            dialect.code(
                attribute,
                dialect.ident("t", attribute.column),
                self._below(number) if dialect.many_edges(attribute) else None,
            )
            for number, attribute in enumerate(self.coding.domain.attributes)
        ]

    def _searched(self, source: Sql) -> Sql:
        """The rows to encode, with the number of edges below each value that is searched for."""
        dialect = self.statements.dialect
        found = {
            number: (attribute, edges)
            for number, attribute in enumerate(self.coding.domain.attributes)
            if (edges := dialect.many_edges(attribute))
        }
        if not found:
            return source
        lists = dict.fromkeys(edges for _, edges in found.values())  # attributes may share a list
        names = {edges: dialect.ident(f"{self.name}_edges{n}") for n, edges in enumerate(lists)}
        searched = list[Searched]()
        for number, (attribute, edges) in found.items():
            column, exponents = dialect.ident(attribute.column), len(attribute.edges).bit_length()
            step = 2 ** max(exponents - STEPS_BY_CASE, 0)
            start = dialect.edges_below(attribute, column, step)
            searched.append(Searched(column, names[edges], self._below(number), step, start))
        first_step = max(one.step for one in searched)
        later_steps = [2**exponent for exponent in reversed(range(first_step.bit_length() - 1))]
        return nested(
            "search_edges",
            source=source,
            lists=[Column(edges, name) for edges, name in names.items()],
            searched=searched,
            first_step=first_step,
            layers=[(step, [one for one in searched if one.step > step]) for step in later_steps],
        )

    def _below(self, attribute: int) -> Sql:
        """The column with the number of edges below a value; no column of the user has its name."""
        return self.statements.dialect.ident(f"{self.name}_below{attribute}")
