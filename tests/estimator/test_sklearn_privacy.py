"""DPForestClassifier: when it is private, what it warns of, and its budget."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpforest_duckdb import BudgetError
from dpforest_duckdb.errors import (
    NoBudgetWarning,
    NotPrivateWarning,
    PrivacyLeakWarning,
    PublicFactWarning,
)
from dpforest_duckdb.ledger.book import Ledger
from dpforest_duckdb.ledger.datasets import DatasetAccount
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.privacy.unit import ROW, PrivacyUnit

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")
pytest.importorskip("sklearn")

from estimators import X, Y, model  # noqa: E402
from sklearn.base import clone  # noqa: E402
from sklearn.model_selection import cross_val_score  # noqa: E402

from dpforest_duckdb.sklearn import DPForestClassifier  # noqa: E402
from dpforest_duckdb.sklearn.inputs import classes_in  # noqa: E402


def test_a_declared_domain_gives_a_private_model() -> None:
    with warnings.catch_warnings(action="error", category=PrivacyLeakWarning):
        fitted = model().fit(X, Y)
    assert fitted.forest_.private
    assert fitted.classes_.tolist() == ["no", "yes"]
    assert fitted.predict([[10, 1], [50, 1]]).tolist() == ["no", "yes"]
    assert fitted.feature_importances_.argmax() == 0
    assert fitted.feature_importances_.sum() == pytest.approx(1)


def test_bounds_that_were_taken_from_the_data_are_not_to_be_written_otherwise() -> None:
    """Nobody wrote them, so nobody can add a decimal point."""
    rows = pandas.DataFrame({"n": np.arange(1200) % 5})
    with warnings.catch_warnings(record=True, action="always") as caught:
        model(bounds=None).fit(rows, Y)
    said = [str(warning.message) for warning in caught]
    assert any('bounds or categories of "n" were taken' in each for each in said)
    assert not any("decimal point" in each for each in said)


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ({"bounds": None}, 'bounds or categories of "x0", "x1" were taken'),
        ({"bounds": {0: (0, 60)}}, 'bounds or categories of "x1" were taken'),
        ({"classes": None}, "classes were taken"),
    ],
)
def test_what_is_read_off_the_data_warns_and_stamps_the_model(
    missing: dict[str, Any], words: str
) -> None:
    declare = "Declare what is public with bounds, categories and classes."
    with pytest.warns(PrivacyLeakWarning, match=f"{words}.*{declare}"):
        fitted = model(**missing).fit(X, Y)
    assert not fitted.forest_.private
    assert any(words in reason for reason in fitted.forest_.guarantee.reasons)
    assert "NOT PRIVATE" in fitted.to_sql("t").upper()


def test_a_recipe_that_is_not_private_warns_unlike_a_random_state() -> None:
    with pytest.warns(NotPrivateWarning, match="Recipe rana-forest .* is not private"):
        fitted = model(recipe="rana-forest", random_state=1).fit(X, Y)
    assert not fitted.forest_.private
    with warnings.catch_warnings(action="error", category=NotPrivateWarning):
        model(random_state=1).fit(X, Y)


def test_a_random_state_repeats_the_noise_and_gives_no_privacy() -> None:
    one, same, other = (model(random_state=seed).fit(X, Y) for seed in (1, 1, 2))
    assert not one.forest_.private
    assert (one.predict_proba(X) == same.predict_proba(X)).all()
    assert (one.predict_proba(X) != other.predict_proba(X)).any()
    random = np.random.RandomState(0)
    assert not model(random_state=random).fit(X, Y).forest_.private


def capped(path: Path, epsilon: int = 2) -> dict[str, Any]:
    account = DatasetAccount(Ledger(path / "ledger"), dataset="survey")
    account.set_cap(epsilon * NANO, 0, ROW, raise_cap=False)
    return {"ledger": path / "ledger", "dataset": "survey"}


def test_fits_on_folds_add_up_under_the_dataset(tmp_path: Path) -> None:
    budget = {"ledger": tmp_path / "ledger", "dataset": "survey"}
    with warnings.catch_warnings(action="error", category=NoBudgetWarning):
        scores = cross_val_score(model(**budget), X, Y, cv=3, error_score="raise")
    assert scores.mean() > 0.9
    account = DatasetAccount(Ledger(tmp_path / "ledger"), dataset="survey")
    assert account.budget().spent_epsilon == 3 * NANO


@pytest.mark.parametrize("scoring", [None, "accuracy"])
def test_a_cap_within_a_cross_validation_gives_nan_unless_errors_are_raised(
    scoring: str | None, tmp_path: Path
) -> None:
    fit = model(**capped(tmp_path))
    spent = DatasetAccount(Ledger(tmp_path / "ledger"), dataset="survey")
    with warnings.catch_warnings(action="ignore"):
        if scoring is None:
            with pytest.raises(BudgetError, match="an exact score is not private"):
                cross_val_score(fit, X, Y, cv=3, error_score="raise")
            assert spent.budget().spent_epsilon == NANO, "the first fold stops the others"
        scores = cross_val_score(fit, X, Y, cv=3, scoring=scoring)
    assert np.isnan(scores).tolist() == ([True] * 3 if scoring is None else [False, False, True])
    assert spent.budget().spent_epsilon == 2 * NANO


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"classes": None}, "taken from"),
        ({"bounds": None}, "Declare what is public"),
        ({"random_state": 1}, "not private"),
        ({"epsilon": 3}, "only 2 of the cap"),
    ],
)
def test_a_capped_dataset_refuses_what_is_not_private(
    change: dict[str, Any], words: str, tmp_path: Path
) -> None:
    budget = capped(tmp_path)
    with pytest.raises(BudgetError, match=words):
        model(**budget, **change).fit(X, Y)
    account = DatasetAccount(Ledger(tmp_path / "ledger"), dataset="survey")
    assert not account.budget().entries


def test_a_cap_refuses_before_a_label_is_looked_at(tmp_path: Path) -> None:
    fit = model(**capped(tmp_path), classes=None)
    for y in (Y, np.where(Y == "no", np.nan, 1), np.array([1, "a"] * 600, dtype=object)):
        with pytest.raises(BudgetError, match="classes were taken from the data"):
            fit.fit(X, y)


def test_an_exact_score_is_refused_on_a_capped_dataset(tmp_path: Path) -> None:
    fitted = model(**capped(tmp_path)).fit(X, Y)
    with pytest.raises(BudgetError, match="evaluate"):
        fitted.score(X, Y)
    assert model().fit(X, Y).score(X, Y) > 0.9


def test_noisy_figures_are_debited_from_the_dataset(tmp_path: Path) -> None:
    fitted = model(**capped(tmp_path)).fit(X, Y)
    figures = fitted.evaluate(X, Y, epsilon="0.5")
    assert figures.private
    assert figures.accuracy == pytest.approx(1, abs=0.2)
    with pytest.raises(BudgetError, match=r"only 0\.5 of the cap"):
        fitted.evaluate(X, Y, epsilon=1)
    seeded = model(random_state=1).fit(X, Y)
    with pytest.warns(NotPrivateWarning, match="will not be private.*its figures.$"):
        assert not seeded.evaluate(X, Y, epsilon=1).private
    assert model().fit(X, Y).evaluate(X, Y, epsilon=1).private


def test_a_budget_needs_both_a_ledger_and_a_name(tmp_path: Path) -> None:
    for half in ({"ledger": tmp_path / "ledger"}, {"dataset": "survey"}):
        with pytest.raises(ValueError, match="needs both"):
            model(**half).fit(X, Y)


def test_without_a_budget_one_warning_is_given_in_a_process() -> None:
    with warnings.catch_warnings(record=True, action="always") as seen:
        for _ in range(2):
            model().fit(X, Y)
    assert [w.category for w in seen] == [NoBudgetWarning]


def test_warnings_name_the_line_of_the_user() -> None:
    with warnings.catch_warnings(record=True, action="always") as seen:
        model(bounds=None).fit(X, Y)
    assert {warning.category for warning in seen} == {PrivacyLeakWarning, NoBudgetWarning}
    assert {warning.filename for warning in seen} == {__file__}


def test_notes_name_the_parameters_of_the_estimator() -> None:
    with pytest.warns(PublicFactWarning) as caught:
        model(recipe="auto", n_estimators=5, max_depth=3).fit(X, Y)
    notes = [each for each in caught if each.category is PublicFactWarning]
    assert str(notes[0].message).startswith("n_estimators is only an upper limit")
    assert str(notes[1].message).startswith("max_depth has no effect")
    assert {each.filename for each in notes} == {__file__}


def test_a_privacy_unit_is_no_attribute_however_it_is_given(tmp_path: Path) -> None:
    frame = pandas.DataFrame(X, columns=["a", "b"]).assign(who=np.arange(1200) // 3)
    bounds = {"a": (0, 60), "b": (0, 7)}
    assert model(bounds=bounds, privacy_unit="WHO").fit(frame, Y).forest_.private
    with pytest.raises(ValueError, match='no column "whom"') as refused:
        model(bounds=bounds, privacy_unit="whom").fit(frame, Y)
    assert "taken from the data" not in str(refused.value)
    budget = {"ledger": tmp_path / "ledger", "dataset": "d"}
    account = DatasetAccount(Ledger(tmp_path / "ledger"), (), "d")
    account.set_cap(10 * NANO, 0, PrivacyUnit("who", 1), raise_cap=False)
    guarantee = model(bounds=bounds, **budget).fit(frame, Y).forest_.guarantee
    assert guarantee.unit == "who", "as the cap has it"


def test_persons_can_be_the_privacy_unit() -> None:
    frame = pandas.DataFrame({"size": X[:, 0], "who": np.arange(1200) // 4})
    fitted = model(bounds={"size": (0, 60)}, privacy_unit="who", rows_per_unit=2).fit(frame, Y)
    assert fitted.forest_.private
    assert fitted.forest_.guarantee.unit == "who"
    assert (fitted.n_features_in_, list(fitted.feature_names_in_)) == (1, ["size"])
    assert fitted.feature_importances_.shape == (1,)
    assert (fitted.predict(frame) == fitted.predict(frame[["size"]])).all(), "new people have no id"
    assert fitted.evaluate(frame, Y, epsilon=1).unit == PrivacyUnit("who", 2)
    with pytest.raises(ValueError, match="0 features"):
        fitted.predict(frame[["who"]])
    with pytest.raises(ValueError, match='no column "who", which says whose row it is'):
        fitted.evaluate(frame[["size"]], Y, epsilon=1)
    with pytest.raises(ValueError, match="epsilon"):
        fitted.set_params(epsilon=-1).fit(frame, Y)
    assert fitted.predict(frame[["size"]]).shape == (1200,), "the earlier fit is still there"
    fitted.set_params(epsilon=1)
    named = frame.rename(columns={"size": "select"})
    other = model(bounds={"select": (0, 60)}, privacy_unit="who").fit(named, Y)
    assert other.predict(named).shape == (1200,)
    for library in (polars.DataFrame, pyarrow.table):
        rows = {"size": X[:, 0], "who": np.arange(1200) // 4}
        again = clone(fitted).fit(library(rows), Y)
        assert again.predict(library({"size": X[:, 0]})).shape == (1200,)
        assert again.fit(library(rows), Y).n_features_in_ == 1


@pytest.mark.parametrize(
    ("rows", "labels"),
    [
        (X[:137], Y[:138]),
        (X[:137], np.column_stack([Y[:137], Y[:137]])),
        ([[1.0], [2.0], [[3.0, 4.0]], *X[:134].tolist()], Y[:137]),
        (np.zeros((137, 0)), Y[:137]),
        (pandas.DataFrame(index=range(137)), Y[:137]),
    ],
)
def test_no_error_tells_the_number_of_rows(rows: Any, labels: Any) -> None:
    with pytest.raises((ValueError, TypeError)) as refused:
        DPForestClassifier(bounds=(0, 1)).fit(rows, labels)
    assert not re.search("137|138", str(refused.value))


@pytest.mark.parametrize("rows", [41, 42])
def test_no_warning_depends_on_how_many_rows_have_how_many_classes(rows: int) -> None:
    """scikit-learn warns if there are more classes than half of the rows."""
    with warnings.catch_warnings(action="error"):
        found = classes_in(np.arange(rows) % 21)
    assert len(found) == 21
