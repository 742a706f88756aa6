"""One contender of the speed benchmark, in a process of its own so that its memory is measured.

    python benchmarks/contenders.py '{"contender": "ours", "database": "…", …}'

prints one line of JSON: `seconds`, `phases` (seconds by step) and `peak` (bytes).
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import INTEGER, column_types
from dpforest_duckdb.engine.connection.connect import open_database
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.model.forest import Forest, load_forest
from dpforest_duckdb.privacy.noise import CountNoise
from dpforest_duckdb.recipes import RECIPES
from dpforest_duckdb.recipes.ours.greedy_tree import GREEDY_TREE
from dpforest_duckdb.recipes.recipe import Adaptation
from dpforest_duckdb.request import Request
from dpforest_duckdb.scoring.codes import DuckDBCodes
from dpforest_duckdb.splits.choose import Choice, Chooser, Drawn
from dpforest_duckdb.training.prepare import prepare
from dpforest_duckdb.training.run import Run
from dpforest_duckdb.tree import EQUALS, LEAF

TABLE = "rows"
TARGET = "class"
ATTRIBUTES = 14
VALUES = 8
EPSILON = 1
DISJOINT = "disjoint"  # a recipe of this benchmark alone

LABELS = tuple(f"level {value}" for value in range(VALUES))

Connection = duckdb.DuckDBPyConnection


@dataclass(frozen=True)
class Job:
    """What a process is to run, on which database."""

    contender: str
    database: str
    attributes: int = ATTRIBUTES
    depth: int = 6
    trees: int = 1
    classes: int = 2
    mixed: bool = False  # columns of VARCHAR, ENUM, INTEGER and DOUBLE; else of INTEGER alone
    forest: str = ""  # where the forest is written, or read by the bare counts
    memory_limit: str | None = None
    temp_dir: str | None = None
    threads: int | None = None


@dataclass
class Outcome:
    """What a process reports; `failed` is the sentence if it did not end well."""

    seconds: float = 0.0
    phases: dict[str, float] = field(default_factory=dict)
    peak: int = 0
    kilobytes: float = 0.0  # of SQL
    failed: str = ""


class Clock:
    """Seconds by phase."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()

    def outcome(self) -> Outcome:
        """All phases, and their sum."""
        return Outcome(sum(self.seconds.values()), dict(self.seconds))

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] += time.perf_counter() - start


