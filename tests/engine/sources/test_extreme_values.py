"""No value of a file or DataFrame, however large or small, ends a run or becomes another unit."""

from __future__ import annotations

import datetime as dt
import struct
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
from source_rows import OF_TEXTS, beside_y, cells, encoded, pandas, polars, pyarrow
from variants import some

from dpforest_duckdb import DpforestError

NUMBERS = {"name": "q", "kind": "numeric", "lower": 0, "upper": 9, "edges": [0, 5]}
DAYS = {"name": "q", "kind": "numeric", "edges": [dt.date(2020, 1, 1), dt.date(2021, 1, 1)]}


def arrow(values: list[int], kind: Any) -> Any:
    """An Arrow table with a column `q` of these numbers in another type."""
    if pyarrow.types.is_decimal(kind):
        held = b"".join(value.to_bytes(16, "little", signed=True) for value in values)
        column = pyarrow.Array.from_buffers(kind, len(values), [None, pyarrow.py_buffer(held)])
    else:
        column = pyarrow.array(values, f"int{kind.bit_width}").view(kind)
    return pyarrow.table({"q": column, "a": ["x"] * len(values), "y": ["no"] * len(values)})


@pytest.mark.parametrize("scale", [0, 5])
@pytest.mark.parametrize("read", [{"edges": [0, 5]}, {"domain": ["1", "5"]}], ids=str)
def test_the_least_decimal_of_128_bits_ends_no_run(
    read: dict[str, Any], scale: int, tmp_path: Path
) -> None:
    """`to_arrow_table` of a HUGEINT makes it. DuckDB cannot write it as text."""
    domain = beside_y(
        {"name": "q", "kind": "numeric" if "edges" in read else "categorical", **read}
    )
    table = arrow([10**scale, 5 * 10**scale, -(2**127)], pyarrow.decimal128(38, scale))
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    for rows in (table, tmp_path / "t.parquet"):
        found = [cell[0] for cell in cells(rows, domain)]
        assert found == ([1, 2, 0, 0] if "edges" in read else [1, 1, 1, 0])


@some(
    ("attribute", "kind", "library"),
    product([NUMBERS, DAYS], ["timestamp[s]", "timestamp[ms]", "date64"], ["Arrow", "polars"]),
    keep=2,
)
def test_a_far_moment_that_is_no_number_ends_no_run(
    attribute: dict[str, Any], kind: str, library: str
) -> None:
    moment = pyarrow.date64() if kind == "date64" else pyarrow.timestamp(kind[10:-1])
    for far in (2**62, -(2**62), 2**63 - 1, -(2**63) + 1):
        table = arrow([0, 86_400_000, far], moment)
        rows = polars.from_arrow(table) if library == "polars" else table
        assert np.sum(cells(rows, beside_y(attribute))) == 3


@some(("fine", "zone"), product(["s", "ms", "us", "ns"], [None, "Europe/Berlin"]), keep=4)
def test_units_in_types_of_time_stay_apart_however_far_or_near(fine: str, zone: str | None) -> None:
    kind = pyarrow.timestamp(fine, zone) if zone else pyarrow.duration(fine)
    table = arrow([0, 1, 2, 1000, 1001, 2**62, 2**62 + 1, -(2**62), -(2**63) + 1], kind)
    assert units(table) == len(table)
    assert units(table.set_column(0, "q", table["q"].dictionary_encode())) == len(table)
    if fine != "s":  # which polars converts, past the end of its numbers
        assert units(polars.from_arrow(table)) == len(table)


def test_dates_in_milliseconds_stay_apart_and_are_categories() -> None:
    table = arrow([0, 86_400_000, 86_400_001, 2**62, 2**62 + 1], pyarrow.date64())
    assert units(table) == 5
    read = {"name": "q", "kind": "categorical", "domain": ["1970-01-01", "1970-01-02"]}
    assert [cell[0] for cell in cells(table, beside_y(read))][:2] == [1, 1]
    assert cells(table.slice(0, 2), beside_y(DAYS))[0][0] == 2


def beside(rows: int) -> dict[str, Any]:
    """The other columns of a dictionary of arrays."""
    return {"a": np.array(["x"] * rows), "y": np.array(["no"] * rows)}


def units(rows: Any) -> int:
    """How many units the column `q` has."""
    domain = beside_y({"name": "a", "kind": "categorical", "domain": ["x"]})
    with encoded(rows, domain, "q") as coded:
        return int(np.sum(coded.count_classes(0, 1)[0]))


