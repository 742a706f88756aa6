"""The memory and temporary disk that a run may need, from public facts, and what is available."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import duckdb

from dpforest_duckdb.domain import Domain
from dpforest_duckdb.engine.packing import blocks
from dpforest_duckdb.errors import DpforestError

_UNITS = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_SIZE = re.compile(r"([\d.]+) ?(bytes|[KMGT]iB)")
_WORD, _NODE_CLASS = 8, 4  # bytes, at most


def bytes_of_a_row(domain: Domain, copies: int, scores: int = 0) -> int:
    """The most bytes of a coded row: codes, node_class columns and scores; routing needs them
    twice."""
    words = blocks(domain.cells, len(domain.classes))[-1].word + 1
    return 2 * (_WORD * (words + scores) + _NODE_CLASS * copies)


def refuse_if_too_large(room: float, rows: int, each: int) -> None:
    """Raise `DpforestError` if that many rows may not fit into memory and temporary disk."""
    if rows * each > room:
        raise DpforestError(
            f"{rows:,} rows may need {rows * each / 1e9:.1f} GB of temporary space, more than "
            "is available: raise --memory-limit, free some disk, or name a larger --temp-dir."
        )


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
