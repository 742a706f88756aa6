"""One row must not decide whether a run succeeds: encoding never fails once a domain is accepted.

Every column type of DuckDB, with extreme values, as an attribute with extreme bounds, edges and
categories, as the target, and as the privacy unit. A domain may be refused, which is public; a
domain that is accepted must be encoded whatever the rows are.
"""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from variants import some

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import BOOLEAN, column_type
from dpforest_duckdb.engine.base import Coding
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.ledger.book import Ledger
from dpforest_duckdb.privacy.unit import ROW
from dpforest_duckdb.training.evaluate import evaluate
from dpforest_duckdb.training.prepare import prepare
from dpforest_duckdb.tree import LEAF, Tree

INTEGERS = {
    **{f"{name}INT": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
       for name, bits in (("TINY", 8), ("SMALL", 16), ("BIG", 64), ("HUGE", 128))},
    "INTEGER": (-(2**31), 2**31 - 1),
    **{f"U{name}INT": (0, 2**bits - 1)
       for name, bits in (("TINY", 8), ("SMALL", 16), ("BIG", 64), ("HUGE", 128))},
    "UINTEGER": (0, 2**32 - 1),
}  # fmt: skip
MOMENTS = ("infinity", "-infinity", "epoch", "2000-02-29 12:00:00.123456", "1700-01-01")
FAR = (*MOMENTS, "290000-01-01", "0044-03-15 (BC)", "9999-12-31 23:59:59.999999")
# extreme values of each type, as text that DuckDB casts
VALUES: dict[str, tuple[str, ...]] = {
    **{name: ("0", "1", *map(str, ends)) for name, ends in INTEGERS.items()},
    "DECIMAL(4,1)": ("0", "-999.9", "999.9", "0.1"),
    "DECIMAL(18,3)": ("0", "-999999999999999.999", "999999999999999.999"),
    "DECIMAL(38,0)": ("0", "9" * 38, "-" + "9" * 38),
    "DECIMAL(38,37)": ("0", "9." + "9" * 37, "-9." + "9" * 37),
    "FLOAT": ("0", "-0.0", "nan", "inf", "-inf", "3.4e38", "1e-45"),
    "DOUBLE": ("0", "-0.0", "nan", "inf", "-inf", "1.7e308", "5e-324"),
    "TIMESTAMP": FAR,
    "TIMESTAMP_S": FAR,
    "TIMESTAMP_MS": FAR,
    "TIMESTAMP_NS": (*MOMENTS, "2262-04-11 23:47:16.854775", "1677-09-22"),
    "DATE": (*FAR, "5881580-07-10", "5877642-06-25 (BC)"),
    "VARCHAR": ("", " ", "a", "A", "\x01", "é", "\\q", "'", "{{ 1 }}", "x" * 5000),
    "BOOLEAN": ("true", "false"),
    "ENUM('a', '')": ("a", ""),
    # types that no attribute can have, but a table and its privacy unit may
    "TIMESTAMP WITH TIME ZONE": ("infinity", "epoch", "290000-01-01"),
    "TIME": ("00:00:00", "24:00:00"),
    "TIMETZ": ("00:00:00+15:59:59", "24:00:00-15:59:59"),
    "INTERVAL": ("1 month", "30 days", "-178956970 years"),
    "UUID": ("00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"),
    "BLOB": ("", "\\x00\\xFF"),
    "BIT": ("1", "0" * 300),
    "BIGNUM": ("0", "9" * 400, "-" + "9" * 400),
    "INTEGER[]": ("[]", "[1, NULL]"),
    "INTEGER[2]": ("[1, 2]",),
    "STRUCT(a INTEGER, b VARCHAR)": ("{'a': 1, 'b': 'x'}",),
    "MAP(VARCHAR, INTEGER)": ("{a=1}", "{}"),
    "VARIANT": ("1", "x"),
}
WHOLE = (-(2**127), -(2**64), -(2**31), -5, -1, 0, 1, 2, 255, 300, 2**31, 2**63, 2**64, 2**125)
NUMBERS = (*WHOLE, 2**127, 2**128, 10**37, 10**38, 0.1, -0.5, 1e-300, 1e299, -1e299, 1e300)
CATEGORIES = (*map(str, WHOLE), str(2**127), str(2**128 - 1), "9" * 38, "0.1", "0.01", "1e-30",
              "1e-37", "1e30", "nan", "inf", "true", "a", "", "2000-01-01", "0001-01-01",
              "9999-12-31", "1600-01-01", "2300-01-01", "2000-01-01 00:00:00.000001",
              "2000-01-01 00:00:00.5")  # fmt: skip