class TimedEngine(DuckDBEngine):
    """An engine that records the time of each step; statements without a step are housekeeping."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        super().__init__(connection)
        self.clock = clock

    def run(self, sql: str, values: Any = None, *, step: str = "", **options: Any) -> Any:
        with self.clock.phase(step or "housekeeping"):
            return super().run(sql, values, step=step, **options)


@dataclass(frozen=True)
class TimedNoise:
    """Noise that records its time."""

    noise: CountNoise
    clock: Clock

    @property
    def name(self) -> str:
        return self.noise.name

    @property
    def private(self) -> bool:
        return self.noise.private

    def laplace(self, counts: Any, epsilon: int, sensitivity: int) -> Any:
        with self.clock.phase("noise"):
            return self.noise.laplace(counts, epsilon, sensitivity)


def timed_choice(choose: Chooser, clock: Clock) -> Chooser:
    """A chooser that records its time."""

    def timed(choice: Choice) -> Drawn:
        with clock.phase("select"):
            return choose(choice)

    return timed


def names(attributes: int) -> list[str]:
    return [f"a{number}" for number in range(attributes)]


def column_type(number: int, mixed: bool) -> str:
    """The type of a column of the table that is made."""
    if not mixed:
        return "INTEGER"
    labels = ", ".join(f"'{label}'" for label in LABELS)
    enum = f"ENUM ({labels})"
    return (["VARCHAR"] * 4 + [enum] * 3 + ["INTEGER"] * 4 + ["DOUBLE"] * 3)[number % ATTRIBUTES]


def domain(attributes: int, mixed: bool = False, classes: int = 2) -> Domain:
    """Integers 0 … 7, or eight labels, or numbers in sixteen bins."""
    return Domain(
        attributes=tuple(
            _attribute(name, column_type(number, mixed), mixed)
            for number, name in enumerate(names(attributes))
        ),
        target=TARGET,
        classes=tuple(map(str, range(classes))),
    )


def _attribute(name: str, kind: str, mixed: bool) -> Attribute:
    if kind not in ("INTEGER", "DOUBLE"):
        return Attribute(name, "categorical", LABELS, nullable=False)
    if not mixed:
        return Attribute(name, "numeric", lower=0, upper=VALUES - 1, nullable=False)
    upper = 99 if kind == "INTEGER" else 1
    return Attribute(name, "numeric", lower=0, upper=upper, bins=16, nullable=False)


def register_disjoint() -> None:
    """`greedy-tree` with a disjoint part of the rows per tree: every tree has the whole budget."""
    RECIPES[DISJOINT] = replace(
        GREEDY_TREE,
        name=DISJOINT,
        rows="disjoint",
        plan=lambda request: GREEDY_TREE.plan(replace(request, trees=1)),
        adaptation=Adaptation(full_depth),
    )


def full_depth(histogram: object, request: Request) -> Request:
    """The depth that was asked for, whatever the noisy number of rows."""
    return request


def train(con: Connection, job: Job, recipe: str) -> Outcome:
    """Train through the library, with the product's own noise; prepare and debit are counted."""
    import opendp.measurements  # noqa: F401 -- as the others' imports: before the clock starts

    clock = Clock()
    con.execute(f"COMMENT ON TABLE {TABLE} IS NULL")  # the anchor of an earlier run's ledger
    with tempfile.TemporaryDirectory(prefix="speed-") as folder:
        start = time.perf_counter()
        run = timed(
            prepare(
                con,
                TABLE,
                epsilon=EPSILON,
                domain=domain(job.attributes, job.mixed),
                recipe=recipe,
                trees=job.trees,
                depth=job.depth,
                ledger=Path(folder) / "ledger",
            ),
            clock,
        )
        forest = run.execute()
        seconds = time.perf_counter() - start
    assert forest.depth == job.depth, "the trees are as deep as was asked"
    if job.forest:
        forest.save(job.forest)
    clock.seconds["other Python"] = seconds - sum(clock.seconds.values())
    return clock.outcome()


def timed(run: Run, clock: Clock) -> Run:
    """The same run with a clock in its engine, noise and choice."""
    return replace(
        run,
        engine=TimedEngine(run.engine.connection, clock),
        recipe=replace(
            run.recipe,
            choose=timed_choice(run.recipe.choose, clock),
            adaptation=Adaptation(full_depth),
        ),
        randomness=replace(run.randomness, noise=TimedNoise(run.randomness.noise, clock)),
    )


def train_default(con: Connection, job: Job, delta: float, recipe: str = "auto") -> Outcome:
    """Train as a user does who chooses nothing but the budget, or also the recipe."""
    import opendp.measurements  # noqa: F401 -- as the others' imports: before the clock starts

    con.execute(f"COMMENT ON TABLE {TABLE} IS NULL")
    clock = Clock()
    with tempfile.TemporaryDirectory(prefix="speed-") as folder:
        start = time.perf_counter()
        run = prepare(
            con,
            TABLE,
            epsilon=EPSILON,
            delta=delta,
            domain=domain(job.attributes, job.mixed, job.classes),
            recipe=recipe,
            ledger=Path(folder) / "ledger",
        )
        replace(run, engine=TimedEngine(run.engine.connection, clock)).execute()
        seconds = time.perf_counter() - start
    clock.seconds["other Python"] = seconds - sum(clock.seconds.values())
    return clock.outcome()


