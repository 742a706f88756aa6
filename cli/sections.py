"""The sections in which the help of a verb with many options lists them."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

DATA = "Data"
BUDGET = "Privacy and budget"
FOREST = "Forest"
RESULT = "Result"
MACHINE = "Machine"
SECTIONS = (DATA, BUDGET, FOREST, RESULT, MACHINE)
FEW = 20  # so many options are one list


class Verb(TyperCommand):
    """A verb whose help has sections if it has many options."""

    # Any: by Typer's version, the classes of both are Click's or its own
    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options below the headings of `SECTIONS`, the others under "Options"."""
        if len(self.params) <= FEW:
            super().format_options(ctx, formatter)
            return
        listed: dict[str, list[tuple[str, str]]] = {section: [] for section in SECTIONS}
        for option in self.get_params(ctx):
            record = option.get_help_record(ctx)
            if record is not None:
                section = getattr(option, "rich_help_panel", None) or "Options"
                listed.setdefault(section, []).append(record)
        for section, records in listed.items():
            if records:
                with formatter.section(section):
                    formatter.write_dl(records)
