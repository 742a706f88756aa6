"""A run debits its whole cost, then reads rows, then gives a forest of the recipe that it names."""

from __future__ import annotations

import inspect
import sqlite3
import warnings
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pytest
from variants import some
from visits import DDL, ready, visits

import dpforest_duckdb
from dpforest_duckdb import BudgetError, DpforestError, prepare, train
from dpforest_duckdb.engine.coded_rows.stored_rows import StoredRows
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.engine.tables.snapshot import DuckDBSnapshot
from dpforest_duckdb.errors import NotPrivateWarning, PublicFactWarning, UnanchoredWarning
from dpforest_duckdb.ledger.book import Ledger
from dpforest_duckdb.model import store
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.privacy.unit import ROW
from dpforest_duckdb.recipes import adaptation, find


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


def test_a_model_of_a_long_code_book_can_be_read_again(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest]
) -> None:
    """The name of an ENUM type holds all of its labels: here more than 100,000 characters."""
    labels = [f"{number:04d} {'as printed in the code book ' * 2}" for number in range(2_000)]
    con.execute(f"CREATE TYPE code AS ENUM ({', '.join(map(repr, labels))})")
    con.execute("CREATE TABLE t (a code, k BOOLEAN)")
    con.execute(
        "INSERT INTO t SELECT enum_range(NULL::code)[1 + i], i < 900 FROM range(2_000) r(i)"
    )
    forest = fit(con, "t", target="k", recipe="private-rdt")
    assert Forest.from_json(forest.to_json()).to_json() == forest.to_json()


def test_a_model_in_memory_of_rows_in_a_file_is_warned_of(tmp_path: Path) -> None:
    file, settings = (
        tmp_path / "t.duckdb",
        {"target": "ill", "epsilon": 1, "ledger": tmp_path / "b"},
    )
    with duckdb.connect(str(file)) as con:
        visits(con)
    for use, name, warned in (("memory", "m", 1), ("held", "n", 0), ("memory", None, 0)):
        with duckdb.connect() as con, warnings.catch_warnings(record=True) as caught:
            con.execute(f"ATTACH '{file}' AS held")
            con.execute(f"USE {use}")
            train(con, "held.visits", name=name, **settings)
        assert sum("is in memory, so it is lost" in str(each.message) for each in caught) == warned
    with duckdb.connect() as con, warnings.catch_warnings(record=True) as caught:
        visits(con)
        train(con, "visits", name="m", **settings)
    assert not any("is in memory, so it is lost" in str(each.message) for each in caught)


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
    ready(con, tmp_path).account.set_cap(NANO // 2, 0, ROW, raise_cap=False)
    monkeypatch.setattr(DuckDBSnapshot, "encode", lambda *a, **k: pytest.fail("rows were read"))
    with pytest.raises(BudgetError, match=r"0\.5"):
        ready(con, tmp_path).execute()
    assert ready(con, tmp_path).account.budget().spent_epsilon == 0


@pytest.mark.parametrize("options", [{"seed": 1}, {"recipe": "dpdf", "as_published": True}])
def test_what_is_not_private_is_refused_under_a_cap(
    con: duckdb.DuckDBPyConnection, tmp_path: Path, options: dict
) -> None:
    visits(con)
    ready(con, tmp_path).account.set_cap(9 * NANO, 0, ROW, raise_cap=False)
    with warnings.catch_warnings(action="ignore", category=NotPrivateWarning):
        run = ready(con, tmp_path, **options)
    with pytest.raises(BudgetError, match="not private"):
        run.execute()


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


def test_units_with_many_rows_are_bounded_and_pay_for_it(
    con: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    """Twelve rows of one person, three of them allowed: noise is three times as wide."""
    con.execute(
        "CREATE TABLE visits (who INTEGER, age INTEGER CHECK (age BETWEEN 0 AND 1), ill BOOLEAN)"
    )
    spread = {}
    for k in (1, 8):
        with warnings.catch_warnings(action="ignore", category=NotPrivateWarning):
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


def test_warnings_name_the_line_of_the_user(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    con.execute("CREATE TABLE w AS SELECT i % 2 = 0 AS a, i % 3 = 0 AS k FROM range(60) r(i)")
    with warnings.catch_warnings(record=True, action="always") as said:
        dpforest_duckdb.train(con, "w", target="k", epsilon=50, seed=3, ledger=tmp_path / "ledger")
    assert {PublicFactWarning, NotPrivateWarning} <= {each.category for each in said}
    assert {Path(each.filename).name for each in said} == {"test_training.py"}


def test_warnings_within_a_context_manager_name_the_line_of_the_user(tmp_path: Path) -> None:
    path = str(tmp_path / "w.duckdb")
    with duckdb.connect(path) as con:
        con.execute("CREATE TABLE w AS SELECT i % 2 = 0 AS a, i % 3 = 0 AS k FROM range(60) r(i)")
    with (
        duckdb.connect(path, read_only=True) as con,
        pytest.warns(UnanchoredWarning, match="read-only") as said,
    ):
        dpforest_duckdb.train(con, "w", target="k", epsilon=1)
    assert {Path(each.filename).name for each in said} == {"test_training.py"}


@pytest.mark.parametrize(
    ("recipe", "as_published"), [("rana-forest", False), ("smooth-forest", True)]
)
def test_a_recipe_that_is_not_private_warns(
    con: duckdb.DuckDBPyConnection, tmp_path: Path, recipe: str, as_published: bool
) -> None:
    visits(con)
    with pytest.warns(NotPrivateWarning, match=f"Recipe {recipe} as published is not private: "):
        run = ready(con, tmp_path, recipe=recipe, as_published=as_published)
    assert run.reasons


def test_runs_on_one_table_share_its_coded_rows(
    con: duckdb.DuckDBPyConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    visits(con)
    coded: list[StoredRows] = []
    encoded = StoredRows.encoded

    def noted(*given: object) -> StoredRows:
        coded.append(encoded(*given))  # type: ignore[arg-type]
        return coded[-1]

    monkeypatch.setattr(StoredRows, "encoded", staticmethod(noted))
    runs = [ready(con, tmp_path, recipe="dpdf", depth=2, epsilon=epsilon) for epsilon in (1, 2)]
    assert len(list(dpforest_duckdb.train_many(runs))) == 2
    assert len(coded) == 1


def test_a_forest_names_the_recipe_that_was_picked(
    con: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    visits(con)
    forest = ready(con, tmp_path).execute()
    assert forest.picked in {recipe.name for recipe in find("auto").adaptation.successors}
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
        found = adaptation.adapted(find("auto"), request, np.array([rows // 2, rows // 2]))
        if found.recipe.name == "log-odds":
            assert found.request.trees <= 2


def test_prepare_takes_all_arguments_of_train_with_the_same_defaults() -> None:
    """Whoever adds one to `train` passes it on."""
    own = dict(inspect.signature(train).parameters)
    assert own.pop("progress").default is None
    planned = inspect.signature(prepare).parameters
    assert {name: each.default for name, each in own.items()} == {
        name: planned[name].default for name in own
    }
    assert set(planned) - set(own) == {"account", "leaks", "file"}


def test_a_published_form_debits_what_it_spends_if_that_is_more_than_was_asked(
    con: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    visits(con)
    run = ready(con, tmp_path, recipe="diprime", as_published=True, privacy_unit="row")
    assert run.plan.epsilon > NANO
    run.execute()
    (debit,) = dpforest_duckdb.budget(con, "visits", ledger=tmp_path / "book").entries
    assert debit.epsilon == run.plan.epsilon
