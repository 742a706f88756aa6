"""No value of a file or DataFrame, however large or small, ends a run or becomes another unit."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
from source_rows import beside_y, cells, polars, pyarrow
from variants import some

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


@pytest.mark.parametrize("library", ["Arrow", "polars"])
@some("kind", ["timestamp[s]", "timestamp[ms]", "date64"], keep=2)
@pytest.mark.parametrize("attribute", [NUMBERS, DAYS], ids=["numbers", "days"])
def test_a_far_moment_that_is_no_number_ends_no_run(
    attribute: dict[str, Any], kind: str, library: str
) -> None:
    moment = pyarrow.date64() if kind == "date64" else pyarrow.timestamp(kind[10:-1])
    for far in (2**62, -(2**62), 2**63 - 1, -(2**63) + 1):
        table = arrow([0, 86_400_000, far], moment)
        rows = polars.from_arrow(table) if library == "polars" else table
        assert np.sum(cells(rows, beside_y(attribute))) == 3
