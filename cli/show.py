"""dpforest show"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpforest_duckdb.cli import opening, options
from dpforest_duckdb.cli.output import emit, plain_console, shown_log_odds, warn_if_not_private
from dpforest_duckdb.domain.names import fold, hint
from dpforest_duckdb.errors import UsageError, one_line

if TYPE_CHECKING:
    from rich.tree import Tree as Drawing

    from dpforest_duckdb.domain import Attribute
    from dpforest_duckdb.model.effects import Effect
    from dpforest_duckdb.model.forest import Forest

COLUMNS = 80  # characters of a line
UNBROKEN = 1_000_000  # characters of a line that is never broken
WIDTH = 12  # characters of the longest bar, on either side of 0
MOST_VALUES = 40  # of an attribute without order
CLASS = 14  # characters of the longest class beside a bar


def show(
    model: options.Model,
    db: options.MaybeDb = None,
    tree: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            parser=options.whole_number(0),
            help="Draw this tree, from 0. [default: the effects]",
        ),
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
    from dpforest_duckdb.model.effects import effects

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
    if as_json:
        listed = [_effect_facts(effect, names[effect.attribute]) for effect in found]
        classes = list(forest.domain.classes)
        emit({"private": forest.private, "effects": listed, "classes": classes})
    else:
        nothing = "No tree splits by it." if attribute else "No tree splits."
        _draw_effects(forest, found, nothing)


def _effect_facts(effect: Effect, name: str) -> dict[str, Any]:
    return {
        "attribute": name,
        "importance": effect.importance,
        "values": list(effect.labels),
        "effect": effect.values.tolist(),
        "noise": effect.deviation.tolist() if effect.noise_is_known else None,
    }


def _draw_effects(forest: Forest, found: Sequence[Effect], nothing: str) -> None:
    from dpforest_duckdb.model.effects import BAND

    if not found:
        _print(nothing)
        return
    classes = forest.domain.classes
    longest_bar = max(abs(effect.values).max() for effect in found) or 1.0
    for effect in found:
        described = forest.domain.attributes[effect.attribute]
        _print(f"{one_line(described.name)}  (mean change {effect.importance:.3g})")
        largest = forest.link.largest_effect
        for line in _effect_lines(effect, described, classes, largest, longest_bar):
            _print(line)
    two = len(classes) == 2
    last = f' of "{one_line(classes[1])}"' if two else " of the class that changes most"
    noisy = any(effect.noise_is_known for effect in found)
    note = f" ± is {BAND:g} standard deviations of the noise." if noisy else ""
    _print(f"Changes are in {forest.link.effect_scale}{last}.{note}")


def _effect_lines(
    effect: Effect,
    described: Attribute,
    classes: Sequence[str],
    largest: float,
    longest_bar: float,
) -> Iterator[str]:
    """A bar for each value; neighbouring bins with the same change share one.

    With more than two classes, it shows the class that changes most, and names it. The noise is
    shown up to the `largest` effect, and the longest bar stands for an effect of `longest_bar`.
    """
    from dpforest_duckdb.model.effects import BAND

    two = len(classes) == 2
    best = [1 if two else int(abs(values).argmax()) for values in effect.values]
    changes = [float(values[number]) for values, number in zip(effect.values, best, strict=True)]
    printed = [f"{change:+8.3f}" for change in changes]
    if effect.noise_is_known:
        noise = zip(effect.deviation, best, strict=True)
        bands = [min(BAND * float(each[number]), largest) for each, number in noise]
        printed = [f"{change} ±{band:<6.3f}" for change, band in zip(printed, bands, strict=True)]
    shown = _shown(effect, in_order=described.in_order)
    numeric = described.kind == "numeric"
    runs = _runs(list(zip(printed, best, strict=True)), described.proper if numeric else 0)
    texts = [
        described.bins_label(first, last) if numeric and last > first else effect.labels[first]
        for first, last in runs
    ]
    figures = len(printed[0])
    longest = COLUMNS - figures - 2 * WIDTH - (5 if two else 6 + CLASS)
    labels = _fitting(texts, longest, numeric=numeric)
    width = max(map(len, labels))
    for label, (first, _) in zip(labels, runs, strict=True):
        if first not in shown:
            continue
        bar = "█" * round(abs(changes[first]) / longest_bar * WIDTH)
        less, more = ("", bar) if changes[first] > 0 else (bar, "")
        text = f"  {label:{width}} {printed[first]} {less:>{WIDTH}}│{more}"
        named = "" if two else ellipsized(classes[best[first]], CLASS)
        yield f"{text:{width + figures + 2 * WIDTH + 5}} {named}" if named else text
    if len(shown) < len(effect.labels):
        left = len(effect.labels) - len(shown)
        yield f"  … and {left} other values that change it less."


def _runs(figures: Sequence[object], bins: int) -> list[tuple[int, int]]:
    """The first and the last place of each run of equal figures.

    Only the first `bins` places can share a run; every other place is one of its own.
    """
    starts = [
        place
        for place, figure in enumerate(figures)
        if place == 0 or place >= bins or figure != figures[place - 1]
    ]
    return [(first, end - 1) for first, end in pairwise([*starts, len(figures)])]


def _shown(effect: Effect, *, in_order: bool) -> set[int]:
    """The values to draw: all, or those that change the output most if many have no order."""
    if in_order or len(effect.labels) <= MOST_VALUES:
        return set(range(len(effect.labels)))
    change = abs(effect.values).max(axis=1)
    return set((-change).argsort(kind="stable")[:MOST_VALUES].tolist())


def _show_tree(forest: Forest, number: int, as_json: bool) -> None:
    from rich.tree import Tree as Drawing

    rules = [rule for rule in forest.rules() if rule["tree"] == number]
    if as_json:
        emit({"private": forest.private, "tree": number, "rules": rules})
        return
    tree = forest.trees[number]
    parents = tree.parents(forest.domain.cells)
    paths = {rule["node"]: f"{rule['rule']} AND " if rule["node"] else "" for rule in rules}
    drawn: dict[int, Drawing] = {}
    for rule in rules:
        node = rule["node"]
        step = rule["rule"].removeprefix(paths[int(parents[node])]) if node else "all rows"
        text = one_line(step)
        if rule["leaf"] and forest.link.log_odds:  # no leaf predicts alone
            text += f" → log-odds {shown_log_odds(rule['log_odds'])}"
        elif rule["leaf"]:
            text += f" → {one_line(rule['prediction'])}"
        if rule["counts"] is not None:
            text += f"  {rule['counts']}"
        drawn[node] = drawn[int(parents[node])].add(text) if node else Drawing(text)
    _print(drawn[0])


def _print(thing: Any) -> None:
    """Print what Rich draws: in a pipe or a file without line breaks, so that `grep` finds all."""
    console = plain_console()
    if not console.is_terminal:
        console.width = UNBROKEN
    with console.capture() as capture:
        console.print(thing)
    print(capture.get(), end="")


def _fitting(labels: Sequence[str], longest: int, *, numeric: bool) -> list[str]:
    """Labels of at most that many characters: bins without lower ends, of which an ellipsis is
    left, if both ends are too long.
    """
    if numeric and max(map(len, labels)) > longest:
        labels = [re.sub(r"^> .* and (?=<= )", "… ", label) for label in labels]
    return [ellipsized(label, longest) for label in labels]


def ellipsized(text: str, longest: int) -> str:
    """The text on one line, with an ellipsis if it was cut off."""
    line = one_line(text)
    return line if len(line) <= longest else f"{line[: longest - 1]}…"
