"""One value of a DataFrame changes nothing about how the others are read."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from engine_conformance import DOMAIN
from source_rows import (
    beside_y,
    cells,
    cells_of_each,
    counted,
    encoded,
    fitted,
    pandas,
    polars,
    pyarrow,
)
from variants import some

from dpforest_duckdb import prepare, train
from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.domain import Domain
from dpforest_duckdb.domain.file import domain_from_mapping
from dpforest_duckdb.domain.types import BIGINT, DOUBLE, VARCHAR, column_type
from dpforest_duckdb.engine.base import Coding
from dpforest_duckdb.engine.columns.casts import plain_text_sql, shortest
from dpforest_duckdb.engine.columns.written_values import LEAST_FLOAT, plain_text, shortest_number
from dpforest_duckdb.engine.sources.pandas_texts import with_texts
from dpforest_duckdb.errors import PublicFactWarning
from dpforest_duckdb.privacy.unit import ROW
from dpforest_duckdb.sql import Sql
from dpforest_duckdb.training.opening import find_rows


def test_whole_numbers_from_fractions_keep_their_side_of_an_edge() -> None:
    values = [-0.5, 0, 0.5, 1, 1.001, 2, 9e18, -9e18, np.inf, -np.inf, np.nan]
    frame = {"size": np.array(values), "label": np.array(["no"] * len(values), dtype=object)}
    domain = Domain((DOMAIN.attributes[1],), "label", ("no", "yes"))
    with encoded(frame, domain) as coded:
        counts = coded.count_classes(0, 1)[0][0, :, 0].tolist()
    edges = [0, 1, 2]
    expected = [0] * 5
    for value in values:
        expected[4 if np.isnan(value) else int(np.searchsorted(edges, value))] += 1
    assert counts == expected


def test_a_frame_with_missing_numbers_is_read_in_the_same_types() -> None:
    """One row makes a pandas column of numbers floating: the model must not show it."""
    whole = pandas.DataFrame({"size": [1, 2], "colour": [1, 2], "label": ["no", "yes"]})
    holed = pandas.DataFrame({"size": [1, None], "colour": [1, None], "label": ["no", None]})
    domain = domain_from_mapping(
        {
            "target": "label",
            "column": [
                {"name": "size", "kind": "numeric", "lower": 0, "upper": 9},
                {"name": "colour", "kind": "categorical", "domain": [1, 2]},
                {"name": "label", "kind": "categorical", "domain": ["no", "yes"]},
            ],
        }
    )
    types = []
    for frame in (whole, holed):
        found = find_rows(duckdb.connect(), frame)
        types.append(found.engine.typed(found.table, domain, ROW).columns)
    assert types[0] == types[1] == {"size": BIGINT, "colour": DOUBLE, "label": VARCHAR}


@some(
    ("labels", "library"),
    itertools.product([[0, 1], [0.0, 1.0], ["0", "1"], ["0.0", "1"]], [dict, pandas.DataFrame]),
    keep=3,
)
def test_one_value_of_a_frame_does_not_change_how_the_others_are_read(
    library: Callable[[Any], Any], labels: list[Any]
) -> None:
    """A word makes objects or text of a column of numbers, a missing value makes floats of it."""
    colours, domain = (
        [1, 2, 1.0, 2.0],
        domain_from_mapping(
            {
                "target": "label",
                "column": [
                    {"name": "colour", "kind": "categorical", "domain": [1, 2]},
                    {"name": "label", "kind": "categorical", "domain": [0, 1]},
                ],
            }
        ),
    )
    found = []
    for more in ([], [np.nan], ["n/a"], [0.5]):
        given = {"colour": colours + more, "label": labels * 2 + more}
        kind = object if more == ["n/a"] else None
        rows = find_rows(
            duckdb.connect(),
            library({name: np.array(values, dtype=kind) for name, values in given.items()}),
        )
        info = rows.engine.typed(rows.table, domain, ROW)
        with rows.engine.snapshot(info) as snapshot:
            coded = snapshot.encode(
                Coding(domain.bind(info.columns), ROW, trees=1, sample="all", salt=1)
            )
            found.append((info.columns, coded.count_classes(0, 1)[0].tolist()))
    assert all(counts == found[0][1] for _, counts in found)
    assert np.sum(found[0][1]) == 4
    assert all(kinds["colour"] == DOUBLE for kinds, _ in found)
    assert all(kinds["label"] == BIGINT for kinds, _ in found), "the model has this type"


@pytest.mark.parametrize("more", [None, "unknown", dt.datetime(2020, 1, 5), 5])
def test_one_value_does_not_decide_whether_moments_in_a_time_zone_are_read(more: Any) -> None:
    """pandas makes objects of all, which are read by their text."""
    edges = [dt.date(2020, 1, day) for day in (2, 3, 4)]
    column = {"name": "q", "kind": "numeric", "edges": edges}
    domain = beside_y(column)
    moments = [dt.datetime(2020, 1, 2 + i % 2, tzinfo=dt.UTC) for i in range(8)]

    def counts(column: list[Any]) -> np.ndarray[Any, Any]:
        return np.array(cells(pandas.DataFrame({"q": column, "y": "no"}), domain))

    expected = counts(moments)
    assert expected[:, 0].tolist()[:2] == [4, 4]
    assert np.abs(counts([*moments, more]) - expected).sum() == 1


FAR = ["20200-01-03", "9999-12-31T23:00", "10000-01-01T01:00", "0001-01-01", "-0005-01-01"]


@some(
    ("far", "zone", "arrow"),
    itertools.product(FAR, ["UTC", "Asia/Tokyo", "America/New_York"], [False, True]),
    keep=len(FAR),
)
def test_a_far_moment_in_a_time_zone_ends_no_run(far: str, zone: str, arrow: bool) -> None:
    """Some have no text in Python, and so are missing."""
    column = {"name": "q", "kind": "numeric", "edges": [dt.date(2020, 1, d) for d in (2, 3)]}
    domain = beside_y(column)

    def counts(moments: list[str]) -> np.ndarray[Any, Any]:
        plain = pandas.Series(np.array(moments, "M8[s]"))
        zoned = plain.dt.tz_localize("UTC").dt.tz_convert(zone)
        if arrow:
            zoned = zoned.astype(pandas.ArrowDtype(pyarrow.timestamp("s", tz=zone)))
        return np.array(cells(pandas.DataFrame({"q": zoned, "y": "no"}), domain))

    usual = ["2020-01-02", "2020-01-03", "NaT"]
    assert np.abs(counts([*usual, far]) - counts(usual)).sum() == 1


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
def test_moments_before_1678_have_the_offset_of_that_year(zone: str) -> None:
    """pandas looks for older offsets where it may not read, and often ends the process.

    From pandas 3 on, old offsets have seconds.
    """
    first = pandas.Timestamp("1678-01-01", tz="UTC").tz_convert(zone)
    texts: list[str | None] = []
    for moment in (dt.datetime(1, 1, 1), dt.datetime(1677, 12, 31, 12)):
        try:
            texts.append(f"{moment + first.utcoffset()}{str(first)[19:]}")
        except OverflowError:
            texts.append(None)
    moments = pandas.Series(np.array(["0001-01-01", "1677-12-31T12:00", "NaT"], "M8[s]"))
    frame = pandas.DataFrame({"q": moments.dt.tz_localize("UTC").dt.tz_convert(zone)})
    assert with_texts(frame)["q"].tolist() == [*texts, None]
    assert texts[0] is not None or zone == "America/New_York"


@pytest.mark.parametrize("form", ["categories", "categories of Arrow", "intervals"])
@pytest.mark.parametrize("first", ["0001-06-01", "200000-01-01"])
def test_far_moments_in_categories_and_intervals_end_no_run(form: str, first: str) -> None:
    """They would become objects, of which pandas ends the process too."""
    moments = pandas.Series(np.array([first, "2020-01-02", "2020-01-02", "NaT"], "M8[s]"))
    zoned = moments.dt.tz_localize("UTC").dt.tz_convert("America/New_York")
    text = "2020-01-01 19:00:00-05:00"
    if form == "categories of Arrow":
        zoned = zoned.astype(pandas.ArrowDtype(pyarrow.timestamp("s", tz="America/New_York")))
    if form == "intervals":
        zoned = pandas.Series(pandas.arrays.IntervalArray.from_arrays(zoned, zoned, "left"))
        text = f"[{text}, {text})"
    frame = pandas.DataFrame({"q": zoned if form == "intervals" else zoned.astype("category")})
    assert with_texts(frame)["q"].tolist()[1:] == [text, text, None]
    assert counted(frame, [text, "x"]) == [2, 0]


def test_moments_in_a_time_zone_are_predicted_as_they_are_trained(
    con: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    """In their own zone, whatever that of the connection is; without a value far from today."""
    column = {"name": "q", "kind": "numeric", "edges": [dt.date(2019, 12, 31)]}
    domain = beside_y(column)
    moments = np.array(["2019-12-31T20:00", "2019-12-30", "20200-01-01"] * 300, "M8[s]")
    zoned = pandas.Series(moments).dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")
    frame = pandas.DataFrame({"q": zoned, "y": ["yes", "no", "yes"] * 300})
    con.execute("SET TimeZone = 'America/New_York'")
    forest = train(
        con, frame, domain=domain, epsilon=100, recipe="dpdf", depth=1, privacy_unit="row",
        ledger=tmp_path / "ledger", dataset="d",
    )  # fmt: skip
    found = forest.predict(con, frame).filter("prediction = y").aggregate("count(*)").fetchall()
    assert found == [(900,)]


@pytest.mark.parametrize(
    "column",
    [
        pandas.Series(pandas.to_timedelta([1, 2, 3], unit="D")).astype("category"),
        pandas.Series([dt.time(1), dt.time(2)]).astype(pandas.ArrowDtype(pyarrow.time64("us"))),
    ],
    ids=["categories", "Arrow"],
)
def test_one_value_does_not_decide_whether_times_are_read(column: Any) -> None:
    bounds = {"name": "q", "kind": "numeric", "lower": 0, "upper": 9}
    domain = beside_y(bounds)
    more = pandas.concat([column.astype(object), pandas.Series(["w"], dtype=object)])
    found = [cells(pandas.DataFrame({"q": each, "y": "no"}), domain) for each in (column, more)]
    assert [rows[-1][0] for rows in found] == [len(column), len(column) + 1]


@pytest.mark.parametrize("more", [None, "unknown", 5])
@some("unit", ["s", "us", "ns"], keep=1)
def test_time_differences_are_never_refused_and_never_numbers(unit: str, more: Any) -> None:
    bounds = {"name": "q", "kind": "numeric", "lower": 0, "upper": 9}
    domain = beside_y(bounds)
    days = np.array([1, 2, 3], "m8[D]").astype(f"m8[{unit}]")
    series = pandas.Series(days)
    for column in (series, pandas.concat([series, pandas.Series([more], dtype=object)])):
        found = cells(pandas.DataFrame({"q": column, "y": "no"}), domain)
        assert found[-1][0] == 3 + (len(column) > 3 and more != 5)
    found = cells({"q": days, "y": np.array(["no"] * 3)}, domain)
    assert found[-1][0] == 3


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_a_moment_far_from_today_ends_no_run(unit: str) -> None:
    """DuckDB has no text of it, and its database cannot be used after it was asked for one."""
    edges = [dt.date(2020, 1, 1), dt.date(2021, 1, 1)]
    moments = np.array(["2020-06-01", "300000-01-01", "NaT"], f"M8[{unit}]")
    for column in (
        {"name": "q", "kind": "numeric", "edges": edges},
        {"name": "q", "kind": "categorical", "domain": ["2020-06-01 00:00:00", "x"]},
    ):
        domain = beside_y(column)
        for frame in ({"q": moments}, pandas.DataFrame({"q": moments})):
            frame["y"] = np.array(["no"] * 3)
            assert sorted(row[0] for row in cells(frame, domain) if row[0]) in ([1, 2], [1, 1, 1])


CODES = [  # of categories, and a value of each
    (["01", "02"], ["01", "02"]),
    (["00501", "90210"], ["00501", "90210"]),
    (["+1", "-1"], ["+1", "-1"]),
    (["1.50", "2.25"], ["1.50", "2.25"]),
    (["1.0", "2.0"], ["1.0", "2.0"]),
    (["1", "unknown"], [1, "unknown"]),
    (["1", "2", "unknown"], [1, 2, "unknown"]),
    (["2020-01-01", "2020-01-02"], [dt.date(2020, 1, 1), dt.date(2020, 1, 2)]),
    (["1.5", "unknown"], [Decimal("1.5"), "unknown"]),
    (["0", "1"], [False, True]),
    (["1", "2"], [True, 2]),
    (["true", "b"], [True, "b"]),
    (["\u0661", "\u0662"], ["\u0661", "\u0662"]),
    (["12345678901234567", "3"], [12345678901234567, 3]),
]


@some(("categories", "values"), CODES, keep=5)
@pytest.mark.parametrize(
    "more",
    [
        "n/a",
        pytest.param(None, marks=pytest.mark.more),
        *(
            pytest.param(value, marks=pytest.mark.slow)
            for value in (2.5, Decimal("1.234567"), dt.datetime(2021, 5, 6, 7))
        ),
    ],
)
def test_values_of_a_frame_are_their_categories_beside_any_other_value(
    categories: list[str], values: list[Any], more: Any
) -> None:
    read = {"kind": "categorical", "domain": categories}
    alternatives = itertools.product(*([value, *alike(value)] for value in values))
    columns = [[*same, *same, more] for same in alternatives]
    for make in (as_objects, pandas.DataFrame):
        for column, found in zip(columns, cells_of_each(make, columns, **read), strict=True):
            assert found[: len(categories)].tolist() == [2] * len(categories), (column, make)
    # one kind alone, so that pandas has no objects
    columns = [[*[only] * 3, *([more] if isinstance(more, float) else [None])] for only in values]
    for only, found in zip(values, cells_of_each(pandas.DataFrame, columns, **read), strict=True):
        assert found[: len(categories)].tolist() == [3 * (value == only) for value in values], only


def as_objects(columns: dict[str, list[Any]]) -> dict[str, Any]:
    return {name: np.array(values, dtype=object) for name, values in columns.items()}


def alike(value: Any) -> list[Any]:
    """What pandas makes of a value because of others in its column."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53:
        return [float(value)]
    return [dt.datetime(value.year, value.month, value.day)] if isinstance(value, dt.date) else []


