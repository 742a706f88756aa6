"""The examples and the tutorial run as they are printed."""

from __future__ import annotations

import re
import runpy
import shlex
from pathlib import Path

import duckdb
import pytest
from sessions import commands, prints, words
from shell import dpforest
from spark_sessions import started

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
    "lake": ['δ = 0, per "rider" (at most 3 rows used)', "paid by card: 0."],
    "compare": ["recipe", "auto", "greedy-tree", "dpdf", "diffp-id3"],
}


def test_every_example_has_a_test_and_a_line_in_the_list() -> None:
    scripts = {script.stem for script in (DOCS / "examples").glob("*.py")}
    assert scripts == set(PRINTED)
    listed = (DOCS / "examples" / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| \[(\w+)\.py\]", listed, re.MULTILINE)) == scripts


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.spark] if name == "lake" else []) for name in PRINTED],
)
def test_an_example_runs_and_prints_what_it_promises(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    if name == "lake":
        started("local[2]", tmp_path)  # which the example uses, and stops
    runpy.run_path(str(DOCS / "examples" / f"{name}.py"), run_name="__main__")
    printed = capsys.readouterr().out
    for text in PRINTED[name]:
        assert text in printed
    with pytest.raises(SystemExit, match="start in an empty folder"):
        runpy.run_path(str(DOCS / "examples" / f"{name}.py"), run_name="__main__")


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


def test_the_notebook_of_the_tutorial_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for library in ("pandas", "sklearn"):
        pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)
    page = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    exec(compile(code, "tutorial.md", "exec"), {})
    forest, accuracy, predicted = capsys.readouterr().out.splitlines()
    assert "ε = 1, δ = 0, per row" in forest
    assert float(accuracy) > 0.9
    assert predicted == "['yes' 'no']"
    words = ("budget", "--dataset", "answers", "--ledger", "answers.ledger", "--json")
    assert dpforest(*words).facts["spent"] == 1.5


def bars(drawn: str) -> list[str]:
    """The first word of each line of a drawn effect."""
    return [line.split()[0] for line in drawn.splitlines() if line]


@pytest.mark.more
def test_the_commands_of_the_tutorial_print_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("altair")
    monkeypatch.chdir(tmp_path)
    page = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    (statements,) = re.findall(r"^```sql\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    with duckdb.connect("bank.duckdb") as connection:
        connection.execute(statements)
    for session in re.findall(r"^```console\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        for command, shown in commands(session):
            line, _, file = command.partition(" > ")
            said = dpforest(*shlex.split(line)[1:])
            assert said.code == 0, said.err
            if file:
                Path(file).write_text(said.out, encoding="utf-8")
            output = (said.err + said.out * (not file)).replace(f"{tmp_path}/", "")
            if line.split()[1] == "rules":  # noise picks the rules
                assert len(words(output)) == len(words(shown))
            elif line.split()[1] == "show":  # noise draws the bars
                assert bars(output) == bars(shown)
            else:
                assert prints(output, shown), command
    assert "ε = 1.5" in said.text, "one of three is spent on the model, a half on its evaluation"
    with duckdb.connect("bank.duckdb") as connection:
        connection.execute(Path("risk.sql").read_text(encoding="utf-8"))
        scored = connection.execute("SELECT prediction FROM scored ORDER BY ALL").fetchall()
        assert connection.execute("SELECT prediction FROM risk_view ORDER BY ALL").fetchall() == (
            scored
        )
    for picture in re.findall(r"!\[.*?\]\((.*?)\)", page):
        assert (DOCS / picture).is_file()
