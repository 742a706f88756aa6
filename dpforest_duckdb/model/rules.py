"""A forest as rules: every path from a root to a node, with its noisy figures."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NotRequired, TypedDict

import numpy as np

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.scoring.content import ForestContent
from dpforest_duckdb.tree import EQUALS, LEAF, SCALE, THRESHOLD, Tree


class Figures(TypedDict):
    """The noisy figures of a node; None for what it lacks.

    - `prediction`: the class with most votes in a leaf, and with the largest count in another node.
      If votes are log-odds, it is the class that this leaf makes more likely than the others do.
    - `counts`: the noisy class counts, and `noise`: the standard deviation of the noise in each of
      them. None if the recipe keeps none.
    - `confidence`: the share of the predicted class in the counts. `support`: the share of the
      tree's noisy rows that reach the node. Both are in [0, 1].
    - `votes`: the integer votes of a leaf. `log_odds`: what they add to the log-odds of each class,
      if they are log-odds.
    """

    prediction: str | None
    counts: list[int] | None
    noise: float | None
    confidence: float | None
    support: float | None
    votes: list[int] | None
    log_odds: NotRequired[dict[str, float] | None]


class Rule(Figures):
    """A node of a tree, and the path to it in words: `rule`."""

    tree: int
    node: int
    leaf: bool
    depth: int
    rule: str


def rules(forest: ForestContent, shown: Callable[[str], str] = str) -> list[Rule]:
    """All rules and sub-rules, tree by tree, parents before children.

    All of it is released. `shown` writes a name or category into a rule.
    """
    return [
        row
        for number, tree in enumerate(forest.trees)
        for row in _tree(forest, number, tree, shown)
    ]


def _tree(
    forest: ForestContent, number: int, tree: Tree, shown: Callable[[str], str]
) -> list[Rule]:
    """The rules of one tree, parents before children."""
    domain = forest.domain
    paths: list[tuple[str, ...]] = [()] * tree.nodes
    rows: list[Rule] = []
    reached = _reached(tree)
    for node in range(tree.nodes):
        for branch, child in enumerate(tree.children(node, domain.cells)):
            paths[child] = (*paths[node], step(domain, tree, node, branch, shown))
        figures = _figures(forest, tree, node, reached)
        if forest.link.log_odds:
            figures["log_odds"] = _log_odds(forest, tree, node)
        rows.append(
            {
                "tree": number,
                "node": node,
                "leaf": bool(tree.kind[node] == LEAF),
                "depth": len(paths[node]),
                "rule": " AND ".join(paths[node]) or "(all rows)",
                **figures,
            }
        )
    return rows


def _reached(tree: Tree) -> float:
    """The noisy rows of a tree: those of its root, or else of all leaves that have counts.

    Only leaves have counts where tables were released below a path.
    """
    if tree.counts is None:
        return 0.0
    known = np.ones(tree.nodes, np.bool_) if tree.noise is None else ~np.isnan(tree.noise)
    counts = tree.counts[0] if known[0] else tree.counts[known & (tree.kind == LEAF)].sum(axis=0)
    return float(np.clip(counts, 0, None).sum())


def _figures(forest: ForestContent, tree: Tree, node: int, reached: float) -> Figures:
    """The noisy figures of a node, and its votes if it is a leaf; `reached` are the tree's rows."""
    classes = forest.domain.classes
    votes = tree.votes[node] if tree.kind[node] == LEAF else None
    noise = math.nan if tree.noise is None else float(tree.noise[node])
    if tree.counts is None or (tree.noise is not None and math.isnan(noise)):
        best = votes.argmax() if votes is not None else None
        return {
            "prediction": None if best is None else classes[best],
            "counts": None,
            "noise": None,
            "confidence": None,
            "support": None,
            "votes": None if votes is None else votes.tolist(),
        }
    counts = tree.counts[node]
    present = np.clip(counts, 0, None)
    total = present.sum()
    best = int((counts if votes is None else votes).argmax())
    return {
        "prediction": classes[best],
        "counts": counts.tolist(),
        "noise": None if math.isnan(noise) else round(noise, 3),
        "confidence": round(float(present[best] / total), 6) if total else None,
        "support": round(min(1.0, float(total / reached)), 6) if reached else None,
        "votes": None if votes is None else votes.tolist(),
    }


def _log_odds(forest: ForestContent, tree: Tree, node: int) -> dict[str, float] | None:
    """What a leaf adds to the log-odds of each class, in nats, minus the mean over the classes.

    None for a node that is no leaf.
    """
    if tree.kind[node] != LEAF:
        return None
    added = (tree.votes[node] - tree.votes[node].mean()) / SCALE
    return dict(zip(forest.domain.classes, added.round(3).tolist(), strict=True))


def step(
    domain: Domain, tree: Tree, node: int, branch: int, shown: Callable[[str], str] = str
) -> str:
    """The condition in words on which rows go from a node to one of its children."""
    attribute = domain.attributes[tree.attribute[node]]
    return condition(attribute, int(tree.kind[node]), int(tree.cell[node]), branch, shown)


def condition(
    attribute: Attribute, kind: int, cell: int, branch: int, shown: Callable[[str], str] = str
) -> str:
    """The condition of one branch in words; `shown` writes a name or category."""
    name = shown(attribute.name)
    if kind == THRESHOLD:
        if attribute.kind == "categorical":
            listed = ", ".join(shown(attribute.label(before)) for before in range(cell + 1))
            return f"{name} {'in' if branch == 0 else 'not in'} ({listed})"
        edge = attribute.text(attribute.edges[cell])
        return f"{name} <= {edge}" if branch == 0 else f"({name} > {edge} or missing)"
    label = attribute.label(cell if kind == EQUALS else branch)
    if kind == EQUALS and branch == 1:
        return f"{name} is not {shown(label)}"
    if attribute.kind == "numeric" and label.startswith(("> ", "<= ", "any ")):
        return f"{name} {label}"
    return f"{name} is {label}" if label in ("NULL", "other") else f"{name} = {shown(label)}"
