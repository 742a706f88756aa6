"""An estimator that is quick to fit, and rows for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pytest.importorskip("sklearn")

from dpforest_duckdb.sklearn import DPForestClassifier  # noqa: E402

X = np.column_stack([np.arange(1200) % 60, np.arange(1200) % 7]).astype(float)
Y = np.where(X[:, 0] > 29, "yes", "no")
DECLARED: dict[str, Any] = {"bounds": (0, 60), "classes": ["no", "yes"]}


def model(**parameters: Any) -> DPForestClassifier:
    return DPForestClassifier(**{"recipe": "joint-tables", **DECLARED, **parameters})


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
