"""DPForestClassifier: scikit-learn's rules, and what it says of privacy."""

from __future__ import annotations

import datetime as dt
import itertools
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from variants import some

from dpforest_duckdb import BudgetError, Domain, load_forest
from dpforest_duckdb.domain.file import domain_from_mapping
from dpforest_duckdb.errors import NoBudgetWarning, NotPrivateWarning, PrivacyLeakWarning
from dpforest_duckdb.ledger.book import Ledger
from dpforest_duckdb.ledger.datasets import DatasetAccount
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.privacy.unit import PrivacyUnit

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")
pytest.importorskip("sklearn")

from sklearn.base import clone  # noqa: E402
from sklearn.calibration import CalibratedClassifierCV  # noqa: E402
from sklearn.datasets import make_classification  # noqa: E402
from sklearn.exceptions import NotFittedError  # noqa: E402
from sklearn.inspection import partial_dependence, permutation_importance  # noqa: E402
from sklearn.model_selection import GridSearchCV, cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.utils.estimator_checks import estimator_checks_generator  # noqa: E402

from dpforest_duckdb.sklearn import DPForestClassifier, classifier  # noqa: E402
from dpforest_duckdb.sklearn.inputs import classes_in, labels_of  # noqa: E402

ROW = PrivacyUnit("row")
X = np.column_stack([np.arange(1200) % 60, np.arange(1200) % 7]).astype(float)
Y = np.where(X[:, 0] > 29, "yes", "no")
DECLARED: dict[str, Any] = {"bounds": (0, 60), "classes": ["no", "yes"]}
QUICK = {
    "check_classifiers_one_label",
    "check_complex_data",
    "check_dict_unchanged",
    "check_dtype_object",
    "check_dont_overwrite_parameters",
    "check_estimator_cloneable",
    "check_estimator_sparse_matrix",
    "check_estimators_empty_data_messages",
    "check_estimators_pickle",
    "check_estimators_unfitted",
    "check_fit2d_1sample",
    "check_fit_check_is_fitted",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_requires_y_none",
    "check_supervised_y_no_nan",
    "check_valid_tag_types",
}


