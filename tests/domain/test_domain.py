"""The public domain: files, declarations, cells and edges."""

from __future__ import annotations

import datetime as dt
import json
import math
import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.bin_edges import Scale, cut
from dpforest_duckdb.domain.file import domain_from_mapping, domain_toml, load_domain
from dpforest_duckdb.domain.types import (
    DATE,
    DOUBLE,
    INTEGER,
    VARCHAR,
    column_type,
    column_types,
)
from dpforest_duckdb.domain.values import ordinal
from dpforest_duckdb.engine.declarations import declared_columns, declared_domain
from dpforest_duckdb.engine.duckdb import DuckDBEngine
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.scoring.codes import DuckDBCodes
from dpforest_duckdb.sql import Sql

TARGET = {"name": "y", "kind": "categorical", "domain": ["a", "b"]}


def mapping(*columns: dict, **rest: object) -> dict:
    return {"target": "y", "column": [*columns, TARGET], **rest}


def numeric(**keys: object) -> dict:
    return {"name": "x", "kind": "numeric", **keys}


@pytest.mark.more
def test_every_sidecar_is_a_valid_domain(data_dir: Path) -> None:
    files = sorted(data_dir.glob("*.toml"))
    assert len(files) >= 18
    for file in files:
        con = duckdb.connect()
        con.execute(f"CREATE TABLE t AS FROM '{file.with_suffix('.parquet')}'")
        bound = load_domain(file).bind(DuckDBEngine(con).table("t").columns)
        assert all(a.type and a.cells >= 2 for a in bound.attributes)


def edges(sql_type: str, **keys: object) -> tuple:
    return (
        domain_from_mapping(mapping(numeric(**keys)))
        .attributes[0]
        .bound(column_type(sql_type))
        .edges
    )


def test_bins_are_equal_in_width_over_the_bounds() -> None:
    assert edges("DOUBLE", lower=0, upper=8, bins=4) == (2, 4, 6)
    assert len(edges("DOUBLE", lower=0, upper=1)) == 31


def test_an_integer_column_gets_at_most_one_bin_per_integer() -> None:
    assert edges("INTEGER", lower=1, upper=4) == (1, 2, 3)
    assert edges("INTEGER", lower=17, upper=90, bins=2) == (53,)
    assert edges("INTEGER", lower=0.5, upper=2.5, bins=4) == (1,)


def test_log_spaced_and_own_edges() -> None:
    assert edges("DOUBLE", lower=1, upper=10_000, bins=4, scale="log") == pytest.approx(
        (10, 100, 1000)
    )
    assert edges("DOUBLE", lower=0.05, upper=400.0, bins=5, scale="log") == (0.3, 1.8, 11, 70)
    zero = edges("DOUBLE", lower=0, upper=100, bins=4, scale="log")
    assert 0 < zero[0] < zero[1] < zero[2] < 50
    assert edges("DOUBLE", edges=[1.5, 2.5]) == (1.5, 2.5)
    assert edges("INTEGER", edges=[1.5, 2.5]) == (1, 2)


TINY = math.ulp(0.0)  # the least number above 0


@pytest.mark.parametrize(
    ("sql_type", "lower", "upper"),
    [
        ("DOUBLE", 0, TINY),
        ("DOUBLE", -TINY, 9 * TINY),
        ("FLOAT", 0.0, 400 * TINY),
        ("DECIMAL(10,2)", 0, TINY),
        ("TIMESTAMP", 0, TINY),
        ("DOUBLE", 2**53 + 3, float(2**53 + 4)),  # rounded, they are the same
    ],
)
def test_bounds_too_close_for_bins_are_refused(sql_type: str, lower: float, upper: float) -> None:
    """Bins of equal width are as before, even if they are not the bins that are asked for."""
    assert edges(sql_type, lower=lower, upper=upper)
    sentence = 'lower and upper of column "x" are too close together to be cut into bins'
    with pytest.raises(DpforestError, match=sentence):
        edges(sql_type, lower=lower, upper=upper, scale="mixed")
    attribute = Attribute("x", "numeric", lower=lower, upper=upper).bound(column_type(sql_type))
    for bins in (4, 32, 128, 240):
        with pytest.raises(DpforestError, match=sentence):
            attribute.recut(bins)


