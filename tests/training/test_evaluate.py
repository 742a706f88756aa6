"""Figures of a model: exact ones against their definitions, private ones against exact ones."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from variants import some

import dpforest_duckdb
from dpforest_duckdb.domain.table import TableInfo
from dpforest_duckdb.engine.base import Outcomes
from dpforest_duckdb.engine.duckdb import DuckDBEngine
from dpforest_duckdb.engine.snapshot import DuckDBSnapshot
from dpforest_duckdb.errors import BudgetError, DpforestError, UsageError
from dpforest_duckdb.ledger.account import Account
from dpforest_duckdb.ledger.book import Ledger
from dpforest_duckdb.ledger.entries import Closing
from dpforest_duckdb.model.figures import (
    EDGES,
    HALF,
    LEAST_PROBABILITY,
    auc,
    exact_figures,
    log_loss,
    noisy_figures,
    possible,
)
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.privacy.bits import SeededBits
from dpforest_duckdb.privacy.noise import ExactNoise
from dpforest_duckdb.privacy.unit import PrivacyUnit
from dpforest_duckdb.training.evaluate import UNSEEN, evaluate
from dpforest_duckdb.training.prepare import prepare

pytestmark = pytest.mark.filterwarnings("ignore::dpforest_duckdb.errors.NotPrivateWarning")

ROW = PrivacyUnit("row")
CLASSES = {2: ("no", "yes"), 3: ("a", "b", "c")}


def scored_table(con: duckdb.DuckDBPyConnection, classes: int, rows: int = 900) -> None:
    """Rows whose class depends on x and on chance; some have none, or no unit."""
    labels = ", ".join(f"'{label}'" for label in CLASSES[classes])
    con.execute(
        "CREATE TABLE t (who INTEGER, x INTEGER CHECK (x BETWEEN 0 AND 9), "
        f"label VARCHAR CHECK (label IN ({labels})))"
    )
    con.execute(
        f"INSERT INTO t SELECT i // 3, i % 10, "
        f"[{labels}][(i % 10 + i * 7919 % 97 % 4) % {classes} + 1] FROM range({rows}) r(i)"
    )
    some = CLASSES[classes][0]
    con.execute(f"INSERT INTO t VALUES (1, 1, NULL), (NULL, NULL, '{some}'), (2, NULL, NULL)")


def rows_of(con: duckdb.DuckDBPyConnection, forest: Forest) -> list[tuple[str, str, list[float]]]:
    """Label, prediction and shares of every row that has a class."""
    return [
        (row[2], row[3], list(row[4:]))
        for row in forest.predict(con, "t").fetchall()
        if row[2] is not None
    ]


@pytest.mark.parametrize("classes", [2, 3])
def test_exact_figures_are_those_of_the_definitions(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest], tmp_path: Path, classes: int
) -> None:
    scored_table(con, classes)
    forest = fit(con, "t", target="label", privacy_unit="row")
    found = evaluate(con, forest, "t", ledger=tmp_path / "ledger")
    rows = rows_of(con, forest)
    names = CLASSES[classes]
    own = [max(shares[names.index(label)], LEAST_PROBABILITY) for label, _, shares in rows]
    assert found.rows == len(rows) == 901
    assert found.unlabelled == 2, "rows without a class are left out, and counted"
    assert found.accuracy == pytest.approx(np.mean([label == said for label, said, _ in rows]))
    assert found.log_loss == pytest.approx(-np.mean(np.log(own)))
    assert not found.private
    assert "epsilon" not in found.facts()
    of_class = Counter(label for label, _, _ in rows)
    assert found.most_frequent == pytest.approx(max(of_class.values()) / 901)
    if classes == 2:
        scores = {n: [shares[1] for label, _, shares in rows if label == n] for n in names}
        won = [(y > n) + (y == n) / 2 for y in scores["yes"] for n in scores["no"]]
        assert found.auc == pytest.approx(np.mean(won))
        pairs = Counter((label, said) for label, said, _ in rows)
        assert found.confusion == tuple(tuple(pairs[a, b] for b in names) for a in names)
        assert min(map(min, found.confusion)) > 0, "both kinds of error are seen"
    else:
        assert found.auc is None
        assert found.confusion == ()
        assert "confusion" not in found.facts()
        right = Counter(label for label, said, _ in rows if label == said)
        assert found.by_class == tuple((of_class[name], right[name]) for name in names)
        assert min(right.values()) > 0


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


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4), st.integers(0, 4)), min_size=1))
def test_auc_is_the_share_of_pairs_in_order(groups: list[tuple[int, int, int]]) -> None:
    score, up, down = (np.array(column) for column in zip(*groups, strict=True))
    pairs = [
        up[i] * down[j] * ((score[i] > score[j]) + (score[i] == score[j]) / 2)
        for i, j in itertools.product(range(len(groups)), repeat=2)
    ]
    found = auc(score / 5, up, down)
    if up.sum() and down.sum():
        assert found == pytest.approx(sum(pairs) / (up.sum() * down.sum()))
    else:
        assert found is None


def test_log_loss_of_a_probability_of_zero_is_finite() -> None:
    expected = -math.log(LEAST_PROBABILITY) / 2
    assert log_loss(np.array([0.0, 1.0]), np.array([1, 1])) == pytest.approx(expected)


def test_exact_figures_do_not_depend_on_the_order_of_the_rows() -> None:
    random = np.random.default_rng(1)
    label, right, rows = (random.integers(0, most, 400) for most in (2, 2, 50))
    value = random.uniform(0, 1, 400)
    expected = exact_figures(Outcomes(label, right, value, rows), 2)
    for _ in range(20):
        new = random.permutation(400)
        moved = Outcomes(label[new], right[new], value[new], rows[new])
        assert exact_figures(moved, 2) == expected


def test_no_row_gives_no_figure() -> None:
    nothing = np.zeros(0, np.int64)
    found = exact_figures(Outcomes(nothing, nothing, nothing.astype(float), nothing), 2)
    assert found.facts() == {
        "rows": 0,
        "accuracy": None,
        "log_loss": None,
        "auc": None,
        "private": False,
        "unlabelled": 0,
    }


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=8), st.data())
def test_every_row_has_a_cell_in_the_public_grid(votes: list[int], data: st.DataObject) -> None:
    """No row can be in a cell that the grid leaves out."""
    if not sum(votes):
        votes[0] = 1
    shares = [vote / sum(votes) for vote in votes]
    label = data.draw(st.integers(0, len(votes) - 1))
    right = int(votes.index(max(votes)) == label)  # the first of equals is predicted
    value = shares[1] if len(votes) == 2 else shares[label]
    bin_ = sum(value > edge for edge in EDGES)
    assert possible(len(votes))[label if len(votes) == 2 else 0, right, bin_]


@pytest.mark.parametrize("classes", range(3, 60))
def test_a_class_may_be_predicted_with_an_equal_share(classes: int) -> None:
    """1 / classes can be an edge itself: 0.2 with five classes, 0.05 with twenty."""
    bin_ = sum(1 / classes > edge for edge in EDGES)
    predicted = possible(classes)[0, 1]
    assert predicted[bin_:].all()
    assert not predicted[:bin_].any(), "the first of equals has the least share of a predicted one"


@pytest.mark.parametrize("classes", [2, 3])
def test_noisy_figures_with_much_epsilon_are_the_exact_ones(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest], tmp_path: Path, classes: int
) -> None:
    scored_table(con, classes)
    forest = fit(con, "t", target="label")
    ledger = tmp_path / "ledger"
    exact = evaluate(con, forest, "t", ledger=ledger)
    noisy = evaluate(con, forest, "t", epsilon=10_000, unseen=True, ledger=ledger)
    assert (noisy.rows, noisy.accuracy) == (exact.rows, pytest.approx(exact.accuracy))
    assert noisy.log_loss == pytest.approx(exact.log_loss, abs=0.1)
    assert noisy.auc is None if classes == 3 else noisy.auc == pytest.approx(exact.auc, abs=0.05)
    assert noisy.confusion == exact.confusion
    assert noisy.private
    facts = noisy.facts()
    assert (facts["epsilon"], facts["privacy_unit"], facts["rows_per_unit"]) == (10_000, "row", 1)
    assert facts["noise"] == pytest.approx(0)
    by_unit = evaluate(
        con,
        forest,
        "t",
        epsilon=10_000,
        privacy_unit="who",
        rows_per_unit=2,
        ledger=ledger,
    )
    assert by_unit.unit == PrivacyUnit("who", 2)
    assert by_unit.rows == 600, "two of three rows of each, and none of nobody's"


def test_noise_makes_no_number_of_rows_negative() -> None:
    empty = np.zeros((2, 2, len(EDGES) + 1), np.int64)
    noisy = [
        noisy_figures(empty, NANO // 10, ROW, 2, ExactNoise(SeededBits(seed))) for seed in range(20)
    ]
    cells = [rows for found in noisy for pair in found.confusion for rows in pair]
    assert min(cells) == 0 < max(cells)


def test_noise_is_as_wide_as_epsilon_and_unit_say() -> None:
    """The variance of the number of rows is that of the discrete Laplace, once per cell."""
    grid = np.where(possible(2), 10_000, 0)
    for epsilon, k in ((1, 1), (1, 4), (0.25, 1)):
        nano = int(epsilon * NANO)
        rows = [
            noisy_figures(grid, nano, PrivacyUnit("who", k), 2, ExactNoise(SeededBits(seed))).rows
            for seed in range(300)
        ]
        decay = math.exp(-epsilon / k)
        expected = 2 * decay / (1 - decay) ** 2 * possible(2).sum()
        assert 0.7 < np.var(rows) / expected < 1.4
        assert abs(np.mean(rows) - grid.sum()) < 5 * math.sqrt(expected / 300)


@pytest.mark.parametrize(("classes", "share"), [(2, 0.9), (2, 0.5), (4, 0.7)])
def test_the_noise_of_figures_is_about_their_standard_deviation(classes: int, share: float) -> None:
    cells = possible(classes)
    right = np.array([1 - share, share])[None, :, None] / cells.sum(axis=(0, 2))[None, :, None]
    grid = np.rint(5_000 * right * cells).astype(np.int64)
    found = [
        noisy_figures(grid, NANO, ROW, classes, ExactNoise(SeededBits(seed))) for seed in range(400)
    ]
    for name in ("accuracy", "log_loss", *(["auc"] if classes == 2 else [])):
        figures = [getattr(each, name) for each in found]
        stated = [getattr(each, f"{name}_noise") for each in found]
        assert np.std(figures) == pytest.approx(np.mean(stated), rel=0.15), name


def test_noise_alone_stays_within_what_figures_can_be() -> None:
    empty = np.zeros(possible(2).shape, np.int64)
    for seed in range(50):
        found = noisy_figures(empty, NANO // 10, ROW, 2, ExactNoise(SeededBits(seed)))
        assert not found.private, "the noise came from a seed"
        assert found.rows is not None
        assert found.rows >= 0
        for figure in (found.accuracy, found.auc):
            assert figure is None or 0 <= figure <= 1
        assert found.log_loss is None or 0 <= found.log_loss < 7


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
    declared = evaluate(con, forest, "t", epsilon=1, unseen=True, ledger=book)
    assert declared.private
    assert declared.reasons == ()
    assert account.budget().entries[-1].plan[0]["declared"] == UNSEEN
    assert "declared" not in account.budget().entries[-2].plan[0]


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
        assert "no private run" in evaluate(con, model, "u", epsilon=1, ledger=book).reasons[0]
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
    with pytest.raises(UsageError, match="forest must be a Forest"):
        evaluate(con, "model", "t")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="unseen must be True or False"):
        evaluate(con, forest, "t", unseen="yes")  # type: ignore[arg-type]


def test_python_reads_a_stored_forest(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest]
) -> None:
    scored_table(con, 2)
    forest = fit(con, "t", target="label", name="kept")
    assert dpforest_duckdb.stored_forest(con, "KEPT").to_json() == forest.to_json()
    with pytest.raises(DpforestError, match='no model "lost" in the database'):
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


def test_noisy_figures_rank_a_rare_class_too() -> None:
    """Probabilities of a class of 2 % lie in several bins, so that AUC says something."""
    random = np.random.default_rng(5)
    value = 1 / (1 + np.exp(4 - 1.2 * random.standard_normal(40_000)))
    label = (random.random(len(value)) < value).astype(int)
    exact = auc(value, label, 1 - label)
    grid = np.zeros(possible(2).shape, np.int64)
    places = (label, (label == (value > 0.5)).astype(int), np.searchsorted(EDGES, value))
    np.add.at(grid, places, 1)
    noisy = noisy_figures(grid, 100 * NANO, ROW, 2, ExactNoise(SeededBits(1)))
    assert exact is not None
    assert exact > 0.75
    assert noisy.auc == pytest.approx(exact, abs=0.012)
    assert noisy.most_frequent == pytest.approx(1 - label.mean(), abs=1e-3)


def test_bins_are_cut_alike_on_both_sides_of_a_half() -> None:
    assert list(EDGES) == sorted(EDGES)
    assert [round(1 - edge, 6) for edge in reversed(EDGES)] == list(EDGES)
    assert EDGES[HALF - 1] == 0.5
