"""The header of a CSV file: all that is known of it before a row is paid for."""

from __future__ import annotations

import codecs
import csv
import gzip
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dpforest_duckdb.domain.names import fold
from dpforest_duckdb.errors import DpforestError

_DELIMITERS = ",;\t|"
_LONGEST = 2**20  # bytes of a first line


@dataclass(frozen=True)
class Header:
    """The first line of a CSV file: the names of its columns, and what separates them."""

    names: tuple[str, ...]
    delimiter: str


def headers(files: Sequence[Path]) -> tuple[Header, ...]:
    """The header of each file.

    Raises `DpforestError` without the text of a first line, which may be a row.
    """
    return tuple(map(_header, files))


def _header(file: Path) -> Header:
    """The header of one file. Raises `DpforestError` as `headers`."""
    refusal = DpforestError(
        f"The file {file} has no header line with the names of its columns: add one."
    )
    line = _first_line(file)
    try:
        text = line.decode()
    except UnicodeDecodeError:
        raise DpforestError(f"The file {file} is not UTF-8 text: convert it first.") from None
    delimiter = max(_DELIMITERS, key=text.count)
    try:
        names = next(csv.reader([text], delimiter=delimiter, strict=True), [])
    except csv.Error:  # such as a quote that goes on into the next line
        raise refusal from None
    names = [name.strip() for name in names]
    if not any(names) or len(line) >= _LONGEST - len(codecs.BOM_UTF8):
        raise refusal
    return Header(_placed(names, file), delimiter)


def _first_line(file: Path) -> bytes:
    """The first line. Nothing after its end is looked at, because it may be a row."""
    try:
        with gzip.open(file) if file.suffix.lower() == ".gz" else open(file, "rb") as stream:
            head = stream.read(_LONGEST).removeprefix(codecs.BOM_UTF8)
    except (OSError, EOFError):
        raise DpforestError(f"The file {file} cannot be read: check --db.") from None
    line = re.split(rb"[\r\n]", head, maxsplit=1)[0]
    end = head[len(line) : len(line) + 2]
    if end[:1] == b"\r" and end != b"\r\n":
        raise DpforestError(
            f"The lines of {file} end in a carriage return alone: convert them to line feeds."
        )
    return line


def _placed(names: Sequence[str], file: Path) -> tuple[str, ...]:
    """The names as DuckDB has them: pandas writes its index without a name.

    Raises `DpforestError` if two columns have one name.
    """
    placed = [name or f"column{number}" for number, name in enumerate(names)]
    given = [fold(name) for name in names if name]
    if len(set(given)) < len(given):
        raise DpforestError(f"The header of {file} names a column twice: rename one.")
    if len(set(map(fold, placed))) < len(placed):
        raise DpforestError(
            f"The header of {file} leaves a column without a name, and another column has the name "
            "that it would get, such as column0: give it a name."
        )
    return tuple(placed)