@pytest.mark.parametrize("upper", [1e-320, 1e-308, 9e299])
def test_bounds_as_close_or_as_wide_as_numbers_are_can_be_cut(upper: float) -> None:
    for lower in (0, -upper):
        attribute = Attribute("x", "numeric", lower=lower, upper=upper).bound(DOUBLE)
        cut = attribute.recut(128).edges
        assert len(cut) > 60
        assert lower <= cut[0] < cut[-1] <= upper


@pytest.mark.parametrize(
    ("lower", "upper", "values"),
    [
        (2**60 - 20, 2.0**60, 20),
        (2**70 - 2**16, 2.0**70, None),
        (2**125 - 2**70, 2.0**125, None),
        (-(2.0**125), 2**70 - 2**125, None),
    ],
)
def test_a_range_that_is_rounded_to_nothing_is_not_listed_value_by_value(
    lower: float, upper: float, values: int | None
) -> None:
    """The range of these is 0 as a float; there are up to 2 ** 70 whole numbers in it."""
    attribute = Attribute("x", "numeric", lower=lower, upper=upper).bound(column_type("HUGEINT"))
    cut = attribute.recut(240).edges
    assert len(cut) == values if values else 100 < len(cut) <= 240
    assert all(isinstance(edge, int) for edge in cut)


@pytest.mark.parametrize("sql_type", ["INTEGER", "DOUBLE"])
@pytest.mark.parametrize("scale", [None, "log", "mixed"])
def test_bounds_that_are_no_numbers_are_refused(sql_type: str, scale: Scale | None) -> None:
    kind = column_type(sql_type)
    for lower, upper in ((0, math.nan), (math.nan, 0)):
        with pytest.raises(DpforestError, match="must be less than upper"):
            Attribute("x", "numeric", lower=lower, upper=upper, scale=scale)
    for lower, upper in ((-math.inf, math.inf), (-1e308, 1e308), (0, 10**400)):
        attribute = Attribute("x", "numeric", lower=lower, upper=upper, scale=scale)
        with pytest.raises(DpforestError, match="beyond that"):
            attribute.bound(kind)
    with pytest.raises(DpforestError, match="ascend"):
        Attribute("x", "numeric", edges=(0.0, math.nan))
    with pytest.raises(DpforestError, match="beyond that"):
        Attribute("x", "numeric", edges=(math.nan,)).bound(kind)


def test_dates_are_cut_by_day() -> None:
    column = numeric(lower=dt.date(2020, 1, 1), upper=dt.date(2020, 1, 4))
    attribute = domain_from_mapping(mapping(column)).attributes[0].bound(DATE)
    assert [attribute.text(e) for e in attribute.edges] == [f"2020-01-0{d}" for d in (1, 2, 3)]
    assert attribute.code(dt.date(2020, 1, 2)) == 1
    assert attribute.code(dt.date(1999, 1, 1)) == 0
    assert attribute.code(dt.date(2030, 1, 1)) == 3


def test_null_and_values_outside_the_domain_have_the_stated_cells() -> None:
    nullable = Attribute("c", "categorical", ("a", "b"), nullable=True, type=VARCHAR)
    assert [nullable.code(v) for v in ("a", "b", "zzz", None)] == [0, 1, 2, 3]
    strict = Attribute("c", "categorical", ("a", "b"), nullable=False, type=VARCHAR)
    assert [strict.code(v) for v in ("a", "zzz", None)] == [0, 2, 2]
    for allowed in (True, False):
        number = Attribute("n", "numeric", edges=(0.0, 1.0), nullable=allowed, type=DOUBLE)
        found = [number.code(v) for v in (-math.inf, 0.0, 0.5, math.inf, None, math.nan)]
        assert found == [0, 0, 1, 2, 3, 3]


@pytest.mark.parametrize(
    ("values", "sql_type", "raw", "cell"),
    [
        (["1", "2"], "INTEGER", 2, 1),
        ([1, 2], "BIGINT", 1, 0),
        ([1.5, 2.0], "DOUBLE", 2.0, 1),
        (["1.50", "2"], "DECIMAL(5,2)", Decimal("1.50"), 0),
        ([True, False], "BOOLEAN", False, 1),
        (["2020-01-01", "2020-01-02"], "DATE", dt.date(2020, 1, 2), 1),
    ],
)
def test_categories_of_any_type(values: list, sql_type: str, raw: object, cell: int) -> None:
    column = {"name": "x", "kind": "categorical", "domain": values}
    attribute = domain_from_mapping(mapping(column)).attributes[0].bound(column_type(sql_type))
    assert attribute.code(raw) == cell


