"""The memory and temporary disk that DuckDB may need for a run, and what is available."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import duckdb

from dpforest_duckdb.domain.types import ColumnType
from dpforest_duckdb.engine.base import CodedTable, StoredRow
from dpforest_duckdb.engine.connection.statements import current_settings
from dpforest_duckdb.engine.shared.packing import MAX_COUNTED, blocks

_UNITS = {unit: 2 ** (10 * n) for n, unit in enumerate(("bytes", *(f"{p}iB" for p in "KMGTPE")))}
_SIZE = re.compile(r"([\d.]+) ?(bytes|[KMGTPE]iB)")
_WORD, _NODE_CLASS = 10, 6  # bytes of a value of 8 and of 4, at most: blocks are not quite full
# bytes that each thread needs in memory for a GROUP BY, and for a sum of products
GROUPS, SUM = 2**22, 2**15
KEPT_TABLES = 8  # coded tables that runs may share: more than one run needs at a time
_BASE = 2**25  # bytes of memory that are not for rows
_MERGED = 2**22  # a sort of B bytes on T threads fits if T * B * _MERGED <= memory**2
_SORTED = 2  # the most times that a sort holds its rows
_UNIT, _TEXT = 20, 80  # bytes of a privacy unit, and of a text of 64 bytes as one, at most


def bytes_of_a_row(stored: StoredRow) -> int:
    """The most bytes of a row: packed codes, node_class columns and scores.

    Until the rows are coded for the last time, DuckDB frees no coded table. Making one of them
    sorts its rows by privacy unit or tree, or stores those that they are drawn from; counting and
    routing copy its rows. No table of the runs `before` counts as one of this run's, because the
    rows may have changed.

    Then there is the last table, beside those that are kept for other runs. Routing copies it
    whole, counting copies its codes for some trees at once, and equal rows may be found in a copy
    of its codes. Texts of more than 64 bytes as privacy units need more, which is not counted.
    """
    tables, columns, last = stored.tables, stored.node_columns, stored.tables[-1]
    copied = max(*map(_coded, tables), *(_making(table, stored.unit) for table in tables))
    routed = sum(t.routed * (_coded(t) + t.rows * _NODE_CLASS * columns) for t in tables)
    coding = _kept(stored.before) + sum(_once(tables)) + routed + copied
    grown = last.rows * (_words(last) + _WORD * stored.scores + _NODE_CLASS * columns)
    counted = min(columns, MAX_COUNTED) * _coded(last)
    # the codes, the class, a hash and a number of rows
    grouped = last.rows * (_words(last) + _NODE_CLASS + 2 * _WORD) if stored.grouped else 0
    kept = _kept([*stored.before, *tables]) if stored.shared else 0
    return max(coding, kept + grown + max(grown, counted, grouped))


def _kept(tables: Sequence[CodedTable]) -> int:
    """The most bytes of a row in the tables that runs leave for each other: KEPT_TABLES of them."""
    return sum(sorted(_once(tables))[-KEPT_TABLES:])


def _once(tables: Sequence[CodedTable]) -> list[int]:
    """The most bytes of a row in each of the tables, of which those that are alike are one."""
    return [
        _coded(table)
        for number, table in enumerate(tables)
        if table.alike is None or table.alike not in [each.alike for each in tables[:number]]
    ]


def _making(table: CodedTable, unit: ColumnType | None) -> int:
    """The most bytes of a row while it is coded, besides the table itself."""
    words, sorted_, held = _words(table), 0, 0
    if unit is not None:
        held = _TEXT if unit.long else _UNIT
        # a sorted row holds codes and class twice (as payload and as the last sort keys), the unit
        # and a hash
        sorted_ += 2 * (words + _WORD) + held + _WORD
    if table.by_tree:
        sorted_ += table.rows * (words + 2 * _NODE_CLASS) + held
    # the rows that are drawn from are stored, and hashed
    return _SORTED * sorted_ + 4 * table.numbered * (words + held + 2 * _WORD)


def _words(table: CodedTable) -> int:
    """The most bytes of the packed codes of a row."""
    return _WORD * (blocks(table.domain.cells, len(table.domain.classes))[-1].word + 1)


def _coded(table: CodedTable) -> int:
    return table.rows * (_words(table) + _NODE_CLASS)


def room(connection: duckdb.DuckDBPyConnection) -> float:
    """Bytes for rows: memory, plus the disk that DuckDB may use for temporary files.

    They are fewer if memory is too small to sort as much: a sort merges all parts that were sorted
    in memory at once, and each thread needs some memory for each of them.
    """
    settings = ("memory_limit", "threads", "temp_directory", "max_temp_directory_size")
    limit, threads, folder, most = connection.execute(current_settings(*settings)).fetchall()[0]
    memory = max(_bytes(limit) - _BASE, 0)
    if not folder:
        return memory
    place = Path(folder).resolve()
    while not place.exists():  # DuckDB creates it at its first temporary file
        place = place.parent
    free = shutil.disk_usage(place).free
    disk = _bytes(most) if _SIZE.fullmatch(most) else 0.9 * free  # "90% of available disk space"
    sortable = memory**2 / (int(threads) * _MERGED)
    return min(memory + min(disk, free), max(memory, sortable))


def at_once(connection: duckdb.DuckDBPyConnection, size: int) -> int:
    """How many parts of a statement fit into half of the memory, as DuckDB runs all at once; 0 if
    not even one does.

    Each thread needs so many bytes for each of them, which are never written to disk.
    """
    settings = current_settings("memory_limit", "threads")
    memory, threads = connection.execute(settings).fetchall()[0]
    return int(_bytes(memory) / 2 / (threads * size))


def _bytes(size: str) -> float:
    found = _SIZE.fullmatch(size)
    return float(found[1]) * _UNITS[found[2]] if found else 0.0
