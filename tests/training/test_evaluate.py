"""Evaluating a model: what it debits, refuses and declares."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pytest
from scored_tables import scored_table
from variants import some

import dpforest_duckdb
from dpforest_duckdb.domain.table import TableInfo
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.engine.tables.snapshot import DuckDBSnapshot
from dpforest_duckdb.errors import BudgetError, DpforestError, NotPrivateWarning, UsageError
from dpforest_duckdb.ledger.account import Account
from dpforest_duckdb.ledger.book import Ledger
from dpforest_duckdb.ledger.entries import Closing
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.privacy.unit import ROW, PrivacyUnit
from dpforest_duckdb.training.evaluate import UNSEEN, evaluate
from dpforest_duckdb.training.prepare import prepare

pytestmark = pytest.mark.filterwarnings("ignore::dpforest_duckdb.errors.NotPrivateWarning")


def test_rows_that_cannot_be_read_cost_nothing(
    con: duckdb.DuckDBPyConnection,
    fit: Callable[..., Forest],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scored_table(con, 2)
    forest = fit(con, "t", target="label", privacy_unit="row")
    ledger = Ledger(tmp_path / "ledger")
    before = ledger.read().head

    @contextmanager
    def dropped(self: DuckDBEngine, table: TableInfo) -> Iterator[None]:
        raise DpforestError("gone")
        yield

    monkeypatch.setattr(DuckDBEngine, "snapshot", dropped)
    with pytest.raises(DpforestError, match="gone"):
        evaluate(con, forest, "t", epsilon=1, ledger=ledger.path)
    assert ledger.read().head == before


def test_the_debit_comes_before_the_rows(
    con: duckdb.DuckDBPyConnection,
    fit: Callable[..., Forest],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scored_table(con, 2)
    forest, engine = fit(con, "t", target="label"), DuckDBEngine(con)
    guard = Account.of(engine, engine.table("t"), tmp_path / "ledger")
    spent = guard.budget().spent_epsilon

    def broken(*args: object, **options: object) -> object:
        assert guard.budget().spent_epsilon == spent + NANO
        raise DpforestError("stopped here.")

    monkeypatch.setattr(DuckDBSnapshot, "count_outcome_grid", broken)
    with pytest.raises(DpforestError, match="stopped here"):
        evaluate(con, forest, "t", epsilon=1, ledger=guard.ledger.path)
    assert guard.budget().entries[-1].state == "failed"
    assert guard.budget().spent_epsilon == spent + NANO, "no refund"


def test_under_a_cap_only_noisy_figures_of_its_unit(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest], tmp_path: Path
) -> None:
    scored_table(con, 2)
    forest, engine = fit(con, "t", target="label"), DuckDBEngine(con)
    book = tmp_path / "other"  # the forest was trained with a seed, which no cap can count
    con.execute("COMMENT ON TABLE t IS NULL")
    guard = Account.of(engine, engine.table("t"), book)
    guard.set_cap(2 * NANO, 0, PrivacyUnit("who", 3), raise_cap=False)
    with pytest.raises(BudgetError, match="has a cap"):
        evaluate(con, forest, "t", ledger=book)
    with pytest.raises(DpforestError, match="ledger"):
        evaluate(con, forest, "t")  # leaving the ledger out is no way around the cap
    with pytest.raises(BudgetError, match="protects"):
        evaluate(
            con,
            forest,
            "t",
            epsilon=1,
            unseen=True,
            privacy_unit="row",
            ledger=book,
        )
    assert guard.budget().spent_epsilon == 0
    assert evaluate(con, forest, "t", epsilon=1, unseen=True, ledger=book).private
    assert guard.budget().entries[0].unit == PrivacyUnit("who", 3), "the cap's unit, unasked"
    with pytest.raises(BudgetError, match=r"only 1 of the cap of 2"):
        evaluate(con, forest, "t", epsilon=1.5, unseen=True, ledger=book)


@some(
    ("options", "sentence"),
    [
        ({"target": "zzz"}, "--target"),
        ({"privacy_unit": "zzz", "epsilon": 1}, "--privacy-unit"),
        ({"rows_per_unit": 2, "epsilon": 1}, "--rows-per-unit"),
        ({"rows_per_unit": 2, "privacy_unit": "row", "epsilon": 1}, "--rows-per-unit"),
        ({"rows_per_unit": 0, "privacy_unit": "who", "epsilon": 1}, "--rows-per-unit"),
        ({"rows_per_unit": 1.5, "privacy_unit": "who", "epsilon": 1}, "--rows-per-unit"),
        ({"rows_per_unit": True, "privacy_unit": "who", "epsilon": 1}, "--rows-per-unit"),
        ({"rows_per_unit": 10**30, "privacy_unit": "who", "epsilon": 1}, "--rows-per-unit"),
        ({"unseen": True}, "--unseen"),
        ({"epsilon": 0}, "--epsilon"),
    ],
    keep=4,
)
def test_bad_options_spend_nothing(
    con: duckdb.DuckDBPyConnection,
    fit: Callable[..., Forest],
    tmp_path: Path,
    options: dict[str, object],
    sentence: str,
) -> None:
    scored_table(con, 2)
    forest = fit(con, "t", target="label")
    before = (tmp_path / "ledger").read_bytes()
    with pytest.raises(DpforestError) as caught:
        evaluate(con, forest, "t", ledger=tmp_path / "ledger", **options)  # type: ignore[arg-type]
    assert sentence in caught.value.sentence, "as the command line prints it"
    assert (tmp_path / "ledger").read_bytes() == before


def test_figures_of_a_model_that_is_not_private_are_not_private(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest], tmp_path: Path
) -> None:
    """With a seed, one row of the table determines the forest, and so its figures."""
    scored_table(con, 2)
    forest, engine, book = fit(con, "t", target="label"), DuckDBEngine(con), tmp_path / "ledger"
    account = Account.of(engine, engine.table("t"), book)
    found = evaluate(con, forest, "t", epsilon=1, ledger=book)
    assert not found.private
    assert found.facts()["reasons"] == list(found.reasons)
    assert "not private" in found.reasons[0]
    assert not account.budget().entries[-1].private, "no later cap may count it"
    closings = [entry for entry in Ledger(book).read().entries if isinstance(entry, Closing)]
    assert {entry.forest for entry in closings} == {""}, "nothing is kept of the forest"
    assert "declared" not in account.budget().entries[-1].plan[0]
    con.execute("CREATE TABLE u AS FROM t; COMMENT ON TABLE u IS NULL")
    declared = evaluate(con, forest, "u", epsilon=1, unseen=True, ledger=book)
    assert declared.private
    assert declared.reasons == ()
    other = Account.of(engine, engine.table("u"), book)
    assert other.budget().entries[-1].plan[0]["declared"] == UNSEEN


def test_nobody_can_declare_rows_unseen_that_trained_the_model_by_the_ledger(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest], tmp_path: Path
) -> None:
    scored_table(con, 2)
    con.execute("CREATE TABLE u AS FROM t")
    book, file = tmp_path / "ledger", tmp_path / "people.parquet"
    con.execute(f"COPY t TO '{file}'")
    seeded = fit(con, "t", target="label")
    private = prepare(con, "t", target="label", epsilon=1, ledger=book).execute()
    fit(con, "u", domain=seeded.domain)
    before = book.read_bytes()
    for forest in (seeded, private, replace(seeded, name="another name")):
        with pytest.raises(BudgetError, match="leave out unseen"):
            evaluate(con, forest, "t", epsilon=1, unseen=True, ledger=book)
    assert book.read_bytes() == before, "nothing is debited"
    assert not evaluate(con, seeded, "t", epsilon=1, ledger=book).private
    assert evaluate(con, private, "t", epsilon=1, ledger=book).private
    for forest in (seeded, private):  # of a table with another name, and the same recipe
        assert evaluate(con, forest, "u", epsilon=1, unseen=True, ledger=book).private
    con.execute("COMMENT ON TABLE t IS NULL")
    other = fit(con, "t", target="label", recipe="private-rdt", ledger=tmp_path / "other")
    con.execute("COMMENT ON TABLE t IS NULL")
    assert evaluate(con, other, "t", epsilon=1, unseen=True, ledger=book).private
    of_file = fit(con, file, domain=seeded.domain, ledger=book)  # type: ignore[arg-type]
    with pytest.raises(BudgetError, match="leave out unseen"):
        evaluate(con, of_file, file, epsilon=1, unseen=True, ledger=book)
    parts = {"ledger": book, "dataset": "parts"}  # whose rows may be others each time
    of_query = fit(con, con.sql("FROM t WHERE x < 5"), domain=seeded.domain, **parts)  # type: ignore[arg-type]
    rest = con.sql("FROM t WHERE x >= 5")
    assert evaluate(con, of_query, rest, epsilon=1, unseen=True, **parts).private  # type: ignore[arg-type]


def test_only_a_run_that_may_have_made_the_model_shows_that_it_saw_the_rows(
    con: duckdb.DuckDBPyConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that failed made none. One whose end was not recorded may have made it."""
    scored_table(con, 2)
    book, elsewhere = tmp_path / "ledger", tmp_path / "elsewhere"
    run = partial(prepare, con, "t", target="label", privacy_unit="row", epsilon=1, seed=1)
    forest = run(ledger=elsewhere).execute()
    private = run(ledger=elsewhere, seed=None).execute()
    of_persons = run(ledger=elsewhere, privacy_unit="who").execute()
    con.execute("COMMENT ON TABLE t IS NULL")

    def fails(*args: object, **options: object) -> None:
        raise DpforestError("stopped here.")

    failing = run(ledger=book)
    with monkeypatch.context() as patched:
        patched.setattr(DuckDBSnapshot, "encode", fails)
        with pytest.raises(DpforestError, match="stopped here"):
            failing.execute()
    assert evaluate(con, forest, "t", epsilon=1, unseen=True, ledger=book).private
    with monkeypatch.context() as patched:
        patched.setattr(Account, "close_run", fails)
        run(ledger=book).execute()
    with pytest.raises(BudgetError, match="leave out unseen"):
        evaluate(con, forest, "t", epsilon=1, unseen=True, ledger=book)
    for other in (private, of_persons):  # which that run cannot have made
        assert evaluate(con, other, "t", epsilon=1, unseen=True, ledger=book).private