def test_truth_values_of_a_frame_are_0_and_1_whatever_the_others_are() -> None:
    truth = {"kind": "categorical", "domain": [False, True]}
    domain = domain_from_mapping(
        {"target": "label", "column": [{"name": "smoker", **truth}, {"name": "label", **truth}]}
    )
    found = []
    for kind, more in itertools.product((int, float), ([], [np.nan], ["n/a"])):
        smoker = [*map(kind, (0, 1, 2, 0, 1, 2)), *more]
        frame = {"smoker": np.array(smoker, dtype=object if more == ["n/a"] else None)}
        frame["label"] = np.array([True, False] * 3 + [True] * len(more))
        with encoded(frame, domain) as coded:
            found.append(coded.count_classes(0, 1)[0][0, :2].tolist())
    assert found == [[[1, 1], [1, 1]]] * 6


@pytest.mark.parametrize("kind", [object, "datetime64[ns]"])
def test_dates_of_a_frame_may_be_text(kind: Any, tmp_path: Path) -> None:
    bounds = {"lower": dt.date(2020, 1, 1), "upper": dt.date(2029, 12, 31)}
    domain = beside_y({"name": "since", "kind": "numeric", **bounds})
    days = ["2021-03-04", "2027-03-04"] * 300
    frame = pandas.DataFrame({"since": np.array(days, dtype=object), "y": ["no", "yes"] * 300})
    frame = frame.astype({"since": kind})
    options = {"domain": domain, "epsilon": 50, "dataset": "d", "ledger": tmp_path / "l"}
    con = duckdb.connect()
    with pytest.warns(PublicFactWarning):
        forest = fitted(con, frame, **options)
    assert (forest.predict(con, frame).df()["prediction"] == frame["y"]).all()


