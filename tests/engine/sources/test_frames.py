"""Which DataFrames, columns and types are read or refused."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from engine_conformance import DOMAIN, ROWS
from source_rows import (
    LABEL,
    NAMES,
    OF_TEXTS,
    arrays,
    beside_y,
    cells,
    columns,
    counted,
    debits,
    encoded,
    fitted,
    pandas,
    polars,
    pyarrow,
)
from variants import some

from dpforest_duckdb import DpforestError, prepare, train
from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.file import domain_from_mapping
from dpforest_duckdb.engine.sources import frames
from dpforest_duckdb.engine.sources.frame_columns import registered
from dpforest_duckdb.training.opening import find_rows


class Watched:
    """A value that records whether a ledger had a debit whenever it is read."""

    def __init__(self, book: Path, readings: list[bool]) -> None:
        self.book, self.readings = book, readings

    def __str__(self) -> str:
        self.readings.append(bool(debits(self.book)))
        return "red"


MOMENTS = pandas.date_range("2020-01-01", periods=40, tz="Europe/Zurich")
UNWATCHED: dict[str, Callable[[], Any]] = {  # frames whose values no object of Python watches
    "pandas": lambda: pandas.DataFrame(
        {
            "moment": MOMENTS,
            "day": pandas.Categorical(MOMENTS),
            "text": pandas.array(["a"] * 40, dtype="string[pyarrow]"),
        }
    ),
    "arrays": lambda: {
        "text": np.array(["a"] * 40),
        "bytes": np.array([b"a"] * 40),
        "stay": np.arange(40).astype("m8[h]"),
    },
    "polars": lambda: polars.DataFrame({"text": ["a"] * 40, "many": [2**70] * 40}),
    "arrow": lambda: pyarrow.table({"text": ["a"] * 40, "moment": MOMENTS}),
}


@pytest.mark.parametrize("library", list(UNWATCHED))
def test_only_frames_without_rows_are_looked_at_before_the_debit(
    library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither DuckDB nor any conversion sees a row or a label of categories."""
    book, sizes = tmp_path / "l", {False: set[int](), True: set[int]()}

    def watched(connection: Any, rows: Any, *used: Any) -> Any:
        first = next(iter(rows.values())) if isinstance(rows, dict) else rows
        sizes[bool(debits(book))].add(len(first))
        if hasattr(rows, "iloc"):
            labels = [len(k.categories) for k in rows.dtypes if hasattr(k, "categories")]
            sizes[bool(debits(book))].update(labels)
        return registered(connection, rows, *used)

    monkeypatch.setattr(frames, "registered", watched)
    frame = UNWATCHED[library]()
    label = ["no", "yes"] * 20
    if isinstance(frame, dict):
        frame["y"] = np.array(label)
    elif library == "arrow":
        frame = frame.append_column("y", pyarrow.array(label))
    elif library == "polars":
        frame = frame.with_columns(y=polars.Series(label))
    else:
        frame["y"] = label
    domain = beside_y({"name": "text", "kind": "categorical", "domain": ["a", "b"]})
    fitted(duckdb.connect(), frame, domain=domain, ledger=book, dataset="d")
    assert sizes == {False: {0}, True: {40}}


@pytest.mark.parametrize("form", ["arrays", "objects", "categories"])
def test_no_object_of_a_frame_is_read_before_the_debit(form: str, tmp_path: Path) -> None:
    book, readings = tmp_path / "l", list[bool]()
    values = np.array([Watched(book, readings) for _ in range(40)], dtype=object)
    frame: Any = {"colour": values, "label": np.array(["no", "yes"] * 20, dtype=object)}
    if form == "objects":
        frame = pandas.DataFrame(frame)
    if form == "categories":
        labels = pandas.Index(values, dtype=object)
        frame["colour"] = pandas.Categorical.from_codes(range(40), labels)
        frame = pandas.DataFrame(frame)
    domain = Domain((DOMAIN.attributes[0],), "label", ("no", "yes"))
    fitted(duckdb.connect(), frame, domain=domain, ledger=book, dataset="d")
    assert all(readings)
    assert len(readings) >= 40


def test_a_frame_that_lost_a_column_after_the_plan_is_refused_before_the_debit(
    tmp_path: Path,
) -> None:
    frame = pandas.DataFrame(arrays())
    given: dict[str, Any] = {"epsilon": 1, "ledger": tmp_path / "l", "dataset": "d"}
    run = prepare(duckdb.connect(), frame, domain=DOMAIN, **given)
    frame.drop(columns="colour", inplace=True)
    with pytest.raises(DpforestError, match="have changed since the run was planned"):
        run.execute()
    assert not (tmp_path / "l").exists()


