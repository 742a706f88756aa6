"""The bound on temporary space, which a run must not exceed once its budget is spent."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pytest
from variants import some

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.table import TableInfo
from dpforest_duckdb.engine.base import CodedTable, Coding, StoredRow
from dpforest_duckdb.engine.coded_rows.rows import DuckDBRows
from dpforest_duckdb.engine.coded_rows.stored_rows import StoredRows
from dpforest_duckdb.engine.connection import temp_space
from dpforest_duckdb.engine.connection.statements import Statements
from dpforest_duckdb.engine.connection.temp_space import bytes_of_a_row
from dpforest_duckdb.engine.shared.packing import blocks
from dpforest_duckdb.engine.sources.memory_database import NewDatabase
from dpforest_duckdb.errors import DpforestError, NotPrivateWarning
from dpforest_duckdb.recipes import RECIPES
from dpforest_duckdb.training.prepare import prepare
from dpforest_duckdb.training.run import Run
from dpforest_duckdb.training.train import train_many

ATTRIBUTES, ROWS = 30, 400


@pytest.fixture
def domain(con: duckdb.DuckDBPyConnection) -> Callable[..., Domain]:
    """Makes a table of numbers from 1 to 8, and a domain with wider bounds."""

    def made(lower: int, upper: int, sql_type: str) -> Domain:
        names = [f"x{number}" for number in range(ATTRIBUTES)]
        columns = [
            f"CAST(1 + hash(i, {number}) % 8 AS {sql_type}) AS {name}"
            for number, name in enumerate(names)
        ]
        label = "'c' || CASE WHEN x0 > 4 THEN 0 ELSE i % 3 END"
        con.execute(
            f"CREATE OR REPLACE TABLE t AS SELECT *, {label} AS c "
            f"FROM (SELECT i, {', '.join(columns)} FROM range({ROWS}) AS rows(i))"
        )
        attributes = tuple(Attribute(name, "numeric", lower=lower, upper=upper) for name in names)
        return Domain(attributes, "c", ("c0", "c1", "c2"))

    return made


@pytest.fixture
def words(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The words of a row in each table that is coded meanwhile."""
    found: list[int] = []
    encoded = StoredRows.encoded

    def noted(statements: Any, cursor: Any, table: TableInfo, coding: Coding) -> StoredRows:
        found.append(blocks(coding.domain.cells, 3)[-1].word + 1)
        return encoded(statements, cursor, table, coding)

    monkeypatch.setattr(StoredRows, "encoded", staticmethod(noted))
    return found


@some(
    ("recipe", "bounds", "sql_type"),
    [
        ("log-odds", (0, 10), "DOUBLE"),
        ("log-odds", (0, 10**6), "INTEGER"),
        ("boosted", (0, 10), "DOUBLE"),
        ("greedy-tree", (0, 10), "INTEGER"),
    ],
    keep=2,
)
@pytest.mark.more
def test_the_bound_counts_every_table_that_a_run_codes(
    con: duckdb.DuckDBPyConnection,
    domain: Callable[..., Domain],
    words: list[int],
    tmp_path: Path,
    recipe: str,
    bounds: tuple[int, int],
    sql_type: str,
) -> None:
    """DuckDB frees none of them before the last one, and counting copies one."""
    run = prepare(
        con, "t", epsilon=10, domain=domain(*bounds, sql_type), recipe=recipe,
        privacy_unit="row", ledger=tmp_path / "l",
    )  # fmt: skip
    run.execute()
    assert len(words) > 1
    assert 8 * (sum(words) + max(words)) < run.bytes_of_a_row


def of_texts(con: duckdb.DuckDBPyConnection, rows: int, attributes: int) -> Domain:
    """A table t of so many columns of three values, which are numbers in no column."""
    con.execute("CREATE TYPE value AS ENUM ('a', 'b', 'c')")
    columns = ", ".join(
        f"CAST('abc'[1 + CAST(hash(i, {number}) % 3 AS INTEGER)] AS value) AS x{number}"
        for number in range(attributes)
    )
    label = "'c' || CASE WHEN x0 = 'a' THEN 0 ELSE i % 3 END"
    con.execute(
        f"CREATE TABLE t AS SELECT *, {label} AS c "
        f"FROM (SELECT {columns}, i FROM range({rows}) AS rows(i))"
    )
    values = [Attribute(f"x{a}", "categorical", ("a", "b", "c")) for a in range(attributes)]
    return Domain(tuple(values), "c", ("c0", "c1", "c2"))


