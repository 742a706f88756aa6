"""What else is in a database, and how it is set, must not change what a model predicts."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest
from agreement import assert_agree
from models import bit_sets, forest_of, groups_of_one, one_split, two_attributes, two_splits

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import DOUBLE, INTEGER, VARCHAR, column_type
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.model import store
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.tree import SCALE

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


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("helper", ["dpforest_votes_0", "DPFOREST_leaf_0", "dpforest_key_0"])
def test_a_column_with_the_name_of_a_helper_changes_no_prediction(
    con: duckdb.DuckDBPyConnection, things: Forest, helper: str, fast: bool
) -> None:
    """Its name gets a number in SQL that was written without knowing of it."""
    domain = two_attributes(labels=("a", "b", "c"))
    forest = forest_of(domain, two_splits(domain, 1), two_splits(domain, 2))
    con.execute(f"CREATE TABLE named AS SELECT 7 AS {helper}, * FROM things")
    with bit_sets():
        expected = [row[2:] for row in forest.predict(con, "things").fetchall()]
        found = con.sql(forest.to_sql("named", fast=fast))
        assert [row[0] for row in found.fetchall()] == [7] * 4
        assert [row[3:] for row in found.fetchall()] == expected
        assert forest.predict(con, "named").columns[0] == helper


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("helper", ["dpforest_votes_0", "dpforest_leaf_0", "dpforest_key_0"])
def test_an_attribute_may_have_the_name_of_a_helper(
    con: duckdb.DuckDBPyConnection, things: Forest, helper: str, fast: bool
) -> None:
    con.execute(f"CREATE TABLE named AS SELECT colour AS {helper}, size FROM things")
    domain = two_attributes((helper, "size"), ("a", "b", "c"))
    forest = forest_of(domain, two_splits(domain, 1), two_splits(domain, 2))
    with bit_sets():
        found = con.sql(forest.to_sql("named", fast=fast))
        assert found.columns[0] == helper
        assert found.fetchall() == forest.predict(con, "named").fetchall()


@pytest.mark.parametrize("name", ["prediction", "P_no"])
def test_an_attribute_with_the_name_of_a_new_column_needs_a_prefix(
    con: duckdb.DuckDBPyConnection, things: Forest, name: str
) -> None:
    domain = two_attributes((name, "size"))
    forest = forest_of(domain, two_splits(domain, 1))
    for form in ("select", "view", "macro", "dbt"):
        with pytest.raises(DpforestError, match="already: pass prefix"):
            forest.to_sql("things", form=form)
    con.execute(f"CREATE TABLE named AS SELECT colour AS {name}, size FROM things")
    con.execute(forest.to_sql("named", form="view", prefix="our_"))
    assert con.table("made_scored").columns[:3] == [name, "size", "our_prediction"]


MACROS = (
    "exp(x)",
    "isnan(x)",
    "greatest(x, y, z)",
    "least(x, y)",
    "list(x)",
    "range(x)",
    "enum_code(x)",
    "lower(x)",
    "count(x)",
    "count_star()",
    "current_database()",
    "current_schema()",
)


@pytest.mark.parametrize("fast", [False, True])
def test_no_macro_of_the_database_changes_a_prediction(
    con: duckdb.DuckDBPyConnection, fast: bool
) -> None:
    """SQL that was published before the macros were made gives the same too."""
    kinds = {"d": DOUBLE, "n": INTEGER, "e": column_type("ENUM('u', 'v')")}
    made = (
        Attribute("d", "numeric", edges=(0.5, 1.5)).bound(kinds["d"]),
        Attribute("n", "numeric", edges=(1, 4, 6)).bound(kinds["n"]),
        Attribute("e", "categorical", ("u", "v")).bound(kinds["e"]),
    )
    domain = Domain(made, "y", ("a", "b", "c"), VARCHAR)
    trees = (two_splits(domain, 1), two_splits(domain, 2), one_split(domain, 2, [[1, 2, 3]] * 4))
    forest = forest_of(domain, *trees, one_split(domain, 2, np.eye(4, 3, dtype=int) * SCALE))
    con.execute(f"CREATE TABLE things (d DOUBLE, n INTEGER, e {kinds['e']})")
    con.execute(
        "INSERT INTO things SELECT CASE WHEN i % 7 = 0 THEN 'nan'::DOUBLE ELSE i % 3 END, i % 9, "
        "CASE WHEN i % 2 = 0 THEN 'u' ELSE 'v' END FROM range(50) r(i)"
    )
    frame = con.table("things").to_arrow_table()
    with bit_sets(), groups_of_one():
        con.execute(forest.to_sql("things", form="view", fast=fast))
        con.execute(forest.to_sql(form="macro", fast=fast, name="scored"))
        store.save(DuckDBEngine(con).models, forest)
        expected = forest.predict(con, "things").fetchall()
        for macro in MACROS:
            con.execute(f"CREATE MACRO {macro} AS 7")
        con.execute("CREATE MACRO query_table(x) AS TABLE SELECT 7 AS seven")
        assert store.load(DuckDBEngine(con).models, "made").trees[0].nodes == trees[0].nodes
        found = [forest.predict(con, rows) for rows in ("things", con.table("things"), frame)]
        found += [con.table("made_scored"), con.sql("FROM scored('things')")]
        found.append(con.sql(forest.to_sql("things", fast=fast)))
    for each in found:
        assert repr(each.fetchall()) == repr(expected)
