"""The memory and temporary disk that DuckDB may need for a run, and what is available."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import duckdb

from dpforest_duckdb.domain import Domain
from dpforest_duckdb.engine.packing import blocks
from dpforest_duckdb.engine.rows import MAX_COUNTED

_UNITS = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_SIZE = re.compile(r"([\d.]+) ?(bytes|[KMGT]iB)")
_WORD, _NODE_CLASS = 10, 6  # bytes of a value of 8 and of 4, at most: blocks are not quite full


def bytes_of_a_row(domains: Sequence[Domain], *, copies: int, scores: int) -> int:
    """The most bytes of a row: packed codes, node_class columns and scores.

    DuckDB frees no coded table before the rows are coded in the last domain. Counting and routing
    copy the rows of one more table. Then there is the last one alone. Routing copies it whole, and
    counting copies its codes for some trees at once. Numbering rows by a privacy unit, or drawing
    them with repeats, needs more, which is not counted: it depends on the values.
    """
    words = [blocks(domain.cells, len(domain.classes))[-1].word + 1 for domain in domains]
    coded = [_WORD * of_table + _NODE_CLASS for of_table in words]
    grown = _WORD * (words[-1] + scores) + _NODE_CLASS * copies
    counted = min(copies, MAX_COUNTED) * coded[-1]
    return max(sum(coded) + max(coded), grown + max(grown, counted))


def room(connection: duckdb.DuckDBPyConnection) -> float:
    """Bytes of memory plus the disk that DuckDB may use for temporary files."""
    memory, folder, most = connection.execute(
        "SELECT current_setting('memory_limit'), current_setting('temp_directory'), "
        "current_setting('max_temp_directory_size')"
    ).fetchall()[0]
    if not folder:
        return _bytes(memory)
    place = Path(folder).resolve()
    while not place.exists():  # DuckDB creates it at its first temporary file
        place = place.parent
    free = shutil.disk_usage(place).free
    disk = _bytes(most) if _SIZE.fullmatch(most) else 0.9 * free  # "90% of available disk space"
    return _bytes(memory) + min(disk, free)


def _bytes(size: str) -> float:
    found = _SIZE.fullmatch(size)
    return float(found[1]) * _UNITS[found[2]] if found else 0.0