def test_a_column_that_is_shorter_after_the_plan_is_refused_before_the_debit(
    tmp_path: Path,
) -> None:
    columns = dict(arrays())
    given: dict[str, Any] = {"epsilon": 1, "ledger": tmp_path / "l", "dataset": "d"}
    run = prepare(duckdb.connect(), columns, domain=DOMAIN, **given)
    columns["colour"] = columns["colour"][:1]
    with pytest.raises(DpforestError, match="differ in length"):
        run.execute()
    assert not (tmp_path / "l").exists()


def test_categories_without_a_value_are_read_as_those_with_one() -> None:
    frame = pandas.DataFrame(arrays())
    for odd in (None, "red"):
        labels = pandas.Index([odd] if odd else [], dtype="string[python]")
        frame["colour"] = pandas.Categorical([odd] * len(frame), labels)
        found = cells(frame, DOMAIN)
        assert np.sum(found[0]) == (0 if odd is None else np.sum(found))


def test_frames_with_bad_columns_are_refused(tmp_path: Path) -> None:
    con = duckdb.connect()
    twice = pandas.DataFrame([[1, 2]], columns=["a", "A"])
    uneven = {"a": np.zeros(2), "b": np.zeros(3)}
    lists = polars.DataFrame({**columns(), "colour": [[1]] * len(ROWS)})
    for frame, words in (
        (twice, "one name"),
        (uneven, "length"),
        (lists, "cannot be an attribute"),
    ):
        with pytest.raises(DpforestError, match=words):
            fitted(con, frame, ledger=tmp_path / "ledger", dataset="d")
    assert not (tmp_path / "ledger").exists()


def test_names_of_columns_need_not_be_text(tmp_path: Path) -> None:
    frame = pandas.DataFrame(arrays() | {"7": 1}).rename(columns={"7": 7})
    assert fitted(duckdb.connect(), frame, ledger=tmp_path / "ledger", dataset="d").private


@pytest.mark.parametrize("more", [[], [Decimal("1e45")]])
@some("kind", ["list", "struct", "category", "codes", "pandas codes"], keep=3)
def test_decimals_of_many_digits_are_read_in_any_column(kind: str, more: list[Decimal]) -> None:
    values = [Decimal("1.5"), Decimal("2.5"), *more]
    labels = ["no"] * len(values)
    frame: Any
    if kind in ("list", "struct"):
        z = pyarrow.array([[x] if kind == "list" else {"a": x} for x in values])
        frame = pyarrow.table({"a": ["p"] * len(values), "y": labels, "z": z})
        assert np.sum(cells(frame, OF_TEXTS)) == len(values)
        return
    coded = pyarrow.array(values).dictionary_encode()
    frame = pyarrow.table({"a": coded, "y": labels})
    if kind == "pandas codes":
        decimals = pandas.array(values, dtype=pandas.ArrowDtype(pyarrow.array(values).type))
        frame = pandas.DataFrame({"a": pandas.Categorical(decimals), "y": labels})
    read = {"kind": "categorical", "domain": ["1.5", "2.5"]}
    if kind == "category":
        read = {"kind": "numeric", "lower": 1.0, "upper": 3.0, "bins": 2}
    domain = beside_y({"name": "a", **read})
    counts = np.array(cells(frame, domain))[:, 0]
    assert counts[:2].tolist() == [1, 1 + len(more) * (kind == "category")]


def test_numbers_of_many_digits_in_nested_columns_of_polars_refuse_nothing() -> None:
    for more in ([], [2**100]):
        values = [{"k": x} for x in [1, 2, *more]]
        frame = polars.DataFrame(
            {
                "a": ["p"] * len(values),
                "y": ["no"] * len(values),
                "z": polars.Series(values, strict=False),
            }
        )
        assert np.sum(cells(frame, OF_TEXTS)) == len(values)


def test_a_category_that_is_written_as_missing_values_is_refused(tmp_path: Path) -> None:
    for category in ("nan", "NaT", "b'nan'"):
        domain = Domain((Attribute("q", "categorical", (category, "a")),), "y", ("0", "1"))
        with pytest.raises(DpforestError, match="written as missing values"):
            fitted(
                duckdb.connect(), pandas.DataFrame({"q": ["a"], "y": ["0"]}), domain=domain,
                dataset="d", ledger=tmp_path / "l",
            )  # fmt: skip


