"""DPForestClassifier: bad input gets one sentence."""

from __future__ import annotations

import pickle
import warnings
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pytest
from variants import some

from dpforest_duckdb.domain.file import domain_from_mapping

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pytest.importorskip("sklearn")

from estimators import X, Y, model  # noqa: E402

from dpforest_duckdb.sklearn import DPForestClassifier  # noqa: E402


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
    "no class": ({"classes": []}, X, Y, "classes has no class"),
    "NaN as a class": ({"classes": [0, np.nan]}, X, Y, "list of values"),
    "a column without a name": (
        {"bounds": None},
        pandas.DataFrame(X, columns=["", "a"]),
        Y,
        "name is empty",
    ),
    "lists in a frame": (
        {"bounds": None},
        lambda: polars.DataFrame({"a": [[1]] * 1200}),
        Y,
        "leave it out of X",
    ),
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
    "bounds beyond all numbers": ({"bounds": (0, 10**400)}, X, Y, "finite"),
    "NaN as a decimal": ({"bounds": (Decimal("NaN"), 60)}, X, Y, "finite"),
    "infinite bounds": ({"bounds": (-np.inf, np.inf)}, X, Y, "finite"),
    "bounds too close for bins": ({"bounds": (0, 5e-324)}, X, Y, "too close together"),
    "bounds of a missing column": ({"bounds": {"x9": (0, 1)}}, X, Y, "x9"),
    "bounds that are no pair": ({"bounds": {"x0": 5}}, X, Y, "bounds must be"),
    "categories as a list": ({"categories": ["a"]}, X, Y, "dictionary by column"),
    "categories as text": (
        {"categories": {"x0": "abc"}, "bounds": None},
        X,
        Y,
        "must be a list of",
    ),
    "None as a category": ({"categories": {0: ["a", None]}}, X, Y, "hold a missing value"),
    "NaN as a category": ({"categories": {0: [1.0, np.nan]}}, X, Y, "hold a missing value"),
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
def test_bad_input_gets_one_sentence(name: str) -> None:
    change, features, labels, words = BAD[name]
    features = features() if callable(features) else features
    raises = pytest.raises((ValueError, TypeError), match=words)
    with warnings.catch_warnings(action="ignore"), raises as refused:
        model(**change).fit(features, labels)
    text = str(refused.value)
    assert "--" not in text, "the command line's options are not the parameters'"
    assert "59.0" not in text, "no value of the data"


def test_a_refusal_says_the_same_in_another_process() -> None:
    with pytest.raises(ValueError, match="n_estimators must be") as refused:
        model(n_estimators=0).fit(X, Y)
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)


@pytest.mark.parametrize(
    "rows", [X[:, :1], pandas.DataFrame({"b": [1.0], "a": [2.0]}), [["a"]], [], "ab"]
)
def test_rows_of_another_shape_are_not_predicted(rows: Any) -> None:
    fitted = model(bounds={"a": (0, 60), "b": (0, 7)}).fit(
        pandas.DataFrame(X, columns=list("ab")), Y
    )
    raises = pytest.raises(ValueError)  # noqa: PT011  scikit-learn's own sentences
    with warnings.catch_warnings(action="ignore"), raises:
        fitted.predict(rows)


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
