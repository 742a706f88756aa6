"""The page `docs/systems.md`: every published system, line by line, in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpforest_duckdb.cli.recipe_facts import RecipeFacts
    from dpforest_duckdb.recipes.conformance import Line

INTRODUCTION = """\
# The published systems, and what they really guarantee

This page lists the systems that others published and this package implements: whether the privacy
proof of each holds, and how its algorithm is implemented, line by line. The list has this package's
own recipes too.

Written by `dpforest recipes --markdown`. The *rigorous form* of a system is the one whose privacy
proof holds. Every system that has one trains in it by default. `--as-published` follows the paper;
where its proof fails, the model is marked as not private.

"""

QUERIES_OF_PICKED = (
    "noisy counts of the rows, for some recipes how well the strongest attribute classifies alone, "
    "then those of the recipe that is picked"
)

READING = """
## How to read the sections

A table for each system lists its algorithm line by line, with the source of each line and the piece
of the recipe that does it. The last column says what is done here:

- *as published*: both forms follow the line.
- *repaired*: the form as published follows the line; the rigorous form does what is
  written here. If the form as published departs from the line too, both forms are named.
- *assumed*: both forms do what is written here, because no text gives the line or because they
  depart from the text.
- *cut*: both forms leave the line out or shorten it.

Formulas keep the letters of their source. Unless a line says otherwise, B or β is the whole budget,
t or τ the number of trees, d or δ the depth, m the number of attributes and |C| that of classes. A
number such as (4.1) is that of a formula in the source.

Four texts were read in full: DPDF (Fletcher & Islam 2015), *DiffPRFs* (Mu et al. 2016), the
*poster* of Xin et al. and the *thesis* of Suihkonen (2023). The lines of the other systems come
from the accounts in the thesis, in DiffPRFs (§2.3 and Table 1) and in DPDF (§4 and §5), those of
PrivaTree from its authors' code. *No text* says that none of them gives the line.

Depths are counted as in the papers: splits on a path, or nodes on a path where the root is at 1.
`--depth` is counted in the same way.

## What holds for all of them

The forest of a published system has at most {leaves:,} leaves, so that it can be trained and scored
in about half a minute on one core; with more than {many} classes it has fewer. Budgets are divided
by the published depth all the same. A system that splits every node gets shallower trees if
complete ones would be larger, and `train` says so before the debit. For example, smooth-forest asks
for complete trees of depth 11 on Mushroom with a child per category, which are too large. In other
systems the largest nodes are split first. In `diffgen` and `dt-diff`, refinements that would make
more leaves are not offered. Nodes past the limit stay leaves, and `models show` says how many.

No text gives these details, so they are assumed for every system whose table says nothing else:

- A split by categories has one more child, for values outside the domain. It is split further and
  gets noise as any other, so that no row decides whether it is there. It counts in the limit on
  leaves.
- Numeric attributes are split at the edges of public bins. A system that makes a child for each
  value makes one for each bin. DiffPRFs Table 1 lists SuLQ-based ID3, PINQ-based ID3 and DiffP-ID3
  for discrete attributes only.
- In systems of binary splits, the categories of an `ordered` column can also be cut in two between
  neighbours. Where a split has a child per category, their order has no effect.
- Where trees have disjoint rows, a hash of a row, or of its privacy unit, picks the tree. So equal
  rows are in the same tree, in both forms.
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


def systems_page(facts: list[RecipeFacts]) -> str:
    """The systems in Markdown, by the facts of their recipes."""
    from dpforest_duckdb.splits.limits import MAX_LEAVES, MAX_SHARES

    words = {True: "yes", False: "**no**", None: "-"}
    lines = [
        INTRODUCTION + "| recipe | system | year | private as published | private here |",
        "|---|---|---|---|---|",
    ]
    for each in facts:
        recipe = each.recipe
        published, here = words[each.private_as_published], words[each.private]
        lines.append(f"| `{recipe.name}` | {recipe.title} | {recipe.year} | {published} | {here} |")
    lines.append(READING.format(leaves=MAX_LEAVES, many=MAX_SHARES // MAX_LEAVES).rstrip())
    for each in facts:
        lines += _system(each)
    return "\n".join(lines) + "\n"


def _system(facts: RecipeFacts) -> list[str]:
    """The section of a system."""
    recipe, pieces = facts.recipe, facts.pieces
    lines = ["", f"## {recipe.name}", "", f"{recipe.title}, {recipe.year}. *{recipe.paper}.*", ""]
    lines += [f"- Flaw: {' '.join(facts.flaws)}"] if facts.flaws else []
    lines += [f"- Repair: {recipe.repair}"] if recipe.repair else []
    lines += [f"- One form: {recipe.one_form}"] if recipe.one_form else []
    lines += [f"- Variants: {', '.join(facts.variants)}"] if facts.variants else []
    if facts.picks:
        names = ", ".join(f"[{name}](#{name})" for name in facts.picks)
        return [*lines, f"- Picks one of {names}; queries: {QUERIES_OF_PICKED}."]
    queries = ", ".join(f"{purpose} by {how}" for purpose, how in facts.mechanisms.items())
    lines.append(
        f"- Rows per tree: {pieces.rows}; splits: {pieces.splits}; trees: {pieces.trees}; "
        f"depth: {pieces.depth_in_words}; leaves give {pieces.leaf}; queries: {queries}."
    )
    return lines + _conformance(recipe.lines)


def _conformance(lines: Sequence[Line]) -> list[str]:
    """The lines of a system: source of each, piece that does it, and whether it was changed."""
    if not lines:
        return []
    rows = []
    for line in lines:
        cells = (line.step, line.source, f"`{line.piece}`", what_is_done(line))
        rows.append(f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |")
    return ["", "| line | source | piece | here |", "|---|---|---|---|", *rows]


def what_is_done(line: Line) -> str:
    """What is done about a line: as published, or what is done instead."""
    return f"{line.standing}: {line.note}" if line.note else line.standing
