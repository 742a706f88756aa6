"""Domains for trees of many splits, and the leaves that columns of SQL find in them."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import numpy as np

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.engine.coded_rows.layout import Layout
from dpforest_duckdb.sql import Column, Sql


def domain(cells: int, attributes: int, *, ordered: Sequence[bool] = (True,)) -> Domain:
    """Attributes of so many cells, with that for other values.

    `ordered` says which have values in order, and is repeated.
    """
    values = tuple(str(value) for value in range(cells - 1))
    return Domain(
        tuple(
            Attribute(
                f"a{number}",
                "categorical",
                values,
                nullable=False,
                ordered=ordered[number % len(ordered)],
            )
            for number in range(attributes)
        ),
        "y",
        ("no", "yes"),
    )


def leaves_by_sql(
    layers: Sequence[Sequence[Column]], node: Sql, layout: Layout, codes: np.ndarray
) -> list[int]:
    """The node of each row, whose codes are in packed columns as in the table of coded rows."""
    con = duckdb.connect()
    names = [f"a{number}" for number in range(codes.shape[1])]
    rows = ", ".join(str((number, *row)) for number, row in enumerate(codes.tolist()))
    packed = map(Column, layout.packed(names), layout.words)
    cells = [Column(layout.code_of(n), name) for n, name in enumerate(layout.separate)]
    query = f"SELECT * FROM (VALUES {rows}) AS rows(number, {', '.join(names)})"
    for layer in (packed, cells, *layers):
        columns = ", ".join(f"{column.value} AS {column.name}" for column in layer)
        query = f"SELECT *, {columns} FROM ({query})"
    found = con.execute(f"SELECT {node} FROM ({query}) ORDER BY number").fetchall()
    return [number for (number,) in found]