def bare(con: Connection, job: Job) -> Outcome:
    """The plain encoding scan, then one GROUP BY per depth and attribute, and one for the leaves.

    The nodes are those of the forest that `ours` grew; putting them into the table is not
    counted, reading it is.
    """
    clock, columns = Clock(), names(job.attributes)
    types = {name: column_type(number, job.mixed) for number, name in enumerate(columns)}
    bound = domain(job.attributes, job.mixed).bind(column_types({**types, TARGET: "INTEGER"}))
    dialect = DuckDBCodes()
    codes = ", ".join(
        f"CAST({dialect.code(a, dialect.ident(a.name))} AS UTINYINT) AS {a.name}"
        for a in bound.attributes
    )
    label = dialect.class_code(bound.classes, INTEGER, dialect.ident(TARGET))
    with clock.phase("encode"):
        con.execute(
            f"CREATE TEMP TABLE plain AS SELECT {codes}, CAST({label} AS UTINYINT) AS class "
            f"FROM {TABLE}"
        )
    con.execute(
        "CREATE TEMP TABLE placed AS SELECT *, "
        + ", ".join(f"{sql} AS node{d}" for d, sql in enumerate(node_columns(job, columns)))
        + " FROM plain"
    )
    for depth in range(job.depth):
        for column in columns:
            with clock.phase("count_classes"):
                con.execute(
                    f"SELECT node{depth}, {column}, class, count(*) FROM placed GROUP BY ALL"
                ).fetchnumpy()
    with clock.phase("count_leaves"):
        con.execute(
            f"SELECT node{job.depth}, class, count(*) FROM placed GROUP BY ALL"
        ).fetchnumpy()
    return clock.outcome()


def node_columns(job: Job, columns: list[str]) -> list[str]:
    """SQL for the node of a row at every depth, 0 the root, from the forest's first tree."""
    forest = load_forest(job.forest)
    return [
        f"CAST({node_case(forest, columns, 0, depth)} AS USMALLINT)"
        for depth in range(job.depth + 1)
    ]


def node_case(forest: Forest, columns: list[str], node: int, depth: int) -> str:
    tree = forest.trees[0]
    if depth == 0 or tree.kind[node] == LEAF:
        return str(node)
    test = "=" if tree.kind[node] == EQUALS else "<="
    left, right = (
        node_case(forest, columns, child, depth - 1)
        for child in tree.children(node, forest.domain.cells)
    )
    column = columns[tree.attribute[node]]
    return f"CASE WHEN {column} {test} {tree.cell[node]} THEN {left} ELSE {right} END"


def fetched(con: Connection, job: Job) -> tuple[dict[str, Any], Any]:
    """The columns as numbers, and the classes: labels as codes, which the peers want."""
    import pyarrow.compute as pc

    table = con.execute(f"SELECT * FROM {TABLE}").to_arrow_table()
    columns = {}
    for number, name in enumerate(names(job.attributes)):
        column = table.column(name).combine_chunks()
        if column_type(number, job.mixed) == "VARCHAR":
            column = pc.dictionary_encode(column)
        if column_type(number, job.mixed) not in ("INTEGER", "DOUBLE"):
            column = column.indices
        columns[name] = column
    return columns, table.column(TARGET)


def lightgbm(con: Connection, job: Job) -> Outcome:
    """LightGBM's random forest, which needs bagging, so each tree has 63 % of the rows."""
    import lightgbm as lgb
    import pyarrow as pa

    clock = Clock()
    with clock.phase("fetch"):
        columns, label = fetched(con, job)
        features = pa.table(columns)
    options = {
        "objective": "binary",
        "boosting_type": "rf",
        "bagging_freq": 1,
        "bagging_fraction": 0.632,
        "max_depth": job.depth,
        "num_leaves": 2**job.depth,
        "verbose": -1,
    }
    with clock.phase("fit"):
        lgb.train(options, lgb.Dataset(features, label), num_boost_round=job.trees)
    return clock.outcome()


def lightgbm_boosted(con: Connection, job: Job) -> Outcome:
    """LightGBM's gradient boosting with its own defaults: a hundred trees."""
    import lightgbm as lgb
    import pyarrow as pa

    clock = Clock()
    with clock.phase("fetch"):
        columns, label = fetched(con, job)
        features = pa.table(columns)
    options: dict[str, Any] = {"objective": "binary", "verbose": -1}
    if job.classes > 2:
        options |= {"objective": "multiclass", "num_class": job.classes}
    with clock.phase("fit"):
        lgb.train(options, lgb.Dataset(features, label), num_boost_round=100)
    return clock.outcome()


