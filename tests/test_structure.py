"""The layout holds: rooms in one order, no circle, short functions, imports at the top."""

from __future__ import annotations

import ast
import re
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = "dpforest_duckdb"
FOLDERS = {ROOT / PACKAGE: PACKAGE, ROOT / "sql": f"{PACKAGE}.sql", ROOT / "cli": f"{PACKAGE}.cli"}

# the rooms from the ground floor up: a file imports from its own room and from rooms before it
ROOMS = (
    *("version", "errors", "arguments", "arrays", "progress", "guarantee", "tree", "domain"),
    *(
        "privacy",
        "ledger",
        "sql",
        "splits",
        "scoring",
        "engine",
        "request",
        "postprocess",
    ),
    *("learners", "recipes", "model", "report", "training", "sklearn", "audit", "demo", "cli"),
)
MOST_ROOMS = 23
MOST_LINES = 60  # of a function, its parameters not counted

DECLARATIONS = {f"{PACKAGE}.report.charts._tree_spec"}  # one value, written out

# what may be imported inside a function, by room: the command line must start fast, and the
# libraries of an extra may be missing
LATE = {
    "cli": {PACKAGE, "rich", "importlib"},
    "privacy": {"opendp"},
    "engine": {"pyspark", "pyarrow", "polars", "pandas"},
    "model": {"matplotlib"},
    "report": {"altair", "vl_convert"},
}
ENGINE = f"{PACKAGE}.engine"
# the parts of the engine, likewise in order; the first two are all that the rooms above may know
ENGINE_PARTS = (
    *("base", "declarations", "shared", "columns", "connection", "coded_rows", "tables"),
    *("sources", "predictions", "spark"),
)
EDGES = {  # pick the engine of a connection, or know the kinds of rows that engines read
    f"{PACKAGE}.training.opening",
    f"{PACKAGE}.training.found_rows",
    f"{PACKAGE}.model.forest",
}
TYPES_ONLY = {PACKAGE, f"{PACKAGE}.cli"}  # may import for annotations alone, for the same reason


def name_of(file: Path) -> str:
    """The module that a file is."""
    folder, package = next((f, p) for f, p in FOLDERS.items() if file.is_relative_to(f))
    parts = (package, *file.relative_to(folder).with_suffix("").parts)
    return ".".join(parts).removesuffix(".__init__")


def room_of(module: str) -> str:
    """The room of a module; the package itself, which only gives names, has none."""
    room = module.split(".")[1] if "." in module else ""
    return "cli" if room == "__main__" else room  # it starts the command


FILES = {name_of(file): file for folder in FOLDERS for file in sorted(folder.rglob("*.py"))}


@cache
def parsed(module: str) -> ast.Module:
    return ast.parse(FILES[module].read_text(encoding="utf-8"))


def imported(node: ast.AST) -> list[str]:
    """The modules that an import statement names; a name in a module stands for the module."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    assert node.level == 0, "imports name the whole path"
    whole = [f"{node.module}.{alias.name}" for alias in node.names]
    return [name if name in FILES else str(node.module) for name in whole]


@cache
def imports(module: str) -> frozenset[str]:
    """The modules of the package that a module imports, anywhere in its file."""
    found = {name for node in ast.walk(parsed(module)) for name in imported(node)}
    return frozenset(found & set(FILES) - {module})


def functions(module: str) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [node for node in ast.walk(parsed(module)) if isinstance(node, kinds)]


def lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The lines of a function without those of its parameters, which are a declaration."""
    assert function.end_lineno is not None
    each = function.args
    given = [*each.posonlyargs, *each.args, *each.kwonlyargs, *each.defaults]
    places = {line for one in given for line in range(one.lineno, (one.end_lineno or 0) + 1)}
    return function.end_lineno - function.lineno + 1 - len(places - {function.lineno})


def test_no_module_imports_itself_by_way_of_others() -> None:
    assert list(TopologicalSorter({name: imports(name) for name in FILES}).static_order())


def test_no_module_imports_from_a_room_above_its_own() -> None:
    floor = {room: number for number, room in enumerate(ROOMS)}
    upward = [
        f"{module} imports {other}"
        for module in FILES
        for other in imports(module)
        if room_of(module) and floor.get(room_of(other), 0) > floor.get(room_of(module), 0)
    ]
    assert not upward