DAYS = tuple(dt.date(year, 1, 2) for year in (1, 1600, 1900, 2200, 2300, 9999))


def attributes(sql_type: str) -> Iterator[Attribute]:
    """Every attribute with extreme bounds, edges or categories that a column of a type may be."""
    groups = [(one,) for one in CATEGORIES]
    groups += [("7", "8", "9"), *pairwise(CATEGORIES)]
    dated = column_type(sql_type).family in ("date", "timestamp")
    ends: tuple[Any, ...] = DAYS if dated else NUMBERS
    for values in groups:
        with contextlib.suppress(DpforestError):
            yield Attribute("v", "categorical", values, nullable=False).bound(column_type(sql_type))
    for low in ends:
        with contextlib.suppress(DpforestError):
            yield Attribute("v", "numeric", edges=(low,)).bound(column_type(sql_type))
        for high in ends:
            with contextlib.suppress(DpforestError):
                cut = Attribute("v", "numeric", lower=low, upper=high).bound(column_type(sql_type))
                yield cut.recut(3)


@pytest.fixture(scope="module")
def column(request: pytest.FixtureRequest) -> Iterator[tuple[duckdb.DuckDBPyConnection, str]]:
    """A table t whose column v, of one type, holds its extreme values and NULL, and the type."""
    sql_type: str = request.param
    with duckdb.connect() as con:
        con.execute(f"CREATE TABLE t (v {sql_type}, a BOOLEAN, y VARCHAR)")
        for value in (*VALUES[sql_type], None):
            con.execute(
                f"INSERT INTO t SELECT CAST(? AS {sql_type}), true, unnest(['u', 'w'])", [value]
            )
        if sql_type in ("TIMESTAMP_S", "TIMESTAMP_MS"):  # only files bring such far moments
            con.register("far", far_moments(sql_type))
            con.execute("INSERT INTO t SELECT v, true, 'u' FROM far")
        yield con, sql_type


def far_moments(sql_type: str) -> Any:
    """An Arrow table with moments that do not fit a TIMESTAMP."""
    pa = pytest.importorskip("pyarrow")
    unit = {"TIMESTAMP_S": "s", "TIMESTAMP_MS": "ms"}[sql_type]
    return pa.table({"v": pa.array([-(2**62), 2**62], type=pa.timestamp(unit))})


