"""dpforest recipes"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpforest_duckdb.cli import options
from dpforest_duckdb.cli.output import emit, show_table, tell

if TYPE_CHECKING:
    from dpforest_duckdb.domain import Domain
    from dpforest_duckdb.privacy.plan import Plan
    from dpforest_duckdb.recipes.recipe import Recipe

INTRODUCTION = """\
# The published systems, and what they really guarantee

Written by `dpforest recipes --markdown`. Every system that has a rigorous form trains in it
by default. `--as-published` follows the paper; where its proof fails, the model is marked as not
private.

A table for each system lists its algorithm line by line, with the source of each line and the piece
of the recipe that does it. The last column says what is done here:

- *as published*: both forms do the line.
- *repaired*: the form as published does the line; the rigorous form does what follows.
- *assumed*: both forms do what follows, because no text gives the line or because they depart from
  the text.
- *cut*: both forms leave the line out or shorten it.

Four texts were read in full: DPDF (Fletcher & Islam 2015), *DiffPRFs* (Mu et al. 2016), the
*poster* of Xin et al. and the *thesis* of Suihkonen (2023). The lines of the other systems come
from the accounts in the thesis, in DiffPRFs (§2.3 and Table 1) and in DPDF (§4 and §5), those of
PrivaTree from its authors' code. *No text* says that none of them gives the line.

Depths are counted as in the papers: splits on a path, or nodes on a path where the root is at 1.
`--depth` is counted in the same way.

A forest has at most {leaves:,} leaves, so that it can be trained and scored in about half a minute
of one core. Budgets are divided by the published depth all the same. A system that splits every
node gets shallower trees if complete ones would be larger, and `train` says so before the debit.
For example, smooth-forest asks for complete trees of depth 11 on Mushroom with a child per
category, which are too large. In other systems the largest nodes are split first. In `diffgen` and
`dt-diff`, refinements that would make more leaves are not offered. Nodes past the limit stay
leaves, and `models show` says how many.

No text gives these details, so they are assumed for every system whose table says nothing else:

- A split by categories has one more child, for values outside the domain. It is split further and
  gets noise as any other, so that no row decides whether it is there. It counts in the limit on
  leaves.
- Numeric attributes are split at the edges of public bins. A system that makes a child for each
  value makes one for each bin. DiffPRFs Table 1 lists SuLQ-based ID3, PINQ-based ID3 and DiffP-ID3
  for discrete attributes only.
- In systems of binary splits, the categories of an `ordered` column can also be cut in two between
  neighbours. Where a split has a child per category, their order has no effect.
- A declared NULL is a category of its own. Among points that are weighted by their width, "NULL
  against the rest" has the least weight.
- Laplace noise is discrete, in both forms: counts stay whole numbers.
- Gini weighted by rows is rounded down to whole rows in each branch, in both forms. So a split into
  many branches can seem better than it is, by less than a row per branch.
- Where a leaf votes by its shares, noisy counts below 0 count as 0, and a leaf without a count
  above 0 gives each class an equal share. A leaf with one vote gives it to the class of its largest
  noisy count. Sums add up counts below 0 as they are.
- If several classes have equal counts in a leaf, or equal votes of the trees, the first of the
  domain's classes wins.