def hist_gradient_boosting(con: Connection, job: Job) -> Outcome:
    """scikit-learn's HistGradientBoostingClassifier with its own defaults."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    clock = Clock()
    with clock.phase("fetch"):
        features, label = matrix(con, job)
    with clock.phase("fit"):
        HistGradientBoostingClassifier(early_stopping=False).fit(features, label)
    return clock.outcome()


def matrix(con: Connection, job: Job) -> tuple[Any, Any]:
    """One matrix of 32-bit floats, which is what scikit-learn works on, and the classes."""
    columns, label = fetched(con, job)
    made = np.empty((len(label), job.attributes), dtype=np.float32)
    for number, column in enumerate(columns.values()):
        made[:, number] = column.to_numpy(zero_copy_only=False)
    return made, label.to_numpy()


def sklearn(con: Connection, job: Job) -> Outcome:
    """scikit-learn's random forest."""
    from sklearn.ensemble import RandomForestClassifier

    clock = Clock()
    with clock.phase("fetch"):
        features, label = matrix(con, job)
    with clock.phase("fit"):
        RandomForestClassifier(job.trees, max_depth=job.depth, n_jobs=-1).fit(features, label)
    return clock.outcome()


def random_forest(con: Connection, job: Job) -> Forest:
    """A forest of ours to score with: full trees at random."""
    with tempfile.TemporaryDirectory(prefix="speed-") as folder:
        con.execute(f"COMMENT ON TABLE {TABLE} IS NULL")
        return prepare(
            con,
            TABLE,
            epsilon=EPSILON,
            domain=domain(job.attributes, job.mixed),
            recipe="private-rdt",
            trees=job.trees,
            depth=job.depth,
            ledger=Path(folder) / "ledger",
        ).execute()


def score(con: Connection, job: Job, *, fast: bool) -> Outcome:
    """Our SQL, into a table: parsing and planning it are counted."""
    sql = random_forest(con, job).to_sql(TABLE, form="select", fast=fast).rstrip().rstrip(";")
    clock = Clock()
    with clock.phase("score"):
        con.execute(f"CREATE TEMP TABLE scored AS {sql}").fetchall()
    return Outcome(clock.seconds["score"], dict(clock.seconds), kilobytes=len(sql) / 1000)


def score_default(con: Connection, job: Job) -> Outcome:
    """What `score` does with a model of `auto`, into a table: writing the SQL is counted too."""
    con.execute(f"COMMENT ON TABLE {TABLE} IS NULL")
    with tempfile.TemporaryDirectory(prefix="speed-") as folder:
        bound = domain(job.attributes, job.mixed, job.classes)
        ledger = Path(folder) / "ledger"
        forest = prepare(con, TABLE, epsilon=EPSILON, domain=bound, ledger=ledger).execute()
    clock = Clock()
    with clock.phase("score"):
        sql = forest.to_sql(TABLE, form="select", fast=True).rstrip().rstrip(";")
        con.execute(f"CREATE TEMP TABLE scored AS {sql}").fetchall()
    return Outcome(clock.seconds["score"], dict(clock.seconds), kilobytes=len(sql) / 1000)


def lightgbm_predict(con: Connection, job: Job) -> Outcome:
    """Fetch, and the probabilities by a hundred trees, trained beforehand on part of the rows."""
    import lightgbm as lgb
    import pyarrow as pa

    columns, label = fetched(con, job)
    some = lgb.Dataset(pa.table(columns).slice(0, 200_000), label.slice(0, 200_000))
    model = lgb.train({"objective": "binary", "verbose": -1}, some, num_boost_round=100)
    del columns, label, some
    clock = Clock()
    with clock.phase("fetch"):
        columns, _ = fetched(con, job)
        features = pa.table(columns)
    with clock.phase("score"):
        model.predict(features)
    return clock.outcome()


def sklearn_predict(con: Connection, job: Job) -> Outcome:
    """Fetch, and scikit-learn's probabilities; trained beforehand on part of the rows."""
    from sklearn.ensemble import RandomForestClassifier

    features, label = matrix(con, job)
    some = slice(0, 200_000)
    forest = RandomForestClassifier(job.trees, max_depth=job.depth, n_jobs=-1)
    forest.fit(features[some], label[some])
    del features, label
    clock = Clock()
    with clock.phase("fetch"):
        features, _ = matrix(con, job)
    with clock.phase("score"):
        forest.predict_proba(features)
    return clock.outcome()


