"""What a terminal shows: tables that fit, plans as they will run, hints."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from shell import PROGRAM, dpforest, make, refused, train

from dpforest_duckdb import load_forest
from dpforest_duckdb.cli.output import cell, say, show_table, tell


def terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """Make Rich take stdout for a terminal of that width, without colours."""
    for name, value in (("TTY_COMPATIBLE", "1"), ("TERM", "xterm"), ("COLUMNS", str(width))):
        monkeypatch.setenv(name, value)


def plain(text: str) -> list[str]:
    return re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()


def test_a_table_that_does_not_fit_becomes_paragraphs_without_broken_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    headings = ["name", "rule", "noise"]
    rows = [["n1", "one two three four five six seven", 123456.789], ["n2", "short", None]]
    terminal(monkeypatch, 30)
    show_table(headings, rows, title="rule")
    lines = plain(capsys.readouterr().out)
    assert lines == [
        "one two three four five six",
        "  seven",
        "  name n1, noise 123457",
        "short",
        "  name n2",
    ]
    terminal(monkeypatch, 80)
    show_table(headings, rows)
    assert any(
        "one two three four five six seven" in line for line in capsys.readouterr().out.split("\n")
    )


def test_a_rule_is_cut_between_its_conditions_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Unless one of them is longer than a line. Piped, each rule stays on one line."""
    rule = "a <= 1 AND (b > 20 or missing) AND c = 3 AND d in (one, two, three, four) AND e = 5"
    show = partial(show_table, ["tree", "rule"], [[0, rule]], title="rule", between="AND")
    terminal(monkeypatch, 28)
    show()
    assert plain(capsys.readouterr().out) == [
        "a <= 1",
        "  AND (b > 20 or missing)",
        "  AND c = 3",
        "  AND d in (one, two, three,",
        "  four) AND e = 5",
        "  tree 0",
    ]
    monkeypatch.setenv("TTY_COMPATIBLE", "0")
    show()
    assert rule in capsys.readouterr().out


def test_a_line_is_cut_between_words_in_a_terminal_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    say("one two three four five six")
    assert capsys.readouterr().err == "one two three four five six\n"
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    say("one two three four five six /a/path/that/is/longer/than/a/line")
    assert capsys.readouterr().err.splitlines() == [
        "one two three four",
        "  five six",
        "  /a/path/that/is/longer/than/a/line",
    ]
    for line in ("log loss  one two three four", "          one two three four"):
        say(line)
        first, second, *_ = capsys.readouterr().err.splitlines()
        assert (first[10:], second) == ("one two", "          three four")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    tell("log loss  one two three four", hanging=2)
    assert capsys.readouterr().out.splitlines()[1] == "            three"


