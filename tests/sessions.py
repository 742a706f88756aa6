"""Sessions of the documentation: commands, and what they print but for noise."""

from __future__ import annotations

import re
from collections.abc import Iterator


def commands(session: str) -> Iterator[tuple[str, str]]:
    """Each command of a session, with what it prints."""
    for part in re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def words(text: str) -> list[str]:
    """Lines without what noise changes: every number is one sign, spaces and rules are one."""
    lines = (
        re.sub(r"[\d.]*\d|[ ─]+", lambda m: "#" if m[0].strip(" ─") else " ", line).strip()
        for line in text.splitlines()
    )
    return [line for line in lines if line]


def prints(output: str, shown: str) -> bool:
    """Whether a command printed what a page shows of it, which may end in a line with "…"."""
    expected, found = words(shown), words(output)
    if expected[-1:] == ["…"]:
        expected.pop()
        return found[: len(expected)] == expected and len(found) > len(expected)
    return found == expected
