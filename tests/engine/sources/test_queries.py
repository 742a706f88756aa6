"""Queries of DuckDB as rows: what they may read, and which budget they count for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest
from engine_conformance import COLUMNS, DOMAIN, ROWS
from source_rows import (
    columns,
    database,
    debits,
    fitted,
    pandas,
    parquet_file,
    polars,
)
from variants import some

from dpforest_duckdb import (
    BudgetError,
    DpforestError,
    UsageError,
    evaluate,
    prepare,
    train,
    train_many,
)
from dpforest_duckdb.domain.file import domain_from_mapping
from dpforest_duckdb.domain.table import TableInfo
from dpforest_duckdb.domain.types import BIGINT
from dpforest_duckdb.engine.sources.engine import SourceEngine
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.ledger.book import Ledger
from dpforest_duckdb.ledger.datasets import DatasetAccount
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.privacy.unit import ROW
from dpforest_duckdb.progress import Event, Phase
from dpforest_duckdb.training.opening import find_rows


def test_a_query_of_a_whole_table_is_that_table(tmp_path: Path) -> None:
    con, book = database(tmp_path), tmp_path / "ledger"
    con.execute('CREATE SCHEMA s; CREATE TABLE s."a.b" AS FROM t; CREATE VIEW v AS FROM t')
    for relation in (con.table("t"), con.sql("FROM t"), con.sql('SELECT * FROM s."a.b"')):
        fitted(con, relation, ledger=book)
    assert [run.holder.name for run in debits(book)] == ["t", "t", "s.a.b"]
    others = ("FROM t LIMIT 9", "FROM t ORDER BY 1", "SELECT DISTINCT * FROM t", "FROM t, range(2)")
    for query in (*others, "FROM v", "FROM t TABLESAMPLE 50%", "FROM t UNION ALL FROM t"):
        with pytest.raises(UsageError, match="dataset"):
            fitted(con, con.sql(query), ledger=book)


def test_a_table_of_another_system_is_a_query_with_a_dataset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in an attached PostgreSQL database, whose extension the tests do not have."""
    con, book, run = database(tmp_path), tmp_path / "ledger", DuckDBEngine.run

    def foreign(engine: DuckDBEngine, sql: str, *values: Any, **options: Any) -> Any:
        found = run(engine, sql, *values, **options)
        return [("postgres", *found[0][1:])] if "SELECT type" in sql else found

    monkeypatch.setattr(DuckDBEngine, "run", foreign)
    with pytest.raises(DpforestError, match="postgres database, which cannot keep a budget"):
        fitted(con, "t", ledger=book)
    with pytest.raises(UsageError, match="dataset"):
        fitted(con, con.sql("FROM t"), ledger=book)
    assert fitted(con, con.sql("FROM t"), ledger=book, dataset="d").private


QUERIES_OF_T = (
    "FROM t WHERE size < -99",
    "FROM v",
    "FROM m()",
    "SELECT * REPLACE (s() AS size) FROM u",
    "WITH c AS (FROM v) FROM c",
    "FROM query('FROM t')",
    "FROM duckdb_table_sample('t')",
)


def with_queries(folder: Path) -> tuple[duckdb.DuckDBPyConnection, Path]:
    """A database with what the queries name, and a ledger."""
    con = database(folder)
    con.execute(
        "CREATE VIEW v AS FROM t; CREATE MACRO m() AS TABLE FROM t; CREATE TABLE u AS FROM t; "
        "CREATE MACRO s() AS (SELECT max(size) FROM t)"
    )
    return con, folder / "ledger"


@pytest.fixture(scope="module")
def capped(tmp_path_factory: pytest.TempPathFactory) -> tuple[duckdb.DuckDBPyConnection, Path]:
    """The same once the table t has a cap."""
    con, book = with_queries(tmp_path_factory.mktemp("capped"))
    find_rows(con, "t").account(book, None).set_cap(9 * NANO, 0, ROW, raise_cap=False)
    return con, book


