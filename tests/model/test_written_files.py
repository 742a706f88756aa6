"""Files of models, reports and scored rows are written as a whole, and only files are."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import duckdb
import pytest
from models import forest_of, log_odds, one_split, two_attributes

from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.model.files import refuse_replacing, write_file
from dpforest_duckdb.model.forest import load_forest


@pytest.mark.parametrize("there", [True, False])
def test_a_link_is_refused_and_stays(tmp_path: Path, there: bool) -> None:
    """It may lead to a ledger or to rows, also if that file is made only later."""
    file, link = tmp_path / "budget.ledger", tmp_path / "link.json"
    if there:
        file.write_text("spent")
    link.symlink_to(file)
    with pytest.raises(DpforestError, match=r"is a link: name the file that it leads to\.$"):
        write_file(link, "text")
    assert link.is_symlink()
    assert (file.read_text() if there else file.exists()) == ("spent" if there else False)


def test_a_pipe_and_a_folder_are_refused_and_stay(tmp_path: Path) -> None:
    pipe, folder = tmp_path / "pipe.json", tmp_path / "folder.json"
    os.mkfifo(pipe)
    folder.mkdir()
    for path in (pipe, folder):
        with pytest.raises(DpforestError, match=r"is not a file: name a file to write to\.$"):
            write_file(path, "text")
    assert pipe.is_fifo()
    assert sorted(tmp_path.iterdir()) == [folder, pipe]
    assert not list(folder.iterdir())


def test_a_file_that_cannot_be_written_stays_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "model.json"
    file.write_text("before")
    with pytest.raises(UnicodeEncodeError):
        write_file(file, "\ud800")
    assert file.read_text() == "before"
    assert sorted(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_appears_meanwhile_is_not_replaced_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    """Two processes may write to one name: the second must not replace what the first paid for."""
    if not links:  # as on some network drives

        def refused(*_: object) -> None:
            raise PermissionError

        monkeypatch.setattr(Path, "hardlink_to", refused)
    file = tmp_path / "model.json"
    write_file(file, "first", replace=False)
    assert file.read_text() == "first"
    with pytest.raises(DpforestError, match=r"There is a file .*model\.json already"):
        write_file(file, "second", replace=False)
    assert file.read_text() == "first"
    write_file(file, "third")
    assert file.read_text() == "third"
    assert sorted(tmp_path.iterdir()) == [file]


def test_a_model_replaces_a_model_or_nothing_but_no_other_file(tmp_path: Path) -> None:
    domain = two_attributes()
    forest = forest_of(domain, one_split(domain, 0, log_odds([0.0], [0.0], [1.0], [0.0])))
    file, other = tmp_path / "model.json", tmp_path / "budget.ledger"
    file.touch()
    forest.save(file)
    forest.named("second").save(file)
    assert load_forest(file).name == "second"
    file.write_text(json.dumps(json.loads(file.read_text()), indent=4))
    forest.save(file)
    assert load_forest(file).name == forest.name
    other.write_text("spent")
    with pytest.raises(DpforestError, match=r"holds no model, so it is not replaced: name another"):
        forest.save(other)
    assert other.read_text() == "spent"
    with pytest.raises(DpforestError, match=r"cannot be written: check folder and disk"):
        forest.save(other / "model.json")


def test_csv_data_replaces_csv_data_whatever_its_values_but_no_database(tmp_path: Path) -> None:
    """A value of a scored row may hold a zero, which must not stop the next scoring."""
    file, ledger, database = (tmp_path / f"{name}.csv" for name in ("rows", "ledger", "database"))
    file.write_bytes(b'age,ill\n1,"n\0o"\n')
    refuse_replacing(file, "CSV data")
    file.write_text("species,DUCK\n1,2\n")
    refuse_replacing(file, "CSV data")
    with closing(sqlite3.connect(ledger)) as con:
        con.execute("CREATE TABLE entries (n INTEGER)")
    duckdb.connect(database).close()
    with database.open("r+b") as start:
        start.write(b"\n" * 8)  # a checksum, which may have any bytes
    for kept in (ledger, database):
        with pytest.raises(DpforestError, match="holds no CSV data"):
            refuse_replacing(kept, "CSV data")
