"""Cases that are made once per session, and a process of its own for every engine."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

import pytest
from forests import MakeCase, made_case, real_case
from runners import Rows, Run


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> MakeCase:
    """A drawn forest by its name."""
    folder = tmp_path_factory.mktemp("made_cases")
    return cache(lambda name: made_case(name, folder))


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory, data_dir: Path) -> MakeCase:
    """A forest trained on a real table by its name, with every row of that table."""
    folder = tmp_path_factory.mktemp("whole_cases")
    return cache(lambda name: real_case(name, data_dir, folder))


@pytest.fixture(scope="session")
def sampled(tmp_path_factory: pytest.TempPathFactory, data_dir: Path) -> MakeCase:
    """The same with a thousand of the rows."""
    folder = tmp_path_factory.mktemp("sampled_cases")
    return cache(lambda name: real_case(name, data_dir, folder, rows=1000))


@pytest.fixture(scope="session")
def in_process() -> Iterator[Run]:
    """Runs a runner in a process that this engine has to itself."""
    context = multiprocessing.get_context("spawn")
    pools: dict[str, ProcessPoolExecutor] = {}

    def run(runner: Callable[..., Rows], *arguments: str) -> Rows:
        name = runner.__name__
        if name not in pools:
            pools[name] = ProcessPoolExecutor(1, mp_context=context)
        return pools[name].submit(runner, *arguments).result(timeout=300)

    yield run
    for pool in pools.values():
        pool.shutdown()