@pytest.mark.parametrize("query", QUERIES_OF_T)
def test_a_query_that_reads_a_capped_table_is_refused(
    query: str, capped: tuple[duckdb.DuckDBPyConnection, Path]
) -> None:
    con, book = capped
    with pytest.raises(BudgetError, match='table "t", which has a cap'):
        fitted(con, con.sql(query), ledger=book, dataset="d")


def test_queries_without_a_capped_table_are_trained_on(
    tmp_path: Path, capped: tuple[duckdb.DuckDBPyConnection, Path]
) -> None:
    con, book = with_queries(tmp_path)
    for query in QUERIES_OF_T:
        assert fitted(con, con.sql(query), ledger=book, dataset="d").private
    con, book = capped
    for query in ("FROM u WHERE size > 0", "SELECT u.* FROM u, range(2)"):
        assert fitted(con, con.sql(query), ledger=book, dataset="d").private


def test_queries_are_read_through_a_connection_that_is_read_only(tmp_path: Path) -> None:
    path, book = tmp_path / "kept.duckdb", tmp_path / "ledger"
    with database(tmp_path) as con:
        con.execute(f"ATTACH '{path}' AS kept; COPY FROM DATABASE memory TO kept")
    with duckdb.connect(str(path), read_only=True) as con:
        query = con.sql("FROM t WHERE size > 0")
        forest = fitted(con, query, ledger=book, dataset="d")
        assert evaluate(con, forest, query, ledger=book, dataset="d").rows > 0
        databases = con.sql("SELECT database_name FROM duckdb_databases() WHERE NOT internal")
        assert databases.fetchall() == [("kept",)]


def test_a_query_uses_the_ledger_of_the_tables_that_it_reads(tmp_path: Path) -> None:
    """In another one, nobody could see whether a table has a cap."""
    con, book = with_queries(tmp_path)
    fitted(con, "t", ledger=book)
    query = con.sql("FROM t WHERE size > 0")
    with pytest.raises(DpforestError) as refused:
        fitted(con, query, ledger=tmp_path / "other", dataset="d")
    assert str(refused.value) == (
        'The query may read table "t", which has a budget in another ledger than '
        f"{tmp_path / 'other'}: a query must use the ledger of the tables that it reads, so name "
        "that one with ledger."
    )
    assert not (tmp_path / "other").exists()
    assert fitted(con, query, ledger=book, dataset="d").private


def test_stored_results_of_a_capped_table_are_refused(tmp_path: Path) -> None:
    """Their plan has no scan of the table that they were read from."""
    con, book = database(tmp_path), tmp_path / "ledger"
    con.execute("PREPARE p AS FROM t WHERE size > 0")
    queries = [con.sql("EXECUTE p"), con.sql("EXECUTE p").filter("size > 1")]
    queries += [con.sql("UPDATE t SET size = size RETURNING *")]
    find_rows(con, "t").account(book, None).set_cap(9 * NANO, 0, ROW, raise_cap=False)
    queries += [con.sql("FROM t WHERE size > 0").materialize()]
    for query in queries:
        with pytest.raises(DpforestError, match="stored result"):
            fitted(con, query, ledger=book, dataset="d")
    con.execute("SET VARIABLE held = (SELECT list(t) FROM t)")
    with pytest.raises(DpforestError, match="stored result"):
        fitted(con, queries[0], ledger=book, dataset="d")
    query = con.sql("SELECT unnest(getvariable('held'), recursive := true)")
    with pytest.raises(BudgetError, match='table "t", which has a cap'):
        fitted(con, query, ledger=book, dataset="d")
    assert not debits(book)


