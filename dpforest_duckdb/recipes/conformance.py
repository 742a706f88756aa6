"""How a recipe states the lines of its system: what each does, its source, the piece that does it.

`docs/systems.md` prints these lines as a table. A recipe's file declares them:

    lines=(
        Line("the most frequent class of a leaf", "thesis (4.3)", "finish: vote_by_majority"),
        Line("a bootstrap sample for each tree", "3.1, line 3", "rows",
             repaired="every tree sees all rows"),
        Line("20 trees", NO_TEXT, "trees", assumed="as DiffPRF has it"),
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

    `step` says what the system does, in its source's terms; both forms do it unless `repaired` says
    what the rigorous form does instead. `source` is the place in a text that was read, or
    `NO_TEXT`. `assumed` says what both forms take where no text gives it or where they depart from
    the text. `cut` says what both forms do where they leave out, or shorten, what the line says.
    `piece` is "field" or "field: name": a field of `Recipe`, and a name in the recipe's own file.
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
        """What is done instead of, or besides, what the source says."""
        return self.cut or self.repaired or self.assumed