@some("lower", [dt.date(2021, 1, 1), dt.datetime(2021, 1, 1), 0, 0.0], keep=2)
def test_one_word_changes_no_time_or_number_of_a_frame(lower: Any) -> None:
    """DuckDB rounds nanoseconds up to the next day, but leaves them out of text."""
    edge, upper = {
        dt.date: (dt.date(2021, 7, 1), dt.date(2021, 12, 31)),
        dt.datetime: (dt.datetime(2021, 7, 1, 23, 59, 59, 999999), dt.datetime(2021, 12, 31)),
        int: (50, 100),
        float: (123456789.123, 1e9),
    }[type(lower)]
    attribute = {"name": "q", "kind": "numeric", "lower": lower, "upper": upper, "edges": [edge]}
    domain = beside_y(attribute)
    days = ("2021-07-01", "2021-09-01")
    ends = [pandas.Timestamp(f"{day} 23:59:59.999999999") for day in days]
    decimals = [Decimal("123456789.1230000000"), Decimal("50.0000000000")]
    for values, kind in (
        (ends, "datetime64[ns]"),
        (ends, "datetime64[us]"),
        ([True, False], "boolean"),
        (decimals, pandas.ArrowDtype(pyarrow.decimal128(20, 10))),
    ):
        column = pandas.Series(values, dtype=kind)
        missing = pandas.concat([column, pandas.Series([None], dtype=column.dtype)])
        words = pandas.concat([column, pandas.Series(["n/a"], dtype=object)])
        found = [cells(pandas.DataFrame({"q": q, "y": "no"}), domain) for q in (missing, words)]
        assert found[0] == found[1], kind