@some(
    "query",
    [
        "FROM '{}/people.csv'",
        "FROM (SELECT * FROM read_csv('{}/people.csv', header = true)) WHERE ward = 'a'",
        "FROM v",
        "FROM '{}/people.json'",
        "FROM read_ndjson('{}/people.json')",
        "SELECT 'a' AS ward, 'yes' AS smokes UNION ALL FROM '{}/people.csv' WHERE false",
        "FROM frame",
    ],
    keep=3,
)
def test_a_query_whose_types_follow_from_the_values_is_refused(query: str, tmp_path: Path) -> None:
    """One row `maybe` would make text of BOOLEAN, and change how all others are compared."""
    (tmp_path / "people.csv").write_text("ward,smokes\n" + "a,yes\nb,no\n" * 20)
    (tmp_path / "people.json").write_text('{"ward": "a", "smokes": "yes"}\n' * 20)
    con, book = duckdb.connect(), tmp_path / "book"
    con.execute(f"CREATE VIEW v AS FROM '{tmp_path}/people.csv'")
    frame = pandas.DataFrame({"ward": ["a", "b"], "smokes": [True, "maybe"]})
    rows = con.sql(query.format(tmp_path))
    domain = domain_from_mapping(
        {
            "target": "smokes",
            "column": [
                {"name": "ward", "kind": "categorical", "domain": ["a", "b"]},
                {"name": "smokes", "kind": "categorical", "domain": ["no", "yes"]},
            ],
        }
    )
    with pytest.raises(DpforestError, match="whose types may follow from the values"):
        train(con, rows, domain=domain, epsilon=1, ledger=book, dataset="d")
    assert not book.exists()
    train(con, frame, domain=domain, epsilon=1, ledger=book, dataset="d")
    train(con, tmp_path / "people.csv", domain=domain, epsilon=1, ledger=book)


@some(
    ("query", "guessed"),
    [
        ("FROM '{}/rows/*/*.parquet'", True),
        ("FROM '{}/ro?s/day=2024-1-1/a.parquet'", True),
        ("FROM read_parquet(['{0}/rows/day=2024-1-1/a.parquet', '{0}/rows/**/*.parquet'])", True),
        ("FROM files", True),
        ("FROM found('{}')", True),
        ("FROM read_parquet('{}/rows/*/*.parquet', hive_types = {{'day': 'VARCHAR'}})", False),
        ("FROM read_parquet('{}/rows/*/*.parquet', hive_partitioning = false)", False),
        ("FROM '{}/rows/day=2024-1-1/*.parquet'", False),
        ("FROM read_parquet('{}/rows')", True),
        ("FROM read_parquet('{}/rows/**')", True),
        ("FROM read_parquet('{}/rows/*' || '/a.parquet')", True),
        ("FROM read_parquet($${}/rows/*/a.parquet$$)", True),
        ("FROM read_parquet(E'{}/rows/\\x2A/a.parquet')", True),
        ("FROM read_parquet('{}/rows/*/*.parquet', hive_types_autocast = true)", True),
        ("FROM read_parquet('{}/rows/*/*.parquet', hive_types_autocast = false)", False),
        ("FROM '{}/rows/*/*.parquet' -- hive_types", True),
        ("FROM usual()", True),
        ("FROM read_parquet(pattern())", True),
        ('FROM "it is ""AS x"', True),
        ('FROM query(\'FROM "it is ""AS x"\')', True),
        ("FROM query_table('Fi' || 'les')", True),
        ("FROM query_table('main.files')", True),
        ("SELECT f.* FROM '{}/rows/day=2024-1-1/a.parquet' AS f LEFT JOIN \"u.v\" ON false", False),
        ("SELECT *, 'a*b/c' AS c FROM '{}/rows/day=2024-1-1/a.parquet'", False),
        ("SELECT *, 'a' AS b, 2*3/4 AS c, 'd' AS e FROM '{}/rows/day=2024-1-1/a.parquet'", False),
        ("SELECT *, 1 AS files FROM '{}/rows/day=2024-1-1/a.parquet' /* it's */", False),
    ],
    keep=8,
)
def test_no_folder_may_change_the_type_of_a_column(
    query: str, guessed: bool, tmp_path: Path
) -> None:
    """One row in a folder `day=unknown` would make text of DATE, and change all categories."""
    con, book = database(tmp_path), tmp_path / "ledger"
    for day in (1, 2):
        folder = tmp_path / f"rows/day=2024-1-{day}"
        folder.mkdir(parents=True)
        con.execute(f"COPY t TO '{folder}/a.parquet'")
    con.execute(f"CREATE VIEW Files AS FROM read_parquet('{tmp_path}/rows/*/*.parquet')")
    con.execute("CREATE MACRO found(p) AS TABLE FROM read_parquet(p || '/rows/*/*.parquet')")
    con.execute(f"CREATE MACRO pattern() AS '{tmp_path}/rows/*/*.parquet'")
    con.execute(
        f"CREATE MACRO usual(p := '{tmp_path}/rows/*/*.parquet') AS TABLE FROM read_parquet(p)"
    )
    con.execute('CREATE VIEW "it is ""AS x" AS FROM files')
    con.execute('CREATE TABLE "u.v" (u INTEGER)')
    rows = con.sql(query.format(tmp_path))
    if guessed:
        with pytest.raises(DpforestError, match="may change the type of a column: set hive_types"):
            fitted(con, rows, ledger=book, dataset="d")
        assert not debits(book)
    else:
        assert fitted(con, rows, ledger=book, dataset="d").private


