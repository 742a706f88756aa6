"""The wheel is whole: templates and commands are in it, and it runs on its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PLACES = {  # in the checkout, and in a wheel
    "dpforest_duckdb": "dpforest_duckdb",
    "cli": "dpforest_duckdb/cli",
    "sql": "dpforest_duckdb/sql",
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of a copy of the checkout, in which nothing is left of earlier builds."""
    folder = tmp_path_factory.mktemp("wheel")
    copy = folder / "checkout"
    copy.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    for name in PLACES:
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", str(folder), str(copy)], check=True)
    return next(folder.glob("*.whl"))


def test_the_wheel_has_the_files_of_the_checkout_and_no_others(wheel: Path) -> None:
    """A package that pyproject.toml does not list is missing, and so is a file of another kind."""
    expected = {
        f"{place}/{file.relative_to(ROOT / folder).as_posix()}"
        for folder, place in PLACES.items()
        for file in (ROOT / folder).rglob("*")
        if file.is_file() and file.suffix != ".pyc"
    }
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert inside == expected
    assert "dpforest_duckdb/py.typed" in inside
    assert {Path(name).suffix for name in inside} >= {".py", ".sql"}


def test_every_package_and_none_other_is_listed() -> None:
    setup = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert setup["tool"]["setuptools"]["packages"] == sorted(
        {
            ".".join((*place.split("/"), *file.parent.relative_to(ROOT / folder).parts))
            for folder, place in PLACES.items()
            for file in (ROOT / folder).rglob("*.py")
        }
    )


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


@pytest.mark.parametrize("name", ["errors.PublicFactWarning", "progress.Phase"])
def test_documented_modules_need_no_import_of_their_own(name: str) -> None:
    """Type checkers take them for imported."""
    program = f"import dpforest_duckdb; print(dpforest_duckdb.{name}.__name__)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.stdout.strip() == name.partition(".")[2]


def test_an_estimator_without_scikit_learn_says_what_to_install() -> None:
    program = "import sys; sys.modules['sklearn'] = None; import dpforest_duckdb.sklearn"
    command = [sys.executable, "-c", program]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "pip install scikit-learn" in ran.stderr.splitlines()[-1]
