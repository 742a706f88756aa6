"""The note that is stored with a table: a line after the user's own comment.

It has the id of the table's budget, the head of the ledger's hash chain and the cap.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from dpforest_duckdb.domain.table import TableInfo
from dpforest_duckdb.errors import DpforestError

_MARK = "dpforest-budget: "
_LINE = re.compile(rf"(?:\A|\n){_MARK}[^\n]*")


@dataclass(frozen=True)
class Note:
    """What a table's comment says about its budget: `cap` is (nano-ε, atto-δ), None without one."""

    budget_id: str
    head: str
    cap: tuple[int, int] | None

    def after(self, comment: str) -> str:
        """The comment with this note after the user's text, in the place of an earlier note."""
        # earlier versions called the id of a budget so, and their comments must stay readable
        fields = {"dataset": self.budget_id, "head": self.head, "cap": self.cap}
        text, note = _LINE.sub("", comment), _MARK + json.dumps(fields)
        if comment.startswith(_MARK):  # what came after the note begins the comment now
            text = text.removeprefix("\n")
        return f"{text}\n{note}" if text else note


def note_in(table: TableInfo) -> Note | None:
    """The note in a table's comment; None if there is none. Raises `DpforestError` if it is
    damaged.
    """
    for line in table.comment.split("\n"):
        if line.startswith(_MARK):
            try:
                return _read(json.loads(line.removeprefix(_MARK)))
            except (ValueError, RecursionError):
                raise DpforestError(
                    f'The budget line in the comment of table "{table.display}" is damaged: '
                    "restore the comment."
                ) from None
    return None


def has_note(comment: str) -> bool:
    """Whether a comment carries a budget, if only a damaged one."""
    return any(line.startswith(_MARK) for line in comment.split("\n"))


def same_budget(first: TableInfo, second: TableInfo | None) -> bool:
    """Whether two tables of a name have the same budget, by their notes, and the same columns."""
    if second is None or not first.has_columns_of(second):
        return False
    notes = [note_in(table) for table in (first, second)]
    return len({note and note.budget_id for note in notes}) == 1


def _read(found: object) -> Note:
    match found:
        case {"dataset": str(budget_id), "head": str(head), **others}:
            match others.get("cap"):
                case None:
                    return Note(budget_id, head, None)
                case [int(epsilon), int(delta)]:
                    return Note(budget_id, head, (epsilon, delta))
    raise ValueError("no note")
