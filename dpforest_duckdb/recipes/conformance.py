"""How a recipe states the lines of its system: what each does, its source, the piece that does it.

`docs/systems.md` prints these lines as a table. A recipe's file declares them:

    lines=(
        Line("Each leaf has one vote.", "thesis (4.3)", "finish: vote_by_majority"),
        Line("Each tree has a bootstrap sample.", "3.1, line 3", "rows",
             repaired="Every tree sees all rows."),
        Line("The forest has a number of trees.", NO_TEXT, "trees",
             assumed="It has 20, as DiffPRF does."),
    )
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Standing = Literal["as published", "repaired", "assumed", "cut"]
NO_TEXT = "no text"  # the source of a line that no text gives


@dataclass(frozen=True)
class Line:
    """One line of a published algorithm.

    `step` says what the system does, in its source's terms. `source` is the place in a text that
    was read, or `NO_TEXT`. `piece` is "field" or "field: name": a field of `Recipe`, and a name in
    the recipe's own file.

    Both forms do the step as published unless one of the others says what is done instead:
    `repaired` what the rigorous form does, `assumed` what both forms do because no text gives it or
    because they depart from the text, `cut` what both forms do in place of a step that they leave
    out or shorten. A step that is assumed and repaired is assumed in the form as published alone.
    All of them are sentences.
    """

    step: str
    source: str
    piece: str
    repaired: str = ""
    assumed: str = ""
    cut: str = ""

    @property
    def field(self) -> str:
        """The field of `Recipe` that the piece fills."""
        return self.piece.partition(":")[0]

    @property
    def name(self) -> str:
        """What the piece is called in the recipe's file; empty for a plain value."""
        return self.piece.partition(":")[2].strip()

    @property
    def standing(self) -> Standing:
        if self.cut:
            return "cut"
        if self.repaired:
            return "repaired"
        return "assumed" if self.assumed else "as published"

    @property
    def note(self) -> str:
        """What is done instead of the step, or how a step without a text is done."""
        if self.repaired and self.assumed:
            return f"Form as published: {self.assumed} Rigorous form: {self.repaired}"
        return self.cut or self.repaired or self.assumed
