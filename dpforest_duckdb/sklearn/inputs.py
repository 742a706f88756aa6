"""X and y of scikit-learn as columns for DuckDB. Only objects are looked at one by one."""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator  # type: ignore[import-untyped]
from sklearn.utils.multiclass import check_classification_targets  # type: ignore[import-untyped]
from sklearn.utils.validation import (  # type: ignore[import-untyped]
    assert_all_finite,
    column_or_1d,
    validate_data,
)

from dpforest_duckdb.domain.names import fold, free_name, spellings
from dpforest_duckdb.engine.columns.written_values import is_whole, written_number
from dpforest_duckdb.engine.sources.frame_columns import column_names, without_batch
from dpforest_duckdb.engine.sources.frames import is_frame
from dpforest_duckdb.engine.sources.label_columns import readable_labels

# how scikit-learn quotes X, or its number of rows: in messages about complex numbers, about one
# dimension, about lists of different lengths, and about no columns
_QUOTED = re.compile(
    r"(?s)(?<=not supported)\n.*|\narray=.*?(?=\nReshape|$)| The detected shape was .*"
    r"|(?<=shape=\()\d+(?=, 0\))"
)

_NUMBERS = {int, float, *(np.dtype(code).type for code in "bBhHiIlLqQfd")}
_SHORT = 100  # characters of text in an array of text, where each item takes those of the longest
_LONGEST = 10_000  # characters of a label: more are no class

Labels = NDArray[Any]  # the classes of rows `[row]`, or the class list `[class]`


@dataclass(frozen=True)
class Columns:
    """The columns of X by name: a DataFrame, or arrays `[row]`.

    `numbers` are the labels of a DataFrame whose columns have whole numbers in the place of names.
    """

    frame: Any
    names: tuple[str, ...]
    numbers: tuple[int, ...] = ()

    def __len__(self) -> int:
        """The number of rows."""
        return len(next(iter(self.frame.values())) if isinstance(self.frame, dict) else self.frame)

    def with_column(self, name: str, y: Labels) -> Any:
        """The columns with one more, such as the target, in the place of one of that name."""
        if isinstance(self.frame, dict):
            return {**self.frame, name: y}
        kept = [other for other in self.names if fold(other) != fold(name)]
        frame = self.frame if len(kept) == len(self.names) else _selected(self.frame, kept)
        if hasattr(frame, "assign"):
            made = frame.copy(deep=False)
            if y.dtype.kind in "UO":  # as objects: pandas would encode text, which may fail
                y = type(made)({name: y}, index=made.index, dtype=object)[name]
            made[name] = y
            return made
        plain = _typed(y)
        with contextlib.suppress(UnicodeError):
            return _appended(frame, name, plain)
        encoded = np.char.encode(plain, "utf-8", "replace")
        return _appended(frame, name, np.char.decode(encoded, "utf-8"))

    def numbered(self, key: Any) -> Any:
        """The name of the column with a number: its label if labels are numbers, else its place.

        Anything else stays as it is.
        """
        places = self.numbers or range(len(self.names))
        known = isinstance(key, Integral) and key in places
        return self.names[places.index(int(key))] if known else key

    def free_name(self, wanted: str) -> str:
        """A name for a column that no other has; columns ignore case."""
        return free_name(wanted, spellings(self.names))


def _appended(frame: Any, name: str, y: Labels) -> Any:
    """A frame of polars or Arrow with one more column. Raises `UnicodeError` for other text."""
    if hasattr(frame, "hstack"):
        return frame.hstack(type(frame)({name: y}))
    return frame.append_column(name, type(frame).from_pydict({name: y}).column(0))


def features(estimator: BaseEstimator, X: Any, *, reset: bool, unit: str | None = None) -> Columns:  # noqa: N803
    """The columns of X, checked as scikit-learn checks them.

    A DataFrame may have the column `unit` beside those that the estimator was fitted on. Missing
    and infinite values are allowed: the domain says where they go. Raises `ValueError` or
    `TypeError`, as scikit-learn's own estimators do.
    """
    X = _readable(X)  # noqa: N806
    if is_frame(X) and not isinstance(X, dict):
        rows, width = X.shape
        if not rows or not width:
            raise ValueError(f"X has no {'columns' if rows else 'rows'}: at least one is needed.")
        given = column_names(X)
        if len({fold(name) if isinstance(name, str) else name for name in given}) < len(given):
            raise ValueError("X has two columns of one name (case is ignored): rename one.")
        if "" in given:
            raise ValueError("X has a column whose name is empty: rename it.")
        plain = X if unit not in given else _selected(X, [name for name in given if name != unit])
        validate_data(estimator, plain, reset=reset, skip_check_array=True)
        if reset and not hasattr(estimator, "feature_names_in_"):
            _refuse_unread_names(given)
        numbers = tuple(given) if all(isinstance(name, Integral) for name in given) else ()
        return Columns(*_named(X, plain=not hasattr(estimator, "feature_names_in_")), numbers)
    array = _validated(estimator, X, reset=reset)
    if array.dtype.kind not in "biufUSOM":
        raise ValueError(f"X has the type {array.dtype}, which is neither numbers, text nor dates.")
    names = tuple(getattr(estimator, "feature_names_in_", _numbered(array.shape[1])))
    columns = np.asfortranarray(array)
    return Columns({name: columns[:, i] for i, name in enumerate(names)}, names)