def idle(con: Connection, job: Job) -> Outcome:
    """Nothing: the memory of the interpreter and of what we import."""
    return Outcome()


CONTENDERS: dict[str, Callable[[Connection, Job], Outcome]] = {
    "idle": idle,
    "ours": lambda con, job: train(con, job, DISJOINT if job.trees > 1 else "greedy-tree"),
    "ours, all rows": lambda con, job: train(con, job, "greedy-tree"),
    "auto": lambda con, job: train_default(con, job, 0),
    "auto, δ = 1e-5": lambda con, job: train_default(con, job, 1e-5),
    "boosted": lambda con, job: train_default(con, job, 0, "boosted"),
    "boosted, δ = 1e-5": lambda con, job: train_default(con, job, 1e-5, "boosted"),
    "bare counts": bare,
    "LightGBM": lightgbm,
    "LightGBM, boosted": lightgbm_boosted,
    "scikit-learn": sklearn,
    "scikit-learn, boosted": hist_gradient_boosting,
    "ours, portable SQL": lambda con, job: score(con, job, fast=False),
    "ours, --fast": lambda con, job: score(con, job, fast=True),
    "scikit-learn, predict": sklearn_predict,
    "auto, score": score_default,
    "LightGBM, predict": lightgbm_predict,
}


def make_rows(
    path: Path,
    rows: int,
    attributes: int = ATTRIBUTES,
    *,
    mixed: bool = False,
    classes: int = 2,
) -> None:
    """A database of `rows` rows and some signal, whatever the columns' types."""
    con = duckdb.connect(str(path))
    con.execute("SET preserve_insertion_order = false")
    values = ", ".join(
        f"{_value(number, mixed)} AS {name}" for number, name in enumerate(names(attributes))
    )
    con.execute(
        f"CREATE TABLE {TABLE} AS SELECT {values}, CAST({_class(classes)} AS INTEGER) "
        f"AS {TARGET} FROM (SELECT hash(i) AS h FROM range({rows}) AS r(i))"
    )
    con.close()


def _bits(number: int) -> str:
    return f"CAST((h >> {3 * (number % 20)}) & 7 AS INTEGER)"


def _class(classes: int) -> str:
    """The class of a row depends on three attributes; one row in sixteen gets another class."""
    wrong = "((h >> 60) = 0)"
    if classes == 2:
        return f"(({_bits(0)} + {_bits(3)} > 7) <> ({_bits(5)} > 5)) <> {wrong}"
    both = f"({_bits(0)} + {_bits(3)}) * {classes} // 15"
    return f"({both} + CAST({_bits(5)} > 5 AS INTEGER) + CAST({wrong} AS INTEGER)) % {classes}"


def _value(number: int, mixed: bool) -> str:
    """A value of the column's type that says what three bits of the hash say."""
    kind, bits = column_type(number, mixed), _bits(number)
    if not mixed:
        return bits
    if kind == "INTEGER":
        return f"CAST({bits} * 12.5 + hash(h, {number}) % 12 AS INTEGER)"
    if kind == "DOUBLE":
        return f"({bits} + (hash(h, {number}) % 1000) / 1000e0) / 8"
    return f"CAST('level ' || {bits} AS {kind})"


def run(job: Job) -> Outcome:
    """Run one contender on a connection with the product's settings."""
    register_disjoint()
    with open_database(
        job.database,
        memory_limit=job.memory_limit,
        temp_dir=job.temp_dir,
        threads=job.threads,
    ) as con:
        try:
            outcome = CONTENDERS[job.contender](con, job)
        except DpforestError as error:
            outcome = Outcome(failed=str(error))
    outcome.peak = peak_memory()
    return outcome


def peak_memory() -> int:
    """Bytes, from /proc if possible, because ru_maxrss also counts the parent process."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(asdict(run(Job(**json.loads(sys.argv[1]))))))
