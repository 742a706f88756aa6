"""dpforest show"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from dpforest_duckdb.cli import opening, options
from dpforest_duckdb.cli.output import emit, warn_if_not_private
from dpforest_duckdb.cli.rules import added
from dpforest_duckdb.domain.names import fold, hint
from dpforest_duckdb.errors import UsageError, one_line

if TYPE_CHECKING:
    from rich.tree import Tree as Drawing

    from dpforest_duckdb.model.effects import Effect
    from dpforest_duckdb.model.forest import Forest

WIDTH = 12  # characters of the longest bar, on either side of 0
MOST_VALUES = 40  # of an attribute without order
CLASS = 14  # characters of the longest class beside a bar


def show(
    model: options.Model,
    db: options.MaybeDb = None,
    tree: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Draw this tree, from 0. [default: the effects]"),
    ] = None,
    attribute: Annotated[
        str | None, typer.Option(metavar="NAME", help="Show the effect of one attribute only.")
    ] = None,
    as_json: options.AsJson = False,
    show_sql: options.ShowSql = False,
) -> None:
    """Draw the effects of a model's attributes, or one of its trees.

    The drawing is text for the terminal. Only the model is read, and no row of a table.

    \b
    Example:
      dpforest show --db data.duckdb --model visits --tree 0
    """
    if tree is not None and attribute is not None:
        raise UsageError("--tree and --attribute cannot be used together: choose one.")
    with opening.opened_for_model(db, model, show_sql=show_sql) as (_, forest):
        if tree is not None and tree >= len(forest.trees):
            raise UsageError(f"--tree must be from 0 to {len(forest.trees) - 1}, as in its rules.")
    warn_if_not_private(forest)
    if tree is not None:
        _show_tree(forest, tree, as_json)
    else:
        _show_effects(forest, attribute, as_json)


def _show_effects(forest: Forest, attribute: str | None, as_json: bool) -> None:
    from rich.console import Console

    from dpforest_duckdb.model.effects import effect_scale, effects

    names = [each.name for each in forest.domain.attributes]
    known = {fold(name) for name in names}
    if attribute is not None and fold(attribute) not in known:
        near = hint(attribute, names)
        raise UsageError(f'The model has no attribute "{attribute}"{near}: correct --attribute.')
    found = [
        effect
        for effect in effects(forest)
        if attribute is None or fold(names[effect.attribute]) == fold(attribute)
    ]
    classes = forest.domain.classes
    if as_json:
        emit(
            {
                "effects": [
                    {
                        "attribute": names[effect.attribute],
                        "importance": effect.importance,
                        "values": list(effect.labels),
                        "effect": effect.values.tolist(),
                    }
                    for effect in found
                ],
                "classes": list(classes),
            }
        )
        return
    console = Console(markup=False, highlight=False, emoji=False)
    if not found:
        console.print("No tree splits by it." if attribute else "No tree splits.")
    longest = 43 if len(classes) == 2 else 42 - CLASS  # so that a line fits into 80 columns
    for effect in found:
        console.print(f"{one_line(names[effect.attribute])}  (mean change {effect.importance:.3g})")
        strongest = abs(effect.values).max() or 1.0
        described = forest.domain.attributes[effect.attribute]
        labels = _fitting(effect.labels, longest, numeric=described.kind == "numeric")
        width = max(map(len, labels))
        shown = _shown(effect, in_order=described.in_order)
        for place, (label, values) in enumerate(zip(labels, effect.values, strict=True)):
            if place not in shown:
                continue
            best = 1 if len(classes) == 2 else int(abs(values).argmax())
            bar = "█" * round(abs(values[best]) / strongest * WIDTH)
            less, more = ("", bar) if values[best] > 0 else (bar, "")
            text = f"  {label:{width}} {values[best]:+8.3f} {less:>{WIDTH}}│{more}"
            if len(classes) > 2:
                text = f"{text:{width + WIDTH * 2 + 13}} {ellipsized(classes[best], CLASS)}"
            console.print(text)
        if len(shown) < len(labels):
            console.print(f"  … and {len(labels) - len(shown)} other values that change it less.")
    last = f' of "{one_line(classes[1])}"' if len(classes) == 2 else " of the class named"
    console.print(f"Changes are in {effect_scale(forest)}{last}.")


def _shown(effect: Effect, *, in_order: bool) -> set[int]:
    """The values to draw: all, or those that change the output most if many have no order."""
    if in_order or len(effect.labels) <= MOST_VALUES:
        return set(range(len(effect.labels)))
    change = abs(effect.values).max(axis=1)
    return set((-change).argsort(kind="stable")[:MOST_VALUES].tolist())


def _show_tree(forest: Forest, number: int, as_json: bool) -> None:
    from rich.console import Console
    from rich.tree import Tree as Drawing

    rules = [rule for rule in forest.rules() if rule["tree"] == number]
    if as_json:
        emit({"tree": number, "rules": rules})
        return
    tree = forest.trees[number]
    parents = tree.parents(forest.domain.cells)
    drawn: dict[int, Drawing] = {}
    for rule in rules:
        node = rule["node"]
        step = rule["rule"].rsplit(" AND ", 1)[-1] if node else "all rows"
        text = one_line(step)
        if rule["leaf"] and forest.link == "softmax":  # no leaf predicts alone
            text += f" → log-odds {added(rule['log_odds'])}"
        elif rule["leaf"]:
            text += f" → {one_line(rule['prediction'])}"
        if rule["counts"] is not None:
            text += f"  {rule['counts']}"
        drawn[node] = drawn[int(parents[node])].add(text) if node else Drawing(text)
    Console(markup=False, highlight=False, emoji=False).print(drawn[0])


def _fitting(labels: Sequence[str], longest: int, *, numeric: bool) -> list[str]:
    """Labels of at most that many characters: bins without lower ends if both are too long."""
    if numeric and max(map(len, labels)) > longest:
        labels = [re.sub(r"^> .* and (?=<= )", "", label) for label in labels]
    return [ellipsized(label, longest) for label in labels]


def ellipsized(text: str, longest: int) -> str:
    """The text on one line, with an ellipsis if it was cut off."""
    line = one_line(text)
    return line if len(line) <= longest else f"{line[: longest - 1]}…"