def refused_if_too_deep(
    con: duckdb.DuckDBPyConnection, query: duckdb.DuckDBPyRelation, book: Path
) -> None:
    """How deep a query Python can read depends on its version."""
    try:
        fitted(con, query, ledger=book, dataset="d")
    except DpforestError as refusal:
        assert "too deeply nested" in str(refusal)  # noqa: PT017  it may be read, too


def test_a_deep_query_of_files_is_read_or_refused(tmp_path: Path) -> None:
    con, book = database(tmp_path), tmp_path / "ledger"
    con.execute(f"COPY t TO '{tmp_path}/a.parquet'")
    deep = f"SELECT * REPLACE ({'+'.join(['size'] * 500)} AS size) FROM '{tmp_path}/a.parquet'"
    refused_if_too_deep(con, con.sql(deep), book)


def test_a_relation_of_python_hides_no_path(tmp_path: Path) -> None:
    con, book = database(tmp_path), tmp_path / "ledger"
    (tmp_path / "day=1").mkdir()
    con.execute(f"COPY t TO '{tmp_path}/day=1/a.parquet'")
    files = con.sql(f"FROM '{tmp_path}/*/a.parquet'")  # noqa: F841  the query reads it
    with pytest.raises(DpforestError, match="does not say which files: write the other"):
        fitted(con, con.sql("FROM files"), ledger=book, dataset="d")
    assert not debits(book)


@pytest.mark.parametrize("hidden", ["a temporary view", "a registered frame", "another schema"])
def test_a_query_is_looked_at_where_its_names_mean_the_same(hidden: str, tmp_path: Path) -> None:
    """A table of the same name, which only another connection would read, hides nothing."""
    con, book = database(tmp_path), tmp_path / "book"
    (tmp_path / "rows.csv").write_text("colour,size,who,label\n")
    if hidden == "a temporary view":
        con.execute(f"CREATE TEMP VIEW t AS FROM '{tmp_path}/rows.csv'")
    elif hidden == "a registered frame":
        con.register("t", pandas.DataFrame(columns()))
    else:
        con.execute(f"CREATE SCHEMA s; CREATE VIEW s.t AS FROM '{tmp_path}/rows.csv'")
        con.execute("SET search_path = 's'")
    with pytest.raises(DpforestError, match="whose types may follow from the values"):
        fitted(con, con.sql("FROM t WHERE label IS NOT NULL"), ledger=book, dataset="d")
    assert not book.exists()


@some("kind", ["TABLE", "TEMP TABLE", "VIEW", "TEMP VIEW"], keep=2)
def test_no_table_takes_the_place_of_the_rows_of_a_query(kind: str, tmp_path: Path) -> None:
    """Whatever name the query has while it is read, the user cannot know it."""
    con, book = database(tmp_path), tmp_path / "book"
    rows = con.sql("FROM t WHERE size < 3")
    forest = fitted(con, rows, ledger=book, dataset="d")
    expected = evaluate(con, forest, rows, ledger=book, dataset="d")
    con.execute(f"CREATE {kind} dpforest_rows AS FROM t")
    assert evaluate(con, forest, rows, ledger=book, dataset="d") == expected
    assert 0 < expected.rows < len(ROWS)


