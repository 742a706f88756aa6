"""The SQL that reads a column of a file, DataFrame or query in another type; NULL if it cannot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dpforest_duckdb.domain.types import (
    BIGINT,
    DOUBLE,
    VARCHAR,
    ColumnType,
    column_type,
)
from dpforest_duckdb.engine.columns.written_values import (
    EXACT_DOUBLE,
    EXACT_FLOAT,
    LEAST_FLOAT,
    MISSING,
    WRAPPED,
    moment_of,
    plain_text,
    shortest_number,
    written_number,
)
from dpforest_duckdb.scoring.dialects.duckdb import DUCKDB
from dpforest_duckdb.sql import Sql

_TEXTS = ("text", "other")  # families of types whose values are read by their text


def selected(
    stored: Mapping[str, str],
    columns: Mapping[str, ColumnType],
    categories: Mapping[str, tuple[str, ...]] | None = None,
) -> list[Sql]:
    """The columns to read, each in its type; `stored` are the types that they are stored in.

    `categories` are those of the columns of a DataFrame (see `TableInfo`).
    """
    given = categories or {}
    return [
        cast(name, column_type(stored[name]), kind, name, given.get(name))
        for name, kind in columns.items()
    ]


def cast(
    name: str,
    stored: ColumnType,
    kind: ColumnType,
    alias: str,
    categories: tuple[str, ...] | None = None,
) -> Sql:
    """A column in another type and under another name; for `categories` see `TableInfo`."""
    ident = DUCKDB.ident
    column = ident(name) if stored == kind else _convertible(ident(name), stored)
    if categories is None:
        read = _cast(column, stored, kind)
    elif categories:
        category = _category(name, column, stored, kind, categories)
        read = Sql(f"TRY_CAST({category} AS {kind})")
    else:
        read = _measured(column, stored, kind)
    return Sql(f"{read} AS {ident(alias)}")


def _convertible(column: Sql, stored: ColumnType) -> Sql:
    """A column of which DuckDB can convert every value.

    The least number of 128 bits has more digits than a DECIMAL, but files and Arrow tables can hold
    it. Neither TRY nor TRY_CAST helps: its conversion ends the run.
    """
    if stored.family != "decimal":
        return column
    digits = "9" * (stored.digits - stored.scale) + "." + "9" * stored.scale
    least = f"CAST('-{digits}' AS {stored})"
    return Sql(f"CASE WHEN {column} < {least} THEN {least} ELSE {column} END")


def _measured(column: Sql, stored: ColumnType, kind: ColumnType) -> Sql:
    """A number, date or time of a DataFrame.

    One word makes text of a column, so types that text could give another value are read by their
    text too. DuckDB rounds nanoseconds, but leaves them out of text.
    """
    if kind.family in ("integer", "float"):
        return _cast(shortest(column, stored), DOUBLE, kind)
    if stored == kind:
        return column
    return _cast(Sql(_text(column, stored)), VARCHAR, kind)


def shortest(column: Sql, stored: ColumnType) -> Sql:
    """A value as a DOUBLE; a number that 32 bits hold, as the shortest number that they hold so.

    In a column of 32-bit numbers 0.1 is 0.10000000149011612. It stays so if one value makes 64-bit
    numbers of the column. It is 0.1 again if one word makes text of it. So it is 0.1 in all cases.
    Numbers below LEAST_FLOAT, which have fewer digits in 32 bits, are 0. The same is done by
    `written_values.shortest_number`. DuckDB itself writes more digits in some cases.
    """
    if stored.family in ("float", "integer") and stored.bits <= 65:
        return _shortened(f"CAST({column} AS DOUBLE)")
    return _shortened(_number(_text(column, stored)))


def _shortened(number: str) -> Sql:
    """A DOUBLE, as `shortest` has it."""
    schema = "system.main"
    whole = f"{schema}.abs(x) <= {EXACT_FLOAT} AND x = {schema}.trunc(x)"
    written = [f"{schema}.printf('%.{digits}g', x)" for digits in (6, 7, 8, 9)]
    kept = " ".join(
        f"WHEN CAST({text} AS FLOAT) = CAST(x AS FLOAT) THEN {text}" for text in written
    )
    return _bound(
        number,
        "x",
        f"CASE WHEN {schema}.abs(x) < {LEAST_FLOAT} THEN 0.0 WHEN {whole} THEN x "
        "WHEN CAST(TRY_CAST(x AS FLOAT) AS DOUBLE) = x "
        f"THEN CAST(CASE {kept} END AS DOUBLE) ELSE x END",
    )


def _bound(value: str, name: str, result: str) -> Sql:
    """A result that uses a value several times, by a name, so that DuckDB plans the value once.

    It hides a column of that name in the result.
    """
    return Sql(f"system.main.list_transform([{value}], lambda {name}: {result})[1]")


def _cast(column: Sql, stored: ColumnType, kind: ColumnType) -> Sql:
    """A column in another type, NULL where that is impossible.

    Where the domain has whole numbers, fractions are rounded up: this keeps them on the same side
    of every whole edge. Functions are named in full, because the user's macros can be seen where a
    query is read.
    """
    if stored == kind:
        return column
    if kind.name == "FLOAT":  # as text, a number beyond FLOAT is infinite
        return Sql(f"TRY_CAST(CAST({column} AS VARCHAR) AS FLOAT)")
    if kind != BIGINT or (stored.family == "integer" and stored.bits <= 64):
        return Sql(f"TRY_CAST({column} AS {kind})")
    number = f"TRY_CAST({column} AS DOUBLE)"
    schema = "system.main"
    rounded = f"{schema}.ceil({number})"
    limited = f"{schema}.greatest({schema}.least({rounded}, {EXACT_DOUBLE}), -{EXACT_DOUBLE})"
    return Sql(f"CASE WHEN NOT {schema}.isnan({number}) THEN CAST({limited} AS BIGINT) END")


def plain_text_sql(text: str) -> str:
    """A text, without what Python writes around numbers and texts of some types; NULL for what it
    writes for missing ones. `written_values.plain_text` does the same.

    One complex number makes complex numbers of all numbers in an array, and one text of bytes makes
    bytes: '(1+0j)' or "b'1'" of 1. None of the functions fails for any text.
    """
    schema = "system.main"
    missing = ", ".join(map(DUCKDB.text, MISSING))
    unwrapped = " ".join(
        f"WHEN {schema}.starts_with(t, {DUCKDB.text(start)}) "
        f"AND {schema}.regexp_full_match(t, {DUCKDB.text(pattern)}, 's') "
        f"THEN {schema}.regexp_extract(t, {DUCKDB.text(pattern)}, 1, 's')"
        for start, pattern in WRAPPED
    )
    return _bound(
        text,
        "t",
        f"CASE WHEN t IN ({missing}) THEN NULL WHEN t = '0j' THEN '0' {unwrapped} ELSE t END",
    )


def _category(
    name: str,
    column: Sql,
    stored: ColumnType,
    kind: ColumnType,
    categories: Sequence[str],
) -> Sql:
    """The category that a value of a DataFrame's column is, as text that can be read as `kind`.

    Another value may have made 1.0 of 1, "True" of true, or a timestamp of a date, in all rows. So
    a value is a category if it has the same text, is the same number, or the same moment. Of equal
    numbers, the category that is written as numbers are comes first, then the shortest. Any other
    value is one and the same, because its text may depend on the others.
    """
    text = DUCKDB.ident(f"{name} as text")
    ordered = sorted(categories, key=lambda each: (written_number(each) is None, len(each)))
    alike = [each for each in categories if plain_text(each) == each]
    number = _shortened(_number(text)) if stored.family in _TEXTS else shortest(column, stored)
    found = []
    for of, key_of in ((text, _text_of), (number, _number_of), (_moment(text), _moment_of)):
        keyed: dict[str, str] = {}
        for category in ordered:
            if key := key_of(category):
                keyed.setdefault(key, category)
        if keyed:
            keys, values = ", ".join(keyed), ", ".join(map(DUCKDB.text, keyed.values()))
            found.append(f"[{values}][system.main.list_position([{keys}], {of})]")
    other = _other(kind, categories)
    same = f"WHEN {text} IN ({', '.join(map(DUCKDB.text, alike))}) THEN {text} " if alike else ""
    chosen = f"COALESCE({', '.join([*found, other])})" if found else other
    case = f"CASE {same}WHEN {text} IS NOT NULL THEN {chosen} END"
    return _bound(_text(column, stored), text, case)


def _other(kind: ColumnType, categories: Sequence[str]) -> str:
    """The text of a value that is no category; NULL where the type has none for it."""
    if kind.family != "text":
        return {"float": "'inf'", "timestamp": "'infinity'"}.get(kind.family, "NULL")
    text = "?"
    while text in categories:
        text += "?"
    return f"'{text}'"


def _text(column: Sql, stored: ColumnType) -> str:
    """A value as text; NULL for the floating-point number that stands for a missing value."""
    if stored.family == "float":  # 32-bit numbers have fewer digits as text
        number = f"CAST({column} AS DOUBLE)"
        return f"CASE WHEN NOT system.main.isnan({number}) THEN CAST({number} AS VARCHAR) END"
    if stored.base in ("TIMESTAMP_S", "TIMESTAMP_MS"):  # which have no text far from today
        return f"CAST(TRY_CAST({column} AS TIMESTAMP) AS VARCHAR)"
    text = f"CAST({column} AS VARCHAR)"
    return plain_text_sql(text) if stored.family in _TEXTS else text


def _number(text: str) -> str:
    """The number that a text is, truth values too; NULL if it is none."""
    truth = "system.main.lower(n) WHEN 'true' THEN '1' WHEN 'false' THEN '0'"
    return _bound(text, "n", f"TRY_CAST(CASE {truth} ELSE n END AS DOUBLE)")


def _moment(text: str) -> str:
    return f"TRY_CAST({text} AS TIMESTAMP)"


def _text_of(category: str) -> str | None:
    """The plain text of a category in SQL, if it is another one than its own."""
    plain = plain_text(category)
    return None if plain is None or plain == category else str(DUCKDB.text(plain))


def _number_of(category: str) -> str | None:
    """A category as a number in SQL, the shortest that 32 bits hold so; None if it is none."""
    number = shortest_number(category)
    return None if number is None else f"{number + 0.0!r}::DOUBLE"


def _moment_of(category: str) -> str | None:
    """A category as a moment in SQL; None if it is none."""
    moment = moment_of(category)
    return f"TIMESTAMP '{moment.isoformat(sep=' ')}'" if moment else None
