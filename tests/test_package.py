"""The wheel is whole: templates and commands are in it, and it runs on its own."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", str(folder), str(ROOT)], check=True)
    return next(folder.glob("*.whl"))


def test_the_wheel_carries_every_module_and_template(wheel: Path) -> None:
    inside = set(zipfile.ZipFile(wheel).namelist())
    for folder, place in (("dpforest_duckdb", ""), ("cli", "cli/"), ("sql", "sql/")):
        for file in (ROOT / folder).rglob("*"):
            if file.suffix in (".py", ".sql"):
                relative = file.relative_to(ROOT / folder).as_posix()
                assert f"dpforest_duckdb/{place}{relative}" in inside
    assert "dpforest_duckdb/py.typed" in inside


def test_the_demo_runs_from_the_wheel(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    program = (
        "import sys, dpforest_duckdb, dpforest_duckdb.cli as cli, dpforest_duckdb.sql as sql\n"
        "for module in (dpforest_duckdb, cli, sql):\n"
        f"    assert module.__file__.startswith({str(site)!r})\n"
        "sys.argv = ['dpforest', 'demo', '--dir', 'demo']\n"
        "cli.main()"
    )
    environment = {**os.environ, "PYTHONPATH": str(site)}
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "accuracy" in ran.stdout.lower()