def test_sql_and_python_write_numbers_and_texts_alike() -> None:
    random = np.random.default_rng(1)
    parts = (
        random.integers(0, 2**32, 8_000, dtype=np.uint32).view(np.float32),
        (random.integers(0, 4_000_000, 4_000) / 16).astype(np.float32),
        random.integers(2**26, 2**31, 4_000).astype(np.float32),
        np.array([128.95312, 16384.062, 67108980, 431011616, 1e-45, 3.4e38, 2**24], np.float32),
    )
    values = np.concatenate(parts)
    values = values[np.isfinite(values)]
    con = duckdb.connect()
    con.register("f", {"x": values})
    wanted = [float(str(value)) * bool(abs(value) >= LEAST_FLOAT) for value in values]
    found = con.sql(f"SELECT {shortest(Sql('x'), column_type('FLOAT'))} AS x FROM f").fetchnumpy()[
        "x"
    ]
    assert found.tolist() == wanted
    assert [shortest_number(repr(float(value))) for value in values] == wanted
    texts = ["b'1'", "b'", "b'a", 'b"', 'b"it"', "(1+0j)", "(1-0j)", "0j", "(0j)", "", "nan", "NaT"]
    texts += [
        "b''",
        "b'a\nb'",
        "b'a\"",
        "b'a\n",
        "(a\n+0j)",
        "a+0j)",
        "(1+0j)\n",
        "b'\u00e9'",
        "(b'1'",
    ]
    con.register("t", {"x": np.array(texts, dtype=object)})
    read = con.sql(f"SELECT {plain_text_sql('x')} FROM t").fetchall()
    assert [text for (text,) in read] == [plain_text(text) for text in texts]