def test_words_for_a_column_of_truth_values_are_refused_with_what_to_write() -> None:
    column = {"name": "x", "kind": "categorical", "domain": ["yes", "no"]}
    attribute = domain_from_mapping(mapping(column)).attributes[0]
    with pytest.raises(DpforestError, match="no BOOLEAN: write true and false"):
        attribute.bound(column_type("BOOLEAN"))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ({"column": [TARGET]}, "names no target"),
        ({"target": "y"}, "no .*column"),
        (mapping(), "no attribute besides"),
        ({"target": "z", "column": [numeric(lower=0, upper=1), TARGET]}, 'the target "z"'),
        (mapping(numeric()), "needs lower and upper"),
        (mapping(numeric(lower=1, upper=1)), "lower .* must be less"),
        (mapping(numeric(lower=math.nan, upper=1)), "finite"),
        (mapping(numeric(lower=0, upper=math.inf)), "finite"),
        (mapping(numeric(lower=0, upper=1, bins=0)), "bins"),
        (mapping(numeric(lower=0, upper=1, bins=True)), "bins"),
        (mapping(numeric(edges=[2, 1])), "ascend"),
        (mapping(numeric(edges=[1, 2], bins=4)), "both bins and edges"),
        (mapping(numeric(lower=0, upper=1, scale="cubic")), "scale"),
        (mapping({"name": "x", "kind": "text"}), "kind"),
        (mapping({"name": "x", "kind": "categorical", "domain": []}), "no categories"),
        (mapping({"name": "x", "kind": "categorical", "domain": ["a", "a"]}), "twice"),
        (mapping({"name": "x", "kind": "categorical", "domain": "ab"}), "list"),
        (mapping({"name": "x", "kind": "categorical", "domain": [["a"], ["b"]]}), "one list"),
        (mapping(numeric(lower=0, upper=1), numeric(lower=0, upper=1) | {"name": "X"}), '"X"'),
        (mapping({"kind": "numeric"}), "no name"),
        (mapping(numeric(lower=0, upper=1, nullable="no")), "nullable"),
        ({"target": "y", "column": [numeric(lower=0, upper=1), TARGET | {"domain": ["a"]}]}, "two"),
    ],
)
def test_a_wrong_domain_is_one_sentence(content: dict, sentence: str) -> None:
    with pytest.raises(DpforestError, match=sentence) as caught:
        domain_from_mapping(content)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("target = [")
    given = domain_toml(mapping(numeric(lower=0, upper=9)))
    (tmp_path / "mark.toml").write_text(given, encoding="utf-8-sig")  # as Windows writes it
    assert load_domain(tmp_path / "mark.toml") == small()
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "digits.toml").write_text(f"target = 1{'0' * 5000}")
    for name in ("missing", "bad", "binary", "digits"):
        with pytest.raises(DpforestError, match=name):
            load_domain(tmp_path / f"{name}.toml")


def small() -> Domain:
    return domain_from_mapping(mapping(numeric(lower=0, upper=9)))


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"y": "VARCHAR"}, 'no column "x".*or leave it out with exclude'),
        ({"x": "INTEGER"}, 'no column "y".*correct target, or the target in the domain'),
        ({"x": "VARCHAR", "y": "VARCHAR"}, 'Column "x" is declared numeric but has type VARCHAR'),
        ({"x": "INTEGER[]", "y": "VARCHAR"}, "cannot be an attribute"),
        ({"x": "INTEGER", "y": "INTEGER"}, "cannot hold the classes"),
    ],
)
def test_a_table_that_does_not_fit(columns: dict[str, str], sentence: str) -> None:
    with pytest.raises(DpforestError, match=sentence):
        small().bind(column_types(columns))


def test_names_match_without_case_as_in_the_database() -> None:
    bound = small().bind({"X": INTEGER, "Y": VARCHAR})
    assert (bound.attributes[0].name, bound.target) == ("X", "Y")


