"""dpforest recipes"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpforest_duckdb.cli import options
from dpforest_duckdb.cli.output import emit, show_table

if TYPE_CHECKING:
    from dpforest_duckdb.recipe import Recipe


def recipes(
    name: Annotated[str | None, typer.Argument(help="Show only this one, in full.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """List the published systems, their flaws and their repairs."""
    from dpforest_duckdb.recipes import RECIPES, find

    chosen = list(RECIPES.values()) if name is None else [find(name)]
    facts = [_facts(recipe) for recipe in chosen]
    if as_json:
        emit({"recipes": facts})
    elif name is None:
        words = {True: "yes", False: "NO", None: "-"}
        show_table(
            ("recipe", "title", "year", "private as published"),
            [[f["name"], f["title"], f["year"], words[f["private_as_published"]]] for f in facts],
        )
    else:
        _show(chosen[0], facts[0])


def _facts(recipe: Recipe) -> dict[str, Any]:
    published = recipe.published
    return {
        "name": recipe.name,
        "title": recipe.title,
        "year": recipe.year,
        "private_as_published": None if published is None else not published.flaws,
        "rigorous_repair": recipe.repair,
        "paper": recipe.paper,
        "flaws": list(published.flaws) if published else [],
        "pieces": {
            "rows": recipe.rows,
            "splits": recipe.ways,
            "trees": recipe.trees,
            "depth": recipe.depth,
            "distinct_roots": recipe.distinct_roots,
            "mechanisms": _mechanisms(recipe),
        },
    }


def _mechanisms(recipe: Recipe) -> dict[str, str]:
    """What draws each kind of answer; the plan says it for any domain."""
    from dpforest_duckdb.domain import Attribute, Domain
    from dpforest_duckdb.privacy.units import NANO
    from dpforest_duckdb.recipe import Request

    any_domain = Domain((Attribute("a", "categorical", ("x", "y")),), "c", ("x", "y"))
    plan = recipe.plan(Request(any_domain, NANO, recipe.trees, recipe.depth))
    return {query.purpose: query.mechanism for query in plan.queries}


def _show(recipe: Recipe, facts: dict[str, Any]) -> None:
    print(f"{recipe.name}: {recipe.title}, {recipe.year}")
    print(f"paper      {recipe.paper}")
    for flaw in facts["flaws"]:
        print(f"flaw       {flaw}")
    if recipe.repair:
        print(f"repair     {recipe.repair}")
    for key, value in facts["pieces"].items():
        shown = ", ".join(f"{k} by {v}" for k, v in value.items()) if key == "mechanisms" else value
        print(f"{key:<10} {shown}")