def _refuse_unread_names(names: Sequence[object]) -> None:
    """Raise `TypeError` if scikit-learn has read no names from a frame whose names are all text.

    Before 1.9 it cannot read those of polars 2. Columns would be known by their places, so that
    `predict` would not notice another order.
    """
    if all(isinstance(name, str) for name in names):
        raise TypeError(
            "This version of scikit-learn cannot read the names of the columns of X: update "
            "scikit-learn, or pass a pandas DataFrame."
        )


def _readable(X: Any) -> Any:  # noqa: N803
    """X, with an Arrow table in the place of a record batch.

    Raises `TypeError` for what has columns by name but is no table in memory, such as a relation or
    a polars LazyFrame: scikit-learn's own sentences do not name the remedy.
    """
    if type(X) is dict or (hasattr(type(X), "columns") and not hasattr(X, "__array__")):
        raise TypeError("X must be an array, a pandas or polars DataFrame or an Arrow table.")
    return without_batch(X)


def _validated(estimator: BaseEstimator, X: Any, *, reset: bool) -> NDArray[Any]:  # noqa: N803
    """X as scikit-learn validates it. Its errors are raised without the values that they quote.

    They are raised outside of `except`, so that no error refers to the one that it replaces.
    """
    array: NDArray[Any]
    try:
        array = validate_data(estimator, X, reset=reset, dtype=None, ensure_all_finite=False)
    except ValueError as error:
        said = _QUOTED.sub("", str(error))
    else:
        return array
    raise ValueError(said)


def target(y: Any) -> Labels:
    """The labels of the rows, of whatever values: rows of no declared class are left out later.

    So no row decides whether a run is refused. Raises `ValueError` for anything but one label for
    each row, without their number, which is private.
    """
    labels = None
    with contextlib.suppress(ValueError):
        given = _of_list(y) if isinstance(y, list | tuple) else _real(readable_labels(y))
        labels = column_or_1d(given, warn=True)
    if labels is None:
        raise ValueError("y should be a 1d array: a class for each row.")
    labels = np.asarray(labels)
    plain = labels.dtype != object and (labels.dtype.kind != "U" or _is_plain(labels.tolist()))
    return labels if plain else _objects(map(_readable_label, labels.tolist()))


def _real(labels: Any) -> Any:
    """Labels as they were before a library made complex numbers of all, for the sake of one."""
    if getattr(getattr(labels, "dtype", None), "kind", "") != "c":
        return labels
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        return labels
    return _objects(label if label.imag else label.real for label in labels.tolist())


def _of_list(given: Sequence[object]) -> Labels | Sequence[object]:
    """An array of the items as they are, or of their type if all are numbers, or short text.

    NumPy would take the type from all items, so one odd item would change the others. If all items
    have items of their own, they are given back: they are no labels.
    """
    kinds = set(map(type, given))
    if kinds <= {bool, np.bool_} or kinds <= _NUMBERS:
        return np.asarray(given)
    if kinds == {str} and _is_plain(cast(Sequence[str], given)):
        return np.asarray(given)
    if kinds <= {list, tuple, np.ndarray}:
        return given
    return _objects(given)


def _objects(given: Iterable[object]) -> Labels:
    """The items in an array of objects, one by one: NumPy would look into those that have items."""
    items = list(given)
    found = np.empty(len(items), dtype=object)
    for place, item in enumerate(items):
        found[place] = item
    return found


def _is_plain(given: Sequence[str]) -> bool:
    """Whether an array of text can hold labels: NumPy cuts off a NUL, and gives each of them as
    much memory as the longest.
    """
    try:
        return b"\0" not in "".join(given).encode() and max(map(len, given), default=0) <= _SHORT
    except UnicodeEncodeError:
        return False


def _readable_label(label: object) -> object:
    """The label, or None if no class can be equal to it: DuckDB cannot read it as text, or it is
    far too long.
    """
    try:
        text = label if isinstance(label, str) else str(label)
        return label if b"\0" not in text.encode() and len(text) <= _LONGEST else None
    except Exception:  # whatever the label's own code raises: it is no class
        return None