def test_numbers_of_16_bits_are_refused() -> None:
    """As text they have fewer digits than as numbers of 32 bits."""
    frame = {"q": np.array([0.1], dtype=np.float16), "y": np.array(["no"])}
    for rows in (frame, pandas.DataFrame(frame)):
        with pytest.raises(DpforestError, match='"q" of the frame has the type float16'):
            find_rows(duckdb.connect(), rows)


@pytest.mark.more
def test_a_column_without_values_is_read_as_one_with_a_value(tmp_path: Path) -> None:
    """Else it would show whether anyone has a value if a run is refused."""
    for column in NAMES:
        rows = {**columns(), column: [None] * len(ROWS)}
        frame = polars.DataFrame(rows)
        for number, given in enumerate((pandas.DataFrame(rows), frame, frame.to_arrow())):
            book = tmp_path / f"{column}{number}"
            fitted(duckdb.connect(), given, ledger=book, dataset="d")
            assert len(debits(book)) == 1


def test_one_value_of_polars_or_arrow_refuses_no_frame(tmp_path: Path) -> None:
    """It may make objects, bytes, or numbers of a type that DuckDB does not know of all."""
    label, con = ["no", "yes", "no"], duckdb.connect()
    for size in ([1, 2, 3], [1, 2, 2**70], polars.Series([1, 2, object()], dtype=polars.Object)):
        frame = polars.DataFrame({"size": size, "label": label}, strict=False)
        assert [sum(cell) for cell in cells(frame, Domain(DOMAIN.attributes[1:], *LABEL))][1:3] == [
            1,
            1,
        ], size
    for number in ("0.25", "1e50", "0." + "1" * 32):
        size = pyarrow.array([Decimal("1"), Decimal("2"), Decimal(number)])
        table = pyarrow.table({"size": size, "label": label})
        fitted(
            con,
            table,
            domain=Domain(DOMAIN.attributes[1:], *LABEL),
            ledger=tmp_path / "l",
            dataset="d",
        )


@some(("unit", "name"), product([None, "row"], ["row", "Row"]), keep=2)
def test_a_column_called_row_is_a_column_like_others(
    name: str, unit: str | None, tmp_path: Path
) -> None:
    """Not the privacy unit, which one missing number would refuse; it may be an attribute."""
    frame = pandas.DataFrame({"a": ["p", "q"] * 9, "y": ["no", "yes"] * 9, name: [1, None] * 9})
    given: dict[str, Any] = {"privacy_unit": unit, "ledger": tmp_path / "l", "dataset": "d"}
    assert fitted(duckdb.connect(), frame, domain=OF_TEXTS, **given).guarantee.unit == "row"
    number = {"name": name, "kind": "numeric", "lower": 0, "upper": 3}
    forest = fitted(duckdb.connect(), frame, domain=beside_y(number), **given)
    assert forest.domain.columns == (name, "y")


@some("odd", [[1], {"a": 1}, b"\xff", (1, 2), 2.5, None, np.array([1, 2])], keep=3)
def test_no_object_of_a_frame_decides_about_a_type_or_fails_a_run(odd: Any) -> None:
    found = {}
    for number in (1, 1200):  # odd values
        values = np.array(["red"] * 1200, dtype=object)
        for place in range(number):
            values[place] = odd
        frame = {"colour": values, "label": np.array(["no", "yes"] * 600, dtype=object)}
        domain = Domain((DOMAIN.attributes[0],), "label", ("no", "yes"))
        with encoded(frame, domain) as coded:
            found[number] = coded.count_classes(0, 1)[0][0].sum(axis=1).tolist()
    assert found[1][0] == 1199
    assert found[1200][0] == 0
    assert sum(found[1]) == sum(found[1200]) == 1200