def test_locked_settings_and_deep_queries_hide_nothing(tmp_path: Path) -> None:
    con, book = database(tmp_path), tmp_path / "book"
    shown = con.execute("SELECT current_setting('explain_output')").fetchone()
    fitted(con, con.sql("FROM t WHERE true"), ledger=book, dataset="d")
    assert con.execute("SELECT current_setting('explain_output')").fetchone() == shown
    con.execute("SET lock_configuration = true")
    (tmp_path / "rows.csv").write_text("colour,size,who,label\n")
    fitted(con, con.sql("FROM t WHERE true"), ledger=book, dataset="d")
    with pytest.raises(DpforestError, match="whose types may follow from the values"):
        fitted(con, con.sql(f"FROM '{tmp_path}/rows.csv'"), ledger=book, dataset="d")
    first, end = "SELECT * REPLACE (upper(colour) AS colour) FROM (" * 600, ")" * 600
    refused_if_too_deep(con, con.sql(f"{first} FROM t {end}"), book)
    hidden = con.sql(f"{first} FROM '{tmp_path}/rows.csv' {end}")
    with pytest.raises(DpforestError, match=r"too deeply nested|whose types may follow"):
        fitted(con, hidden, ledger=book, dataset="d")


def test_parameters_and_locked_settings_do_not_hide_a_file(tmp_path: Path) -> None:
    """DuckDB leaves out what has no rows, but its types decide about the types of all rows."""
    con, book = database(tmp_path), tmp_path / "book"
    (tmp_path / "rows.csv").write_text("colour,size,who,label\n")
    hidden = f"UNION ALL FROM '{tmp_path}/rows.csv' WHERE false"
    rows = con.sql(f"FROM t WHERE size >= $n {hidden}", params={"n": 0})
    for given in (rows, con.sql("FROM t WHERE size >= $n", params={"n": 0})):
        with pytest.raises(DpforestError, match="has parameters"):
            fitted(con, given, ledger=book, dataset="d")
    con.execute(f"CREATE TEMP VIEW v AS FROM t {hidden}; SET lock_configuration = true")
    for query in (f"FROM t {hidden}", "FROM v"):
        with pytest.raises(DpforestError, match="are locked"):
            fitted(con, con.sql(query), ledger=book, dataset="d")
    assert not book.exists()
    fitted(con, con.sql("FROM t WHERE size >= 0"), ledger=book, dataset="d")


def test_objects_of_python_are_given_themselves_not_by_a_query(tmp_path: Path) -> None:
    con, book = database(tmp_path), tmp_path / "book"
    for rows in (polars.DataFrame(columns()), polars.DataFrame(columns()).to_arrow()):
        with pytest.raises(DpforestError, match="reads python_arrow_scan"):
            fitted(con, con.sql("FROM rows WHERE size > 0"), ledger=book, dataset="d")
        fitted(con, rows, ledger=book, dataset="d")


def test_a_view_that_becomes_one_of_a_file_ends_the_run_before_the_debit(tmp_path: Path) -> None:
    con, book = database(tmp_path), tmp_path / "book"
    con.execute("CREATE VIEW v AS FROM t WHERE size > 0")
    given = {"domain": DOMAIN, "epsilon": 1, "ledger": book, "dataset": "d"}
    file = f"FROM '{tmp_path}/rows.csv'"
    alike = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in COLUMNS.items())
    other_type = "SELECT * REPLACE ('1' AS size) FROM t"
    for other in ("FROM t", file, f"SELECT {alike} {file}", other_type):
        run = prepare(con, con.sql("FROM v WHERE true"), **given, privacy_unit="row")
        (tmp_path / "rows.csv").write_text("colour,size,who,label\n")
        con.execute(f"CREATE OR REPLACE VIEW v AS {other}")
        if other == "FROM t":
            run.execute()
            continue
        with pytest.raises(DpforestError, match=r"follow from the values|have changed"):
            run.execute()
        con.execute("CREATE OR REPLACE VIEW v AS FROM t WHERE size > 0")
    assert len(debits(book)) == 1


