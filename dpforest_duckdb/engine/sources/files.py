"""Parquet and CSV files as sources of rows.

What is known of a file before a row is paid for is its schema: the footer of a Parquet file, the
first line of a CSV file. A CSV file is read as text, and the domain says what the text stands for.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from dpforest_duckdb.domain import Domain
from dpforest_duckdb.domain.names import fold
from dpforest_duckdb.domain.table import TableInfo, columns_changed
from dpforest_duckdb.domain.types import NO_VALUES, column_type, column_types
from dpforest_duckdb.engine.columns.casts import selected
from dpforest_duckdb.engine.columns.read_types import TypesFrom
from dpforest_duckdb.engine.connection.connect import CATALOG
from dpforest_duckdb.engine.sources.csv_headers import Header, headers
from dpforest_duckdb.engine.sources.engine import ReadableRows
from dpforest_duckdb.engine.sources.memory_database import (
    DatabaseOpener,
    GivenDatabase,
    MemoryDatabase,
    Part,
)
from dpforest_duckdb.errors import DebitStaysError, DpforestError
from dpforest_duckdb.scoring.dialects.duckdb import DUCKDB
from dpforest_duckdb.sql import Column, Sql, nested

PARQUET, CSV = (".parquet", ".pq"), (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_PATTERN = frozenset("*?[")
LONGEST_RECORD = 2**26  # bytes of a CSV file that are read at once


def is_data_file(path: str | Path) -> bool:
    """Whether a path names data files, or a glob of them, rather than a database."""
    text = str(path).lower()
    return text.endswith((*PARQUET, *CSV)) or bool(_PATTERN & set(text) and not Path(path).exists())


def matched(pattern: str | Path) -> tuple[Path, ...]:
    """The resolved paths of the files that a path or a glob names, in their order.

    Raises `DpforestError` if there are none, if they are not of one kind, or if DuckDB would read
    one of them twice.
    """
    text = str(pattern)
    if Path(text).is_dir():
        raise DpforestError(
            f"{text} is a folder: name its files by a pattern in quotes, such as "
            f"'{_pattern_for(Path(text))}'."
        )
    names = [text] if Path(text).exists() else sorted(glob.glob(text, recursive=True))
    files = [Path(name).resolve() for name in names if Path(name).is_file()]
    if not files:
        raise DpforestError(f"There is no data file {text}: check --db.")
    kinds = {_kind(file) for file in files}
    if len(kinds) > 1 or "" in kinds:
        raise DpforestError(
            f"{text} must name Parquet files alone, or CSV files alone: give a narrower pattern."
        )
    files = list(dict.fromkeys(files))
    for file in files:
        if _PATTERN & set(str(file)):
            raise DpforestError(
                f"The path {file} has a *, ? or [, which DuckDB takes as a pattern of other files: "
                "rename it."
            )
    if len({(found.st_dev, found.st_ino) for found in map(os.stat, files)}) < len(files):
        raise DpforestError(
            f"{text} names one file by two hard links, so its rows would count twice: give a "
            "narrower pattern."
        )
    return tuple(files)


def opened_files(pattern: str | Path, database: DatabaseOpener) -> ParquetFiles | CsvFiles:
    """The files that a path or a glob names. No row is read."""
    files = matched(pattern)
    name = plain_name(files[0] if len(files) == 1 else Path(pattern))
    if _kind(files[0]) == "parquet":
        return ParquetFiles(name, files, _schema(files, database), database)
    return CsvFiles(name, files, headers(files), database)


def folder_names(files: Sequence[Path]) -> frozenset[str]:
    """What the names of the files' folders give a value, as in year=2024, folded."""
    parts = (part for file in files for part in file.parent.parts)
    return frozenset(fold(part.partition("=")[0]) for part in parts if "=" in part)


