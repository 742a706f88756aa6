"""Training and scoring what is in no table: what all sources have in common."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import numpy as np
import pytest
from engine_conformance import DOMAIN, ROWS, Subject, codes, conforms_without_tables
from source_rows import (
    WAYS,
    arrays,
    beside_y,
    csv_file,
    database,
    debits,
    fitted,
    pandas,
)
from test_sql_snapshots import TEMPLATES
from variants import some

from dpforest_duckdb import BudgetError, DpforestError, UsageError, budget, evaluate, prepare
from dpforest_duckdb.domain.file import domain_from_mapping
from dpforest_duckdb.domain.types import TIMESTAMP
from dpforest_duckdb.engine.base import Coding
from dpforest_duckdb.engine.connection.statements import Statements
from dpforest_duckdb.ledger.book import Ledger
from dpforest_duckdb.ledger.datasets import DatasetAccount
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.privacy.unit import ROW, PrivacyUnit
from dpforest_duckdb.training.opening import find_rows
from dpforest_duckdb.training.train import train_many


@some("way", WAYS, keep=5)
def test_every_source_gives_the_codes_of_its_rows(way: str, tmp_path: Path) -> None:
    con = database(tmp_path)
    found = find_rows(con, WAYS[way](con, tmp_path))
    info = found.engine.typed(found.table, DOMAIN, PrivacyUnit("who"))
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


@pytest.mark.parametrize(
    "rows", [None, 7, b"t", [1, 2], [["a", 1]], {}, {"a": [1]}, np.zeros((3, 2)), object()]
)
def test_what_is_no_table_is_refused_by_its_kind(rows: Any) -> None:
    with pytest.raises(UsageError, match=r"table's name, a DuckDB relation, .* a dictionary"):
        fitted(duckdb.connect(), rows)


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
    assert debits(tmp_path / "a.duckdb.ledger")[0].holder.name == "d"
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


@some("way", ["table", "csv", "parquet", "arrays", "relation"], keep=3)
def test_a_trace_has_every_statement_that_reads_private_rows(way: str, tmp_path: Path) -> None:
    """With the header of its template, which says so."""
    con, shown, steps, call = database(tmp_path), list[str](), list[str](), Statements.call

    def called(self: Statements, work: Any, *, step: str = "", **options: Any) -> Any:
        before = len(shown)
        try:
            return call(self, work, step=step, **options)
        finally:
            if step:
                steps.append(step)
                assert len(shown) == before + 1, "a step is traced"
                template = (TEMPLATES / f"{step}.sql").read_text(encoding="utf-8")
                assert shown[before].startswith(template[:30])
                assert "\n-- reads private rows: yes\n" in shown[before]

    rows = "t" if way == "table" else WAYS[way](con, tmp_path)
    options: dict[str, Any] = {"ledger": tmp_path / "l", "trace": shown.append}
    options |= {"dataset": "d"} if way in ("arrays", "relation") else {}
    with mock.patch.object(Statements, "call", called):
        forest = fitted(con, rows, **options)
        evaluate(con, forest, rows, epsilon=1, **options)
    assert {"encode", "evaluate", *([] if way == "table" else ["read"])} <= set(steps)


@some("way", ["arrays", "pandas", "pandas objects", "polars", "arrow", "relation"], keep=4)
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
        with pytest.raises(UsageError, match=r"rows to predict .* a dictionary"):
            forest.predict(con, rows)
    with pytest.raises(UsageError, match="con must be"):
        forest.predict("a.duckdb", "t")
    with pytest.raises(UsageError, match="key must be a list"):
        forest.to_sql("t", dialect="postgres", key="who")


def test_the_ledger_beside_the_database_is_the_same_after_use(tmp_path: Path) -> None:
    frame = pandas.DataFrame({"colour": ["red"], "size": [1], "label": ["no"]})
    with duckdb.connect(str(tmp_path / "a.duckdb")) as con:
        fitted(con, frame, dataset="d")
        con.execute(f"ATTACH '{tmp_path}/b.duckdb' AS b; USE b")
        fitted(con, frame, dataset="d")
        assert budget(con, frame, dataset="d").spent_epsilon == 2 * NANO
    assert not (tmp_path / "b.duckdb.ledger").exists()


def test_a_table_called_rows_is_not_predicted_in_the_place_of_a_frame(tmp_path: Path) -> None:
    con = database(tmp_path)
    forest = fitted(con, "t", ledger=tmp_path / "ledger")
    con.execute("CREATE TABLE rows AS SELECT 7 AS size FROM range(9)")
    frame = con.sql("FROM t LIMIT 3").df()
    assert len(forest.predict(con, frame).fetchall()) == 3
    con.execute("SET python_enable_replacements = false")
    with pytest.raises(DpforestError, match="cannot read this frame"):
        forest.predict(con, frame)


@some("name", ["v", "V", "v as text", "n", "t", "x"], keep=3)
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


def test_a_model_of_times_scores_a_table_of_dates(tmp_path: Path) -> None:
    """Dates of a frame are times of pandas, while a table may have the type DATE."""
    days = [dt.datetime(2020, 1, 1) + dt.timedelta(days=i) for i in range(400)]
    frame = pandas.DataFrame({"since": days, "y": ["no"] * 150 + ["yes"] * 250})
    column = {"name": "since", "kind": "numeric", "lower": days[0], "upper": days[-1]}
    given = {"domain": beside_y(column), "epsilon": 50, "dataset": "d", "ledger": tmp_path / "l"}
    con = duckdb.connect()
    forest = fitted(con, frame, **given)
    assert forest.domain.attributes[0].type == TIMESTAMP
    con.execute("CREATE TABLE t AS SELECT CAST(since AS DATE) AS since, y FROM frame")
    con.execute("INSERT INTO t VALUES ('infinity', 'yes'), ('-infinity', 'no'), (NULL, 'no')")
    expected = forest.predict(con, frame).fetchnumpy()["p_yes"]
    found = forest.predict(con, "t").project("p_yes").fetchnumpy()["p_yes"]
    assert (found[:400] == expected).all()
    assert (found[400], found[401]) == (expected[-1], expected[0])
    assert evaluate(con, forest, "t", ledger=tmp_path / "l").accuracy > 0.95
    edges = [days[1], days[1].replace(hour=7), days[2]]
    hours = {"name": "since", "kind": "numeric", "edges": edges}
    forest = fitted(con, frame, **{**given, "domain": beside_y(hours)})
    with pytest.raises(DpforestError, match="DATE, but the model was trained on TIMESTAMP"):
        forest.predict(con, "t")
