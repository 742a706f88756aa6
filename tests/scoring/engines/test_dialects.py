"""What the SQL of each dialect looks like, parses as, and refuses; each refusal is one sentence."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sqlglot
from forests import Case, MakeCase
from variants import some

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import DATE, DOUBLE, INTEGER, VARCHAR
from dpforest_duckdb.errors import DpforestError, UsageError
from dpforest_duckdb.guarantee import Guarantee
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.scoring.dialects import DIALECTS, Dialect, dialect
from dpforest_duckdb.scoring.links import SOFTMAX
from dpforest_duckdb.scoring.publish import publish_sql
from dpforest_duckdb.tree import EQUALS, LEAF, MULTIWAY, THRESHOLD, Tree

SNAPSHOTS = Path(__file__).parent.parent.parent / "snapshots"
PARSERS = {"polars": "postgres", "datafusion": "postgres"}  # what sqlglot calls the others


def visits(
    city: str = "Bern", label: str = "yes", column: str = "city", depth: int = 0, classes: int = 2
) -> Forest:
    """One small tree on an age, a weight, a date and a city; deeper by `depth`."""
    attributes = (
        Attribute("age", "numeric", edges=(17, 64), nullable=True, type=INTEGER),
        Attribute("weight", "numeric", edges=(49.5,), nullable=True, type=DOUBLE),
        Attribute("since", "numeric", edges=(18262,), nullable=True, type=DATE),
        Attribute(column, "categorical", (city, "Genf"), nullable=True, type=VARCHAR),
    )
    labels = ("no", label, "maybe", "later")[:classes]
    splits = [(MULTIWAY, 0, 0, 4), (EQUALS, 3, 0, 2), (THRESHOLD, 2, 0, 2), (EQUALS, 1, 1, 2)]
    splits += [(THRESHOLD, 0, i % 2, 2) for i in range(depth)]
    kind, attribute, cell, first = [LEAF], [-1], [0], [-1]
    node = 0
    for split, a, cut, children in splits:
        kind[node], attribute[node], cell[node], first[node] = split, a, cut, len(kind)
        node = len(kind)
        kind += [LEAF] * children
        attribute += [-1] * children
        cell += [0] * children
        first += [-1] * children
    votes = np.arange(1, 1 + len(kind) * classes).reshape(len(kind), classes)
    tree = Tree(*map(np.array, (kind, attribute, cell, first)), None, votes)
    domain = Domain(attributes, "ill", labels, VARCHAR)
    return Forest("risk", "by hand", Guarantee("1"), domain, (tree,), link=SOFTMAX, table="visits")


def wide(edges: int) -> Forest:
    """A tree of depth two, with a leaf for every pair of bins, all with votes of their own."""
    attributes = tuple(
        Attribute(name, "numeric", edges=tuple(range(edges)), type=INTEGER) for name in "ab"
    )
    domain = Domain(attributes, "ill", ("no", "yes", "maybe"), VARCHAR)
    cells = domain.cells[0]
    nodes = 1 + cells + cells**2
    inner = np.arange(nodes) <= cells
    votes = np.where(inner[:, None], 0, np.arange(1, 1 + nodes * 3).reshape(nodes, 3))
    first = np.where(inner, 1 + cells * np.arange(nodes), -1)
    attribute = np.where(inner, np.minimum(np.arange(nodes), 1), -1)
    kind = np.where(inner, MULTIWAY, LEAF)
    tree = Tree(kind, attribute, np.zeros(nodes, dtype=np.int64), first, None, votes)
    return Forest("wide", "by hand", Guarantee("1"), domain, (tree,), table="visits")


COLUMNS = ("id", "age", "weight", "since", "city")


@pytest.mark.parametrize("engine", DIALECTS)
def test_the_sql_of_a_dialect_is_as_it_was(engine: str) -> None:
    """A readable copy of each; DPFOREST_SNAPSHOTS=1 writes them."""
    sql = visits().to_sql(form="table", dialect=engine, columns=COLUMNS)
    file = SNAPSHOTS / f"{engine}.sql"
    if os.environ.get("DPFOREST_SNAPSHOTS"):
        file.write_text(sql, encoding="utf-8")
    assert sql == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("engine", DIALECTS)
@some("name", ["two classes", "log-odds of four", "the surest tree"], keep=1)
def test_sqlglot_reads_one_statement_in_the_dialect(made: MakeCase, engine: str, name: str) -> None:
    whole = _without_dots(made(name)) if engine == "bigquery" else made(name).forest
    forest = replace(whole, trees=whole.trees[:3])  # parsing takes long
    select = ""
    for form in ("select", "view", "table"):
        if form not in dialect(engine).forms:
            continue
        sql = publish_sql(
            forest, "visits", form=form, name="scored", dialect=dialect(engine), key=["id"],
            force=True,
        ).rstrip(";\n")  # fmt: skip
        # where a form repeats the select, only what surrounds it is parsed
        parsed = sql.replace(select, "SELECT 1") if select else sql
        assert len(sqlglot.parse(parsed, dialect=PARSERS.get(engine, engine))) == 1
        if form == "select":
            select = sql[sql.index("WITH\n") :]


def _without_dots(case: Case) -> Forest:
    """The forest with names that BigQuery can have."""
    domain = case.forest.domain
    plain = tuple(replace(a, name=f"a{i}") for i, a in enumerate(domain.attributes))
    labels = tuple(f"c{i}" for i in range(len(domain.classes)))
    return replace(case.forest, domain=replace(domain, attributes=plain, classes=labels))


@pytest.mark.parametrize("engine", DIALECTS)
def test_only_duckdb_excludes_and_nothing_indexes_a_list(made: MakeCase, engine: str) -> None:
    if engine == "bigquery":
        pytest.skip("BigQuery can have none of these names")
    forest = made("log-odds of four").forest
    key = () if engine == "duckdb" else ("id",)
    sql = forest.to_sql("visits", dialect=engine, key=key)
    assert ("EXCLUDE" in sql) == (engine == "duckdb")
    assert "][" not in sql
    assert "*" not in sql.replace("t.*", "") or engine == "duckdb"


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [("postgre", '"postgres"'), ("mysqll", '"mysql"'), ("sparc", '"spark"'), ("x", "Choose one")],
)
def test_an_unknown_dialect_gets_the_nearest_name(wanted: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        dialect(wanted)


def test_other_names_of_an_engine_are_known() -> None:
    assert dialect("MariaDB").name == "mysql"
    assert dialect("databricks").name == "spark"


@pytest.mark.parametrize("engine", [e for e in DIALECTS if e != "duckdb"])
def test_columns_or_a_key_are_required_where_star_cannot_exclude(engine: str) -> None:
    with pytest.raises(UsageError, match=r"columns.*key"):
        visits().to_sql(dialect=engine)
    with pytest.raises(DpforestError, match='no column "city"'):
        visits().to_sql(dialect=engine, columns=("id", "age", "weight", "since"))
    with pytest.raises(DpforestError, match="prefix"):
        visits().to_sql(dialect=engine, columns=(*COLUMNS, "Prediction"))


@pytest.mark.parametrize(
    ("engine", "forest", "sentence"),
    [
        ("postgres", visits(label="y" * 62), "longer than the 63 bytes that PostgreSQL allows"),
        ("postgres", visits(label="é" * 31), "longer than the 63 bytes that PostgreSQL allows"),
        ("mysql", visits(label="yes "), "ends with a space"),
        ("mysql", visits(label="yes\n"), r"yes\\n' ends with a space"),
        ("mysql", visits(label="😀"), r"beyond U\+FFFF"),
        ("bigquery", visits(label="y.es"), "holds '.', which BigQuery allows in no name"),
        ("spark", visits(label="${x}"), "Spark replaces"),
        ("polars", visits(column="*"), "several columns in Polars"),
        ("polars", visits(column="^city$"), "several columns in Polars"),
        ("tsql", visits(depth=8), "levels of CASE and SQL Server allows 10"),
        ("tsql", wide(45), "12 levels of CASE and SQL Server allows 10"),
        ("sqlite", visits(depth=10), "14 levels of CASE and SQLite allows 13"),
        ("datafusion", visits(depth=39), "43 levels of CASE and DataFusion allows 42"),
        ("polars", visits(depth=39), "43 levels of CASE and Polars allows 42"),
    ],
)
def test_what_an_engine_cannot_have_is_refused(engine: str, forest: Forest, sentence: str) -> None:
    with pytest.raises(DpforestError, match=sentence) as refused:
        forest.to_sql(dialect=engine, key=("id",))
    assert str(refused.value).endswith(".")


@pytest.mark.parametrize("engine", DIALECTS)
@pytest.mark.parametrize("city", ["a\x00b", "\ud800"])
def test_a_category_that_no_engine_holds_is_refused(engine: str, city: str) -> None:
    with pytest.raises(DpforestError, match=r"NUL|Unicode"):
        dialect(engine).text(city)
    with pytest.raises(DpforestError, match=r"NUL|Unicode"):
        dialect(engine).check_name(city)


def test_numbers_and_dates_beyond_an_engine_are_refused() -> None:
    for beyond in (2**63, -(2**63), 2**64 - 1, 2**70):  # a UBIGINT and a HUGEINT hold some
        with pytest.raises(DpforestError, match=f"holds the number {beyond}, beyond .* PostgreSQL"):
            dialect("postgres").literal(str(beyond), "integer")
    assert dialect("duckdb").literal(str(2**70), "integer") == str(2**70)
    with pytest.raises(DpforestError, match="ClickHouse cannot hold"):
        dialect("clickhouse").literal("1815-06-18", "date")
    for beyond in ("1677-12-31 23:59:59", "2262-01-01 00:00:00"):
        with pytest.raises(DpforestError, match="DataFusion cannot hold"):
            dialect("datafusion").literal(beyond, "timestamp")
    assert dialect("datafusion").literal("1677-12-31", "date") == "DATE '1677-12-31'"


def test_sql_beyond_the_size_limit_of_an_engine_is_refused_without_force(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = dialect("clickhouse")
    monkeypatch.setattr(type(own), "most_bytes", 1000)
    with pytest.raises(DpforestError, match="ClickHouse allows 1,000 bytes"):
        publish_sql(visits(), "visits", dialect=own, key=["id"])
    assert publish_sql(visits(), "visits", dialect=own, key=["id"], force=True)


def test_forms_that_an_engine_lacks_are_refused() -> None:
    for engine in ("postgres", "polars"):
        with pytest.raises(UsageError, match="form must be one of"):
            visits().to_sql(dialect=engine, form="macro", key=("id",))
    with pytest.raises(UsageError, match="fast"):
        visits().to_sql(dialect="postgres", fast=True, key=("id",))


@pytest.mark.parametrize("engine", DIALECTS)
def test_a_dialect_has_a_line_in_the_table_of_engines(engine: str) -> None:
    page = (SNAPSHOTS.parent.parent / "docs" / "engines.md").read_text(encoding="utf-8")
    own: type[Dialect] = DIALECTS[engine]
    assert f"| `{engine}` | {own.title}" in page