@some(
    ("kind", "bounds"),
    [
        (np.float32, [0.1, 128.953122, 67108978.0]),
        (np.float64, [0.1, 67108978.0, 123456790]),
        (np.int64, [123456789, 123456790, 123456791]),
    ],
    keep=1,
)
@pytest.mark.more
def test_one_value_of_any_type_moves_no_other_number(kind: Any, bounds: list[float]) -> None:
    """NumPy and pandas make 64-bit numbers, complex numbers, bytes, text or objects of a column.

    0.1 of 32 bits is written so, but is 0.10000000149011612 in 64 bits.
    """
    read = {"kind": "numeric", "lower": 0.0, "upper": 1e9, "edges": bounds}
    values = np.array(bounds * 5, dtype=kind)
    expected, as_text = cells_of_each(dict, [values, values.astype(str)], **read)
    assert expected.sum() == 15
    assert (as_text == expected).all()
    others = (np.float64(0.5), True, 1 + 2j, "w", b"w", None)
    changed_by_one(values, others, expected, read)
    two = [np.append(np.append(values, more), None) for more in others]
    for more, found in zip(others, cells_of_each(dict, two, **read), strict=True):
        assert np.abs(found - expected).sum() <= 2, more


def changed_by_one(
    values: Any, others: Sequence[Any], expected: Integers, read: dict[str, Any]
) -> None:
    """Whatever one more value makes of a column, at most it and one other value move."""
    series = pandas.Series(values)
    forms: list[tuple[Callable[[Any], Any], Callable[[Any], Any]]] = [
        (dict, lambda more: np.append(values, more)),
        (dict, lambda more: np.array([*values, more])),
        (dict, lambda more: pandas.concat([series, pandas.Series([more])]).to_numpy()),
        (pandas.DataFrame, lambda more: np.append(values, more)),
        (pandas.DataFrame, lambda more: [*values, more]),
    ]
    for make, form in forms:
        for more, found in zip(
            others, cells_of_each(make, list(map(form, others)), **read), strict=True
        ):
            assert np.abs(found - expected).sum() <= 2, (more, make)


