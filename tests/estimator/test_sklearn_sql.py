"""DPForestClassifier: its SQL and its file predict as it does."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from variants import some

from dpforest_duckdb import load_forest
from dpforest_duckdb.domain.file import domain_from_mapping

pandas = pytest.importorskip("pandas")
pytest.importorskip("sklearn")

from estimators import X, Y, model  # noqa: E402

TENTHS = domain_from_mapping(
    {
        "target": "y",
        "column": [
            {"name": "a", "kind": "numeric", "lower": 0.0, "upper": 1.0, "edges": [0.1, 0.3, 0.7]},
            {"name": "y", "kind": "categorical", "domain": ["no", "yes"]},
        ],
    }
)


@some(
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
    keep=4,
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