@pytest.fixture(autouse=True)
def unrecorded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Reset the warning about a missing budget, which is given once in a process."""
    monkeypatch.setattr(classifier, "_warned", [])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoBudgetWarning)
        yield


def model(**parameters: Any) -> DPForestClassifier:
    return DPForestClassifier(**{"recipe": "joint-tables", **DECLARED, **parameters})


CHECKS = [
    check
    for _, check in estimator_checks_generator(DPForestClassifier())
    if getattr(check, "func", check).__name__ in QUICK
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: getattr(check, "func", check).__name__)
@pytest.mark.filterwarnings("ignore")
def test_a_check_of_scikit_learn_passes(check: Any) -> None:
    check(DPForestClassifier())


def test_the_quick_checks_are_there() -> None:
    assert len(CHECKS) >= len(QUICK)


@pytest.mark.estimator
def test_all_checks_of_scikit_learn_pass_and_none_is_skipped() -> None:
    program = (
        "import warnings; warnings.simplefilter('ignore')\n"
        "from sklearn.utils.estimator_checks import check_estimator\n"
        "from dpforest_duckdb.sklearn import DPForestClassifier\n"
        "found = check_estimator(DPForestClassifier(), on_skip=None)\n"
        "print(len(found), {one['status'] for one in found})\n"
        "assert len(found) > 50 and {one['status'] for one in found} == {'passed'}\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-2000:]


def test_tags_excuse_nothing() -> None:
    tags = DPForestClassifier().__sklearn_tags__()
    assert not tags.classifier_tags.poor_score
    assert not tags.non_deterministic
    assert not tags.no_validation


def test_a_declared_domain_gives_a_private_model() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyLeakWarning)
        fitted = model().fit(X, Y)
    assert fitted.forest_.private
    assert fitted.classes_.tolist() == ["no", "yes"]
    assert fitted.predict([[10, 1], [50, 1]]).tolist() == ["no", "yes"]
    assert fitted.feature_importances_.argmax() == 0
    assert fitted.feature_importances_.sum() == pytest.approx(1)


def test_a_misspelt_column_gets_a_suggestion() -> None:
    frame = pandas.DataFrame({"age": X[:, 0], "size": X[:, 1]})
    with pytest.raises(ValueError, match=r'"agee" \(did you mean "age"\?\), which X does not have'):
        model(bounds={"agee": (0, 60), "size": (0, 1)}).fit(frame, Y)


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
    with warnings.catch_warnings():
        warnings.simplefilter("error", NotPrivateWarning)
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
    with warnings.catch_warnings():
        warnings.simplefilter("error", NoBudgetWarning)
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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
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
    assert not seeded.evaluate(X, Y, epsilon=1).private
    assert model().fit(X, Y).evaluate(X, Y, epsilon=1).private


def test_a_budget_needs_both_a_ledger_and_a_name(tmp_path: Path) -> None:
    for half in ({"ledger": tmp_path / "ledger"}, {"dataset": "survey"}):
        with pytest.raises(ValueError, match="needs both"):
            model(**half).fit(X, Y)


def test_without_a_budget_one_warning_is_given_in_a_process() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(2):
            model().fit(X, Y)
    assert [w.category for w in seen] == [NoBudgetWarning]


def frames() -> dict[str, Any]:
    table = {
        "size": np.where(np.arange(1200) % 11 == 0, np.nan, X[:, 0]),
        "colour": np.array(["red", "blue", None, "green"], dtype=object)[np.arange(1200) % 4],
    }
    pandas_frame = pandas.DataFrame(table)
    polars_frame = polars.DataFrame({**table, "colour": table["colour"].tolist()})
    return {
        "pandas": pandas_frame,
        "categories": pandas_frame.astype({"colour": "category"}),
        "objects": pandas_frame.astype(object),
        "sparse": pandas_frame.assign(size=pandas.arrays.SparseArray(pandas_frame["size"])),
        "turned": pandas_frame.iloc[::-1].set_index(np.arange(1200)[::-1]).iloc[::-1],
        "polars": polars_frame,
        "polars categories": polars_frame.with_columns(
            polars.col("colour").cast(polars.Categorical)
        ),
        "arrow": polars_frame.to_arrow(),
        "batch": polars_frame.to_arrow().combine_chunks().to_batches()[0],
    }


def test_frames_of_all_libraries_give_one_forest() -> None:
    given = {
        "bounds": {"size": (0, 60)},
        "categories": {"colour": ["red", "blue"]},
        "random_state": 1,
    }
    found = {name: model(**given).fit(frame, Y) for name, frame in frames().items()}
    plain = found["pandas"]
    expected = plain.predict_proba(frames()["pandas"])
    assert plain.feature_names_in_.tolist() == ["size", "colour"]
    for name, fitted in found.items():
        assert (fitted.predict_proba(frames()[name]) == expected).all(), name
        assert [t.votes.tolist() for t in fitted.forest_.trees] == [
            t.votes.tolist() for t in plain.forest_.trees
        ]


def test_categories_of_a_frame_are_values_and_no_declarations() -> None:
    frame = frames()["categories"]
    with pytest.warns(PrivacyLeakWarning, match='"colour"'):
        fitted = model(bounds={"size": (0, 60)}).fit(frame, Y)
    assert not fitted.forest_.private


def test_warnings_name_the_line_of_the_user() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model(bounds=None).fit(X, Y)
    assert {warning.category for warning in seen} == {PrivacyLeakWarning, NoBudgetWarning}
    assert {warning.filename for warning in seen} == {__file__}


@pytest.mark.parametrize(
    "missing",
    [None, np.nan, np.float32("nan"), pandas.NA, pandas.NaT],
    ids=repr,
)
def test_a_missing_class_is_refused_in_one_sentence(missing: object) -> None:
    y = ["a", missing, "b"]
    for given in (np.array(y, dtype=object), pandas.Series(y, dtype=object)):
        with pytest.raises(ValueError, match="Input y contains NaN: leave out the rows"):
            DPForestClassifier(bounds=(0, 9)).fit(np.zeros((3, 1)), given)


def test_a_domain_with_another_target_names_the_remedy() -> None:
    yes_no = {"kind": "categorical", "domain": ["no", "yes"]}
    columns = [{"name": name, **yes_no} for name in ("ill", "died", "old")]
    domain = domain_from_mapping({"target": "died", "column": columns})
    frame = pandas.DataFrame({"old": ["no", "yes"], "died": ["no", "yes"]})
    y = pandas.Series(["no", "yes"], name="ill")
    with pytest.raises(ValueError, match=r'y is named "ill": .*load_domain\(path, target="ill"\)'):
        DPForestClassifier(domain=domain).fit(frame, y)


def test_read_off_domains_hold_what_is_there() -> None:
    with pytest.warns(PrivacyLeakWarning):
        fitted = model(bounds=None).fit(frames()["pandas"].assign(flag=Y == "yes", one=5), Y)
    size, colour, flag, one = fitted.forest_.domain.attributes
    assert (size.lower, size.upper) == (0, 59)
    assert colour.values == ("blue", "green", "red")
    assert flag.values == ("false", "true")
    assert (one.lower, one.upper) == (5, 10)


def test_decimals_and_the_last_year_get_bounds_too() -> None:
    prices = polars.Series("price", ["0.25", "9.75"] * 600).cast(polars.Decimal(6, 2))
    days = polars.Series("day", [dt.date(9999, 12, 31)] * 1200)
    with pytest.warns(PrivacyLeakWarning):
        fitted = model(bounds=None).fit(polars.DataFrame([prices, days]), Y)
    price, day = fitted.forest_.domain.attributes
    assert (price.lower, price.upper) == (0.25, 9.75)
    assert (day.lower, day.upper) == (dt.date(9998, 12, 1), dt.date(9999, 12, 31))


def test_a_whole_domain_is_taken_by_the_names_of_the_columns(tmp_path: Path) -> None:
    domain = domain_from_mapping(
        {
            "target": "reply",
            "column": [
                {"name": "size", "kind": "numeric", "lower": 0, "upper": 60},
                {"name": "reply", "kind": "categorical", "domain": ["yes", "no"]},
            ],
        }
    )
    assert isinstance(domain, Domain)
    fitted = model(domain=domain, bounds=None, classes=None, random_state=1).fit(
        frames()["pandas"], Y
    )
    assert fitted.forest_.domain.classes == ("yes", "no")
    assert fitted.classes_.tolist() == ["no", "yes"], "scikit-learn sorts classes"
    assert fitted.predict(frames()["pandas"])[[5, 50]].tolist() == ["no", "yes"]
    assert fitted.feature_importances_[1] == 0
    with pytest.raises(ValueError, match="not both"):
        model(domain=domain).fit(X, Y)


@pytest.mark.parametrize(
    "labels",
    [
        *([0, 1], [False, True], [1.0, 2.0], ["b", "a"], [-1, 1]),
        *(np.array([0, 200], dtype) for dtype in ("uint8", "uint64", "int16", "float32")),
    ],
    ids=repr,
)
def test_predictions_have_the_type_of_the_classes(labels: Any) -> None:
    given = np.array(labels)
    for y in (given[(X[:, 0] > 29).astype(int)], np.where(X[:, 0] > 29, *given[::-1].tolist())):
        fitted = model(classes=labels).fit(X, y)
        predicted = fitted.predict([[10, 1], [50, 1]])
        assert predicted.dtype == fitted.classes_.dtype == given.dtype
        assert predicted.tolist() == given.tolist()
        assert fitted.classes_.tolist() == sorted(given.tolist())


@some("classes", [None, [0, 1], [0.0, 1.0], ["0", "1"]], keep=2)
def test_no_row_decides_the_type_of_predictions_with_a_domain(classes: list[Any] | None) -> None:
    domain = domain_from_mapping(
        {
            "target": "y",
            "column": [
                {"name": "x0", "kind": "numeric", "lower": 0.0, "upper": 60.0},
                {"name": "y", "kind": "categorical", "domain": [0, 1]},
            ],
        }
    )
    given = {"domain": domain, "bounds": None, "classes": classes}
    with pytest.raises(ValueError, match="not those of the domain"):
        model(**{**given, "classes": [0, 2]}).fit(X, (Y == "yes").astype(int))
    for odd in (None, 7, 7.0, "x"):
        y = [*(Y == "yes").astype(int).tolist(), *([] if odd is None else [odd])]
        fitted = model(**given).fit(np.resize(X, (len(y), 2)), y)
        assert fitted.forest_.private
        assert fitted.classes_.tolist() == ([0, 1] if classes is None else classes)
        assert fitted.classes_.dtype == np.array([0, 1] if classes is None else classes).dtype


def test_classes_of_a_domain_have_the_type_that_they_are_written_in() -> None:
    for written, expected in (
        (["true", "false"], [True, False]),
        (["1", "-2"], [1, -2]),
        (["1.5", "2"], [1.5, 2.0]),
        (["01", "02"], ["01", "02"]),
        (["no", "1"], ["no", "1"]),
        (["True", "False"], ["True", "False"]),
        (["true", "2"], ["true", "2"]),
    ):
        assert labels_of(written, None).tolist() == expected


@pytest.mark.parametrize("kind", [str, object])
@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
def test_a_label_that_is_no_unicode_leaves_out_its_row_and_is_paid_for(
    library: str, kind: type, tmp_path: Path
) -> None:
    y = np.array([*Y.tolist()[:-1], "SECRET\ud800"], dtype=kind)
    book = tmp_path / "ledger"
    fit = model(ledger=book, dataset="d", bounds=None, categories={"colour": ["red"]})
    fit.set_params(bounds={"size": (0, 60)})
    fit.fit(frames()[library], y)
    assert DatasetAccount(Ledger(book), (), "d").budget().spent_epsilon > 0


def test_rows_of_classes_that_are_not_declared_are_left_out() -> None:
    y = np.where(X[:, 1] == 3, "unknown", Y)
    fitted = model().fit(X, y)
    assert fitted.forest_.private
    assert set(fitted.predict(X)) == {"no", "yes"}


class Unreadable:
    """A label whose own code fails."""

    def __str__(self) -> str:
        raise RuntimeError("SECRET")

    __array__ = __repr__ = __str__


ODD = (
    *(0.5, np.inf, np.nan, None, pandas.NA, 7, b"\xff", (1, 2), {"a": 1}, dt.date(2020, 1, 1)),
    *(1j, np.timedelta64(5, "s"), 10**5000, "no\0", "\ud800", "x" * 20_000, Unreadable()),
)


@some(
    ("library", "labels"),
    itertools.product(("numpy", "pandas", "polars", "arrow"), (["no", "yes"], [0, 1])),
    keep=2,
    ids=str,
)
def test_a_label_that_is_no_class_leaves_out_its_row(library: str, labels: list[Any]) -> None:
    """One row must not decide whether a run is refused, or how the others are read."""
    rows = {
        "numpy": np.asarray,
        "pandas": lambda x: pandas.DataFrame(x, columns=["x0", "x1"]),
        "polars": lambda x: polars.DataFrame(x, schema=["x0", "x1"]),
        "arrow": lambda x: polars.DataFrame(x, schema=["x0", "x1"]).to_arrow(),
    }[library]
    y = [labels[int(size > 29)] for size in X[:, 0]]
    fit = model(classes=labels, random_state=1)
    votes = [tree.votes.tolist() for tree in fit.fit(rows(X), y).forest_.trees]
    for odd in ODD if library == "numpy" else (0.5, None, (1, 2), *ODD[-7:]):
        more = np.empty(1201, dtype=object)
        more[:1200], more[1200] = y, odd
        for given in (more, [*y, odd]):
            fit.fit(rows(np.vstack([X, [7, 3]])), given)
            assert [tree.votes.tolist() for tree in fit.forest_.trees] == votes, odd


@pytest.mark.parametrize("frame", ["polars", "arrow"])
def test_bytes_are_labels_beside_any_frame(frame: str) -> None:
    fitted = model(bounds={"size": (0, 60)}, categories={"colour": ["red"]})
    assert (fitted.fit(frames()[frame], Y.astype(bytes)).predict(frames()[frame]) == Y).mean() > 0.9


def test_rows_of_no_class_are_left_out_of_an_evaluation() -> None:
    fitted = model().fit(X, Y)
    for odd in (None, 0.5, "maybe"):
        y = np.array([*Y[:600], *[odd] * 600], dtype=object)
        figures = fitted.evaluate(X, y, epsilon=10)
        assert figures.rows == pytest.approx(600, abs=60)
        assert figures.accuracy > 0.9


def test_truth_values_that_are_not_declared_are_categories() -> None:
    frame = pandas.DataFrame({"size": X[:, 0], "smoker": X[:, 1] > 3})
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        fitted = model(bounds={"size": (0, 60)}).fit(frame, Y)
    assert fitted.forest_.domain.attributes[1].values == ("false", "true")
    assert not [one for one in said if "Whole numbers" in str(one.message)]
    assert fitted.predict(frame).shape == (1200,)


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


TENTHS = domain_from_mapping(
    {
        "target": "y",
        "column": [
            {"name": "a", "kind": "numeric", "lower": 0.0, "upper": 1.0, "edges": [0.1, 0.3, 0.7]},
            {"name": "y", "kind": "categorical", "domain": ["no", "yes"]},
        ],
    }
)


@pytest.mark.parametrize(
    ("values", "declared", "kind", "raw"),
    [
        (
            np.datetime64("2020-01-01T12:00") + np.arange(1200).astype("m8[h]"),
            {"bounds": {"a": (dt.date(2020, 1, 1), dt.date(2020, 2, 19))}},
            "DATE",
            True,
        ),
        ((np.arange(1200) % 11 / 10).astype(np.float32), {"domain": TENTHS}, "DOUBLE", True),
        ((np.arange(1200) % 61).astype(str), {"bounds": {"a": (0, 60)}}, "DOUBLE", False),
        (np.arange(1200) % 2 + 1.0, {"categories": {"a": ["1", "2"]}}, "DOUBLE", True),
        (np.arange(1200) % 2 + 1, {"categories": {"a": ["1", "b"]}}, "VARCHAR", True),
        (np.arange(1200) % 2 > 0, {"categories": {"a": [True, False]}}, "BOOLEAN", True),
    ],
    ids=["dates", "float32", "text", "numbers", "mixed", "truth values"],
)
def test_the_sql_expects_the_types_of_the_model(
    values: Any, declared: dict[str, Any], kind: str, raw: bool
) -> None:
    """As docs/python.md says; cast by way of text, other types give what predict gives."""
    frame = pandas.DataFrame({"a": values})
    y = np.where(pandas.Series(values).rank(pct=True) > 0.33, "yes", "no")
    fitted = model(**{"bounds": None, "epsilon": 10, **declared}).fit(frame, y)
    assert [str(a.type) for a in fitted.forest_.domain.attributes] == [kind]
    predicted = fitted.predict(frame).tolist()
    con = duckdb.connect()
    con.register("raw", frame)
    con.execute(f"CREATE TABLE t AS SELECT CAST(CAST(a AS VARCHAR) AS {kind}) AS a FROM raw")
    assert con.sql(fitted.to_sql("t")).fetchnumpy()["prediction"].tolist() == predicted
    assert fitted.forest_.predict(con, frame).fetchnumpy()["prediction"].tolist() == predicted
    if not raw:
        with pytest.raises(duckdb.BinderException):
            con.sql(fitted.to_sql("raw"))


def test_the_sql_and_the_file_give_what_predict_gives(tmp_path: Path) -> None:
    frame = pandas.DataFrame({"size": X[:, 0], "other": X[:, 1]})
    fitted = model(bounds={"size": (0, 60), "other": (0, 7)}).fit(frame, Y)
    fitted.save(tmp_path / "m.json")
    con = duckdb.connect()
    con.register("t", frame)
    shares = con.sql(fitted.to_sql("t")).fetchnumpy()["p_yes"]
    assert np.allclose(shares, fitted.predict_proba(frame)[:, 1], atol=1e-12)
    assert load_forest(tmp_path / "m.json").private


def test_equally_probable_classes_are_predicted_as_by_the_sql() -> None:
    domain = domain_from_mapping(
        {
            "target": "class",
            "column": [
                {"name": "class", "kind": "categorical", "domain": ["z", "b"]},
                {"name": "a", "kind": "categorical", "domain": ["x", "y"]},
            ],
        }
    )
    frame = pandas.DataFrame({"a": ["x", "y"] * 50, "class": ["z", "b"] * 50})
    fitted = model(domain=domain, bounds=None, classes=None).fit(frame[["a"]], frame["class"])
    even = [replace(tree, votes=np.zeros_like(tree.votes)) for tree in fitted.forest_.trees]
    fitted.forest_ = replace(fitted.forest_, trees=tuple(even))
    assert np.allclose(fitted.predict_proba(frame[["a"]]), 0.5)
    con = duckdb.connect()
    con.register("t", frame)
    by_sql = con.sql(fitted.to_sql("t")).fetchnumpy()["prediction"]
    assert fitted.predict(frame[["a"]]).tolist() == by_sql.tolist() == ["z"] * 100


@pytest.mark.more
def test_the_tools_of_scikit_learn_work() -> None:
    scaled = make_pipeline(StandardScaler(), model(bounds=(-3, 3), random_state=1)).fit(X, Y)
    assert scaled.score(X, Y) > 0.9
    assert clone(model(epsilon=2)).epsilon == 2
    search = GridSearchCV(model(random_state=1), {"epsilon": [0.1, 1]}, cv=2).fit(X, Y)
    assert search.best_score_ > 0.9
    calibrated = CalibratedClassifierCV(model(random_state=1), cv=2).fit(X, Y)
    assert calibrated.predict_proba(X).shape == (1200, 2)
    fitted = model(random_state=1).fit(X, Y)
    assert permutation_importance(fitted, X, Y, n_repeats=2).importances_mean.argmax() == 0
    dependence = partial_dependence(fitted, X, [0], grid_resolution=4)
    assert np.ptp(dependence["average"]) > 0.5


@pytest.mark.filterwarnings("ignore")
def test_the_example_of_diffprivlib_runs_with_another_import() -> None:
    """diffprivlib.models.RandomForestClassifier's documented example."""
    RandomForestClassifier = DPForestClassifier  # noqa: N806
    X, y = make_classification(  # noqa: N806
        n_samples=1000,
        n_features=4,
        n_informative=2,
        n_redundant=0,
        random_state=0,
        shuffle=False,
    )
    clf = RandomForestClassifier(n_estimators=100, random_state=0)
    clf.fit(X, y)
    again = clone(clf).fit(X, y)
    # the documented row is on the border of the classes, so the noise decides; a seed repeats it
    assert clf.predict([[0, 0, 0, 0]]).tolist() == again.predict([[0, 0, 0, 0]]).tolist()
    assert clf.predict([[-1, -1, 0, 0], [1, 1, 0, 0]]).tolist() == [0, 1]
    assert clf.score(X, y) > 0.9