@pytest.fixture(scope="module")
def ledger(
    column: tuple[duckdb.DuckDBPyConnection, str], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The table's: it remembers which one that is."""
    return tmp_path_factory.mktemp("ledger") / "ledger"


each_type = some("column", VALUES, keep=12, indirect=True)


@each_type
def test_an_accepted_attribute_or_target_is_encoded_whatever_the_rows_are(
    column: tuple[duckdb.DuckDBPyConnection, str],
) -> None:
    con, sql_type = column
    accepted = list(attributes(sql_type))
    assert bool(accepted) == column_type(sql_type).usable
    dialect = DuckDBEngine(con).dialect
    name = dialect.ident("t", "v")
    codes = [(dialect.code(attribute, name), attribute.cells) for attribute in accepted]
    codes += [
        (
            f"coalesce({dialect.class_code(attribute.values, attribute.type, name)}, 0)",
            attribute.proper,
        )
        for attribute in accepted
        if attribute.kind == "categorical"
    ]
    for part in batched(codes, 100):
        ends = ", ".join(f"min({code}), max({code})" for code, _ in part)
        found = con.execute(f"SELECT {ends} FROM t").fetchall()[0]
        for low, high, (_, cells) in zip(found[::2], found[1::2], part, strict=True):
            assert 0 <= low <= high < cells


def batched(codes: list[tuple[str, int]], size: int) -> Iterator[list[tuple[str, int]]]:
    return (codes[first : first + size] for first in range(0, len(codes), size))


@each_type
@pytest.mark.parametrize("recipe", ["private-rdt", "smooth-forest"], ids=["all", "disjoint"])
def test_a_privacy_unit_of_any_type_is_refused_before_the_debit_or_bounded(
    column: tuple[duckdb.DuckDBPyConnection, str], recipe: str, ledger: Path
) -> None:
    con, _ = column
    domain = Domain((Attribute("a", "categorical", ("true",)),), "y", ("u", "w"))
    # rows as units are bounded by nothing: it is enough to divide them among trees
    for unit in ("v",) if recipe == "private-rdt" else ("v", "row"):
        before = Ledger(ledger).read().head
        try:
            run = prepare(
                con, "t", epsilon=1, domain=domain, recipe=recipe, trees=2, depth=1,
                privacy_unit=unit, rows_per_unit=2 if unit == "v" else 1, ledger=ledger,
            )  # fmt: skip
        except DpforestError:
            assert Ledger(ledger).read().head == before
            assert unit == "v"
        else:
            run.execute()


COMPUTED = (
    "CREATE SEQUENCE s",
    "CREATE MACRO twice(x) AS 2 * x",
    "CREATE TABLE t (x INTEGER, w VARCHAR, y VARCHAR, "
    "added INTEGER AS (x + 1), parsed INTEGER AS (w::INTEGER), doubled INTEGER AS (twice(x)), "
    "counted BIGINT AS (nextval('s')), drawn DOUBLE AS (random()))",
    "INSERT INTO t (x, w, y) SELECT i % 10, i % 3, 'uw'[i % 2 + 1] FROM range(50) r(i)",
    "UPDATE t SET w = 'none' WHERE x = 0",  # which a computed column is not asked about
)


@some("name", ["parsed", "added", "doubled", "counted", "drawn"], keep=3)
@pytest.mark.parametrize("recipe", ["private-rdt", "smooth-forest"], ids=["all", "disjoint"])
def test_a_computed_column_is_refused_before_the_debit_or_read_whatever_the_rows_are(
    con: duckdb.DuckDBPyConnection, name: str, recipe: str, tmp_path: Path
) -> None:
    for statement in COMPUTED:
        con.execute(statement)
    ledger = tmp_path / "ledger"
    attributes = {"x": Attribute("x", "numeric", edges=(3,))}
    attributes[name] = Attribute(name, "numeric", edges=(1,))
    forests = []
    for used in ("x", name):
        domain = Domain((attributes[used],), "y", ("u", "w"))
        options: dict[str, Any] = {"epsilon": 1, "domain": domain, "recipe": recipe, "trees": 2}
        if used in ("doubled", "counted", "drawn"):
            spent = ledger.read_bytes()
            with pytest.raises(DpforestError, match=f'Column "{used}" .* ordinary column'):
                prepare(con, "t", ledger=ledger, **options)
            assert ledger.read_bytes() == spent
        else:
            forests.append(prepare(con, "t", ledger=ledger, **options).execute())
    for forest in forests:
        figures = evaluate(con, forest, "t", epsilon=1, ledger=ledger)
        assert figures.private


def test_scores_of_many_trees_do_not_overflow() -> None:
    """A row that has the largest votes of hundreds of attributes passes 32 bits."""
    trees, votes = 200, 2 * 10**7
    domain = Domain(
        (Attribute("a", "categorical", ("true",), nullable=False).bound(BOOLEAN),),
        "y",
        ("u", "w"),
    )
    leaf = Tree(
        kind=np.array([LEAF]),
        attribute=np.array([-1]),
        cell=np.array([0]),
        first=np.array([-1]),
        counts=None,
        votes=np.array([[0, votes]]),
    )
    with duckdb.connect() as con:
        con.execute("CREATE TABLE t AS SELECT true AS a, 'w' AS y")
        engine = DuckDBEngine(con)
        options: dict[str, Any] = {"sample": "all", "salt": 1}
        with engine.snapshot(engine.table("t")) as rows:
            once = rows.encode(Coding(domain, ROW, trees=1, **options))
            once.add_votes([leaf] * trees)
            once.add_votes([leaf] * trees)
            often = rows.encode(Coding(domain, ROW, trees=trees, **options))
            assert often.count_scores([np.full(trees, votes)], [votes * trees - 1])[1, 1] == 1
