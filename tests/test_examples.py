"""The examples and the tutorial run as they are printed."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from dpforest_duckdb.recipes import RECIPES

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PRINTED = {
    "hospital": [
        "per visit:   ε = 1",
        'per patient: ε = 1, δ = 0, per "patient_id"',
        "rows: discrete",
    ],
    "analytics": ["Guarantee: ε = 1", "churn.sql made the view churn_scored.", "west"],
    "compare": ["recipe", "auto", "greedy-tree", "dpdf", "diffp-id3"],
}


def test_every_example_has_a_test_and_a_line_in_the_list() -> None:
    scripts = {script.stem for script in (DOCS / "examples").glob("*.py")}
    assert scripts == set(PRINTED)
    listed = (DOCS / "examples" / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| \[(\w+)\.py\]", listed, re.MULTILINE)) == scripts


@pytest.mark.parametrize("name", PRINTED)
def test_an_example_runs_and_prints_what_it_promises(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(DOCS / "examples" / f"{name}.py"), run_name="__main__")
    printed = capsys.readouterr().out
    for text in PRINTED[name]:
        assert text in printed


def test_the_code_of_adding_a_system_runs_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dpforest_duckdb.recipes.RECIPES", dict(RECIPES))
    page = (DOCS / "adding-a-system.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "adding-a-system.md", "exec"), names)
    forest = names["forest"]
    assert getattr(forest, "recipe", None) == "coin-forest"
    assert "coin-forest" not in RECIPES
