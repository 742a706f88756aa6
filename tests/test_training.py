"""The order of a run, and what it leaves behind: nothing true."""

from __future__ import annotations

import contextlib
import gc
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pytest
from shell import dpforest, train
from variants import some

import dpforest_duckdb
from dpforest_duckdb import BudgetError, DpforestError, UsageError, prepare
from dpforest_duckdb.engine.connect import open_database
from dpforest_duckdb.engine.duckdb import DuckDBEngine
from dpforest_duckdb.engine.models import DuckDBModels
from dpforest_duckdb.engine.rows import DuckDBRows
from dpforest_duckdb.engine.snapshot import DuckDBSnapshot
from dpforest_duckdb.engine.stored_rows import StoredRows
from dpforest_duckdb.errors import NotPrivateWarning, PublicFactWarning
from dpforest_duckdb.ledger.book import Ledger
from dpforest_duckdb.model import store
from dpforest_duckdb.model.forest import Forest, load_forest
from dpforest_duckdb.model.store import NotStoredError
from dpforest_duckdb.privacy.amounts import NANO, nano_epsilon
from dpforest_duckdb.privacy.unit import PrivacyUnit
from dpforest_duckdb.recipes import find

DDL = """CREATE TABLE visits (
    who VARCHAR,
    age INTEGER CHECK (age BETWEEN 0 AND 99),
    city ENUM ('Bern', 'Genf', 'Zug'),
    ill BOOLEAN
)"""


def visits(con: duckdb.DuckDBPyConnection, rows: int = 1000, where: str = "") -> None:
    con.execute(DDL.replace("TABLE ", f"TABLE {where}"))
    con.execute(
        f"INSERT INTO {where}visits SELECT 'secret-' || i // 4, i % 100, "
        f"['Bern', 'Genf', 'Zug'][i % 3 + 1], i % 100 > 60 FROM range({rows}) r(i)"
    )


def ready(con: duckdb.DuckDBPyConnection, tmp_path: Path, **options: object) -> object:
    settings = {"target": "ill", "epsilon": 1, "ledger": tmp_path / "book", **options}
    return prepare(con, "visits", **settings)  # type: ignore[arg-type]


