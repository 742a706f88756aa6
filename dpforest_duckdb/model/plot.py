"""Charts of a forest with matplotlib, in the style of scikit-learn, from released figures only.

Each function draws on `ax` (by default a new one) and returns it. Raises `DpforestError` if
matplotlib (the extra `plot`) is missing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dpforest_duckdb.arguments import refuse_wrong_types
from dpforest_duckdb.errors import DpforestError, UsageError
from dpforest_duckdb.model.effects import BAND, Effect, effects
from dpforest_duckdb.model.rules import step
from dpforest_duckdb.scoring.content import ForestContent
from dpforest_duckdb.tree import LEAF

WIDEST = 60.0  # inches of a new figure


def plot_importances(forest: ForestContent, ax: Any = None) -> Any:
    """A bar for each attribute that the forest splits by, the most important on top."""
    axes = _axes(ax)
    found = effects(forest)[::-1]
    names = [forest.domain.attributes[effect.attribute].name for effect in found]
    axes.barh([_plain(name) for name in names], [effect.importance for effect in found])
    axes.set_xlabel(f"mean change in {forest.link.effect_scale}")
    return axes


def plot_effects(forest: ForestContent, attribute: str | None = None, ax: Any = None) -> Any:
    """The effect of an attribute, by default the most important, with a band for the noise.

    With two classes only the second is drawn. Raises `UsageError` for an attribute that no tree
    splits by.
    """
    refuse_wrong_types(locals())
    found = {forest.domain.attributes[one.attribute].name: one for one in effects(forest)}
    if not found:
        raise UsageError("The forest has no effects to plot: no tree splits.")
    name = attribute if attribute is not None else next(iter(found))
    if name not in found:
        raise UsageError(f'No tree splits by "{name}": choose another attribute to plot.')
    effect = found[name]
    axes = _axes(ax, len(effect.labels))
    classes = forest.domain.classes
    for number in range(1, 2) if len(classes) == 2 else range(len(classes)):
        _draw_effect(axes, effect, number, classes[number])
    axes.axhline(0, linestyle="--", linewidth=1, color="gray")
    labels = [_plain(label) for label in effect.labels]
    axes.set_xticks(range(len(labels)), labels, rotation=60, ha="right", rotation_mode="anchor")
    axes.set_title(_plain(name))
    axes.set_ylabel(f"change in {forest.link.effect_scale}")
    axes.legend(title=_plain(forest.domain.target))
    return axes


def plot_tree(forest: ForestContent, tree: int = 0, ax: Any = None) -> Any:
    """A tree, the root on top; `tree` counts from 0. Raises `UsageError` for a tree that does not
    exist.
    """
    refuse_wrong_types(locals())
    if not 0 <= tree < len(forest.trees):
        raise UsageError(f"tree must be from 0 to {len(forest.trees) - 1}: the forest has no more.")
    drawn, cells = forest.trees[tree], forest.domain.cells
    x, y = np.zeros(drawn.nodes), np.zeros(drawn.nodes)
    leaves = drawn.kind == LEAF
    axes = _axes(ax, 2 * int(leaves.sum()), layout=None)
    for children, parents in drawn.descents(cells):
        y[children] = y[parents] - 1
    order = _leaf_order(drawn.parents(cells), leaves)
    x[order] = np.arange(len(order))
    for node in reversed(np.flatnonzero(~leaves).tolist()):
        x[node] = x[list(drawn.children(node, cells))].mean()
    for node in range(drawn.nodes):
        for branch, child in enumerate(drawn.children(node, cells)):
            axes.plot([x[node], x[child]], [y[node], y[child]], color="gray", linewidth=1, zorder=0)
            words = step(forest.domain, drawn, node, branch)
            near = (x[node] + 2 * x[child]) / 3, (y[node] + 2 * y[child]) / 3
            axes.text(*near, _plain(words), fontsize=7, ha="center", rotation=60)
        if leaves[node]:
            best = forest.domain.classes[int(drawn.votes[node].argmax())]
            box = {"boxstyle": "round", "facecolor": "white"}
            axes.text(x[node], y[node], _plain(best), fontsize=8, ha="center", bbox=box)
    axes.set_axis_off()
    return axes


def _leaf_order(parents: np.ndarray[Any, Any], leaves: np.ndarray[Any, Any]) -> list[int]:
    """The leaves from left to right: by the path of branches that leads to each."""
    paths: list[tuple[int, ...]] = []
    for node, parent in enumerate(parents.tolist()):
        paths.append((*paths[parent], node) if parent >= 0 else ())
    return sorted(np.flatnonzero(leaves).tolist(), key=lambda node: paths[node])


def _draw_effect(axes: Any, effect: Effect, number: int, label: str) -> None:
    values, deviation = effect.values[:, number], effect.deviation[:, number]
    places = np.arange(len(values))
    points = axes.plot(places, values, "o", label=_plain(label))
    if np.isfinite(deviation).all():
        low, high = values - BAND * deviation, values + BAND * deviation
        axes.vlines(places, low, high, color=points[0].get_color(), alpha=0.3, linewidth=6)


def _axes(ax: Any, places: int = 0, layout: str | None = "constrained") -> Any:
    """The axes to draw on: those given, or new ones that are wide enough for labels at `places`.

    Raises `UsageError` for anything else, `DpforestError` without matplotlib.
    """
    if ax is not None:
        if not hasattr(ax, "set_xlabel"):
            raise UsageError("ax must be axes of matplotlib: leave it out for new ones.")
        return ax
    try:
        from matplotlib import pyplot
    except ImportError:
        raise DpforestError("Plots need matplotlib: run pip install matplotlib.") from None
    width = min(max(6.4, 0.3 * places), WIDEST)
    return pyplot.subplots(figsize=(width, 4.8), layout=layout)[1]


def _plain(text: str) -> str:
    """A name that matplotlib shows as it is: no formula, at most forty characters."""
    return text[:40].replace("$", r"\$")
