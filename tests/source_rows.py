"""The same rows in files, DataFrames and queries, and how the package counts them."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from engine_conformance import COLUMNS, DOMAIN, ROWS

from dpforest_duckdb import Forest, train
from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.domain import Domain
from dpforest_duckdb.domain.file import domain_from_mapping
from dpforest_duckdb.engine.base import CodedRows, Coding
from dpforest_duckdb.errors import NotPrivateWarning
from dpforest_duckdb.ledger.book import Ledger
from dpforest_duckdb.ledger.entries import Debit
from dpforest_duckdb.privacy.unit import PrivacyUnit
from dpforest_duckdb.training.opening import find_rows

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")

LABEL, NAMES = ("label", ("no", "yes")), list(COLUMNS)


def debits(book: Path) -> list[Debit]:
    """The runs that a ledger has."""
    return [entry for entry in Ledger(book).read().entries if isinstance(entry, Debit)]


def columns() -> dict[str, list[Any]]:
    return dict(zip(NAMES, map(list, zip(*ROWS, strict=True)), strict=True))


def arrays() -> dict[str, Any]:
    """NumPy arrays, with NaN for a missing number and None for missing text or a missing id."""
    rows = columns()
    return {
        "colour": np.array(rows["colour"], dtype=object),
        "size": np.array([np.nan if v is None else v for v in rows["size"]]),
        "who": np.array(rows["who"], dtype=object),
        "label": np.array(rows["label"], dtype=object),
    }


def database(tmp_path: Path) -> duckdb.DuckDBPyConnection:
    """A connection with the rows in a table `t`."""
    con = duckdb.connect()
    kinds = ", ".join(f'"{name}" {kind}' for name, kind in COLUMNS.items())
    con.execute(f"CREATE TABLE t ({kinds})")
    con.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", ROWS)
    return con


def csv_file(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    lines = [",".join("" if v is None else f" {v} " for v in row) for row in ROWS]
    path.write_text("\n".join([",".join(NAMES), *lines]) + "\n")
    return path


def parquet_file(tmp_path: Path) -> Path:
    path = tmp_path / "rows.parquet"
    with database(tmp_path) as con:
        con.table("t").write_parquet(str(path))
    return path


WAYS: dict[str, Callable[[duckdb.DuckDBPyConnection, Path], Any]] = {
    "csv": lambda con, folder: csv_file(folder),
    "parquet": lambda con, folder: parquet_file(folder),
    "arrays": lambda con, folder: arrays(),
    "pandas": lambda con, folder: pandas.DataFrame(arrays()),
    "pandas categories": lambda con, folder: pandas.DataFrame(arrays()).astype(
        {"colour": "category", "label": "category"}
    ),
    "pandas objects": lambda con, folder: pandas.DataFrame(columns(), dtype=object),
    "polars": lambda con, folder: polars.DataFrame(columns()),
    "polars categories": lambda con, folder: polars.DataFrame(columns()).with_columns(
        polars.col("colour", "label").cast(polars.Categorical)
    ),
    "arrow": lambda con, folder: polars.DataFrame(columns()).to_arrow(),
    "relation": lambda con, folder: con.sql("FROM t WHERE true"),
}


def fitted(con: duckdb.DuckDBPyConnection, rows: Any, **options: Any) -> Forest:
    given = {"domain": DOMAIN, "epsilon": 1, "recipe": "greedy-tree", **options}
    with warnings.catch_warnings(action="ignore", category=NotPrivateWarning):
        return train(con, rows, **given)


def beside_y(*columns: dict[str, Any]) -> Domain:
    """A domain of these attributes, and of a target `y` that is `no` or `yes`."""
    label = {"name": "y", "kind": "categorical", "domain": ["no", "yes"]}
    return domain_from_mapping({"target": "y", "column": [*columns, label]})


OF_TEXTS = beside_y({"name": "a", "kind": "categorical", "domain": ["p", "q"]})
DOUBLED: dict[str, list[Any]] = {"a": ["p", "q"], "y": ["no", "yes"]}


@contextmanager
def encoded(rows: Any, domain: Domain, unit: str = "row", **coding: Any) -> Iterator[CodedRows]:
    """The coded rows of a source."""
    found = find_rows(_connection(), rows)
    info = found.engine.typed(found.table, domain, PrivacyUnit(unit))
    given = {"trees": 1, "sample": "all", "salt": 1, **coding}
    with found.engine.snapshot(info) as snapshot:
        yield snapshot.encode(Coding(domain.bind(info.columns), PrivacyUnit(unit), **given))


@functools.cache
def _connection() -> duckdb.DuckDBPyConnection:
    """A connection to read sources with, which takes as long to open as a source to read."""
    return duckdb.connect()


def cells(rows: Any, domain: Domain) -> list[list[int]]:
    """How many rows each cell of the first attribute has, by class."""
    with encoded(rows, domain) as coded:
        return coded.count_classes(0, 1)[0][0].tolist()


def cells_of_each(
    make: Callable[[Any], Any], columns: Sequence[Any], **read: Any
) -> list[Integers]:
    """How many rows each cell of each column has, in one frame of columns of one length."""
    frame = make({f"q{i}": column for i, column in enumerate(columns)})
    frame["y"] = np.array(["no"] * len(columns[0]), dtype=object)
    domain = beside_y(*({"name": f"q{i}", **read} for i in range(len(columns))))
    with encoded(frame, domain) as coded:
        return [table[0, :, 0] for table in coded.count_classes(0, 1)]


def counted(frame: Any, categories: list[str], column: str = "q") -> list[int]:
    """How many rows of a frame have each category of a column."""
    frame["y"] = np.array(["no"] * len(frame[column]), dtype=object)
    domain = beside_y({"name": column, "kind": "categorical", "domain": categories})
    return [row[0] for row in cells(frame, domain)[: len(categories)]]