def test_columns_and_exclude() -> None:
    domain = domain_from_mapping(
        mapping(numeric(lower=0, upper=1), numeric(lower=0, upper=1) | {"name": "z"})
    )
    assert [a.name for a in domain.keep(columns=["Z"]).attributes] == ["z"]
    assert [a.name for a in domain.keep(exclude=["z"]).attributes] == ["x"]
    with pytest.raises(DpforestError, match="exclude"):
        domain.keep(exclude=["nothing"])
    with pytest.raises(DpforestError, match="which is the target"):
        domain.keep(exclude=["Y"])


@pytest.mark.parametrize(
    "sql_type",
    ["INTEGER); DROP TABLE t; --", "ENUM('a') --", "ENUM('a', b)", "DECIMAL(1,2);", "STRUCT(a)"],
)
def test_a_type_is_whole_or_none(sql_type: str) -> None:
    assert not column_type(sql_type).usable


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
    ("name", "family", "low", "high"),
    [
        ("INTEGER", "integer", -(2**126), 2**126),
        ("UHUGEINT", "integer", -1, 2**126),
        ("DECIMAL(10,2)", "decimal", -(10**36), 10**36),
        ("DOUBLE", "float", -1e300, 1e300),
        ("TIMESTAMP_NS", "timestamp", -9_223_372_036, 9_223_372_036),
    ],
)
def test_a_type_knows_what_its_column_compares_with(
    name: str, family: str, low: float, high: float
) -> None:
    kind = column_type(name)
    assert (kind.family, str(kind)) == (family, name)
    assert kind.limits == (low, high)


def test_the_names_of_types_give_width_scale_and_labels() -> None:
    decimal, coarse = column_type("DECIMAL(10,2)"), column_type("TIMESTAMP_S")
    assert (decimal.digits, decimal.scale, decimal.base) == (10, 2, "DECIMAL")
    assert (coarse.microseconds, column_type("TIMESTAMP_NS").microseconds) == (10**6, 1)
    assert column_type("ENUM('it''s', 'b')").labels == ("it's", "b")
    assert [column_type(name).bits for name in ("TINYINT", "UTINYINT", "UHUGEINT")] == [8, 9, 129]


def test_codes_of_an_enum_are_used_if_its_labels_are_the_categories_in_order() -> None:
    given = Attribute("c", "categorical", ("a", "b"))
    for labels, used in (("'a', 'b'", True), ("'b', 'a'", False), ("'a', 'b', 'c'", False)):
        bound = given.bound(column_type(f"ENUM({labels})"))
        assert ("enum_code" in DuckDBCodes().code(bound, Sql("c"))) == used


NUMBER = {"name": "a", "kind": "numeric", "lower": 0, "upper": 9}
LABEL = {"name": "k", "kind": "categorical", "domain": ["n", "p"]}


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ([NUMBER, {**NUMBER, "upper": 5}], "which are one column"),
        ([NUMBER, {"name": "a", "kind": "identifier"}], "which are one column"),
        ([NUMBER, {**LABEL, "domain": ["p", "q"]}], "twice"),
    ],
)
def test_a_domain_names_a_column_once(columns: list[dict[str, object]], words: str) -> None:
    """One-letter names are one object in Python, so names are compared by value."""
    with pytest.raises(DpforestError, match=words):
        domain_from_mapping({"target": "k", "column": [*columns, LABEL]})


def test_a_file_that_is_nested_without_end_is_no_domain(tmp_path: Path) -> None:
    path = tmp_path / "deep.toml"
    path.write_text("a=" + "[" * 100_000)
    with pytest.raises(DpforestError, match="nested too deeply"):
        load_domain(path)


