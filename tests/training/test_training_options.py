"""Options of a run: bad ones are one sentence and change nothing, odd ones work."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from variants import some
from visits import ready, visits

import dpforest_duckdb
from dpforest_duckdb import DpforestError, UsageError, budgets, load_domain, load_forest
from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.errors import PublicFactWarning
from dpforest_duckdb.ledger.accounts import NoAccount, ruled_out
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.privacy.amounts import nano_epsilon
from dpforest_duckdb.privacy.unit import ROW, PrivacyUnit
from dpforest_duckdb.progress import Event, Phase


@some(
    ("options", "sentence"),
    [
        ({"epsilon": 0}, "greater than zero"),
        ({"epsilon": -1}, "greater than zero"),
        ({"epsilon": float("nan")}, "finite"),
        ({"epsilon": float("inf")}, "finite"),
        ({"epsilon": 1e9}, "at most"),
        ({"epsilon": 2e-9}, "raise it, or ask for fewer --trees\\.$"),
        (
            {"recipe": "snr-forest", "epsilon": 2e-8},
            "too small to be shared .*: raise it, or ask for fewer --trees or less --depth\\.$",
        ),
        ({"recipe": "joint-tables", "epsilon": 2e-9}, "raise it\\.$"),
        ({"epsilon": 1e-10}, "--epsilon must be at least 1e-9"),
        ({"delta": 1e-20}, "--delta must be 0, or at least 1e-18"),
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
    assert ready(con, tmp_path, privacy_unit="row").unit == ROW
    run = ready(con, tmp_path, privacy_unit="WHO", rows_per_unit=3)
    assert run.unit == PrivacyUnit("who", 3)
    assert run.execute().guarantee.rows_per_unit == 3


@pytest.mark.parametrize("computed", ["twice(x)", "(random() * 9)::INTEGER"])
@pytest.mark.parametrize("options", [{"columns": ["x"], "privacy_unit": "y"}, {"columns": ["y"]}])
def test_columns_computed_by_a_macro_or_at_random_are_refused(
    con: duckdb.DuckDBPyConnection, tmp_path: Path, computed: str, options: dict[str, Any]
) -> None:
    """As attributes, and as the privacy unit."""
    con.execute("CREATE MACRO twice(a) AS 2 * a")
    con.execute(
        "CREATE TABLE t (x INTEGER CHECK (x BETWEEN 0 AND 9), label BOOLEAN, "
        f"y INTEGER GENERATED ALWAYS AS ({computed}))"
    )
    numbers = [Attribute(name, "numeric", lower=0, upper=9) for name in "xy"]
    given = {"domain": Domain(tuple(numbers), "label", ("false", "true")), "epsilon": 1, **options}
    with pytest.raises(DpforestError, match='"y" of table "t" is computed by a macro'):
        dpforest_duckdb.prepare(con, "t", ledger=tmp_path / "book", **given)


def test_hostile_names_go_through(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest]
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


@pytest.mark.parametrize("read", [load_domain, load_forest, budgets])
def test_text_that_can_name_no_file_is_no_path(read: Callable[[str], object]) -> None:
    for path in ("\ud800", "a\0"):
        with pytest.raises(UsageError, match="must be a path that a file can have"):
            read(path)


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


def test_progress_is_text_and_events_wherever_it_is_given(
    con: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    visits(con)
    options: dict[str, Any] = {"recipe": "private-rdt", "depth": 2}
    run, seen = ready(con, tmp_path, **options), [list[Event](), list[Event](), list[Event]()]
    run.execute(seen[0].append)
    list(dpforest_duckdb.train_many([run], seen[1].append))
    ledger = run.account.ledger.path
    dpforest_duckdb.train(
        con, "visits", target="ill", epsilon=1, ledger=ledger, progress=seen[2].append, **options
    )
    assert seen[0] == seen[1] == seen[2]
    step = next(event for event in seen[0] if event.step == 2)
    assert (step.phase, step.steps) == (Phase.CHOOSE_SPLITS, 2)
    assert ", ".join([seen[0][0], step]) == "debiting the budget, choosing splits, depth 2 of 2"


def test_progress_that_is_no_function_is_refused_before_the_debit(
    con: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    visits(con)
    run = ready(con, tmp_path)
    for execute in (run.execute, lambda progress: dpforest_duckdb.train_many([run], progress)):
        with pytest.raises(UsageError, match="progress must be a function"):
            execute("loud")
    assert run.account.budget().entries == ()


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


@pytest.mark.parametrize("unit", [None, "row"])
def test_the_first_run_for_rows_warns_that_it_rules_out_a_cap_for_persons(
    tmp_path: Path, con: duckdb.DuckDBPyConnection, unit: str | None
) -> None:
    """Unless rows were asked for; and a run for persons before it is a reason to warn again."""
    visits(con)
    given = {"privacy_unit": unit} if unit else {}
    with warnings.catch_warnings(record=True, action="always") as caught:
        run = ready(con, tmp_path, **given)
    said = [str(each.message) for each in caught]
    persons = "their column with privacy_unit: after a run for rows, the table can never have a cap"
    assert sum(persons in text for text in said) == (unit is None)
    assert all(each.category is PublicFactWarning for each in caught)
    run.execute()
    with warnings.catch_warnings(record=True, action="always") as caught:
        ready(con, tmp_path, **given)
    assert not any("cap" in str(each.message) for each in caught), "it was said"
    with pytest.warns(PublicFactWarning, match="Earlier runs protected each row; this one"):
        ready(con, tmp_path, privacy_unit="who")


def test_a_refused_run_warns_of_nothing(tmp_path: Path, con: duckdb.DuckDBPyConnection) -> None:
    """Its warnings would say what does not happen."""
    visits(con)
    given = {"epsilon": 20, "trees": 3, "seed": 1, "name": "m"}
    with pytest.warns(PublicFactWarning, match="ε = 20 is above 10"):
        ready(con, tmp_path, **given).execute()
    for refused in ({}, {"replace": True, "rows_at_most": 10**12}):
        raises = pytest.raises(DpforestError, match=r"already|folder with DuckDB's temp_directory")
        with warnings.catch_warnings(record=True, action="always") as caught, raises:
            ready(con, tmp_path, **given, **refused)
        assert not caught


def test_without_a_ledger_nothing_is_said_about_caps() -> None:
    assert list(ruled_out(NoAccount(), NoAccount().budget(), ROW, given=False)) == []