def part_of(module: str) -> str:
    """The part of the engine that a module is in; nothing for other modules."""
    return module.removeprefix(f"{ENGINE}.").split(".")[0] if f"{ENGINE}." in module else ""


def test_the_parts_of_the_engine_are_listed_and_import_from_parts_before_them() -> None:
    floor = {part: number for number, part in enumerate(ENGINE_PARTS)}
    assert {part_of(module) for module in FILES} - {""} == set(floor)
    upward = [
        f"{module} imports {other}"
        for module in FILES
        for other in imports(module)
        if part_of(module) and floor.get(part_of(other), 0) > floor[part_of(module)]
    ]
    assert not upward


def test_every_package_says_in_one_sentence_what_it_holds() -> None:
    packages = [module for module in FILES if FILES[module].name == "__init__.py"]
    said = {module: ast.get_docstring(parsed(module)) or "" for module in packages}
    assert not [module for module, text in said.items() if not re.match(r"[A-Z].*\.$", text, re.M)]


def test_what_is_above_the_engine_knows_its_protocols_only() -> None:
    """Another engine then needs no change there; no SQL text is written there either."""
    public = {f"{ENGINE}.{name}" for name in ENGINE_PARTS[:2]}
    above = {"request", "postprocess", "learners", "recipes", "model", "report", "training"}
    below = {"privacy", "ledger", "splits"}
    known = {
        f"{module} imports {other}"
        for module in FILES
        if room_of(module) in above | below and module not in EDGES
        for other in imports(module)
        if (other.startswith(f"{ENGINE}.") and other not in public) or room_of(other) == "sql"
    }
    assert not known


def test_every_room_is_listed_and_they_are_few() -> None:
    assert {room_of(module) for module in FILES} - {""} == set(ROOMS)
    top = {entry.stem for entry in (ROOT / PACKAGE).iterdir() if not entry.name.startswith("__")}
    assert len(top - {"py"}) <= MOST_ROOMS


def test_modules_import_at_the_top_but_for_a_fast_start() -> None:
    late = []
    for module in FILES:
        allowed = LATE.get(room_of(module), set())
        for function in functions(module):
            for node in ast.walk(function):
                names = {name.partition(".")[0] for name in imported(node)}
                if names - allowed:
                    late.append(f"{module}, line {getattr(node, 'lineno', '?')}: {names}")
    assert not late


def test_imports_for_annotations_alone_are_where_they_save_time() -> None:
    guarded = {
        module
        for module in FILES
        for node in parsed(module).body
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
    }
    assert {module if room_of(module) != "cli" else f"{PACKAGE}.cli" for module in guarded} <= (
        TYPES_ONLY
    )


@pytest.mark.parametrize("module", FILES)
def test_imports_come_before_everything_else(module: str) -> None:
    body = parsed(module).body
    kinds = (ast.Import, ast.ImportFrom, ast.If, ast.Try)
    last = max((n for n, node in enumerate(body) if isinstance(node, kinds[:2])), default=-1)
    before = body[: last + 1]
    documented = isinstance(before[0], ast.Expr) if before else False
    assert all(isinstance(node, kinds) for node in before[documented:])


def test_no_function_is_longer_than_a_screen() -> None:
    long = [
        f"{module}.{function.name}: {lines(function)} lines"
        for module in FILES
        for function in functions(module)
        if lines(function) > MOST_LINES and f"{module}.{function.name}" not in DECLARATIONS
    ]
    assert not long


def test_the_architecture_page_lists_the_rooms_in_their_order() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    listed = page.partition("## The packages")[2].partition("\n## ")[0]
    named = dict.fromkeys(re.findall(r"`(\w+)(?:/|\.py)`", listed))
    assert [room for room in named if room in ROOMS] == list(ROOMS)


def test_catalogue_functions_are_named_in_full() -> None:
    """A user's macro of the same name would be called else, and could hide a cap."""
    catalogue = r"duckdb_\w+|json_serialize_\w+|pragma_\w+|current_(?:database|schema|setting)"
    bare = re.compile(rf"(?<!system\.main\.)\b(?:{catalogue})\(")
    for folder in (ROOT / PACKAGE, ROOT / "cli", ROOT / "sql"):
        for file in sorted([*folder.rglob("*.py"), *folder.rglob("*.sql")]):
            for call in bare.findall(file.read_text(encoding="utf-8")):
                assert re.search(rf"def {re.escape(call)}", file.read_text()), (file.name, call)
