"""What a forest reads of a table: its attributes, fitted to the table's columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from dpforest_duckdb.domain import Attribute
from dpforest_duckdb.domain.names import fold, listed, spellings
from dpforest_duckdb.domain.types import ANY_TEXT, ColumnType
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.scoring.content import ForestContent
from dpforest_duckdb.scoring.dialects import Dialect
from dpforest_duckdb.sql import Sql


@dataclass(frozen=True)
class Inputs:
    """The attributes that trees split by, each by its number in the domain.

    `attributes` fit the types of the table, `names` are the columns as it spells them, and
    `columns` the same columns of a row `t`.
    """

    attributes: Mapping[int, Attribute]
    names: Mapping[int, str]
    columns: Mapping[int, Sql]

    @staticmethod
    def of(forest: ForestContent, types: Mapping[str, ColumnType], dialect: Dialect) -> Inputs:
        """The inputs in a table of these columns, whose types are empty if they are unknown.

        Raises `DpforestError` for a column that is missing or has an unsuitable type.
        """
        if types:
            refuse_missing(forest, types)
        spelt = spellings(types)
        names = {number: spelt.get(fold(a.column), a.column) for number, a in forest.used.items()}
        return Inputs(
            {number: fitted(a, types.get(names[number])) for number, a in forest.used.items()},
            names,
            {number: Sql(f"t.{dialect.ident(name)}") for number, name in names.items()},
        )


def fitted(attribute: Attribute, column: ColumnType | None) -> Attribute:
    """An attribute for a column of that type, with the same cells; None if the type is unknown.

    Raises `DpforestError` if the type is unsuitable.
    """
    if column is not None:
        return attribute.rebound(column)
    return replace(attribute, type=ANY_TEXT) if attribute.family == "text" else attribute


def refuse_missing(forest: ForestContent, columns: Iterable[str], place: str = "the rows") -> None:
    """Raise `DpforestError` if `columns`, those of a `place`, lack some that a forest reads."""
    known = spellings(columns)
    missing = [name for name in dict.fromkeys(forest.read_columns) if fold(name) not in known]
    if missing:
        are, them = ("are no columns", "them") if len(missing) > 1 else ("is no column", "it")
        raise DpforestError(
            f"There {are} {listed(missing)}, which the model reads: add {them} to {place}."
        )