def test_units_a_nanosecond_apart_are_two() -> None:
    near = [0, 1, 2, 1000, 1001]
    intervals = pyarrow.array([pyarrow.MonthDayNano([0, 0, each]) for each in near])
    times = arrow(near, pyarrow.time64("ns"))["q"]
    for column in (intervals, times):
        assert units(pyarrow.table({"q": column, "a": ["x"] * 5, "y": ["no"] * 5})) == 5
        held = pandas.array(column, dtype=pandas.ArrowDtype(column.type))
        assert units(pandas.DataFrame({"q": held, "a": "x", "y": "no"})) == 5
    for unit in ("ns", "ps"):
        assert units({"q": np.array(near, f"m8[{unit}]"), **beside(5)}) == 5


def test_time_differences_of_numpy_are_units_however_long_they_are() -> None:
    for unit in ("D", "s", "ms", "us"):
        long = np.array([0, 1, 2, 2**62, 2**62 + 1, -(2**62), -(2**63) + 1], f"m8[{unit}]")
        assert units({"q": long, **beside(len(long))}) == len(long)


@pytest.mark.parametrize("fine", ["s", "ms", "us", "ns"])
def test_times_of_day_of_pandas_are_read_as_python_writes_them(fine: str) -> None:
    """And a number that is no time of day ends no run."""
    kind = pyarrow.time64(fine) if fine in ("us", "ns") else pyarrow.time32(fine)
    second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[fine]
    far = 2**31 - 1 if kind.bit_width == 32 else 2**62
    times = [dt.time(0), dt.time(1), dt.time(1, 0, 1)] + [dt.time(1, 0, 0, 500_000)] * (fine != "s")
    numbers = [0, 3600 * second, 3601 * second, 3600 * second + second // 2][: len(times)]
    held = pandas.array(arrow([*numbers, -1, far], kind)["q"], dtype=pandas.ArrowDtype(kind))
    frame = pandas.DataFrame({"q": held, "a": "x", "y": "no"})
    read = {"name": "q", "kind": "categorical", "domain": [str(time) for time in times]}
    found = [cell[0] for cell in cells(frame, beside_y(read))]
    assert found == [1] * len(times) + [2, 0]
    assert units(frame) == len(frame)


def test_damaged_geometry_ends_no_run() -> None:
    geometry = {"ARROW:extension:name": "geoarrow.wkb", "ARROW:extension:metadata": "{}"}
    point = struct.pack("<BIdd", 1, 1, 1.0, 2.0)
    table = pyarrow.Table.from_arrays(
        [pyarrow.array([point, b"", point[:-1], b"\xff"]), ["x"] * 4, ["no"] * 4],
        schema=pyarrow.schema(
            [
                pyarrow.field("q", pyarrow.binary(), metadata=geometry),
                *((name, pyarrow.string()) for name in "ay"),
            ]
        ),
    )
    assert units(table) == 4


@pytest.mark.parametrize("kind", ["Int128", "UInt128"])
def test_a_number_of_128_bits_in_polars_ends_no_run(kind: str) -> None:
    """One number makes this type of the column."""
    numbers = [1, 2, 6, 2**127 if kind == "UInt128" else 2**126]
    frame = polars.DataFrame(
        {"q": polars.Series(numbers, dtype=getattr(polars, kind)), "a": "x", "y": "no"}
    )
    assert [cell[0] for cell in cells(frame, beside_y(NUMBERS))] == [0, 2, 2, 0]
    assert units(frame) == 4
    unused = beside_y({"name": "a", "kind": "categorical", "domain": ["x"]})
    assert cells(frame, unused)[0][0] == 4


@pytest.mark.parametrize("dictionary", [True, False])
def test_bytes_of_a_parquet_file_that_are_no_unicode_end_no_run(
    dictionary: bool, tmp_path: Path
) -> None:
    """They are another value, unless they may be a person's id: then two might become one."""
    held = pyarrow.array([b"p", b"q", b"\xff"], pyarrow.binary())
    texts = pyarrow.Array.from_buffers(pyarrow.string(), 3, held.buffers())
    table = pyarrow.table({"a": texts, "y": ["no"] * 3, "id": [1, 2, 3], "q": texts})
    file = tmp_path / "t.parquet"
    pyarrow.parquet.write_table(table, file, use_dictionary=dictionary)
    assert [cell[0] for cell in cells(file, OF_TEXTS)][:3] == [1, 1, 1]
    with encoded(file, OF_TEXTS, "id") as coded:
        assert coded.count_leaves(0, 1).sum() == 3
    with pytest.raises(DpforestError, match="withheld"), encoded(file, OF_TEXTS, "q"):
        pass
