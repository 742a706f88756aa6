"""The budget ledger: the debits of each private table, in a SQLite file of its own.

A run is debited in full, and committed, before any private row is read; nothing is refunded. The
file is append-only: every entry has the hash of the entry before it, and each operation checks the
whole chain. Anyone who can write the file can still replace all of it, so the account stores the
hash of the last entry with the table, and looks for it in the ledger the next time.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows, where SQLite's locks are not lost as `Ledger._alone` says
    fcntl = None  # type: ignore[assignment]

from dpforest_duckdb.errors import DpforestError, UsageError
from dpforest_duckdb.ledger.chain import Chain
from dpforest_duckdb.ledger.entries import parse

_WAIT_SECONDS = 30.0
_POLL_SECONDS = 0.005
_APPLICATION = 0x64706664  # "dpfd" marks a SQLite file as a ledger
_LAYOUT = 3  # 1 had no moved and no retired tables, 2 no hashes of forests
_SCHEMA = (
    "CREATE TABLE entries (seq INTEGER PRIMARY KEY, content TEXT NOT NULL,"
    " previous TEXT NOT NULL, hash TEXT NOT NULL)",
    "CREATE TRIGGER no_update BEFORE UPDATE ON entries"
    " BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
    "CREATE TRIGGER no_delete BEFORE DELETE ON entries"
    " BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
    # INSERT OR REPLACE removes a row without firing a DELETE trigger.
    "CREATE TRIGGER only_append BEFORE INSERT ON entries"
    " WHEN NEW.seq IS NOT (SELECT coalesce(max(seq), 0) + 1 FROM entries)"
    " BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
)
_IN_USE = "is in use by another process; try again when that one has ended"
_UNREACHABLE = (
    "cannot be opened or created; check that its folder exists and is writable, "
    "or name another place with --ledger"
)
_FOREIGN = (
    "is not a dpforest ledger, or no longer; restore it from a backup, "
    "or name another place with --ledger"
)
_DAMAGED = "is damaged; restore it from a backup"
# databases may delete files with the first six endings; the others are those of data
_OTHER_FILES = (
    *("-journal", "-wal", "-shm", ".wal", ".wal.checkpoint", ".wal.recovery"),
    *(".parquet", ".pq", ".csv", ".tsv", ".csv.gz", ".tsv.gz"),
)
_TROUBLE = {
    "BUSY": _IN_USE,
    "LOCKED": _IN_USE,
    "CANTOPEN": _UNREACHABLE,
    "PERM": _UNREACHABLE,
    "READONLY": "cannot be written; make the file and its folder writable",
    "FULL": "cannot be written because the disk is full; free some space and try again",
    "IOERR": "cannot be read or written; check the disk and try again",
    "NOTADB": _FOREIGN,
}


class _Memory:
    """The chain of a ledger as it was last read. Nothing is added to it."""

    chain = Chain()


@lru_cache(maxsize=16)
def _memory(path: Path) -> _Memory:
    return _Memory()


class Ledger:
    """The ledger at `path`; nothing is created before the first write, a missing file is empty.

    Every operation opens and closes its own connection, so threads and processes may share a
    ledger. Each one raises `DpforestError` if the file cannot be used or its chain is broken, and
    then writes nothing.
    """

    def __init__(self, path: str | Path) -> None:
        """Raises `UsageError` for a name that databases or data files have."""
        self.path = Path(path).absolute()
        name = self.path.name.lower()
        ending = next((each for each in _OTHER_FILES if name.endswith(each)), None)
        if ending:
            raise UsageError(
                f"The name of a ledger cannot end in {ending}, because a database may delete such "
                "a file or read it as data: choose another name with --ledger."
            )

    def read(self) -> Chain:
        """The entries as they are now; additions to them are not written."""
        try:
            self.path.stat()
        except FileNotFoundError:
            return Chain()
        except OSError:
            raise self._error(_UNREACHABLE) from None
        # Not mode=ro: after a crash the next reader has to roll the journal back.
        with self._connection("rw") as connection:
            connection.execute("BEGIN")
            return self._load(connection) if self._has_layout(connection) else Chain()

    def refuse_unwritable(self) -> None:
        """Raise what `writing` would raise where file or folder cannot be written; write nothing.

        SQLite needs the folder too, for its journal.
        """
        present = self.path.exists()
        if not os.access(self.path.parent, os.W_OK | os.X_OK):
            raise self._error(_TROUBLE["READONLY"] if present else _UNREACHABLE)
        if present and not os.access(self.path, os.W_OK):
            raise self._error(_TROUBLE["READONLY"])

    @contextmanager
    def writing(self) -> Iterator[Chain]:
        """The chain under the write lock; what the block adds to it is committed at its end."""
        with self._alone(), self._connection("rwc") as connection:
            connection.execute("BEGIN IMMEDIATE")
            if not self._has_layout(connection):
                _create_layout(connection)
            chain = self._load(connection)
            known = len(chain.rows)
            yield chain
            connection.execute(f"PRAGMA user_version={_LAYOUT}")
            connection.executemany("INSERT INTO entries VALUES (?, ?, ?, ?)", chain.rows[known:])
            connection.execute("COMMIT")

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold a lock on the ledger's folder, so that no other process writes meanwhile.

        SQLite's own lock is lost if another thread of this process opens the file and closes it, as
        a backup does: such locks belong to a process and a file (POSIX). This one belongs to the
        open folder. Where folders cannot be locked, as on some network drives, there is none.
        """
        folder = self._open_folder()
        if folder is None:
            yield
            return
        try:
            self._lock(folder)
            yield
        finally:
            with suppress(OSError):  # a forked process may have the folder open too
                fcntl.flock(folder, fcntl.LOCK_UN)
            os.close(folder)

    def _open_folder(self) -> int | None:
        """The folder of the file itself, whatever links lead to it.

        None if it cannot be opened, and on Windows.
        """
        if fcntl is not None:
            with suppress(OSError):
                return os.open(self.path.resolve().parent, os.O_RDONLY)
        return None

    def _lock(self, folder: int) -> None:
        """Lock an open folder. Raises `DpforestError` if another process has the lock for long."""
        end = time.monotonic() + _WAIT_SECONDS
        while True:
            try:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > end:
                    raise self._error(_IN_USE) from None
                time.sleep(_POLL_SECONDS)
                continue
            except OSError:  # no locks there
                pass
            return

    @contextmanager
    def _connection(self, mode: str) -> Iterator[sqlite3.Connection]:
        """A connection whose open transaction is rolled back at the end, with errors as
        sentences.
        """
        try:
            with closing(
                sqlite3.connect(
                    f"{self.path.as_uri()}?mode={mode}",
                    timeout=_WAIT_SECONDS,
                    isolation_level=None,
                    uri=True,
                )
            ) as connection:
                # EXTRA syncs the folder too. Otherwise a power cut just after the commit can bring
                # the rollback journal back, and a debit that is spent would not be recorded.
                connection.execute("PRAGMA synchronous=EXTRA")
                yield connection
        except (sqlite3.Error, UnicodeDecodeError) as error:
            # SQLITE_IOERR_WRITE → IOERR; only text that is not UTF-8 gives an error without a name.
            name = getattr(error, "sqlite_errorname", "SQLITE_CORRUPT")
            raise self._error(_TROUBLE.get(name.split("_")[1], _DAMAGED)) from None

    def _has_layout(self, connection: sqlite3.Connection) -> bool:
        """False for an empty file; raises unless anything else has exactly our layout."""
        found = [sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master")]
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (layout,) = connection.execute("PRAGMA user_version").fetchone()
        if not found and application == 0:
            return False
        if application != _APPLICATION:
            raise self._error(_FOREIGN)
        if layout > _LAYOUT:
            raise self._error("was written by a newer dpforest-duckdb; update the package")
        if sorted(map(str, found)) != sorted(_SCHEMA):
            raise self._error(
                "has been changed: its tables or triggers are not as they were made; "
                "restore it from a backup"
            )
        return True

    def _load(self, connection: sqlite3.Connection) -> Chain:
        """Read the chain, and check that each entry follows from the one before it.

        Rows that were checked before need no second check if they are the same.
        """
        rows = connection.execute(
            "SELECT seq, content, previous, hash FROM entries ORDER BY seq"
        ).fetchall()
        memory = _memory(self.path)
        known = memory.chain
        chain = known.copy() if rows[: len(known.rows)] == known.rows else Chain()
        for row in rows[len(chain.rows) :]:
            if row != chain.row(row[1]):
                before = f"entry {chain.next - 1}" if chain.rows else "an empty ledger"
                raise self._error(
                    f"has been changed or cut: entry {chain.next} does not follow from {before}; "
                    "restore it from a backup"
                )
            try:
                chain.load(parse(row[1]), row)
            except (
                *(KeyError, TypeError, ValueError, AttributeError, RecursionError),
                DpforestError,
            ):
                raise self._error(_DAMAGED) from None
        memory.chain = chain.copy()
        return chain

    def _error(self, what: str) -> DpforestError:
        return DpforestError(f"The ledger at {self.path} {what}.")


def _create_layout(connection: sqlite3.Connection) -> None:
    for statement in _SCHEMA:
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id={_APPLICATION}")
    connection.execute(f"PRAGMA user_version={_LAYOUT}")
