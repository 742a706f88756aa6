"""Files that are written completely or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from dpforest_duckdb.errors import DpforestError


def write_file(path: str | Path, text: str) -> None:
    """Write a temporary file in the same folder, then rename it: the file is complete or absent."""
    target = Path(path)
    temporary = None
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=target.parent, prefix=f".{target.name}.", delete=False
        ) as file:
            temporary = Path(file.name)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except OSError:
        raise DpforestError(f"The file {path} cannot be written: check folder and disk.") from None
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
