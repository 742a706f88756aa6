"""The memory and temporary disk that DuckDB may need for a run, and what is available."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import duckdb

from dpforest_duckdb.domain import Domain
from dpforest_duckdb.engine.packing import blocks

_UNITS = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_SIZE = re.compile(r"([\d.]+) ?(bytes|[KMGT]iB)")
_WORD, _NODE_CLASS = 8, 4  # bytes, at most


def bytes_of_a_row(domain: Domain, *, copies: int, scores: int) -> int:
    """The most bytes of a coded row: packed codes, node_class columns and scores.

    Routing needs them twice, because it copies the rows.
    """
    words = blocks(domain.cells, len(domain.classes))[-1].word + 1
    return 2 * (_WORD * (words + scores) + _NODE_CLASS * copies)


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
