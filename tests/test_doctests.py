"""The examples in docstrings of the public API give what they show."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
import shlex
import warnings
from pathlib import Path

import pytest
from shell import dpforest

from dpforest_duckdb import prepare, train

ROOT = Path(__file__).parent.parent

MODULES = (
    "dpforest_duckdb.cli.output",
    "dpforest_duckdb.errors",
    "dpforest_duckdb.domain.flags",
    "dpforest_duckdb.domain.names",
    "dpforest_duckdb.domain.table",
    "dpforest_duckdb.training.budget",
    "dpforest_duckdb.training.train",
    "dpforest_duckdb.sklearn.classifier",
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name: str) -> None:
    if "sklearn" in name:
        pytest.importorskip("sklearn")
    with warnings.catch_warnings(action="ignore"):
        failed, tried = doctest.testmod(importlib.import_module(name))
    assert tried
    assert not failed


def block(page: str, name: str) -> str:
    """The Python code below a mark of a page."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    found = re.search(rf"<!-- {name} -->\n```python\n(.*?)```", text, re.DOTALL)
    assert found
    return found[1]


@pytest.mark.filterwarnings("ignore")
def test_the_code_of_the_pages_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("sklearn")
    monkeypatch.chdir(tmp_path)
    rows = [f"{17 + i % 70},{'FM'[i % 2]},{'<=50K' if i % 70 < 40 else '>50K'}" for i in range(900)]
    Path("people.csv").write_text("\n".join(["age,sex,income", *rows]))
    Path("people.toml").write_text(
        'target = "income"\n[[column]]\nname = "age"\nkind = "numeric"\nlower = 17\nupper = 90\n'
        '[[column]]\nname = "income"\nkind = "categorical"\ndomain = ["<=50K", ">50K"]\n'
    )
    marked = (
        ("comparison.md", "comparison"),
        ("files.md", "files python"),
        ("python.md", "python"),
        ("python.md", "python domain"),
        ("python.md", "python estimator"),
        ("questions.md", "questions"),
    )
    for page, name in marked:
        exec(compile(block(page, name), page, "exec"), {})
    assert Path("budget.ledger").exists()
    text = (ROOT / "docs" / "files.md").read_text(encoding="utf-8")
    for command in re.findall(r"^\$ dpforest (.*people\.csv.*|show .*)$", text, re.MULTILINE):
        assert dpforest(*shlex.split(command)).code == 0, command


def test_help_lists_every_option_with_its_type_and_default() -> None:
    given, planned = inspect.signature(train).parameters, inspect.signature(prepare).parameters
    internal = {"account", "leaks", "file"}
    assert set(given) == set(planned) - internal | {"progress"}
    for name in set(given) & set(planned):
        assert given[name].default == planned[name].default
        assert name == "trace" or given[name].annotation == planned[name].annotation
        assert re.search(rf"\b{name}\b", train.__doc__ or ""), name
