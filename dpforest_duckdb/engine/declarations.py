"""The domain that DuckDB's own declarations give: types and constraints, never a row.

Read are ENUM and BOOLEAN types, NOT NULL, `CHECK (x IN (…))`, `CHECK (x BETWEEN a AND b)` and its
`>=`/`<=` form, and JSON in `COMMENT ON COLUMN` with the keys of a domain file's [[column]], which
comes first. They are the curator's claim: an ENUM can be built from the data.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from dpforest_duckdb.domain import Domain, type_family
from dpforest_duckdb.domain_file import domain_from_mapping
from dpforest_duckdb.engine.duckdb import DuckDBEngine
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.ledger.anchor import TableInfo

_KEYS = (
    "kind",
    "domain",
    "ordered",
    "lower",
    "upper",
    "bins",
    "edges",
    "scale",
    "nullable",
    "taxonomy",
)
_AT_LEAST = {"COMPARE_GREATERTHANOREQUALTO": "lower", "COMPARE_LESSTHANOREQUALTO": "upper"}
_MIRRORED = {"lower": "upper", "upper": "lower"}


def declared_domain(engine: DuckDBEngine, info: TableInfo, target: str | None) -> Domain:
    """The domain of a table by its declarations; undeclared columns are not used.

    Raises `DpforestError` without a target, or where the target's classes are not declared.
    """
    if not target:
        raise DpforestError("Name the column to predict with --target, or a file with --domain.")
    if target.casefold() not in {name.casefold() for name in info.columns}:
        raise DpforestError(f'The table has no column "{target}": check --target.')
    columns = [c for c in declared_columns(engine, info) if "kind" in c]
    if target.casefold() not in {c["name"].casefold() for c in columns}:
        raise DpforestError(
            f'The classes of "{target}" are not declared: make it an ENUM, add CHECK ("{target}" '
            "IN (…)), or write a domain file (see dpforest domain)."
        )
    return domain_from_mapping({"target": target, "column": columns})


def declared_columns(engine: DuckDBEngine, info: TableInfo) -> list[dict[str, Any]]:
    """Every column as the keys of a [[column]]; `kind` is missing where nothing is declared."""
    facts = engine.run(
        "SELECT column_name, data_type, is_nullable, comment FROM duckdb_columns() "
        "WHERE database_name = ? AND schema_name = ? AND table_name = ? ORDER BY column_index",
        [info.catalog, info.schema, info.name],
    )
    checks = _checks(engine, info)
    found = []
    for name, sql_type, nullable, comment in facts:
        column: dict[str, Any] = {"name": name}
        stated = {**checks.get(name.casefold(), {}), **_typed(engine, sql_type)}
        note = _noted(name, comment)
        column.update(note or _column(sql_type, stated))
        if "kind" in column and column["kind"] != "identifier":
            column.setdefault("nullable", bool(nullable))
        found.append(column)
    return found


def _column(sql_type: str, stated: dict[str, Any]) -> dict[str, Any]:
    if "domain" in stated:
        return {"kind": "categorical", "domain": stated["domain"]}
    numeric = type_family(sql_type) in ("integer", "decimal", "float", "date", "timestamp")
    if numeric and {"lower", "upper"} <= stated.keys():
        return {"kind": "numeric", "lower": stated["lower"], "upper": stated["upper"]}
    return {}


def _typed(engine: DuckDBEngine, sql_type: str) -> dict[str, Any]:
    """What the type itself declares."""
    if sql_type == "BOOLEAN":
        return {"domain": [False, True]}
    if sql_type.startswith("ENUM(") and type_family(sql_type):
        values = engine.run(f"SELECT unnest(enum_range(CAST(NULL AS {sql_type})))")
        return {"domain": [value for (value,) in values]}
    return {}


def _noted(name: str, comment: str | None) -> dict[str, Any]:
    """The keys in a column's comment, if it is a JSON object."""
    try:
        note = json.loads(comment or "")
    except (ValueError, RecursionError):
        return {}
    if not isinstance(note, dict) or not set(note) & set(_KEYS):
        return {}
    if "kind" not in note:
        raise DpforestError(f'The JSON comment of column "{name}" has no "kind": add one.')
    return {key: note[key] for key in _KEYS if key in note}


def _checks(engine: DuckDBEngine, info: TableInfo) -> dict[str, dict[str, Any]]:
    """Per column (lower case) what its CHECK constraints say, read from DuckDB's own parse tree."""
    rows = engine.run(
        "SELECT expression FROM duckdb_constraints() WHERE constraint_type = 'CHECK' "
        "AND database_name = ? AND schema_name = ? AND table_name = ?",
        [info.catalog, info.schema, info.name],
    )
    found: dict[str, dict[str, Any]] = {}
    for (expression,) in rows:
        parsed = engine.run("SELECT json_serialize_sql(?)", [f"SELECT {expression}"])
        try:
            tree = json.loads(parsed[0][0])["statements"][0]["node"]["select_list"][0]
            facts = list(_facts(tree))
        except (KeyError, IndexError, ValueError, TypeError, RecursionError):
            continue
        for name, key, value in facts:
            found.setdefault(name.casefold(), {})[key] = value
    return found


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
            yield name, "domain", values
    elif kind in _AT_LEAST:
        side = _AT_LEAST[kind]
        left, right = node["left"], node["right"]
        if _name(left) and _constant(right) is not None:
            yield str(_name(left)), side, _constant(right)
        elif _name(right) and _constant(left) is not None:
            yield str(_name(right)), _MIRRORED[side], _constant(left)


def _name(node: dict[str, Any]) -> str | None:
    return node["column_names"][-1] if node.get("type") == "COLUMN_REF" else None


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