def test_a_model_of_unknown_origin_needs_a_declaration(
    con: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    """A private run in the ledger must have made the model, whatever the model claims."""
    scored_table(con, 2)
    book, other, engine = tmp_path / "ledger", tmp_path / "other", DuckDBEngine(con)
    forest = prepare(con, "t", target="label", epsilon=1, name="m", ledger=book).execute()
    assert evaluate(con, forest, "t", epsilon=1, ledger=book).private
    con.execute("CREATE TABLE u AS FROM t")
    assert evaluate(con, forest, "u", epsilon=1, ledger=book).private, "another table's model"
    con.execute("COMMENT ON TABLE t IS NULL")
    con.execute("COMMENT ON TABLE u IS NULL")
    assert not evaluate(con, forest, "u", epsilon=1, ledger=tmp_path / "unknown").private
    con.execute("COMMENT ON TABLE u IS NULL")
    forged = replace(forest, guarantee=replace(forest.guarantee, epsilon="0.5"))
    swapped = replace(forest, trees=tuple(replace(t, votes=t.votes[:, ::-1]) for t in forest.trees))
    for model in (forged, swapped, replace(forest, trees=forest.trees[::-1])):
        with pytest.warns(NotPrivateWarning, match="will not be private.* Pass unseen if"):
            found = evaluate(con, model, "u", epsilon=1, ledger=book)
        assert "no private run" in found.reasons[0]
    kept = Forest.from_json(replace(forest, name="another name").to_json())
    assert evaluate(con, kept, "u", epsilon=1, ledger=book).private
    Account.of(engine, engine.table("t"), other).set_cap(NANO, 0, ROW, raise_cap=False)
    with pytest.raises(BudgetError, match="no private run"):
        evaluate(con, forest, "t", epsilon=1, ledger=other)
    assert Account.of(engine, engine.table("t"), other).budget().spent_epsilon == 0
    assert evaluate(con, forest, "t", epsilon=1, unseen=True, ledger=other).private


def test_a_declared_evaluation_vouches_for_no_model(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest], tmp_path: Path
) -> None:
    """A declaration for one table does not hold for the next; nor does a run of another recipe."""
    scored_table(con, 2)
    con.execute("CREATE TABLE u AS FROM t")
    seeded, book = fit(con, "t", target="label"), tmp_path / "ledger"
    promise = replace(seeded.guarantee, private=True, reasons=(), epsilon="1", delta="0")
    claimed = replace(seeded, guarantee=promise, name="m")
    assert evaluate(con, claimed, "u", epsilon=1, unseen=True, ledger=book).private
    assert not evaluate(con, claimed, "t", epsilon=1, ledger=book).private
    prepare(con, "t", target="label", epsilon=1, recipe="private-rdt", ledger=book).execute()
    assert claimed.recipe != "private-rdt"
    assert not evaluate(con, claimed, "t", epsilon=1, ledger=book).private


