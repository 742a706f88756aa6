"""dpforest recipes"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpforest_duckdb.cli import options
from dpforest_duckdb.cli.output import emit, show_table, tell
from dpforest_duckdb.cli.systems_page import counted_from, systems_page, what_is_done
from dpforest_duckdb.errors import UsageError

if TYPE_CHECKING:
    from dpforest_duckdb.cli.output import Paragraph
    from dpforest_duckdb.domain import Domain
    from dpforest_duckdb.privacy.plan import Plan
    from dpforest_duckdb.recipes.recipe import Recipe

PICKED = "those of the recipe that is picked"


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
    from dpforest_duckdb.privacy.amounts import nano_epsilon
    from dpforest_duckdb.recipes import RECIPES, find

    if name is None:
        options.refuse_idle("goes with the name of a recipe", epsilon=epsilon)
    if markdown and as_json:
        raise UsageError("--markdown and --json cannot be used together: choose one.")
    shared = "1" if epsilon is None else epsilon
    nano = nano_epsilon(shared)
    chosen = list(RECIPES.values()) if name is None else [find(name)]
    facts = [_facts(recipe, nano) for recipe in chosen]
    if as_json:
        emit({"recipes": facts})
    elif markdown:
        print(systems_page(facts), end="")
    elif name is None:
        _show_all(facts)
    else:
        _show(chosen[0], facts[0], shared)


def _facts(recipe: Recipe, epsilon: int) -> dict[str, Any]:
    from dpforest_duckdb.recipes.recipe import OURS

    published, mechanisms = recipe.published or recipe, _mechanisms(recipe, epsilon)
    picks = bool(recipe.adaptation.successors)
    return {
        "name": recipe.name,
        "title": recipe.title,
        "year": recipe.year,
        "private_as_published": None if recipe.one_form == OURS else not published.flaws,
        "rigorous_repair": recipe.repair,
        "private": not recipe.flaws,
        "paper": recipe.paper,
        "flaws": list(published.flaws),
        "one_form_because": recipe.one_form,
        "variants": [f"{recipe.name}:{variant}" for variant in recipe.variants],
        "pieces": {
            "rows": recipe.rows,
            "splits": PICKED if picks else recipe.split_type,
            "trees": PICKED if picks else _number(recipe.trees),
            "depth": PICKED if picks else _number(recipe.depth),
            "depth_of_root": recipe.depth_of_root,
            "leaf": "log-odds" if recipe.link.log_odds else recipe.leaf.gives,
            "one_tree_per_attribute": recipe.one_tree_per_attribute and not picks,
            "mechanisms": mechanisms,
        },
        "lines": [
            {
                "step": line.step,
                "source": line.source,
                "piece": line.piece,
                "form": line.standing,
                "note": line.note,
            }
            for line in recipe.lines
        ],
    }


def _number(of: object) -> object:
    """A number of trees or of splits on a path, or words if a function gives it."""
    return of if isinstance(of, int) else "depends on the domain"


def _mechanisms(recipe: Recipe, epsilon: int) -> dict[str, str]:
    """The mechanisms of every query that a recipe may ask, by its purpose.

    A recipe that adapts to the rows is shown for two, three and eight classes, few and many
    numbers, with a δ and without.
    """
    from dpforest_duckdb.privacy.amounts import ATTO
    from dpforest_duckdb.recipes import adaptation

    plans = [_example(recipe, epsilon)]
    if recipe.adaptation.counts_rows:
        for numbers, classes, delta in product((2, 12), (2, 3, 8), (0, ATTO // 10**5)):
            request = recipe.request(_domain(numbers, classes, 1_000), epsilon, delta=delta)
            plans.extend(adaptation.plans(recipe, request))
    found: dict[str, list[str]] = {}
    for query in (query for plan in plans for query in plan.queries):
        of_purpose = found.setdefault(query.purpose, [])
        if query.mechanism not in of_purpose:
            of_purpose.append(query.mechanism)
    return {purpose: " or ".join(several) for purpose, several in found.items()}


def _example(recipe: Recipe, epsilon: int) -> Plan:
    """The plan for a domain of six categorical attributes and two numeric ones."""
    return recipe.whole_plan(recipe.request(_domain(2, 2, 31), epsilon))


def _domain(numbers: int, classes: int, upper: int) -> Domain:
    """Six categorical attributes, and some numbers from 0 to `upper`."""
    from dpforest_duckdb.domain import Attribute, Domain
    from dpforest_duckdb.domain.types import INTEGER, VARCHAR

    attributes = [Attribute(f"a{n}", "categorical", ("x", "y", "z")) for n in range(6)]
    attributes += [Attribute(f"n{n}", "numeric", lower=0, upper=upper) for n in range(numbers)]
    types = {each.name: VARCHAR if each.kind == "categorical" else INTEGER for each in attributes}
    labels = tuple(map(str, range(classes)))
    return Domain(tuple(attributes), "c", labels).bind({**types, "c": VARCHAR})


def _show_all(facts: list[dict[str, Any]]) -> None:
    words = {True: "yes", False: "NO", None: "-"}
    rows = [
        [
            *(fact[key] for key in ("name", "title", "year")),
            words[fact["private_as_published"]],
            words[fact["private"]],
            fact["rigorous_repair"] or fact["one_form_because"],
        ]
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


def _show(recipe: Recipe, facts: dict[str, Any], epsilon: str) -> None:
    from dpforest_duckdb.privacy.amounts import nano_epsilon
    from dpforest_duckdb.recipes.branches import branches

    nano = nano_epsilon(epsilon)
    tell(f"{recipe.name}: {recipe.title}, {recipe.year}")
    tell(f"paper      {recipe.paper}")
    if facts["flaws"]:
        tell(f"flaw       {' '.join(facts['flaws'])}")
    if recipe.repair:
        tell(f"repair     {recipe.repair}")
    if recipe.one_form:
        tell(f"one form   {recipe.one_form}")
    if facts["variants"]:
        tell(f"variants   {', '.join(facts['variants'])}")
    _show_pieces(facts["pieces"])
    tell("")
    tell(f"ε = {epsilon} on six categorical and two numeric attributes:")
    plan = _example(recipe, nano)
    show_table(
        ("query", "cost of one", "how often"),
        [[query.purpose, f"{query.measure} = {query.each}", query.often] for query in plan.queries],
    )
    if len(branches(recipe, recipe.request(_domain(2, 2, 31), nano))) > 1:
        tell(
            "With other numbers of rows it asks other queries: dpforest train --dry-run shows all "
            "for your table."
        )
        tell("")
    if facts["lines"]:
        tell("The system line by line, and what is done here:")
        show_table(
            ("line", "source", "here"),
            [[line["step"], line["source"], what_is_done(line)] for line in facts["lines"]],
        )


def _show_pieces(pieces: dict[str, Any]) -> None:
    """The pieces of a recipe, one on a line."""
    each = ", at most one for each attribute" if pieces["one_tree_per_attribute"] else ""
    tell(f"rows       {pieces['rows']}")
    tell(f"splits     {pieces['splits']}")
    tell(f"trees      {pieces['trees']}{each}")
    tell(f"depth      {pieces['depth']}{counted_from(pieces)}")
    tell(f"leaf       {pieces['leaf']}")
    for position, (purpose, how) in enumerate(pieces["mechanisms"].items()):
        tell(f"{'' if position else 'queries':<10} {purpose} by {how}", hanging=2)
