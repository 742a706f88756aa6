"""Statements in one Spark session: Ctrl-C cancels them, and their errors do not quote data.

pyspark is imported only to start a session and to name a storage level: everything else goes
through the session that the user has, of Spark itself or of Spark Connect.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any, Protocol, TypeGuard, TypeVar

from dpforest_duckdb.domain.names import random_name
from dpforest_duckdb.engine.base import Trace
from dpforest_duckdb.errors import DebitStaysError, DpforestError
from dpforest_duckdb.scoring.codes import SparkCodes
from dpforest_duckdb.sql import Sql


class Session(Protocol):
    """A session of Spark, or of Spark Connect: what our code uses of both.

    pyspark may be missing, so its types are not named.
    """

    @property
    def catalog(self) -> Any: ...

    @property
    def conf(self) -> Any: ...

    @property
    def read(self) -> Any: ...

    def newSession(self) -> Any: ...  # noqa: N802

    def sql(self, sqlQuery: str, args: Any = None) -> Any: ...  # noqa: N803

    def table(self, tableName: str) -> Any: ...  # noqa: N803


Frame = Any  # a DataFrame of either
Rows = list[tuple[Any, ...]]
Result = TypeVar("Result")

_LIBRARIES = ("pyspark", "py4j", "grpc", "pyarrow")  # Spark Connect fetches by Arrow
_POLL = 0.2  # seconds after which Ctrl-C is seen at the latest
_PATIENCE = 10  # seconds to wait for the end of cancelled jobs
_SENTENCES = {
    "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND": (
        "Spark lost coded rows together with its executors: train again (what was debited stays "
        "spent)."
    ),
    "FAILED_READ_FILE": (
        "Files of the table changed or cannot be read: train again (what was debited stays spent)."
    ),
}
# Settings that change what a statement means, at Spark's defaults, which our statements need. If
# names were regular expressions, for example, one name could be several columns.
_MEANINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "false",
    "spark.sql.path.enabled": "false",  # else stored functions could come before built-in ones
    # else the values of one row could change the type of a column, and so whether a run is refused
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    # else the files would be refused or not by the types of columns that are not used
    "spark.sql.parquet.mergeSchema": "false",
    # else one value that cannot be decoded would take all rows after it out of the counts
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
}
OF_WORDS = (  # those that change how names and literals are read, and so scores
    "spark.sql.parser.escapedStringLiterals",
    "spark.sql.parser.quotedRegexColumnNames",
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled",
)
_CANCELLED = ("OPERATION_CANCELED", "SPARK_JOB_CANCELLED", "JOB_CANCELLED")


def is_session(thing: object) -> TypeGuard[Session]:
    """Whether this is a Spark session; pyspark is not imported for the answer."""
    return any(
        kind.__module__.startswith("pyspark.sql") and kind.__name__ == "SparkSession"
        for kind in type(thing).__mro__
    )


def own_session(session: Session) -> Session:
    """A new session with the settings of another, but without its functions and views.

    A user's function can replace a built-in one of the same name, and so change what is counted.
    So would a setting that gives our SQL another meaning.
    """
    new: Session = session.newSession()
    for key, value in {**session.conf.getAll, **_MEANINGS}.items():
        if new.conf.get(key, None) != value:
            with contextlib.suppress(Exception):  # some can be set for the whole cluster only
                new.conf.set(key, value)
    refuse_meanings(new)
    return new


def refuse_meanings(session: Session, keys: Iterable[str] = tuple(_MEANINGS)) -> None:
    """Raise `DpforestError` if one of the settings gives our SQL another meaning."""
    for key in keys:
        if session.conf.get(key, _MEANINGS[key]) != _MEANINGS[key]:
            raise DpforestError(
                f"The setting {key} changes what our SQL means: set it to {_MEANINGS[key]}."
            )


class Steps:
    """Runs statements in one session, in one thread; all jobs of the thread have the same tag."""

    dialect = SparkCodes()

    def __init__(self, session: Session, trace: Trace | None = None) -> None:
        self.session = session
        self.trace = trace
        self._tag = f"dpforest-{secrets.token_hex(6)}"
        kind: Any = session
        if is_remote(session):
            add, self._interrupt = kind.addTag, kind.interruptTag
        else:  # a session cancels only tags of the calling thread, a context those of all threads
            context = kind.sparkContext
            add, self._interrupt = context.addJobTag, context.cancelJobsWithTag
        self._worker = ThreadPoolExecutor(1, initializer=_begin, initargs=(session, add, self._tag))

    def close(self) -> None:
        """End the thread."""
        self._worker.shutdown(wait=False)

    def rows(self, sql: str, values: Mapping[str, Any] | None = None, *, step: str = "") -> Rows:
        """Run one statement and fetch its rows."""
        return self._traced(
            sql, values, step, lambda frame: [tuple(row) for row in frame.collect()]
        )

    def frame(self, sql: str, values: Mapping[str, Any] | None = None, *, step: str = "") -> Frame:
        """A SELECT as a DataFrame; it is checked, and reads nothing yet."""
        return self._traced(sql, values, step, lambda frame: frame)

    def _traced(
        self,
        sql: str,
        values: Mapping[str, Any] | None,
        step: str,
        done: Callable[[Frame], Result],
    ) -> Result:
        """What `done` makes of the DataFrame of a statement, which is shown first."""
        if self.trace:  # a statement that is no step reads the catalogue
            self.trace(sql if step else f"-- reads private rows: no\n{sql}")
        args = dict(values) if values else None
        return self.call(lambda: done(self.session.sql(sql, args=args)), step=step)

    def call(self, work: Callable[[], Result], *, step: str = "") -> Result:
        """The result of something that uses the session; Ctrl-C cancels its jobs.

        Raises what `plain_error` makes of an error of Spark.
        """
        running = self._worker.submit(_quietly, work)
        try:
            return _awaited(running)
        except KeyboardInterrupt:
            self._cancel(running)
            raise
        except Exception as error:
            raise plain_error(error, step) from None

    def _cancel(self, running: Future[Any]) -> None:
        """Cancel the jobs of what runs, also those that Spark only plans yet."""
        for _ in range(int(_PATIENCE / _POLL)):
            with contextlib.suppress(Exception):
                self._interrupt(self._tag)
            if wait([running], timeout=_POLL).done:
                break


@contextlib.contextmanager
def own_steps(steps: Steps) -> Iterator[Steps]:
    """Steps in a session of its own (see `own_session`), which ends at the end."""
    session: Any = steps.call(lambda: own_session(steps.session))
    temporary = Steps(session, steps.trace)
    try:
        yield temporary
    finally:
        temporary.close()
        if is_remote(session):  # an open one calls the server when Python ends, for minutes
            with contextlib.suppress(Exception):
                session.client.close()


def _begin(session: Any, add: Callable[[str], None], tag: str) -> None:
    """Prepare a thread: its jobs get a tag, and Spark Connect uses its session by default."""
    add(tag)
    if is_remote(session):  # a checkpoint would be looked for in the first session otherwise
        session._set_default_and_active_session(session)


def is_remote(thing: object) -> bool:
    """Whether this is of Spark Connect."""
    return type(thing).__module__.startswith("pyspark.sql.connect")


def _awaited(running: Future[Result]) -> Result:
    """The result of a thread; a signal interrupts the wait."""
    while not running.done():
        wait([running], timeout=_POLL)
    return running.result()


class _OfOthers(logging.Filter):
    """Lets through what other threads than ours log."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not getattr(_OURS, "works", False)


