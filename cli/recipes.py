"""dpforest recipes"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dpforest_duckdb.cli import options
from dpforest_duckdb.cli.output import emit, show_table, tell
from dpforest_duckdb.cli.systems_page import QUERIES_OF_PICKED, systems_page, what_is_done
from dpforest_duckdb.errors import UsageError

if TYPE_CHECKING:
    from dpforest_duckdb.cli.output import Paragraph
    from dpforest_duckdb.cli.recipe_facts import RecipeFacts


def recipes(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Show only this one, in full.", autocompletion=options.completed_recipe
        ),
    ] = None,
    epsilon: Annotated[
        str | None,
        typer.Option(metavar="E", help="With a name: show how this ε is divided. [default: 1]"),
    ] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the systems as a Markdown page.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """List the published systems and the recipes of this package.

    Each system is shown with its flaws and how they were repaired.

    \b
    Example:
      dpforest recipes dpdf
    """
    from dpforest_duckdb.cli.recipe_facts import RecipeFacts
    from dpforest_duckdb.privacy.amounts import nano_epsilon
    from dpforest_duckdb.recipes import RECIPES, find

    if name is None:
        options.refuse_idle("goes with the name of a recipe", epsilon=epsilon)
    if markdown and as_json:
        raise UsageError("--markdown and --json cannot be used together: choose one.")
    shared = "1" if epsilon is None else epsilon
    nano = nano_epsilon(shared)
    chosen = list(RECIPES.values()) if name is None else [find(name)]
    facts = [RecipeFacts(recipe, nano) for recipe in chosen]
    if as_json:
        emit({"recipes": [each.as_json() for each in facts]})
    elif markdown:
        print(systems_page(facts), end="")
    elif name is None:
        _show_all(facts)
    else:
        _show(facts[0], shared)


def _show_all(facts: list[RecipeFacts]) -> None:
    words = {True: "yes", False: "NO", None: "-"}
    rows = [
        (
            fact.recipe.name,
            fact.recipe.title,
            fact.recipe.year,
            words[fact.private_as_published],
            words[fact.private],
            fact.recipe.repair or fact.recipe.one_form,
        )
        for fact in facts
    ]
    show_table(
        ("recipe", "title", "year", "private as published", "private", "repair"),
        rows,
        narrow=lambda: [_in_words(*row) for row in rows],
    )


def _in_words(
    name: str, title: str, year: int, published: str, private: str, repair: str
) -> Paragraph:
    """A recipe in a narrow terminal: whether it is private, then its repair."""
    before = "" if published == "-" else f" (as published: {published})"
    return f"{name}: {title}, {year}", [f"private: {private}{before}. {repair}"]


def _show(facts: RecipeFacts, epsilon: str) -> None:
    recipe = facts.recipe
    tell(f"{recipe.name}: {recipe.title}, {recipe.year}")
    tell(f"paper      {recipe.paper}")
    if facts.flaws:
        tell(f"flaw       {' '.join(facts.flaws)}")
    if recipe.repair:
        tell(f"repair     {recipe.repair}")
    if recipe.one_form:
        tell(f"one form   {recipe.one_form}")
    if facts.variants:
        tell(f"variants   {', '.join(facts.variants)}")
    _show_pieces(facts)
    tell("")
    tell(f"ε = {epsilon} on six categorical and two numeric attributes:")
    queries = facts.example.queries
    show_table(
        ("query", "cost of one", "how often"),
        [[query.purpose, f"{query.measure} = {query.each}", query.often] for query in queries],
    )
    if facts.adapts:
        tell(
            "With other numbers of rows it asks other queries: dpforest train --dry-run shows all "
            "for your table."
        )
        tell("")
    if recipe.lines:
        tell("The system line by line, and what is done here:")
        show_table(
            ("line", "source", "here"),
            [[line.step, line.source, what_is_done(line)] for line in recipe.lines],
        )


def _show_pieces(facts: RecipeFacts) -> None:
    """The pieces of a recipe, one on a line."""
    pieces = facts.pieces
    if facts.picks:
        tell(f"picks      one of {', '.join(facts.picks)}")
        tell(f"queries    {QUERIES_OF_PICKED}")
        return
    each = ", at most one for each attribute" if pieces.one_tree_per_attribute else ""
    tell(f"rows       {pieces.rows}")
    tell(f"splits     {pieces.splits}")
    tell(f"trees      {pieces.trees}{each}")
    tell(f"depth      {pieces.depth_in_words}")
    tell(f"leaf       {pieces.leaf}")
    for position, (purpose, how) in enumerate(facts.mechanisms.items()):
        tell(f"{'' if position else 'queries':<10} {purpose} by {how}", hanging=2)
