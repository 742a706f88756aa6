"""DPForestClassifier: DataFrames, their types, and domains by the names of columns."""

from __future__ import annotations

import datetime as dt
import warnings
from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from variants import some

from dpforest_duckdb import Domain
from dpforest_duckdb.domain.file import domain_from_mapping
from dpforest_duckdb.errors import PrivacyLeakWarning

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pytest.importorskip("sklearn")

from estimators import X, Y, frames, model  # noqa: E402

from dpforest_duckdb.sklearn import inputs  # noqa: E402


def test_a_misspelt_column_gets_a_suggestion() -> None:
    frame = pandas.DataFrame({"age": X[:, 0], "size": X[:, 1]})
    with pytest.raises(ValueError, match=r'"agee" \(did you mean "age"\?\), which X does not have'):
        model(bounds={"agee": (0, 60), "size": (0, 1)}).fit(frame, Y)


def test_numbers_of_columns_are_labels_where_a_frame_has_them() -> None:
    for labels in ([1, 0], [5, 6]):
        bounds = {labels[0]: (0, 60), labels[1]: (0, 7)}
        frame = pandas.DataFrame(X, columns=labels)
        attributes = model(bounds=bounds).fit(frame, Y).forest_.domain.attributes
        assert [(each.column, each.upper) for each in attributes] == [("x0", 60.0), ("x1", 7.0)]
    attributes = model(bounds={1: (0, 7), 0: (0, 60)}).fit(X, Y).forest_.domain.attributes
    assert [each.upper for each in attributes] == [60.0, 7.0]
    with pytest.raises(ValueError, match='names the column "0", which X does not have'):
        model(bounds={0: (0, 60)}).fit(pandas.DataFrame(X, columns=[5, 6]), Y)


def test_a_frame_is_refused_if_scikit_learn_cannot_read_its_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As versions before 1.9 cannot read those of polars 2. Else only the order would count."""
    monkeypatch.setattr(inputs, "validate_data", lambda *given, **options: None)
    with pytest.raises(TypeError, match="names of the columns of X: update scikit-learn, or pass"):
        model(bounds=(0, 60)).fit(polars.DataFrame({"size": X[:, 0]}), Y)


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


def test_a_whole_domain_is_taken_by_the_names_of_the_columns() -> None:
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


@some(("name", "library"), product(["reply", "Reply"], ["pandas", "polars", "arrow"]), keep=3)
def test_y_takes_the_place_of_a_column_of_the_target(library: str, name: str) -> None:
    columns = [
        {"name": "size", "kind": "numeric", "lower": 0.0, "upper": 60.0},
        {"name": "reply", "kind": "categorical", "domain": ["no", "yes"]},
    ]
    domain = domain_from_mapping({"target": "reply", "column": columns})
    frame = polars.DataFrame({"size": X[:, 0], name: ["no"] * len(Y)})
    rows = {"pandas": frame.to_pandas, "arrow": frame.to_arrow}.get(library, frame.clone)()
    fitted = model(domain=domain, bounds=None, classes=None).fit(rows, Y)
    assert fitted.score(rows, Y) > 0.9
    assert fitted.evaluate(rows, Y, epsilon=1).accuracy > 0.8


def test_bounds_may_be_any_real_numbers() -> None:
    fitted = model(bounds={0: (Decimal("0.5"), Fraction(121, 2)), 1: (0, np.int8(7))}).fit(X, Y)
    limits = [(each.lower, each.upper) for each in fitted.forest_.domain.attributes]
    assert limits == [(0.5, 60.5), (0.0, 7.0)]


def test_truth_values_that_are_not_declared_are_categories() -> None:
    frame = pandas.DataFrame({"size": X[:, 0], "smoker": X[:, 1] > 3})
    with warnings.catch_warnings(record=True, action="always") as said:
        fitted = model(bounds={"size": (0, 60)}).fit(frame, Y)
    assert fitted.forest_.domain.attributes[1].values == ("false", "true")
    assert not [one for one in said if "Whole numbers" in str(one.message)]
    assert fitted.predict(frame).shape == (1200,)


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


def test_bounds_without_a_decimal_point_are_of_numbers_with_fractions() -> None:
    fractions = np.random.default_rng(0).uniform(size=(3_000, 3))
    larger = np.where(fractions[:, 0] > 0.5, "yes", "no")
    fitted = model(bounds=(0, 1)).fit(fractions, larger)
    assert (fitted.predict(fractions) == larger).mean() > 0.8
