"""Statements of one user: Ctrl-C stops them, and their errors do not quote data."""

from __future__ import annotations

import contextlib
import re
import threading
import weakref
from collections.abc import Callable, Collection
from queue import SimpleQueue
from typing import Any, TypeVar

import duckdb

from dpforest_duckdb.domain.table import TableInfo
from dpforest_duckdb.engine.base import Trace
from dpforest_duckdb.errors import DpforestError, RefusedStatementError, UsageError
from dpforest_duckdb.scoring.codes import DuckDBCodes
from dpforest_duckdb.sql import Sql

_FULL = re.compile(r"write.*: No space left on device\s*$", re.DOTALL)  # the system's words
Result = TypeVar("Result")
CLOSED = "The DuckDB connection is closed: open it again with duckdb.connect(path)."
BUSY = "Another thread is using the DuckDB connection: give each thread a con.cursor() of its own."


class Statements:
    """Runs statements on the user's connection, or on one of our own to the same database.

    `trace` gets every statement before it runs. Errors of the database are replaced by our own
    sentences, because DuckDB's errors quote data. Statements run in a thread of their own, so that
    Ctrl-C can interrupt them at once. The thread ends with this object.
    """

    dialect = DuckDBCodes()

    def __init__(self, connection: duckdb.DuckDBPyConnection, trace: Trace | None = None) -> None:
        self.connection = connection
        self.trace = trace
        self._tasks = SimpleQueue[Callable[[], bool]]()
        self._worker = threading.Thread()
        self._ensure_worker()
        weakref.finalize(self, self._tasks.put, bool)  # bool() is False, so the thread ends

    def rows_of(self, table: TableInfo, used: Collection[str]) -> Sql:
        """The rows of a table, to be read from: its stored columns, and the computed ones in use.

        A computed value is NULL where its expression fails, so that no row fails a statement, but
        for errors that TRY lets through: what DuckDB calls not implemented for a value. DuckDB
        refuses TRY for expressions that change with each reading.
        """
        name = self.dialect.ident(*table.key)
        if not table.computed:
            return name
        columns = [
            f"TRY({self.dialect.ident(column)}) AS {self.dialect.ident(column)}"
            if column in table.computed
            else self.dialect.ident(column)
            for column in table.columns
            if column in used or column not in table.computed
        ]
        return Sql(f"(SELECT {', '.join(columns)} FROM {name})")

    def row_of(self, table: TableInfo) -> Sql:
        """The stored columns of a row `t`, to be hashed: an ENUM by its number."""
        return Sql(
            ", ".join(
                self.dialect.ident("t", name)
                if kind.labels
                else self.dialect.collated(kind, self.dialect.ident("t", name))
                for name, kind in table.columns.items()
                if name not in table.computed
            )
        )

    def run(
        self,
        sql: str,
        values: Any = None,
        *,
        step: str = "",
        fetch: Callable[[duckdb.DuckDBPyConnection], Any] = duckdb.DuckDBPyConnection.fetchall,
        on: duckdb.DuckDBPyConnection | None = None,
    ) -> Any:
        """Run one statement; `fetch` gets its result from the connection, as a list of rows if no
        other function is given. `on` is another connection to run on.
        """
        connection = self.connection if on is None else on

        def work() -> Any:
            return fetch(connection.execute(sql, values or None))

        return self.call(work, step=step, on=connection, sql=sql)

    def arrays(
        self,
        sql: str,
        values: Any = None,
        *,
        step: str,
        on: duckdb.DuckDBPyConnection | None = None,
    ) -> dict[str, Any]:
        """Run one statement as `run` does; its result as an array for each column."""
        found: dict[str, Any] = self.run(
            sql, values, step=step, fetch=duckdb.DuckDBPyConnection.fetchnumpy, on=on
        )
        return found

    def parse_tree(self, sql: str) -> str:
        """Statements as DuckDB's parser has them, in JSON."""
        return str(self.run("SELECT system.main.json_serialize_sql(?)", [sql])[0][0])

    def settle(self, sql: str) -> None:
        """Run a statement that undoes something, until Ctrl-C no longer interrupts it."""
        try:
            self.run(sql)
        except KeyboardInterrupt:
            with contextlib.suppress(DpforestError):  # it was done before
                self.settle(sql)
            raise

    def call(
        self,
        work: Callable[[], Result],
        *,
        step: str = "",
        on: duckdb.DuckDBPyConnection | None = None,
        sql: str = "",
    ) -> Result:
        """The result of something that uses a connection, run and interrupted as by `run`.

        `sql` is the statement that it runs, if it runs one: to be traced. Raises `DpforestError`,
        without any data, for an error of DuckDB.
        """
        if self.trace and sql:  # one that is no step reads the catalogue, models or settings
            self.trace(sql if step else f"-- reads private rows: no\n{sql}")
        if threading.current_thread() is self._worker:  # it would wait for itself
            return work()
        connection = self.connection if on is None else on
        outcome: dict[str, Any] = {}  # filled by the thread in the end
        # plain locks: Ctrl-C inside an Event can break it
        claimed = threading.Lock()  # by the thread when it begins, or by a signal before that
        working = threading.Lock()
        working.acquire()

        def reported() -> bool:
            if claimed.acquire(blocking=False):
                try:
                    outcome["result"] = work()
                except BaseException as error:
                    outcome["error"] = error
                finally:
                    working.release()
            return True

        try:
            self._tasks.put(reported)
            while not outcome:
                self._ensure_worker()
                working.acquire(timeout=0.2)  # a signal is seen at the latest then
        except BaseException:
            # Python must not end, nor the connection close, while the thread uses DuckDB
            if not claimed.acquire(blocking=False):
                while not outcome:
                    with contextlib.suppress(KeyboardInterrupt):  # a second Ctrl-C
                        connection.interrupt()  # again, in case the query had not started
                        working.acquire(timeout=0.2)
            raise
        if "error" in outcome:
            # not kept: an error and its frame would keep each other, and the connection
            raise _plain_error(outcome.pop("error"), step) from None
        result: Result = outcome["result"]
        return result

    def _ensure_worker(self) -> None:
        """Start the thread that runs statements, if there is none: when this object is made, in the
        child of a fork, and in functions that run when Python exits.
        """
        if not self._worker.is_alive():
            self._worker = threading.Thread(target=_run_tasks, args=(self._tasks,), daemon=True)
            self._worker.start()


