"""The layers of a scoring statement: each a CTE that adds helper columns to the rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from dpforest_duckdb.domain.names import fold
from dpforest_duckdb.scoring.dialects import Dialect
from dpforest_duckdb.sql import Sql
from dpforest_duckdb.tree import Voting

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


class FreeNames:
    """Names of our own, quoted, that no name in the statement starts with."""

    def __init__(self, dialect: Dialect, table: Sql, columns: Iterable[str]) -> None:
        """`columns` are all that the statement may name, and `table` is what it reads."""
        self._dialect, self._table = dialect, fold(table)
        self._columns = {column.casefold() for column in columns}

    def __call__(self, name: str) -> Sql:
        """`dpforest_` and the name, with underscores until it is free."""
        name = f"dpforest_{name}"
        while name in self._table or any(column.startswith(name) for column in self._columns):
            name += "_"
        return self._dialect.ident(name)


@dataclass(frozen=True)
class Kept:
    """What each layer keeps of the table: the columns of these names, or all if they are None."""

    dialect: Dialect
    names: Sequence[str] | None

    def columns(self, dropped: Sequence[Helper] = ()) -> list[Sql]:
        """The columns to keep of a row `t` that has the helpers `dropped` too."""
        if self.names is not None:
            return [Sql(f"t.{self.dialect.ident(name)}") for name in self.names]
        left_out = ", ".join(helper.column for helper in dropped)
        return [Sql(f"t.* EXCLUDE ({left_out})" if dropped else "t.*")]

    def columns_and(self, helpers: Sequence[Helper]) -> list[Sql]:
        """The columns to keep of a row `t`, with its helpers."""
        if self.names is None:
            return self.columns()
        return [*self.columns(), *(Sql(f"t.{helper.column}") for helper in helpers)]

    def linked(self, layers: Sequence[Layer]) -> list[Layer]:
        """The layers with what each keeps of the one before; the last keeps no helper of `*`."""
        *before, last = layers
        columns = self.columns()
        if self.names is None:
            added = [helper for layer in before for helper in layer.helpers]
            return [
                *(replace(layer, kept=columns) for layer in before),
                replace(last, kept=self.columns(added)),
            ]
        known = {fold(column) for column in columns}
        return [
            replace(layer, kept=[*columns, *(c for c in layer.kept if fold(c) not in known)])
            for layer in layers
        ]


def combined(dialect: Dialect, terms: Sequence[Sql], voting: Voting) -> Sql:
    """The sum of trees, or the largest of them, as a balanced expression."""
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    left = combined(dialect, terms[:half], voting)
    right = combined(dialect, terms[half:], voting)
    if voting == Voting.SUREST:
        return dialect.greatest(left, f"\n    {right}")
    return Sql(f"({left}\n    + {right})")