@dataclass(frozen=True)
class ParquetFiles:
    """Parquet files with one schema. They are read where they are, each time from the start."""

    name: str
    files: tuple[Path, ...]
    columns: Mapping[str, str]
    database: DatabaseOpener
    types_from = TypesFrom.SCHEMA
    in_text = False
    in_transaction = False
    catalog = CATALOG

    def remarks(self, domain: Domain) -> list[str]:
        """None: the types of the columns are in the files."""
        return []

    @property
    def rounded(self) -> frozenset[str]:
        """The columns of floating-point numbers, as pandas writes whole ones if one is missing."""
        return frozenset(
            name for name, kind in column_types(self.columns).items() if kind.family == "float"
        )

    def _may_be_text(self, names: Collection[str]) -> bool:
        """Whether any of the columns may be text."""
        kinds = column_types({name: self.columns[name] for name in names})
        return any(kind.family in ("text", "other") for kind in kinds.values())

    @contextmanager
    def opened(self, table: TableInfo) -> Iterator[ReadableRows]:
        before = [_state(file) for file in self.files]

        def check() -> None:
            if before != [_state(file) for file in self.files]:
                raise DebitStaysError(
                    f'The files of "{self.name}" changed while they were read: run the command '
                    "again (what was debited stays spent)."
                )

        with self.database.opened(self.files) as memory:
            _refuse_changed(self, self.columns, lambda: _schema(self.files, GivenDatabase(memory)))
            source = _parquet(self.files, repair=not self._may_be_text(table.units))
            part = Part(selected(self.columns, table.columns), source)
            yield replace(memory.opened(table, [part], copied=False), check=check)


@dataclass(frozen=True)
class CsvFiles:
    """CSV files with a header line. They are read once, as text."""

    name: str
    files: tuple[Path, ...]
    headers: tuple[Header, ...]
    database: DatabaseOpener
    types_from = TypesFrom.DOMAIN
    in_text = True
    rounded = ()
    in_transaction = False
    catalog = CATALOG

    @property
    def columns(self) -> Mapping[str, str]:
        """The columns that every file has."""
        shared = [
            name
            for name in self.headers[0].names
            if all(name in header.names for header in self.headers)
        ]
        return dict.fromkeys(shared, "VARCHAR")

    def remarks(self, domain: Domain) -> list[str]:
        """Which records are left out, and what the delimiter suggests about the numbers and dates
        of a bound domain.
        """
        found = [
            f'Rows of "{self.name}" are left out if they have fewer fields than the header, or '
            "text that is not UTF-8: convert a file in another encoding first."
        ]
        kinds = {each.family for each in domain.attributes if each.kind == "numeric"}
        spelt = any(header.delimiter == ";" for header in self.headers)
        if not spelt or not kinds & {"decimal", "float", "date", "timestamp"}:
            return found
        return [
            *found,
            f'The columns of "{self.name}" are separated by semicolons, which is usual where '
            "decimals have a comma. Numbers like 3,5 and dates like 31.01.2024 are read as NULL: "
            "write 3.5 and 2024-01-31 instead.",
        ]

    @contextmanager
    def opened(self, table: TableInfo) -> Iterator[ReadableRows]:
        alike: dict[Header, list[Path]] = {}
        for file, header in zip(self.files, self.headers, strict=True):
            alike.setdefault(header, []).append(file)
        columns = selected(self.columns, table.columns)
        parts = [Part(columns, _csv(files, header)) for header, files in alike.items()]
        _refuse_changed(self, self.headers, lambda: headers(self.files))
        with self.database.opened(self.files) as memory:
            yield memory.opened(table, parts, copied=True)


def _pattern_for(folder: Path) -> Path:
    """A pattern of the data files in a folder or the folders in it, by their names."""
    for place in ("", "*", "*/*"):
        kinds = {_kind(file) for file in folder.glob(f"{place}/*" if place else "*")}
        for kind, suffix in (("parquet", "*.parquet"), ("csv", "*.csv")):
            if kind in kinds:
                return folder / ("**" if place else "") / suffix
    return folder / "*.csv"


def _kind(file: Path) -> str:
    name = file.name.lower()
    return "parquet" if name.endswith(PARQUET) else "csv" if name.endswith(CSV) else ""


def plain_name(path: Path) -> str:
    """A name for people, from the path of a file or a pattern.

    It is the name of the folder if that of the files has nothing but a pattern.
    """
    named = re.sub(r"\[[^]]*\]", "", path.name)  # one of several characters
    plain = "".join(c for c in named if c not in _PATTERN)
    for suffix in (*PARQUET, *sorted(CSV, key=len, reverse=True)):
        plain = plain[: -len(suffix)] if plain.lower().endswith(suffix) else plain
    folders = (part.name for part in path.absolute().parents)
    folder = next(name for name in folders if not {*name} & {*_PATTERN, "="})
    return plain.strip("-_. ") or folder or "rows"


