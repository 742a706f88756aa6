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


@dataclass(frozen=True)
class Searched:
    """A `column` whose values are searched for among its edges.

    `constants` are the edges, `edges` names the column that holds them, and `below` the column with
    the number of edges below a value.
    """

    column: Sql
    below: Sql
    edges: Sql
    constants: Sql


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
        dialect, attributes = self.statements.dialect, self.coding.domain.attributes
        lists = {
            number: edges
            for number, attribute in enumerate(attributes)
            if (edges := dialect.many_edges(attribute))
        }
        if not lists:
            return source
        longest = max(len(attributes[number].edges) for number in lists)
        first_step, *steps = (2**exponent for exponent in reversed(range(longest.bit_length())))
        return nested(
            "search_edges",
            source=source,
            searched=[
                Searched(
                    column=dialect.ident(attributes[number].column),
                    below=self._below(number),
                    edges=dialect.ident(f"{self.name}_edges{number}"),
                    constants=edges,
                )
                for number, edges in lists.items()
            ],
            first_step=first_step,
            steps=steps,
        )

    def _below(self, attribute: int) -> Sql:
        """The column with the number of edges below a value; no column of the user has its name."""
        return self.statements.dialect.ident(f"{self.name}_below{attribute}")
