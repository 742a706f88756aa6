"""Times of scoring 100,000 rows in every engine, beside DuckDB's plain form.

    python benchmarks/engines.py --markdown docs/engines.md     # goes on where it was stopped
    python benchmarks/engines.py --engines postgres sqlite --rows 20000

Each engine runs in a process of its own and scores a table that it has loaded: it counts one
prediction and sums each probability, so that every row is scored and none is fetched. PostgreSQL
and MariaDB are started as in the tests. What the SQL advises on top is set: `jit` in PostgreSQL,
`wholeStage` in Spark. The four models are trained with a fixed seed.

A figure is the mean of as many runs in a row as take 0.3 seconds. An engine is warm when eight
figures in a row have brought no new least one: a Java engine compiles its planner over dozens of
queries. The least figures are shown: seconds of the clock, and seconds of all cores together, which
other work on the machine changes less. Finished engines are kept in engines-results.jsonl.
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
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
from shared import ROOT, Results, data_folder, markdown_table, say

sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "tests" / "scoring" / "engines"))

import forests
import runners
import servers

from dpforest_duckdb.engine.tables.engine import DuckDBEngine
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
SET = {
    "postgres": "postgres (`jit` off)",
    "mysql": "mysql (MariaDB)",
    "spark": "spark (`wholeStage` off)",
}
PATIENCE, MOST = 8, 50  # figures without a new least one, and figures in all
BATCH = 0.3  # seconds
Loaded = Callable[[str], object]  # runs a statement on the table that is loaded
Times = list[tuple[float, float, float, float]]  # clock, cores, and both of the first run; by model


def main() -> None:
    """Time the engines and print a table; with --child, one engine."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--engines", nargs="+", default=ENGINES, choices=ENGINES)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--results", type=Path, default=Path("engines-results.jsonl"))
    parser.add_argument("--markdown", type=Path, help="the page whose section Times is written")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(_times(given.engines[0], Path(given.child))))
        return
    kept = Results(given.results, ("engine", "rows"))
    missing = [engine for engine in given.engines if kept.get(engine, given.rows) is None]
    with tempfile.TemporaryDirectory() as folder:
        if missing:
            _make(Path(folder), given.rows)
        for engine in missing:
            times = _in_a_process(engine, folder)
            kept.add({"engine": engine, "rows": given.rows, "times": times})
    found = {engine: kept.get(engine, given.rows)["times"] for engine in given.engines}
    section = _section(found, given.rows)
    print(section)
    if given.markdown:
        before, _, rest = given.markdown.read_text(encoding="utf-8").partition("## Times\n")
        after = rest.partition("\n## ")[2]
        text = f"{before}## Times\n\n{section}\n\n## {after}"
        given.markdown.write_text(text, encoding="utf-8")


def _section(found: dict[str, Times], rows: int) -> str:
    """What the page says of the times."""
    parts = [
        f"Seconds to score {rows:,} rows, warm and without the start of the engine: elapsed, "
        "and in brackets summed over all cores (`python benchmarks/engines.py --markdown "
        "docs/engines.md`; the fastest of many runs, on two cores that other work sometimes "
        "shared). DuckDB runs the plain form. DuckDB, "
        "DataFusion, Polars, ClickHouse and Spark use both cores, the others one.",
        markdown_table(
            ["seconds (of all cores)", *MODELS],
            [
                [SET.get(engine, engine), *(f"{c:.2f} ({a:.2f})" for c, a, *_ in times)]
                for engine, times in found.items()
            ],
        ),
    ]
    if "duckdb" in found:
        parts.append(_ratios(found))
    if "spark" in found:
        _, cores, *_ = zip(*found["spark"], strict=True)
        first = max(each[3] for each in found["spark"])
        parts.append(
            "Spark is warm only after dozens of queries, because Java compiles Spark's planner as "
            f"it runs. The first query of a session takes up to {first:.1f} seconds of all cores, "
            f"a warm one {min(cores):.2f} to {max(cores):.2f}."
        )
    return "\n\n".join(textwrap.fill(p, 100) if p[0] != "|" else p for p in parts)


def _ratios(found: dict[str, Times]) -> str:
    """How much longer than DuckDB the engines take at most, in words."""

    def most(number: int) -> tuple[float, str]:
        return max(
            (other[number] / duckdb[number], f"{dialect(engine).title} on {model}")
            for engine, times in found.items()
            for other, duckdb, model in zip(times, found["duckdb"], MODELS, strict=True)
        )

    (elapsed, slowest), (of_cores, other) = most(0), most(1)
    sentence = f"Slowest: {slowest}, {elapsed:.1f} times DuckDB's elapsed time"
    if other == slowest:
        return f"{sentence} and {of_cores:.1f} times its CPU time."
    return f"{sentence}; in CPU time {other}, {of_cores:.1f} times."


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


def _in_a_process(engine: str, folder: str) -> Times:
    say(engine)
    command = [sys.executable, __file__, "--engines", engine, "--child", folder]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    times: Times = json.loads(done.stdout.splitlines()[-1])
    say(f"{engine}: {times}")
    return times


def _times(engine: str, folder: Path) -> Times:
    """The least times of each model, and those of its first run."""
    target = dialect(engine)
    found = []
    with LOADERS[engine]() as load:
        for number in range(len(MODELS)):
            file = str(folder / f"{number}.parquet")
            forest = load_forest(folder / f"{number}.json")
            with duckdb.connect() as con:
                types = DuckDBEngine(con).scored(f'"{file}"').columns
            scored = Scored(target.ident("scored"), types)
            sql = publish_sql(forest, scored=scored, dialect=target, key=["id"], force=True)
            sums = ", ".join(f"sum(r.{target.ident(name)})" for name in share_names(forest, ""))
            query = load(file)
            first = f"r.{target.ident('prediction')} = {target.text(forest.domain.classes[0])}"
            statement = (
                f"SELECT sum(CASE WHEN {first} THEN 1 ELSE 0 END), "
                f"{sums} FROM (\n{sql.rstrip(chr(10) + ';')}\n) AS r"
            )
            text = statement if engine != "polars" else sql.rstrip("\n;")
            found.append(_warm(lambda query=query, text=text: query(text)))
    return found


def _warm(run: Callable[[], object]) -> tuple[float, float, float, float]:
    """The least times of a run, by the clock and of all cores, and those of the first run."""

    def spent(times: int) -> tuple[float, float]:
        start, busy = time.perf_counter(), _busy()
        for _ in range(times):
            run()
        return (time.perf_counter() - start) / times, (_busy() - busy) / times

    first = spent(1)
    figures = [spent(max(1, round(BATCH / spent(1)[0])))]
    while len(figures) < MOST and min(figures[-PATIENCE:]) <= min(figures):
        figures.append(spent(max(1, round(BATCH / figures[-1][0]))))
    clock, cores = zip(*figures, strict=True)
    return (min(clock), min(cores), *first)


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

    server = session.Session()

    def load(file: str) -> Loaded:
        server.query("CREATE DATABASE IF NOT EXISTS bench ENGINE = Atomic")
        server.query("USE bench")
        server.query("DROP TABLE IF EXISTS scored")
        server.query(
            f"CREATE TABLE scored ENGINE = Memory AS SELECT * FROM file('{file}', Parquet)"
        )
        return lambda sql: server.query(sql)

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