@some(
    "categories", [["0.1", "123456789"], ["67108872", "x"], ["b'1'", "(1+0j)x"], ["1", "a"]], keep=1
)
@pytest.mark.parametrize("kind", [np.float32, object])
def test_one_value_of_any_type_moves_no_other_category(categories: list[str], kind: Any) -> None:
    """Nor a missing value. What the domain does not list is one value, whatever the others are."""
    read = {"kind": "categorical", "domain": categories, "nullable": True}
    numbers = [0.1, 0.2, 1, 123456789, 67108872, 2**62, 2**62 + 1]
    missing = [np.nan] * 3 if kind == np.float32 else []
    values = np.array([*numbers, *missing], dtype=kind)
    (expected,) = cells_of_each(dict, [values], **read)
    assert expected.sum() == len(values)
    changed_by_one(values, (np.float64(0.5), 1 + 2j, "w", b"w", None), expected, read)


def test_bytes_are_read_as_the_text_that_one_word_makes_of_them() -> None:
    for values in ([b"2020-01-01", b"2021-01-01"], [b"a\\b", b'it\'s "x"']):
        known = [value.decode() for value in values]
        for more in (np.array(values), np.append(np.array(values), "w")):
            assert counted({"q": more}, known) == [1, 1]
    first, last = dt.date(2020, 1, 1), dt.date(2022, 1, 1)
    days = {"name": "q", "kind": "numeric", "lower": first, "upper": last}
    domain = beside_y(days)
    column = np.array([b"2020-01-01", b"2021-01-01"])
    for more in (column, np.append(column, "w"), np.append(column, None)):
        found = np.array(cells({"q": more, "y": np.array(["no"] * len(more))}, domain))
        assert found.sum() >= 2, more


def test_a_missing_number_of_polars_is_missing_beside_a_word() -> None:
    column = {"name": "q", "kind": "categorical", "domain": ["1", "a"], "nullable": True}
    domain = beside_y(column)
    for more, expected in (([], [1, 0, 0, 1]), (["w"], [1, 0, 1, 1])):
        values = polars.Series([1.0, np.nan, *more], strict=False)
        found = cells(polars.DataFrame({"q": values, "y": "no"}), domain)
        assert [cell[0] for cell in found] == expected


