"""The forests that every engine scores, and the tables that they score them on.

Nine are trained on real tables; those of `made_case` are drawn, over one column of every type,
with names, categories and labels that are hard to quote. Every table has a column `id`.
"""

from __future__ import annotations

import datetime as dt
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from models import bit_sets, random_tree

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    TIMESTAMP,
    VARCHAR,
    ColumnType,
    column_type,
)
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.errors import NotPrivateWarning
from dpforest_duckdb.guarantee import Guarantee
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.scoring.dialects import dialect
from dpforest_duckdb.scoring.links import SHARES, SOFTMAX
from dpforest_duckdb.scoring.publish import publish_sql
from dpforest_duckdb.scoring.score_sql import Scored, score_sql
from dpforest_duckdb.training.prepare import prepare
from dpforest_duckdb.tree import LEAF, MULTIWAY, Tree, Voting

REAL: dict[str, tuple[str, dict[str, Any]]] = {
    "banknote auto": ("banknote", {}),
    "nursery dpdf": ("nursery", {"recipe": "dpdf"}),
    "mushroom auto": ("mushroom", {}),
    "adult auto": ("adult_train", {}),
    "adult boosted": ("adult_train", {"recipe": "boosted", "delta": "1e-5"}),
    "adult private-rdt 20": ("adult_train", {"recipe": "private-rdt", "trees": 20, "depth": 2}),
    "adult private-rdt 80": ("adult_train", {"recipe": "private-rdt", "trees": 80, "depth": 2}),
    "credit_default with delta": ("credit_default", {"delta": "1e-5"}),
    "wall_following auto": ("wall_following", {}),
}
LARGE = ("adult boosted", "credit_default with delta")  # more SQL than ClickHouse takes by default
MADE = (
    "two classes",
    "log-odds of two",
    "log-odds of four",
    "the surest tree",
    "steep",
    "log-odds of twelve",
    "votes for twelve",
    "decimal categories",
    "decimal classes",
    "decimals of 16 digits",
    "two decimal classes",
)
FLOAT = column_type("FLOAT")
PRICE, WHOLE = column_type("DECIMAL(18,2)"), column_type("DECIMAL(18,0)")
CATEGORIES = (
    "private",
    "private ",
    "PRIVATE",
    "",
    " ",
    "it's",
    "back\\slash",
    "\\",
    "{{ 1+1 }}",
    "{% endraw %}",
    "${env:HOME}",
    "é",
    "😀",
    "line\nbreak",
    "carriage\rreturn",
    "NULL",
    "0",
    'a"b',
    "`x`",
    "-- no",
)
LABELS = ("it's", "back\\slash", "PRIVATE", "{{ 1+1 }}")
PADDED = ("private", "private ", "Private", "PRIVATE", "e", "é", "É", "é ", "s", "ß", "ss")
ATTRIBUTES = (
    Attribute('a"b', "categorical", CATEGORIES, nullable=True, type=VARCHAR),
    Attribute("it's", "categorical", PADDED, ordered=True, nullable=False, type=VARCHAR),
    Attribute("select", "categorical", ("false", "true"), nullable=True, type=BOOLEAN),
    Attribute("{{ 1 }}", "numeric", edges=(-5, 0, 7, 100), nullable=True, type=INTEGER),
    Attribute("back\\slash", "categorical", ("-1", "0", "3"), nullable=False, type=BIGINT),
    Attribute("`tick`", "numeric", edges=(-0.1, 0.0, 0.1, 1e9), nullable=True, type=DOUBLE),
    Attribute("x; DROP TABLE t --", "numeric", edges=(0.1, 0.3), nullable=False, type=FLOAT),
    Attribute("t", "categorical", ("0", "0.1", "1.5"), nullable=True, type=DOUBLE),
    Attribute("-- narrow", "categorical", ("0", "0.25", "2"), nullable=True, type=FLOAT),
    Attribute(
        "A b", "numeric", edges=(-1.25, 0.0, 3.3), nullable=True, type=column_type("DECIMAL(10,2)")
    ),
    Attribute(
        "[x]",
        "categorical",
        ("0", "1.5", "2.25"),
        nullable=False,
        type=column_type("DECIMAL(10,2)"),
    ),
    Attribute("é", "numeric", edges=(-3000, 0, 18262), nullable=True, type=DATE),
    Attribute("day", "categorical", ("2020-02-29", "1999-12-31"), nullable=False, type=DATE),
    Attribute("at", "numeric", edges=(0.5, 1.6e9), nullable=True, type=TIMESTAMP),
)
PRICES = (  # no double is exactly such a price
    Attribute("price", "categorical", ("8.79", "8.8", "1.15", "-0.07"), nullable=True, type=PRICE),
    Attribute("fee", "categorical", ("4.35", "0", "3"), nullable=False, type=PRICE),
)
NUMBERS = (Attribute("n", "categorical", (f"{2**53}", f"{2**53 + 1}"), nullable=True, type=WHOLE),)
_MOMENT = dt.datetime(1970, 1, 1)
_EXTREMES: dict[str, Sequence[object]] = {
    VARCHAR: ("", " ", "zzz", "privat", "private  ", "İ", "a\\", "O'Hara", "’", "\t"),
    BOOLEAN: (True, False),
    INTEGER: (0, 1, -1, -(2**31), 2**31 - 1),
    BIGINT: (0, 1, -1, -(2**63), 2**63 - 1),
    DOUBLE: (math.nan, math.inf, -math.inf, 0.0, -0.0, 1.5, 5e-324, 1.7e308, -1.7e308),
    FLOAT: (math.nan, math.inf, -math.inf, 0.0, -0.0, 0.1, 0.3, 0.2, 3.4e38),
    column_type("DECIMAL(10,2)"): tuple(
        map(Decimal, ("0.00", "-0.01", "3.30", "3.31", "1.5", "99999999.99"))
    ),
    WHOLE: (Decimal(2**53 + 2), Decimal(0)),
    PRICE: tuple(map(Decimal, ("8.78", "8.81", "1.14", "0.07", "4.36", "-3"))),
    DATE: (dt.date(1900, 1, 1), dt.date(2200, 1, 1), dt.date(2019, 12, 31), dt.date(2020, 1, 1)),
    TIMESTAMP: tuple(
        _MOMENT + dt.timedelta(seconds=s, microseconds=m)
        for s, m in ((0, 500_000), (0, 500_001), (0, 499_999), (1_600_000_000, 0), (-1, 0), (10, 0))
    ),
}