@some("odd", ["red", 7, b"\xff", 2**64, Decimal("1e-60"), 0.5, [1], "\ud800"], ids=repr, keep=3)
def test_a_column_of_arrow_changes_nothing_about_objects_beside_it(odd: Any) -> None:
    """DuckDB alone would convert all columns to Arrow, which refuses values of several types."""
    colours = np.array(["red"] * 39 + [None], dtype=object)
    unused = np.array([1, 2**53 + 1] * 19 + [0, 0], dtype=object)
    colours[-1] = unused[-1] = odd
    size = pandas.array([7] * 40, dtype="int64[pyarrow]")
    objects = pandas.DataFrame({"unused": unused, "colour": colours}, dtype=object)
    frame = objects.assign(size=size, label="no")
    found = cells(frame, DOMAIN)
    assert (found[0][0], np.sum(found)) == (39 + (odd == "red"), 40)
    assert cells(frame.astype({"size": int}), DOMAIN) == found


@some(
    "unknown",
    [
        np.array([1j, 2]),
        np.array([1, 2], dtype="S1"),
        np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]"),
        pandas.arrays.SparseArray([1, 2]),
        pandas.period_range("2020-01-01", periods=2),
        pandas.array(["1", "2"], dtype=pandas.ArrowDtype(pyarrow.string())).astype("category"),
    ],
    ids=lambda values: str(values.dtype),
    keep=2,
)
def test_types_that_duckdb_does_not_know_are_read_as_objects(unknown: Any) -> None:
    """One value of another type would make objects of them, so they are not refused either."""
    values = {"colour": np.array(["red", "blue"], dtype=object), "label": np.array(["no", "no"])}
    frames: list[Any] = [pandas.DataFrame({**values, "size": unknown})]
    if isinstance(unknown, np.ndarray):
        frames.append({**values, "size": unknown})
    objects = pandas.DataFrame({**values, "size": np.array(list(unknown), dtype=object)})
    for frame in frames:
        assert [row[0] for row in cells(frame, DOMAIN)[:2]] == [1, 1]
        known = ["1", "2020-01-01"]
        assert counted(frame, known, "size") == counted(objects, known, "size")


class Unreadable:
    """An object without a text."""

    def __str__(self) -> str:
        raise RuntimeError("secret")


FORMS = ["objects", "categories", "sparse"]


@some(
    ("odd", "form"),
    [
        *product(["secret\ud800"], [*FORMS, "fixed width", "pandas text"]),
        *product([10**5000, Unreadable()], FORMS),
    ],
    keep=8,
    ids=lambda given: given if given in FORMS else type(given).__name__,
)
def test_a_value_that_has_no_text_in_unicode_is_missing(form: str, odd: Any) -> None:
    """It is paid for like any other: a refusal would show that there is one."""
    words = np.array(["red"] * 99 + [odd], dtype=object)
    text = {
        "objects": lambda: words,
        "fixed width": lambda: words.astype(str),
        # objects, because pandas 3 reads text as Arrow's, which is Unicode alone
        "categories": lambda: pandas.Categorical.from_codes(
            [0] * 99 + [1], pandas.Index(["red", odd], dtype=object)
        ),
        "pandas text": lambda: pandas.array(words, dtype="string[python]"),
        "sparse": lambda: pandas.arrays.SparseArray(words),
    }[form]()
    frame: Any = {"colour": text, "label": np.array(["no", "yes"] * 50, dtype=object)}
    frame |= {"unused": text, "size": np.ones(100)}
    rows = frame if isinstance(text, np.ndarray) else pandas.DataFrame(frame)
    domain = Domain((DOMAIN.attributes[0],), "label", ("no", "yes"))
    found = [cell[0] + cell[1] for cell in cells(rows, domain)]
    assert (found[0], sum(found)) == (99, 100)
    with encoded(rows, Domain(DOMAIN.attributes[1:], "label", ("no", "yes")), "colour") as coded:
        assert coded.count_leaves(0, 1).sum() == 1, "a row of the one person who has a text"


def test_a_number_that_is_no_character_is_missing() -> None:
    """NumPy reads it from memory; it cannot make an object of it."""
    for number in (0xD800, 0xDFFF, 0x110000, 2**32 - 1):
        for order in ("<", ">"):
            letters = np.array([ord("p"), ord("q"), number], f"{order}u4").view(f"{order}U1")
            frame = {"a": letters, "unused": letters, "y": np.array(["no"] * 3)}
            assert [cell[0] for cell in cells(frame, OF_TEXTS)][:2] == [1, 1], number


def arrow_text(values: list[bytes]) -> Any:
    """An Arrow text of these bytes, as Arrow reads it from a file."""
    unchecked = pyarrow.array(values, pyarrow.binary())
    return pyarrow.Array.from_buffers(pyarrow.string(), len(values), unchecked.buffers())