@pytest.mark.parametrize(
    ("sql_type", "lower", "upper"),
    [
        ("DOUBLE", 0.0, 67.1),
        ("DOUBLE", -3.7, 1e9 / 3),
        ("DOUBLE", 0.0, 1e-307),
        ("DOUBLE", -9e299, 9e299),
        ("DECIMAL(9, 2)", 0.01, 99.37),
        ("BIGINT", 0, 18_424),
        ("BIGINT", -(2**62), 2**62),
        ("TIMESTAMP", dt.datetime(2020, 1, 1, 0, 0, 7), dt.datetime(2024, 2, 29, 23, 59, 59)),
        ("TIMESTAMP", dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, 0, 0, 9)),
    ],
)
@pytest.mark.parametrize("bins", [4, 32, 240])
def test_mixed_bins_are_cut_at_numbers_of_few_digits(
    sql_type: str, lower: Any, upper: Any, bins: int
) -> None:
    kind = column_type(sql_type)
    plain = Attribute("a", "numeric", lower=lower, upper=upper).bound(kind)
    edges = plain.recut(bins).edges
    low, high = (ordinal(limit, kind.family) for limit in (lower, upper))
    assert list(edges) == sorted(set(edges))
    assert low <= edges[0]
    assert edges[-1] <= high
    assert len(edges) >= min(bins, 240) - 3 or kind.family == "integer" or high - low < 10
    widths = np.diff([low, *edges, high])
    if kind.family == "float":
        exact = cut(low, high, bins, "mixed", whole=False)
        narrower = np.minimum(
            *(np.diff([low, *exact, high])[part] for part in (slice(-1), slice(1, None)))
        )
        assert (abs(np.subtract(edges, exact)) <= narrower / 10 * (1 + 1e-9)).all()
    for edge, narrower in zip(edges, np.minimum(widths[:-1], widths[1:]), strict=True):
        if kind.family != "timestamp":
            digits = repr(edge).partition("e")[0].strip("-").replace(".", "").strip("0")
            span = math.log10(max(abs(edge) / float(narrower), 1.0))
            assert len(digits) <= span + 3, (edge, narrower)
        elif narrower > 500_000:
            assert edge % 86_400 == 0


@pytest.mark.parametrize(
    ("edge", "text"),
    [
        (0.0, "0"),
        (0.1 + 0.2, "0.3"),
        (-2.5, "-2.5"),
        (0.00001, "0.00001"),
        (1e-12, "1e-12"),
        (999999999999999.0, "999999999999999"),
        (1e15, "1000000000000000"),
        (-1234567890123456.0, "-1234567890123456"),
        (1e16, "1e+16"),
        (12345678901234568.0, "1.2345678901234568e+16"),
        (10**20, "100000000000000000000"),
    ],
)
def test_cut_points_are_written_in_digits_unless_they_are_very_large_or_small(
    edge: float, text: str
) -> None:
    assert Attribute("a", "numeric", edges=(edge,)).bound(column_type("DOUBLE")).text(edge) == text
    assert float(text) == pytest.approx(edge, rel=1e-15)


def test_a_bin_of_one_whole_number_has_its_name() -> None:
    few = Attribute("a", "numeric", lower=0, upper=5).bound(column_type("INTEGER")).recut(8)
    labels = [few.label(cell) for cell in range(few.proper)]
    assert labels == ["<= 0", "1", "2", "3", "4", "> 4"]
    days = Attribute("d", "numeric", edges=(dt.date(2024, 1, 1), dt.date(2024, 1, 2)))
    assert days.bound(column_type("DATE")).label(1) == "2024-01-02"
    fractions = Attribute("a", "numeric", edges=(1, 2)).bound(column_type("DOUBLE"))
    assert fractions.label(1) == "> 1 and <= 2"


def test_all_errors_of_a_domain_come_at_once() -> None:
    column = {"name": "c", "kind": "categorical", "domain": ["a", "b"]}
    wrong = [{"name": name, "kind": "numeric", "lower": 1, "upper": 0} for name in "efghijk"]
    with pytest.raises(DpforestError) as refused:
        domain_from_mapping({"target": "c", "column": [column, *wrong, {"name": "z"}]})
    for name in "efghi":
        assert f'"{name}"' in str(refused.value)
    assert '"j"' not in str(refused.value)
    assert "Further errors: 3." in str(refused.value)
    domain = domain_from_mapping(
        {"target": "c", "column": [column, *({**each, "upper": 9} for each in wrong[:2])]}
    )
    with pytest.raises(DpforestError, match=r'"e".*"f"'):
        domain.bind({"c": column_type("VARCHAR"), "f": column_type("VARCHAR")})


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (mapping(numeric(min=0, max=9)), '"min": did you mean lower'),
        (mapping({"name": "x", "knid": "numeric"}), '"knid": did you mean kind'),
        (mapping({"name": "x", "kind": "categorial", "domain": ["a"]}), 'not "categorial"'),
        (mapping(numeric(lower="0", upper=9)), "without quotes"),
        (mapping({"name": "y2", "kind": "identifier"}) | {"target": "y2"}, "is an identifier"),
        ({"target": "y", "columns": [TARGET]}, "is misspelt"),
    ],
)
def test_usual_mistakes_get_a_hint(content: dict, words: str) -> None:
    with pytest.raises(DpforestError) as refused:
        domain_from_mapping(content)
    assert words in str(refused.value)


