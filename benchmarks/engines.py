"""Times of scoring 100,000 rows in every engine, beside DuckDB's plain form.

    python benchmarks/engines.py
    python benchmarks/engines.py --engines postgres sqlite --rows 20000

Each engine runs in a process of its own and scores a table that it has loaded: it counts one
prediction and sums each probability, so that every row is scored and none is fetched. The first run
is left out; the figures are the least of the others: seconds of the clock, and seconds of all cores
together, which other work on the machine changes less. PostgreSQL and MariaDB are started as in the
tests. What the SQL advises on top is set: `jit` in PostgreSQL, `wholeStage` in Spark. The four
models are trained with a fixed seed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
from shared import ROOT, data_folder, markdown_table, say

sys.path.insert(0, str(ROOT / "tests" / "engines"))

import forests
import runners
import servers

from dpforest_duckdb.engine.duckdb import DuckDBEngine
from dpforest_duckdb.model.forest import load_forest
from dpforest_duckdb.scoring.dialects import dialect
from dpforest_duckdb.scoring.publish import publish_sql
from dpforest_duckdb.scoring.score_sql import Scored, share_names

MODELS = ("adult auto", "adult boosted", "adult private-rdt 20", "nursery dpdf")
ENGINES = (
    "duckdb",
    "postgres",
    "sqlite",
    "mysql",
    "clickhouse",
    "datafusion",
    "polars",
    "spark",
)
Loaded = Callable[[str], object]  # runs a statement on the table that is loaded


def main() -> None:
    """Time the engines and print a table; with --child, one engine."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--engines", nargs="+", default=ENGINES, choices=ENGINES)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(_times(given.engines[0], Path(given.child), given.runs)))
        return
    with tempfile.TemporaryDirectory() as folder:
        _make(Path(folder), given.rows)
        found = {engine: _in_a_process(engine, folder, given.runs) for engine in given.engines}
    for number, title in enumerate(("seconds", "seconds of all cores")):
        rows = [[e, *(f"{t[number]:.2f}" if t else "—" for t in ts)] for e, ts in found.items()]
        print(markdown_table([title, *MODELS], rows), end="\n\n")


def _make(folder: Path, rows: int) -> None:
    """Each model as JSON, and its table repeated up to the number of rows."""
    for number, name in enumerate(MODELS):
        case = forests.real_case(name, data_folder(), folder)
        case.forest.save(folder / f"{number}.json")
        with duckdb.connect() as con:
            con.execute(
                f"COPY (SELECT r.* FROM '{case.file}' AS r, range({rows}) LIMIT {rows}) "
                f"TO '{folder / str(number)}.parquet' (FORMAT parquet)"
            )


