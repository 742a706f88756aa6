"""What the tests share: connections, small tables, and the folder of real ones if it is there."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import duckdb
import hypothesis
import pytest
from shell import VISITS, dpforest, make, train

from dpforest_duckdb.domain.file import load_domain
from dpforest_duckdb.errors import NotPrivateWarning
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.report import page
from dpforest_duckdb.training.prepare import prepare

_BESIDE = Path(__file__).parent.parent.parent / "shared" / "data"
_NO_TABLES = "set DPFOREST_DATA to the folder that holds nursery.parquet and the other real tables"

ENVIRONMENT = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_TRIM_THRESHOLD_": str(2**29),
    "MALLOC_TOP_PAD_": str(2**26),
    "OMP_NUM_THREADS": "1",
}

# a busy machine fails no test: there is no limit to the time of one example
hypothesis.settings.register_profile("patient", hypothesis.settings.default, deadline=None)
hypothesis.settings.load_profile("patient")


def pytest_configure(config: pytest.Config) -> None:
    """Save the time that compiling and the disk would take.

    Where Python may not write bytecode, each of some hundred processes would compile the package
    again: it goes to the cache of pytest. What tests write is kept in memory if there is room, as
    each ledger waits for the disk several times. Hundreds of databases in memory are opened: glibc,
    where it is the C library, is to keep what they free for the next ones. Threads of OpenMP would
    wait for each other in a loop, as there is a process for each processor.
    """
    for name, value in ENVIRONMENT.items():  # read by the processes that xdist starts
        os.environ.setdefault(name, value)
    if sys.dont_write_bytecode and config.pluginmanager.hasplugin("cacheprovider"):
        sys.dont_write_bytecode = False
        sys.pycache_prefix = str(config.cache.mkdir("bytecode"))
        os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    memory = Path("/dev/shm")
    if memory.is_dir() and shutil.disk_usage(memory).free > 4 * 2**30:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(memory))


def pytest_collection_finish() -> None:
    """What is imported lives as long as the process: no garbage collection looks at it again."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    gc.unfreeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """One process where files are named: to start more would take longer than the tests.

    Else one more than there are processors, since some tests wait for processes of their own.
    """
    named = any(Path(argument.partition("::")[0]).is_file() for argument in config.args)
    return 0 if named else (os.cpu_count() or 1) + 1


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line on the tests that were skipped because the real tables were not found."""
    skipped = terminalreporter.getreports("skipped")
    number = sum(_NO_TABLES in str(report.longrepr) for report in skipped)
    if number:
        terminalreporter.write_line(f"{number} tests were skipped: {_NO_TABLES}.")


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> None:
    """Let Ctrl-C through where the tests run in the background, whose shell has it ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def no_library() -> Iterator[None]:
    """Reports get no scripts for their charts, which would take seconds to put together."""
    with mock.patch.object(page, "_library", return_value=""):
        yield


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real tables; without it the test is skipped and says so."""
    found = Path(os.environ.get("DPFOREST_DATA", _BESIDE))
    if not (found / "nursery.parquet").is_file():
        pytest.skip(_NO_TABLES)
    return found


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        yield connection


@pytest.fixture
def fit(tmp_path: Path) -> Callable[..., Forest]:
    """Train with a seed and a ledger of the test's own."""

    def run(con: duckdb.DuckDBPyConnection, table: str, **options: object) -> Forest:
        settings = {"epsilon": 1, "seed": 1, "ledger": tmp_path / "ledger", **options}
        with warnings.catch_warnings(action="ignore", category=NotPrivateWarning):
            return prepare(con, table, **settings).execute()  # type: ignore[arg-type]

    return run


@pytest.fixture
def real(con: duckdb.DuckDBPyConnection, data_dir: Path) -> Callable[[str], Path]:
    """Load a real table under its name; gives the path of its domain file."""

    def load(name: str) -> Path:
        con.execute(f"CREATE TABLE \"{name}\" AS FROM '{data_dir / name}.parquet'")
        load_domain(data_dir / f"{name}.toml")
        return data_dir / f"{name}.toml"

    return load


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a database that has a model, risk, and its ledger: copied by `db`."""
    folder = tmp_path_factory.mktemp("made")
    database = folder / "clinic.duckdb"
    make(database, *VISITS)
    said = dpforest(*train(database, "--name", "risk"))
    assert said.code == 0, said.err
    return folder


@pytest.fixture
def db(made: Path, tmp_path: Path) -> Path:
    """A database with the tables visits and fresh and the model risk, for which 1 was spent."""
    shutil.copytree(made, tmp_path / "home")
    return tmp_path / "home" / "clinic.duckdb"