def test_an_attribute_is_no_column_of_classes(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest], tmp_path: Path
) -> None:
    scored_table(con, 2)
    forest = fit(con, "t", target="label")
    target = forest.domain.attributes[0].name
    with pytest.raises(UsageError, match="an attribute of the model"):
        evaluate(con, forest, "t", target=target, ledger=tmp_path / "ledger")


def test_figures_protect_whom_the_model_protects(
    con: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    scored_table(con, 2)
    book, engine = tmp_path / "ledger", DuckDBEngine(con)
    forest = prepare(
        con, "t", target="label", epsilon=1, privacy_unit="who", rows_per_unit=2, ledger=book
    ).execute()
    found = evaluate(con, forest, "t", epsilon=1, ledger=book)
    assert found.unit == PrivacyUnit("who", 2)
    assert found.noise == pytest.approx(2 * math.sqrt(2), rel=0.03)
    account = Account.of(engine, engine.table("t"), book)
    spent = account.budget().spent_epsilon
    less: list[dict[str, Any]] = [
        {"privacy_unit": "row"}, {"rows_per_unit": 1}, {"privacy_unit": "who", "rows_per_unit": 1}
    ]  # fmt: skip
    for options in less:
        with pytest.raises(UsageError, match="less than the model protects"):
            evaluate(con, forest, "t", epsilon=1, ledger=book, **options)
    con.execute("CREATE TABLE u AS SELECT who AS person, x, label FROM t")
    with pytest.raises(DpforestError, match='protects each "who"'):
        evaluate(con, forest, "u", epsilon=1, ledger=book)
    assert account.budget().spent_epsilon == spent
    more = evaluate(con, forest, "u", epsilon=1, privacy_unit="person", ledger=book)
    assert more.unit == PrivacyUnit("person", 2)


def test_figures_for_rows_are_refused_of_a_model_that_protects_persons(
    con: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    """Also if the model uses one row of each person, as figures for rows would."""
    scored_table(con, 2)
    book = tmp_path / "ledger"
    forest = prepare(con, "t", target="label", epsilon=1, privacy_unit="who", ledger=book).execute()
    with pytest.raises(UsageError, match="less than the model protects"):
        evaluate(con, forest, "t", epsilon=1, privacy_unit="row", ledger=book)
    assert dpforest_duckdb.budget(con, "t", ledger=book).spent_epsilon == NANO


def test_figures_protect_whom_the_cap_protects_whatever_the_model_does(
    con: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    scored_table(con, 2)
    con.execute("CREATE TABLE u AS FROM t")
    book = tmp_path / "ledger"
    forest = prepare(
        con, "t", target="label", epsilon=1, privacy_unit="who", rows_per_unit=2, ledger=book
    ).execute()
    dpforest_duckdb.set_budget(con, "u", epsilon=1, privacy_unit="row", ledger=book)
    assert evaluate(con, forest, "u", epsilon=1, ledger=book).unit == ROW


def test_a_cap_whose_column_is_missing_is_refused_before_the_debit(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest], tmp_path: Path
) -> None:
    scored_table(con, 2)
    forest = fit(con, "t", target="label", privacy_unit="row")
    given: dict[str, Any] = {"ledger": tmp_path / "book", "dataset": "rows"}
    rows = con.table("t").df().astype({"who": "Int64"})
    dpforest_duckdb.set_budget(con, rows, epsilon=1, privacy_unit="who", **given)
    with pytest.raises(DpforestError, match='budget protects each "who", and there is no such'):
        evaluate(con, forest, rows[["x", "label"]], epsilon=1, unseen=True, **given)
    assert dpforest_duckdb.budget(con, rows, **given).spent_epsilon == 0


def test_another_column_may_hold_the_classes(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest], tmp_path: Path
) -> None:
    scored_table(con, 2)
    forest = fit(con, "t", target="label")
    con.execute("CREATE TABLE u AS SELECT who, x, label AS truth, 7 AS prediction FROM t")
    expected = evaluate(con, forest, "t", ledger=tmp_path / "ledger").facts()
    # the groups come in any order, so sums differ in their last digits
    found = evaluate(con, forest, "u", target="TRUTH").facts()
    for counts in ("bins", "bin_edges", "confusion"):
        assert found.pop(counts) == expected.pop(counts)
    assert found == pytest.approx(expected)
    con.execute("CREATE TABLE empty AS FROM t LIMIT 0")
    assert evaluate(con, forest, "empty").rows == 0


def test_python_evaluates_whatever_can_be_trained_on(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest], tmp_path: Path
) -> None:
    """A table, a relation, a DataFrame and a file with the same rows have the same figures."""
    scored_table(con, 2)
    forest, ledger = fit(con, "t", target="label"), tmp_path / "ledger"
    con.execute(f"COPY t TO '{tmp_path / 't.parquet'}'")
    expected = evaluate(con, forest, "t", ledger=ledger)
    assert expected.rows == 901
    assert not expected.private
    same = (con.table("t"), con.sql("FROM t"), tmp_path / "t.parquet")
    for rows, dataset in (*((one, None) for one in same), (con.table("t").df(), "frame")):
        found = evaluate(con, forest, rows, ledger=ledger, dataset=dataset)
        assert found.facts() == expected.facts()
    part = con.sql("SELECT x, label FROM t WHERE x > 4")
    found = evaluate(con, forest, part, ledger=ledger, dataset="part")
    assert found.rows == 450


