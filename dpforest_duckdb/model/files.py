"""Model files and their names, and files that are written completely or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from dpforest_duckdb.errors import DpforestError

Content = Literal["model", "report", "Parquet data", "CSV data"]  # what files are written with
# how files of each kind begin, without spaces; CSV data may begin with any text
_STARTS: dict[Content, tuple[bytes, ...]] = {
    "model": (b'{"schema":"dpforest/',),
    "report": (b"<!doctypehtml", b"<html"),
    "Parquet data": (b"par1",),
    "CSV data": (),
}
_READ = 64  # bytes: ledgers have a zero among the first ones, databases of DuckDB a word
TEMPORARY = ".dpforest-"  # how files begin that are not complete


def is_model_file(model: str) -> bool:
    """Whether --model is the path of a JSON file, if no stored model has that name."""
    return model.endswith(".json") or os.sep in model


def refuse_no_file(path: Path) -> None:
    """Raise `DpforestError` if there is anything but a file at a path: a link, which may lead to a
    ledger or to rows, a device, a pipe or a folder.
    """
    if path.is_symlink():
        raise DpforestError(f"{path} is a link: name the file that it leads to.")
    if path.exists() and not path.is_file():
        raise DpforestError(f"{path} is not a file: name a file to write to.")


def refuse_replacing(path: Path, new: Content) -> None:
    """Raise `DpforestError` for a file that must not be replaced by one with `new` content.

    Only an empty file, or one of the same content, may be: never a ledger or a database.
    """
    refuse_no_file(path)
    try:
        with path.open("rb") as file:
            start = file.read(_READ)
    except OSError:
        if not os.path.exists(path):
            return
        start = b"\0"
    if start and not _holds(start, new):
        raise DpforestError(
            f"The file {path} holds no {new}, so it is not replaced: name another file."
        )


def file_exists(path: str | Path) -> DpforestError:
    """The error for a file that is to be written, and is there."""
    return DpforestError(f"There is a file {path} already: choose another or pass --replace.")


def _holds(start: bytes, content: Content) -> bool:
    """Whether a file that begins with these bytes may hold this content."""
    begins = b"".join(start.removeprefix(b"\xef\xbb\xbf").lower().split())
    if _STARTS[content]:
        return begins.startswith(_STARTS[content])
    others = tuple(known for starts in _STARTS.values() for known in starts)
    if start[8:12] == b"DUCK" and b"\0" in start[12:20]:  # a database, then its version
        return False
    header = start.partition(b"\n")[0]  # names alone: a value may have a zero
    return b"\0" not in header and not begins.startswith(others)


@contextlib.contextmanager
def replacing(
    path: str | Path, new: Content | None = None, *, replace: bool = True
) -> Iterator[Path]:
    """A temporary file in the same folder, which takes the name `path` if the block succeeds.

    Only its owner can read it: it may hold private rows or exact figures. Raises `DpforestError` if
    `refuse_replacing` does for its `new` content, if it cannot be written, or without `replace` if
    there is a file by then.
    """
    target = Path(path)
    if new is None:
        refuse_no_file(target)
    else:
        refuse_replacing(target, new)
    temporary = None
    try:
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=TEMPORARY, delete=False) as file:
            temporary = Path(file.name)
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        if replace:
            temporary.replace(target)
        else:
            _name(temporary, target)
    except FileExistsError:
        raise file_exists(path) from None
    except OSError as error:
        why = ": check folder and disk."
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            why = " because the disk is full: free some space."
        raise DpforestError(f"The file {path} cannot be written{why}") from None
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def _name(temporary: Path, target: Path) -> None:
    """Give a file a name that is free. Raises `FileExistsError` if it is taken."""
    try:
        target.hardlink_to(temporary)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        target.touch(exist_ok=False)
        temporary.replace(target)


def write_file(
    path: str | Path, text: str, new: Content | None = None, *, replace: bool = True
) -> None:
    """Write a file completely or not at all; see `replacing`."""
    with replacing(path, new, replace=replace) as temporary:
        temporary.write_text(text, encoding="utf-8")
