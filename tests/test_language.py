"""Words that only insiders understand stay out of code, docs, messages and docstrings."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PLACES = ("dpforest_duckdb", "cli", "sql", "docs", "tests", "benchmarks")
SUFFIXES = {".py", ".sql", ".md", ".html", ".js"}
RIDDLES = ("heir", "seat", "judges", "heavy", "afforded", "tells all", "told", "heard")
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
