"""The SQL that reads a column of a file, DataFrame or query in another type; NULL if it cannot."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from dpforest_duckdb.domain.types import BIGINT, DOUBLE, VARCHAR, ColumnType, column_type
from dpforest_duckdb.engine.read_types import (
    EXACT_DOUBLE,
    EXACT_FLOAT,
    moment_of,
    number_of,
    written_number,
)
from dpforest_duckdb.scoring.codes import DuckDBDialect
from dpforest_duckdb.sql import Sql


def selected(
    stored: Mapping[str, str],
    columns: Mapping[str, ColumnType],
    categories: Mapping[str, tuple[str, ...]] | None = None,
) -> Sql:
    """The columns to read, each in its type; `stored` are the types that they are stored in.

    `categories` are those of the columns of a DataFrame (see `TableInfo`).
    """
    given = categories or {}
    return Sql(
        ", ".join(
            cast(name, column_type(stored[name]), kind, name, given.get(name))
            for name, kind in columns.items()
        )
    )


def cast(
    name: str,
    stored: ColumnType,
    kind: ColumnType,
    alias: str,
    categories: tuple[str, ...] | None = None,
) -> Sql:
    """A column in another type and under another name."""
    ident = DuckDBDialect().ident
    column = ident(name)
    if categories is None:
        read = _cast(column, stored, kind)
    elif categories:
        if stored.family == "float":  # 32-bit numbers have fewer digits as text
            column = Sql(f"CAST({column} AS DOUBLE)")
        text = f"CAST({column} AS VARCHAR)"  # of BIGINT classes no fraction may be rounded
        plain = _plain_text(text) if stored.family in ("text", "other") else text
        of_number = f"CASE WHEN {column} IS NOT NULL THEN 'nan' END"  # no category, but a value
        other = {BIGINT: "NULL", DOUBLE: of_number}.get(kind, text)
        read = Sql(f"TRY_CAST({_compared(plain, categories, other)} AS {kind})")
    else:
        read = _measured(column, stored, kind)
    return Sql(f"{read} AS {ident(alias)}")


def _measured(column: Sql, stored: ColumnType, kind: ColumnType) -> Sql:
    """A number, date or time of a DataFrame.

    One word makes text of a column, so types that text could give another value are read by their
    text too. DuckDB rounds nanoseconds, but leaves them out of text.
    """
    if kind in (BIGINT, DOUBLE):
        return _cast(_shortest(column, stored), DOUBLE, kind)
    if stored == kind:
        return column
    return _cast(Sql(f"CAST({column} AS VARCHAR)"), VARCHAR, kind)


def _shortest(column: Sql, stored: ColumnType) -> Sql:
    """A value as a DOUBLE; a number that 32 bits hold, as the shortest number that they hold so.

    In a column of 32-bit numbers 0.1 is 0.10000000149011612. It stays so if one value makes 64-bit
    numbers of the column. It is 0.1 again if one word makes text of it. So it is 0.1 in all cases.
    """
    schema, number, faster = "system.main", f"CAST({column} AS DOUBLE)", ""
    if stored.family in ("float", "integer") and stored.bits <= 65:
        whole = f"{schema}.abs({number}) <= {EXACT_FLOAT} AND {number} = {schema}.trunc({number})"
        faster = f"WHEN {whole} THEN {number} "
    else:
        number = _number(_plain_text(f"CAST({column} AS VARCHAR)"))
    narrow = f"TRY_CAST({number} AS FLOAT)"
    return Sql(
        f"CASE {faster}WHEN CAST({narrow} AS DOUBLE) = {number} "
        f"THEN CAST(CAST({narrow} AS VARCHAR) AS DOUBLE) ELSE {number} END"
    )


def _cast(column: Sql, stored: ColumnType, kind: ColumnType) -> Sql:
    """A column in another type, NULL where that is impossible.

    Where the domain has whole numbers, fractions are rounded up: this keeps them on the same side
    of every whole edge. Functions are named in full, because the user's macros can be seen where a
    query is read.
    """
    if stored == kind:
        return column
    if kind != BIGINT or (stored.family == "integer" and stored.bits <= 64):
        return Sql(f"TRY_CAST({column} AS {kind})")
    number = f"TRY_CAST({column} AS DOUBLE)"
    schema = "system.main"
    rounded = f"{schema}.ceil({number})"
    limited = f"{schema}.greatest({schema}.least({rounded}, {EXACT_DOUBLE}), -{EXACT_DOUBLE})"
    return Sql(f"CASE WHEN NOT {schema}.isnan({number}) THEN CAST({limited} AS BIGINT) END")


def _plain_text(text: str) -> str:
    """A text, without what Python writes around numbers and texts of some types.

    One complex number makes complex numbers of all numbers in an array, and one text of bytes makes
    bytes: '(1+0j)' or "b'1'" of 1. None of the functions fails for any text.
    """
    schema = "system.main"
    real = f"{schema}.regexp_extract({text}, '^\\((.*)[+-]0j\\)$', 1)"
    inner = f"{schema}.substr({text}, 3, {schema}.length({text}) - 3)"
    return (
        f"CASE WHEN {schema}.ends_with({text}, '0j)') THEN {real} WHEN {text} = '0j' THEN '0' "
        f"WHEN {schema}.left({text}, 2) IN ('b''', 'b\"') THEN {inner} ELSE {text} END"
    )


def _compared(text: str, categories: Sequence[str], other: str) -> Sql:
    """The category that the text of a value of a DataFrame is, or `other`.

    Another value may have made 1.0 of 1, "True" of true, or a timestamp of a date, in all rows. So
    a value is a category if it has the same text, is the same number, or the same moment. Of equal
    numbers, the category that is written as numbers are comes first, then the shortest.
    """
    dialect = DuckDBDialect()
    texts = ", ".join(map(dialect.text, categories))
    ordered = sorted(categories, key=lambda each: (written_number(each) is None, len(each)))
    found = []
    number, moment = _number(text), _moment(text)
    for of, key_of in ((number, _number_of), (number, _narrow_number_of), (moment, _moment_of)):
        keyed: dict[str, str] = {}
        for category in ordered:
            if key := key_of(category):
                keyed.setdefault(key, category)
        if keyed:
            keys, values = ", ".join(keyed), ", ".join(map(dialect.text, keyed.values()))
            place = f"system.main.list_position([{keys}], {of})"
            found.append(f"WHEN {place} > 0 THEN [{values}][{place}]")
    return Sql(f"CASE WHEN {text} IN ({texts}) THEN {text} {' '.join(found)} ELSE {other} END")


def _number(text: str) -> str:
    """The number that a text is, truth values too; NULL if it is none."""
    truth = f"system.main.lower({text}) WHEN 'true' THEN '1' WHEN 'false' THEN '0'"
    return f"TRY_CAST(CASE {truth} ELSE {text} END AS DOUBLE)"


def _moment(text: str) -> str:
    return f"TRY_CAST({text} AS TIMESTAMP)"


def _number_of(category: str) -> str | None:
    """A category as a number in SQL; None if it is none."""
    number = number_of(category)
    return None if number is None else f"{number + 0.0!r}::DOUBLE"


def _narrow_number_of(category: str) -> str | None:
    """The number that a column of 32-bit numbers has in the place of a category; None if it has the
    category itself. It stays as it is if one value makes 64-bit numbers or objects of the column.
    """
    number = number_of(category)
    if number is None:
        return None
    with np.errstate(over="ignore"):
        narrow = float(np.float32(number))
    return f"{narrow!r}::DOUBLE" if math.isfinite(narrow) and narrow != number else None


def _moment_of(category: str) -> str | None:
    """A category as a moment in SQL; None if it is none."""
    moment = moment_of(category)
    return f"TIMESTAMP '{moment.isoformat(sep=' ')}'" if moment else None
