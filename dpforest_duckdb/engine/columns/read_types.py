"""What the columns of files, DataFrames and queries are read as.

It comes from the domain, or from the schema of the file where it has one, never from the values:
one private row must not turn a number into text.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping
from dataclasses import replace
from enum import Enum, auto

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.names import fold, spellings
from dpforest_duckdb.domain.table import TableInfo
from dpforest_duckdb.domain.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    NO_VALUES,
    TIMESTAMP,
    VARCHAR,
    ColumnType,
)
from dpforest_duckdb.engine.columns.written_values import (
    EXACT_DOUBLE,
    is_number,
    is_plain_number,
    is_whole,
    moment_of,
    plain_text,
    shortest_number,
    written_number,
)
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.privacy.unit import PrivacyUnit

_NUMBERS = ("integer", "decimal", "float", "boolean")
FEW_NUMBERS = 32  # with fewer whole numbers between the bounds, rounding loses much of a fraction


class TypesFrom(Enum):
    """What decides about the types that columns are read as."""

    SCHEMA = auto()  # declared where the rows are, as in a Parquet file
    VALUES = auto()  # the types that are found follow from the values, as in a DataFrame
    DOMAIN = auto()  # as in a CSV file or a query


def read_as(
    table: TableInfo,
    domain: Domain,
    unit: PrivacyUnit,
    types_from: TypesFrom,
    *,
    rounded: Collection[str],
) -> TableInfo:
    """The table with the columns that a run reads, in the types that they are read as.

    `rounded` are the columns that may have rounded numbers (see `Source`). The digits of a DECIMAL
    are no declaration: pandas takes them from the values when it writes a file.

    Raises `DpforestError` for a type that is no attribute's, or no privacy unit's.
    """
    found = spellings(table.columns)
    label = domain.labels
    used = {
        name: attribute
        for attribute in (*domain.attributes, label)
        if (name := found.get(fold(attribute.column)))
    }
    columns = {
        name: _read_type(attribute, table.columns[name], types_from)
        for name, attribute in used.items()
    }
    units = frozenset(found[fold(column)] for column in unit.columns if fold(column) in found)
    for name in units:
        columns[name] = _unit_type(
            name,
            table.columns[name],
            columns.get(name),
            types_from,
            rounded=name in rounded,
        )
    name = found.get(fold(label.name), "")
    if name and _whole_classes(label, table.columns[name], types_from):
        columns[name] = BIGINT  # else the predictions of whole classes would have fractions
    if types_from is not TypesFrom.VALUES:
        return replace(table, columns=columns, units=units)
    for attribute in (*domain.attributes, label):
        _refuse_equal_categories(attribute)
    compared = {name: categories_of(attribute) for name, attribute in used.items()}
    return replace(table, columns=columns, categories=compared, units=units)


def _read_type(attribute: Attribute, stored: ColumnType, types_from: TypesFrom) -> ColumnType:
    """What an attribute, or the label, is read as."""
    if types_from is not TypesFrom.SCHEMA or stored.name == NO_VALUES:
        return _attribute_type(attribute, stored, types_from)
    if stored.family == "decimal":
        return DOUBLE if attribute.kind == "numeric" else _of_decimals(attribute, stored)
    return stored


def _unit_type(
    name: str,
    stored: ColumnType,
    read: ColumnType | None,
    types_from: TypesFrom,
    *,
    rounded: bool,
) -> ColumnType:
    """What the privacy unit is read as; `read` is what it is read as if it is an attribute too.

    Raises `DpforestError` if two units might look like one.
    """
    plain = _plain(stored)
    if rounded:
        raise DpforestError(
            f'The privacy unit "{name}" is a column of floating-point numbers, as pandas makes '
            "of whole numbers if one is missing, and they may be rounded: read the rows again with "
            'it as "Int64" or as text.'
        )
    if plain.nested:
        raise DpforestError(
            f'The privacy unit "{name}" has type {stored.base}, in which two persons may look like '
            "one: choose a column of whole numbers or of text."
        )
    by_values = types_from is TypesFrom.VALUES
    if read is not None and (by_values or not _same_values(read, plain)):
        raise DpforestError(
            f'The privacy unit "{name}" is an attribute too, and read as {read.base}, which may '
            "make one unit of several: choose another privacy unit."
        )
    return read or plain


def _same_values(read: ColumnType, stored: ColumnType) -> bool:
    """Whether different values stay different: the types are equal, or both of whole numbers and
    the one that is read holds all numbers of the other.
    """
    return read == stored or (
        read.family == stored.family == "integer" and stored.bits <= read.bits
    )


def _attribute_type(attribute: Attribute, stored: ColumnType, types_from: TypesFrom) -> ColumnType:
    """What an attribute, or the label, is read as where no schema declares it."""
    if not _plain(stored).usable:
        raise DpforestError(
            f'Column "{attribute.name}" has type {stored.base}, which cannot be an '
            "attribute: leave it out of the domain or pass --exclude."
        )
    if types_from is TypesFrom.VALUES and attribute.kind != "numeric":
        plain = all(map(is_plain_number, categories_of(attribute)))
        return declared_type(attribute, DOUBLE if plain else VARCHAR)
    return declared_type(attribute, stored)


def _of_decimals(attribute: Attribute, stored: ColumnType) -> ColumnType:
    """What an attribute or label in a DECIMAL column of a file is read as: not as text, in which
    1.5 would be 1.50 if any row had two digits.
    """
    read = declared_type(attribute, stored)
    if read == VARCHAR:
        raise DpforestError(
            f'Column "{attribute.name}" has decimal numbers, so a category that is no number never '
            "occurs: leave it out of the domain, or write the column as text."
        )
    return read


def _whole_classes(label: Attribute, stored: ColumnType, types_from: TypesFrom) -> bool:
    """Whether the classes are read as whole numbers.

    Of a DataFrame they are if all are written so: one word would make text of the column.
    """
    if types_from is TypesFrom.DOMAIN:
        return stored.family == "integer"
    decided = types_from is TypesFrom.VALUES or stored.family == "decimal"
    return decided and all(map(is_whole, label.values))


def declared_type(attribute: Attribute, stored: ColumnType) -> ColumnType:
    """The type to read a column as, by the domain; `stored` is what it is stored as.

    Bounds that are whole numbers declare whole numbers, dates declare dates, the categories "true"
    and "false" BOOLEAN. Where a column has numbers, categories are compared with them as numbers.
    Whether it has fractions or missing values makes no difference. An attribute of a model is read
    as what it was trained on.
    """
    if attribute.type.usable:
        return _trained_type(attribute, stored)
    if attribute.kind == "numeric":
        limits = [attribute.lower, attribute.upper, *attribute.edges]
        given = [limit for limit in limits if limit is not None]
        if any(isinstance(limit, dt.datetime) for limit in given):
            return TIMESTAMP
        if any(isinstance(limit, dt.date) for limit in given):
            return DATE
        whole = all(isinstance(limit, int) and abs(limit) < EXACT_DOUBLE for limit in given)
        return BIGINT if whole else DOUBLE
    values = categories_of(attribute)
    if {value.casefold() for value in values} <= {"true", "false"}:
        return BOOLEAN
    return _text_type(values, stored)


def _trained_type(attribute: Attribute, stored: ColumnType) -> ColumnType:
    """The type to read an attribute of a model as: that of the column that it was trained on.

    Or a wider one, so that no other value becomes one of its categories or moves to another bin: as
    INTEGER, 1.5 would be 2. A FLOAT stays one, because as DOUBLE 0.6 is less than it is as FLOAT.
    """
    numeric, family = attribute.kind == "numeric", attribute.family
    exact = numeric or all(map(is_plain_number, categories_of(attribute)))
    if family == "text":
        return _text_type(categories_of(attribute), stored)
    if family == "integer" and numeric and stored.family == "integer":
        return BIGINT
    if family in ("integer", "decimal") and exact:
        return DOUBLE
    if family == "integer":
        return VARCHAR  # DOUBLE holds some categories as one
    if family == "timestamp" or (family == "date" and not numeric):
        return TIMESTAMP
    return attribute.type


def _text_type(categories: Collection[str], stored: ColumnType) -> ColumnType:
    """The type to read categories of text as; `stored` is what the column is stored as."""
    numbers = stored.family in _NUMBERS and all(map(is_number, categories))
    return DOUBLE if numbers else VARCHAR


def whole_number_remarks(domain: Domain, columns: Mapping[str, ColumnType]) -> list[str]:
    """A sentence on attributes of few values that are read as whole numbers, because of their
    bounds alone: 0 and 1 may stand for a share as well.
    """
    few = [
        attribute.column
        for attribute in domain.attributes
        if isinstance(attribute.lower, int)
        and isinstance(attribute.upper, int)
        and columns.get(attribute.column) == BIGINT
        and attribute.upper - attribute.lower < FEW_NUMBERS
    ]
    if not few:
        return []
    names = ", ".join(f'"{name}"' for name in few)
    return [
        f"Whole numbers are read from {names}, because the bounds have no decimal point; fractions "
        "are rounded up. If there are fractions, write 0.0 in place of 0."
    ]


def categories_of(attribute: Attribute) -> tuple[str, ...]:
    """The categories of an attribute; none if it is numeric."""
    if attribute.kind == "numeric":
        return ()
    cells = map(attribute.categories, range(attribute.proper))
    return tuple(value for cell in cells for value in cell)


def _refuse_equal_categories(attribute: Attribute) -> None:
    """Raise `DpforestError` if the other values of a DataFrame's column may decide which of two
    categories a value is, or whether it is missing.

    One missing value makes 1.0 of 1, and one number of two whole numbers beyond 2^53, in all rows.
    """
    categories = categories_of(attribute)
    plain = [plain_text(each) for each in categories]
    if None in plain:
        raise DpforestError(
            f'A category of "{attribute.name}" is written as missing values of a DataFrame are, '
            "such as nan or NaT: leave it out and declare the column nullable."
        )
    numbers = [shortest_number(each) for each in categories if written_number(each) is not None]
    moments = [moment for each in categories if (moment := moment_of(each))]
    if any(len(set(each)) < len(each) for each in (plain, numbers, moments)):
        raise DpforestError(
            f'Two categories of "{attribute.name}" may be one value in a DataFrame, as 1 and 1.0 '
            "are, or whole numbers of more than 15 digits: leave one out, or write the rows to a "
            "table or a Parquet file."
        )


def _plain(stored: ColumnType) -> ColumnType:
    """A type without a list of values, which comes from the data; text if there are none."""
    return VARCHAR if stored.base in ("ENUM", NO_VALUES) else stored
