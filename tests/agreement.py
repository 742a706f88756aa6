"""Compares scoring SQL with Python, row by row."""

from __future__ import annotations

import duckdb
import numpy as np
from models import bit_sets

from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.scoring.links import SHARES
from dpforest_duckdb.scoring.score_sql import score_sql, share_names


def assert_agree(con: duckdb.DuckDBPyConnection, forest: Forest, table: str) -> None:
    """Every row: the same prediction and the same shares (to the last bit, if without e^x)."""
    scored = DuckDBEngine(con).scored(table)
    cursor = con.execute(score_sql(forest, scored))
    names = [column[0] for column in cursor.description]
    portable = cursor.fetchall()
    with bit_sets():
        assert repr(con.execute(score_sql(forest, scored, fast=True)).fetchall()) == repr(portable)
    rows = [dict(zip(names, row, strict=True)) for row in portable]
    votes = forest.votes(rows)  # [row, class]
    labels = [forest.domain.classes[number].lower() for number in votes.argmax(axis=1)]
    assert [str(row["prediction"]).lower() for row in rows] == labels
    shares = forest.probabilities(votes)
    shown = share_names(forest, "")
    found = np.array([[row[name] for name in shown] for row in rows])
    exact = 0 if forest.link == SHARES else 1e-12
    assert found.shape == shares.shape
    assert (np.abs(found - shares) <= exact).all()