@dataclass(frozen=True)
class Case:
    """A forest, its table as a Parquet file, the columns' types, and the expected answers.

    `expected` [row] is (id, prediction, probabilities …) in the order of `id`.
    """

    forest: Forest
    file: Path
    types: dict[str, ColumnType]
    expected: list[tuple[Any, ...]]


MakeCase = Callable[[str], Case]


def real_case(name: str, data: Path, folder: Path, rows: int | None = None) -> Case:
    """A forest trained on a real table, with that table's rows (or some) and hostile ones."""
    table, options = REAL[name]
    with duckdb.connect() as con:
        con.execute(f"CREATE TABLE \"{table}\" AS FROM '{data / table}.parquet'")
        settings = {"epsilon": 1, "seed": 1, "privacy_unit": "row", **options}
        with warnings.catch_warnings(action="ignore", category=NotPrivateWarning):
            forest = prepare(
                con,
                table,
                domain=data / f"{table}.toml",
                ledger=folder / f"{name}.ledger",
                **settings,
            ).execute()
        some = f"USING SAMPLE {rows} ROWS (reservoir, 1)" if rows else ""
        con.execute(f'CREATE TABLE rows AS SELECT * FROM "{table}" {some}')
        _add_hostile(con, forest)
        return _case(con, forest, folder / f"{name}.parquet")