_OURS = threading.local()  # `works` is true in a thread while it works for us
_OF_OTHERS = _OfOthers()


def _quietly(work: Callable[[], Result]) -> Result:
    """What `work` returns; pyspark does not log its errors, which quote data."""
    from pyspark.logger import PySparkLogger

    for name in ("SQL", "DataFrame"):  # a logger of pyspark's own class, which its code needs
        PySparkLogger.getLogger(f"{name}QueryContextLogger").addFilter(_OF_OTHERS)
    _OURS.works = True
    try:
        return work()
    finally:
        _OURS.works = False


def plain_error(error: BaseException, step: str = "") -> BaseException:
    """Our own sentence for an error of Spark, whose text may quote data."""
    if not any(kind.__module__.startswith(_LIBRARIES) for kind in type(error).__mro__):
        return error
    condition = ""
    with contextlib.suppress(Exception):
        condition = str(error.getCondition() or "")  # type: ignore[attr-defined]
    text = str(error)
    if any(word in condition or f"[{word}" in text for word in _CANCELLED):
        return KeyboardInterrupt()
    for word, sentence in _SENTENCES.items():
        if condition.startswith(word) or f"[{word}" in text:
            return DebitStaysError(sentence)
    where = f" in step {step}" if step else ""
    kind = condition.partition(".")[0] or type(error).__name__
    return DpforestError(
        f"Spark refused a statement{where} ({kind}); its message is withheld because it can quote "
        "data."
    )


