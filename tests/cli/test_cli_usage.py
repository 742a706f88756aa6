"""Wrong usage ends with 2, help is whole and starts fast, and unexpected errors show no text."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from shell import dpforest, refused, state, train
from visits import SECRET

from dpforest_duckdb.cli import exit_codes
from dpforest_duckdb.cli.sections import SECTIONS


def test_wrong_usage_ends_with_2(db: Path, tmp_path: Path) -> None:
    file = tmp_path / "m.json"
    dpforest("models", "export", "risk", "--db", db, "--out", file)
    before = state(db)
    for words in (
        ("zzz",),
        ("train",),
        ("train", "--db", db),
        train(db, "--depth", "deep"),
        train(db, "--depth", "0"),
        train(db, "--trees", "-1"),
        train(db, "--threads", "0"),
        train(db, "--zzz"),
        train(db, "--recipe", "zzz", "--name", "new"),
        train(db, "--recipe", "dpdf:zzz", "--name", "new"),
        train(db, "--name="),
        train(db, "--name", " "),
        ("models", "import", file, "--db", db, "--name="),
        ("recipes", "zzz"),
        ("score", "--db", db, "--table", "fresh", "--into", "s"),
        ("models", "zzz"),
        ("budget", "show", "--db", db, "--rows-per-unit", "0"),
    ):
        said = dpforest(*words)
        assert said.code == 2, words
        assert said.out == ""
        assert "Error: " in said.err
    assert state(db) == before


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("train", "-q"), "-q goes before the verb, as in dpforest -q train."),
        (("models", "--quiet"), "--quiet goes before the verb, as in dpforest --quiet models."),
        (("--db", "a.duckdb", "models"), "--db goes after the verb, as in dpforest VERB --db."),
        (("train", "--epsilon"), "Option '--epsilon' requires an argument."),
        (("train", "--zzz"), "No such option: --zzz"),
        (("--zzz", "train"), "No such option: --zzz"),
    ],
)
def test_an_option_on_the_wrong_side_of_the_verb_gets_a_hint(
    words: tuple[str, ...], sentence: str
) -> None:
    said = dpforest(*words)
    assert (said.code, said.out) == (2, "")
    assert said.err.endswith(f"Error: {sentence}\n")


def test_help_and_version() -> None:
    assert dpforest("--version").text.startswith("dpforest 0.")
    for verb in ("train", "score", "sql", "evaluate", "rules", "models", "budget", "domain"):
        said = dpforest(verb, "--help")
        assert "--json" in said.text
        assert "--show-sql" in said.text


def test_no_summary_of_a_verb_is_cut_in_the_list_of_verbs() -> None:
    assert "..." not in dpforest("--help").text.partition("Commands:")[2]


def test_the_help_of_train_has_sections() -> None:
    said = dpforest("train", "--help").text
    found = re.findall(r"^(\w.*):\n((?:  .*\n)+)", said, re.MULTILINE)
    sections = {name: re.findall(r"^  (-[\w-]+)", options, re.MULTILINE) for name, options in found}
    assert list(sections) == [*SECTIONS, "Options"]
    assert sections["Options"] == ["-h"], "every option is below a heading"
    assert "--epsilon" in sections["Privacy and budget"]
    assert "--recipe" in sections["Forest"]


def test_importing_and_help_load_no_database_and_no_numbers() -> None:
    program = (
        "import sys, dpforest_duckdb.cli as cli\n"
        "try: cli.app(['train', '--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted({'duckdb', 'numpy', 'opendp', 'rich', 'jinja2'} & set(sys.modules)))"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert ended.stdout.decode().splitlines()[-1] == "[]"


def test_an_unexpected_error_does_not_show_its_text(
    db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dpforest_duckdb.model import store

    def load(*args: object) -> None:
        raise ValueError(f"{SECRET}-7")

    monkeypatch.setattr(store, "load", load)
    said = dpforest("rules", "--db", db, "--model", "risk")
    assert said.code == 1
    assert said.out == ""
    assert "unexpected ValueError" in said.err


def test_ctrl_c_is_no_unexpected_error_whatever_a_library_makes_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DuckDB raises a RuntimeError if a signal ends a query of the main thread."""

    def pressed(database: Path) -> None:
        with contextlib.suppress(KeyboardInterrupt):
            exit_codes.interrupt(signal.SIGINT, None)
        raise RuntimeError("Query interrupted")

    monkeypatch.setattr(exit_codes, "_interrupted", [])
    monkeypatch.setattr("dpforest_duckdb.demo._make_tables", pressed)
    said = dpforest("demo", "--dir", tmp_path / "demo")
    assert said.code == 130
    assert said.err.startswith("Interrupted: nothing is half-written.")


@pytest.mark.parametrize("verb", ["audit", "budget", "models"])
def test_an_unknown_action_is_named_with_the_known_ones(verb: str) -> None:
    said = dpforest(verb, "zzz")
    assert said.code == 2
    assert '"zzz" is none of these' in said.err
    assert "|" in said.err
    assert "Value error" not in said.err


def _is_interrupted(program: str, verb: str) -> None:
    command = [sys.executable, "-c", program, verb]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "Interrupted.\n")


def test_ctrl_c_while_modules_load_gives_no_traceback() -> None:
    program = (
        "import sys\n"
        "class Pressed:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name == 'dpforest_duckdb.cli.train':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Pressed())\n"
        "from dpforest_duckdb.__main__ import main; main()"
    )
    _is_interrupted(program, "train")


def test_ctrl_c_while_options_are_read_gives_one_sentence() -> None:
    program = (
        "from dpforest_duckdb import cli\n"
        "def pressed(*args, **more):\n"
        "    raise KeyboardInterrupt\n"
        "cli.Verb.make_context = pressed\n"
        "cli.main()"
    )
    _is_interrupted(program, "recipes")


def test_the_package_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "dpforest_duckdb", "--version"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.stdout.startswith("dpforest ")
    command[-1] = "--help"
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.stdout.startswith("Usage: dpforest [OPTIONS]")


def test_quiet_commands_print_notes_warnings_and_errors_alone(
    db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = dpforest("--quiet", *train(db, "--name", "m1"))
    assert (said.code, said.err) == (0, "")
    assert "stored as" in said.out
    assert "Taken as public" in dpforest(*train(db, "--name", "m2")).err
    monkeypatch.setenv("DPFOREST_QUIET", "1")
    said = dpforest(*train(db, "--name", "m3", "--seed", "1", "--not-private"))
    assert {line.partition(":")[0] for line in said.err.splitlines()} <= {"Warning", "Note"}
    assert dpforest("rules", "--db", db, "--model", "m3").err.startswith("Warning")
    assert "Counts are in the order" not in dpforest("rules", "--db", db, "--model", "m3").err
    refused(dpforest(*train(db, "--name", "m3")), "m3")
