"""What scikit-learn asks of an estimator, and its tools with ours."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from estimators import DECLARED, X, Y, model
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from dpforest_duckdb.sklearn import DPForestClassifier

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