def classes_in(labels: Labels) -> Labels:
    """The classes that occur, sorted, and checked as scikit-learn checks them.

    They depend on the rows, and so do the refusals: for models that are not private alone. Raises
    `ValueError`.
    """
    if labels.dtype == object:
        given = labels.tolist()
        if any(map(_is_missing, given)):
            raise ValueError("Input y contains NaN: leave out the rows whose class is missing.")
        if not all(isinstance(label, str) for label in given):
            raise ValueError(
                "Unknown label type: the objects in y are not all text, so convert them to one "
                "type, as y.astype(str) does."
            )
        labels = np.array(list(set(given)), dtype=object)
    assert_all_finite(labels, input_name="y")
    found: Labels = np.unique(labels)
    # scikit-learn warns of many classes for few rows
    with warnings.catch_warnings(action="ignore", category=UserWarning), np.errstate(all="ignore"):
        check_classification_targets(found)
    return found


def _typed(labels: Labels) -> Labels:
    """Labels in a type that polars and Arrow have too: text for bytes and for Python objects.

    A missing object becomes the text "nan", which is read as missing.
    """
    if labels.dtype.kind == "S":
        return np.char.decode(labels, "latin-1")  # as `frame_columns.py` does
    if labels.dtype != object:
        return labels
    return np.array(["nan" if _is_missing(label) else str(label) for label in labels.tolist()])


def _is_missing(value: object) -> bool:
    """Whether a class is missing: None, NaN, or what pandas has for them."""
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def refuse_other_length(columns: Columns, labels: Labels) -> None:
    """Raise `ValueError` unless there is a class for each row."""
    if len(columns) != len(labels):
        raise ValueError("X and y differ in length: y needs a class for each row.")


def class_list(given: Any) -> Labels:
    """The declared classes, sorted. Raises `ValueError` for anything but values of one type."""
    try:
        found = np.asarray(given)
        if found.ndim == 1 and not any(map(_is_missing, found.tolist())):
            np.unique(np.asarray(given, dtype=object))  # fails for several types
            return np.unique(found)
    except (TypeError, ValueError):
        pass
    raise ValueError("classes must be a list of values of one type.")


def texts(labels: Labels) -> list[str]:
    """Classes as a domain writes them."""
    plain = labels.astype(str).tolist()
    return [text.lower() for text in plain] if labels.dtype.kind == "b" else plain


def labels_of(classes: Sequence[str], declared: Labels | None) -> Labels:
    """Classes of a domain as values of the type of `declared`; without it, of the type that they
    are written as.

    The type of y decides nothing, since one row may change it. Raises `ValueError` for classes that
    are not `declared`.
    """
    if declared is not None:
        found = dict(zip(map(_same, texts(declared)), declared, strict=True))
        if set(found) != set(map(_same, classes)):
            raise ValueError("classes are not those of the domain: correct one of them.")
        return np.array([found[_same(text)] for text in classes], dtype=declared.dtype)
    if set(classes) <= {"true", "false"}:
        return np.array([text == "true" for text in classes])
    if all(map(is_whole, classes)):
        return np.array(classes).astype(np.int64)
    keys = list(map(_same, classes))
    return np.array(keys if all(isinstance(key, float) for key in keys) else classes)


def _same(text: str) -> float | str:
    """What is equal for two texts of one class: a number, whatever its digits, or the text."""
    number = None if text.casefold() in ("true", "false") else written_number(text)
    return text if number is None else number


def _selected(frame: Any, names: list[str]) -> Any:
    """Some columns of a pandas or polars DataFrame, or of an Arrow table."""
    return frame[names] if hasattr(frame, "iloc") else frame.select(names)


def _numbered(width: int) -> tuple[str, ...]:
    """Names of the columns of an array, as scikit-learn writes them."""
    return tuple(f"x{number}" for number in range(width))


def _named(frame: Any, *, plain: bool) -> tuple[Any, tuple[str, ...]]:
    """A frame whose columns have names that are text, and those names.

    With `plain`, or where a name is no text, they are numbered, as those of an array are.
    """
    names = tuple(column_names(frame))
    if all(isinstance(name, str) for name in names) and not plain:
        return frame, names
    numbered = list(_numbered(len(names)))
    if hasattr(frame, "set_axis"):
        return frame.set_axis(numbered, axis=1), tuple(numbered)
    rename = frame.rename_columns if hasattr(frame, "rename_columns") else frame.rename
    return rename(dict(zip(names, numbered, strict=True))), tuple(numbered)
