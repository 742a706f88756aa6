"""Whether the names of folders may decide the types of a query's columns.

DuckDB takes a column from folders such as `day=2024-01-31`, and its type from all their names
together. So if a query does not say which folders it reads, one row in another folder may change
how all are read. DuckDB's parser says what a query reads, and each view and macro that it uses.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from dpforest_duckdb.domain.names import fold
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.errors import DpforestError

_READERS = {"read_parquet", "parquet_scan"}
_ANY_FOLDER = re.compile(r"[*?\[].*[/\\]|\*\*|[/\\]$", re.DOTALL)
_SWITCHES = {"hive_partitioning", "hive_types_autocast"}
_FALSE = {"false", "f", "no", "n", "0"}
_Node = Mapping[str, Any]


def refuse_any_folders(engine: DuckDBEngine, sql: str) -> None:
    """Raise `DpforestError` if folders that a query of Parquet files does not name may decide the
    types of its columns, or if it reads a relation, whose query its text does not have.
    """
    defined, tables = _definitions(engine), _tables(engine)
    waiting = [sql]
    for text in waiting:  # it grows
        nodes = _nodes(engine, text)
        known = {*tables, *defined, *(fold(str(node["key"])) for node in nodes if "key" in node)}
        called = [node for node in nodes if "function_name" in node]
        read = [str(node["table_name"]) for node in nodes if node.get("type") == "BASE_TABLE"]
        for call in called:
            name = fold(str(call["function_name"]))
            if name in _READERS and not _declared(call):
                _refuse_folders(_written(call))
            elif name == "query_table":
                read += _written(call)
            elif name == "query":
                waiting += _written(call)
        for name in read:
            _refuse_folders([name])
            if ".parquet" not in fold(name) and not _spellings(name) & known:
                raise DpforestError(
                    "The query names another relation and reads Parquet files, so its text does "
                    "not say which files: write the other one into it as a subquery."
                )
        names = chain(read, (str(call["function_name"]) for call in called))
        for found in set().union(*map(_spellings, names)) & defined.keys():
            waiting += defined[found]
            defined[found] = []  # once is enough


def _spellings(name: str) -> set[str]:
    """What a name may be the name of: `query_table` has that of the schema before a dot."""
    return {fold(name), fold(name.rpartition(".")[2])}


def _definitions(engine: DuckDBEngine) -> dict[str, list[str]]:
    """The queries of all views and macros, by name."""
    found: dict[str, list[str]] = {}
    for name, text in engine.run(
        "SELECT view_name, sql FROM system.main.duckdb_views() WHERE NOT internal"
    ):
        found.setdefault(fold(name), []).append(text)
    for name, kind, text in engine.run(
        "SELECT function_name, function_type, macro_definition "
        "FROM system.main.duckdb_functions() WHERE NOT internal AND macro_definition IS NOT NULL"
    ):
        query = text if kind == "table_macro" else f"SELECT {text}"
        found.setdefault(fold(name), []).append(query)
    return found


def _tables(engine: DuckDBEngine) -> set[str]:
    """The names of all tables of the connection's databases."""
    names = engine.run("SELECT table_name FROM system.main.duckdb_tables()")
    return {fold(name) for (name,) in names}


def _nodes(engine: DuckDBEngine, text: str) -> list[_Node]:
    """All parts of a query, or of a view's. Raises `DpforestError` if DuckDB does not say them."""
    starts = [0]
    if text.startswith("CREATE"):  # a view
        starts = [found.end() for found in re.finditer(r"\sAS\s", text)]
    for start in starts:
        nodes: list[_Node] = []
        parsed = engine.parse_tree(text[start:])
        try:
            whole = json.loads(parsed, object_hook=partial(_kept, nodes))
        except RecursionError:
            raise DpforestError(
                "The query is too deeply nested to see which files it reads: store parts of it in "
                "tables."
            ) from None
        if not whole["error"]:
            return nodes
    raise _refusal()


def _kept(nodes: list[_Node], node: _Node) -> _Node:
    nodes.append(node)
    return node


def _declared(call: _Node) -> bool:
    """Whether a reader of Parquet files may not guess from the names of folders."""
    for name, value in _options(call):
        if name == "hive_types" or (name in _SWITCHES and _constant(value) in _FALSE):
            return True
    return False


def _options(call: _Node) -> Iterator[tuple[str, _Node]]:
    """The named arguments of a function: `name := value`, or `name = value` of a table's."""
    for argument in call["arguments"]:
        value = argument["expression"]
        if argument["name"]:
            yield fold(argument["name"]), value
        elif value["type"] == "COMPARE_EQUAL" and value["left"]["type"] == "COLUMN_REF":
            yield fold(value["left"]["column_names"][-1]), value["right"]


def _written(call: _Node) -> list[str]:
    """The texts that a function is called with, also those in a list.

    Raises `DpforestError` if they are computed, and so not written out.
    """
    found: list[str] = []
    named = [value for _, value in _options(call)]
    for argument in call["arguments"]:
        value = argument["expression"]
        if value.get("function_name") == "list_value":
            found += _written(value)
        elif value["type"] == "VALUE_CONSTANT":
            found.append(str(value["literal"].get("text", "")))
        elif not argument["name"] and value not in named and value["type"] != "COMPARE_EQUAL":
            raise _refusal()
    return found


def _constant(value: _Node) -> str:
    """The text of a constant in lower case; "" for anything else."""
    return fold(str(value.get("literal", {}).get("text", "")))


def _refuse_folders(paths: list[str]) -> None:
    for path in paths:
        if _ANY_FOLDER.search(path) or Path(path.removeprefix("file://")).is_dir():
            raise _refusal()


def _refusal() -> DpforestError:
    return DpforestError(
        "The query may read Parquet files in any folders, and the name of one, such as "
        "day=unknown, may change the type of a column: set hive_types for such columns in "
        "read_parquet, or hive_partitioning = false."
    )
