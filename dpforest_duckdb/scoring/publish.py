"""A forest as a select, or as the statement or file that makes a view, table or macro of it."""

from __future__ import annotations

from collections.abc import Sequence

from dpforest_duckdb.domain.names import fold, hint, spellings, split_name
from dpforest_duckdb.domain.types import UNKNOWN
from dpforest_duckdb.errors import DpforestError, UsageError
from dpforest_duckdb.scoring.content import ForestContent
from dpforest_duckdb.scoring.dbt import CONFIG, dbt_schema, dbt_source
from dpforest_duckdb.scoring.dialects import Dialect, Form
from dpforest_duckdb.scoring.dialects.duckdb import DUCKDB
from dpforest_duckdb.scoring.inputs import refuse_missing
from dpforest_duckdb.scoring.score_sql import Around, Scored, added_names, score_sql
from dpforest_duckdb.sql import Sql

_NOTHING = Sql("")


def publish_sql(
    forest: ForestContent,
    table: str | None = None,
    *,
    form: Form = "select",
    name: str | None = None,
    prefix: str = "",
    scored: Scored | None = None,
    replace: bool = False,
    fast: bool = False,
    dialect: Dialect = DUCKDB,
    columns: Sequence[str] = (),
    key: Sequence[str] = (),
    force: bool = False,
) -> str:
    """A forest as a select, or as the statement or file that makes a view, table or macro of it.

    `table` is the table to score (any columns; `scored` says what is known of it), `name` the view,
    table or macro to make, in place of one of that name with `replace`. A macro takes the table's
    name as its argument instead. `columns` names the table's columns if `scored` is not given,
    `key` the columns to keep. Raises `UsageError` if an engine other than DuckDB needs the columns
    and they are not known. Raises `DpforestError` if a limit of the engine is exceeded; with
    `force` the size of the statement is not limited.
    """
    if form not in dialect.forms:
        raise UsageError(f"--as must be one of {', '.join(dialect.forms)} for {dialect.title}.")
    if replace and form not in dialect.replaces:
        able = " or ".join(f"--as {each}" for each in dialect.replaces)
        raise UsageError(
            f"--replace goes with {able} in {dialect.title}: leave it out."
            if able
            else f"{dialect.title} replaces nothing: leave --replace out, and drop the old one."
        )
    if fast and dialect.name != "duckdb":
        raise UsageError("--fast is for --dialect duckdb alone: leave it out.")
    if scored is None and not table and form not in ("macro", "dbt-schema"):
        raise UsageError("Name the table to score with --from.")
    if form in ("dbt", "dbt-schema"):
        dialect = type(dialect)(jinja=True)
    if form == "dbt-schema":
        added = added_names(forest, prefix)
        return dbt_schema(forest, dialect, name or f"{forest.name}_scored", added)
    source, around = _around(forest, table, form, name, scored, replace, dialect)
    source, keep = _kept(forest, source, dialect, columns, key)
    text = score_sql(
        forest, source, prefix=prefix, fast=fast, dialect=dialect, keep=keep, around=around
    )
    text = text.rstrip() + ("\n" if form == "dbt" else ";\n")
    if not force:
        dialect.check_size(text)
    return text


def _around(
    forest: ForestContent,
    table: str | None,
    form: Form,
    name: str | None,
    scored: Scored | None,
    replace: bool,
    dialect: Dialect,
) -> tuple[Scored, Around]:
    """The table that a form scores, and what it writes around the SELECT."""
    if form == "dbt":
        known = scored.columns if scored else {}
        return Scored(dbt_source(split_name(str(table))), known), Around(CONFIG)
    source = scored or Scored(_NOTHING, {})
    if form == "macro":
        source = Scored(dialect.call("query_table", '"table_name"'), {})
    elif scored is None or dialect.name != "duckdb":
        named = dialect.ident(*split_name(str(table))) if table else source.name
        source = Scored(named, source.columns)
    if form == "select":
        return source, Around()
    parts = split_name(name) if name else [f"{forest.name}_scored"]
    if table and form != "macro" and _folded(parts) == _folded(split_name(table)):
        raise UsageError("--into names the table that is scored: choose another.")
    made = dialect.ident(*parts)
    if form == "macro":
        create = "CREATE OR REPLACE" if replace else "CREATE"
        opening = Sql(f'{create} MACRO {made}("table_name") AS TABLE (\n')
        return source, Around(opening, closing=Sql(")"))
    return source, Around(dialect.create(form, made, replace=replace), dialect.into(form, made))


def _kept(
    forest: ForestContent,
    source: Scored,
    dialect: Dialect,
    columns: Sequence[str],
    key: Sequence[str],
) -> tuple[Scored, list[str] | None]:
    """The table with its named columns, and the columns to keep: None for all of DuckDB's."""
    for option, names in (("--columns", columns), ("--key", key)):
        if len(set(_folded(names))) < len(names):
            raise UsageError(f"{option} names a column twice: name each once.")
    if columns:
        refuse_missing(forest, columns, "--columns")
        types = {fold(a.column): a.type for a in forest.domain.attributes}
        source = Scored(source.name, {name: types.get(fold(name), UNKNOWN) for name in columns})
    if not key:
        if not source.columns and not dialect.excludes:
            raise UsageError(
                f"For {dialect.title}, name the table's columns with --columns, or those to keep "
                "with --key: it cannot leave helper columns out of a SELECT *."
            )
        return source, list(columns) or None
    found = spellings(source.columns)
    for name in key:
        if found and fold(name) not in found:
            near = hint(name, source.columns)
            raise DpforestError(f'There is no column "{name}"{near}: correct --key.')
    return source, [found.get(fold(name), name) for name in key]


def _folded(names: Sequence[str]) -> list[str]:
    return [fold(name) for name in names]