def _run_tasks(tasks: SimpleQueue[Callable[[], bool]]) -> None:
    """Run one task after another until one returns False.

    No task is kept in a variable, so what it refers to can be freed at once.
    """
    while tasks.get()():
        pass


def current_settings(*names: str) -> str:
    """The query for settings of DuckDB, by their names."""
    values = ", ".join(f"system.main.current_setting('{name}')" for name in names)
    return f"SELECT {values}"


def second_connection(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Another connection to the same database. Raises `UsageError` if the first is closed."""
    try:
        return connection.cursor()
    except duckdb.ConnectionException:
        raise UsageError(CLOSED) from None


def _plain_error(error: BaseException, step: str) -> BaseException:
    """Our own sentence for an engine error, whose text may quote data.

    So may errors of Python, such as one about text that is no Unicode.
    """
    if isinstance(error, duckdb.InterruptException):
        return KeyboardInterrupt()
    if isinstance(error, DpforestError | MemoryError) or not isinstance(error, Exception):
        return error
    where = f" in step {step}" if step else ""
    if isinstance(error, duckdb.ConnectionException):
        return UsageError(CLOSED)
    if isinstance(error, duckdb.ResourceInUseException):
        return UsageError(BUSY)
    if isinstance(error, duckdb.OutOfMemoryException):
        return DpforestError(
            f"DuckDB ran out of memory or temporary disk{where}: raise --memory-limit, "
            "choose a larger folder with --temp-dir, or free disk space."
        )
    # a commit on a full disk has no error class of its own
    if isinstance(error, duckdb.IOException) or "Could not write file" in str(error):
        full = _FULL.search(str(error)) is not None
        remedy = "the disk is full, so free some space" if full else "check the disk"
        return DpforestError(f"DuckDB could not read or write its files{where}: {remedy}.")
    aborted = isinstance(error, duckdb.TransactionException) and "aborted" in str(error)
    if aborted and not step:  # in a step, it is a transaction of ours
        return DpforestError(
            "The connection's transaction is aborted: end it with ROLLBACK, then try again."
        )
    return RefusedStatementError(
        f"DuckDB refused a statement{where} ({type(error).__name__}). Its message is withheld, "
        "because it can quote data: --show-sql shows the statement."
    )