class PrivateViews:
    """The private rows of a run in Spark, under the names of temporary views.

    Spark reads a local checkpoint from the executors that hold it, and never reads the table again.
    So no row is counted twice if the table changes and an executor is lost. If there are several
    executors, each block is stored on two of them. A run fails if both are lost.
    """

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._views: dict[Sql, list[Frame]] = {}

    def view(self, frame: Frame, over: Sql | None = None) -> Sql:
        """A new view of a DataFrame; it replaces `over`, a view that the DataFrame reads."""
        name = random_name()
        self._steps.call(lambda: frame.createOrReplaceTempView(name))
        checkpoints = self._views.pop(over) if over is not None else []
        ident = self._steps.dialect.ident(name)
        self._views[ident] = checkpoints
        if over is not None:
            self._drop_view(over)
        return ident

    def stored(self, frame: Frame, step: str, over: Sql | None = None) -> Sql:
        """As `view`, but the rows are computed now, and stored in a checkpoint."""
        level = _level(self._steps.session)
        checkpoint = self._steps.call(lambda: frame.localCheckpoint(True, level), step=step)
        view = self.view(checkpoint)
        self._views[view] = [checkpoint]
        if over is not None:
            self.drop(over)
        return view

    def drop(self, view: Sql) -> None:
        """Free the rows of a view, if it is there."""
        if view not in self._views:
            return
        for frame in self._views.pop(view):
            self._steps.call(partial(_free, frame))
        self._drop_view(view)

    def _drop_view(self, view: Sql) -> None:
        name = view.strip("`")
        self._steps.call(lambda: self._steps.session.catalog.dropTempView(name))

    def clear(self) -> None:
        """Free everything."""
        for view in list(self._views):
            self.drop(view)


@contextlib.contextmanager
def private_views(steps: Steps) -> Iterator[PrivateViews]:
    """The views of a run; their rows are freed at the end."""
    views = PrivateViews(steps)
    try:
        yield views
    finally:
        views.clear()


def _level(session: Session) -> Any:
    """Where a checkpoint is stored: in memory and on disk, on two executors if there are two.

    As objects, which Java writes and reads in less than half the time of serialized rows.
    """
    from pyspark import StorageLevel

    alone = str(session.conf.get("spark.master", "")).partition("[")[0] == "local"
    return StorageLevel(True, True, False, True, 1 if alone else 2)


def _free(frame: Frame) -> None:
    """Free a checkpoint now; the server of Spark Connect does so when its client forgets it."""
    if not is_remote(frame):
        frame._jdf.logicalPlan().rdd().unpersist(False)
