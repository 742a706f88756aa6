"""The file of the ledger is append-only; damage, other files and full disks are one sentence."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from ledger_entries import VISITS, debit, holds, sentence

from dpforest_duckdb.errors import DpforestError, UsageError
from dpforest_duckdb.ledger import book as module
from dpforest_duckdb.ledger.book import Ledger
from dpforest_duckdb.ledger.entries import canonical, parse
from dpforest_duckdb.privacy.amounts import NANO


def edit(ledger: Ledger, *statements: str) -> None:
    """Change the file behind the ledger's back."""
    connection = sqlite3.connect(ledger.path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


# The text of an entry, as every version has written it

HOLDER = '"table":{"dataset":"0f3a","name":"visits","place":"::main.visits"}'
TIME = '"time":"2026-01-31T09+00:00"'
UNIT = '"unit":{"column":"row","neighbours":"add-remove","rows":1}'
ENTRIES = (
    f'{{"delta":0,"epsilon":5,"kind":"cap","seq":1,{HOLDER},{TIME},{UNIT}}}',
    '{"delta":0,"epsilon":2,"kind":"open","model":"m","plan":[{"query":"rows"}],"private":true,'
    f'"recipe":"auto","seq":2,"state":"open",{HOLDER},{TIME},{UNIT},"versions":{{"duckdb":"2.0"}}}}',
    '{"forest":"","kind":"close","run":2,"seq":3,"state":"done"}',
    f'{{"kind":"move","seq":4,{HOLDER},{TIME}}}',
    f'{{"kind":"retire","seq":5,{HOLDER},{TIME}}}',
)


@pytest.mark.parametrize("text", ENTRIES)
def test_an_entry_has_the_text_that_other_versions_read(text: str) -> None:
    assert canonical(parse(text)) == text


# Names


@pytest.mark.parametrize(
    "name",
    [
        "a.wal",
        "A.WAL",
        "a.wal.checkpoint",
        "a.wal.recovery",
        "a.ledger-journal",
        "a-wal",
        "a-shm",
        "b.csv",
        "c.parquet",
        "d.pq",
        "e.tsv",
        "f.csv.gz",
        "g.tsv.gz",
    ],
)
def test_a_ledger_has_no_name_of_files_that_databases_delete_or_read(
    tmp_path: Path, name: str
) -> None:
    """DuckDB deletes a write-ahead log, and SQLite a journal, that is not its own."""
    with pytest.raises(UsageError, match="cannot end in"):
        Ledger(tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["a.ledger", "wal", "journal.ledger", "a.wal.ledger", "csv"])
def test_a_ledger_may_have_another_name(tmp_path: Path, name: str) -> None:
    book = Ledger(tmp_path / name)
    debit(book, 1)
    assert (tmp_path / name).is_file()
    assert len(book.read().budget(VISITS.budget_id).entries) == 1


# Tampering


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET content = ''",
        "UPDATE OR IGNORE entries SET content = ''",
        "DELETE FROM entries",
        "INSERT OR REPLACE INTO entries VALUES (1, '', '', '')",
        "REPLACE INTO entries SELECT 1, content, previous, hash FROM entries WHERE seq = 2",
        "INSERT INTO entries VALUES (9, '', '', '')",
    ],
)
def test_the_file_is_append_only(ledger: Ledger, statement: str) -> None:
    debit(ledger, 1)
    debit(ledger, 1)
    before = ledger.read().head
    connection = sqlite3.connect(ledger.path)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute(statement)
    connection.close()
    assert ledger.read().head == before


@pytest.mark.parametrize(
    ("statement", "entry"),
    [
        ("UPDATE entries SET content = replace(content, '\"epsilon\":5', '\"epsilon\":1')", 2),
        ("UPDATE entries SET content = 'x' WHERE seq = 1", 1),
        ("UPDATE entries SET content = x'00ff' WHERE seq = 1", 1),
        ("UPDATE entries SET hash = 'x' WHERE seq = 3", 3),
        ("UPDATE entries SET previous = '' WHERE seq = 2", 2),
        ("UPDATE entries SET seq = seq + 1 WHERE seq = 3", 3),
        ("DELETE FROM entries WHERE seq = 2", 2),
        ("DELETE FROM entries WHERE seq = 1", 1),
    ],
)
def test_the_chain_shows_an_edit(ledger: Ledger, statement: str, entry: int) -> None:
    for epsilon in (3, 5, 7):
        debit(ledger, epsilon)
    ledger.read()  # rows that were checked are only taken as they are if they are the same
    triggers = module._SCHEMA[1:]
    drops = [f"DROP TRIGGER {trigger.split()[2]}" for trigger in triggers]
    edit(ledger, *drops, statement, *triggers)
    before = f"entry {entry - 1}" if entry > 1 else "an empty ledger"
    expected = (
        f"The ledger at {ledger.path} has been changed or cut: entry {entry} does not follow from "
        f"{before}; restore it from a backup."
    )
    for use in (ledger.read, lambda: debit(ledger, 1)):
        with pytest.raises(DpforestError) as caught:
            use()
        assert sentence(caught) == expected


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TRIGGER no_update",
        "CREATE TRIGGER quiet BEFORE INSERT ON entries BEGIN SELECT RAISE(IGNORE); END",
        "ALTER TABLE entries ADD COLUMN more TEXT",
        "CREATE VIEW spent AS SELECT 0",
    ],
)
def test_another_layout_is_refused(ledger: Ledger, statement: str) -> None:
    debit(ledger, 1)
    edit(ledger, statement)
    with pytest.raises(DpforestError) as caught:
        debit(ledger, 1)
    assert "its tables or triggers are not as they were made" in sentence(caught)


