"""Training on Spark against MLlib's trees, in one run; and Spark's forests against DuckDB's.

    python benchmarks/spark.py                              # 1 and 5 million rows on local[2]
    python benchmarks/spark.py --rows 1000000,20000000 --runs 1 --contenders ours:1,ours:10
    python benchmarks/spark.py --master 'local-cluster[2,1,1024]' --memory 512m --contenders ours:1
    python benchmarks/spark.py --part same --recipes pinq-id3,auto      # all benchmark tables

The contenders take turns in one session, so that a busy machine slows all of them; a first turn on
few rows warms Java up. Figures are medians. All read the same Parquet files. MLlib's times include
its vectors.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
from contenders import (
    ATTRIBUTES,
    DISJOINT,
    EPSILON,
    TABLE,
    TARGET,
    Clock,
    domain,
    full_depth,
    make_rows,
    names,
    register_disjoint,
    timed_choice,
)
from shared import markdown_table, say, table_files

from dpforest_duckdb.errors import NotPrivateWarning
from dpforest_duckdb.recipes.recipe import Adaptation
from dpforest_duckdb.training.prepare import prepare
from dpforest_duckdb.training.train import train

DEPTH = 6
FILES = 8  # of Parquet
FEW = 20_000  # rows of the turn that warms up
LIMITS = {1: 0.8, 10: 0.7}  # our time over MLlib's, at five million rows or more
POWER = 1.1  # of rows, of which the time may grow
RECIPES = "auto,boosted,tree-beside-sums,pinq-id3"

Contender = tuple[str, int]  # name, trees
CONTENDERS = "ours:1,MLlib:1,ours:10,MLlib:10"
Seconds = dict[Contender, list[float]]
Call = tuple[str, float, float]  # a method, the seconds of the clock when it began and ended


class Calls(Clock):
    """Seconds by phase, and when each call was."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Call] = []

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        start = time.time()
        with super().phase(name):
            yield
        self.calls.append((name, start, time.time()))


class Timed:
    """An engine, snapshot or coded rows whose methods record their time."""

    def __init__(self, inner: Any, clock: Clock) -> None:
        self._inner, self._clock = inner, clock

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name == "snapshot":
            return lambda *words, **named: self._snapshot(found, *words, **named)
        if name.startswith(("count_", "sum_", "add_")) or name in ("encode", "route"):
            return lambda *words, **named: self._call(name, found, *words, **named)
        return found

    @contextmanager
    def _snapshot(self, found: Callable[..., Any], *words: Any, **named: Any) -> Iterator[Any]:
        with found(*words, **named) as snapshot:
            yield Timed(snapshot, self._clock)

    def _call(self, name: str, found: Callable[..., Any], *words: Any, **named: Any) -> Any:
        with self._clock.phase(name):
            result = found(*words, **named)
        return Timed(result, self._clock) if name == "encode" else result


def session(master: str, memory: str, folder: Path) -> Any:
    """A Spark at a master, with a limit to the memory of its driver."""
    from pyspark.sql import SparkSession

    events = folder.resolve() / f"events-{time.time_ns()}"
    events.mkdir()
    builder = SparkSession.builder.master(master)
    for key, value in {
        "spark.driver.memory": memory,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.log.level": "OFF",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": f"file://{events}",
    }.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def shuffled(events: Path, calls: list[Call]) -> list[int]:
    """The bytes that tasks wrote for a shuffle during each call, by Spark's log of events."""
    (log,) = events.iterdir()
    tasks = []
    for line in log.read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        if event["Event"] == "SparkListenerTaskEnd" and "Task Metrics" in event:
            written = event["Task Metrics"]["Shuffle Write Metrics"]["Shuffle Bytes Written"]
            tasks.append((event["Task Info"]["Finish Time"] / 1e3, written))
    return [sum(size for at, size in tasks if start <= at <= end) for _, start, end in calls]


