"""The documentation of the command line is whole, and its commands run."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest
import typer
from packaging.version import Version
from shell import dpforest

from dpforest_duckdb import __version__
from dpforest_duckdb.cli import app
from dpforest_duckdb.scoring.dialects import DIALECTS

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


@pytest.mark.parametrize("verb", COMMANDS)
def test_the_help_of_a_verb_ends_with_an_example_on_one_line(verb: str) -> None:
    shown = dpforest(verb, "--help").text
    (command,) = re.findall(r"^  Example:\n    dpforest (.*)$", shown, re.MULTILINE)
    first, *words = shlex.split(command.partition(" > ")[0])
    assert first == verb
    assert {word for word in words if word.startswith("--")} <= flags(verb)


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_in_the_documentation_have_options_that_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    for command in re.findall(r"^\$ dpforest (.*)$", text, re.MULTILINE):
        verb, *words = shlex.split(command.partition("&&")[0])
        assert verb in COMMANDS
        assert {word for word in words if word.startswith("--")} <= flags(verb), command


@pytest.mark.more
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
    assert produced == {
        "dpforest-demo",
        "second.json",
        "second.html",
        "verdicts.sql",
        "nursery.toml",
    }


def test_architecture_names_files_and_functions_that_exist() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    for path in re.findall(r"`((?:\w+/)+(?:\w+\.(?:py|sql))?|\w+\.py)`", page):
        places = (ROOT / path, ROOT / "dpforest_duckdb" / path)
        inside_a_room = path in {file.name for file in (ROOT / "dpforest_duckdb").rglob("*.py")}
        assert any(place.exists() for place in places) or inside_a_room, path
    answers = re.search(r"## Where to find\n(.*?)\n## ", page, re.DOTALL)
    assert answers
    names = re.findall(r"`([\w.]+)`(?:,|(?: and `\w+`)?) in `([\w/]+\.py)`", answers[1])
    assert len(names) >= 8
    for name, path in names:
        text = (ROOT / "dpforest_duckdb" / path).read_text(encoding="utf-8")
        assert re.search(rf"(def|class) {name.rpartition('.')[2]}\b", text), f"{name} in {path}"


def test_architecture_names_every_file_but_those_of_systems_dialects_and_verbs() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    listed_elsewhere = {"published", "ours", "dialects"}
    for file in (ROOT / "dpforest_duckdb").rglob("*.py"):
        if file.parent.name not in listed_elsewhere and file.name[0] != "_":
            assert re.search(rf"[`/]{re.escape(file.name)}`", page), file.name


def test_architecture_has_a_paragraph_for_every_room() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rooms = [entry for entry in (ROOT / "dpforest_duckdb").iterdir() if entry.name[0] != "_"]
    for room in rooms:
        if room.suffix == ".py" or (room / "__init__.py").exists():
            assert f"`{room.name}{'/' if room.is_dir() else ''}`" in page, room.name


@pytest.mark.parametrize("name", DIALECTS)
def test_the_page_on_engines_has_the_limits_of_a_dialect(name: str) -> None:
    page = (ROOT / "docs" / "engines.md").read_text(encoding="utf-8")
    (row,) = re.findall(rf"^\| `{name}` \|.*$", page, re.MULTILINE)
    engine = DIALECTS[name]
    for limit, of in (
        (engine.longest_name, f"names of {engine.longest_name}"),
        (engine.most_columns, f"{engine.most_columns} columns"),
        (engine.most_nested, f"{engine.most_nested} levels of CASE"),
    ):
        assert limit is None or of in row


def test_links_between_pages_lead_to_files_and_headings() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if "://" in target:
                continue
            path, _, heading = target.partition("#")
            found = (page.parent / path).resolve() if path else page
            assert found.exists(), f"{page.name}: {target}"
            if heading:
                assert heading in headings(found), f"{page.name}: {target}"


def headings(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    found = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in found}


def test_the_answer_on_rows_has_the_figures_of_the_page_on_accuracy() -> None:
    def figures(page: str) -> list[list[str]]:
        rows = (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines()
        found = [
            re.findall(r"(\d+) ?%", row) for row in rows if re.match(r"\| (up|300|above) ", row)
        ]
        return [row for row in found if row]

    assert figures("questions.md") == [row[::-1] for row in figures("accuracy.md")]


def test_the_version_is_the_same_everywhere_and_not_before_the_last_release() -> None:
    """Code after a release has a version of its own, which its models name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(r"^## (\d+\.\d+\.\d+) \(\d{4}-\d{2}-\d{2}\)$", changes, re.MULTILINE)
    assert project["version"] == __version__
    assert Version(__version__) >= Version(released[0])
    assert re.search(r"^## Unreleased$", changes, re.MULTILINE)