def test_python_pays_for_figures_of_a_query(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest], tmp_path: Path
) -> None:
    scored_table(con, 2)
    forest, ledger = fit(con, "t", target="label", privacy_unit="row"), tmp_path / "ledger"
    rows = con.table("t").df()
    dpforest_duckdb.set_budget(con, rows, epsilon=1, ledger=ledger, dataset="rows")
    with pytest.raises(BudgetError, match="exact figures are not"):
        evaluate(con, forest, rows, ledger=ledger, dataset="rows")
    figures = evaluate(
        con, forest, rows, epsilon="0.75", unseen=True, ledger=ledger, dataset="rows"
    )
    assert figures.private
    with pytest.raises(BudgetError, match="left"):
        evaluate(con, forest, rows, epsilon="0.5", unseen=True, ledger=ledger, dataset="rows")
    left = dpforest_duckdb.budget(con, rows, ledger=ledger, dataset="rows").facts()
    assert (left["cap"], left["spent"], left["left"]) == (1, 0.75, 0.25)
    assert [run["recipe"] for run in left["entries"]] == ["evaluate"]


def test_an_attribute_of_a_file_is_no_privacy_unit_in_another_type(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest], tmp_path: Path
) -> None:
    """Numbers beyond the bounds are read as one, and so would their persons be."""
    scored_table(con, 2)
    forest, book = fit(con, "t", target="label", privacy_unit="row"), tmp_path / "book"
    (tmp_path / "t.csv").write_text("x,label\n" + "1,no\n2,yes\n" * 9)
    with pytest.raises(DpforestError, match='"x" is an attribute too'):
        evaluate(
            con, forest, tmp_path / "t.csv", epsilon=1, privacy_unit="x", ledger=book, unseen=True
        )
    assert not book.exists()
    found = evaluate(con, forest, "t", epsilon=1, privacy_unit="x", ledger=tmp_path / "ledger")
    assert found.unit == PrivacyUnit("x"), "a table has types of its own"


