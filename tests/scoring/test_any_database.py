"""What else is in a database, and how it is set, must not change what a model predicts."""

from __future__ import annotations

import duckdb
import pytest
from agreement import assert_agree
from models import forest_of, groups_of_one, two_attributes, two_splits

from dpforest_duckdb.engine.duckdb import DuckDBEngine
from dpforest_duckdb.model import store
from dpforest_duckdb.model.forest import Forest

ROWS = "(VALUES ('red', 'small'), ('green', 'large'), ('blue', 'small'), (NULL, 'x'))"


@pytest.fixture
def things(con: duckdb.DuckDBPyConnection) -> Forest:
    """A forest of two trees that read both columns of the table `things`."""
    con.execute(f"CREATE TABLE things AS FROM {ROWS} AS v(colour, size)")
    domain = two_attributes()
    return forest_of(domain, two_splits(domain, 1), two_splits(domain, 2))


@pytest.mark.parametrize(
    "setting", ["default_order = 'DESC'", "default_null_order = 'NULLS_FIRST'"]
)
def test_the_order_that_a_user_sets_changes_no_prediction(
    con: duckdb.DuckDBPyConnection, things: Forest, setting: str
) -> None:
    con.execute(f"SET {setting}")
    assert_agree(con, things, "things")
    with groups_of_one():
        assert_agree(con, things, "things")


def test_the_order_that_a_user_sets_changes_no_list_of_the_catalogue(
    con: duckdb.DuckDBPyConnection, things: Forest
) -> None:
    con.execute("SET default_order = 'DESC'")
    engine = DuckDBEngine(con)
    assert list(engine.scored("things").columns) == ["colour", "size"]
    assert [each.name for each in engine.declared(engine.table("things"))] == ["colour", "size"]
    for name in ("a", "b"):
        store.save(engine.models, things.named(name))
    assert engine.models.names() == ["a", "b"]
