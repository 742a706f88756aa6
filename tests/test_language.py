"""Words that only insiders understand stay out of code, docs, messages and docstrings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PLACES = ("dpforest_duckdb", "cli", "sql", "docs", "tests", "benchmarks")
SUFFIXES = {".py", ".sql", ".md", ".html", ".js"}
RIDDLES = ("heir", "seat", "judges", "heavy", "afforded", "tells all", "told", "heard")
RIDDLES_IN_NAMES = {"asked", "ways"}  # words that are clear in a sentence, but not as a name
PATTERN = re.compile(rf"(?<![a-z])({'|'.join(RIDDLES)})(?![a-z])", re.IGNORECASE)
TEXTS = sorted(
    [
        *(
            file
            for place in PLACES
            for file in (ROOT / place).rglob("*")
            if file.suffix in SUFFIXES
        ),
        *ROOT.glob("*.md"),
    ]
)


def riddles(file: Path) -> list[str]:
    """Each line of a file with a word from the list, with its number."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return [f"{number}: {line}" for number, line in enumerate(lines, 1) if PATTERN.search(line)]


def names(code: str) -> Iterator[tuple[str, int]]:
    """The names in Python code, each with its line."""
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield name, node.lineno
            case ast.keyword(arg=str(name)) | ast.alias(asname=str(name)):
                yield name, node.lineno
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, node.lineno


def is_riddle(name: str) -> bool:
    """Whether a name has a word from the list, or says "own" without saying what is owned."""
    words = name.lower().split("_")
    return words[-1] == "own" or not RIDDLES_IN_NAMES.isdisjoint(words)


def test_names_say_what_they_name() -> None:
    code = [file for file in TEXTS if file.suffix == ".py"]
    assert {
        f"{file.relative_to(ROOT).as_posix()}:{line}: {name}"
        for file in code
        if file.is_relative_to(ROOT / "dpforest_duckdb") or file.is_relative_to(ROOT / "cli")
        for name, line in names(file.read_text(encoding="utf-8"))
        if is_riddle(name)
    } == set()


def test_the_search_covers_every_kind_of_name() -> None:
    code = (
        "from a import b as ways\n"
        "def ways_to_write(own, *, asked=None):\n"
        "    class Asked: pass\n"
        "    return own_part(may_be_asked=own.asked)\n"
    )
    found = [name for name, _ in names(code) if is_riddle(name)]
    assert sorted(found) == sorted(
        ["ways", "ways_to_write", "own", "asked", "Asked", "may_be_asked", "own", "asked"]
    )
    assert not is_riddle("own_recipe")
    assert not is_riddle("always")


def test_texts_use_usual_words() -> None:
    found = {
        name: riddles(file)
        for file in TEXTS
        if (name := file.relative_to(ROOT).as_posix()) != "tests/test_language.py"
        and "results" not in file.parts
    }
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_the_search_covers_every_kind_of_text() -> None:
    assert len(TEXTS) > 150
    assert {file.suffix for file in TEXTS} == SUFFIXES
    assert PATTERN.search("rows are Told apart")
    assert PATTERN.search("who Tells all")
    assert PATTERN.search("it_is_told")
    assert not PATTERN.search("retold, seats, heavyweight")