def test_a_name_means_what_a_query_means_whatever_the_search_path_is() -> None:
    con = duckdb.connect()
    con.execute("CREATE SCHEMA s1; CREATE SCHEMA s2")
    con.execute("CREATE TABLE s2.t AS SELECT 2 AS x; CREATE TABLE main.t AS SELECT 0 AS x")
    con.execute("CREATE TABLE s2.u AS SELECT 2 AS x")
    con.execute("SET search_path = 's1,s2'")
    assert con.sql("FROM t").fetchall() == [(2,)]
    with pytest.raises(DpforestError, match="several tables"):
        find_rows(con, "t")
    assert not find_rows(con, con.sql("FROM t")).in_table
    assert find_rows(con, "u").table.schema == "s2"
    con.execute("SET search_path = 's2'")
    assert find_rows(con, con.sql("FROM u")).table.schema == "s2"


@pytest.mark.parametrize(
    "query",
    [
        "FROM '{}'",
        "FROM read_duckdb('{}', table_name = 't')",
        "FROM v",
        "FROM json_execute_serialized_sql(json_serialize_sql($$FROM '{}'$$))",
    ],
)
def test_a_query_of_a_database_that_is_not_attached_is_refused(query: str, tmp_path: Path) -> None:
    file, con = tmp_path / "other.duckdb", duckdb.connect()
    with duckdb.connect(str(file)) as other:
        other.execute("CREATE TABLE t AS SELECT 'red' AS colour, 'no' AS label, 1 AS size")
    con.execute(f"CREATE VIEW v AS FROM '{file}'; SET explain_output = 'optimized_only'")
    with pytest.raises(DpforestError, match="ATTACH the file"):
        fitted(con, con.sql(query.format(file)), ledger=tmp_path / "l", dataset="d")


def test_caps_are_checked_again_when_a_query_is_debited(tmp_path: Path) -> None:
    con, book = database(tmp_path), tmp_path / "ledger"
    con.execute("CREATE TABLE u AS FROM t; CREATE VIEW v AS FROM u WHERE size > 0")
    given: dict[str, Any] = {"domain": DOMAIN, "epsilon": 1, "ledger": book, "dataset": "d"}
    view, query = (prepare(con, con.sql(q), **given) for q in ("FROM v", "FROM t LIMIT 9"))
    find_rows(con, "t").account(book, None).set_cap(9 * NANO, 0, ROW, raise_cap=False)
    con.execute("CREATE OR REPLACE VIEW v AS FROM t WHERE size > 0")
    for run in (view, query):
        with pytest.raises(BudgetError, match='table "t", which has a cap'):
            run.execute()
        with pytest.raises(BudgetError, match='table "t", which has a cap'):
            train_many([run])
    assert not debits(book)


@pytest.mark.parametrize(
    ("query", "refused"),
    [
        ("FROM '{}' WHERE size < 9", False),
        ("FROM files WHERE size < 9", False),
        ("FROM '{}' WHERE size IN (SELECT size FROM t)", True),
        ("SELECT *, most(1) FROM '{}'", True),
        ("FROM '{}' UNION ALL FROM query('FROM t')", True),
        ("FROM '{}' WHERE size < getvariable('most')", True),
    ],
)
def test_the_cap_of_a_table_refuses_no_query_of_files_alone(
    query: str, refused: bool, tmp_path: Path
) -> None:
    con, book, file = database(tmp_path), tmp_path / "ledger", tmp_path / "rows.parquet"
    con.execute(f"COPY t TO '{file}'")
    con.execute(f"CREATE VIEW files AS FROM read_parquet('{file}')")
    con.execute("CREATE MACRO most(n) AS (SELECT max(size) FROM t)")
    find_rows(con, "t").account(book, None).set_cap(NANO, 0, ROW, raise_cap=False)
    if "getvariable" in query:
        con.execute("SET VARIABLE most = (SELECT max(size) FROM t)")
    given: dict[str, Any] = {"ledger": book, "dataset": "d"}
    if refused:
        with pytest.raises(BudgetError, match='table "t", which has a cap'):
            fitted(con, con.sql(query.format(file)), **given)
        assert not debits(book)
    else:
        assert fitted(con, con.sql(query.format(file)), **given).private


