"""Training on what is in no table: files, DataFrames and queries."""

from __future__ import annotations

import datetime as dt
import gzip
import itertools
import os
import warnings
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from engine_conformance import COLUMNS, DOMAIN, ROWS, Subject, codes, conforms_without_tables

from dpforest_duckdb import (
    BudgetError,
    DpforestError,
    Forest,
    UsageError,
    budget,
    evaluate,
    prepare,
    train,
)
from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.file import domain_from_mapping
from dpforest_duckdb.domain.types import BIGINT, DOUBLE, VARCHAR, column_type
from dpforest_duckdb.engine import files
from dpforest_duckdb.engine.base import Coding
from dpforest_duckdb.engine.casts import _plain_text, _shortest
from dpforest_duckdb.engine.duckdb import DuckDBEngine
from dpforest_duckdb.engine.files import matched
from dpforest_duckdb.engine.read_types import LEAST_FLOAT, plain_text, shortest_number
from dpforest_duckdb.engine.sources import SourceEngine
from dpforest_duckdb.errors import NotPrivateWarning, PublicFactWarning
from dpforest_duckdb.ledger.anchor import TableInfo
from dpforest_duckdb.ledger.book import Ledger
from dpforest_duckdb.ledger.datasets import DatasetAccount
from dpforest_duckdb.ledger.entries import Debit
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.privacy.unit import PrivacyUnit
from dpforest_duckdb.progress import Event, Phase
from dpforest_duckdb.sql import Sql
from dpforest_duckdb.training.opening import find_rows
from dpforest_duckdb.training.train import train_many

LABEL, FLOAT = ("label", ("no", "yes")), column_type("FLOAT")
pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")

ROW = PrivacyUnit("row")
NAMES = list(COLUMNS)


def debits(book: Path) -> list[Debit]:
    """The runs that a ledger has."""
    return [entry for entry in Ledger(book).read().entries if isinstance(entry, Debit)]


def columns() -> dict[str, list[Any]]:
    return dict(zip(NAMES, map(list, zip(*ROWS, strict=True)), strict=True))


def arrays() -> dict[str, Any]:
    """NumPy arrays, with NaN for a missing number and None for missing text or a missing id."""
    rows = columns()
    return {
        "colour": np.array(rows["colour"], dtype=object),
        "size": np.array([np.nan if v is None else v for v in rows["size"]]),
        "who": np.array(rows["who"], dtype=object),
        "label": np.array(rows["label"], dtype=object),
    }


def database(tmp_path: Path) -> duckdb.DuckDBPyConnection:
    """A connection with the rows in a table `t`."""
    con = duckdb.connect()
    kinds = ", ".join(f'"{name}" {kind}' for name, kind in COLUMNS.items())
    con.execute(f"CREATE TABLE t ({kinds})")
    con.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", ROWS)
    return con


