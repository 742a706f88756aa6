"""A peer, run in an environment of its own, so it can import nothing of this package.

    python benchmarks/peers.py '{"contender": "diffprivlib", "database": "…", …}'   # speed
    python benchmarks/peers.py '{"contender": "DP-EBM", "epsilons": […], …}'          # accuracy

prints one line of JSON. The peer gets the public bounds, categories and classes; otherwise it would
read them off the private rows.
"""

from __future__ import annotations

import json
import resource
import sys
import time
import warnings
from typing import Any

import duckdb
import numpy as np

warnings.simplefilter("ignore")


def speed(job: dict[str, Any]) -> dict[str, Any]:
    """Fetch and fit, with categories as codes."""
    con = duckdb.connect(job["database"], read_only=True)
    made = {"diffprivlib": _diffprivlib_forest, "DP-EBM": _ebm_of_rows}[job["contender"]](job)
    start = time.perf_counter()
    fetched = con.execute("SELECT * FROM rows").fetchnumpy()
    label = fetched.pop("class")
    features = np.empty((len(label), job["attributes"]), dtype=np.float64)
    for number in range(job["attributes"]):
        features[:, number] = _numbers(fetched.pop(f"a{number}"))
    fetch = time.perf_counter() - start
    made.fit(features, label)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"seconds": seconds, "phases": {"fetch": fetch, "fit": seconds - fetch}, "peak": peak}


def _diffprivlib_forest(job: dict[str, Any]) -> Any:
    from diffprivlib.models import RandomForestClassifier

    return RandomForestClassifier(
        n_estimators=job["trees"], max_depth=job["depth"], epsilon=1, bounds=(0, 99), classes=[0, 1]
    )


def _ebm_of_rows(job: dict[str, Any]) -> Any:
    from interpret.privacy import DPExplainableBoostingClassifier

    attributes = range(job["attributes"])
    kinds = ["nominal" if number % 14 < 7 else "continuous" for number in attributes]
    bounds = dict.fromkeys(attributes, (0, 99))
    return DPExplainableBoostingClassifier(
        epsilon=1, delta=1e-5, feature_types=kinds, privacy_bounds=bounds
    )


def _numbers(column: Any) -> Any:
    """Labels as codes; ENUM columns come as pandas categories."""
    if hasattr(column, "codes"):
        return column.codes
    return np.unique(column, return_inverse=True)[1] if column.dtype == object else column


def accuracy(job: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """For each fold and ε: accuracy, AUC of two classes and log loss on the test part of the fold.

    The parts of fold i are the tables `train<i>` and `test<i>` of integer codes, one column per
    attribute, `class` last.
    """
    con = duckdb.connect(job["database"], read_only=True)
    fit = {"diffprivlib": _diffprivlib, "DP-EBM": _ebm}[job["contender"]]
    found = []
    for fold in range(job["folds"]):
        (x, y), (test, truth) = (
            _split(con.execute(f"SELECT * FROM {part}{fold}").fetchnumpy())
            for part in ("train", "test")
        )
        models = [fit(x, y, test, {**job, "epsilon": epsilon}) for epsilon in job["epsilons"]]
        found.append([_figures(shares, truth) for shares in models])
    return found


def _figures(shares: Any, truth: Any) -> dict[str, Any]:
    of_class = np.clip(shares[np.arange(len(truth)), truth], 1e-15, 1)
    return {
        "accuracy": float((shares.argmax(axis=1) == truth).mean()),
        "auc": _area(shares[:, 1], truth == 1) if shares.shape[1] == 2 else None,
        "log_loss": float(-np.log(of_class).mean()),
    }


def _split(part: dict[str, Any]) -> tuple[Any, Any]:
    label = part.pop("class").astype(np.int64)
    return np.stack(list(part.values()), axis=1).astype(np.float64), label


def _diffprivlib(x: Any, y: Any, test: Any, job: dict[str, Any]) -> Any:
    from diffprivlib.models import RandomForestClassifier

    cells, classes = np.array(job["cells"]), job["classes"]
    forest = RandomForestClassifier(
        n_estimators=10, max_depth=5, epsilon=job["epsilon"],
        bounds=(np.zeros(len(cells)), cells - 1.0), classes=list(range(classes)),
    )  # fmt: skip
    forest.fit(x, y)
    return forest.predict_proba(test)


def _ebm(x: Any, y: Any, test: Any, job: dict[str, Any]) -> Any:
    from interpret.privacy import DPExplainableBoostingClassifier

    bounds = {number: (0, cells - 1) for number, cells in enumerate(job["cells"])}
    kinds = ["continuous" if ordered else "nominal" for ordered in job["ordered"]]
    model = DPExplainableBoostingClassifier(
        epsilon=job["epsilon"], delta=job["delta"], feature_types=kinds, privacy_bounds=bounds
    )
    model.fit(x, y)
    return model.predict_proba(test)


def _area(score: Any, positive: Any) -> float | None:
    """The area under the ROC curve: how often a positive row has the higher score."""
    ahead, behind = int(positive.sum()), int((~positive).sum())
    if not ahead or not behind:
        return None
    _, place, many = np.unique(score, return_inverse=True, return_counts=True)
    rank = np.cumsum(many) - (many - 1) / 2
    area = (rank[place[positive]].sum() - ahead * (ahead + 1) / 2) / (ahead * behind)
    return float(area)


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    print(json.dumps(accuracy(asked) if "epsilons" in asked else speed(asked)))