def made_case(name: str, folder: Path) -> Case:
    """A forest that is drawn, over one column of every type, and 600 rows of hard values."""
    number = MADE.index(name)
    random = np.random.default_rng(number)
    domain = _domain(name)
    reach = 1_000_000_000 if name == "steep" else 2_000_000
    trees = tuple(random_tree(domain, random, reach, exact=name == "two classes") for _ in range(4))
    forest = Forest(
        f"{name} {{{{ 1+1 }}}} ${{x}}\n; --",
        "drawn",
        Guarantee("1"),
        domain,
        trees,
        link=SOFTMAX if "log-odds" in name or name == "steep" else SHARES,
        voting=Voting.SUREST if name == "the surest tree" else Voting.SUM,
    )
    with duckdb.connect() as con:
        quote = DuckDBEngine(con).dialect.ident
        columns = ", ".join(f"{quote(a.name)} {a.type}" for a in domain.attributes)
        con.execute(f"CREATE TABLE rows ({columns})")
        marks = ", ".join("?" * len(domain.attributes))
        pools = [[None, *_EXTREMES[a.type], *_domain_values(a)] for a in domain.attributes]
        drawn = [[pool[int(random.integers(len(pool)))] for pool in pools] for _ in range(600)]
        for i, row in enumerate(drawn):  # every value at least once
            for pool, place in zip(pools, range(len(row)), strict=True):
                row[place] = pool[i] if i < len(pool) else row[place]
        con.executemany(f"INSERT INTO rows VALUES ({marks})", drawn)
        return _case(con, forest, folder / f"{number}.parquet")


def _domain(name: str) -> Domain:
    """The domain of a drawn forest: other columns than `ATTRIBUTES` for its name only."""
    if name == "decimal categories":
        return Domain(PRICES, "y", LABELS[:2], VARCHAR)
    if name == "decimal classes":
        return Domain(PRICES, "y", ("1.15", "2.3", "-8.79", "4"), PRICE)
    if name == "two decimal classes":
        return Domain(PRICES, "y", ("4", "1.15"), PRICE)
    if name == "decimals of 16 digits":
        return Domain(NUMBERS, "y", LABELS[:2], VARCHAR)
    classes = LABELS if name in ("log-odds of four", "the surest tree") else LABELS[:2]
    if "twelve" in name:
        classes = (*LABELS, *(f"class {number}" for number in range(8)))
    return Domain(ATTRIBUTES, "y", classes, VARCHAR)


def float_case(file: Path) -> tuple[Forest, dict[str, ColumnType]]:
    """A forest with a FLOAT target, and a table `rows` of two rows that it predicts right."""
    attribute = Attribute("c", "categorical", ("a", "b"), nullable=False, type=VARCHAR)
    domain = Domain((attribute,), "y", ("0.1", "0.2"), FLOAT)
    tree = Tree(
        np.array([MULTIWAY, LEAF, LEAF, LEAF]),
        np.array([0, -1, -1, -1]),
        np.zeros(4, dtype=np.int64),
        np.array([1, -1, -1, -1]),
        None,
        np.array([[0, 0], [3, 1], [1, 3], [1, 1]]),
    )
    with duckdb.connect() as con:
        con.execute("CREATE TABLE rows AS SELECT 1 AS id, 'a' AS c, 0.1::FLOAT AS y")
        con.execute("INSERT INTO rows VALUES (2, 'b', 0.2)")
        con.execute(f"COPY rows TO '{file}' (FORMAT parquet)")
        columns = DuckDBEngine(con).scored("rows").columns
    return Forest("float", "by hand", Guarantee("1"), domain, (tree,)), dict(columns)


def right(forest: Forest, columns: dict[str, ColumnType], engine: str) -> str:
    """A query for the `id` of the rows of a table `rows` whose prediction equals their class."""
    own = dialect(engine)
    table = Scored(own.ident("rows"), columns)
    sql = publish_sql(forest, scored=table, dialect=own, key=["id", "y"]).rstrip(";\n")
    return f"SELECT id FROM (\n{sql}\n) AS s WHERE prediction = y ORDER BY id"


