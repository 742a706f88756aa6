"""Files that a verb writes: what is refused before any work."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from dpforest_duckdb.errors import DpforestError, UsageError

if TYPE_CHECKING:
    from dpforest_duckdb.model.files import Content


def check_out(path: str, *others: str | None, replace: bool) -> None:
    """Check a model file before any work is done.

    `others` are files of the same command, which must not be overwritten. Raises as
    `check_writable` does, and `UsageError` for a name that does not end in .json.
    """
    if Path(path).suffix != ".json":
        raise UsageError("--out must end in .json: --model reads such a name as a file.")
    check_writable(path, "model", *others, replace=replace)


def check_writable(
    path: str, new: Content, *others: str | None, replace: bool, option: str = "--out"
) -> None:
    """Raise `DpforestError` for a file that cannot be written, or not with this `new` content.

    And `UsageError` for one of the `others`, which are files of the same command.
    """
    from dpforest_duckdb.model.files import file_exists, refuse_replacing

    target = Path(path)
    if any(other and os.path.realpath(path) == os.path.realpath(other) for other in others):
        raise UsageError(
            f"{option} names the database, its ledger or a file that is read: choose another file."
        )
    refuse_replacing(target, new)
    if not target.parent.is_dir() or not os.access(target.parent, os.W_OK):
        raise DpforestError(f"The file {path} cannot be written: check its folder and {option}.")
    if target.exists() and not replace:
        raise file_exists(path)
