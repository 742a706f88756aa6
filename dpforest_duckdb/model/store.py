"""Models at rest: in the database's schema `dpforest`, or in a JSON file. Whole or not at all."""

from __future__ import annotations

import os

from dpforest_duckdb.engine.duckdb import DuckDBEngine
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.model.forest import Forest, load_forest

_TABLE = '"dpforest"."models"'


def names(engine: DuckDBEngine) -> list[str]:
    """The names of the stored models, sorted; compared without regard to case."""
    if not _exists(engine):
        return []
    return [name for (name,) in engine.run(f"SELECT name FROM {_TABLE} ORDER BY name")]


def check_name(engine: DuckDBEngine, name: str, *, replace: bool) -> None:
    """Raise `DpforestError` unless a model of this name can be stored."""
    if not name or not name.isprintable() or len(name) > 200:
        raise DpforestError("A model's name must be printable, 1 to 200 characters: change --name.")
    if engine.read_only():
        raise DpforestError("The database is read-only: name a file for the model with --out.")
    if not replace and name.casefold() in {known.casefold() for known in names(engine)}:
        raise DpforestError(
            f'There is a model "{name}" already: choose another --name or pass --replace.'
        )


def save(engine: DuckDBEngine, forest: Forest, *, replace: bool = False) -> None:
    """Store a forest in one statement; one whose name differs by case alone gives way to it."""
    check_name(engine, forest.name, replace=replace)
    text = forest.to_json()
    engine.run('CREATE SCHEMA IF NOT EXISTS "dpforest"')
    engine.run(f"CREATE TABLE IF NOT EXISTS {_TABLE} (name VARCHAR PRIMARY KEY, model VARCHAR)")
    stored = {known.casefold(): known for known in names(engine)}
    if forest.name.casefold() in stored:
        change = f"UPDATE {_TABLE} SET name = ?, model = ? WHERE name = ?"
        engine.run(change, [forest.name, text, stored[forest.name.casefold()]])
    else:
        engine.run(f"INSERT INTO {_TABLE} VALUES (?, ?)", [forest.name, text])


def load(engine: DuckDBEngine, name: str) -> Forest:
    """A forest by its name in the database, or by the path of a JSON file.

    Raises `DpforestError` for neither.
    """
    stored = {known.casefold(): known for known in names(engine)}
    if name.casefold() in stored:
        rows = engine.run(f"SELECT model FROM {_TABLE} WHERE name = ?", [stored[name.casefold()]])
        try:
            return Forest.from_json(rows[0][0] or "")
        except DpforestError as error:
            named = str(error).replace("The model", f'The model "{name}"', 1)
            raise DpforestError(named) from None
    if name.endswith(".json") or os.sep in name:
        return load_forest(name)
    known = ", ".join(f'"{other}"' for other in stored.values()) or "none"
    raise DpforestError(
        f'There is no model "{name}" in the database (it has {known}): check --model.'
    )


def drop(engine: DuckDBEngine, name: str) -> None:
    """Remove a stored model. Raises `DpforestError` if there is none of this name."""
    stored = {known.casefold(): known for known in names(engine)}
    if name.casefold() not in stored:
        raise DpforestError(f'There is no model "{name}" in the database: see dpforest models.')
    engine.run(f"DELETE FROM {_TABLE} WHERE name = ?", [stored[name.casefold()]])


def _exists(engine: DuckDBEngine) -> bool:
    found = engine.run(
        "SELECT column_name FROM duckdb_columns() WHERE database_name = current_database() "
        "AND lower(schema_name) = 'dpforest' AND lower(table_name) = 'models' ORDER BY column_index"
    )
    if found not in ([], [("name",), ("model",)]):
        raise DpforestError('"dpforest"."models" is not a table of models: rename what is there.')
    return bool(found)
