"""The columns that a model reads, beside the columns of rows to score, which stay as they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from dpforest_duckdb.domain import Attribute
from dpforest_duckdb.domain.names import fold, free_name, spellings
from dpforest_duckdb.domain.types import ColumnType
from dpforest_duckdb.engine.columns.casts import cast
from dpforest_duckdb.engine.columns.read_types import TypesFrom, categories_of, declared_type
from dpforest_duckdb.scoring.content import ForestContent
from dpforest_duckdb.scoring.inputs import refuse_missing
from dpforest_duckdb.scoring.score_sql import Scored
from dpforest_duckdb.sql import Sql


def read_beside(
    forest: ForestContent,
    rows: Scored,
    types_from: TypesFrom,
    texts: Mapping[str, str] = MappingProxyType({}),
) -> tuple[ForestContent, Scored]:
    """A forest that reads added columns, and the rows with them, in types that the forest knows.

    `texts` are columns to read in the place of others, by the names of these. Raises
    `DpforestError` for a column that is missing.
    """
    refuse_missing(forest, rows.columns)
    found, types = spellings(rows.columns), dict(rows.columns)
    by_values = types_from is TypesFrom.VALUES
    added: dict[str, str] = {}  # the names by those of the columns that are read
    attributes, casts = list(forest.domain.attributes), ["*"]
    for number, attribute in forest.used.items():
        column = found[fold(attribute.column)]
        if column not in added:
            held = texts.get(column, column)
            stored = rows.columns[held]
            name = added[column] = free_name(f"dpforest_read_{len(added)}", found)
            types[name] = declared_type(attribute, stored)
            categories = _compared(attribute, stored) if by_values else None
            casts.append(cast(held, stored, types[name], name, categories))
        name = added[column]
        attributes[number] = (
            replace(attribute, of=name) if attribute.of else replace(attribute, name=name)
        )
    domain = replace(forest.domain, attributes=tuple(attributes))
    read = Sql(f"(SELECT {', '.join(casts)} FROM {rows.name})")
    return replace(forest, domain=domain), Scored(read, types)


def _compared(attribute: Attribute, stored: ColumnType) -> tuple[str, ...] | None:
    """The categories to compare values of a DataFrame with (see `cast`).

    Whole numbers and numbers of 64 bits are compared as they are, as those of a table.
    """
    plain = stored.family == "integer" or stored.name == "DOUBLE"
    return None if plain and attribute.kind == "numeric" else categories_of(attribute)
