"""One tree as nested CASE, in any dialect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.domain import Attribute
from dpforest_duckdb.scoring.dialects.base import Dialect
from dpforest_duckdb.sql import Sql
from dpforest_duckdb.tree import MULTIWAY, THRESHOLD, Tree

_BREAK = "\x00"  # separates lines to be indented; unlike a newline, no name or value contains it


def tree_case(
    dialect: Dialect,
    tree: Tree,
    attributes: Mapping[int, Attribute],
    columns: Mapping[int, Sql],
    cells: Sequence[int],
    outcome: Integers,
) -> Sql:
    """One tree as nested CASE that gives `outcome[node]`; branches with the same text are merged.

    `attributes` and their `columns` are by number, those that the tree splits on at least; `cells`
    are the domain's.

    A CASE after ELSE is written as further arms of the same CASE, because each CASE costs DuckDB
    memory for intermediate vectors.
    """
    written: dict[int, str] = {}
    arms_of: dict[int, list[str]] = {}
    for node in reversed(range(tree.nodes)):
        children = list(tree.children(node, cells))
        if not children:
            written[node] = str(int(outcome[node]))
            continue
        below = [written.pop(child) for child in children]
        inner = {
            text: arms_of.pop(child)
            for child, text in zip(children, below, strict=True)
            if child in arms_of
        }
        if len(set(below)) == 1:
            written[node] = below[0]
            if inner:
                arms_of[node] = inner[below[0]]
            continue
        a = int(tree.attribute[node])
        kind, cell = int(tree.kind[node]), int(tree.cell[node])
        *arms, rest = _arms(dialect, attributes[a], columns[a], kind, cell, below)
        arms += inner.get(rest.removeprefix("ELSE "), [rest])
        arms_of[node] = arms
        lines = ["CASE", *(f"  {arm.replace(_BREAK, f'{_BREAK}  ')}" for arm in arms), "END"]
        written[node] = _BREAK.join(lines)
    return Sql(written[0].replace(_BREAK, "\n    "))


def leaf_votes(values: Integers, column: Sql, first: int = 0) -> Sql:
    """`values[leaf - first]` of the leaf whose number is in a column, found by halves."""
    if (values == values[0]).all():
        return Sql(int(values[0]))
    half = len(values) // 2
    below = leaf_votes(values[:half], column, first)
    above = leaf_votes(values[half:], column, first + half)
    return Sql(f"CASE WHEN {column} < {first + half} THEN {below} ELSE {above} END")


def _arms(
    dialect: Dialect,
    attribute: Attribute,
    column: Sql,
    kind: int,
    cell: int,
    below: Sequence[str],
) -> list[str]:
    """The WHEN and ELSE lines of a split, whose branches lead to `below`."""
    if kind != MULTIWAY:
        tested = dialect.at_most if kind == THRESHOLD else dialect.is_cell
        test: str = tested(attribute, column, cell)
        return [f"WHEN {test} THEN {below[0]}", f"ELSE {below[1]}"]
    if attribute.kind == "numeric":
        arms = [f"WHEN {dialect.missing(attribute, column)} THEN {below[attribute.null]}"]
        for bin_ in range(attribute.proper - 1):
            if below[bin_] == below[bin_ + 1]:
                continue
            test = dialect.at_most(attribute, column, bin_)
            arms.append(f"WHEN {test} THEN {below[bin_]}")
        return [*arms, f"ELSE {below[attribute.proper - 1]}"]
    rest = below[attribute.other]
    alike: dict[str, list[int]] = {}
    for value in range(attribute.proper):
        if below[value] != rest:
            alike.setdefault(below[value], []).append(value)
    arms = []
    if attribute.null != attribute.other and below[attribute.null] != rest:
        arms.append(f"WHEN {dialect.missing(attribute, column)} THEN {below[attribute.null]}")
    for outcome, values in alike.items():
        test = dialect.is_any(attribute, column, values)
        arms.append(f"WHEN {test} THEN {outcome}")
    return [*arms, f"ELSE {rest}"]