def test_a_float_column_has_only_categories_that_it_holds(con: duckdb.DuckDBPyConnection) -> None:
    """DuckDB compares a FLOAT with 0.1 as a DOUBLE, so the two are never equal."""
    con.execute("CREATE TABLE t (x FLOAT, y FLOAT)")
    columns = DuckDBEngine(con).table("t").columns
    exact = repr(float(np.float32(0.1)))
    fields = [{"name": name, "kind": "categorical", "domain": [0.1, 1]} for name in ("x", "y")]
    refusals = {
        "y": '"y" is FLOAT, which cannot hold the classes',
        "x": f'"x" is FLOAT, which does not hold 0.1 exactly: write {exact} in',
    }
    for name, sentence in refusals.items():
        with pytest.raises(DpforestError, match=sentence):
            domain_from_mapping({"target": "y", "column": fields}).bind(columns)
        fields[name == "y"]["domain"] = [exact, 1]
    fields[0]["domain"] = [1e39, 1]
    with pytest.raises(DpforestError, match=r'"x" is FLOAT.*correct'):
        domain_from_mapping({"target": "y", "column": fields}).bind(columns)
    fields[0]["domain"] = [exact, 1]
    domain_from_mapping({"target": "y", "column": fields}).bind(columns)


def test_text_is_not_taken_for_truth_values(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE t (x BOOLEAN)")
    kinds = DuckDBEngine(con).table("t").columns
    truth = Attribute("x", "categorical", ("True", "False")).bound(kinds["x"])
    assert truth.rebound(kinds["x"]) == truth
    with pytest.raises(DpforestError, match="VARCHAR, but the model was trained on BOOLEAN"):
        truth.rebound(VARCHAR)
    with pytest.raises(DpforestError, match="BOOLEAN, but the model was trained on VARCHAR"):
        Attribute("x", "categorical", ("True", "no")).bound(VARCHAR).rebound(kinds["x"])


def test_a_model_of_a_float_column_is_read_whatever_its_categories() -> None:
    """Only new domains are refused: the model is paid for."""
    single = column_type("FLOAT")
    old = Attribute("x", "categorical", ("0", "0.1")).bound(single)
    assert old.rebound(single) == old
    with pytest.raises(DpforestError, match="trained on DOUBLE: convert the column"):
        Attribute("x", "categorical", ("0", "0.1")).bound(DOUBLE).rebound(single)


def test_bins_that_the_domain_chose_stay() -> None:
    kept = [
        Attribute("a", "numeric", lower=0, upper=9, bins=3),
        Attribute("b", "numeric", edges=(1.0, 2.0, 3.0)),
        Attribute("c", "numeric", lower=1, upper=100, scale="log"),
        Attribute("d", "numeric", lower=0, upper=9, edges=(4.0,)),
    ]
    for attribute in kept:
        bound = attribute.bound(DOUBLE)
        assert bound.recut(8) == bound
    own = Attribute("e", "numeric", lower=-5, upper=100).bound(DOUBLE)
    assert len(own.recut(8).edges) == 8
    assert own.recut(8).edges == tuple(sorted(own.recut(8).edges))
    whole = Attribute("f", "numeric", lower=0, upper=3).bound(INTEGER)
    assert set(whole.recut(32).edges) <= {0, 1, 2}
    few = Attribute("g", "numeric", lower=1, upper=8).bound(INTEGER)
    assert few.recut(4).edges == (1, 2, 3, 4, 5, 6, 7), "few whole numbers have a bin each"
    more = Attribute("h", "numeric", lower=1, upper=9).bound(INTEGER)
    assert len(more.recut(4).edges) == 4