def test_no_macro_hides_what_a_query_reads(tmp_path: Path) -> None:
    con, book = database(tmp_path), tmp_path / "ledger"
    find_rows(con, "t").account(book, None).set_cap(NANO, 0, ROW, raise_cap=False)
    con.execute("""CREATE MACRO json_serialize_plan(x) AS '{"error": false}';
        CREATE MACRO json_serialize_sql(x) AS '{"statements": []}';
        CREATE MACRO duckdb_tables() AS TABLE FROM range(0);
        CREATE MACRO duckdb_databases() AS TABLE FROM range(0)""")
    with pytest.raises(BudgetError, match='table "t", which has a cap'):
        fitted(con, con.sql("FROM t WHERE size < 9"), ledger=book, dataset="d")
    assert not debits(book)


def test_a_query_is_refused_in_an_open_transaction_before_the_debit(tmp_path: Path) -> None:
    con, book = database(tmp_path), tmp_path / "ledger"
    run = prepare(
        con, con.sql("FROM t LIMIT 9"), domain=DOMAIN, epsilon=1, ledger=book, dataset="d"
    )
    con.execute("BEGIN")
    with pytest.raises(DpforestError, match="open transaction"):
        run.execute()
    with pytest.raises(DpforestError, match="open transaction"):
        fitted(con, con.sql("FROM t LIMIT 9"), ledger=book, dataset="d")
    assert not debits(book)
    con.execute("ROLLBACK")
    assert run.execute().private


def test_a_view_that_is_replaced_after_the_debit_is_read_as_it_was(tmp_path: Path) -> None:
    con, book, seen = database(tmp_path), tmp_path / "ledger", list[str]()
    con.execute("CREATE VIEW v AS FROM t WHERE size > 0; CREATE MACRO m() AS TABLE FROM v")
    con.execute("CREATE TABLE capped AS SELECT t.* FROM t, range(900)")
    find_rows(con, "capped").account(book, None).set_cap(NANO, 0, ROW, raise_cap=False)
    given: dict[str, Any] = {"domain": DOMAIN, "epsilon": 1000, "recipe": "greedy-tree"}
    run = prepare(con, con.sql("FROM m()"), **given, depth=1, ledger=book, dataset="d")

    def swap(event: Event) -> None:
        seen.append(event.phase)
        if len(seen) == 2:  # the first step after the debit; nothing is read yet
            con.cursor().execute("CREATE OR REPLACE VIEW v AS FROM capped")

    forest = run.execute(swap)
    assert seen[0] == Phase.DEBIT
    assert len(debits(book)) == 1
    counts = forest.trees[0].counts
    assert counts is not None
    assert counts[0].sum() < 900, "the rows of t, not those of the capped table"
    con.execute("BEGIN; ROLLBACK")  # no transaction was left open


def test_the_schema_of_the_models_holds_no_table_to_train_on(tmp_path: Path) -> None:
    con, book = database(tmp_path), tmp_path / "ledger"
    con.execute("CREATE SCHEMA dpforest; CREATE TABLE dpforest.t AS FROM t")
    for rows in ("dpforest.t", "memory.dpforest.t"):
        with pytest.raises(DpforestError, match="schema of the models"):
            find_rows(con, rows).account(book, None)


def test_macros_of_the_user_do_not_change_how_a_query_is_read() -> None:
    con = duckdb.connect()
    con.execute("CREATE TABLE t AS SELECT size::DOUBLE AS size FROM range(9) r(size)")
    for macro in ("ceil(x)", "isnan(x)", "greatest(x, y)", "least(x, y)", '"-"(x)'):
        con.execute(f"CREATE MACRO {macro} AS (SELECT 7 FROM t LIMIT 1)")
    relation = con.sql("SELECT size FROM t LIMIT 9")
    engine = find_rows(con, relation).engine
    assert isinstance(engine, SourceEngine)
    table = TableInfo(engine.source.catalog, "main", "query", {"size": BIGINT})
    with engine.source.opened(table) as rows:
        rows.fill()
        name = f'"{table.catalog}".main.query'
        assert rows.cursor.sql(f"SELECT sum(size) FROM {name}").fetchall() == [(36,)]


