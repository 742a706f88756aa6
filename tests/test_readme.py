"""Every session of the README runs and prints what the README shows, but for noise."""

from __future__ import annotations

import gc
import re
import shlex
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from sessions import commands, prints, words
from shell import dpforest
from typer.testing import CliRunner

from dpforest_duckdb.cli import app

NUMBER = re.compile(r"\d[\d.,]*")
ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(mark: str) -> str:
    """The code block after a mark in the README."""
    found = re.search(rf"<!-- {mark} -->\n```\w+\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    assert found, f"the README has no block {mark}"
    return found[1]


def test_the_first_session_is_what_demo_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown, printed = block("demo"), dpforest("demo").text
    assert [c for c, _ in commands(shown)] == [c for c, _ in commands(printed)]
    for (command, expected), (_, output) in zip(commands(shown), commands(printed), strict=True):
        assert len(words(output)) == len(words(expected)), command
        if command.split()[1] not in ("sql", "rules"):  # these show rows and rules that noise picks
            assert words(output) == words(expected)
    assert words(shown)[:2] == words(printed)[:2]


def test_the_checks_before_a_release_run_the_test_command() -> None:
    ((command, _),) = commands(block("test"))
    install, test = command.split(" && ")
    steps = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert install.replace("pip install", "pip install --quiet") in steps
    assert test in steps


def test_the_hospital_session_runs_as_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("hospital.sql").write_text(block("hospital tables") + block("hospital rows"))
    ((setup, _),) = commands(block("hospital setup"))
    python, *arguments = shlex.split(setup)
    assert python == "python"
    subprocess.run([sys.executable, *arguments], check=True)
    for command, expected in commands(block("hospital")):
        line, _, file = command.partition(" > ")
        ran = CliRunner().invoke(app, shlex.split(line)[1:], catch_exceptions=False)
        assert ran.exit_code == 0, ran.output
        if file:
            Path(file).write_text(ran.stdout, encoding="utf-8")
        output = (ran.stderr if file else ran.stderr + ran.stdout).replace(f"{tmp_path}/", "")
        assert prints(output, expected), command
        if "--dry-run" in command:  # it reads no rows, so no noise changes its numbers
            numbers = NUMBER.findall(expected)
            assert NUMBER.findall(output)[: len(numbers)] == numbers
    with duckdb.connect("hospital.duckdb") as con:
        con.execute(Path("readmission.sql").read_text(encoding="utf-8"))
        assert con.execute("SELECT count(*) FROM readmission_scored").fetchall() == [(500,)]
    exec(compile(block("hospital python"), "README.md", "exec"), {})
    gc.collect()  # the script leaves its connection open, which blocks other ones
    assert Path("readmission.json").is_file()
    left = dpforest("budget", "--db", "hospital.duckdb", "--table", "visits", "--json").facts[
        "left"
    ]
    assert left == 0.5


def test_the_figures_are_those_of_their_page() -> None:
    """The README has some of them, in the words of the page."""
    page = (ROOT / "docs" / "figures.md").read_text(encoding="utf-8")
    table = README.partition("## Figures")[2].partition("\n\n[docs")[0]
    figures = [row.strip("| ").split(" | ") for row in table.split("\n")[4:]]
    assert len(figures) > 3
    for _, figure in figures:
        assert re.search(rf"\| {re.escape(figure)}[ ,;]", page), figure