def test_the_target_is_no_privacy_unit(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest], tmp_path: Path
) -> None:
    scored_table(con, 2)
    forest, ledger = fit(con, "t", target="label", privacy_unit="row"), tmp_path / "ledger"
    spent = dpforest_duckdb.budget(con, "t", ledger=ledger).facts()["spent"]
    with pytest.raises(DpforestError, match="target cannot be the privacy unit"):
        evaluate(con, forest, "t", epsilon=1, privacy_unit="LABEL", ledger=ledger)
    assert dpforest_duckdb.budget(con, "t", ledger=ledger).facts()["spent"] == spent


def test_the_unit_of_a_cap_is_checked_before_the_debit(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest], tmp_path: Path
) -> None:
    """In a DataFrame, all values that are no category are one, and so would their persons be."""
    scored_table(con, 2)
    forest, book = fit(con, "t", target="label", privacy_unit="row"), tmp_path / "book"
    rows = con.table("t").df()
    given: dict[str, Any] = {"ledger": book, "dataset": "rows"}
    dpforest_duckdb.set_budget(con, rows, epsilon=1, privacy_unit="x", **given)
    with pytest.raises(DpforestError, match='"x" is an attribute too'):
        evaluate(con, forest, rows, epsilon=1, unseen=True, **given)
    assert dpforest_duckdb.budget(con, rows, **given).spent_epsilon == 0
    con.execute("CREATE MACRO twice(a) AS 2 * a")
    con.execute(
        "CREATE TABLE computed (x INTEGER, label VARCHAR, who INTEGER GENERATED ALWAYS AS "
        "(twice(x)))"
    )
    dpforest_duckdb.set_budget(con, "computed", epsilon=1, privacy_unit="who", ledger=book)
    with pytest.raises(DpforestError, match='"who" of table "computed" is computed'):
        evaluate(con, forest, "computed", epsilon=1, unseen=True, ledger=book)
    assert dpforest_duckdb.budget(con, "computed", ledger=book).spent_epsilon == 0