def deep_forest(depth: int, trees: int = 1) -> Forest:
    """Trees with many arms on every level: the next level is in the last but one, of several
    categories.
    """
    attribute = Attribute("c", "categorical", tuple("abcde"), nullable=False, type=VARCHAR)
    cells = attribute.cells
    inner = range(0, depth * cells, cells)  # the first leaf of each level becomes the next split
    nodes = depth * cells + 1
    kind = np.full(nodes, LEAF)
    first, chosen = np.full(nodes, -1), np.full(nodes, -1)
    node = 0
    for level in inner:
        kind[node], chosen[node], first[node] = MULTIWAY, 0, level + 1
        node = level + 3  # the cell of "c"
    votes = np.arange(1, nodes + 1)
    votes[-cells + 3 :] = 7  # the last arm is of several categories
    tree = Tree(
        kind,
        chosen,
        np.zeros(nodes, dtype=np.int64),
        first,
        None,
        np.where((kind == LEAF)[:, None], np.stack([votes, 1000 - votes], axis=1), 0),
    )
    domain = Domain((attribute,), "y", ("no", "yes"), VARCHAR)
    return Forest("deep", "drawn", Guarantee("1"), domain, (tree,) * trees)


def select(case: Case, engine: str, *, force: bool = False) -> str:
    """The SELECT of a case in an engine: the id, the prediction and the probabilities."""
    own = dialect(engine)
    table = Scored(own.ident("rows"), case.types)
    return publish_sql(case.forest, scored=table, dialect=own, key=["id"], force=force).rstrip(
        ";\n"
    )


def assert_equal(case: Case, rows: Sequence[tuple[Any, ...]]) -> None:
    """Every row of the table, with the same prediction and the same probabilities."""
    found = sorted(rows, key=lambda row: row[0])
    assert [(row[0], _label(row[1])) for row in found] == [
        (row[0], _label(row[1])) for row in case.expected
    ]
    shares = np.array([row[2:] for row in found], dtype=np.float64)
    expected = np.array([row[2:] for row in case.expected])
    assert np.abs(shares - expected).max() <= 1e-12


def _label(value: object) -> object:
    """A predicted class; a decimal is a double in SQLite, which has none."""
    return float(value) if isinstance(value, Decimal) else value


def _domain_values(attribute: Attribute) -> Iterator[object]:
    """Values at the categories and edges of an attribute, and beside them."""
    if attribute.kind == "categorical":
        yield from attribute.values
        return
    for edge in attribute.edges:
        if attribute.family == "date":
            yield from (dt.date(1970, 1, 1) + dt.timedelta(days=edge + d) for d in (0, 1))
        elif attribute.family == "timestamp":
            yield from (_MOMENT + dt.timedelta(seconds=edge, microseconds=m) for m in (-1, 0, 1))
        elif attribute.family == "integer":
            yield from (edge, edge + 1)
        elif attribute.family == "decimal":
            yield Decimal(str(round(edge, 2)))
        else:
            yield from (edge, math.nextafter(edge, math.inf), math.nextafter(edge, -math.inf))


def _add_hostile(con: duckdb.DuckDBPyConnection, forest: Forest) -> None:
    """For each attribute, rows that differ from a real one in a hard value of that column."""
    engine = DuckDBEngine(con)
    types = engine.scored("rows").columns
    for number, attribute in enumerate(forest.domain.attributes):
        column = engine.dialect.ident(attribute.column)
        kind = types[attribute.column]
        values = [*_EXTREMES.get(kind, ()), *_domain_values(attribute)]
        if kind == VARCHAR:
            values += [f"{v}{end}" for v in attribute.values[:3] for end in (" ", "\\")]
            values += [v.swapcase() for v in attribute.values[:3]]
        texts = [None, *map(str, values)]
        con.execute(
            f"INSERT INTO rows SELECT r.* REPLACE (TRY_CAST(v.text AS {kind}) AS {column}) "
            f"FROM (FROM rows LIMIT 1 OFFSET {number}) AS r, (SELECT unnest(?) AS text) AS v",
            [texts],
        )


def _case(con: duckdb.DuckDBPyConnection, forest: Forest, file: Path) -> Case:
    con.execute("CREATE TABLE numbered AS SELECT row_number() OVER () AS id, * FROM rows")
    con.execute(f"COPY numbered TO '{file}' (FORMAT parquet)")
    scored = DuckDBEngine(con).scored("numbered")
    plain = con.execute(score_sql(forest, scored, keep=["id"]) + " ORDER BY id").fetchall()
    with bit_sets():
        fast = con.execute(score_sql(forest, scored, keep=["id"], fast=True) + " ORDER BY id")
    assert fast.fetchall() == plain
    return Case(forest, file, dict(scored.columns), plain)