def _state(file: Path) -> tuple[int, int, int]:
    """What changes when a file is written."""
    try:
        found = os.stat(file)
    except OSError:
        return (0, 0, 0)
    return found.st_ino, found.st_size, found.st_mtime_ns


def _refuse_changed(
    source: ParquetFiles | CsvFiles, planned: object, columns: Callable[[], object]
) -> None:
    """Raise `DpforestError` if files are gone, or their columns are no longer those of the plan."""
    for file in source.files:
        if not file.is_file():
            raise DpforestError(f"The file {file} is gone since the run was planned: restore it.")
        if file.resolve() != file:  # whose budget is another one
            raise DpforestError(
                f"The file {file} has become a link to another since the run was planned: plan it "
                "again."
            )
    if columns() != planned:
        raise columns_changed(f'"{source.name}"')


def _schema(files: Sequence[Path], database: DatabaseOpener) -> dict[str, str]:
    """The columns of Parquet files, each with a type that holds the values of all files."""
    with database.opened(files) as memory:
        footers(files, memory)
        return _described(memory, files)


def footers(files: Sequence[Path], memory: MemoryDatabase) -> list[dict[str, str]]:
    """The columns of each Parquet file, from its footer. Raises `DpforestError` if they differ.

    A column without values, which has a type of its own, may be any column in other files: whether
    it has a value must not decide about a refusal.
    """
    found, merged = [], dict[str, str]()
    for file in files:
        try:
            columns = _described(memory, [file])
        except DpforestError:
            raise DpforestError(f"The file {file} cannot be read as Parquet: check --db.") from None
        merged = merged or columns
        if merged.keys() != columns.keys() or not all(
            _agree(merged[name], kind) for name, kind in columns.items()
        ):
            raise DpforestError(
                f"The file {file} has other columns or types than {files[0]}: name files of one "
                "schema."
            )
        merged = {n: columns[n] if kind == NO_VALUES else kind for n, kind in merged.items()}
        found.append(columns)
    return found


def _described(memory: MemoryDatabase, files: Sequence[Path]) -> dict[str, str]:
    """The columns of Parquet files, each with a type that holds the values of all files."""
    return {name: kind for name, kind, *_ in memory.run(f"DESCRIBE FROM {_parquet(files)}")}


def _agree(first: str, second: str) -> bool:
    """Whether two files may have columns of these types under one name.

    Whole numbers do not agree with floating-point ones: read as these, two ids may become one.
    Nested types, which no run reads, always agree: their parts may depend on the values.
    """
    both_nested = column_type(first).nested and column_type(second).nested
    return first == second or NO_VALUES in (first, second) or both_nested


def _parquet(files: Sequence[Path], *, repair: bool = False) -> Sql:
    """The rows of Parquet files.

    With `repair`, bytes of a text that are no Unicode are read as question marks: else one of them
    would end a run. This may make one text of two, so it is not for privacy units of text.
    """
    names = ", ".join(DUCKDB.text(str(file)) for file in files)
    return Sql(
        f"read_parquet([{names}], union_by_name = true, hive_partitioning = false, "
        f"file_row_number = false, utf8_validation = '{'replace' if repair else 'strict'}')"
    )


def _csv(files: Sequence[Path], header: Header) -> Sql:
    """The rows of CSV files as text; spaces around a value are not part of it.

    Nothing is guessed from the rows, and no row decides whether a run fails: fields beyond those of
    the header are ignored, and a record with fewer, or that is not UTF-8, is left out. All columns
    are read, so that the same records are left out whichever columns are used. Lines end in a line
    feed, also after a carriage return: if DuckDB looked for other ends, a lone carriage return in
    one row could change how all rows are read. Outside of quotes it ends a record. One thread reads
    a file: several would look for records in its middle, and might begin in a quoted value. The
    rows after a record that is longer than a buffer may be lost, so buffers are large. Their size
    must not follow that of the file: statements can be shown, and one row changes it.
    """
    return nested(
        "read_csv",
        columns=[
            Column(Sql(f"column{number}"), DUCKDB.ident(name))
            for number, name in enumerate(header.names)
        ],
        files=[DUCKDB.text(str(file)) for file in files],
        delimiter=DUCKDB.text(header.delimiter),
        buffer_size=LONGEST_RECORD,
    )
