"""The documentation of the command line is whole, and its commands run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer
from shell import dpforest

from dpforest_duckdb.cli import app

ROOT = Path(__file__).parent.parent
REFERENCE = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]


def section(verb: str) -> str:
    found = re.search(rf"^## {verb}\n(.*?)(?=^## |\Z)", REFERENCE, re.MULTILINE | re.DOTALL)
    assert found, f"docs/cli.md has no heading for {verb}"
    return found[1]


def flags(verb: str) -> set[str]:
    params = COMMANDS[verb].params
    return {o for p in params if p.param_type_name == "option" for o in p.opts} - {"--help", "-h"}


def test_the_reference_has_the_verbs_and_no_others() -> None:
    assert re.findall(r"^## (\S+)$", REFERENCE, re.MULTILINE) == list(COMMANDS)


@pytest.mark.parametrize("verb", COMMANDS)
def test_a_verb_is_documented_with_every_option(verb: str) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.search(rf"^\| `{verb}` \|", readme, re.MULTILINE), "in the table of the README"
    rows = re.findall(r"^\| `(--[\w-]+)", section(verb), re.MULTILINE)
    assert len(rows) == len(set(rows))
    assert set(rows) == flags(verb)


@pytest.mark.parametrize("file", ["README.md", "docs/cli.md", "docs/domain.md", "docs/privacy.md"])
def test_commands_in_the_documentation_have_options_that_exist(file: str) -> None:
    text = (ROOT / file).read_text(encoding="utf-8").replace("\\\n", " ")
    for command in re.findall(r"^\$ dpforest (.*)$", text, re.MULTILINE):
        verb, *words = shlex.split(command.partition("&&")[0])
        assert verb in COMMANDS
        assert {word for word in words if word.startswith("--")} <= flags(verb), command


def test_the_examples_of_the_reference_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert dpforest("demo").code == 0
    for verb in COMMANDS:
        (command,) = re.findall(r"^\$ dpforest (.*)$", section(verb), re.MULTILINE)
        words, _, file = command.partition(" > ")
        assert words.split()[0] == verb
        said = dpforest(*shlex.split(words))
        assert said.text
        if file:
            Path(file).write_text(said.out)
    produced = {entry.name for entry in tmp_path.iterdir()}
    assert produced == {"dpforest-demo", "second.json", "verdicts.sql", "nursery.toml"}