def test_a_query_cannot_read_a_capped_file(tmp_path: Path) -> None:
    con, book, path = duckdb.connect(), tmp_path / "ledger", parquet_file(tmp_path)
    query = f"FROM '{path}'"
    fitted(con, con.sql(query), ledger=book, dataset="d")
    DatasetAccount(Ledger(book), (path.resolve(),)).set_cap(9 * NANO, 0, ROW, raise_cap=False)
    with pytest.raises(BudgetError, match="may read files"):
        fitted(con, con.sql(query), ledger=book, dataset="d")
    fitted(con, path, ledger=book)


def test_a_query_of_a_file_of_a_capped_dataset_counts_in_that_dataset_alone(
    tmp_path: Path,
) -> None:
    con, book, path = duckdb.connect(), tmp_path / "ledger", parquet_file(tmp_path)
    query = f"FROM '{path}'"
    capped = DatasetAccount(Ledger(book), (path.resolve(),), "capped")
    capped.set_cap(NANO, 0, ROW, raise_cap=False)
    with pytest.raises(BudgetError, match="may read files"):
        fitted(con, con.sql(query), ledger=book, dataset="other")
    fitted(con, con.sql(query), ledger=book, dataset="capped")
    assert capped.budget().left_epsilon == 0


def test_a_relation_of_another_connection_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DpforestError, match="another connection"):
        fitted(duckdb.connect(), database(tmp_path).sql("FROM t WHERE true"), dataset="d")


@pytest.mark.parametrize(
    ("word", "times"), [("ATTACH", 1), ("BEGIN", 1), ("COMMIT", 1), ("DETACH", 1), ("DETACH", 3)]
)
def test_ctrl_c_leaves_neither_rows_nor_a_transaction(
    word: str, times: int, tmp_path: Path
) -> None:
    """The rows of a query are copied into a database that is attached meanwhile."""
    con, seen = database(tmp_path), list[str]()

    def interrupt(sql: str) -> None:
        seen.append(sql.splitlines()[-1].split()[0])
        if seen.count(word) <= times and seen[-1] == word:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fitted(con, con.sql("FROM t LIMIT 9"), ledger=tmp_path / "l", dataset="d", trace=interrupt)
    databases = con.execute("SELECT database_name FROM duckdb_databases()").fetchall()
    assert len(databases) == 3, "nothing stays attached"
    con.execute("BEGIN; ROLLBACK")
    fitted(con, con.sql("FROM t LIMIT 9"), ledger=tmp_path / "l", dataset="d")


@pytest.mark.parametrize("number", [1, 2])
def test_ctrl_c_leaves_no_setting_changed(number: int, tmp_path: Path) -> None:
    con, seen = database(tmp_path), list[str]()
    shown = con.execute("SELECT current_setting('explain_output')").fetchone()

    def interrupt(sql: str) -> None:
        if sql.splitlines()[-1].startswith("SET explain_output"):
            seen.append(sql)
            if len(seen) == number:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fitted(con, con.sql("FROM t LIMIT 9"), ledger=tmp_path / "l", dataset="d", trace=interrupt)
    assert con.execute("SELECT current_setting('explain_output')").fetchone() == shown


def test_a_query_that_fails_on_a_row_says_so_without_the_row(tmp_path: Path) -> None:
    con = database(tmp_path)
    rows = con.sql("SELECT * REPLACE (CAST('secret' || size AS INTEGER) AS size) FROM t")
    with pytest.raises(DpforestError, match="use TRY_CAST or TRY") as failed:
        fitted(con, rows, ledger=tmp_path / "l", dataset="d")
    assert "secret" not in str(failed.value)
    assert "The debit stays" in str(failed.value)
    con.execute("BEGIN; ROLLBACK")
