"""Opens a database: settings, then the lock-down, and a private folder for temporary files."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb

from dpforest_duckdb.errors import DpforestError

try:
    import fcntl
except ImportError:  # Windows: the user removes what dead runs leave behind
    fcntl = None  # type: ignore[assignment]

SPILL = ".dpforest-spill-"  # how folders of temporary files begin
MEMORY = ":memory:"
CATALOG = "memory"  # as DuckDB calls a database in memory


@contextlib.contextmanager
def open_database(
    path: str | Path,
    *,
    read_only: bool = False,
    threads: int | None = None,
    memory_limit: str | None = None,
    temp_dir: str | Path | None = None,
    files: Sequence[Path] = (),
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to an existing database file; closed at the end.

    A file that cannot be written is opened for reading. After that the connection can reach no
    other file but `files`, no extension and no setting. DuckDB's temporary files go to a folder of
    this run (mode 0700), which is removed at the end. Folders of runs that died are removed at the
    start.

    Raises `DpforestError` for a missing, locked or damaged database, or a wrong setting.
    """
    in_memory = str(path) == MEMORY
    if not in_memory and Path(path).is_dir():
        raise DpforestError(f"{path} is a folder and no database file: check --db.")
    if not in_memory and not Path(path).is_file():
        raise DpforestError(f"There is no database file {path}: check --db.")
    with _spill_folder(None if in_memory else Path(path), temp_dir) as spill:
        connection = _connect(str(path), read_only and not in_memory)
        try:
            _configure(connection, threads, memory_limit, spill, files)
            yield connection
        finally:
            connection.close()


def _connect(path: str, read_only: bool) -> duckdb.DuckDBPyConnection:
    """A connection to a database file, to read only if it cannot be written.

    Raises `DpforestError` for what is no database, or is in use.
    """
    refusal = f"The file {path} cannot be opened as a DuckDB database: check --db."
    try:
        # otherwise DuckDB downloads an extension to read a file of another kind
        connection = duckdb.connect(
            path, read_only=read_only, config={"autoinstall_known_extensions": "false"}
        )
    except duckdb.Error as error:
        text = str(error)
        if "could not set lock on file" in text.lower():  # a path may contain the word lock
            number = re.search(r"\(PID (\d+)\)", text)
            process = f"process {number[1]}" if number else "another process"
            raise DpforestError(
                f"The database {path} is in use by {process}: close it there first."
            ) from None
        if not read_only and ("ermission" in text or "ead-only" in text or "ead only" in text):
            return _connect(path, read_only=True)
        raise DpforestError(refusal) from None
    path_of = (
        "SELECT path FROM system.main.duckdb_databases() "
        "WHERE database_name = system.main.current_database()"
    )
    if path != MEMORY and connection.execute(path_of).fetchall() == [(None,)]:
        connection.close()  # a data file, which DuckDB shows as a view in a database in memory
        raise DpforestError(refusal)
    return connection


def _configure(
    connection: duckdb.DuckDBPyConnection,
    threads: int | None,
    memory_limit: str | None,
    spill: Path,
    files: Sequence[Path],
) -> None:
    """Set what DuckDB may use, then lock its settings: it may read and write `files` alone.

    Raises `DpforestError` for a setting that DuckDB does not accept.
    """
    if memory_limit is not None and memory_limit.strip().startswith("-"):  # no limit, for DuckDB
        raise DpforestError(
            f"--memory-limit is {memory_limit}, which is negative: give a size such as 8GB."
        )
    _set(connection, "--threads", "threads", threads)
    _set(connection, "--memory-limit", "memory_limit", memory_limit, ": give a size such as 8GB")
    _set(connection, "--temp-dir", "temp_directory", str(spill))
    # group by an array index for up to 2^18 groups, not just DuckDB's 2^12; the array of more
    # groups does not fit into a cache, and hashing is faster
    connection.execute("SET GLOBAL perfect_ht_threshold = 18")
    # objects in a DataFrame are text: their values must not decide about a type
    connection.execute("SET GLOBAL pandas_analyze_sample = 0")
    connection.execute("SET allowed_paths = ?", [[str(file) for file in files]])
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _set(
    connection: duckdb.DuckDBPyConnection,
    option: str,
    name: str,
    value: str | int | None,
    hint: str = "",
) -> None:
    """Set what an option gives, if it is given. Raises `DpforestError` if DuckDB refuses it."""
    if value is None:
        return
    try:
        connection.execute(f"SET GLOBAL {name} = ?", [str(value)])
    except duckdb.Error:
        raise DpforestError(f"{option} is {value}, which DuckDB does not accept{hint}.") from None


@contextlib.contextmanager
def _spill_folder(database: Path | None, temp_dir: str | Path | None) -> Iterator[Path]:
    """A folder for one run's temporary files; a lock on it shows that the run is alive."""
    if temp_dir is not None:
        base = Path(temp_dir)
        if not base.is_dir():
            raise DpforestError(f"There is no folder {base} for temporary files: check --temp-dir.")
    elif database is not None and os.access(database.parent, os.W_OK):
        base = database.parent
    else:
        base = _system_folder()
    if fcntl is not None:
        _sweep(base)
    folder, lock = _locked_folder(base)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if lock >= 0:
            os.close(lock)


def _locked_folder(base: Path) -> tuple[Path, int]:
    """A new folder, and the lock on it (-1 if there are none); made again if a sweep took it."""
    while True:
        try:
            folder = Path(tempfile.mkdtemp(prefix=SPILL, dir=base))
        except OSError:
            raise DpforestError(
                f"No temporary folder can be created in {base}: choose another with --temp-dir."
            ) from None
        if fcntl is None:
            return folder, -1
        with contextlib.suppress(FileNotFoundError):
            lock = os.open(folder, os.O_RDONLY)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if folder.exists():
                return folder, lock
            os.close(lock)


def _system_folder() -> Path:
    try:
        return Path(tempfile.gettempdir())
    except OSError:
        raise DpforestError(
            "There is no writable folder for temporary files: choose one with --temp-dir."
        ) from None


def _sweep(base: Path) -> None:
    """Remove folders of runs that died: nobody holds the lock on them."""
    for folder in base.glob(f"{SPILL}*"):
        try:
            lock = os.open(folder, os.O_RDONLY)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            pass  # the run is alive
        finally:
            os.close(lock)
