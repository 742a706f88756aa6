"""The domain: what it refuses, columns and types, and words for what is wrong."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pytest
from domain_mappings import TARGET, mapping, numeric, small

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.file import domain_from_mapping
from dpforest_duckdb.domain.types import (
    DOUBLE,
    INTEGER,
    VARCHAR,
    column_type,
    column_types,
)
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.errors import DpforestError, UsageError
from dpforest_duckdb.scoring.codes import DuckDBCodes
from dpforest_duckdb.sql import Sql


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


def test_all_errors_of_a_domain_come_at_once() -> None:
    column = {"name": "c", "kind": "categorical", "domain": ["a", "b"]}
    wrong = [{"name": name, "kind": "numeric", "lower": 1, "upper": 0} for name in "efghijk"]
    with pytest.raises(DpforestError) as refused:
        domain_from_mapping({"target": "c", "column": [column, *wrong, {"name": "z"}]})
    assert refused.value.sentence.startswith(
        'lower of column "e" must be less than upper: correct the bounds. The same holds for "f", '
        '"g", "h", "i", "j" and 1 more. The domain gives no kind for "z": '
    )
    keys = ("knid", "lwer", "uper", "bnis", "edgse", "scael", "nulable")
    misspelt = [{"name": name, key: 1} for name, key in zip("efghijk", keys, strict=True)]
    with pytest.raises(DpforestError, match=r'"e".*"i".*Further errors: 2\.'):
        domain_from_mapping({"target": "c", "column": [column, *misspelt]})
    domain = domain_from_mapping(
        {"target": "c", "column": [column, *({**each, "upper": 9} for each in wrong[:2])]}
    )
    with pytest.raises(DpforestError, match=r'"e".*"f"'):
        domain.bind({"c": column_type("VARCHAR"), "f": column_type("VARCHAR")})
    with pytest.raises(DpforestError) as refused:
        domain.bind(dict.fromkeys("cef", column_type("VARCHAR")))
    assert refused.value.sentence == (
        'Column "e" is declared numeric but has type VARCHAR: declare it categorical with its '
        'domain, or convert the column. The same holds for "f".'
    )


def test_columns_of_a_wrong_kind_share_one_sentence() -> None:
    column = {"name": "c", "kind": "categorical", "domain": ["a", "b"]}
    wrong = [{"name": name, "kind": "text"} for name in "efghi"]
    wrong += [{"name": "j", "kind": 1}, {"name": "k"}]
    with pytest.raises(DpforestError) as refused:
        domain_from_mapping({"target": "c", "column": [column, *wrong]})
    assert refused.value.sentence == (
        'The domain gives no kind for "k": add kind = "categorical", "numeric" or "identifier" '
        'with its keys to each, or delete the column. The domain must have kind = "categorical", '
        '"numeric" or "identifier", not "text" for "e", "f", "g" and 3 more: correct it, or delete '
        "the column."
    )


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (mapping(numeric(min=0, max=9)), '"min": did you mean lower'),
        (mapping({"name": "x", "knid": "numeric"}), '"knid": did you mean kind'),
        (mapping({"name": "x", "kind": "categorial", "domain": ["a"]}), 'not "categorial"'),
        (mapping(numeric(lower="0", upper=9)), "without quotes"),
        (mapping({"name": "y2", "kind": "identifier"}) | {"target": "y2"}, "is an identifier"),
        ({"target": "y", "columns": [TARGET]}, 'the key "columns": did you mean column'),
        ({"target": "y", "column": [TARGET], "Column": [TARGET]}, "did you mean column"),
        ({"target": "y", "column": [TARGET], "coloumn": [TARGET]}, "did you mean column"),
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
    with pytest.raises(DpforestError, match="trained on VARCHAR: convert the column"):
        Attribute("x", "categorical", ("0", "a")).bound(VARCHAR).rebound(single)


@pytest.mark.parametrize("bad", ["\ud800", "a\x00"])
def test_names_and_values_that_no_database_holds_are_refused(bad: str) -> None:
    """Otherwise the run fails where SQL is written, after the debit."""
    x = Attribute("x", "numeric", lower=0, upper=1)
    for make in (
        lambda: Attribute(bad, "categorical", ("a", "b")),
        lambda: Attribute("x", "categorical", ("a", bad)),
        lambda: Domain((x,), "y", ("a", bad)),
    ):
        with pytest.raises(DpforestError, match=r"NUL|Unicode"):
            make()


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ({"kind": None}, "kind must be text"),
        ({"nullable": "no"}, "nullable must be True or False"),
        ({"ordered": 2}, "ordered must be True or False"),
        ({"edges": 5}, "edges must be a list of numbers or dates"),
        ({"edges": np.array([1, 2])}, "edges must be a list of numbers or dates"),
        ({"taxonomy": {"group": ["a"]}}, "taxonomy must be a list of pairs: a group and"),
        ({"taxonomy": [("group", "a")]}, "taxonomy must be a list of pairs: a group and"),
        ({"subgroups": 5}, "subgroups must be a list of levels"),
        ({"subgroups": [("group", ("a",))]}, "subgroups must be a list of levels"),
        ({"type": "INTEGER"}, "type must be a ColumnType"),
        ({"upper": "9"}, 'upper of column "x" must be a number or a date'),
        ({"upper": True}, 'upper of column "x" must be a number or a date'),
        ({"edges": [1, None]}, 'an edge of column "x" must be a number or a date'),
        ({"values": "a"}, "values must be a list of texts"),
    ],
)
def test_arguments_of_a_wrong_type_are_refused(argument: dict, words: str) -> None:
    for kind, values in (("categorical", ("a",)), ("numeric", ())):
        with pytest.raises(UsageError, match=words):
            Attribute(**{"name": "x", "kind": kind, "values": values, "lower": 0} | argument)


def test_lists_are_kept_as_tuples_so_that_equal_domains_have_one_hash() -> None:
    categories, levels = ["a", "b"], [("all", ["a", "b"])]
    attribute = Attribute("x", "categorical", categories, taxonomy=levels, subgroups=[levels])
    domain = Domain([attribute], "y", ["no", "yes"], identifiers=["id"])
    categories.append("a")
    level = (("all", ("a", "b")),)
    same = Attribute("x", "categorical", ("a", "b"), taxonomy=level, subgroups=(level,))
    assert attribute == same
    assert domain == Domain((same,), "y", ("no", "yes"), identifiers=("id",))
    assert len({domain, Domain((same,), "y", ("no", "yes"), identifiers=("id",))}) == 1
    with pytest.raises(UsageError, match="target_type must be a ColumnType"):
        Domain([attribute], "y", ["no", "yes"], target_type="BOOLEAN")


@pytest.mark.parametrize("number", [np.int64, np.float32, Decimal, int, float])
def test_bounds_and_edges_of_any_number_are_those_of_python(number: Callable[[int], Any]) -> None:
    plain = int if number in (int, np.int64, Decimal) else float
    for made, expected in (
        (
            Attribute("x", "numeric", lower=number(0), upper=number(8), bins=np.int64(4)),
            Attribute("x", "numeric", lower=plain(0), upper=plain(8), bins=4),
        ),
        (
            Attribute("x", "numeric", edges=[number(1), number(2)]),
            Attribute("x", "numeric", edges=(plain(1), plain(2))),
        ),
    ):
        assert made == expected
        kept = (made.lower, made.upper, *made.edges)
        assert {type(each) for each in kept if each is not None} == {plain}
    exact = Decimal(2**53 + 1)
    assert Attribute("x", "numeric", lower=0, upper=exact).upper == 2**53 + 1
    for bad in (Decimal("NaN"), Decimal("sNaN"), Fraction(10**400)):
        with pytest.raises(DpforestError, match=r"lower .* must be less"):
            Attribute("x", "numeric", lower=bad, upper=1)


def test_an_attribute_that_names_another_column_is_refused_before_training() -> None:
    other = Attribute("x", "numeric", lower=0, upper=9, of="z")
    domain = Domain((other,), "y", ("no", "yes"))
    with pytest.raises(DpforestError, match='Attribute "x" has of='):
        domain.bind({"x": INTEGER, "y": VARCHAR})


def test_what_is_missing_or_too_much_is_named_as_it_is_written() -> None:
    """In Python by the argument, in a file by the key."""
    for made, said in (
        (
            lambda: Attribute("a", "categorical"),
            'Attribute "a" has no categories: list them in values.',
        ),
        (
            lambda: Domain((Attribute("a", "categorical", ("x",)),), "k", ("no",)),
            'The target "k" needs at least two classes: list them in classes.',
        ),
        (
            lambda: Domain((Attribute("K", "categorical", ("x", "y")),), "k", ("no", "yes")),
            'Column "k" is the target and an attribute: leave it out of the attributes.',
        ),
        (
            lambda: domain_from_mapping(mapping({"name": "a", "kind": "categorical"})),
            'Column "a" has no categories: add domain = […].',
        ),
        (
            lambda: domain_from_mapping(
                {"target": "k", "column": [{"name": "k", "domain": ["no"]}]}
            ),
            'The target "k" needs at least two classes in its domain: list all of them.',
        ),
    ):
        with pytest.raises(DpforestError) as refused:
            made()
        assert str(refused.value) == said
