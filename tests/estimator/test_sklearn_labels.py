"""DPForestClassifier: labels that are classes, and others, which leave out their rows."""

from __future__ import annotations

import datetime as dt
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from variants import some

from dpforest_duckdb.domain.file import domain_from_mapping
from dpforest_duckdb.ledger.book import Ledger
from dpforest_duckdb.ledger.datasets import DatasetAccount

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")
pytest.importorskip("sklearn")

from estimators import X, Y, frames, model  # noqa: E402

from dpforest_duckdb.sklearn.inputs import labels_of, target  # noqa: E402


@some(
    "labels",
    [
        *([0, 1], [False, True], [1.0, 2.0], ["b", "a"], [-1, 1]),
        *(np.array([0, 200], dtype) for dtype in ("uint8", "uint64", "int16", "float32")),
    ],
    keep=6,
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
@pytest.mark.parametrize("turn", [0, pytest.param(1, marks=pytest.mark.more)])
def test_a_label_that_is_no_class_leaves_out_its_row(
    library: str, labels: list[Any], turn: int
) -> None:
    """One row must not decide whether a run is refused, or how the others are read.

    Labels are given as an array and as a list, in turn.
    """
    rows = {
        "numpy": np.asarray,
        "pandas": lambda x: pandas.DataFrame(x, columns=["x0", "x1"]),
        "polars": lambda x: polars.DataFrame(x, schema=["x0", "x1"]),
        "arrow": lambda x: polars.DataFrame(x, schema=["x0", "x1"]).to_arrow(),
    }[library]
    y = [labels[int(size > 29)] for size in X[:, 0]]
    fit = model(classes=labels, random_state=1)
    votes = [tree.votes.tolist() for tree in fit.fit(rows(X), y).forest_.trees]
    given = ODD if library == "numpy" else (0.5, None, (1, 2), *ODD[-7:])
    for number, odd in enumerate(given):
        more = np.empty(1201, dtype=object)
        more[:1200], more[1200] = y, odd
        fit.fit(rows(np.vstack([X, [7, 3]])), (more, [*y, odd])[(number + turn) % 2])
        assert [tree.votes.tolist() for tree in fit.forest_.trees] == votes, odd


@pytest.mark.parametrize("frame", ["polars", "arrow"])
def test_bytes_are_labels_beside_any_frame(frame: str) -> None:
    fitted = model(bounds={"size": (0, 60)}, categories={"colour": ["red"]})
    assert (fitted.fit(frames()[frame], Y.astype(bytes)).predict(frames()[frame]) == Y).mean() > 0.9


def _moments(text: str) -> Any:
    zoned = pandas.Series(np.array([text], "M8[s]")).dt.tz_localize("UTC")
    return zoned.dt.tz_convert("America/New_York")


@pytest.mark.parametrize("text", ["0001-06-01", "2020-01-01"])
@pytest.mark.parametrize(
    "form",
    [
        lambda y: y,
        lambda y: y.to_frame(),
        lambda y: y.astype("category"),
        pandas.Categorical,
        pandas.DatetimeIndex,
        lambda y: y.astype(pandas.ArrowDtype(pyarrow.timestamp("s", tz="America/New_York"))),
    ],
)
def test_labels_that_are_moments_in_a_time_zone_end_no_process(form: Any, text: str) -> None:
    """Of those before 1678, pandas looks for an offset where it may not read."""
    year, day = ("2019", "31") if text[0] == "2" else ("0001", "31")
    (label,) = target(form(_moments(text))).tolist()
    assert label[:4] == year
    assert label[8:10] == day


def test_labels_of_arrow_that_are_no_text_or_time_are_missing() -> None:
    held = pyarrow.array([b"no", b"\xff"], pyarrow.binary())
    texts = pyarrow.Array.from_buffers(pyarrow.string(), 2, held.buffers())
    coded = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0, 1]), texts)
    of_pandas = pandas.Series(pandas.arrays.ArrowExtensionArray(texts))
    of_polars = polars.from_arrow(pyarrow.table({"y": texts}))["y"]
    for y in (texts, pyarrow.chunked_array([texts]), coded, of_pandas, of_polars):
        assert target(y).tolist() == ["no", None]
    times = pyarrow.array([5, -1], pyarrow.int32()).view(pyarrow.time32("s"))
    assert target(times).tolist()[0] == "00:00:05"
    assert target(pandas.Series(pandas.arrays.ArrowExtensionArray(times))).tolist()[0] == "00:00:05"


@pytest.mark.parametrize("kind", [pyarrow.date32(), pyarrow.date64()], ids=str)
def test_labels_that_are_dates_beyond_those_of_python_are_missing(kind: Any) -> None:
    numbers = pyarrow.array([0, 2**31 - 1, None], pyarrow.int32())
    if kind == pyarrow.date64():
        numbers = pyarrow.array([0, 2**62, None], pyarrow.int64())
    y = pandas.Series(pandas.arrays.ArrowExtensionArray(numbers.cast(kind)))
    assert target(y).tolist() == [dt.date(1970, 1, 1), None, None]


@pytest.mark.parametrize(
    "y",
    [
        pandas.Series([0, 1, 1j]),
        pandas.DataFrame({"y": [0, 1, 1j]}),
        np.array([0, 1, 1j]),
        polars.Series([0, 1, 2**100], dtype=polars.Int128),
        polars.Series([0, 1, 2**100], dtype=polars.UInt128),
        polars.DataFrame({"y": polars.Series([0, 1, 2**100], dtype=polars.Int128)}),
        polars.Series([False, True, 2**63], strict=False),
        np.array([[0], [1], [1j]]),
    ],
    ids=["pandas", "frame", "numpy", "int128", "uint128", "polars", "booleans", "column"],
)
def test_a_label_that_makes_others_of_its_type_decides_no_refusal(y: Any) -> None:
    assert [float(label) for label in target(y)[:2].tolist()] == [0, 1]
    with pytest.raises(ValueError, match="1d array"):
        target(np.ones((3, 2), dtype=complex))


def test_labels_of_numpy_that_are_no_unicode_are_missing() -> None:
    y = np.array([ord("x"), 0x110000], np.uint32).view("<U1")
    assert target(y).tolist() == ["x", None]


def test_rows_of_no_class_are_left_out_of_an_evaluation() -> None:
    fitted = model().fit(X, Y)
    for odd in (None, 0.5, "maybe"):
        y = np.array([*Y[:600], *[odd] * 600], dtype=object)
        figures = fitted.evaluate(X, y, epsilon=10)
        assert figures.rows == pytest.approx(600, abs=60)
        assert figures.accuracy > 0.9