- Nodes end at the greatest depth, or where no attribute is left.
"""


def recipes(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Show only this one, in full.", autocompletion=options.completed_recipe
        ),
    ] = None,
    epsilon: Annotated[
        str, typer.Option(metavar="E", help="With a name: show how this ε is divided.")
    ] = "1",
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

    nano = nano_epsilon(epsilon)
    chosen = list(RECIPES.values()) if name is None else [find(name)]
    facts = [_facts(recipe, nano) for recipe in chosen]
    if as_json:
        emit({"recipes": facts})
    elif markdown:
        print(_document(facts), end="")
    elif name is None:
        words = {True: "yes", False: "NO", None: "-"}
        show_table(
            ("recipe", "title", "year", "private as published", "private", "repair"),
            [
                [
                    *(fact[key] for key in ("name", "title", "year")),
                    words[fact["private_as_published"]],
                    words[fact["private"]],
                    fact["rigorous_repair"] or fact["one_form_because"],
                ]
                for fact in facts
            ],
        )
    else:
        _show(chosen[0], facts[0], epsilon)


def _facts(recipe: Recipe, epsilon: int) -> dict[str, Any]:
    from dpforest_duckdb.recipes.recipe import OURS

    published, mechanisms = recipe.published or recipe, _mechanisms(recipe, epsilon)
    return {
        "name": recipe.name,
        "title": recipe.title,
        "year": recipe.year,
        "private_as_published": None if recipe.only == OURS else not published.flaws,
        "rigorous_repair": recipe.repair,
        "private": not recipe.flaws,
        "paper": recipe.paper,
        "flaws": list(published.flaws),
        "one_form_because": recipe.only,
        "variants": [f"{recipe.name}:{variant}" for variant in recipe.variants],
        "pieces": {
            "rows": recipe.rows,
            "splits": recipe.split_type,
            "trees": recipe.trees if isinstance(recipe.trees, int) else "a rule of the domain",
            "depth": recipe.depth if isinstance(recipe.depth, int) else "a rule of the domain",
            "depth_of_root": recipe.depth_of_root,
            "leaf": "log-odds" if recipe.link == "softmax" else recipe.leaf.gives,
            "one_tree_per_attribute": recipe.one_tree_per_attribute,
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


def _document(facts: list[dict[str, Any]]) -> str:
    """The systems in Markdown."""
    from dpforest_duckdb.splits.limits import MAX_LEAVES

    words = {True: "yes", False: "**no**", None: "-"}
    lines = [
        INTRODUCTION.format(leaves=MAX_LEAVES),
        "| recipe | system | year | private as published | private here |",
        "|---|---|---|---|---|",
    ]
    for f in facts:
        published, here = words[f["private_as_published"]], words[f["private"]]
        lines.append(f"| `{f['name']}` | {f['title']} | {f['year']} | {published} | {here} |")
    for f in facts:
        pieces = f["pieces"]
        queries = ", ".join(f"{purpose} by {how}" for purpose, how in pieces["mechanisms"].items())
        lines += ["", f"## {f['name']}", "", f"{f['title']}, {f['year']}. *{f['paper']}.*", ""]
        lines += [f"- Flaw: {' '.join(f['flaws'])}"] if f["flaws"] else []
        lines += [f"- Repair: {f['rigorous_repair']}"] if f["rigorous_repair"] else []
        lines += [f"- One form: {f['one_form_because']}"] if f["one_form_because"] else []
        lines += [f"- Variants: {', '.join(f['variants'])}"] if f["variants"] else []
        lines.append(
            f"- Rows per tree: {pieces['rows']}; splits: {pieces['splits']}; trees: "
            f"{pieces['trees']}; depth: {pieces['depth']}"
            f"{', with the root at 1' if pieces['depth_of_root'] else ''}; "
            f"leaves give {pieces['leaf']}; queries: {queries}."
        )
        lines += _conformance(f["lines"])
    return "\n".join(lines) + "\n"


def _conformance(lines: list[dict[str, str]]) -> list[str]:
    """The lines of a system: source of each, piece that does it, and whether it was changed."""
    if not lines:
        return []
    rows = []
    for line in lines:
        cells = (line["step"], line["source"], f"`{line['piece']}`", _here(line))
        rows.append(f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |")
    return ["", "| line | source | piece | here |", "|---|---|---|---|", *rows]


def _here(line: dict[str, str]) -> str:
    """What is done about a line: as published, or what is done instead."""
    return f"{line['form']}: {line['note']}" if line["note"] else line["form"]


def _show(recipe: Recipe, facts: dict[str, Any], epsilon: str) -> None:
    from dpforest_duckdb.privacy.amounts import nano_epsilon

    tell(f"{recipe.name}: {recipe.title}, {recipe.year}")
    tell(f"paper      {recipe.paper}")
    if facts["flaws"]:
        tell(f"flaw       {' '.join(facts['flaws'])}")
    if recipe.repair:
        tell(f"repair     {recipe.repair}")
    if recipe.only:
        tell(f"one form   {recipe.only}")
    if facts["variants"]:
        tell(f"variants   {', '.join(facts['variants'])}")
    for key, value in facts["pieces"].items():
        shown = ", ".join(f"{k} by {v}" for k, v in value.items()) if key == "mechanisms" else value
        tell(f"{key:<10} {shown}")
    tell("")
    tell(f"ε = {epsilon} on six categorical and two numeric attributes:")
    plan = _example(recipe, nano_epsilon(epsilon))
    show_table(
        ("query", "cost of one", "how often"),
        [[query.purpose, f"{query.measure} = {query.each}", query.often] for query in plan.queries],
    )
    if facts["lines"]:
        tell("The system line by line, and what is done here:")
        show_table(
            ("line", "source", "here"),
            [[line["step"], line["source"], _here(line)] for line in facts["lines"]],
        )