def test_the_unit_of_a_cap_need_not_be_an_attribute(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest], tmp_path: Path
) -> None:
    scored_table(con, 2)
    forest = fit(con, "t", target="label", privacy_unit="row")
    rows = con.table("t").df().astype({"who": "Int64"})
    given: dict[str, Any] = {"ledger": tmp_path / "book", "dataset": "rows"}
    dpforest_duckdb.set_budget(con, rows, epsilon=1, privacy_unit="who", **given)
    found = evaluate(con, forest, rows, epsilon=1, unseen=True, **given)
    assert found.unit == PrivacyUnit("who")


@pytest.mark.parametrize("kind", ["UBIGINT", "HUGEINT", "UHUGEINT"])
def test_a_unit_that_is_an_attribute_keeps_all_its_digits(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest], tmp_path: Path, kind: str
) -> None:
    """Whole numbers of more than 64 bits are rounded where they are attributes."""
    scored_table(con, 2)
    forest = fit(con, "t", target="label", privacy_unit="row")
    con.execute(f"CREATE TABLE wide AS SELECT ((2**60)::HUGEINT + x)::{kind} AS x, label FROM t")
    with pytest.raises(DpforestError, match='"x" is an attribute too'):
        evaluate(
            con,
            forest,
            con.sql("FROM wide WHERE label IS NOT NULL"),
            epsilon=1,
            privacy_unit="x",
            unseen=True,
            ledger=tmp_path / "book",
            dataset="rows",
        )


def test_python_refuses_what_is_no_forest(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest]
) -> None:
    scored_table(con, 2)
    forest = fit(con, "t", target="label")
    with pytest.raises(UsageError, match=r"forest must be a Forest: .* stored_forest"):
        evaluate(con, "model", "t")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="unseen must be True or False"):
        evaluate(con, forest, "t", unseen="yes")  # type: ignore[arg-type]


def test_python_reads_a_stored_forest(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest]
) -> None:
    scored_table(con, 2)
    forest = fit(con, "t", target="label", name="kept")
    assert dpforest_duckdb.stored_forest(con, "KEPT").to_json() == forest.to_json()
    with pytest.raises(DpforestError, match=r'no model "lost" in the database .*: check name'):
        dpforest_duckdb.stored_forest(con, "lost")
    with pytest.raises(UsageError, match="con must be a DuckDB connection"):
        dpforest_duckdb.stored_forest("data.duckdb", "kept")


def test_python_sets_and_raises_a_cap(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    scored_table(con, 2)
    ledger = tmp_path / "ledger"
    with pytest.raises(UsageError, match="has no cap yet: name one with epsilon"):
        dpforest_duckdb.set_budget(con, "t", privacy_unit="who", ledger=ledger)
    set_ = dpforest_duckdb.set_budget(
        con, "t", epsilon=1, privacy_unit="who", rows_per_unit=3, ledger=ledger
    )
    assert set_.cap is not None
    assert (set_.cap.epsilon, set_.cap.unit) == (NANO, PrivacyUnit("who", 3))
    with pytest.raises(BudgetError, match="raise_cap"):
        dpforest_duckdb.set_budget(con, "t", epsilon=2, ledger=ledger)
    raised = dpforest_duckdb.set_budget(con, "t", epsilon=2, raise_cap=True, ledger=ledger)
    assert raised.cap is not None
    assert raised.cap.unit == PrivacyUnit("who", 3)
    assert dpforest_duckdb.budget(con, "t", ledger=ledger) == raised
