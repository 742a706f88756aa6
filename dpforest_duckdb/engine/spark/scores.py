"""Scoring in Spark: a DataFrame with the predictions of a forest."""

from __future__ import annotations

from dpforest_duckdb.domain.names import random_name, split_name
from dpforest_duckdb.engine.spark.engine import types
from dpforest_duckdb.engine.spark.steps import (
    OF_WORDS,
    Frame,
    Session,
    Steps,
    is_remote,
    refuse_meanings,
)
from dpforest_duckdb.errors import DpforestError, UsageError
from dpforest_duckdb.scoring.content import ForestContent
from dpforest_duckdb.scoring.score_sql import Scored, score_sql


def predicted(session: Session, forest: ForestContent, rows: object, prefix: str) -> Frame:
    """The rows with `prediction` and `p_<class>`; `rows` is the name of a table or a DataFrame.

    Raises `UsageError` for anything else, and `DpforestError` for a missing table or column.
    """
    steps = Steps(session)
    steps.call(lambda: refuse_meanings(session, OF_WORDS))
    if isinstance(rows, str):
        ident = steps.dialect.ident(*split_name(rows))
        try:
            frame = steps.call(lambda: session.table(ident))
        except DpforestError:
            raise DpforestError(f'There is no table "{rows}" in Spark: check its name.') from None
    elif hasattr(rows, "createOrReplaceTempView"):
        frame = rows
    else:
        raise UsageError("The rows to predict must be a table's name or a DataFrame of Spark.")
    name = random_name()
    steps.call(lambda: frame.createOrReplaceTempView(name))
    try:
        source = Scored(steps.dialect.ident(name), types(frame))
        return steps.frame(score_sql(forest, source, prefix=prefix, dialect=steps.dialect))
    finally:
        if not is_remote(session):  # which would look for the view when it reads rows
            steps.call(lambda: session.catalog.dropTempView(name))
