"""How verbs take options: sections in the help of many, and a hint at one in the wrong place."""

from __future__ import annotations

from typing import Any, cast

from typer.core import TyperCommand, TyperGroup

DATA = "Data"
BUDGET = "Privacy and budget"
FOREST = "Forest"
RESULT = "Result"
MACHINE = "Machine"
SECTIONS = (DATA, BUDGET, FOREST, RESULT, MACHINE)
FEW = 20  # so many options are one list


# Any: by Typer's version, the classes of contexts and errors are Click's or its own
def _hinted(error: Any, place: str, option: str) -> Any:
    """The error for an option in the wrong place, which says where it belongs."""
    error.message = f"{option} goes {place}."
    error.possibilities = None
    return error


class Program(TyperGroup):
    """The program, which says that an option of a verb goes after the verb."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As Typer's, with a hint if a verb has the option that this does not know."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            option = getattr(error, "option_name", None)
            if any(option in each.opts for verb in self.commands.values() for each in verb.params):
                place = f"after the verb, as in dpforest VERB {option}"
                raise _hinted(error, place, cast(str, option)) from None
            raise


class Verb(TyperCommand):
    """A verb whose help has sections if it has many options."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As Typer's, with a hint if the option is one of the program."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            option = getattr(error, "option_name", None)
            if ctx.parent and any(option in each.opts for each in ctx.parent.command.params):
                place = f"before the verb, as in dpforest {option} {ctx.info_name}"
                raise _hinted(error, place, cast(str, option)) from None
            raise

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
