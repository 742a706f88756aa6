"""Domains that DuckDB's types, CHECKs and comments declare."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import duckdb
import pytest

from dpforest_duckdb.domain.file import domain_toml, load_domain
from dpforest_duckdb.engine.declarations import declared_columns, declared_domain
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.errors import DpforestError

DECLARED = """CREATE TABLE t (
    e ENUM ('it''s', 'b'),
    i INTEGER CHECK (i IN (1, 2, -3)),
    n DOUBLE NOT NULL CHECK (n BETWEEN -1.5 AND 2),
    m INTEGER CHECK (m >= 0 AND 10 >= m),
    d DATE CHECK (d BETWEEN DATE '2020-01-01' AND '2020-12-31'),
    b BOOLEAN,
    free VARCHAR,
    half INTEGER CHECK (half >= 0),
    odd INTEGER CHECK (odd + 1 > 3),
    j VARCHAR,
    y VARCHAR CHECK (y IN ('no', 'yes'))
)"""


def declared(con: duckdb.DuckDBPyConnection) -> dict[str, dict]:
    engine = DuckDBEngine(con)
    return {c["name"]: c for c in declared_columns(engine, engine.table("t"))}


def test_declarations_are_read_without_a_row(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(DECLARED)
    con.execute('COMMENT ON COLUMN t.j IS \'{"kind": "categorical", "domain": ["u"]}\'')
    con.execute("COMMENT ON COLUMN t.free IS 'only words'")
    found = declared(con)
    assert found["e"] == {
        "name": "e",
        "kind": "categorical",
        "domain": ["it's", "b"],
        "nullable": True,
    }
    assert found["i"]["domain"] == [1, 2, -3]
    assert (found["n"]["lower"], found["n"]["upper"], found["n"]["nullable"]) == (-1.5, 2, False)
    assert (found["m"]["lower"], found["m"]["upper"]) == (0, 10)
    assert (found["d"]["lower"], found["d"]["upper"]) == ("2020-01-01", "2020-12-31")
    assert found["b"]["domain"] == [False, True]
    assert found["j"]["domain"] == ["u"]
    for name in ("free", "half", "odd"):
        assert "kind" not in found[name]
    domain = declared_domain(DuckDBEngine(con), DuckDBEngine(con).table("t"), "y")
    assert [a.name for a in domain.attributes] == ["e", "i", "n", "m", "d", "b", "j"]
    domain.bind(DuckDBEngine(con).table("t").columns)


def test_checks_hold_together_and_those_of_a_field_are_no_columns(
    con: duckdb.DuckDBPyConnection,
) -> None:
    con.execute(
        "CREATE TABLE t (s STRUCT(x INTEGER), x INTEGER, a VARCHAR, CHECK (x >= 0 AND x <= 10), "
        "CHECK (x <= 1000), CHECK (s.x BETWEEN 3 AND 4), CHECK (a IN ('p', 'q', 'r')), "
        "CHECK (a IN ('q', 'r', 's')))"
    )
    found = declared(con)
    assert (found["x"]["lower"], found["x"]["upper"]) == (0, 10)
    assert found["a"]["domain"] == ["q", "r"]


def test_a_check_may_exclude_its_bounds(con: duckdb.DuckDBPyConnection) -> None:
    checks = {
        "x": "x > 0 AND 1000 > x",
        "one": "one < 3",
        "infinite": "infinite > 0 AND infinite < 'infinity'",
        "large": "large > 0 AND large < 1e400",
        "empty": "empty > 5 AND empty < 5",
    }
    columns = ", ".join(f"{name} DOUBLE CHECK ({check})" for name, check in checks.items())
    con.execute(f"CREATE TABLE t ({columns})")
    found = declared(con)
    assert (found["x"]["lower"], found["x"]["upper"]) == (0, 1000)
    assert [name for name in checks if "kind" in found[name]] == ["x"]


def test_any_comment_becomes_toml_that_can_be_read(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE t (x VARCHAR, n DOUBLE)")
    groups = {"kind": "categorical", "domain": ["a", "b"], "taxonomy": {"g 1": ["a"], "é": ["b"]}}
    gaps = {**groups, "domain": ["a", None, "b"], "taxonomy": {**groups["taxonomy"], "none": None}}
    number = {"kind": "numeric", "lower": 0, "upper": 1, "bins": None}
    for name, note in (("x", gaps), ("n", number)):
        con.execute(f"COMMENT ON COLUMN t.{name} IS '{json.dumps(note)}'")
    made = tomllib.loads(domain_toml({"target": "x", "column": list(declared(con).values())}))
    assert made["column"][0] == {"name": "x", **groups, "nullable": True}
    number.pop("bins")
    assert made["column"][1] == {"name": "n", **number, "nullable": True}


@pytest.mark.parametrize(
    ("note", "sentence"),
    [
        (r'{"kind": "categorical", "domain": ["x", "\ud800"]}', "not valid Unicode"),
        ('{"kind": "numeric", "lower": NaN, "upper": 1}', "NaN"),
        ('{"kind": "numeric", "lower": 0, "upper": 1e999}', "an infinity"),
        ('{"kind": "categorical", "domain": ["x", null]}', "null.*nullable"),
        ('{"kind": "numeric", "edges": [1, null]}', "edges.*finite number"),
    ],
)
def test_a_comment_with_what_no_domain_holds_is_refused(
    con: duckdb.DuckDBPyConnection, note: str, sentence: str
) -> None:
    con.execute("CREATE TABLE t (x VARCHAR, y BOOLEAN)")
    con.execute(f"COMMENT ON COLUMN t.x IS '{note}'")
    engine = DuckDBEngine(con)
    with pytest.raises(DpforestError, match=sentence) as refused:
        declared_domain(engine, engine.table("t"), "y")
    assert 'column "x"' in str(refused.value)


def test_a_comment_comes_before_type_and_check(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE t (x INTEGER CHECK (x BETWEEN 0 AND 9))")
    note = '{"kind": "numeric", "lower": 1, "upper": 5, "bins": 2}'
    con.execute(f"COMMENT ON COLUMN t.x IS '{note}'")
    assert declared(con)["x"] == {
        "name": "x",
        "kind": "numeric",
        "lower": 1,
        "upper": 5,
        "bins": 2,
        "nullable": True,
    }


def test_declared_domains_come_back_from_their_toml(
    con: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    con.execute(
        "CREATE TABLE t (\"a\"\"b\" ENUM ('x\\y', '\"q\"', 'é😀'), y BOOLEAN, "
        "n DOUBLE CHECK (n BETWEEN 0 AND 1))"
    )
    engine = DuckDBEngine(con)
    columns = declared_columns(engine, engine.table("t"))
    file = tmp_path / "t.toml"
    file.write_text(domain_toml({"target": "y", "column": columns}), encoding="utf-8")
    assert load_domain(file) == declared_domain(engine, engine.table("t"), "y")


def test_without_declared_classes_there_is_no_domain(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE t (x BOOLEAN, y VARCHAR); CREATE TABLE bare (y VARCHAR)")
    engine = DuckDBEngine(con)
    with pytest.raises(DpforestError, match="No column declares its values"):
        declared_domain(engine, engine.table("bare"), "y")
    for target, sentence in (
        (None, "with target"),
        ("y", "not declared"),
        ("zzz", 'no column "zzz"'),
    ):
        with pytest.raises(DpforestError, match=sentence):
            declared_domain(engine, engine.table("t"), target)


@pytest.mark.parametrize(
    ("note", "meant"),
    [
        ('{"kind": "numeric", "lower": 0, "upper": 9, "nulable": false}', "nullable"),
        ('{"kind": "numeric", "lowr": 0, "upper": 9}', "lower"),
        ('{"kid": "identifier"}', "kind"),
        ('{"kind": "categorical", "values": ["a"]}', "domain"),
    ],
)
def test_a_misspelt_key_of_a_comment_is_refused(
    con: duckdb.DuckDBPyConnection, note: str, meant: str
) -> None:
    con.execute("CREATE TABLE t (a INTEGER, k BOOLEAN)")
    con.execute(f"COMMENT ON COLUMN t.a IS '{note}'")
    engine = DuckDBEngine(con)
    with pytest.raises(DpforestError, match=f"did you mean {meant}"):
        declared_columns(engine, engine.table("t"))


def test_a_comment_of_another_tool_is_no_declaration(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE t (a INTEGER, k BOOLEAN)")
    con.execute("""COMMENT ON COLUMN t.a IS '{"owner": "kim", "description": "age"}'""")
    engine = DuckDBEngine(con)
    assert "kind" not in declared_columns(engine, engine.table("t"))[0]