def test_train_is_private_stored_and_debited(
    con: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    visits(con)
    forest = dpforest_duckdb.train(
        con, "visits", target="ill", epsilon=1, name="risk", ledger=tmp_path / "book"
    )
    assert forest.private
    assert forest.guarantee.noise == "opendp"
    assert store.load(DuckDBEngine(con).models, "risk").to_json() == forest.to_json()
    run = ready(con, tmp_path)
    budget = run.account.budget()
    assert budget.spent_epsilon == NANO
    assert [entry.state for entry in budget.entries] == ["done"]
    accuracy = con.sql(
        f"SELECT avg((prediction = ill)::INT) FROM ({forest.to_sql('visits').strip().rstrip(';')})"
    )
    assert accuracy.fetchall()[0][0] > 0.9


def test_planning_touches_nothing(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    visits(con)
    before = con.execute("SELECT table_name, comment FROM duckdb_tables()").fetchall()
    run = ready(con, tmp_path, name="risk")
    assert 0 < run.plan.epsilon <= NANO
    assert list(tmp_path.iterdir()) == []
    assert con.execute("SELECT table_name, comment FROM duckdb_tables()").fetchall() == before


def test_the_domain_does_not_rest_on_the_rows(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest]
) -> None:
    """A category that no row has is in the domain, and none is added by what rows have."""
    con.execute("CREATE TABLE t (a ENUM ('x', 'y', 'z'), k BOOLEAN)")
    con.execute("INSERT INTO t SELECT 'x', i % 2 = 0 FROM range(100) r(i)")
    assert fit(con, "t", target="k").domain.attributes[0].values == ("x", "y", "z")


def test_the_whole_cost_is_debited_before_a_row_is_read(
    con: duckdb.DuckDBPyConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    visits(con)

    def encode(*args: object, **kwargs: object) -> object:
        found = Ledger(tmp_path / "book")
        place = sqlite3.connect(tmp_path / "book").execute("SELECT count(*) FROM entries")
        assert place.fetchone() == (1,)
        assert found.read().head
        raise DpforestError("stopped here.")

    monkeypatch.setattr(DuckDBSnapshot, "encode", encode)
    run = ready(con, tmp_path, name="risk")
    with pytest.raises(DpforestError, match="stopped here"):
        run.execute()
    budget = run.account.budget()
    assert budget.spent_epsilon == NANO, "no refund"
    assert budget.entries[0].state == "failed"
    assert DuckDBEngine(con).models.names() == []


def test_a_run_that_passes_the_cap_reads_nothing(
    con: duckdb.DuckDBPyConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    visits(con)
    ready(con, tmp_path).account.set_cap(NANO // 2, 0, PrivacyUnit("row"), raise_cap=False)
    monkeypatch.setattr(DuckDBSnapshot, "encode", lambda *a, **k: pytest.fail("rows were read"))
    with pytest.raises(BudgetError, match=r"0\.5"):
        ready(con, tmp_path).execute()
    assert ready(con, tmp_path).account.budget().spent_epsilon == 0


@pytest.mark.parametrize("options", [{"seed": 1}, {"recipe": "dpdf", "as_published": True}])
def test_what_is_not_private_is_refused_under_a_cap(
    con: duckdb.DuckDBPyConnection, tmp_path: Path, options: dict
) -> None:
    visits(con)
    ready(con, tmp_path).account.set_cap(9 * NANO, 0, PrivacyUnit("row"), raise_cap=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        run = ready(con, tmp_path, **options)
    with pytest.raises(BudgetError, match="not private"):
        run.execute()


@some(
    ("options", "sentence"),
    [
        ({"epsilon": 0}, "greater than zero"),
        ({"epsilon": -1}, "greater than zero"),
        ({"epsilon": float("nan")}, "finite"),
        ({"epsilon": float("inf")}, "finite"),
        ({"epsilon": 1e9}, "at most"),
        ({"epsilon": 1e-12}, "too small to be shared"),
        ({"epsilon": "a lot"}, "must be a number"),
        ({"delta": 1}, "--delta"),
        ({"trees": 0}, "--trees"),
        ({"depth": 99}, "--depth"),
        ({"recipe": "dpfd"}, "did you mean dpdf"),
        ({"recipe": "dpdf", "trees": 3}, "dpdf"),
        ({"target": "zzz"}, "zzz"),
        ({"target": "age"}, "no list of classes"),
        ({"privacy_unit": "zzz"}, "--privacy-unit"),
        ({"privacy_unit": "ill"}, "privacy unit"),
        ({"rows_per_unit": 0}, "--rows-per-unit"),
        ({"rows_per_unit": 2}, "--rows-per-unit"),
        ({"exclude": ["age", "city"]}, "no attribute"),
        ({"exclude": ["nothing"]}, "--exclude"),
        ({"name": ""}, "name"),
    ],
    keep=8,
)
def test_bad_options_are_one_sentence_and_change_nothing(
    con: duckdb.DuckDBPyConnection, tmp_path: Path, options: dict, sentence: str
) -> None:
    visits(con)
    with pytest.raises((DpforestError, UsageError)) as caught:
        ready(con, tmp_path, **options)
    assert re.search(sentence, caught.value.sentence), "as the command line prints it"
    assert "\n" not in str(caught.value)
    assert "--" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_an_identifier_without_a_privacy_unit_asks_for_one(
    con: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    visits(con)
    con.execute('COMMENT ON COLUMN visits.who IS \'{"kind": "identifier"}\'')
    with pytest.raises(DpforestError, match="privacy_unit"):
        ready(con, tmp_path)
    assert ready(con, tmp_path, privacy_unit="row").unit == PrivacyUnit("row")
    run = ready(con, tmp_path, privacy_unit="WHO", rows_per_unit=3)
    assert run.unit == PrivacyUnit("who", 3)
    assert run.execute().guarantee.rows_per_unit == 3


@pytest.mark.parametrize("recipe", ["auto", "dpdf"])
@some(
    "rows",
    [
        "SELECT NULL, NULL, NULL, NULL FROM range(0)",
        "SELECT 'a', 5, 'Bern', true FROM range(1)",
        "SELECT 'a', 5, 'Bern', true FROM range(500)",
        "SELECT NULL, NULL, NULL, NULL FROM range(50)",
        "SELECT NULL, NULL, NULL, i % 2 = 0 FROM range(50) r(i)",
    ],
    keep=4,
)
def test_tables_with_few_or_bad_rows_give_a_model(
    con: duckdb.DuckDBPyConnection, tmp_path: Path, rows: str, recipe: str
) -> None:
    con.execute(DDL)
    con.execute(f"INSERT INTO visits {rows}")
    forest = ready(con, tmp_path, recipe=recipe, trees=2).execute()
    con.execute("INSERT INTO visits VALUES ('x', 99, 'Zug', NULL)")
    for row in forest.predict(con, "visits").fetchall():
        assert row[-3] in (True, False)
        assert row[-1] + row[-2] == pytest.approx(1)


@pytest.mark.parametrize("rows", [9000, 300])
def test_auto_grows_a_tree_beside_the_sums_for_several_classes_and_enough_rows(
    con: duckdb.DuckDBPyConnection, tmp_path: Path, rows: int
) -> None:
    con.execute(
        "CREATE TABLE visits (x INTEGER CHECK (x BETWEEN 0 AND 99), "
        "z INTEGER CHECK (z BETWEEN 0 AND 99), ill ENUM ('no', 'mild', 'bad'))"
    )
    con.execute(
        "INSERT INTO visits SELECT i % 100, i // 7 % 100, "
        "CASE WHEN i % 100 <= 33 THEN 'no' WHEN i // 7 % 100 <= 50 THEN 'mild' ELSE 'bad' END "
        f"FROM range({rows}) r(i)"
    )
    run = ready(con, tmp_path, epsilon=1, recipe="auto")
    forest = run.execute()
    deep = [tree for tree in forest.trees if tree.depth(forest.domain.cells) > 1]
    assert len(deep) == (rows == 9000)
    assert len(forest.trees) > 1
    assert forest.private
    assert run.account.budget().spent_epsilon == NANO
    if deep:
        right = forest.predict(con, "visits").filter("prediction = ill").count("*").fetchall()
        assert right[0][0] > 0.9 * rows


def home_of(path: Path) -> Path:
    duckdb.connect(str(path)).close()
    return path


def test_noise_and_splits_differ_from_run_to_run(
    con: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    visits(con)
    counts = [str(ready(con, tmp_path).execute().trees[0].counts) for _ in range(3)]
    assert len(set(counts)) == 3


def test_a_seed_repeats_a_run_and_is_flagged_everywhere(
    con: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    visits(con)
    forests = []
    for _ in range(2):
        with pytest.warns(NotPrivateWarning):
            forests.append(ready(con, tmp_path, seed=7).execute())
    assert forests[0].to_json() == forests[1].to_json()
    assert not forests[0].private
    assert '"private":false' in forests[0].to_json()
    assert "-- private: NO" in forests[0].to_sql("visits")
    assert not ready(con, tmp_path).account.budget().entries[0].private


def test_ctrl_c_stops_the_query_and_leaves_nothing(
    con: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    engine = DuckDBEngine(con)
    interrupter = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    interrupter.start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        engine.run(
            "CREATE TABLE half AS SELECT sum(a.i * b.i) FROM range(1000000) a(i), "
            "range(1000000) b(i)",
            step="test",
        )
    assert time.monotonic() - started < 10
    assert engine.run("SELECT count(*) FROM duckdb_tables()") == [(0,)]


@pytest.mark.parametrize("begun", [True, False])
def test_ctrl_c_while_a_task_is_handed_over_leaves_nothing_at_work(
    con: duckdb.DuckDBPyConnection, begun: bool
) -> None:
    """A task that outlives the call would use a connection that is being closed."""
    engine, at_work, late = DuckDBEngine(con), threading.Event(), list[Callable[[], bool]]()
    tasks = engine._tasks

    class Interrupted:
        def put(self, task: Callable[[], bool]) -> None:
            if begun:
                tasks.put(task)
                at_work.wait()
            else:
                late.append(task)
            raise KeyboardInterrupt

    def work() -> None:
        at_work.set()
        con.execute("SELECT sum(a.i * b.i) FROM range(1000000) a(i), range(1000000) b(i)")

    engine._tasks = Interrupted()  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        engine.call(work)
    for task in late:  # it may begin after the call has ended, and must do nothing then
        assert task()
    assert at_work.is_set() == begun
    assert con.execute("SELECT 1").fetchall() == [(1,)]


def test_the_thread_of_statements_ends_with_them(con: duckdb.DuckDBPyConnection) -> None:
    before = set(threading.enumerate())
    engine = DuckDBEngine(con)
    assert engine.run("SELECT 1") == [(1,)]
    (thread,) = set(threading.enumerate()) - before
    del engine
    thread.join(10)
    assert not thread.is_alive()


def test_statements_get_another_thread_if_theirs_has_ended(con: duckdb.DuckDBPyConnection) -> None:
    """As in the child of a fork."""
    engine = DuckDBEngine(con)
    engine._tasks.put(bool)
    engine._worker.join(10)
    assert not engine._worker.is_alive()
    assert engine.run("SELECT 1") == [(1,)]


def test_a_statement_may_be_run_while_another_is(con: duckdb.DuckDBPyConnection) -> None:
    engine, cursor = DuckDBEngine(con), con.cursor()
    assert engine.call(lambda: engine.run("SELECT 1", on=cursor)) == [(1,)]


@pytest.mark.parametrize("recipe", ["auto", "greedy-tree", "dpdf"])
def test_ctrl_c_in_an_open_transaction_is_still_ctrl_c(
    con: duckdb.DuckDBPyConnection,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    recipe: str,
) -> None:
    """The interrupt aborts the transaction, in which no table can be dropped."""

    def interrupted(rows: DuckDBRows, first: int, nodes: int) -> None:
        with contextlib.suppress(duckdb.Error):
            rows._stored.cursor.execute("SELECT error('interrupted')")
        raise KeyboardInterrupt

    for count in ("count_classes", "count_leaves"):
        monkeypatch.setattr(DuckDBRows, count, interrupted)
    visits(con)
    run = ready(con, tmp_path, recipe=recipe)
    with pytest.raises(KeyboardInterrupt):
        run.execute()
    assert con.execute("FROM duckdb_tables() WHERE temporary").fetchall() == []


KILLED = """
import os, signal, duckdb, sys
from dpforest_duckdb import prepare
from dpforest_duckdb.engine.connect import open_database
with open_database(sys.argv[1]) as con:
    run = prepare(con, "visits", target="ill", epsilon=1, recipe="dpdf", name="risk")
    run.execute(lambda m: os.kill(os.getpid(), signal.SIGKILL) if sys.argv[2] in m else None)
"""


@some(
    ("moment", "spent"),
    [
        ("debiting", 0),
        ("encoding", NANO),
        ("depth 1", NANO),
        ("finishing", NANO),
        ("storing", NANO),
    ],
    keep=3,
)
def test_a_killed_run_leaves_a_debit_and_no_model(tmp_path: Path, moment: str, spent: int) -> None:
    database = tmp_path / "data.duckdb"
    with duckdb.connect(str(database)) as con:
        visits(con)
    ended = subprocess.run([sys.executable, "-c", KILLED, str(database), moment], check=False)
    assert ended.returncode == -9
    with open_database(database) as con:
        run = prepare(con, "visits", target="ill", epsilon=1, name="risk")
        assert run.account.budget().spent_epsilon == spent
        assert run.engine.models.names() == []
        assert con.execute("SELECT count(*) FROM visits").fetchone() == (1000,)
        left = [p.name for p in tmp_path.iterdir() if "spill" in p.name]
        assert len(left) == 1, "what the dead run spilled was swept"
    assert not [p.name for p in tmp_path.iterdir() if "spill" in p.name]


def test_settings_of_numpy_do_not_end_a_run(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest]
) -> None:
    """Underflow, which depends on the rows, would be an error after the debit."""
    for table, rows in (("t", 3000), ("empty", 0)):
        con.execute(
            f"CREATE TABLE {table} (a INTEGER CHECK (a BETWEEN 0 AND 99), y BOOLEAN); "
            f"INSERT INTO {table} SELECT i % 99, i % 99 > 50 FROM range({rows}) r(i)"
        )
        with np.errstate(all="raise"):
            assert fit(con, table, target="y").trees


def test_our_own_database_is_locked_down(tmp_path: Path) -> None:
    with open_database(home_of(tmp_path / "d.duckdb")) as con:
        for statement in (
            "SET enable_external_access = true",
            "SET threads = 1",
            f"COPY (SELECT 1) TO '{tmp_path / 'out.csv'}'",
            f"SELECT * FROM read_csv('{__file__}')",
        ):
            with pytest.raises(duckdb.Error):
                con.execute(statement)


def test_databases_that_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / "not.duckdb").write_text("no database")
    for name, sentence in (("missing.duckdb", "no database file"), ("not.duckdb", "cannot be")):
        with pytest.raises(DpforestError, match=sentence), open_database(tmp_path / name):
            pass
    path = home_of(tmp_path / "d.duckdb")
    for options in ({"memory_limit": "a lot"}, {"threads": 0}, {"temp_dir": tmp_path / "no"}):
        with pytest.raises(DpforestError, match=r"temp_|DuckDB"), open_database(path, **options):
            pass
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"import duckdb, sys; c = duckdb.connect({str(path)!r}); print(1, "
            "flush=True); sys.stdin.read()",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    holder.stdout.readline()
    try:
        with pytest.raises(DpforestError, match="in use"), open_database(path):
            pass
    finally:
        holder.kill()
        holder.wait()


def test_hostile_names_go_through(
    con: duckdb.DuckDBPyConnection, tmp_path: Path, fit: Callable[..., Forest]
) -> None:
    name, column, target = 'a "b"; DROP TABLE x; --', "{{ 1 }} 'q' 😀", "select"
    quote = DuckDBEngine.dialect.ident
    con.execute(
        f"CREATE TABLE {quote(name)} ({quote(column)} ENUM ('it''s', '{{{{ x }}}}', '--'), "
        f"{quote(target)} BOOLEAN)"
    )
    con.execute(f"INSERT INTO {quote(name)} SELECT '{{{{ x }}}}', true FROM range(200)")
    forest = fit(con, str(quote(name)), target=target, name="m'; --")
    assert len(forest.predict(con, str(quote(name))).fetchall()) == 200


def test_units_with_many_rows_are_bounded_and_pay_for_it(
    con: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    """Twelve rows of one person, three of them allowed: noise is three times as wide."""
    con.execute(
        "CREATE TABLE visits (who INTEGER, age INTEGER CHECK (age BETWEEN 0 AND 1), ill BOOLEAN)"
    )
    spread = {}
    for k in (1, 8):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotPrivateWarning)
            run = ready(
                con,
                tmp_path,
                privacy_unit="who",
                rows_per_unit=k,
                seed=1,
                recipe="private-rdt",
                trees=100,
                epsilon=1,
            )
        spread[k] = float(np.std([tree.counts[-1, 0] for tree in run.execute().trees]))
    assert 4 < spread[8] / spread[1] < 16


def full(*_: object, **__: object) -> None:
    raise DpforestError("The disk is full.")


def test_a_forest_that_cannot_be_stored_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a file under a free name, and in the error; its run counts as done."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(DuckDBModels, "write", full)
    with duckdb.connect(str(tmp_path / "a.duckdb")) as con:
        con.execute("CREATE TABLE t AS SELECT i % 2 = 0 AS a, i % 2 = 0 AS y FROM range(9) r(i)")
        for name in ("t.json", "t 2.json"):
            run = prepare(con, "t", target="y", epsilon=1, name="t")
            with pytest.raises(
                NotStoredError, match=f"disk is full.* kept in the file .*/{name}:"
            ) as caught:
                run.execute()
            assert load_forest(tmp_path / name).to_json() == caught.value.forest.to_json()
        monkeypatch.setattr(store, "write_file", full)
        with pytest.raises(NotStoredError, match="attribute `forest`") as caught:
            prepare(con, "t", target="y", epsilon=1, name="t").execute()
        assert caught.value.forest.private
        assert [entry.state for entry in run.account.budget().entries] == ["done"] * 3


@pytest.mark.parametrize("named", [False, True])
def test_a_file_that_cannot_be_written_loses_no_forest(
    tmp_path: Path, db: Path, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Forest, "save", full)
    words = ("--name", "new") if named else ()
    said = dpforest(*train(db, "--out", tmp_path / "m.json", *words))
    assert said.code == 1
    if named:
        assert 'The disk is full. The model is stored as "new".' in said.err
        assert dpforest("show", "--db", db, "--model", "new").code == 0
    else:
        assert load_forest(tmp_path / "visits.json").private


@pytest.mark.parametrize("name", ["risk", "no\nname"], ids=["trained", "refused"])
def test_a_run_keeps_no_reference_to_the_connection(tmp_path: Path, name: str) -> None:
    """Else it would stay open, and the database locked, until Python looks for cycles."""
    con = duckdb.connect(tmp_path / "clinic.duckdb")
    visits(con, rows=50)
    kept = weakref.ref(con)
    gc.collect()
    gc.disable()
    try:
        with contextlib.suppress(DpforestError):
            dpforest_duckdb.train(con, "visits", target="ill", epsilon=1, recipe="dpdf", name=name)
        with contextlib.suppress(DpforestError):
            DuckDBEngine(con).call(failing)
        del con
        assert kept() is None
    finally:
        gc.enable()


def failing() -> None:
    raise DpforestError("An error that is not DuckDB's.")


def test_warnings_name_the_line_of_the_user(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    con.execute("CREATE TABLE w AS SELECT i % 2 = 0 AS a, i % 3 = 0 AS k FROM range(60) r(i)")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        dpforest_duckdb.train(con, "w", target="k", epsilon=50, seed=3, ledger=tmp_path / "ledger")
    assert {PublicFactWarning, NotPrivateWarning} <= {each.category for each in said}
    assert {Path(each.filename).name for each in said} == {"test_training.py"}


@pytest.mark.parametrize("recipe", ["auto", "private-rdt"])
def test_integers_of_numpy_are_integers(
    con: duckdb.DuckDBPyConnection, tmp_path: Path, recipe: str
) -> None:
    visits(con)
    numbers = {"trees": np.int64(2), "depth": np.int32(2), "rows_per_unit": np.int64(3)}
    run = ready(con, tmp_path, recipe=recipe, privacy_unit="who", seed=np.int64(1), **numbers)
    assert run.execute().trees
    assert run.unit == PrivacyUnit("who", 3)


def test_runs_are_checked_before_the_first_forest_is_asked_for() -> None:
    with pytest.raises(UsageError, match="runs must be a list"):
        dpforest_duckdb.train_many("nonsense")  # type: ignore[arg-type]


def test_runs_on_one_table_share_its_coded_rows(
    con: duckdb.DuckDBPyConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    visits(con)
    coded: list[StoredRows] = []
    encode = StoredRows.encode
    monkeypatch.setattr(
        StoredRows, "encode", lambda self, *given: (coded.append(self), encode(self, *given))[1]
    )
    runs = [ready(con, tmp_path, recipe="dpdf", depth=2, epsilon=epsilon) for epsilon in (1, 2)]
    assert len(list(dpforest_duckdb.train_many(runs))) == 2
    assert len(coded) == 1


def test_a_forest_names_the_recipe_that_was_picked(
    con: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    visits(con)
    forest = ready(con, tmp_path).execute()
    assert forest.picked in {recipe.name for recipe in find("auto").successors}
    assert forest.system == f"auto ({forest.picked})"
    assert Forest.from_json(forest.to_json()).picked == forest.picked
    assert f"recipe: {forest.system}," in forest.to_sql("visits")
    plain = ready(con, tmp_path, recipe="dpdf").execute()
    assert (plain.picked, plain.system) == ("", "dpdf")
    assert "picked" not in plain.to_json()


def test_auto_keeps_a_smaller_number_of_trees_for_log_odds(
    con: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    visits(con)
    request = ready(con, tmp_path, trees=2).request
    for rows in (10**3, 10**4):
        recipe, chosen = find("auto").adapted(request, np.array([rows // 2, rows // 2]))
        if recipe.name == "log-odds":
            assert chosen.trees <= 2


def test_an_aborted_transaction_is_to_be_ended(
    con: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    visits(con)
    con.execute("BEGIN")
    with pytest.raises(duckdb.Error):
        con.execute("SELECT 'x'::INTEGER")
    with pytest.raises(DpforestError, match="ROLLBACK"):
        ready(con, tmp_path)


def test_digits_have_no_underscores() -> None:
    for amount in ("1_0", "1_0e-1"):
        with pytest.raises(UsageError, match="must be a number"):
            nano_epsilon(amount)


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_command_as_ctrl_c_does(
    db: Path, tmp_path: Path, stop: signal.Signals
) -> None:
    words = [*map(str, train(db, "--name", "stopped"))]
    command = [sys.executable, "-c", STOPPED.format(stop=int(stop)), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 130, done.stderr
    assert "Interrupted" in done.stderr


STOPPED = """
import os, signal, sys
from dpforest_duckdb.cli import main
from dpforest_duckdb.training.run import Run
signal.signal({stop}, signal.SIG_DFL)  # which nohup ignores
Run.execute_on = lambda *_: os.kill(os.getpid(), {stop}) or signal.pause()
sys.argv[0] = "dpforest"
main()
"""