def test_categories_that_fit_has_not_seen_are_predicted() -> None:
    fitted = model(bounds={"size": (0, 60)}, categories={"colour": ["red"]}).fit(
        frames()["pandas"], Y
    )
    new = pandas.DataFrame({"size": [np.inf, -5.0, np.nan], "colour": ["violet", None, 3]})
    assert set(fitted.predict(new)) <= {"no", "yes"}


@pytest.mark.filterwarnings("ignore")
def test_columns_of_several_types_are_fitted_as_text() -> None:
    odd = np.empty(1200, dtype=object)
    odd[:] = [1, "red", None, 2.5, b"red", (1, 2)] * 200
    frame = pandas.DataFrame({"size": X[:, 0], "colour": odd})
    given = {"bounds": {"size": (0, 60)}, "categories": {"colour": ["red", "1"]}}
    assert model(**given).fit(frame, Y).forest_.private
    assert not model(bounds=None).fit(frame, Y).forest_.private


def test_bounds_that_are_numbers_make_times_missing() -> None:
    """One odd value makes objects of the column, so its type is no ground for a refusal."""
    stay = pandas.to_timedelta(X[:, 0], unit="s")
    for values in (stay, pandas.Timestamp("2020-01-01") + stay, stay.astype(object)):
        frame = pandas.DataFrame({"stay": values})
        assert len(set(model().fit(frame, Y).predict(frame))) == 1
    seconds = pandas.DataFrame({"stay": stay.total_seconds()})
    assert (model().fit(seconds, Y).predict(seconds) == Y).mean() > 0.9