@pytest.mark.parametrize("words", [("rules", "--model", "risk"), ("models",)])
def test_lists_fit_eighty_columns(
    db: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    terminal(monkeypatch, 80)
    verb, *rest = words
    lines = plain(dpforest(verb, *rest, "--db", db).out)
    assert lines
    assert max(map(len, lines)) <= 80


def test_a_narrow_plan_says_what_its_numbers_of_rows_are(
    db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal(monkeypatch, 80)
    lines = plain(dpforest(*train(db, "--dry-run", "--name", "again")).out)
    start = lines.index("any number of noisy rows, auto:")
    assert re.fullmatch(
        r"  rows: discrete Laplace, ε = [\d.]+, once, noise [\d.,]+", lines[start + 1]
    )
    assert any(re.fullmatch(r"1 to [\d,]+ noisy rows, [a-z-]+:", line) for line in lines)
    fixed = plain(dpforest(*train(db, "--dry-run", "--name", "x", "--recipe", "dpdf")).out)
    assert "histogram" in fixed[fixed.index("Every query:") :]


def test_a_narrow_list_of_recipes_says_in_words_which_are_private(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal(monkeypatch, 80)
    lines = plain(dpforest("recipes").out)
    assert lines[:2] == [
        "auto: The default: one of six recipes, by the number of rows, 2026",
        "  private: yes. It is this package's own.",
    ]
    at = lines.index("dpdf: DPDF (Fletcher & Islam), 2015")
    assert lines[at + 1].startswith("  private: yes (as published: NO). Gini is weighted")
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("dpforest sql --dialect po", ["postgres", "polars"]),
        ("dpforest train --recipe dpr", ["dprf-gini", "dprfmaxtree"]),
    ],
)
def test_the_shell_completes_the_names_of_engines_and_recipes(words: str, names: list[str]) -> None:
    program = f"import sys; sys.argv = ['dpforest']; {PROGRAM}"
    environment = {"_DPFOREST_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": "3"}
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stdout.split() == names, ended.stderr


def test_cells_are_words_and_six_digits() -> None:
    assert [cell(value) for value in (True, False, None, 0.0, 1e-5, 1 / 3, 2, "a\nb")] == [
        "yes",
        "no",
        "",
        "0",
        "0.00001",
        "0.333333",
        "2",
        "a?b",
    ]


def test_a_rule_predicts_the_class_that_its_log_odds_favour(db: Path, tmp_path: Path) -> None:
    file = tmp_path / "risk.json"
    dpforest("models", "export", "risk", "--db", db, "--out", file)
    leaves = [rule for rule in load_forest(file).rules() if rule["leaf"]]
    assert leaves
    for rule in leaves:
        best = max(rule["log_odds"].values())
        assert rule["log_odds"][rule["prediction"]] == pytest.approx(best)


def test_a_dry_run_shows_every_branch_of_the_default(db: Path) -> None:
    words = train(db, "--dry-run", "--name", "again")
    found = dpforest(*words, "--json").facts["branches"]
    assert found[0]["rows"][0] == 1
    assert found[-1]["rows"][1] is None
    for before, after in pairwise(found):
        assert before["rows"][1] + 1 == after["rows"][0]
        asked = [[query["purpose"] for query in one["plan"]] for one in (before, after)]
        assert (before["recipe"], asked[0]) != (after["recipe"], asked[1])
    shown = dpforest(*words).out
    assert all(branch["recipe"] in shown for branch in found)
    fixed = dpforest(*train(db, "--dry-run", "--recipe", "dpdf", "--name", "again"), "--json").facts
    assert "branches" not in fixed


def test_a_dry_run_says_from_how_many_rows_a_delta_is_used(db: Path) -> None:
    words = train(db, "--dry-run", "--name", "again", "--delta", "1e-6")
    branches = dpforest(*words, "--json").facts["branches"]
    using = [any("mu_squared" in query for query in branch["plan"]) for branch in branches]
    assert using == sorted(using)
    least = branches[using.index(True)]["rows"][0]
    shown = dpforest(*words).out
    assert f"δ is used with {least:,} and more noisy rows; with other numbers it is" in shown
    assert "e-0" not in shown
    always = dpforest(*words, "--recipe", "boosted").out
    assert "μ²: what a query that uses δ costs" in always
    assert "with other numbers" not in always
    assert "μ²: what" not in dpforest(*train(db, "--dry-run", "--name", "again")).out


def test_columns_and_rows_that_are_not_used_are_named(db: Path) -> None:
    said = dpforest(*train(db, "--dry-run", "--name", "x", "--exclude", "age"))
    assert 'Columns not used, because they are not declared: "who".' in said.err
    assert 'Attributes left out by an option: "age".' in said.err
    unit = ("--privacy-unit", "who")
    said = dpforest(*train(db, "--dry-run", "--name", "x", *unit))
    assert 'Only one row of each "who" is used: use more with --rows-per-unit.' in said.err
    said = dpforest(*train(db, "--dry-run", "--name", "x", *unit, "--rows-per-unit", "4"))
    assert "--rows-per-unit" not in said.err


def test_a_table_with_a_dot_in_its_name_gets_a_hint(db: Path) -> None:
    make(db, 'CREATE TABLE "a.b" (x BOOLEAN, y BOOLEAN)')
    words = ("train", "--db", db, "--target", "x", "--epsilon", "1", "--name", "dotted")
    refused(dpforest(*words, "--table", "a.b"), "double quotes", """--table '"a.b"'""")
    assert dpforest(*words, "--table", '"a.b"').code == 0
    scored = dpforest(
        "score", "--db", db, "--model", "dotted", "--table", '"a.b"', "--into", "s"
    ).out
    assert scored == 'Table "s" holds every row of "a.b", scored by model "dotted" (nested CASE).\n'


def test_the_domain_file_says_what_to_fill_in(tmp_path: Path) -> None:
    db = tmp_path / "t.duckdb"
    make(db, "CREATE TABLE t (born DATE NOT NULL, note VARCHAR, id BIGINT, size DOUBLE)")
    said = dpforest("domain", "--db", db, "--table", "t")
    born, note, number, size = said.out.split("[[column]]")[1:]
    assert '# lower = "2020-01-01"' in born
    assert "nullable = false" in born
    assert '# kind = "identifier"' in note
    assert "# TODO (VARCHAR): set a kind and public values, or delete the column" in note
    assert "identifier" in number
    assert "identifier" not in size
    assert "delete the column" in said.err


def test_the_domain_file_offers_no_kind_for_nested_types(tmp_path: Path) -> None:
    db, file = tmp_path / "t.duckdb", tmp_path / "t.parquet"
    make(
        db,
        "CREATE TABLE t (s STRUCT(a INTEGER), l INTEGER[], m MAP(VARCHAR, INTEGER), id UUID)",
        f"COPY t TO '{file}'",
    )
    for rows in (("--db", db, "--table", "t"), ("--db", file)):
        *nested, number = dpforest("domain", *rows).out.split("[[column]]")[1:]
        assert len(nested) == 3
        for column in nested:
            assert "no attribute has this type: delete the column" in column
            assert "kind" not in column
        assert "no attribute has this type: make it an identifier, or delete" in number
        assert 'kind = "identifier"' in number


def test_the_kinds_in_a_domain_file_need_only_the_removal_of_a_mark(tmp_path: Path) -> None:
    db = tmp_path / "t.duckdb"
    make(db, "CREATE TABLE t (born DATE, note VARCHAR, id BIGINT, size DOUBLE, cost DECIMAL(9, 2))")
    said = dpforest("domain", "--db", db, "--table", "t", "--target", "note").out
    head, *columns = said.split("\n[[column]]\n")
    for choice in range(3):
        filled = [head]
        for column in columns:
            name, todo, *commented = column.strip().splitlines()
            kinds = "\n".join(line.removeprefix("# ") for line in commented).split("\n#\n")
            filled.append("\n".join([name, todo, kinds[min(choice, len(kinds) - 1)]]))
        file = tmp_path / "t.toml"
        file.write_text("\n[[column]]\n".join(filled).replace('["…", "…"]', '["a", "b"]'))
        assert dpforest("domain", "--db", db, "--table", "t", "--check", file).code == 0


def test_the_version_names_the_libraries_that_matter() -> None:
    lines = dpforest("--version").out.split("\n")
    assert [line.split(" ")[0] for line in lines[:3]] == ["dpforest", "duckdb", "opendp"]


def test_of_many_values_without_order_the_strongest_are_drawn(tmp_path: Path) -> None:
    db = tmp_path / "t.duckdb"
    labels = ", ".join(f"'v{number}'" for number in range(60))
    make(
        db,
        f"CREATE TABLE t (v ENUM ({labels}) NOT NULL, y BOOLEAN NOT NULL); "
        "INSERT INTO t SELECT 'v' || i % 60, i % 60 < 20 FROM range(6_000) r(i)",
    )
    dpforest("train", "--db", db, "--table", "t", "--target", "y", "--epsilon", "5",
             "--privacy-unit", "row", "--recipe", "log-odds")  # fmt: skip
    said = dpforest("show", "--db", db, "--model", "t")
    assert said.out.count("│") == 40
    assert "… and 20 other values that change it less." in said.out


def test_bins_with_long_ends_are_drawn_with_their_upper_end_alone(tmp_path: Path) -> None:
    db = tmp_path / "t.duckdb"
    make(
        db,
        "CREATE TABLE t (seen TIMESTAMP NOT NULL CHECK (seen BETWEEN TIMESTAMP '1999-01-01' AND "
        "TIMESTAMP '2020-12-31'), y BOOLEAN NOT NULL); "
        "INSERT INTO t SELECT TIMESTAMP '1999-01-01' + to_days(i), i * 7919 % 6000 < i "
        "FROM range(6_000) r(i)",
    )
    dpforest("train", "--db", db, "--table", "t", "--target", "y", "--epsilon", "5",
             "--privacy-unit", "row", "--recipe", "log-odds")  # fmt: skip
    lines = dpforest("show", "--db", db, "--model", "t").out.splitlines()
    bins = [line.split(" 00:00:00")[0] for line in lines if "│" in line]
    assert len(bins) > 10
    assert re.fullmatch(r"  <= \d{4}-\d\d-\d\d", bins[0])
    assert all(re.fullmatch(r"  … <= \d{4}-\d\d-\d\d", text) for text in bins[1:-1])
    assert bins[-1].startswith("  > ")
    assert max(map(len, lines)) <= 80


def test_commands_that_read_all_rows_show_on_a_terminal_what_they_do(db: Path) -> None:
    """Training shows its steps too. If stderr is a file, nothing is shown."""
    for verb, more, step in (
        ("score", ("--into", "scored"), "scoring rows"),
        ("evaluate", (), "comparing rows"),
    ):
        command = (verb, "--db", str(db), "--model", "risk", "--table", "fresh", *more)
        reader, writer = os.openpty()
        os.set_blocking(reader, False)  # if nothing is shown, the test fails and does not wait
        ended = subprocess.run(
            [sys.executable, "-c", PROGRAM, *command],
            env={**os.environ, "TERM": "xterm"},
            stdout=subprocess.PIPE,
            stderr=writer,
            check=True,
        )
        assert ended.stdout
        assert step in os.read(reader, 10_000).decode()
        os.close(reader)
        os.close(writer)
