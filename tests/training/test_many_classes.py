"""Tables of more than a thousand classes: DuckDB limits the depth of expressions."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pytest

from dpforest_duckdb import Attribute, Domain, Forest, train

CLASSES = tuple(f"c{number}" for number in range(1100))
DOMAIN = Domain(
    (
        Attribute("colour", "categorical", ("red", "green"), nullable=False),
        Attribute("size", "categorical", ("small", "large"), nullable=False),
    ),
    "code",
    CLASSES,
)


def table() -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    con.execute("""
        CREATE TABLE codes AS
        SELECT ['red', 'green'][1 + i % 2] AS colour, ['small', 'large'][1 + i // 2 % 2] AS size,
            'c' || i % 1100 AS code
        FROM range(2000) AS r(i)
    """)
    return con


def trained(con: duckdb.DuckDBPyConnection, recipe: str, folder: Path) -> Forest:
    return train(
        con,
        "codes",
        domain=DOMAIN,
        epsilon=1,
        recipe=recipe,
        privacy_unit="row",
        ledger=folder / "budget.ledger",
    )


@pytest.mark.parametrize("recipe", ["rooted-tables", "tree-beside-sums"])
def test_recipes_that_rate_mixtures_train(recipe: str, tmp_path: Path) -> None:
    forest = trained(table(), recipe, tmp_path)
    assert all(len(tree.votes.T) == len(CLASSES) for tree in forest.trees)


def test_votes_with_a_constant_sum_are_scored(tmp_path: Path) -> None:
    """The votes of the last class are this sum less those of all others."""
    con = table()
    forest = trained(con, "greedy-tree", tmp_path)
    shares = forest.predict(con, "codes").project("COLUMNS('^p_')").fetchnumpy()
    total = np.sum([shares[name] for name in shares], axis=0)
    assert len(shares) == len(CLASSES)
    assert np.allclose(total, 1)