def sparse() -> Any:
    from scipy.sparse import csr_matrix

    return csr_matrix(X)


BAD: dict[str, tuple[dict[str, Any], Any, Any, str]] = {
    "a sparse matrix": ({}, sparse, Y, "[Ss]parse"),
    "NaN in y": ({"classes": None}, X, np.where(Y == "no", np.nan, 1), "NaN"),
    "infinity in y": ({"classes": None}, X, np.where(Y == "no", np.inf, 1), "infinity"),
    "None in y": ({"classes": None}, X, np.where(Y == "no", None, "yes"), "(?i)nan|none|type"),
    "a number to predict": ({"classes": None}, X, X[:, 0] / 7, "(?i)continuous|label type"),
    "one class": ({"classes": None}, X, ["yes"] * 1200, "one class"),
    "one declared class": ({"classes": ["yes"]}, X, Y, "two classes"),
    "no rows": ({}, X[:0], Y[:0], "minimum of 1"),
    "no rows in a frame": ({}, pandas.DataFrame(X[:0]), Y[:0], "no rows"),
    "no columns": ({}, pandas.DataFrame(index=range(1200)), Y, "no columns"),
    "uneven": ({}, X, Y[:-1], "differ in length"),
    "one dimension": ({}, X[:, 0], Y, "2D array"),
    "three dimensions": ({}, X[None], Y, "dim"),
    "y of two columns": ({}, X, np.column_stack([Y, Y]), "1d array"),
    "complex numbers": ({}, X * 1j, Y, "[Cc]omplex"),
    "two columns of one name": (
        {"bounds": None},
        pandas.DataFrame(X, columns=["a", "A"]),
        Y,
        "one name",
    ),
    "two columns of exactly one name": (
        {},
        pandas.DataFrame(X, columns=["a", "a"]),
        Y,
        "one name",
    ),
    "labels of several types": (
        {"classes": None},
        X,
        np.array([1, "a"] * 600, dtype=object),
        "Unknown label type: the objects in y are not all text",
    ),
    "text before numbers": (
        {"classes": None},
        X,
        np.array(["a", 1, 2.5] * 400, dtype=object),
        "Unknown label type: the objects in y are not all text",
    ),
    "no labels": ({}, X, None, "y"),
    "no rows at all": ({}, None, Y, "2D array"),
    "text as classes": ({"classes": "no,yes"}, X, Y, "list of values"),
    "classes of several types": ({"classes": [1, "no"]}, X, Y, "of one type"),
    "a relation": ({}, lambda: duckdb.sql("SELECT 1.0 AS x0, 2.0 AS x1"), Y, "X must be an array"),
    "a lazy frame": ({}, lambda: polars.LazyFrame(X), Y, "X must be an array"),
    "a dictionary": ({}, {"x0": X[:, 0], "x1": X[:, 1]}, Y, "X must be an array"),
    "None as a class": ({"classes": ["no", None]}, X, Y, "list of values"),
    "classes in lists": ({"classes": [["no"], ["yes"]]}, X, Y, "list of values"),
    "a number as ledger": ({"ledger": 5, "dataset": "d"}, X, Y, "path"),
    "a number as dataset": ({"ledger": "l", "dataset": 5}, X, Y, "dataset"),
    "a number as unit": ({"privacy_unit": 3}, X, Y, "privacy_unit"),
    "text as a seed": ({"random_state": "a"}, X, Y, "seed"),
    "text as bounds": ({"bounds": "0:60"}, X, Y, "bounds must be"),
    "three bounds": ({"bounds": (0, 1, 2)}, X, Y, "bounds must be"),
    "too many bounds": ({"bounds": ([0, 0, 0], [1, 1, 1])}, X, Y, "bounds must be"),
    "bounds in the wrong order": ({"bounds": (60, 0)}, X, Y, "less than upper"),
    "NaN as a bound": ({"bounds": (np.nan, 60)}, X, Y, "finite"),
    "infinite bounds": ({"bounds": (-np.inf, np.inf)}, X, Y, "finite"),
    "bounds too close for bins": ({"bounds": (0, 5e-324)}, X, Y, "too close together"),
    "bounds of a missing column": ({"bounds": {"x9": (0, 1)}}, X, Y, "x9"),
    "bounds that are no pair": ({"bounds": {"x0": 5}}, X, Y, "bounds must be"),
    "categories as a list": ({"categories": ["a"]}, X, Y, "dictionary by column"),
    "categories as text": ({"categories": {"x0": "abc"}, "bounds": None}, X, Y, "list of values"),
    "both of one column": (
        {"bounds": {0: (0, 1)}, "categories": {"x0": [1]}},
        X,
        Y,
        "both bounds and categories",
    ),
    "a category twice": ({"categories": {0: [1, 1]}}, X, Y, "twice"),
    "a dict as domain": ({"domain": {}, "bounds": None}, X, Y, "domain must be"),
    "a missing domain file": ({"domain": "no.toml", "bounds": None}, X, Y, "no domain file"),
    "no ε": ({"epsilon": 0}, X, Y, "psilon|ε"),
    "NaN as ε": ({"epsilon": np.nan}, X, Y, "psilon|ε"),
    "text as ε": ({"epsilon": "much"}, X, Y, "psilon|ε"),
    "None as ε": ({"epsilon": None}, X, Y, "psilon|ε"),
    "δ of one": ({"delta": 1}, X, Y, "δ|delta"),
    "an unknown recipe": ({"recipe": "no-such"}, X, Y, "no-such"),
    "a recipe that is no text": ({"recipe": 7}, X, Y, "recipe"),
    "no trees": ({"n_estimators": 0}, X, Y, "n_estimators"),
    "half a tree": ({"n_estimators": 1.5}, X, Y, "n_estimators"),
    "depth of a hundred": ({"max_depth": 100}, X, Y, "max_depth"),
    "a missing unit": ({"privacy_unit": "who"}, X, Y, "who"),
    "many rows of no unit": ({"rows_per_unit": 3}, X, Y, "rows_per_unit"),
    "a dataset without a name": ({"ledger": "l", "dataset": " "}, X, Y, "dataset"),
    "a ledger in no folder": ({"ledger": "/no/such/l", "dataset": "d"}, X, Y, "ledger"),
}