def test_fractions_stay_in_predicted_rows_and_get_a_note_in_training(tmp_path: Path) -> None:
    """Bounds without a decimal point declare whole numbers; what is returned is not rounded."""
    con = duckdb.connect()
    frame = con.sql(
        "SELECT i % 100 / 100.0 AS part, CASE WHEN i % 100 > 50 THEN 'yes' ELSE 'no' END AS label "
        "FROM range(3000) r(i)"
    ).df()
    given = {"epsilon": 1000, "dataset": "d", "ledger": tmp_path / "ledger"}
    noted = []
    for lower, upper in ((0, 1), (0.0, 1.0), (0, 40)):
        part = {"name": "part", "kind": "numeric", "lower": lower, "upper": upper}
        label = {"name": "label", "kind": "categorical", "domain": ["no", "yes"]}
        domain = domain_from_mapping({"target": "label", "column": [part, label]})
        run = prepare(con, frame, domain=domain, **given)
        noted.append(any("fractions are rounded up" in note for note in run.notes))
        predicted = run.execute().predict(con, frame).df()
        assert (predicted["part"] == frame["part"]).all()
    assert noted == [True, False, False]


@some(
    ("extra", "kind"),
    itertools.product([None, "unknown", 0.5], ["float32", "float64", "Float32"]),
    keep=5,
)
def test_a_word_among_narrow_numbers_changes_no_other_row(kind: str, extra: object) -> None:
    """As text, 0.1 of 32 bits is 0.1; as an object it is 0.10000000149."""
    values = pandas.Series([0.1, 0.3, 0.1], dtype=kind)
    column = values if extra is None else pandas.Series([*values, extra])
    frame = pandas.DataFrame({"x": column, "y": ["no"] * len(column)})
    attribute = {"name": "x", "kind": "categorical", "domain": ["0.1", "0.3"]}
    domain = beside_y(attribute)
    with encoded(frame, domain) as coded:
        (counts,) = coded.count_classes(0, 1)
    assert counts[0, :2, 0].tolist() == [2, 1]


@pytest.mark.parametrize(
    ("categories", "values", "kind"),
    [
        (["0.10000000149011612", "0.30000001192092896"], [0.1, 0.3], "float32"),
        (["16777217", "16777216"], [2**24 + 1, 2**24], "int64"),
        (["01", "1.0"], [7, 1], "int64"),
    ],
)
def test_categories_of_many_digits_are_compared_as_numbers(
    categories: list[str], values: list[Any], kind: str
) -> None:
    column = pandas.Series(values * 2, dtype=kind)
    expected = counted(pandas.DataFrame({"q": column}), categories)
    assert sum(expected) in (4, 2)
    assert expected[1] == 2
    for more in (None, "x", 0.5):
        longer = pandas.concat(
            [column, pandas.Series([more], dtype=object if more == "x" else float)]
        )
        assert counted(pandas.DataFrame({"q": longer}), categories) == expected, more


@pytest.mark.parametrize(
    ("categories", "values"),
    [
        (["b'xy", "x"], ["b'xy", "x", "b'xz", "b'x'", "b'x"]),
        (['b"s', ""], ['b"s', "", "b's", "b''", 'b"t']),
        (["a+0j)", "(b+0j"], ["a+0j)", "(b+0j", "c+0j)", "b", "(c"]),
    ],
)
@pytest.mark.parametrize("more", [None, b"w", 1 + 0j])
def test_a_category_that_begins_as_bytes_or_numbers_do_is_itself(
    categories: list[str], values: list[str], more: Any
) -> None:
    """Only what Python writes around a whole value is left out."""
    column = np.array([*values, more], dtype=object)
    one = 1 + (values[3] == "b'x'" or values[3] == "b''")
    assert counted({"q": column}, categories) == [1, one]