def csv_file(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    lines = [",".join("" if v is None else f" {v} " for v in row) for row in ROWS]
    path.write_text("\n".join([",".join(NAMES), *lines]) + "\n")
    return path


def parquet_file(tmp_path: Path) -> Path:
    path = tmp_path / "rows.parquet"
    with database(tmp_path) as con:
        con.table("t").write_parquet(str(path))
    return path


WAYS: dict[str, Callable[[duckdb.DuckDBPyConnection, Path], Any]] = {
    "csv": lambda con, folder: csv_file(folder),
    "parquet": lambda con, folder: parquet_file(folder),
    "arrays": lambda con, folder: arrays(),
    "pandas": lambda con, folder: pandas.DataFrame(arrays()),
    "pandas categories": lambda con, folder: pandas.DataFrame(arrays()).astype(
        {"colour": "category", "label": "category"}
    ),
    "pandas objects": lambda con, folder: pandas.DataFrame(columns(), dtype=object),
    "polars": lambda con, folder: polars.DataFrame(columns()),
    "polars categories": lambda con, folder: polars.DataFrame(columns()).with_columns(
        polars.col("colour", "label").cast(polars.Categorical)
    ),
    "arrow": lambda con, folder: polars.DataFrame(columns()).to_arrow(),
    "relation": lambda con, folder: con.sql("FROM t WHERE true"),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_source_gives_the_codes_of_its_rows(way: str, tmp_path: Path) -> None:
    con = database(tmp_path)
    found = find_rows(con, WAYS[way](con, tmp_path))
    info = found.engine.typed(found.table, DOMAIN, "who")
    domain = DOMAIN.bind(info.columns)
    with found.engine.snapshot(info) as rows:
        coded = rows.encode(Coding(domain, ROW, trees=1, sample="all", salt=1))
        colour, size = coded.count_classes(0, 1)
        units = rows.encode(Coding(domain, PrivacyUnit("who"), trees=1, sample="all", salt=1))
        bounded = units.count_leaves(0, 1).sum()
    for attribute, table in enumerate((colour, size)):
        for value, label in np.ndindex(*table[0].shape):
            assert table[0, value, label] == sum(
                c[attribute] == value and c[2] == label for c in codes()
            )
    assert bounded == len({r[2] for r in ROWS if r[2] is not None and r[3] in ("no", "yes")})
    databases = con.execute("SELECT database_name FROM duckdb_databases()").fetchall()
    assert len(databases) == 3, "nothing stays attached"


@pytest.mark.parametrize("way", ["csv", "relation"])
def test_rows_in_no_table_conform(way: str, tmp_path: Path) -> None:
    con = database(tmp_path)
    rows = WAYS[way](con, tmp_path)

    def insert(more: Sequence[tuple[object, ...]]) -> None:
        con.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", more)
        if isinstance(rows, Path):
            with rows.open("a") as file:
                file.writelines(",".join(map(str, row)) + "\n" for row in more)

    conforms_without_tables(Subject(find_rows(con, rows).engine, insert))


def fitted(con: duckdb.DuckDBPyConnection, rows: Any, **options: Any) -> Forest:
    given = {"domain": DOMAIN, "epsilon": 1, "recipe": "greedy-tree", **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        return train(con, rows, **given)


def test_a_query_of_a_whole_table_is_that_table(tmp_path: Path) -> None:
    con, book = database(tmp_path), tmp_path / "ledger"
    con.execute('CREATE SCHEMA s; CREATE TABLE s."a.b" AS FROM t; CREATE VIEW v AS FROM t')
    for relation in (con.table("t"), con.sql("FROM t"), con.sql('SELECT * FROM s."a.b"')):
        fitted(con, relation, ledger=book)
    assert [run.table.name for run in debits(book)] == ["t", "t", "s.a.b"]
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
        return [("postgres",)] if "SELECT type" in sql else run(engine, sql, *values, **options)

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
        fitted(con, con.sql(query), ledger=book, dataset="d")
    con, book = capped
    for query in ("FROM u WHERE size > 0", "SELECT u.* FROM u, range(2)"):
        fitted(con, con.sql(query), ledger=book, dataset="d")


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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize("kind", ["TABLE", "TEMP TABLE", "VIEW", "TEMP VIEW"])
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
    deep = "SELECT * REPLACE (size + 1 AS size) FROM (" * 600 + "FROM t" + ")" * 600
    with pytest.raises(DpforestError, match="too deeply nested"):
        fitted(con, con.sql(deep), ledger=book, dataset="d")


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
    for other in ("FROM t", f"FROM '{tmp_path}/rows.csv'", "SELECT * REPLACE ('1' AS size) FROM t"):
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


def test_a_name_means_what_a_query_means_whatever_the_search_path_is(tmp_path: Path) -> None:
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
    assert not debits(book)


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

    forest = run.execute(observe=swap)
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


def test_a_relation_of_another_connection_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DpforestError, match="another connection"):
        fitted(duckdb.connect(), database(tmp_path).sql("FROM t WHERE true"), dataset="d")


def test_files_are_known_by_their_resolved_paths(tmp_path: Path) -> None:
    con, book, path = duckdb.connect(), tmp_path / "ledger", csv_file(tmp_path)
    link = tmp_path / "link.csv"
    link.symlink_to(path)
    fitted(con, path, ledger=book)
    fitted(con, link, ledger=book)
    fitted(con, tmp_path / "." / "rows.csv", ledger=book)
    assert DatasetAccount(Ledger(book), (path,)).budget().spent_epsilon == 3 * NANO


def test_a_glob_is_all_of_its_files_whatever_the_order_of_columns(tmp_path: Path) -> None:
    con, book, path = duckdb.connect(), tmp_path / "ledger", csv_file(tmp_path)
    header, *lines = path.read_text().splitlines()
    middle = len(lines) // 2
    (tmp_path / "part-1.csv").write_text("\n".join([header, *lines[:middle]]))
    turned = [";".join(reversed(line.split(","))) for line in (header, *lines[middle:])]
    with gzip.open(tmp_path / "part-2.csv.gz", "wt") as stream:
        stream.write("\ufeff" + "\n".join(turned))
    parts = tmp_path / "part-*"
    whole, split = (fitted(con, p, ledger=book, seed=3, recipe="boosted") for p in (path, parts))
    assert [t.votes.tolist() for t in whole.trees] == [t.votes.tolist() for t in split.trees]
    assert [run.table.name for run in debits(book)] == [
        "rows.csv",
        "part-1.csv",
        "part-2.csv.gz",
    ]
    assert split.name == "part"


def test_no_value_of_a_csv_decides_about_a_type_or_fails_a_run(tmp_path: Path) -> None:
    """Rows that are no numbers, too long, not UTF-8 or unfinished change counts, nothing else."""
    con, path = duckdb.connect(), tmp_path / "odd.csv"
    odd = [b"red,abc,1,yes", b"\xff,1,1,no", b"red,1,1,no,1,1,1", b"red", b'"a\nb",2,1,no']
    odd += [b"red,1e999,1,yes", b"red,nan,1,yes", b"red,1.5,1,no", b",,,", b'"red,1,1,no']
    path.write_bytes(b"colour,size,who,label\n" + b"\n".join([b"red,1,1,yes"] * 50 + odd))
    found = find_rows(con, path)
    info = found.engine.typed(found.table, DOMAIN, None)
    assert info.columns == {"colour": VARCHAR, "size": BIGINT, "label": VARCHAR}
    with found.engine.snapshot(info) as rows:
        coded = rows.encode(Coding(DOMAIN.bind(info.columns), ROW, trees=1, sample="all", salt=1))
        size = coded.count_classes(0, 1)[1][0].sum(axis=1)
    # 1 → up to 1 (in the long row too), 1.5 → up to 2, infinity above all, text and NaN missing
    assert size.tolist() == [0, 51, 2, 1, 2]


def test_whole_numbers_from_fractions_keep_their_side_of_an_edge(tmp_path: Path) -> None:
    values = [-0.5, 0, 0.5, 1, 1.001, 2, 9e18, -9e18, np.inf, -np.inf, np.nan]
    frame = {"size": np.array(values), "label": np.array(["no"] * len(values), dtype=object)}
    domain = Domain((DOMAIN.attributes[1],), "label", ("no", "yes"))
    found = find_rows(duckdb.connect(), frame)
    info = found.engine.typed(found.table, domain, None)
    with found.engine.snapshot(info) as rows:
        coded = rows.encode(Coding(domain.bind(info.columns), ROW, trees=1, sample="all", salt=1))
        counts = coded.count_classes(0, 1)[0][0, :, 0].tolist()
    edges = [0, 1, 2]
    expected = [0] * 5
    for value in values:
        expected[4 if np.isnan(value) else int(np.searchsorted(edges, value))] += 1
    assert counts == expected


def test_a_frame_with_missing_numbers_is_read_in_the_same_types(tmp_path: Path) -> None:
    """One row makes a pandas column of numbers floating: the model must not show it."""
    whole = pandas.DataFrame({"size": [1, 2], "colour": [1, 2], "label": ["no", "yes"]})
    holed = pandas.DataFrame({"size": [1, None], "colour": [1, None], "label": ["no", None]})
    domain = domain_from_mapping(
        {
            "target": "label",
            "column": [
                {"name": "size", "kind": "numeric", "lower": 0, "upper": 9},
                {"name": "colour", "kind": "categorical", "domain": [1, 2]},
                {"name": "label", "kind": "categorical", "domain": ["no", "yes"]},
            ],
        }
    )
    types = []
    for frame in (whole, holed):
        found = find_rows(duckdb.connect(), frame)
        types.append(found.engine.typed(found.table, domain, None).columns)
    assert types[0] == types[1] == {"size": BIGINT, "colour": DOUBLE, "label": VARCHAR}


def test_a_file_that_is_written_during_a_run_fails_it(tmp_path: Path) -> None:
    con, path = duckdb.connect(), parquet_file(tmp_path)
    run = prepare(con, path, domain=DOMAIN, epsilon=1, ledger=tmp_path / "ledger")
    found = find_rows(con, path)
    with (
        pytest.raises(DpforestError, match="changed while they were read"),
        found.engine.snapshot(found.engine.typed(found.table, DOMAIN, None)),
    ):
        path.touch()
    assert run.execute().private, "the file as it is now"


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_files_that_are_gone_or_have_other_columns_are_refused_before_the_debit(
    kind: str, tmp_path: Path
) -> None:
    con, book = duckdb.connect(), tmp_path / "ledger"
    path = csv_file(tmp_path) if kind == "csv" else parquet_file(tmp_path)
    run = prepare(con, path, domain=DOMAIN, epsilon=1, ledger=book)
    duckdb.sql(f"COPY (SELECT 1 AS size, 'secret-value' AS label) TO '{path}'")
    with pytest.raises(DpforestError, match='columns of "rows" have changed since'):
        run.execute()
    path.unlink()
    with pytest.raises(DpforestError, match="is gone since the run was planned"):
        run.execute()
    assert not book.exists()


BAD_FILES: dict[str, tuple[bytes | None, str]] = {
    "missing.csv": (None, "no data file"),
    "none-*.csv": (None, "no data file"),
    "empty.csv": (b"", "no header"),
    "blank.csv": (b"\n\n", "no header"),
    "twice.csv": (b"size,Size,label\n1,2,no\n", "names a column twice"),
    "latin.csv": (b"gr\xf6sse,label\n1,no\n", "not UTF-8"),
    "headless.csv": (b"secret-value,17,no\n", 'no column "label"'),
    "open.csv": (b'colour,label,size,"who\nsecret-value,no,1,2\n', "no header"),
    "broken.parquet": (b"PAR1 no", "cannot be read as Parquet"),
    "empty.parquet": (b"", "cannot be read as Parquet"),
    "text.csv.gz": (b"colour,size,label\n", "cannot be read"),
    "notes.txt": (b"colour,size,label\n", "Parquet files alone"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_is_refused_before_the_debit(name: str, tmp_path: Path) -> None:
    content, words = BAD_FILES[name]
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DpforestError, match=words) as refused:
        fitted(duckdb.connect(), tmp_path / name, ledger=tmp_path / "ledger")
    assert "secret-value" not in str(refused.value)
    assert not (tmp_path / "ledger").exists()


@pytest.mark.parametrize("name", ["rows[1].csv", "row?.csv", "rows*.csv"])
def test_a_file_whose_name_is_a_pattern_is_refused(name: str, tmp_path: Path) -> None:
    path = csv_file(tmp_path)
    path.rename(tmp_path / "rows1.csv")
    (tmp_path / name).write_bytes((tmp_path / "rows1.csv").read_bytes())
    for rows in (tmp_path / name, tmp_path / "*.csv"):
        with pytest.raises(DpforestError, match="pattern of other files"):
            matched(rows)


def test_a_file_with_two_names_is_not_read_twice(tmp_path: Path) -> None:
    path = csv_file(tmp_path)
    (tmp_path / "same.csv").hardlink_to(path)
    with pytest.raises(DpforestError, match="hard links"):
        matched(tmp_path / "*.csv")
    assert matched(path) == (path.resolve(),)


def test_a_folder_and_mixed_kinds_are_refused(tmp_path: Path) -> None:
    csv_file(tmp_path), parquet_file(tmp_path)
    with pytest.raises(DpforestError, match="is a folder"):
        matched(tmp_path)
    with pytest.raises(DpforestError, match="CSV files alone"):
        matched(tmp_path / "rows.*")
    duckdb.sql(f"COPY (SELECT 1 AS size) TO '{tmp_path / 'other.parquet'}'")
    with pytest.raises(DpforestError, match="other columns or types"):
        find_rows(duckdb.connect(), tmp_path / "*.parquet")


@pytest.mark.parametrize(
    "rows", [None, 7, b"t", [1, 2], [["a", 1]], {}, {"a": [1]}, np.zeros((3, 2)), object()]
)
def test_what_is_no_table_is_refused_by_its_kind(rows: Any) -> None:
    with pytest.raises(UsageError, match="table's name, a DuckDB relation, a pandas"):
        fitted(duckdb.connect(), rows)


def test_frames_with_bad_columns_are_refused(tmp_path: Path) -> None:
    con = duckdb.connect()
    twice = pandas.DataFrame([[1, 2]], columns=["a", "A"])
    uneven = {"a": np.zeros(2), "b": np.zeros(3)}
    lists = polars.DataFrame({**columns(), "colour": [[1]] * len(ROWS)})
    for frame, words in (
        (twice, "one name"),
        (uneven, "length"),
        (lists, "cannot be an attribute"),
    ):
        with pytest.raises(DpforestError, match=words):
            fitted(con, frame, ledger=tmp_path / "ledger", dataset="d")
    assert not (tmp_path / "ledger").exists()


def test_names_of_columns_need_not_be_text(tmp_path: Path) -> None:
    frame = pandas.DataFrame(arrays() | {"7": 1}).rename(columns={"7": 7})
    assert fitted(duckdb.connect(), frame, ledger=tmp_path / "ledger", dataset="d").private


def test_runs_under_several_names_are_checked_under_each(tmp_path: Path) -> None:
    """Runs in one pass: if one of their budgets does not allow all of its runs, none is started."""
    con, book, frame = duckdb.connect(), tmp_path / "ledger", arrays()
    DatasetAccount(Ledger(book), dataset="small").set_cap(NANO, 0, ROW, raise_cap=False)
    runs = [
        prepare(con, frame, domain=DOMAIN, ledger=book, dataset=name, epsilon="0.6")
        for name in ("open", "small", "small")
    ]
    with pytest.raises(BudgetError, match=r'0.4 .* dataset "small".* The runs before it count too'):
        list(train_many(runs))
    assert not debits(book)
    assert len(list(train_many(runs[:2]))) == 2


def test_rows_without_a_table_need_a_ledger_and_a_name(tmp_path: Path) -> None:
    con, frame = duckdb.connect(), arrays()
    with pytest.raises(UsageError, match="dataset"):
        fitted(con, frame, ledger=tmp_path / "ledger")
    with pytest.raises(DpforestError, match="ledger"):
        fitted(con, frame, dataset="d")
    with pytest.raises(DpforestError, match="ledger"):
        fitted(con, csv_file(tmp_path))
    with pytest.raises(UsageError, match="a table has a budget of its own"):
        fitted(database(tmp_path), "t", ledger=tmp_path / "ledger", dataset="d")
    disk = duckdb.connect(str(tmp_path / "a.duckdb"))
    forest = fitted(disk, frame, dataset="d", name="m")
    assert forest.private
    assert debits(tmp_path / "a.duckdb.ledger")[0].table.name == "d"
    assert disk.execute("SELECT name FROM dpforest.models").fetchall() == [("m",)]


def test_a_path_or_a_dict_in_the_wrong_place_gets_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="con must be a DuckDB connection or a Spark"):
        fitted(tmp_path / "a.duckdb", "t")  # type: ignore[arg-type]
    options: tuple[dict[str, Any], ...] = (
        {"seed": -1},
        {"progress": 5},
        {"trace": 5},
        {"target": "size"},
    )
    for wrong in options:
        with pytest.raises(UsageError, match=next(iter(wrong))):
            fitted(duckdb.connect(), arrays(), dataset="d", ledger=tmp_path / "l", **wrong)
    assert not (tmp_path / "l").exists()
    with pytest.raises(UsageError, match="domain must be"):
        fitted(
            duckdb.connect(), arrays(), domain={"size": (0, 9)}, dataset="d", ledger=tmp_path / "l"
        )


@pytest.mark.parametrize(
    "way", ["arrays", "pandas", "pandas objects", "polars", "arrow", "relation"]
)
def test_frames_and_relations_are_predicted_as_the_table_is(way: str, tmp_path: Path) -> None:
    con = database(tmp_path)
    forest = fitted(con, con.table("t"), ledger=tmp_path / "ledger")
    rows = "FROM t WHERE true" if way == "relation" else None
    frame = con.sql(rows) if rows else WAYS[way](con, tmp_path)
    found = forest.predict(con, frame)
    assert {"colour", "size", "prediction", "p_no"} <= set(found.columns)
    expected = forest.predict(con, "t").fetchnumpy()["p_yes"]
    assert (found.fetchnumpy()["p_yes"] == expected).all()


def test_what_is_no_table_is_not_predicted(tmp_path: Path) -> None:
    con = database(tmp_path)
    forest = fitted(con, "t", ledger=tmp_path / "ledger")
    for rows in (None, [1], Path("x.csv"), 7):
        with pytest.raises(UsageError, match="rows to predict"):
            forest.predict(con, rows)
    with pytest.raises(UsageError, match="con must be"):
        forest.predict("a.duckdb", "t")
    with pytest.raises(UsageError, match="key must be a list"):
        forest.to_sql("t", dialect="postgres", key="who")


@pytest.mark.parametrize("more", [None, Decimal("9.25")])
def test_no_digit_of_a_decimal_in_a_file_changes_its_categories(
    more: Decimal | None, tmp_path: Path
) -> None:
    values = [Decimal("1.5"), Decimal("2.5"), Decimal("2.5"), *([more] if more else [])]
    frame = pandas.DataFrame({"a": values, "y": values})
    frame.to_parquet(tmp_path / "rows.parquet")
    code, word = ({"kind": "categorical", "domain": ["1.5", "2.5", *w]} for w in ([], ["unknown"]))
    for a, y in ((code, word), (word, code)):
        domain = domain_from_mapping(
            {"target": "y", "column": [{"name": "a", **a}, {"name": "y", **y}]}
        )
        with pytest.raises(DpforestError, match="a category that is no number never occurs"):
            cells(tmp_path / "rows.parquet", domain)
    domain = domain_from_mapping(
        {"target": "y", "column": [{"name": "a", **code}, {"name": "y", **code}]}
    )
    assert cells(tmp_path / "rows.parquet", domain)[:2] == [[1, 0], [0, 2]]


def test_nested_columns_that_are_not_used_may_differ_between_files(tmp_path: Path) -> None:
    for number, (tags, dicts) in enumerate(
        [([[], []], [{"k": 1}] * 2), ([["x"], []], [{"k": 1}, {"other": "w"}])]
    ):
        frame = pandas.DataFrame({**DOUBLED, "tags": tags, "dicts": dicts})
        frame.to_parquet(tmp_path / f"{number}.parquet")
    assert np.sum(cells(tmp_path / "*.parquet", of_texts())) == 4


def test_rows_after_a_long_record_of_a_csv_file_are_read(tmp_path: Path) -> None:
    """DuckDB reads 32 MB at once by default, and loses what follows a longer record."""
    path, row, before = tmp_path / "rows.csv", "p,1,no\n", 4_550_000
    path.write_text("a,n,y\n" + row * before + 'p,"' + "z\n" * 20_000_000 + '",yes\n' + row * 9)
    assert np.sum(cells(path, of_texts())) == before + 10


def test_a_csv_file_is_read_in_buffers_of_its_size(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(bytes(50_000))
    assert files._buffer(path) == 50_000 * 1032
    path = path.rename(tmp_path / "rows.csv")
    assert files._buffer(path) == files.LEAST_BUFFER
    os.truncate(path, 2**40)
    assert files._buffer(path) == files.LONGEST_RECORD


DOUBLED: dict[str, list[Any]] = {"a": ["p", "q"], "y": ["no", "yes"]}


def of_texts() -> Domain:
    columns = [
        {"name": "a", "kind": "categorical", "domain": ["p", "q"]},
        {"name": "y", "kind": "categorical", "domain": ["no", "yes"]},
    ]
    return domain_from_mapping({"target": "y", "column": columns})


@pytest.mark.parametrize("more", [[], [Decimal("1e45")]])
@pytest.mark.parametrize("kind", ["list", "struct", "category", "codes", "pandas codes"])
def test_decimals_of_many_digits_are_read_in_any_column(kind: str, more: list[Decimal]) -> None:
    values = [Decimal("1.5"), Decimal("2.5"), *more]
    labels = ["no"] * len(values)
    frame: Any
    if kind in ("list", "struct"):
        z = pyarrow.array([[x] if kind == "list" else {"a": x} for x in values])
        frame = pyarrow.table({"a": ["p"] * len(values), "y": labels, "z": z})
        assert np.sum(cells(frame, of_texts())) == len(values)
        return
    coded = pyarrow.array(values).dictionary_encode()
    frame = pyarrow.table({"a": coded, "y": labels})
    if kind == "pandas codes":
        decimals = pandas.array(values, dtype=pandas.ArrowDtype(pyarrow.array(values).type))
        frame = pandas.DataFrame({"a": pandas.Categorical(decimals), "y": labels})
    read = {"kind": "categorical", "domain": ["1.5", "2.5"]}
    if kind == "category":
        read = {"kind": "numeric", "lower": 1.0, "upper": 3.0, "bins": 2}
    label = {"name": "y", "kind": "categorical", "domain": ["no", "yes"]}
    domain = domain_from_mapping({"target": "y", "column": [{"name": "a", **read}, label]})
    counts = np.array(cells(frame, domain))[:, 0]
    assert counts[:2].tolist() == [1, 1 + len(more) * (kind == "category")]


def test_numbers_of_many_digits_in_nested_columns_of_polars_refuse_nothing() -> None:
    for more in ([], [2**100]):
        values = [{"k": x} for x in [1, 2, *more]]
        frame = polars.DataFrame(
            {
                "a": ["p"] * len(values),
                "y": ["no"] * len(values),
                "z": polars.Series(values, strict=False),
            }
        )
        assert np.sum(cells(frame, of_texts())) == len(values)


@pytest.mark.parametrize("last", ["b", "b\0"])
def test_no_id_among_categories_decides_whether_they_are_a_unit(last: str) -> None:
    ids = pandas.Categorical.from_codes([0, 1], pandas.Index(["a", last], dtype=object))
    frame = pandas.DataFrame({**DOUBLED, "id": ids})
    rows = find_rows(duckdb.connect(), frame)
    assert rows.engine.typed(rows.table, of_texts(), "id").columns["id"] == VARCHAR


def test_one_thread_reads_a_csv_file(tmp_path: Path) -> None:
    """Several would begin in the middle of this note, and count its lines as 336,669 rows."""
    path, line = tmp_path / "notes.csv", f"0,{'x' * 60},no\n"
    note = '7,"' + "1,n,yes\n" * 200_000 + '",yes\n'
    path.write_text("size,note,label\n" + line * 120_000 + note + line * 80_000)
    domain = Domain(DOMAIN.attributes[1:], "label", ("no", "yes"))
    con = duckdb.connect(config={"threads": 2})
    rows = find_rows(con, path)
    info = rows.engine.typed(rows.table, domain, None)
    with rows.engine.snapshot(info) as snapshot:
        coded = snapshot.encode(
            Coding(domain.bind(info.columns), ROW, trees=1, sample="all", salt=1)
        )
        assert coded.count_leaves(0, 1).tolist() == [[200_000, 1]]


@pytest.mark.parametrize("labels", [[0, 1], [0.0, 1.0], ["0", "1"], ["0.0", "1"]])
@pytest.mark.parametrize("library", [dict, pandas.DataFrame])
def test_one_value_of_a_frame_does_not_change_how_the_others_are_read(
    library: Callable[[Any], Any], labels: list[Any]
) -> None:
    """A word makes objects or text of a column of numbers, a missing value makes floats of it."""
    colours, domain = (
        [1, 2, 1.0, 2.0],
        domain_from_mapping(
            {
                "target": "label",
                "column": [
                    {"name": "colour", "kind": "categorical", "domain": [1, 2]},
                    {"name": "label", "kind": "categorical", "domain": [0, 1]},
                ],
            }
        ),
    )
    found = []
    for more in ([], [np.nan], ["n/a"], [0.5]):
        given = {"colour": colours + more, "label": labels * 2 + more}
        kind = object if more == ["n/a"] else None
        rows = find_rows(
            duckdb.connect(),
            library({name: np.array(values, dtype=kind) for name, values in given.items()}),
        )
        info = rows.engine.typed(rows.table, domain, None)
        with rows.engine.snapshot(info) as snapshot:
            coded = snapshot.encode(
                Coding(domain.bind(info.columns), ROW, trees=1, sample="all", salt=1)
            )
            found.append((info.columns, coded.count_classes(0, 1)[0].tolist()))
    assert all(counts == found[0][1] for _, counts in found)
    assert np.sum(found[0][1]) == 4
    assert all(kinds["colour"] == DOUBLE for kinds, _ in found)
    assert all(kinds["label"] == BIGINT for kinds, _ in found), "the model has this type"


@pytest.mark.parametrize("more", [None, "unknown", dt.datetime(2020, 1, 5), 5])
def test_one_value_does_not_decide_whether_moments_in_a_time_zone_are_read(more: Any) -> None:
    """pandas makes objects of all, which are read by their text."""
    edges = [dt.date(2020, 1, day) for day in (2, 3, 4)]
    column = {"name": "q", "kind": "numeric", "edges": edges}
    label = {"name": "y", "kind": "categorical", "domain": ["no", "yes"]}
    domain = domain_from_mapping({"target": "y", "column": [column, label]})
    moments = [dt.datetime(2020, 1, 2 + i % 2, tzinfo=dt.UTC) for i in range(8)]

    def counts(column: list[Any]) -> np.ndarray[Any, Any]:
        return np.array(cells(pandas.DataFrame({"q": column, "y": "no"}), domain))

    expected = counts(moments)
    assert expected[:, 0].tolist()[:2] == [4, 4]
    assert np.abs(counts([*moments, more]) - expected).sum() == 1


@pytest.mark.parametrize("arrow", [False, True])
@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
@pytest.mark.parametrize(
    "far", ["20200-01-03", "9999-12-31T23:00", "10000-01-01T01:00", "0001-01-01", "-0005-01-01"]
)
def test_a_far_moment_in_a_time_zone_ends_no_run(far: str, zone: str, arrow: bool) -> None:
    """Some have no text in Python, and so are missing."""
    column = {"name": "q", "kind": "numeric", "edges": [dt.date(2020, 1, d) for d in (2, 3)]}
    label = {"name": "y", "kind": "categorical", "domain": ["no", "yes"]}
    domain = domain_from_mapping({"target": "y", "column": [column, label]})

    def counts(moments: list[str]) -> np.ndarray[Any, Any]:
        plain = pandas.Series(np.array(moments, "M8[s]"))
        zoned = plain.dt.tz_localize("UTC").dt.tz_convert(zone)
        if arrow:
            zoned = zoned.astype(pandas.ArrowDtype(pyarrow.timestamp("s", tz=zone)))
        return np.array(cells(pandas.DataFrame({"q": zoned, "y": "no"}), domain))

    usual = ["2020-01-02", "2020-01-03", "NaT"]
    assert np.abs(counts([*usual, far]) - counts(usual)).sum() == 1


def test_moments_in_a_time_zone_are_predicted_as_they_are_trained(
    con: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    """In their own zone, whatever that of the connection is; without a value far from today."""
    column = {"name": "q", "kind": "numeric", "edges": [dt.date(2019, 12, 31)]}
    label = {"name": "y", "kind": "categorical", "domain": ["no", "yes"]}
    domain = domain_from_mapping({"target": "y", "column": [column, label]})
    moments = np.array(["2019-12-31T20:00", "2019-12-30", "20200-01-01"] * 300, "M8[s]")
    zoned = pandas.Series(moments).dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")
    frame = pandas.DataFrame({"q": zoned, "y": ["yes", "no", "yes"] * 300})
    con.execute("SET TimeZone = 'America/New_York'")
    forest = train(
        con, frame, domain=domain, epsilon=100, recipe="dpdf", depth=1, privacy_unit="row",
        ledger=tmp_path / "ledger", dataset="d",
    )  # fmt: skip
    found = forest.predict(con, frame).filter("prediction = y").aggregate("count(*)").fetchall()
    assert found == [(900,)]


@pytest.mark.parametrize(
    "column",
    [
        pandas.Series(pandas.to_timedelta([1, 2, 3], unit="D")).astype("category"),
        pandas.Series([dt.time(1), dt.time(2)]).astype(pandas.ArrowDtype(pyarrow.time64("us"))),
    ],
    ids=["categories", "Arrow"],
)
def test_one_value_does_not_decide_whether_times_are_read(column: Any) -> None:
    bounds = {"name": "q", "kind": "numeric", "lower": 0, "upper": 9}
    label = {"name": "y", "kind": "categorical", "domain": ["no", "yes"]}
    domain = domain_from_mapping({"target": "y", "column": [bounds, label]})
    more = pandas.concat([column.astype(object), pandas.Series(["w"], dtype=object)])
    found = [cells(pandas.DataFrame({"q": each, "y": "no"}), domain) for each in (column, more)]
    assert [rows[-1][0] for rows in found] == [len(column), len(column) + 1]


@pytest.mark.parametrize("more", [None, "unknown", 5])
@pytest.mark.parametrize("unit", ["s", "us", "ns"])
def test_time_differences_are_never_refused_and_never_numbers(unit: str, more: Any) -> None:
    bounds = {"name": "q", "kind": "numeric", "lower": 0, "upper": 9}
    label = {"name": "y", "kind": "categorical", "domain": ["no", "yes"]}
    domain = domain_from_mapping({"target": "y", "column": [bounds, label]})
    days = np.array([1, 2, 3], "m8[D]").astype(f"m8[{unit}]")
    series = pandas.Series(days)
    for column in (series, pandas.concat([series, pandas.Series([more], dtype=object)])):
        found = cells(pandas.DataFrame({"q": column, "y": "no"}), domain)
        assert found[-1][0] == 3 + (len(column) > 3 and more != 5)
    found = cells({"q": days, "y": np.array(["no"] * 3)}, domain)
    assert found[-1][0] == 3


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_a_moment_far_from_today_ends_no_run(unit: str) -> None:
    """DuckDB has no text of it, and its database cannot be used after it was asked for one."""
    label = {"name": "y", "kind": "categorical", "domain": ["no", "yes"]}
    edges = [dt.date(2020, 1, 1), dt.date(2021, 1, 1)]
    moments = np.array(["2020-06-01", "300000-01-01", "NaT"], f"M8[{unit}]")
    for column in (
        {"name": "q", "kind": "numeric", "edges": edges},
        {"name": "q", "kind": "categorical", "domain": ["2020-06-01 00:00:00", "x"]},
    ):
        domain = domain_from_mapping({"target": "y", "column": [column, label]})
        for frame in ({"q": moments}, pandas.DataFrame({"q": moments})):
            frame["y"] = np.array(["no"] * 3)
            assert sorted(row[0] for row in cells(frame, domain) if row[0]) in ([1, 2], [1, 1, 1])


CODES = [  # of categories, and a value of each
    (["01", "02"], ["01", "02"]),
    (["00501", "90210"], ["00501", "90210"]),
    (["+1", "-1"], ["+1", "-1"]),
    (["1.50", "2.25"], ["1.50", "2.25"]),
    (["1.0", "2.0"], ["1.0", "2.0"]),
    (["1", "unknown"], [1, "unknown"]),
    (["1", "2", "unknown"], [1, 2, "unknown"]),
    (["2020-01-01", "2020-01-02"], [dt.date(2020, 1, 1), dt.date(2020, 1, 2)]),
    (["1.5", "unknown"], [Decimal("1.5"), "unknown"]),
    (["0", "1"], [False, True]),
    (["1", "2"], [True, 2]),
    (["true", "b"], [True, "b"]),
    (["\u0661", "\u0662"], ["\u0661", "\u0662"]),
    (["12345678901234567", "3"], [12345678901234567, 3]),
]


@pytest.mark.parametrize(("categories", "values"), CODES)
@pytest.mark.parametrize(
    "more",
    [
        None,
        *(
            pytest.param(value, marks=pytest.mark.slow)
            for value in ("n/a", 2.5, Decimal("1.234567"), dt.datetime(2021, 5, 6, 7))
        ),
    ],
)
def test_values_of_a_frame_are_their_categories_beside_any_other_value(
    categories: list[str], values: list[Any], more: Any
) -> None:
    for same in itertools.product(*([value, *alike(value)] for value in values)):
        column = [*same, *same, more]
        for frame in ({"q": np.array(column, dtype=object)}, pandas.DataFrame({"q": column})):
            assert counted(frame, categories) == [2] * len(categories), (column, frame)
    for only in values:  # one kind alone, so that pandas has no objects
        column = [*[only] * 3, *([more] if isinstance(more, float) else [None])]
        expected = [3 * (value == only) for value in values]
        assert counted(pandas.DataFrame({"q": column}), categories) == expected, column


def alike(value: Any) -> list[Any]:
    """What pandas makes of a value because of others in its column."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53:
        return [float(value)]
    return [dt.datetime(value.year, value.month, value.day)] if isinstance(value, dt.date) else []


def counted(frame: Any, categories: list[str], column: str = "q") -> list[int]:
    """How many rows of a frame have each category of a column."""
    frame["y"] = np.array(["no"] * len(frame[column]), dtype=object)
    columns = [
        {"name": column, "kind": "categorical", "domain": categories},
        {"name": "y", "kind": "categorical", "domain": ["no", "yes"]},
    ]
    found = cells(frame, domain_from_mapping({"target": "y", "column": columns}))
    return [row[0] for row in found[: len(categories)]]


def cells(frame: Any, domain: Domain) -> list[list[int]]:
    """How many rows of a frame each cell of the first attribute has, by class."""
    rows = find_rows(duckdb.connect(), frame)
    info = rows.engine.typed(rows.table, domain, None)
    with rows.engine.snapshot(info) as snapshot:
        coded = snapshot.encode(
            Coding(domain.bind(info.columns), ROW, trees=1, sample="all", salt=1)
        )
        return coded.count_classes(0, 1)[0][0].tolist()


def test_truth_values_of_a_frame_are_0_and_1_whatever_the_others_are() -> None:
    truth = {"kind": "categorical", "domain": [False, True]}
    domain = domain_from_mapping(
        {"target": "label", "column": [{"name": "smoker", **truth}, {"name": "label", **truth}]}
    )
    found = []
    for kind, more in itertools.product((int, float), ([], [np.nan], ["n/a"])):
        smoker = [*map(kind, (0, 1, 2, 0, 1, 2)), *more]
        frame = {"smoker": np.array(smoker, dtype=object if more == ["n/a"] else None)}
        frame["label"] = np.array([True, False] * 3 + [True] * len(more))
        rows = find_rows(duckdb.connect(), frame)
        info = rows.engine.typed(rows.table, domain, None)
        with rows.engine.snapshot(info) as snapshot:
            coded = snapshot.encode(
                Coding(domain.bind(info.columns), ROW, trees=1, sample="all", salt=1)
            )
            found.append(coded.count_classes(0, 1)[0][0, :2].tolist())
    assert found == [[[1, 1], [1, 1]]] * 6


@pytest.mark.parametrize("kind", [object, "datetime64[ns]"])
def test_dates_of_a_frame_may_be_text(kind: Any, tmp_path: Path) -> None:
    bounds = {"lower": dt.date(2020, 1, 1), "upper": dt.date(2029, 12, 31)}
    label = {"name": "y", "kind": "categorical", "domain": ["no", "yes"]}
    domain = domain_from_mapping(
        {"target": "y", "column": [{"name": "since", "kind": "numeric", **bounds}, label]}
    )
    days = ["2021-03-04", "2027-03-04"] * 300
    frame = pandas.DataFrame({"since": np.array(days, dtype=object), "y": ["no", "yes"] * 300})
    frame = frame.astype({"since": kind})
    options = {"domain": domain, "epsilon": 50, "dataset": "d", "ledger": tmp_path / "l"}
    con = duckdb.connect()
    with pytest.warns(PublicFactWarning):
        forest = fitted(con, frame, **options)
    assert (forest.predict(con, frame).df()["prediction"] == frame["y"]).all()


@pytest.mark.parametrize("lower", [dt.date(2021, 1, 1), dt.datetime(2021, 1, 1), 0, 0.0])
def test_one_word_changes_no_time_or_number_of_a_frame(lower: Any) -> None:
    """DuckDB rounds nanoseconds up to the next day, but leaves them out of text."""
    edge, upper = {
        dt.date: (dt.date(2021, 7, 1), dt.date(2021, 12, 31)),
        dt.datetime: (dt.datetime(2021, 7, 1, 23, 59, 59, 999999), dt.datetime(2021, 12, 31)),
        int: (50, 100),
        float: (123456789.123, 1e9),
    }[type(lower)]
    attribute = {"name": "q", "kind": "numeric", "lower": lower, "upper": upper, "edges": [edge]}
    label = {"name": "y", "kind": "categorical", "domain": ["no", "yes"]}
    domain = domain_from_mapping({"target": "y", "column": [attribute, label]})
    days = ("2021-07-01", "2021-09-01")
    ends = [pandas.Timestamp(f"{day} 23:59:59.999999999") for day in days]
    decimals = [Decimal("123456789.1230000000"), Decimal("50.0000000000")]
    for values, kind in (
        (ends, "datetime64[ns]"),
        (ends, "datetime64[us]"),
        ([True, False], "boolean"),
        (decimals, pandas.ArrowDtype(pyarrow.decimal128(20, 10))),
    ):
        column = pandas.Series(values, dtype=kind)
        missing = pandas.concat([column, pandas.Series([None], dtype=column.dtype)])
        words = pandas.concat([column, pandas.Series(["n/a"], dtype=object)])
        found = [cells(pandas.DataFrame({"q": q, "y": "no"}), domain) for q in (missing, words)]
        assert found[0] == found[1], kind


def test_sql_and_python_write_numbers_and_texts_alike() -> None:
    random = np.random.default_rng(1)
    parts = (
        random.integers(0, 2**32, 8_000, dtype=np.uint32).view(np.float32),
        (random.integers(0, 4_000_000, 4_000) / 16).astype(np.float32),
        random.integers(2**26, 2**31, 4_000).astype(np.float32),
        np.array([128.95312, 16384.062, 67108980, 431011616, 1e-45, 3.4e38, 2**24], np.float32),
    )
    values = np.concatenate(parts)
    values = values[np.isfinite(values)]
    con = duckdb.connect()
    con.register("f", {"x": values})
    wanted = [float(str(value)) * bool(abs(value) >= LEAST_FLOAT) for value in values]
    found = con.sql(f"SELECT {_shortest(Sql('x'), FLOAT)} AS x FROM f").fetchnumpy()["x"]
    assert found.tolist() == wanted
    assert [shortest_number(repr(float(value))) for value in values] == wanted
    texts = ["b'1'", "b'", "b'a", 'b"', 'b"it"', "(1+0j)", "(1-0j)", "0j", "(0j)", "", "nan", "NaT"]
    con.register("t", {"x": np.array(texts, dtype=object)})
    read = con.sql(f"SELECT {_plain_text('x')} FROM t").fetchall()
    assert [text for (text,) in read] == [plain_text(text) for text in texts]


@pytest.mark.parametrize(
    ("kind", "bounds"),
    [
        (np.float32, [0.1, 128.953122, 67108978.0]),
        pytest.param(np.float64, [0.1, 67108978.0, 123456790], marks=pytest.mark.slow),
        pytest.param(np.int64, [123456789, 123456790, 123456791], marks=pytest.mark.slow),
    ],
)
def test_one_value_of_any_type_moves_no_other_number(kind: Any, bounds: list[float]) -> None:
    """NumPy and pandas make 64-bit numbers, complex numbers, bytes, text or objects of a column.

    0.1 of 32 bits is written so, but is 0.10000000149011612 in 64 bits.
    """
    attribute = {"name": "q", "kind": "numeric", "lower": 0.0, "upper": 1e9, "edges": bounds}
    label = {"name": "y", "kind": "categorical", "domain": ["no", "yes"]}
    domain = domain_from_mapping({"target": "y", "column": [attribute, label]})
    values = np.array(bounds * 5, dtype=kind)

    def counts(column: Any, make: Callable[[Any], Any] = dict) -> np.ndarray[Any, Any]:
        return np.array(cells(make({"q": column, "y": np.array(["no"] * len(column))}), domain))

    expected = counts(values)
    assert expected.sum() == 15
    assert np.abs(counts(np.array(list(map(str, values)))) - expected).sum() == 0
    for more in (np.float64(0.5), True, 1 + 2j, "w", b"w", None):
        listed = [*values, more]
        for column, make in (
            (np.append(values, more), dict),
            (np.append(values, more), pandas.DataFrame),
            (np.array(listed), dict),
            (listed, pandas.DataFrame),
            (pandas.concat([pandas.Series(values), pandas.Series([more])]).to_numpy(), dict),
            (np.append(np.append(values, more), None), dict),
        ):
            assert np.abs(counts(column, make) - expected).sum() <= 2, (more, make)


@pytest.mark.parametrize(
    "categories",
    [
        ["0.1", "123456789"],
        *(
            pytest.param(categories, marks=pytest.mark.slow)
            for categories in (["67108872", "x"], ["b'1'", "(1+0j)x"], ["1", "a"])
        ),
    ],
)
@pytest.mark.parametrize("kind", [np.float32, pytest.param(object, marks=pytest.mark.slow)])
def test_one_value_of_any_type_moves_no_other_category(categories: list[str], kind: Any) -> None:
    """Nor a missing value. What the domain does not list is one value, whatever the others are."""
    column = {"name": "q", "kind": "categorical", "domain": categories, "nullable": True}
    label = {"name": "y", "kind": "categorical", "domain": ["no", "yes"]}
    domain = domain_from_mapping({"target": "y", "column": [column, label]})
    numbers = [0.1, 0.2, 1, 123456789, 67108872, 2**62, 2**62 + 1]
    missing = [np.nan] * 3 if kind in (np.float32, np.float64) else []
    values = np.array([*numbers, *missing], dtype=kind)

    def counts(column: Any, make: Callable[[Any], Any] = dict) -> np.ndarray[Any, Any]:
        return np.array(cells(make({"q": column, "y": np.array(["no"] * len(column))}), domain))

    expected = counts(values)
    assert expected.sum() == len(values)
    for more in (np.float64(0.5), 1 + 2j, "w", b"w", None):
        for column, make in (
            (np.append(values, more), dict),
            (np.append(values, more), pandas.DataFrame),
            ([*values, more], pandas.DataFrame),
            (pandas.concat([pandas.Series(values), pandas.Series([more])]).to_numpy(), dict),
        ):
            assert np.abs(counts(column, make) - expected).sum() <= 2, (more, make)


def test_one_missing_value_moves_no_row_to_another_tree() -> None:
    """Else values that are no category would be rounded, and rows with them would be alike."""
    domain = domain_from_mapping(
        {
            "target": "y",
            "column": [
                {"name": "x", "kind": "categorical", "domain": ["a", "b"]},
                {"name": "z", "kind": "numeric", "lower": 0, "upper": 3},
                {"name": "y", "kind": "categorical", "domain": [0, 1]},
            ],
        }
    )
    large = [2**62 + i for i in range(400)]
    trees = []
    for more in (5, None, "w"):
        rows = pandas.DataFrame({"x": [*large, more], "z": [*large, more], "y": [*[1] * 400, more]})
        found = find_rows(duckdb.connect(), rows)
        info = found.engine.typed(found.table, domain, None)
        with found.engine.snapshot(info) as snapshot:
            coded = snapshot.encode(
                Coding(domain.bind(info.columns), ROW, trees=8, sample="disjoint", salt=1)
            )
            trees.append(coded.count_leaves(0, 8)[:, 1].tolist())
    assert trees[0] == trees[1] == trees[2]
    assert sum(trees[0]) == 400


def test_a_category_that_is_written_as_missing_values_is_refused(tmp_path: Path) -> None:
    for category in ("nan", "NaT", "b'nan'"):
        domain = Domain((Attribute("q", "categorical", (category, "a")),), "y", ("0", "1"))
        with pytest.raises(DpforestError, match="written as missing values"):
            fitted(
                duckdb.connect(), pandas.DataFrame({"q": ["a"], "y": ["0"]}), domain=domain,
                dataset="d", ledger=tmp_path / "l",
            )  # fmt: skip


def test_bytes_that_are_no_text_stay_different_persons() -> None:
    who = [b"\xff", b"\xfe", b"\\xff", b"a"] * 50
    label = ["no"] * 200
    for rows in (
        {"who": np.array(who), "size": np.ones(200), "label": np.array(label)},
        pyarrow.table({"who": pyarrow.array(who), "size": [1.0] * 200, "label": label}),
    ):
        found = find_rows(duckdb.connect(), rows)
        domain = Domain(DOMAIN.attributes[1:], *LABEL)
        info = found.engine.typed(found.table, domain, "who")
        unit = PrivacyUnit("who", 1)
        with found.engine.snapshot(info) as snapshot:
            coded = snapshot.encode(
                Coding(domain.bind(info.columns), unit, trees=1, sample="all", salt=1)
            )
            assert coded.count_leaves(0, 1).sum() == 4, "a row of each"


def test_bytes_are_read_as_the_text_that_one_word_makes_of_them() -> None:
    for values in ([b"2020-01-01", b"2021-01-01"], [b"a\\b", b'it\'s "x"']):
        known = [value.decode() for value in values]
        for more in (np.array(values), np.append(np.array(values), "w")):
            assert counted({"q": more}, known) == [1, 1]
    first, last = dt.date(2020, 1, 1), dt.date(2022, 1, 1)
    days = {"name": "q", "kind": "numeric", "lower": first, "upper": last}
    label = {"name": "y", "kind": "categorical", "domain": ["no", "yes"]}
    domain = domain_from_mapping({"target": "y", "column": [days, label]})
    column = np.array([b"2020-01-01", b"2021-01-01"])
    for more in (column, np.append(column, "w"), np.append(column, None)):
        found = np.array(cells({"q": more, "y": np.array(["no"] * len(more))}, domain))
        assert found.sum() >= 2, more


def test_a_missing_number_of_polars_is_missing_beside_a_word() -> None:
    column = {"name": "q", "kind": "categorical", "domain": ["1", "a"], "nullable": True}
    label = {"name": "y", "kind": "categorical", "domain": ["no", "yes"]}
    domain = domain_from_mapping({"target": "y", "column": [column, label]})
    for more, expected in (([], [1, 0, 0, 1]), (["w"], [1, 0, 1, 1])):
        values = polars.Series([1.0, np.nan, *more], strict=False)
        found = cells(polars.DataFrame({"q": values, "y": "no"}), domain)
        assert [cell[0] for cell in found] == expected


def test_numbers_of_16_bits_are_refused() -> None:
    """As text they have fewer digits than as numbers of 32 bits."""
    frame = {"q": np.array([0.1], dtype=np.float16), "y": np.array(["no"])}
    for rows in (frame, pandas.DataFrame(frame)):
        with pytest.raises(DpforestError, match='"q" of the frame has numbers of 16 bits'):
            find_rows(duckdb.connect(), rows)


def test_a_column_without_values_is_read_as_one_with_a_value(tmp_path: Path) -> None:
    """Else it would show whether anyone has a value if a run is refused."""
    for column in NAMES:
        rows = {**columns(), column: [None] * len(ROWS)}
        frame = polars.DataFrame(rows)
        for number, given in enumerate((pandas.DataFrame(rows), frame, frame.to_arrow())):
            book = tmp_path / f"{column}{number}"
            fitted(duckdb.connect(), given, ledger=book, dataset="d")
            assert len(debits(book)) == 1


def test_missing_values_in_a_parquet_file_refuse_nothing(tmp_path: Path) -> None:
    """A column without values has a type of its own, which any other type agrees with."""
    given = {"ledger": tmp_path / "l", "dataset": "d", "privacy_unit": "row"}
    con = duckdb.connect()
    for number, column in enumerate(NAMES):
        polars.DataFrame({**columns(), column: [None] * len(ROWS)}).write_parquet(
            tmp_path / f"{column}.parquet"
        )
        fitted(con, tmp_path / f"{column}.parquet", **given)
        assert len(debits(tmp_path / "l")) == 2 * number + 1
        fitted(con, con.sql(f"FROM '{tmp_path / column}.parquet' WHERE true"), **given)
    fitted(con, tmp_path / "*.parquet", **given)
    for other in ("text", 0.5):
        part = polars.DataFrame({**columns(), "size": [other] * len(ROWS)})
        part.write_parquet(tmp_path / "other.parquet")
        with pytest.raises(DpforestError, match="other columns or types"):
            fitted(con, tmp_path / "*.parquet", **given)


def test_ids_that_pandas_made_floats_are_refused(tmp_path: Path) -> None:
    frame = pandas.DataFrame(arrays()).astype({"who": float})
    options = {"privacy_unit": "who", "dataset": "d", "ledger": tmp_path / "l"}
    with pytest.raises(DpforestError, match='as "Int64" or as text'):
        fitted(duckdb.connect(), frame, **options)
    fitted(duckdb.connect(), frame.astype({"who": "Int64"}), **options)


@pytest.mark.parametrize(
    "id_", ["{'a': 0.5}", "[0.5]", "[0.5]::DOUBLE[1]", "MAP {'a': 0.5}", "0.5::DOUBLE::VARIANT"]
)
def test_ids_that_have_parts_are_refused(id_: str, tmp_path: Path) -> None:
    """A part may have been rounded, and several persons have one id then."""
    con = database(tmp_path)
    rows = con.sql(f"SELECT * REPLACE ({id_} AS who) FROM t")
    with pytest.raises(DpforestError, match="may look like one"):
        fitted(con, rows, privacy_unit="who", ledger=tmp_path / "l", dataset="d")
    assert not (tmp_path / "l").exists()
    rows = con.sql("SELECT * REPLACE (md5(who::VARCHAR)::UUID AS who) FROM t")
    fitted(con, rows, privacy_unit="who", ledger=tmp_path / "l", dataset="d")


@pytest.mark.parametrize(
    "ids",
    [
        pandas.arrays.SparseArray([2.0**53, np.nan]),
        pandas.interval_range(0.0, 2.0),
        pandas.Categorical([0.5, 1.5]),
        np.array([1, 2], dtype=complex),
        np.array([1, 2], dtype=np.longdouble),
    ],
    ids=lambda ids: str(ids.dtype),
)
def test_ids_with_floating_point_numbers_inside_are_refused(ids: Any, tmp_path: Path) -> None:
    frame = pandas.DataFrame({"who": ids, "colour": "red", "size": 1, "label": "no"})
    with pytest.raises(DpforestError, match='"who" is a column of floating-point numbers'):
        fitted(duckdb.connect(), frame, privacy_unit="who", ledger=tmp_path / "l", dataset="d")
    frame.astype({"who": str}).to_parquet(tmp_path / "t.parquet")
    fitted(duckdb.connect(), tmp_path / "t.parquet", privacy_unit="who", ledger=tmp_path / "l")
    frame.assign(who=[1.0, np.nan]).to_parquet(tmp_path / "f.parquet")
    with pytest.raises(DpforestError, match='"who" is a column of floating-point numbers'):
        fitted(duckdb.connect(), tmp_path / "f.parquet", privacy_unit="who", ledger=tmp_path / "l")


@pytest.mark.parametrize("more", ["2", "123456.789", "1e40"])
def test_the_digits_of_one_decimal_are_in_no_model(more: str, tmp_path: Path) -> None:
    """pandas takes the digits of a Parquet column from the values that it writes."""
    rows = {"size": [Decimal("1.5"), Decimal(more)], "label": ["no", "yes"]}
    pandas.DataFrame(rows).to_parquet(tmp_path / "t.parquet")
    domain = domain_from_mapping(
        {
            "target": "label",
            "column": [
                {"name": "size", "kind": "numeric", "lower": 0, "upper": 10**12},
                {"name": "label", "kind": "categorical", "domain": ["no", "yes"]},
            ],
        }
    )
    forest = fitted(duckdb.connect(), tmp_path / "t.parquet", domain=domain, ledger=tmp_path / "l")
    assert [attribute.type for attribute in forest.domain.attributes] == [DOUBLE]


def test_one_value_of_polars_or_arrow_refuses_no_frame(tmp_path: Path) -> None:
    """It may make objects, bytes, or numbers of a type that DuckDB does not know of all."""
    label, con = ["no", "yes", "no"], duckdb.connect()
    for size in ([1, 2, 3], [1, 2, 2**70], polars.Series([1, 2, object()], dtype=polars.Object)):
        frame = polars.DataFrame({"size": size, "label": label}, strict=False)
        assert [sum(cell) for cell in cells(frame, Domain(DOMAIN.attributes[1:], *LABEL))][1:3] == [
            1,
            1,
        ], size
    for number in ("0.25", "1e50", "0." + "1" * 32):
        size = pyarrow.array([Decimal("1"), Decimal("2"), Decimal(number)])
        table = pyarrow.table({"size": size, "label": label})
        fitted(
            con,
            table,
            domain=Domain(DOMAIN.attributes[1:], *LABEL),
            ledger=tmp_path / "l",
            dataset="d",
        )


def test_the_ledger_beside_the_database_is_the_same_after_use(tmp_path: Path) -> None:
    frame = pandas.DataFrame({"colour": ["red"], "size": [1], "label": ["no"]})
    with duckdb.connect(str(tmp_path / "a.duckdb")) as con:
        fitted(con, frame, dataset="d")
        con.execute(f"ATTACH '{tmp_path}/b.duckdb' AS b; USE b")
        fitted(con, frame, dataset="d")
        assert budget(con, frame, dataset="d").spent_epsilon == 2 * NANO
    assert not (tmp_path / "b.duckdb.ledger").exists()


def test_one_word_among_ids_changes_no_bound_on_temporary_space(tmp_path: Path) -> None:
    needed = set()
    for more in (8, "x", None):
        ids = pandas.array([*range(7), more], dtype=object if more == "x" else "Int64")
        run = prepare(
            duckdb.connect(), pandas.DataFrame({"id": ids, "colour": "red", "label": "no"}),
            domain=Domain((DOMAIN.attributes[0],), "label", ("no", "yes")), epsilon=1,
            privacy_unit="id", ledger=tmp_path / "l", dataset="d",
        )  # fmt: skip
        needed.add(run.bytes_of_a_row)
    assert len(needed) == 1


IDS = [2**53 + 1, 2**53 + 2, 2**53 + 3, 7]  # as DOUBLE, the first is 2^53 and the third 2^53 + 4


@pytest.mark.parametrize(("kind", "persons"), [("VARCHAR", 4), ("BIGINT", 4), ("DOUBLE", 1)])
def test_persons_whose_ids_are_rounded_to_one_number_are_nobody(
    kind: str, persons: int, tmp_path: Path
) -> None:
    """Else the bound of two persons would be one person's. Text and whole numbers are exact."""
    con = duckdb.connect()
    con.execute(f"CREATE TABLE ids (a VARCHAR, who {kind}, label VARCHAR)")
    con.executemany("INSERT INTO ids VALUES ('x', ?, 'yes')", [[number] for number in IDS * 3])
    source: Any = "ids"
    if kind == "VARCHAR":  # as text in a file, though the domain gives bounds of a number
        source = tmp_path / "ids.csv"
        con.sql("FROM ids").write_csv(str(source))
    values = {"name": "a", "kind": "categorical", "domain": ["x", "y"]}
    bounds = {"name": "who", "kind": "numeric", "lower": 0, "upper": 100}
    label = {"name": "label", "kind": "categorical", "domain": ["no", "yes"]}
    domain = domain_from_mapping({"target": "label", "column": [values, bounds, label]})
    with pytest.warns(PublicFactWarning):
        forest = train(
            con, source, domain=domain, epsilon=1000, recipe="greedy-tree", depth=1,
            privacy_unit="who", ledger=tmp_path / "book",
        )  # fmt: skip
    counts = forest.trees[0].counts
    assert counts is not None
    assert counts[0].sum() == persons


@pytest.mark.parametrize("odd", [[1], {"a": 1}, b"\xff", (1, 2), 2.5, None, np.array([1, 2])])
def test_no_object_of_a_frame_decides_about_a_type_or_fails_a_run(odd: Any, tmp_path: Path) -> None:
    found = {}
    for number in (1, 1200):  # odd values
        values = np.array(["red"] * 1200, dtype=object)
        for place in range(number):
            values[place] = odd
        frame = {"colour": values, "label": np.array(["no", "yes"] * 600, dtype=object)}
        domain = Domain((DOMAIN.attributes[0],), "label", ("no", "yes"))
        rows = find_rows(duckdb.connect(), frame)
        info = rows.engine.typed(rows.table, domain, None)
        with rows.engine.snapshot(info) as snapshot:
            coded = snapshot.encode(
                Coding(domain.bind(info.columns), ROW, trees=1, sample="all", salt=1)
            )
            found[number] = coded.count_classes(0, 1)[0][0].sum(axis=1).tolist()
    assert found[1][0] == 1199
    assert found[1200][0] == 0
    assert sum(found[1]) == sum(found[1200]) == 1200


@pytest.mark.parametrize(
    "odd", ["red", 7, b"\xff", 2**64, Decimal("1e-60"), 0.5, [1], "\ud800"], ids=repr
)
def test_a_column_of_arrow_changes_nothing_about_objects_beside_it(
    odd: Any, tmp_path: Path
) -> None:
    """DuckDB alone would convert all columns to Arrow, which refuses values of several types."""
    colours = np.array(["red"] * 39 + [None], dtype=object)
    unused = np.array([1, 2**53 + 1] * 19 + [0, 0], dtype=object)
    colours[-1] = unused[-1] = odd
    size = pandas.array([7] * 40, dtype="int64[pyarrow]")
    objects = pandas.DataFrame({"unused": unused, "colour": colours}, dtype=object)
    frame = objects.assign(size=size, label="no")
    if odd != "\ud800":
        found = cells(frame, DOMAIN)
        assert (found[0][0], np.sum(found)) == (39 + (odd == "red"), 40)
        assert cells(frame.astype({"size": int}), DOMAIN) == found
    else:
        with pytest.raises(DpforestError, match="withheld"):
            fitted(duckdb.connect(), frame, ledger=tmp_path / "l", dataset="d", privacy_unit="row")
        assert len(debits(tmp_path / "l")) == 1


@pytest.mark.parametrize(
    "unknown",
    [
        np.array([1j, 2]),
        np.array([1, 2], dtype="S1"),
        np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]"),
        pandas.arrays.SparseArray([1, 2]),
        pandas.period_range("2020-01-01", periods=2),
        pandas.array(["1", "2"], dtype=pandas.ArrowDtype(pyarrow.string())).astype("category"),
    ],
    ids=lambda values: str(values.dtype),
)
def test_types_that_duckdb_does_not_know_are_read_as_objects(unknown: Any) -> None:
    """One value of another type would make objects of them, so they are not refused either."""
    values = {"colour": np.array(["red", "blue"], dtype=object), "label": np.array(["no", "no"])}
    frames: list[Any] = [pandas.DataFrame({**values, "size": unknown})]
    if isinstance(unknown, np.ndarray):
        frames.append({**values, "size": unknown})
    objects = pandas.DataFrame({**values, "size": np.array(list(unknown), dtype=object)})
    for frame in frames:
        assert [row[0] for row in cells(frame, DOMAIN)[:2]] == [1, 1]
        known = ["1", "2020-01-01"]
        assert counted(frame, known, "size") == counted(objects, known, "size")


@pytest.mark.parametrize("form", ["objects", "fixed width", "categories", "mixed categories"])
def test_text_that_is_no_unicode_fails_a_run_after_its_debit_alone(
    form: str, tmp_path: Path
) -> None:
    words = np.array(["red"] * 99 + ["secret\ud800"], dtype=object)
    codes = [0] * 99 + [1]

    def categories(*values: object) -> pandas.Categorical:
        # objects, because pandas 3 reads text as Arrow's, which is Unicode alone
        return pandas.Categorical.from_codes(codes, pandas.Index(values, dtype=object))

    text: Any = {
        "objects": words,
        "fixed width": words.astype(str),
        "categories": categories("red", "secret\ud800"),
        "mixed categories": categories(1, "secret\ud800"),
    }[form]
    frame = {"colour": text, "label": np.array(["no", "yes"] * 50, dtype=object)}
    rows = frame if isinstance(text, np.ndarray) else pandas.DataFrame(frame)
    book = tmp_path / "ledger"
    domain = Domain((DOMAIN.attributes[0],), "label", ("no", "yes"))
    with pytest.raises(DpforestError, match="withheld") as failed:
        fitted(duckdb.connect(), rows, domain=domain, privacy_unit="row", ledger=book, dataset="d")
    assert "secret" not in str(failed.value)
    assert len(debits(book)) == 1


def arrow_text(values: list[bytes]) -> Any:
    """An Arrow text of these bytes, as Arrow reads it from a file."""
    unchecked = pyarrow.array(values, pyarrow.binary())
    return pyarrow.Array.from_buffers(pyarrow.string(), len(values), unchecked.buffers())


def as_dictionary(values: Any) -> Any:
    numbers = pyarrow.array(range(len(values)), pyarrow.int8())
    return pyarrow.DictionaryArray.from_arrays(numbers, values)


def as_pandas_text(values: Any) -> Any:
    plain = values.cast(pyarrow.binary()).cast(pyarrow.large_binary())
    return pandas.arrays.ArrowStringArray(pyarrow.chunked_array([plain.view("large_string")]))


@pytest.mark.parametrize(
    "given",
    [
        lambda ids, rest: pyarrow.table({"id": ids, **rest}),
        lambda ids, rest: pyarrow.table({"id": as_dictionary(ids), **rest}),
        lambda ids, rest: polars.from_arrow(pyarrow.table({"id": ids, **rest})),
        lambda ids, rest: pandas.DataFrame({"id": pandas.arrays.ArrowExtensionArray(ids), **rest}),
        lambda ids, rest: pandas.DataFrame({"id": as_pandas_text(ids), **rest}),
    ],
    ids=["arrow", "arrow categories", "polars", "pandas with arrow", "pandas text"],
)
def test_arrow_text_that_is_no_unicode_is_missing(given: Callable[..., Any]) -> None:
    """DuckDB sorts by ids, and takes a byte that no text has for the end of one."""
    first, second = b"a\xff" + b"\x01" * 6, b"a\xff" + b"\x02" * 10
    ids = arrow_text([first, second, b"p\xff\xe9Zx", b"ok", "é".encode()])
    rest = {"colour": ["red", "blue", "red", "red", "blue"], "size": [0] * 5, "label": ["no"] * 5}
    rows = find_rows(duckdb.connect(), given(ids, rest))
    info = rows.engine.typed(rows.table, DOMAIN, "id")
    with rows.engine.snapshot(info) as snapshot:
        coded = snapshot.encode(
            Coding(DOMAIN.bind(info.columns), PrivacyUnit("id"), trees=1, sample="all", salt=1)
        )
        assert [row[0] for row in coded.count_classes(0, 1)[0][0]] == [1, 1, 0, 0]
    words = {"name": "id", "kind": "categorical", "domain": ["ok", "é"]}
    label = {"name": "label", "kind": "categorical", "domain": ["no", "yes"]}
    found = cells(
        given(ids, rest), domain_from_mapping({"target": "label", "column": [words, label]})
    )
    assert [row[0] for row in found] == [1, 1, 0, 3]


def test_a_table_called_rows_is_not_predicted_in_the_place_of_a_frame(tmp_path: Path) -> None:
    con = database(tmp_path)
    forest = fitted(con, "t", ledger=tmp_path / "ledger")
    con.execute("CREATE TABLE rows AS SELECT 7 AS size FROM range(9)")
    frame = con.sql("FROM t LIMIT 3").df()
    assert len(forest.predict(con, frame).fetchall()) == 3
    con.execute("SET python_enable_replacements = false")
    with pytest.raises(DpforestError, match="cannot read this frame"):
        forest.predict(con, frame)


@pytest.mark.parametrize("name", ["v", "V", "v as text", "n", "t", "x"])
def test_no_name_of_a_column_changes_other_values_in_predicted_rows(
    name: str, tmp_path: Path
) -> None:
    """The SQL that reads a frame has names of its own."""
    con = duckdb.connect()
    frame = pandas.DataFrame({name: [True, False] * 200, "y": ["yes", "no"] * 200})
    domain = domain_from_mapping(
        {
            "target": "y",
            "column": [
                {"name": name, "kind": "categorical", "domain": ["0", "2"]},
                {"name": "y", "kind": "categorical", "domain": ["no", "yes"]},
            ],
        }
    )
    given = {"epsilon": 1000, "dataset": "d", "ledger": tmp_path / "ledger"}
    forest = fitted(con, frame, domain=domain, **given)
    found = forest.predict(con, frame).df()
    assert set(found[name]) == {0, 1}


def test_fractions_stay_in_predicted_rows_and_get_a_note_in_training(tmp_path: Path) -> None:
    """Bounds without a decimal point declare whole numbers; what is returned is not rounded."""
    con = duckdb.connect()
    frame = con.sql(
        "SELECT i % 100 / 100.0 AS part, CASE WHEN i % 100 > 50 THEN 'yes' ELSE 'no' END AS label "
        "FROM range(3000) r(i)"
    ).df()
    given = {"epsilon": 1000, "dataset": "d", "ledger": tmp_path / "ledger"}
    noted = []
    for lower, upper in ((0, 1), (0.0, 1.0), (0, 40)):
        part = {"name": "part", "kind": "numeric", "lower": lower, "upper": upper}
        label = {"name": "label", "kind": "categorical", "domain": ["no", "yes"]}
        domain = domain_from_mapping({"target": "label", "column": [part, label]})
        run = prepare(con, frame, domain=domain, **given)
        noted.append(any("fractions are rounded up" in note for note in run.notes))
        predicted = run.execute().predict(con, frame).df()
        assert (predicted["part"] == frame["part"]).all()
    assert noted == [True, False, False]


@pytest.mark.parametrize("kind", ["float32", "float64", "Float32"])
@pytest.mark.parametrize("extra", [None, "unknown", 0.5])
def test_a_word_among_narrow_numbers_changes_no_other_row(kind: str, extra: object) -> None:
    """As text, 0.1 of 32 bits is 0.1; as an object it is 0.10000000149."""
    values = pandas.Series([0.1, 0.3, 0.1], dtype=kind)
    column = values if extra is None else pandas.Series([*values, extra])
    frame = pandas.DataFrame({"x": column, "y": ["no"] * len(column)})
    attribute = {"name": "x", "kind": "categorical", "domain": ["0.1", "0.3"]}
    label = {"name": "y", "kind": "categorical", "domain": ["no", "yes"]}
    domain = domain_from_mapping({"target": "y", "column": [attribute, label]})
    rows = find_rows(duckdb.connect(), frame)
    info = rows.engine.typed(rows.table, domain, None)
    with rows.engine.snapshot(info) as snapshot:
        coded = snapshot.encode(
            Coding(domain.bind(info.columns), ROW, trees=1, sample="all", salt=1)
        )
        (counts,) = coded.count_classes(0, 1)
    assert counts[0, :2, 0].tolist() == [2, 1]


EQUAL = [  # categories that pandas may take for each other, in the order of a domain
    ([str(2**53), str(2**53 + 1)], True),
    (["1", "1.0"], True),
    (["true", "1"], True),
    (["2020-01-01", "2020-01-01 00:00:00"], True),
    ([str(2**53 + 1), "3"], False),
    (["1", "01"], False),
    (["250.0", "250.00"], False),
]


@pytest.mark.parametrize(("categories", "refused"), EQUAL)
def test_categories_that_a_frame_may_hold_as_one_value_are_refused(
    categories: list[str], refused: bool, tmp_path: Path
) -> None:
    """One missing value makes floating-point numbers of whole ones, which may then be equal."""
    con, plain = duckdb.connect(), ["no", "yes"]
    for q, y in ((categories, plain), (plain, categories)):
        columns = [{"name": n, "kind": "categorical", "domain": d} for n, d in (("q", q), ("y", y))]
        domain = domain_from_mapping({"target": "y", "column": columns})
        frame = pandas.DataFrame({"q": q, "y": y}, dtype=object)
        options = {"domain": domain, "epsilon": 1, "ledger": tmp_path / "l", "dataset": "d"}
        if refused:
            with pytest.raises(DpforestError, match="may be one value in a DataFrame"):
                train(con, frame, **options)
        else:
            train(con, frame, **options)
        con.execute("CREATE OR REPLACE TABLE t AS FROM frame")
        train(con, "t", domain=domain, epsilon=1, ledger=tmp_path / "t")
    assert (tmp_path / "l").exists() != refused


@pytest.mark.parametrize(
    ("categories", "values", "kind"),
    [
        (["0.10000000149011612", "0.30000001192092896"], [0.1, 0.3], "float32"),
        (["16777217", "16777216"], [2**24 + 1, 2**24], "int64"),
        (["01", "1.0"], [7, 1], "int64"),
    ],
)
def test_categories_of_many_digits_are_compared_as_numbers(
    categories: list[str], values: list[Any], kind: str
) -> None:
    column = pandas.Series(values * 2, dtype=kind)
    expected = counted(pandas.DataFrame({"q": column}), categories)
    assert sum(expected) in (4, 2)
    assert expected[1] == 2
    for more in (None, "x", 0.5):
        longer = pandas.concat(
            [column, pandas.Series([more], dtype=object if more == "x" else float)]
        )
        assert counted(pandas.DataFrame({"q": longer}), categories) == expected, more


def test_a_frame_with_a_name_that_is_no_unicode_is_refused(tmp_path: Path) -> None:
    columns = {"size": [1], "z\ud800": [1], "label": ["no"]}
    frame = {name: np.array(values) for name, values in columns.items()}
    with pytest.raises(DpforestError, match="no Unicode"):
        fitted(duckdb.connect(), frame, ledger=tmp_path / "l", dataset="d")