def written(folder: Path, rows: int) -> Path:
    """Some Parquet files with the rows of the speed benchmark: INTEGER columns with 8 values."""
    files = folder / f"{rows}.parquet"
    if not files.exists():
        database = folder / "made.duckdb"
        make_rows(database, rows)
        con = duckdb.connect(str(database))
        files.mkdir()
        for part in range(FILES):
            low, high = (rows * n // FILES for n in (part, part + 1))
            con.execute(
                f"COPY (FROM {TABLE} WHERE rowid >= {low} AND rowid < {high}) "
                f"TO '{files / str(part)}.parquet' (FORMAT parquet)"
            )
        con.close()
        database.unlink()
    return files


def ours(spark: Any, files: Path, trees: int, clock: Calls) -> dict[str, float]:
    """Seconds by phase; preparing and the debit are counted."""
    with tempfile.TemporaryDirectory(prefix="spark-") as folder:
        start = time.perf_counter()
        run = prepare(
            spark,
            files,
            epsilon=EPSILON,
            domain=domain(ATTRIBUTES),
            recipe=DISJOINT,
            trees=trees,
            depth=DEPTH,
            ledger=Path(folder) / "ledger",
        )
        choose = timed_choice(run.recipe.choose, clock)
        recipe = replace(run.recipe, choose=choose, adaptation=Adaptation(full_depth))
        engine: Any = Timed(run.engine, clock)
        forest = replace(run, engine=engine, recipe=recipe).execute()
        whole = time.perf_counter() - start
    assert forest.depth == DEPTH
    return {**clock.seconds, "rest": whole - sum(clock.seconds.values())}


def mllib(spark: Any, files: Path, trees: int, clock: Calls) -> dict[str, float]:
    """Seconds of reading, assembling the vectors and growing the trees."""
    from pyspark.ml.classification import DecisionTreeClassifier, RandomForestClassifier
    from pyspark.ml.feature import VectorAssembler

    start = time.perf_counter()
    vectors = VectorAssembler(inputCols=names(ATTRIBUTES), outputCol="features")
    rows = vectors.transform(spark.read.parquet(str(files)))
    options = {"labelCol": TARGET, "maxDepth": DEPTH, "seed": 1}
    grower = (
        DecisionTreeClassifier(**options)
        if trees == 1
        else RandomForestClassifier(numTrees=trees, **options)
    )
    assert grower.fit(rows).depth == DEPTH if trees == 1 else grower.fit(rows).getNumTrees == trees
    return {"fit": time.perf_counter() - start}


RUN = {"ours": ours, "MLlib": mllib}


def measured(
    spark: Any, files: Path, contenders: Sequence[Contender], runs: int
) -> tuple[Seconds, dict[Contender, dict[str, float]], dict[Contender, list[Call]]]:
    """Seconds of each contender by turn, medians by phase, and the calls of the last turn."""
    whole: Seconds = {key: [] for key in contenders}
    parts: dict[Contender, list[dict[str, float]]] = {key: [] for key in contenders}
    calls = {}
    for turn in range(runs):
        for name, trees in contenders:
            clock = Calls()
            found = RUN[name](spark, files, trees, clock)
            whole[name, trees].append(sum(found.values()))
            parts[name, trees].append(found)
            calls[name, trees] = clock.calls
            say(f"turn {turn + 1}: {name}, {trees}: {sum(found.values()):.1f} s")
    phases = {
        key: {
            phase: statistics.median(each.get(phase, 0.0) for each in of_key) for phase in of_key[0]
        }
        for key, of_key in parts.items()
    }
    return whole, phases, calls


@dataclass(frozen=True)
class Measured:
    """What one session took: medians, ratios, phases and calls by rows, and its memory."""

    medians: dict[int, dict[Contender, float]]
    ratios: list[list[str]]
    phases: list[list[str]]
    calls: dict[int, dict[Contender, list[Call]]]
    memory: str


def speed(
    master: str, memory: str, sizes: list[int], runs: int, folder: Path, temporary: Path, names: str
) -> str:
    """The section of a page: ratios, phases, growth, shuffles and memory."""
    contenders = [(n, int(trees)) for n, trees in (c.split(":") for c in names.split(","))]
    register_disjoint()
    files = {rows: written(folder, rows) for rows in (FEW, *sizes)}
    spark = session(master, memory, temporary)
    version, events = spark.version, Path(spark.conf.get("spark.eventLog.dir")[7:])
    say("warming up")
    measured(spark, files[FEW], contenders, 1)
    found = in_session(spark, files, contenders, sizes, runs)
    spark.stop()
    return "\n\n".join(
        [
            f"Spark {version}, `{master}`, {ATTRIBUTES} INTEGER columns of 8 values, depth "
            f"{DEPTH}, a driver with {memory} of memory; seconds, runs of each: {runs}. Several "
            "trees are grown on disjoint parts of the rows; MLlib's forest gives each a bootstrap "
            "sample.",
            markdown_table(
                ["contender", "trees", *(f"{rows:,} rows" for rows in sizes)],
                [
                    [name, f"{trees}", *(f"{found.medians[r][name, trees]:.1f}" for r in sizes)]
                    for name, trees in contenders
                ],
            ),
            markdown_table(["rows", "trees", "ours / MLlib", "at most"], found.ratios),
            "Seconds of ours by phase:",
            markdown_table(["rows", "trees", *PHASES], found.phases),
            *growth(found.medians),
            "Kilobytes shuffled by ours:",
            markdown_table(
                ["rows", "trees", "by depth, then leaves"], volumes(found.calls, events)
            ),
            found.memory,
        ]
    )


def in_session(
    spark: Any, files: dict[int, Path], contenders: list[Contender], sizes: list[int], runs: int
) -> Measured:
    """All sizes in one session."""
    ratios, phases, medians, calls = [], [], {}, {}
    for rows in sizes:
        say(f"{rows:,} rows")
        whole, by_phase, calls[rows] = measured(spark, files[rows], contenders, runs)
        medians[rows] = {key: statistics.median(found) for key, found in whole.items()}
        for trees, most in LIMITS.items():
            if ("ours", trees) in whole:
                found = by_phase["ours", trees]
                phases.append(
                    [f"{rows:,}", f"{trees}", *(f"{found.get(p, 0):.1f}" for p in PHASES)]
                )
            if not {("ours", trees), ("MLlib", trees)} <= set(whole):
                continue
            pairs = zip(whole["ours", trees], whole["MLlib", trees], strict=True)
            ratio = statistics.median(a / b for a, b in pairs)
            goal = f"{most}, {'met' if ratio <= most else 'MISSED'}" if rows >= 5_000_000 else ""
            ratios.append([f"{rows:,}", f"{trees}", f"{ratio:.2f}", goal])
    return Measured(medians, ratios, phases, calls, memory_peaks(spark))


def volumes(calls: dict[int, dict[Contender, list[Call]]], events: Path) -> list[list[str]]:
    """A line for each run of ours: what each of its counts shuffled."""
    lines = []
    for rows, by_contender in calls.items():
        for (name, trees), found in by_contender.items():
            counted = [call for call in found if call[0].startswith("count_")]
            sizes = shuffled(events, counted) if name == "ours" else []
            if sizes:
                shown = ", ".join(f"{size / 1e3:.0f}" for size in sizes)
                lines.append([f"{rows:,}", f"{trees}", shown])
    return lines


PHASES = ("encode", "count_classes", "route", "count_leaves", "select", "rest")


def growth(medians: dict[int, dict[Contender, float]]) -> list[str]:
    """A sentence on the power of rows with which each contender's time grows."""
    if len(medians) < 2:
        return []
    few, many = min(medians), max(medians)
    powers = []
    for name, trees in medians[few]:
        took = medians[many][name, trees] / medians[few][name, trees]
        power = math.log(took) / math.log(many / few)
        goal = f" ({'met' if power <= POWER else 'MISSED'})" if name == "ours" else ""
        powers.append(f"{name}, {trees}: {power:.2f}{goal}")
    return [
        f"From {few:,} to {many:,} rows the time grows with this power of the rows, ours at most "
        f"{POWER}: {'; '.join(powers)}."
    ]


def memory_peaks(spark: Any) -> str:
    """A sentence on the most memory that the driver's processes had."""
    java = spark._jvm.java.lang.ProcessHandle.current().pid()
    status = Path(f"/proc/{java}/status").read_text(encoding="utf-8")  # on Linux
    (peak,) = (int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    python = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return (
        f"The driver's Java had at most {peak / 1e3:.0f} MB of memory, and Python "
        f"{python / 1e3:.0f} MB. On local[…] the driver is also the executor."
    )


def same(recipes: list[str], tables: list[str], folder: Path) -> str:
    """A table of forests: whether Spark's is DuckDB's, for some tables or all, and each recipe."""
    spark = session("local[2]", "4g", folder)
    warnings.simplefilter("ignore", NotPrivateWarning)
    found = []
    files = table_files()
    for name in tables or files:
        file, line = files[name], [name]
        for recipe in recipes:
            with tempfile.TemporaryDirectory(prefix="spark-") as ledgers:
                given = {
                    "domain": file.with_suffix(".toml"),
                    "privacy_unit": "row",
                    "epsilon": 1,
                    "delta": "1e-6",
                    "recipe": recipe,
                    "seed": 1,
                }
                start = time.perf_counter()
                one = train(spark, file, ledger=Path(ledgers) / "1", **given)
                took = time.perf_counter() - start
                with duckdb.connect() as con:
                    other = train(con, file, ledger=Path(ledgers) / "2", **given)
            line.append("same" if content(one) == content(other) else "DIFFERENT")
            say(f"{name}, {recipe}: {line[-1]}, {took:.0f} s on Spark")
        found.append(line)
    spark.stop()
    equal = sum(cell == "same" for line in found for cell in line)
    return f"{equal} of {len(found) * len(recipes)} forests are the same.\n\n" + markdown_table(
        ["table", *recipes], found
    )


def content(forest: Any) -> dict[str, Any]:
    """All of a forest's JSON but its name, its table, the version and the columns' types."""
    stated: dict[str, Any] = json.loads(forest.to_json())
    for key in ("name", "table", "version"):
        del stated[key]
    for typed in (stated["domain"], *stated["domain"]["attributes"]):
        for key in ("target_type", "type"):
            typed.pop(key, None)
    return stated


def main() -> None:
    """Run the chosen part and print the report, or put it into a page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", choices=("speed", "same"), default="speed")
    parser.add_argument("--rows", default="1000000,5000000")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--memory", default="8g", help="of the driver")
    parser.add_argument("--contenders", default=CONTENDERS)
    parser.add_argument("--recipes", default=RECIPES)
    parser.add_argument("--tables", help="to compare. [default: all]")
    parser.add_argument("--folder", type=Path, help="for the rows, which are kept there")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="spark-") as temporary:
        folder = given.folder or Path(temporary)
        if given.part == "same":
            tables = given.tables.split(",") if given.tables else []
            print(same(given.recipes.split(","), tables, folder))
        else:
            sizes = [int(rows) for rows in given.rows.split(",")]
            where = (folder, Path(temporary))
            print(speed(given.master, given.memory, sizes, given.runs, *where, given.contenders))


if __name__ == "__main__":
    sys.exit(main())