def test_the_anchor_shows_a_truncated_tail(ledger: Ledger) -> None:
    debit(ledger, 3)
    first = ledger.read().head
    debit(ledger, 5)
    second = ledger.read().head
    edit(ledger, "DROP TRIGGER no_delete", "DELETE FROM entries WHERE seq = 2", module._SCHEMA[2])
    ledger.read()  # a shorter chain is a chain: only the anchor knows
    assert holds(ledger, first)
    assert not holds(ledger, second)
    debit(ledger, 6)
    assert not holds(ledger, second)


def test_the_anchor_shows_a_ledger_copied_back_or_deleted(ledger: Ledger, tmp_path: Path) -> None:
    debit(ledger, 3)
    old = ledger.read().head
    shutil.copy(ledger.path, tmp_path / "backup")
    debit(ledger, 5)
    anchor = ledger.read().head
    assert holds(ledger, old)
    assert holds(ledger, anchor)
    shutil.copy(tmp_path / "backup", ledger.path)
    assert not holds(ledger, anchor)
    ledger.path.unlink()
    assert not holds(ledger, anchor)


def test_any_plan_that_is_json_survives_the_round_trip(ledger: Ledger) -> None:
    odd: list[dict[Any, Any]] = [{2: "é\ud800", 10: (1.5, None)}, {"": [[]], "kind": "close"}]
    debit(ledger, 1, plan=odd, model='a"\n\x00b')
    ledger.read()
    (run,) = ledger.read().budget(VISITS.budget_id).entries
    assert run.plan[0] == {"2": "é\ud800", "10": [1.5, None]}
    assert run.model == 'a"\n\x00b'


# Files that cannot be used


def test_a_file_that_is_no_ledger(ledger: Ledger) -> None:
    text = (
        f"The ledger at {ledger.path} is not a dpforest ledger, or no longer; "
        "restore it from a backup, or name another place with ledger."
    )
    ledger.path.write_bytes(b"age,income\n39,0\n" * 400)
    for use in (ledger.read, lambda: debit(ledger, 1)):
        with pytest.raises(DpforestError) as caught:
            use()
        assert sentence(caught) == text
    ledger.path.unlink()
    edit(ledger, "CREATE TABLE entries (seq, content, previous, hash)")
    with pytest.raises(DpforestError) as caught:
        debit(ledger, 1)
    assert sentence(caught) == text


def test_a_ledger_of_a_newer_version(ledger: Ledger) -> None:
    debit(ledger, 1)
    edit(ledger, "PRAGMA user_version=4")
    with pytest.raises(DpforestError) as caught:
        debit(ledger, 1)
    assert "was written by a newer dpforest-duckdb; update the package" in sentence(caught)


def test_an_empty_file_is_an_empty_ledger(ledger: Ledger) -> None:
    ledger.path.touch()
    assert ledger.read().head == ""
    assert debit(ledger, 1) == 1


def test_damage_is_either_harmless_or_reported_in_one_sentence(ledger: Ledger) -> None:
    for _ in range(6):
        debit(ledger, NANO)
    whole, budget, head = (
        ledger.path.read_bytes(),
        ledger.read().budget(VISITS.budget_id),
        ledger.read().head,
    )
    source = random.Random(1)
    for position in [*range(100), *(source.randrange(len(whole)) for _ in range(300))]:
        damaged = bytearray(whole)
        damaged[position] ^= source.randrange(1, 256)
        ledger.path.write_bytes(damaged)
        # a damaged page can also lose the tail, which is for the anchor to tell
        with suppress(DpforestError):
            assert ledger.read().budget(VISITS.budget_id) == budget or not holds(ledger, head)
    for length in range(100, len(whole), 997):
        ledger.path.write_bytes(whole[:length])
        with pytest.raises(DpforestError):
            ledger.read()


def test_a_folder_that_cannot_hold_it(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file" / "ledger", tmp_path / "absent" / "ledger", tmp_path):
        with pytest.raises(DpforestError) as caught:
            debit(Ledger(path), 1)
        assert sentence(caught) == (
            f"The ledger at {path} cannot be opened or created; check that its folder exists and "
            "is writable, or name another place with ledger."
        )


def test_a_read_only_file(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    debit(ledger, 1)
    # by way of the open mode: permissions do not bind root, which tests may run as
    connect: Callable[..., sqlite3.Connection] = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda at, **how: connect(at.replace("mode=rwc", "mode=ro"), **how)
    )
    with pytest.raises(DpforestError) as caught:
        debit(ledger, 1)
    assert "cannot be written; make the file and its folder writable" in sentence(caught)
    assert ledger.read().budget(VISITS.budget_id).spent_epsilon == 1


def test_a_full_disk_debits_nothing(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    debit(ledger, 1)
    connect: Callable[..., sqlite3.Connection] = sqlite3.connect

    def connect_to_full_disk(*place: Any, **how: Any) -> sqlite3.Connection:
        connection = connect(*place, **how)
        connection.execute("PRAGMA max_page_count=4")
        return connection

    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", connect_to_full_disk)
        with pytest.raises(DpforestError) as caught:
            debit(ledger, 1, plan=[{"query": "q" * 100_000}])
    assert sentence(caught) == (
        f"The ledger at {ledger.path} cannot be written because the disk is full; "
        "free some space and try again."
    )
    assert ledger.read().budget(VISITS.budget_id).spent_epsilon == 1
    assert debit(ledger, 1) == 2


def test_odd_characters_in_the_path(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "a b%41?mode=ro#é.ledger")
    debit(ledger, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["a b%41?mode=ro#é.ledger"]
