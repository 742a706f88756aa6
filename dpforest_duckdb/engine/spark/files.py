"""Parquet files that Spark reads: a folder of them, one file, or a pattern."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from dpforest_duckdb.domain import Domain
from dpforest_duckdb.domain.table import TableInfo, columns_changed
from dpforest_duckdb.domain.types import NO_VALUES, column_type
from dpforest_duckdb.engine.base import DeclaredColumn, Trace
from dpforest_duckdb.engine.columns.read_types import TypesFrom, read_as
from dpforest_duckdb.engine.connection.connect import MEMORY, open_database
from dpforest_duckdb.engine.sources.files import footers, plain_name
from dpforest_duckdb.engine.sources.memory_database import MemoryDatabase
from dpforest_duckdb.engine.spark.engine import (
    SPARK_NAMES,
    SparkEngine,
    type_of,
    types_of,
    whole_files,
)
from dpforest_duckdb.engine.spark.snapshot import hashable
from dpforest_duckdb.engine.spark.steps import Frame, Session, own_steps
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.privacy.unit import PrivacyUnit

_PATTERN = frozenset("*?[]{}")


class SparkFiles(SparkEngine):
    """The rows of some local files, which are the one table here. Their budgets go by their paths.

    Types are those of the files, read as DuckDB's are (`read_types`): whether a column of a file
    has a value, or how many digits, must not decide how other rows are read. Spark takes a column
    without values for whole numbers, so DuckDB reads the footers too. The folders of a partitioned
    table (`year=2025`) give columns as well. These are text, because Spark would guess their types
    from the values.
    """

    def __init__(self, session: Session, path: Path, trace: Trace | None = None) -> None:
        super().__init__(session, trace)
        self._path = path
        self.name = plain_name(path)
        try:
            with own_steps(self.steps) as temporary:
                frame = temporary.call(lambda: self._read(temporary.session))
                found = temporary.call(frame.inputFiles)
        except DpforestError:
            raise DpforestError(
                f"Spark cannot read {path} as Parquet files: check the path, and that no column "
                "has a type that Spark lacks, such as TIME or a TIMESTAMP of nanoseconds."
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
        if any(_PATTERN & set(str(file)) for file in self.files):
            raise DpforestError(
                f"A file at {path} has one of *?[]{{}} in its path, which is taken as a pattern of "
                "other files: rename it."
            )
        if len({(s.st_dev, s.st_ino) for s in map(os.stat, self.files)}) < len(self.files):
            raise DpforestError(
                f"{path} has one file under two names (links), so its rows would count twice: name "
                "it once."
            )
        self._empty = _without_values(self.files)
        with own_steps(self.steps) as temporary:
            self._fields: list[Any] = temporary.call(lambda: self._described(temporary.session))

    def _described(self, session: Session) -> list[Any]:
        """The columns, as Spark describes them in a file in which they have values."""
        held = {
            field.name: field
            for empty, part in self._parts(session).items()
            for field in part.schema.fields
            if field.name not in empty
        }
        return [held.get(field.name, field) for field in self._read(session).schema.fields]

    def declared(self, table: TableInfo) -> list[DeclaredColumn]:
        """The columns. Files declare nothing about them but types, also of truth values."""
        return [DeclaredColumn(name, kind, True) for name, kind in table.columns.items()]

    def table(self, name: str, *, option: str = "--table") -> TableInfo:
        columns = types_of(self._fields)
        everywhere = frozenset.intersection(*self._empty)
        return TableInfo(
            "files",
            "main",
            name,
            {n: column_type(NO_VALUES) if n in everywhere else k for n, k in columns.items()},
        )

    def fields(self, info: TableInfo) -> list[Any]:
        return self._fields

    def typed(self, table: TableInfo, domain: Domain, unit: PrivacyUnit) -> TableInfo:
        """See `read_as`."""
        floats = [name for name, kind in table.columns.items() if kind.family == "float"]
        return read_as(table, domain, unit, TypesFrom.SCHEMA, rounded=floats)

    def _read(self, session: Session, *files: str) -> Frame:
        """The rows of some files, or of all.

        Columns from the names of folders are the same for any choice of files: the folders below
        the part of the path that is no pattern.
        """
        path = self._path.resolve()
        known = [part for part in (path, *path.parents) if not _PATTERN & set(str(part))]
        folder = next(part for part in known if part.is_dir())
        read = whole_files(session).option("basePath", f"file://{folder}")
        return read.parquet(*(files or [f"file://{path}"]))

    def fresh(self, session: Session, info: TableInfo) -> Frame:
        """The files that are there now, with the columns of a run in the types of its plan.

        Raises `DpforestError` if they are not those of before.
        """
        frame = self._read(session)
        if _resolved(frame.inputFiles()) != self.files:
            raise DpforestError(
                f"The files at {self._path} have changed since the run was planned: train again "
                "(what was debited stays spent)."
            )
        if _without_values(self.files) != self._empty or self._described(session) != self._fields:
            raise columns_changed(f'"{info.display}"')
        return self._in_types(self._parts(session), info)

    def _parts(self, session: Session) -> Mapping[frozenset[str], Frame]:
        """The rows of files by their columns without values."""
        alike: dict[frozenset[str], list[str]] = {}
        for file, empty in zip(self.files, self._empty, strict=True):
            alike.setdefault(empty, []).append(f"file://{file}")
        return {empty: self._read(session, *some) for empty, some in alike.items()}

    def _in_types(self, parts: Mapping[frozenset[str], Frame], info: TableInfo) -> Frame:
        """The rows of all files in the types of a plan.

        Columns that are not used are for the hash of a row. Nested ones, whose types may depend on
        the values, are left out.
        """
        ident, columns = self.steps.dialect.ident, {empty: list[str]() for empty in parts}
        for field in self._fields:
            name, kind = field.name, field.dataType.simpleString()
            if not hashable(field) or type_of(field).nested:
                continue
            wanted = (
                SPARK_NAMES.get(info.columns[name].name, kind) if name in info.columns else kind
            )
            for empty, read in columns.items():
                value = "NULL" if name in empty else str(ident(name))
                if wanted == "bigint" and kind.startswith("decimal"):
                    value = f"ceil({value})"  # as in DuckDB: a cast would cut the fraction off
                if name in empty or wanted != kind:
                    value = f"try_cast({value} AS {wanted})"
                read.append(f"{value} AS {ident(name)}")
        frames = [part.selectExpr(*columns[empty]) for empty, part in parts.items()]
        return functools.reduce(lambda first, second: first.unionByName(second), frames)

    def seen(self, info: TableInfo) -> None:
        """None: the rows are in no table."""

    def tables(self, catalog: str) -> list[TableInfo]:
        return []


def _without_values(files: Sequence[Path]) -> list[frozenset[str]]:
    """The columns of each file that have no value at all, by its footer."""
    with open_database(MEMORY, files=list(files)) as connection:
        found = footers(files, MemoryDatabase(connection))
    return [
        frozenset(name for name, kind in columns.items() if kind == NO_VALUES) for columns in found
    ]


def _resolved(names: Iterable[str]) -> tuple[Path, ...]:
    """The paths of files as Spark names them, each as often as it is read."""
    return tuple(sorted(Path(unquote(urlsplit(name).path)).resolve() for name in names))