@some("name", BAD, keep=20)
def test_bad_input_gets_one_sentence(name: str, tmp_path: Path) -> None:
    change, features, labels, words = BAD[name]
    features = features() if callable(features) else features
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises((ValueError, TypeError), match=words) as refused:
            model(**change).fit(features, labels)
    text = str(refused.value)
    assert "--" not in text, "the command line's options are not the parameters'"
    assert "59.0" not in text, "no value of the data"


@pytest.mark.parametrize(
    "rows", [X[:, :1], pandas.DataFrame({"b": [1.0], "a": [2.0]}), [["a"]], [], "ab"]
)
def test_rows_of_another_shape_are_not_predicted(rows: Any) -> None:
    fitted = model(bounds={"a": (0, 60), "b": (0, 7)}).fit(
        pandas.DataFrame(X, columns=list("ab")), Y
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError):  # noqa: PT011  scikit-learn's own sentences
            fitted.predict(rows)


def test_predictions_before_a_fit_are_refused() -> None:
    for call in (lambda m: m.predict(X), lambda m: m.to_sql("t"), lambda m: m.save("m.json")):
        with pytest.raises(NotFittedError):
            call(model())
    with pytest.raises(NotFittedError):
        _ = model().feature_importances_


@pytest.mark.parametrize("rows", [X + 1j * 4711, X[:, 0] + 4711])
def test_messages_of_scikit_learn_do_not_quote_rows(rows: Any) -> None:
    model = DPForestClassifier(**DECLARED)
    with pytest.raises(
        ValueError, match=r"Complex data not supported|Expected 2D array"
    ) as refused:
        model.fit(rows, Y)
    assert "47" not in str(refused.value)
    assert "\n" not in str(refused.value).partition("\nReshape")[0]
    assert refused.value.__context__ is None, "it would quote them"


def test_bounds_without_a_decimal_point_are_of_numbers_with_fractions() -> None:
    fractions = np.random.default_rng(0).uniform(size=(3_000, 3))
    larger = np.where(fractions[:, 0] > 0.5, "yes", "no")
    fitted = model(bounds=(0, 1)).fit(fractions, larger)
    assert (fitted.predict(fractions) == larger).mean() > 0.8


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
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = classes_in(np.arange(rows) % 21)
    assert len(found) == 21


@pytest.mark.parametrize(
    ("bounds", "sentence"),
    [
        ((0, np.nan), "must be finite numbers"),
        ({0: (-np.inf, 1)}, "must be finite numbers"),
        (([0], [1]), "one list each for all columns"),
        (([0, 0], 1), "one list each for all columns"),
    ],
)
def test_bounds_that_do_not_fit_are_refused(bounds: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        DPForestClassifier(bounds=bounds).fit(np.zeros((137, 3)), Y[:137])
