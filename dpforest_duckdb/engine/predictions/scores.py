"""Scoring in DuckDB: a relation with the predictions of a forest."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np

from dpforest_duckdb.domain.names import fold, free_name, spellings
from dpforest_duckdb.domain.types import column_types
from dpforest_duckdb.engine.columns.read_types import TypesFrom
from dpforest_duckdb.engine.predictions.read_beside import read_beside
from dpforest_duckdb.engine.sources.frame_columns import kinds_of
from dpforest_duckdb.engine.sources.frames import AnyFrame, Frame, is_frame
from dpforest_duckdb.engine.sources.memory_database import NewDatabase, Part
from dpforest_duckdb.engine.sources.pandas_texts import has_texts_alone, with_texts
from dpforest_duckdb.engine.sources.relations import columns_of
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.errors import DpforestError, UsageError
from dpforest_duckdb.scoring.content import ForestContent
from dpforest_duckdb.scoring.dialects.duckdb import DUCKDB
from dpforest_duckdb.scoring.score_sql import Scored, score_sql
from dpforest_duckdb.sql import Sql, render

_ALIAS = "dpforest_rows"  # what a query calls the relation that it reads
_ROWS = DUCKDB.ident(_ALIAS)


def predicted(
    con: duckdb.DuckDBPyConnection, forest: ForestContent, rows: str | AnyFrame, prefix: str
) -> duckdb.DuckDBPyRelation:
    """The rows with `prediction` and `p_<class>`; `rows` is the name of a table, a relation of the
    connection, or a DataFrame. Their own columns stay as DuckDB reads them.
    """
    engine = DuckDBEngine(con)
    if isinstance(rows, str):
        return con.sql(score_sql(forest, engine.scored(rows), prefix=prefix, fast=True))
    relation, texts = _relation_of(con, forest, rows)
    columns = engine.call(lambda: columns_of(relation))  # refuses a closed connection
    scored, keep = Scored(_ROWS, column_types(columns)), None
    if relation is not rows:
        keep = [name for name in columns if name not in texts.values()]
        forest, scored = read_beside(forest, scored, TypesFrom.VALUES, texts)
    return _queried(relation, score_sql(forest, scored, prefix=prefix, fast=True, keep=keep))


def _relation_of(
    con: duckdb.DuckDBPyConnection, forest: ForestContent, rows: AnyFrame
) -> tuple[duckdb.DuckDBPyRelation, dict[str, str]]:
    """Rows as a relation: themselves if they are one, else a DataFrame's; and its added columns of
    texts.
    """
    if isinstance(rows, duckdb.DuckDBPyRelation):
        return rows, {}
    if not is_frame(rows):
        raise UsageError(
            "The rows to predict must be a table's name, a DuckDB relation, a pandas, polars or "
            "Arrow table, or a dictionary of NumPy arrays: con.read_parquet(path) makes a relation "
            "of a file."
        )
    frame, texts = _with_texts_beside(con, forest, with_texts(rows))
    return _found_by_name(con, frame), texts


def _with_texts_beside(
    con: duckdb.DuckDBPyConnection, forest: ForestContent, rows: Any
) -> tuple[Any, dict[str, str]]:
    """A frame with the texts of objects that the forest reads in added columns, as training reads
    them; the names of these by those of the objects' columns.

    DuckDB takes the type of objects from some of them, and may round others.
    """
    read = set(map(fold, forest.read_columns))
    objects = {
        str(name): np.asarray(rows[name])
        for name, kind in kinds_of(rows).items()
        if kind == np.dtype(object) and fold(str(name)) in read and not has_texts_alone(rows[name])
    }
    if not objects or any(column.ndim > 1 for column in objects.values()):  # of one name
        return rows, {}
    frame = Frame.of("rows", objects, NewDatabase(con))
    with frame.reading() as (memory, view, _):
        sql = render("read", made=None, parts=[Part([Sql("*")], view)])
        found = memory.arrays(sql, step="read")
    taken = spellings(str(name) for name in kinds_of(rows))
    texts = {name: free_name(f"dpforest_text_{n}", taken) for n, name in enumerate(found)}
    held = {texts[name]: _with_none(column) for name, column in found.items()}
    return {**rows, **held} if isinstance(rows, dict) else rows.assign(**held), texts


def _with_none(column: Any) -> Any:
    """Objects with None where they are masked: `filled` writes "?" there."""
    filled = np.ma.getdata(column).astype(object)
    filled[np.ma.getmaskarray(column)] = None
    return filled


def _found_by_name(con: duckdb.DuckDBPyConnection, frame: AnyFrame) -> duckdb.DuckDBPyRelation:
    """A DataFrame as a relation, with the columns that it has."""
    named = (
        "SELECT name FROM (SELECT table_name AS name FROM system.main.duckdb_tables() "
        "UNION ALL SELECT view_name FROM system.main.duckdb_views()) "
        "WHERE system.main.lower(name) = 'dpforest_rows_to_predict'"
    )
    # DuckDB finds this variable by its name, unless a table has that
    dpforest_rows_to_predict = frame  # noqa: F841
    try:
        if con.sql(named).fetchall():
            raise DpforestError(
                'The database has a table called "dpforest_rows_to_predict", a name that is '
                "needed for the frame: rename the table."
            )
        return con.sql("FROM dpforest_rows_to_predict")
    except duckdb.Error:
        raise DpforestError(
            "DuckDB cannot read this frame: pass a relation of the connection, such as "
            "con.from_df(frame) or con.from_arrow(frame)."
        ) from None


def _queried(relation: duckdb.DuckDBPyRelation, sql: str) -> duckdb.DuckDBPyRelation:
    """The result of a query that reads a relation under the name `dpforest_rows`."""
    found = relation.query(_ALIAS, sql)
    assert found is not None, "a SELECT gives a relation"
    return found
