"""The domain from DuckDB's own declarations: types and constraints, never a row.

It reads ENUM and BOOLEAN types, NOT NULL, `CHECK (x IN (…))`, `CHECK (x BETWEEN a AND b)`, its
`>=`/`<=` and `>`/`<` forms, and JSON in `COMMENT ON COLUMN` with the keys of [[column]] in a
domain file. The JSON takes precedence. All of it is the curator's claim: an ENUM can be built from
the data.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from typing import Any

from dpforest_duckdb.domain import Domain
from dpforest_duckdb.domain.file import (
    COLUMN_KEYS,
    OTHER_WORDS,
    domain_from_mapping,
    refuse_misspelt,
)
from dpforest_duckdb.domain.names import fold, hint, meant, spellings
from dpforest_duckdb.domain.table import TableInfo, refuse_folders
from dpforest_duckdb.domain.types import NUMERIC
from dpforest_duckdb.engine.base import Catalogue, DeclaredColumn
from dpforest_duckdb.errors import DpforestError

_KEYS = [key for key in COLUMN_KEYS if key != "name"]


def declared_domain(engine: Catalogue, info: TableInfo, target: str | None) -> Domain:
    """The domain of a table by its declarations; undeclared columns are not used.

    Raises `DpforestError` without a target, or if the target's classes are not declared.
    """
    if not target:
        raise DpforestError("Name the column to predict with --target, or a file with --domain.")
    name = target_column(info, target)
    columns = [c for c in declared_columns(engine, info) if "kind" in c]
    if not columns:
        raise DpforestError(
            "No column declares its values: give the table ENUM types and CHECK bounds, or pass a "
            "domain file as --domain (dpforest domain prints one to fill in), or options as in "
            "dpforest train --numeric age=17:90 --categories ward=a,b --classes no,yes."
        )
    if fold(target) not in {fold(c["name"]) for c in columns}:
        ranges = " To predict a number, store ranges of it as classes."
        raise DpforestError(
            f'The classes of "{target}" are not declared: make it an ENUM, add CHECK ("{target}" '
            "IN (…)), or write a domain file (see dpforest domain)."
            f"{ranges if info.columns[name].family in NUMERIC else ''}"
        )
    return domain_from_mapping({"target": target, "column": columns})


def target_column(info: TableInfo, target: str) -> str:
    """The name of the target as the table has it. Raises `DpforestError` if there is none."""
    found = spellings(info.columns)
    if fold(target) not in found:
        refuse_folders(info, [target])
        near = hint(target, info.columns)
        raise DpforestError(f'There is no column "{target}"{near}: check --target.')
    return found[fold(target)]


def declared_columns(engine: Catalogue, info: TableInfo) -> list[dict[str, Any]]:
    """Every column as the keys of a [[column]]; `kind` is missing if nothing is declared."""
    found = []
    for stated in engine.declared(info):
        column: dict[str, Any] = {"name": stated.name}
        column.update(_noted(stated.name, stated.comment) or _column(stated))
        if column.get("kind") != "identifier" and ("kind" in column or not stated.nullable):
            column.setdefault("nullable", stated.nullable)
        found.append(column)
    return found


def _column(stated: DeclaredColumn) -> dict[str, Any]:
    if stated.categories is not None:
        return {"kind": "categorical", "domain": list(stated.categories)}
    numeric = stated.type.family in NUMERIC
    if numeric and _are_bounds(stated.lower, stated.upper):
        return {"kind": "numeric", "lower": stated.lower, "upper": stated.upper}
    return {}


def _are_bounds(lower: Any, upper: Any) -> bool:
    """Whether two constants are numbers, dates or times that can bound a column.

    Others, such as infinity, say nothing.
    """
    if isinstance(lower, str) and isinstance(upper, str):
        try:
            return dt.datetime.fromisoformat(lower) < dt.datetime.fromisoformat(upper)
        except (ValueError, TypeError):
            return False
    finite = all(isinstance(each, int | float) and abs(each) < math.inf for each in (lower, upper))
    return finite and lower < upper


def _noted(name: str, comment: str) -> dict[str, Any]:
    """The keys in a column's comment, if it is a JSON object with at least one of them.

    Raises `DpforestError` for a key that seems misspelt, and without a kind.
    """
    try:
        note = json.loads(comment)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(note, dict) or not any(key in _KEYS or meant(key, ["kind"]) for key in note):
        return {}
    try:
        json.dumps(note, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:
        raise DpforestError(
            f'The JSON comment of column "{name}" holds NaN, an infinity, or text that is not '
            "valid Unicode: correct it."
        ) from None
    refuse_misspelt(f'The JSON comment of column "{name}"', note, _KEYS, OTHER_WORDS)
    if "kind" not in note:
        raise DpforestError(f'The JSON comment of column "{name}" has no "kind": add one.')
    return {key: note[key] for key in _KEYS if note.get(key) is not None}
