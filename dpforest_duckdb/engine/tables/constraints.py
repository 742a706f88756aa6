"""What DuckDB's CHECK constraints declare, read from DuckDB's own parse tree; never a row."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from dpforest_duckdb.domain.names import fold
from dpforest_duckdb.domain.table import TableInfo
from dpforest_duckdb.engine.connection.statements import Statements

_AT_LEAST = {  # a value beyond a bound is beyond it or equal to it
    "COMPARE_GREATERTHANOREQUALTO": "lower",
    "COMPARE_GREATERTHAN": "lower",
    "COMPARE_LESSTHANOREQUALTO": "upper",
    "COMPARE_LESSTHAN": "upper",
}
_MIRRORED = {"lower": "upper", "upper": "lower"}


def declared_by_checks(statements: Statements, table: TableInfo) -> dict[str, dict[str, Any]]:
    """Per column, by its `fold`, what its CHECKs say together: `categories`, `lower` and `upper`.

    Read are `x IN (…)`, `x BETWEEN a AND b`, and `>=`, `>`, `<=` and `<` with a constant.
    """
    rows = statements.run(
        "SELECT expression FROM system.main.duckdb_constraints() WHERE constraint_type = 'CHECK' "
        "AND database_name = ? AND schema_name = ? AND table_name = ?",
        list(table.key),
    )
    found: dict[str, dict[str, Any]] = {}
    for (expression,) in rows:
        parsed = statements.parse_tree(f"SELECT {expression}")
        try:
            tree = json.loads(parsed)["statements"][0]["node"]["select_list"][0]
            facts = list(_facts(tree))
        except (KeyError, IndexError, ValueError, TypeError, RecursionError):
            continue
        for name, key, value in facts:
            known = found.setdefault(fold(name), {})
            known[key] = _both(key, known[key], value) if key in known else value
    return found


def _both(key: str, first: Any, second: Any) -> Any:
    """What two CHECKs say together; the second where they cannot be compared."""
    if key == "categories":
        return tuple(value for value in first if value in second)
    try:
        return max(first, second) if key == "lower" else min(first, second)
    except TypeError:
        return second


def _facts(node: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """(column, key, value) for each declaration in a parse tree; anything else says nothing."""
    kind = node.get("type")
    if kind == "CONJUNCTION_AND":
        for child in node["children"]:
            yield from _facts(child)
    elif kind == "COMPARE_BETWEEN":
        name = _name(node["input"])
        low, high = _constant(node["lower"]), _constant(node["upper"])
        if name and low is not None and high is not None:
            yield name, "lower", low
            yield name, "upper", high
    elif kind == "COMPARE_IN":
        name, values = _name(node["children"][0]), [_constant(c) for c in node["children"][1:]]
        if name and all(value is not None for value in values):
            yield name, "categories", tuple(values)
    elif kind in _AT_LEAST:
        side = _AT_LEAST[kind]
        left, right = node["left"], node["right"]
        if _name(left) and _constant(right) is not None:
            yield str(_name(left)), side, _constant(right)
        elif _name(right) and _constant(left) is not None:
            yield str(_name(right)), _MIRRORED[side], _constant(left)


def _name(node: dict[str, Any]) -> str | None:
    """The column that a node is; None for anything else, such as a field of a column."""
    names = node["column_names"] if node.get("type") == "COLUMN_REF" else []
    return str(names[0]) if len(names) == 1 else None


def _constant(node: dict[str, Any]) -> Any:
    """A literal's value: text, number or date in quotes; None for anything else."""
    if node.get("class") == "CAST":
        return _constant(node["child"])
    if node.get("class") == "FUNCTION" and node.get("function_name") == "-":
        value = _constant(node["children"][0])
        return -value if len(node["children"]) == 1 and isinstance(value, int | float) else None
    if node.get("class") != "CONSTANT":
        return None
    literal = node["literal"]
    text = literal.get("text")
    if literal["kind"] == "STRING":
        return text
    if literal["kind"] in ("INTEGER", "NUMERIC", "FLOAT", "DOUBLE", "DECIMAL"):
        return int(text) if text.lstrip("-").isdigit() else float(text)
    return None