def most_bytes(runs: Sequence[Run]) -> int:
    """The most bytes of a row of any of the runs, one after the other."""
    shared = len(runs) > 1
    return max(run.bytes_after(runs[:number], shared=shared) for number, run in enumerate(runs))


@pytest.mark.parametrize("recipe", ["greedy-tree", "joint-tables"])
def test_rows_without_numbers_are_coded_once_and_bounded_so(
    con: duckdb.DuckDBPyConnection,
    words: list[int],
    tmp_path: Path,
    recipe: str,
) -> None:
    """For the counts of classes, for the trees, and for a second run."""
    domain = of_texts(con, ROWS, ATTRIBUTES)
    runs = [
        prepare(
            con, "t", epsilon=epsilon, domain=domain, recipe=recipe, privacy_unit="row",
            ledger=tmp_path / "l",
        )
        for epsilon in (1, 2)
    ]  # fmt: skip
    runs[0].execute()
    (coded,) = words
    assert 8 * 2 * coded < most_bytes(runs[:1]) < 8 * 4 * coded
    assert len(list(train_many(runs))) == 2
    assert words == [coded] * 2
    assert 8 * 3 * coded < most_bytes(runs) < 8 * 5 * coded


def test_the_bound_counts_a_column_of_nodes_for_each_tree_that_sees_all_rows(
    con: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    """Trees of disjoint rows share one."""
    domain = of_texts(con, 1, 2)
    for recipe, columns in (("hou-forest", 50), ("smooth-forest", 1)):
        one, many = (
            prepare(
                con, "t", epsilon=1, domain=domain, recipe=recipe, trees=trees, privacy_unit="row",
                ledger=tmp_path / "l",
            )
            for trees in (1, 50)
        )  # fmt: skip
        more = many.bytes_of_a_row - one.bytes_of_a_row
        assert more >= 4 * (columns - 1)
        assert (more == 0) == (columns == 1)


@some(
    ("recipe", "number"),
    [
        *(("greedy-tree", 2), ("greedy-tree", 1), ("tpdprf", 1), ("rooted-tables", 2)),
        *(("boosted", 1), ("boosted", 2)),
    ],
    keep=2,
)
@pytest.mark.parametrize("rows", [60_000, pytest.param(200_000, marks=pytest.mark.more)])
def test_runs_store_no_more_than_the_bound(
    con: duckdb.DuckDBPyConnection,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    rows: int,
    recipe: str,
    number: int,
) -> None:
    """By what DuckDB says of its memory after each statement."""
    domain = of_texts(con, rows, 20)
    con.execute("SET threads = 1")
    other, held = con.cursor(), list[int]()
    run_one = Statements.run

    def noted(self: Statements, *args: Any, **options: Any) -> Any:
        found = run_one(self, *args, **options)
        held.append(
            other.execute(
                "SELECT sum(memory_usage_bytes + temporary_storage_bytes) FROM duckdb_memory()"
            ).fetchall()[0][0]
        )
        return found

    runs = [
        prepare(
            con, "t", epsilon=1, domain=domain, recipe=recipe, privacy_unit="row",
            ledger=tmp_path / "l",
        )
        for _ in range(number)
    ]  # fmt: skip
    monkeypatch.setattr(Statements, "run", noted)
    assert len(list(train_many(runs))) == number
    stored = max(held) - held[0]
    assert 8 * rows < stored < rows * most_bytes(runs)


def test_recipes_whose_rows_are_grouped_say_so(
    con: duckdb.DuckDBPyConnection,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    domain = of_texts(con, 3000, 6)
    rated = list[bool]()
    rate = DuckDBRows.rate_mixtures

    def noted(self: DuckDBRows, *args: Any) -> Any:
        rated.append(True)
        return rate(self, *args)

    monkeypatch.setattr(DuckDBRows, "rate_mixtures", noted)
    grouping = set()
    for name in {recipe.name for recipe in RECIPES["auto"].adaptation.successors}:
        run = prepare(
            con, "t", epsilon=5, domain=domain, recipe=name, privacy_unit="row",
            ledger=tmp_path / "l",
        )  # fmt: skip
        rated.clear()
        run.execute()
        assert run.recipe.learner.rates_mixtures or not rated
        grouping |= {name} if rated else set()
    assert grouping >= {"log-odds", "rooted-tables", "tree-beside-sums"}


def test_the_bound_counts_the_copies_that_a_first_phase_routes() -> None:
    """Each is a table of codes and columns of nodes, and DuckDB frees none before the last one."""
    domain = Domain((Attribute("x", "numeric", lower=0, upper=1),), "c", ("no", "yes"))

    def needed(routed: int) -> int:
        first = CodedTable(domain, routed=routed)
        return bytes_of_a_row(StoredRow((first, CodedTable(domain)), None, 2, scores=0))

    assert needed(6) - needed(5) >= 8 + 2 * 4


def test_the_bound_counts_the_tables_that_stay_for_other_runs() -> None:
    """While trees of many columns grow, beside the tables of the run itself and of those before."""
    domain = Domain((Attribute("x", "numeric", lower=0, upper=1),), "c", ("no", "yes"))

    def needed(tables: int, before: int, *, shared: bool = True) -> int:
        coded = [CodedTable(domain)]
        stored = StoredRow(coded * tables, None, 9, 0, shared=shared, before=coded * before)
        return bytes_of_a_row(stored)

    assert needed(1, 0) - needed(1, 0, shared=False) >= 8
    assert needed(2, 0) - needed(1, 0) >= 8
    assert needed(1, 1) - needed(1, 0) >= 8
    assert needed(1, 99) == needed(1, temp_space.KEPT_TABLES)


def little_memory(folder: Path, megabytes: int = 64, threads: int = 2) -> dict[str, Any]:
    """Settings of a connection."""
    spilled = str(folder / "spilled")
    return {"memory_limit": f"{megabytes}MB", "threads": threads, "temp_directory": spilled}


def in_little_memory(folder: Path, rows: int, attributes: int, unit: str) -> partial[Run]:
    """Prepares runs on a table on disk, with 64 MB of memory and two threads."""
    numbers = [f"CAST(hash(i, {a}) % 1000 AS INTEGER) AS x{a}" for a in range(attributes)]
    con = duckdb.connect(folder / "t.db", config=little_memory(folder))
    con.execute(
        f"CREATE TABLE t AS SELECT {', '.join(numbers)}, {unit} AS who, "
        f"'c' || CAST(x0 > 500 AS INTEGER) AS c FROM range({rows}) AS rows(i)"
    )
    columns = [Attribute(f"x{a}", "numeric", lower=0, upper=999) for a in range(attributes)]
    domain = Domain(tuple(columns), "c", ("c0", "c1"))
    return partial(prepare, con, "t", epsilon=1, domain=domain, ledger=folder / "ledger")


UNITS = ["i", "i // 10", "CASE WHEN i % 4 = 0 THEN i ELSE 1 END"]


@some("unit", UNITS, keep=1)
def test_little_memory_suffices_to_bound_the_rows_of_units(tmp_path: Path, unit: str) -> None:
    """However many rows they have: also if one unit has most of them."""
    prepared = in_little_memory(tmp_path, 1_000_000, 1, unit)
    run = prepared(recipe="greedy-tree", depth=1, privacy_unit="who", rows_per_unit=2)
    assert run.execute().trees


@pytest.mark.more
def test_little_memory_suffices_to_count_many_attributes(tmp_path: Path) -> None:
    prepared = in_little_memory(tmp_path, 200_000, 40, "i")
    assert prepared(recipe="greedy-tree", privacy_unit="row").execute().trees


@some(
    ("recipe", "options", "unit"),
    [
        ("greedy-tree", {"privacy_unit": "who", "rows_per_unit": 2}, UNITS[2]),
        ("smooth-forest", {"privacy_unit": "row", "trees": 4}, "i"),
        ("rana-forest", {"privacy_unit": "row", "trees": 4}, "i"),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (
                ("greedy-tree", {"privacy_unit": "who", "rows_per_unit": 2}, UNITS[0]),
                ("greedy-tree", {"privacy_unit": "who", "rows_per_unit": 2}, UNITS[1]),
                *(("smooth-forest", {"privacy_unit": "who", "trees": 4}, unit) for unit in UNITS),
                ("tpdprf", {"privacy_unit": "row", "trees": 4, "as_published": True}, "i"),
            )
        ),
    ],
    keep=1,
)
def test_the_bound_suffices_to_sort_and_to_draw_rows(
    tmp_path: Path, recipe: str, options: dict[str, Any], unit: str
) -> None:
    """With as much memory and disk as the bound says, and no more."""
    rows = 300_000
    prepared = in_little_memory(tmp_path, rows, 8, f"lpad(CAST({unit} AS VARCHAR), 40, '0')")
    run = prepared(recipe=recipe, **options)
    con = prepared.args[0]
    con.execute("SET max_temp_directory_size = '0 KB'")
    disk = rows * run.bytes_of_a_row - run.engine.room()
    con.execute(f"SET max_temp_directory_size = '{max(int(disk), 0) // 1000} KB'")
    with warnings.catch_warnings(action="ignore", category=NotPrivateWarning):
        assert run.execute().trees


@pytest.mark.parametrize(
    ("rows", "megabytes", "threads"),
    [(20_000, 32, 1), pytest.param(300_000, 64, 2, marks=pytest.mark.more)],
)
def test_little_memory_suffices_to_sum_many_products(
    tmp_path: Path, rows: int, megabytes: int, threads: int
) -> None:
    """Each sum takes memory for each thread."""
    settings = little_memory(tmp_path, megabytes, threads)
    with duckdb.connect(tmp_path / "t.db", config=settings) as con:
        domain = of_texts(con, rows, 24)
        run = prepare(
            con, "t", epsilon=10, domain=domain, recipe="class-means", privacy_unit="row",
            ledger=tmp_path / "l",
        )  # fmt: skip
        assert run.execute().trees


@some(
    ("recipe", "epsilon"),
    [("log-odds", 0.02), ("greedy-tree", 1), ("rooted-tables", 0.02), ("tree-beside-sums", 0.02)],
    keep=1,
)
@pytest.mark.parametrize(
    ("rows", "megabytes"), [(500_000, 40), pytest.param(2_000_000, 64, marks=pytest.mark.more)]
)
def test_the_bound_suffices_for_rows_without_numbers(
    tmp_path: Path, recipe: str, epsilon: float, rows: int, megabytes: int
) -> None:
    """All rows are different; at a small ε, all of them give mixtures points."""
    settings = little_memory(tmp_path, megabytes)
    with duckdb.connect(tmp_path / "t.db") as con:
        domain = of_texts(con, rows, 16)
    with duckdb.connect(tmp_path / "t.db", config=settings) as con:
        run = prepare(
            con, "t", epsilon=epsilon, domain=domain, recipe=recipe, privacy_unit="row",
            ledger=tmp_path / "l",
        )  # fmt: skip
        con.execute("SET max_temp_directory_size = '0 KB'")
        disk = rows * run.bytes_of_a_row - run.engine.room()
        con.execute(f"SET max_temp_directory_size = '{int(disk) // 1000} KB'")
        assert run.execute().trees


def test_runs_that_share_rows_are_refused_before_any_debit(tmp_path: Path) -> None:
    """Each of them would fit alone."""
    prepared = in_little_memory(tmp_path, 10, 3, "i")
    con = prepared.args[0]
    con.execute("SET max_temp_directory_size = '36 MB'")
    options = {"recipe": "greedy-tree", "privacy_unit": "row"}
    alone = prepared(**options)
    most = int(alone.engine.room()) // alone.bytes_of_a_row
    runs = [prepared(rows_at_most=most, **options) for _ in range(2)]
    with pytest.raises(DpforestError, match="temporary space"):
        next(train_many(runs))
    assert runs[0].account.budget().spent_epsilon == 0


@pytest.mark.parametrize("limit", ["-1", "20000TB"])
def test_memory_without_a_limit_is_room_for_rows(
    con: duckdb.DuckDBPyConnection, limit: str
) -> None:
    con.execute(f"SET memory_limit = '{limit}'")
    assert temp_space.room(con) > 2**50
    assert temp_space.at_once(con, temp_space.GROUPS) > 1000
    with NewDatabase(con).opened() as memory:
        assert temp_space.room(memory.connection) > 2**50
