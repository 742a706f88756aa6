"""Parquet files that Spark reads: a folder of them, one file, or a pattern."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from dpforest_duckdb.engine.base import Trace
from dpforest_duckdb.engine.spark.engine import SparkEngine, types_of, whole_files
from dpforest_duckdb.engine.spark.steps import Frame, Session, own_steps
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.ledger.anchor import TableInfo


class SparkFiles(SparkEngine):
    """The rows of some local files, which are the one table here. Their budgets go by their paths.

    The folders of a partitioned table (`year=2025`) give columns too. These are text, because Spark
    would guess their types from the values.
    """

    def __init__(self, session: Session, path: Path, trace: Trace | None = None) -> None:
        super().__init__(session, trace)
        self._path = path
        self.name = path.stem.strip("-_.*?[] ") or "rows"
        try:
            with own_steps(self.steps) as own:
                frame = own.call(lambda: self._read(own.session))
                self._fields: list[Any] = list(own.call(lambda: frame.schema.fields))
                found = own.call(frame.inputFiles)
        except DpforestError:
            raise DpforestError(
                f"Spark reads no Parquet files at {path}: check the path."
            ) from None
        places = [urlsplit(name) for name in found]
        if any(place.scheme != "file" for place in places):
            raise DpforestError(
                f"The files at {path} are not on a local disk, so their budget has no place: make "
                "a table of them, and name that."
            )
        self.files = _resolved(found)
        if not self.files:
            raise DpforestError(f"There are no Parquet files at {path}: check the path.")
        if len({(s.st_dev, s.st_ino) for s in map(os.stat, self.files)}) < len(self.files):
            raise DpforestError(
                f"{path} has one file under two names (links), so its rows would count twice: name "
                "it once."
            )

    def table(self, name: str) -> TableInfo:
        return TableInfo("files", "main", name, types_of(self._fields))

    def fields(self, info: TableInfo) -> list[Any]:
        return self._fields

    def _read(self, session: Session) -> Frame:
        return whole_files(session).parquet(f"file://{self._path.resolve()}")

    def fresh(self, session: Session, info: TableInfo) -> Frame:
        """The files that are there now. Raises `DpforestError` if they are not those of before."""
        frame = self._read(session)
        if _resolved(frame.inputFiles()) != self.files:
            raise DpforestError(
                f"The files at {self._path} are not those of before: train again (what was debited "
                "stays spent)."
            )
        return frame

    def seen(self, info: TableInfo) -> None:
        """None: the rows are in no table."""

    def note(self, info: TableInfo) -> str:
        return ""

    def tables(self, catalog: str) -> list[TableInfo]:
        return []


def _resolved(names: Iterable[str]) -> tuple[Path, ...]:
    """The paths of files as Spark names them, each as often as it is read."""
    return tuple(sorted(Path(unquote(urlsplit(name).path)).resolve() for name in names))