def as_dictionary(values: Any) -> Any:
    numbers = pyarrow.array(range(len(values)), pyarrow.int8())
    return pyarrow.DictionaryArray.from_arrays(numbers, values)


def as_pandas_text(values: Any) -> Any:
    plain = values.cast(pyarrow.binary()).cast(pyarrow.large_binary())
    return pandas.arrays.ArrowStringArray(pyarrow.chunked_array([plain.view("large_string")]))


@pytest.mark.parametrize(
    "given",
    [
        lambda ids, rest: pyarrow.table({"id": ids, **rest}),
        lambda ids, rest: pyarrow.table({"id": as_dictionary(ids), **rest}),
        lambda ids, rest: polars.from_arrow(pyarrow.table({"id": ids, **rest})),
        lambda ids, rest: pandas.DataFrame({"id": pandas.arrays.ArrowExtensionArray(ids), **rest}),
        lambda ids, rest: pandas.DataFrame({"id": as_pandas_text(ids), **rest}),
    ],
    ids=["arrow", "arrow categories", "polars", "pandas with arrow", "pandas text"],
)
def test_arrow_text_that_is_no_unicode_is_missing(given: Callable[..., Any]) -> None:
    """DuckDB sorts by ids, and takes a byte that no text has for the end of one."""
    first, second = b"a\xff" + b"\x01" * 6, b"a\xff" + b"\x02" * 10
    ids = arrow_text([first, second, b"p\xff\xe9Zx", b"ok", "é".encode()])
    rest = {"colour": ["red", "blue", "red", "red", "blue"], "size": [0] * 5, "label": ["no"] * 5}
    with encoded(given(ids, rest), DOMAIN, "id") as coded:
        assert [row[0] for row in coded.count_classes(0, 1)[0][0]] == [1, 1, 0, 0]
    words = {"name": "id", "kind": "categorical", "domain": ["ok", "é"]}
    label = {"name": "label", "kind": "categorical", "domain": ["no", "yes"]}
    found = cells(
        given(ids, rest), domain_from_mapping({"target": "label", "column": [words, label]})
    )
    assert [row[0] for row in found] == [1, 1, 0, 3]


EQUAL = [  # categories that pandas may take for each other, in the order of a domain
    ([str(2**53), str(2**53 + 1)], True),
    (["1", "1.0"], True),
    (["true", "1"], True),
    (["2020-01-01", "2020-01-01 00:00:00"], True),
    ([str(2**53 + 1), "3"], False),
    (["1", "01"], False),
    (["250.0", "250.00"], False),
]


@some(("categories", "refused"), EQUAL, keep=3)
def test_categories_that_a_frame_may_hold_as_one_value_are_refused(
    categories: list[str], refused: bool, tmp_path: Path
) -> None:
    """One missing value makes floating-point numbers of whole ones, which may then be equal."""
    con, plain = duckdb.connect(), ["no", "yes"]
    for q, y in ((categories, plain), (plain, categories)):
        columns = [{"name": n, "kind": "categorical", "domain": d} for n, d in (("q", q), ("y", y))]
        domain = domain_from_mapping({"target": "y", "column": columns})
        frame = pandas.DataFrame({"q": q, "y": y}, dtype=object)
        options = {"domain": domain, "epsilon": 1, "ledger": tmp_path / "l", "dataset": "d"}
        if refused:
            with pytest.raises(DpforestError, match="may be one value in a DataFrame"):
                train(con, frame, **options)
        else:
            train(con, frame, **options)
        con.execute("CREATE OR REPLACE TABLE t AS FROM frame")
        train(con, "t", domain=domain, epsilon=1, ledger=tmp_path / "t")
    assert (tmp_path / "l").exists() != refused


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame_without_columns_is_refused(library: str, tmp_path: Path) -> None:
    frame = pytest.importorskip(library).DataFrame()
    with pytest.raises(DpforestError, match="The frame has no columns"):
        fitted(duckdb.connect(), frame, ledger=tmp_path / "l", dataset="d")


def test_a_frame_with_a_name_that_is_no_unicode_is_refused(tmp_path: Path) -> None:
    columns = {"size": [1], "z\ud800": [1], "label": ["no"]}
    frame = {name: np.array(values) for name, values in columns.items()}
    with pytest.raises(DpforestError, match="not valid Unicode"):
        fitted(duckdb.connect(), frame, ledger=tmp_path / "l", dataset="d")
