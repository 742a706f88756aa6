"""Files of models, reports and scored rows are written as a whole, and only files are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.model.files import write_file


def test_a_link_stays_and_its_file_is_replaced(tmp_path: Path) -> None:
    file, link = tmp_path / "folder" / "model.json", tmp_path / "link.json"
    file.parent.mkdir()
    file.write_text("before")
    link.symlink_to(file)
    write_file(link, "after")
    assert link.is_symlink()
    assert file.read_text() == "after"
    assert sorted(file.parent.iterdir()) == [file]


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