def _in_a_process(engine: str, folder: str, runs: int) -> list[list[float] | None]:
    say(engine)
    command = [sys.executable, __file__, "--engines", engine, "--runs", str(runs)]
    done = subprocess.run([*command, "--child", folder], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        return [None] * len(MODELS)
    times: list[list[float] | None] = json.loads(done.stdout.splitlines()[-1])
    say(f"{engine}: {times}")
    return times


def _times(engine: str, folder: Path, runs: int) -> list[tuple[float, float]]:
    """The least time of each model, by the clock and of all cores."""
    own = dialect(engine)
    least = []
    with LOADERS[engine]() as load:
        for number in range(len(MODELS)):
            file = str(folder / f"{number}.parquet")
            forest = load_forest(folder / f"{number}.json")
            with duckdb.connect() as con:
                types = DuckDBEngine(con).scored(f'"{file}"').columns
            scored = Scored(own.ident("scored"), types)
            sql = publish_sql(forest, scored=scored, dialect=own, key=["id"], force=True)
            sums = ", ".join(f"sum(r.{own.ident(name)})" for name in share_names(forest))
            query = load(file)
            first = own.text(forest.domain.classes[0])
            statement = (
                f"SELECT sum(CASE WHEN r.{own.ident('prediction')} = {first} THEN 1 ELSE 0 END), "
                f"{sums} FROM (\n{sql.rstrip(chr(10) + ';')}\n) AS r"
            )
            spent = []
            for _ in range(runs + 1):
                start, busy = time.perf_counter(), _busy()
                query(statement if engine != "polars" else sql.rstrip("\n;"))
                spent.append((time.perf_counter() - start, _busy() - busy))
            clock, cores = zip(*spent[1:], strict=True)
            least.append((min(clock), min(cores)))
    return least


def _busy() -> float:
    """Seconds that this process and those below it have computed, on all cores (Linux)."""
    parents, ticks = {}, {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = file.read_text().rpartition(")")[2].split()
            pid = int(file.parent.name)
            parents[pid], ticks[pid] = int(fields[1]), int(fields[11]) + int(fields[12])

    def below(pid: int) -> bool:
        return pid == os.getpid() or (pid in parents and below(parents[pid]))

    return sum(ticks[pid] for pid in parents if below(pid)) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def _duckdb() -> Iterator[Callable[[str], Loaded]]:
    with duckdb.connect() as con:

        def load(file: str) -> Loaded:
            con.execute(f"CREATE OR REPLACE TABLE scored AS FROM '{file}'")
            return lambda sql: con.execute(sql).fetchall()

        yield load


@contextlib.contextmanager
def _sqlite() -> Iterator[Callable[[str], Loaded]]:
    def load(file: str) -> Loaded:
        con = sqlite3.connect(":memory:")
        runners.load_sqlite(con, file, "scored")
        return lambda sql: con.execute(sql).fetchall()

    yield load


@contextlib.contextmanager
def _datafusion() -> Iterator[Callable[[str], Loaded]]:
    import datafusion
    import pyarrow.parquet

    def load(file: str) -> Loaded:
        context = datafusion.SessionContext()
        batches = pyarrow.parquet.read_table(file).to_batches(max_chunksize=8192)
        context.register_record_batches("scored", [batches[::2], batches[1::2]])
        return lambda sql: context.sql(sql).collect()

    yield load


@contextlib.contextmanager
def _polars() -> Iterator[Callable[[str], Loaded]]:
    import polars

    def load(file: str) -> Loaded:
        context = polars.SQLContext({"scored": polars.read_parquet(file)})
        return lambda sql: context.execute(sql, eager=True)

    yield load


@contextlib.contextmanager
def _clickhouse() -> Iterator[Callable[[str], Loaded]]:
    from chdb import session

    own = session.Session()

    def load(file: str) -> Loaded:
        own.query("CREATE DATABASE IF NOT EXISTS bench ENGINE = Atomic")
        own.query("USE bench")
        own.query("DROP TABLE IF EXISTS scored")
        own.query(f"CREATE TABLE scored ENGINE = Memory AS SELECT * FROM file('{file}', Parquet)")
        return lambda sql: own.query(sql)

    yield load


@contextlib.contextmanager
def _spark() -> Iterator[Callable[[str], Loaded]]:
    spark = runners.spark_session()
    spark.conf.set("spark.sql.codegen.wholeStage", "false")

    def load(file: str) -> Loaded:
        frame = spark.read.parquet(file).repartition(2).cache()
        frame.count()
        frame.createOrReplaceTempView("scored")
        return lambda sql: spark.sql(sql).collect()

    yield load


def _server(start: Callable[[], Any]) -> Callable[[], Any]:
    @contextlib.contextmanager
    def loader() -> Iterator[Callable[[str], Loaded]]:
        with start() as server:

            def load(file: str) -> Loaded:
                server.load(file, "scored")
                return lambda sql: server.query(sql)

            yield load

    return loader


LOADERS = {
    "duckdb": _duckdb,
    "postgres": _server(servers.postgres),
    "sqlite": _sqlite,
    "mysql": _server(servers.mariadb),
    "clickhouse": _clickhouse,
    "datafusion": _datafusion,
    "polars": _polars,
    "spark": _spark,
}


if __name__ == "__main__":
    main()
