"""The layers of a scoring statement: each a CTE that adds helper columns to the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpforest_duckdb.sql import Sql

Terms = list[list[Sql]]  # [class][tree] votes, in terms of a row `t` with all helpers


@dataclass(frozen=True)
class Helper:
    """A column for scoring: a note on its contents, its expression, its name."""

    note: str
    value: Sql
    column: Sql


@dataclass(frozen=True)
class ConstantTable:
    """A CTE of constants: its name and its SELECT."""

    cte: Sql
    select: Sql


@dataclass(frozen=True)
class Layer:
    """One CTE: its name, the helpers that it adds, and the columns that it keeps of the layer
    before. The last of the `tables` has one row, `s`, whose columns the helpers can use too.
    """

    cte: Sql
    helpers: Sequence[Helper]
    kept: Sequence[Sql] = ()
    tables: Sequence[ConstantTable] = ()
