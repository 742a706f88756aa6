"""A table's budget follows the table, and a missing ledger is noticed."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
from ledger_entries import account, spend
from shell import dpforest, make
from steps import charge

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.table import TableInfo
from dpforest_duckdb.engine.connection.connect import open_database
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.errors import BudgetError, DpforestError
from dpforest_duckdb.ledger.account import Account
from dpforest_duckdb.ledger.anchor import Home
from dpforest_duckdb.ledger.book import Ledger
from dpforest_duckdb.ledger.chain import Chain
from dpforest_duckdb.ledger.entries import Holder
from dpforest_duckdb.ledger.note import Note, has_note
from dpforest_duckdb.model import store
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.privacy.unit import ROW
from dpforest_duckdb.training.opening import find_rows
from dpforest_duckdb.training.prepare import prepare
from dpforest_duckdb.training.train import check_together


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "data.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute("CREATE TABLE t (x INTEGER)")
        con.execute("COMMENT ON TABLE t IS 'kept by the ward'")
    return path


def test_the_ledger_is_beside_the_database(database: Path) -> None:
    with duckdb.connect(str(database)) as con:
        assert account(con).ledger.path == Path(f"{database}.ledger")
        assert not account(con).ledger.path.exists()
        spend(account(con))
        assert account(con).budget().spent_epsilon == NANO


def test_a_debit_of_another_thread_looks_like_no_other_ledger(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may come between any two readings of the ledger and of the table."""
    read = Ledger.read
    with duckdb.connect(str(database)) as con:
        budget, other = account(con), account(con.cursor())
        spend(other)
        domain = Domain([Attribute("x", "numeric", lower=0, upper=9)], "y", ["no", "yes"])
        con.execute("ALTER TABLE t ADD COLUMN y VARCHAR")
        run = prepare(con, "t", domain=domain, epsilon=1, recipe="dpdf", privacy_unit="row")

        def read_before_a_debit(ledger: Ledger) -> Chain:
            chain = read(ledger)
            with monkeypatch.context() as patch:
                patch.setattr(Ledger, "read", read)
                spend(account(con.cursor()))
            return chain

        monkeypatch.setattr(Ledger, "read", read_before_a_debit)
        assert budget.budget().spent_epsilon == NANO
        check_together([run, run])


def test_another_ledger_does_not_hide_a_cap_beside_the_database(
    database: Path, tmp_path: Path
) -> None:
    """A table that is made again loses the comment that would say so."""
    other = tmp_path / "files.ledger"
    with duckdb.connect(str(database)) as con:
        account(con).set_cap(NANO, 0, ROW, raise_cap=False)
        con.execute("CREATE OR REPLACE TABLE t (x INTEGER)")
        with pytest.raises(BudgetError, match=f"cap in the ledger {database}.ledger"):
            account(con, ledger=other)
        con.execute("CREATE TABLE later (x INTEGER)")
        opened = account(con, "later", ledger=other)
        account(con, "later").set_cap(NANO, 0, ROW, raise_cap=False)
        con.execute("CREATE OR REPLACE TABLE later (x INTEGER)")
        with pytest.raises(BudgetError, match="has a cap in the ledger"):
            spend(opened)
        assert not other.exists() or not Ledger(other).read().entries
        con.execute("CREATE TABLE wards (x INTEGER)")
        account(con, "wards").set_cap(NANO, 0, ROW, raise_cap=False)
        con.execute("CREATE TABLE free (x INTEGER)")
        spend(account(con, "free"))
        con.execute("CREATE OR REPLACE TABLE free (x INTEGER)")
        spend(account(con, "free", ledger=other))
        assert account(con).budget().cap is not None, "the ledger beside it knows it by its place"
        con.execute("DROP TABLE wards")
        con.execute("CREATE TABLE others (x INTEGER)")
        spend(account(con, "others", ledger=other))  # whatever else is gone


@pytest.mark.parametrize("again", ["Visits", "VISITS", "vIsits"])
def test_a_table_that_is_made_again_in_another_case_is_the_same(
    again: str, database: Path, tmp_path: Path
) -> None:
    """DuckDB ignores the case of names, so the ledger does too."""
    with duckdb.connect(str(database)) as con:
        spend(account(con))
        con.execute(f"CREATE OR REPLACE TABLE {again} (x INTEGER)")
        spend(account(con))
        assert account(con).budget().spent_epsilon == 2 * NANO
        account(con).set_cap(2 * NANO, 0, ROW, raise_cap=False)
        con.execute("CREATE OR REPLACE TABLE t (x INTEGER)")
        with pytest.raises(BudgetError, match="cap"):
            spend(account(con))
        with pytest.raises(BudgetError, match="has a cap in the ledger"):
            account(con, ledger=tmp_path / "other")


def test_an_entry_that_kept_the_case_of_its_table_is_found(database: Path) -> None:
    """Ledgers of earlier versions have such places."""
    table = Holder("a" * 32, "Visits", "::main.Visits")
    with Ledger(f"{database}.ledger").writing() as chain:
        chain.set_cap(table, NANO, 0, ROW, raise_cap=False)
    with duckdb.connect(str(database)) as con, pytest.raises(DpforestError, match="cap"):
        spend(account(con), 2 * NANO)


@pytest.mark.parametrize("folder", ["a::b", "A::b", "plain"])
def test_a_path_with_colons_keeps_its_case_and_its_capped_tables(
    folder: str, tmp_path: Path
) -> None:
    book = tmp_path / "book"
    for name in (folder, folder.swapcase()):
        (tmp_path / name).mkdir()
        with duckdb.connect(str(tmp_path / name / "x.duckdb")) as con:
            con.execute("CREATE TABLE t (x INTEGER)")
            spend(account(con, ledger=book))
            assert account(con, ledger=book).budget().spent_epsilon == NANO
            account(con, ledger=book).set_cap(NANO, 0, ROW, raise_cap=False)
            con.execute("ALTER TABLE t RENAME TO other")
            con.execute("COMMENT ON TABLE other IS NULL")
            with pytest.raises(BudgetError, match="may be it"):
                spend(account(con, "other", ledger=book))


def test_a_database_in_memory_keeps_its_budget_in_another_case(tmp_path: Path) -> None:
    with duckdb.connect() as con:
        for name in ("Ward", "ward"):
            con.execute(f"ATTACH ':memory:' AS {name}")
            con.execute(f"CREATE TABLE {name}.t (x INTEGER)")
            spend(account(con, f"{name}.main.t", ledger=tmp_path / "book"))
            found = account(con, f"{name}.main.t", ledger=tmp_path / "book").budget()
            con.execute(f"DETACH {name}")
        assert found.spent_epsilon == 2 * NANO


def test_a_database_in_memory_needs_a_ledger(
    con: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    con.execute("CREATE TABLE t (x INTEGER)")
    with pytest.raises(DpforestError, match="ledger"):
        account(con)
    spend(account(con, ledger=tmp_path / "book"))
    assert account(con, ledger=tmp_path / "book").budget().spent_epsilon == NANO


def test_a_cap_is_kept_in_the_database_too(database: Path) -> None:
    """So a ledger that is removed after a cap was set, and before any run, is noticed."""
    with duckdb.connect(str(database)) as con:
        account(con).set_cap(NANO, 0, ROW, raise_cap=False)
        assert f'"cap": [{NANO}, 0]' in account(con).info.comment
        Path(f"{database}.ledger").unlink()
        with pytest.raises(DpforestError, match="does not hold"):
            spend(account(con))


def test_a_cap_that_the_ledger_does_not_have_is_missed(database: Path) -> None:
    """The comment has a cap, and the ledger none for the id that the comment names."""
    with duckdb.connect(str(database)) as con:
        spend(account(con))
        note = account(con).info.comment.replace('"cap": null', f'"cap": [{NANO}, 0]')
        con.execute(f"COMMENT ON TABLE t IS '{note}'")
        with pytest.raises(DpforestError, match="has no cap"):
            spend(account(con), 2 * NANO)


def test_the_users_comment_is_kept(database: Path) -> None:
    with duckdb.connect(str(database)) as con:
        spend(account(con))
        spend(account(con))
        comment = account(con).info.comment
        assert comment.splitlines()[0] == "kept by the ward"
        assert comment.count("dpforest-budget") == 1


@pytest.mark.parametrize(
    "text", ["", "one line", "two\r\nlines\r\n", "a\n\n", "page\fone\u2028two", "\n"]
)
def test_a_note_changes_no_character_of_the_users_comment(text: str) -> None:
    first, second = (Note("t", head, None) for head in ("1", "2"))
    noted = first.after(text)
    assert noted.startswith(text)
    assert has_note(noted)
    assert second.after(noted) == second.after(text)
    both = f"{noted}\n{second.after('')}"  # as by hand
    assert first.after(both) == noted
    assert second.after(f"{noted}\nlater words").startswith(
        f"{text}\nlater words" if text else "later"
    )


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE t RENAME TO other",
        "ALTER TABLE t ADD COLUMN y INTEGER",
        "CREATE OR REPLACE TABLE t AS SELECT 1 AS x",
        "COMMENT ON TABLE t IS NULL",
    ],
)
def test_spending_follows_the_table(database: Path, change: str) -> None:
    with duckdb.connect(str(database)) as con:
        account(con).set_cap(NANO, 0, ROW, raise_cap=False)
        spend(account(con))
        con.execute(change)
    with duckdb.connect(str(database)) as con:
        name = "other" if "RENAME" in change else "t"
        assert account(con, name).budget().spent_epsilon == NANO
        with pytest.raises(BudgetError):
            spend(account(con, name), 1)


def test_a_database_that_moves_with_its_ledger_has_its_budget(
    database: Path, tmp_path: Path
) -> None:
    """This holds even if the table's comment is lost."""
    with duckdb.connect(str(database)) as con:
        spend(account(con))
        con.execute("COMMENT ON TABLE t IS NULL")
    moved = tmp_path / "moved.duckdb"
    Path(f"{database}.ledger").rename(f"{moved}.ledger")
    database.rename(moved)
    with duckdb.connect(str(moved)) as con:
        assert account(con).budget().spent_epsilon == NANO


def test_a_copy_of_the_database_needs_its_ledger(database: Path, tmp_path: Path) -> None:
    with duckdb.connect(str(database)) as con:
        spend(account(con))
    copy = tmp_path / "copy.duckdb"
    shutil.copy(database, copy)
    with duckdb.connect(str(copy)) as con:
        with pytest.raises(DpforestError, match="does not hold the last debit"):
            account(con)
        assert account(con, ledger=f"{database}.ledger").budget().spent_epsilon == NANO


@pytest.mark.parametrize("damage", ["deleted", "rolled back", "emptied"])
def test_a_ledger_that_lost_a_debit_is_refused(database: Path, tmp_path: Path, damage: str) -> None:
    book, old = Path(f"{database}.ledger"), tmp_path / "old"
    with duckdb.connect(str(database)) as con:
        spend(account(con))
        shutil.copy(book, old)
        spend(account(con))
        if damage == "rolled back":
            shutil.copy(old, book)
        elif damage == "deleted":
            book.unlink()
        else:
            book.write_bytes(b"")
        with pytest.raises(DpforestError, match="does not hold the last debit"):
            account(con)


@pytest.mark.parametrize(
    "note",
    ["{}", "null", "[" * 100_000, '{"dataset": null, "head": 5}', '{"dataset": "a", "head": "b"}x']
    + [f'{{"dataset": "a", "head": "b", "cap": {cap}}}' for cap in ("0", "[1.5, 0]", "[1]", '""')],
    ids=lambda note: note[:40],
)
def test_a_damaged_anchor_is_refused(database: Path, note: str) -> None:
    with duckdb.connect(str(database)) as con:
        con.execute(f"COMMENT ON TABLE t IS 'dpforest-budget: {note}'")
        with pytest.raises(DpforestError, match='comment of table "t" is damaged'):
            account(con)


def test_a_read_only_database_is_debited_too(database: Path) -> None:
    with duckdb.connect(str(database), read_only=True) as con:
        spend(account(con))
        spend(account(con))
        assert account(con).budget().spent_epsilon == 2 * NANO
        with pytest.raises(BudgetError, match="connect without read_only"):
            account(con).set_cap(NANO, 0, ROW, raise_cap=False)
    with duckdb.connect(str(database)) as con:
        assert account(con).budget().spent_epsilon == 2 * NANO


def test_a_debit_survives_a_rollback_of_the_user(database: Path) -> None:
    with duckdb.connect(str(database)) as con:
        con.execute("BEGIN")
        spend(account(con))
        con.execute("ROLLBACK")
        assert account(con).budget().spent_epsilon == NANO


def test_an_attached_table_has_its_budget_beside_its_own_database(
    database: Path, con: duckdb.DuckDBPyConnection
) -> None:
    con.execute(f"ATTACH '{database}' AS private")
    found = account(con, "private.t")
    assert found.ledger.path == Path(f"{database}.ledger")


def _copied_before_a_cap(database: Path, folder: Path) -> Path:
    """A copy of a database, whose table is capped then, and made again without the comment."""
    copy = folder / "planned.duckdb"
    shutil.copy(database, copy)
    with duckdb.connect(str(database)) as con:
        account(con).set_cap(NANO, 0, ROW, raise_cap=False)
        con.execute("CREATE OR REPLACE TABLE t (x INTEGER)")
    return copy


@pytest.mark.parametrize("option", ["", " (READ_ONLY)"])
def test_a_run_is_refused_if_another_database_got_the_name_of_its_own(
    database: Path, tmp_path: Path, con: duckdb.DuckDBPyConnection, option: str
) -> None:
    planned = _copied_before_a_cap(database, tmp_path)
    con.execute(f"ATTACH '{planned}' AS private")
    found = account(con, "private.t")
    for attach in (f"ATTACH '{database}' AS private{option}", None):
        con.execute("DETACH private")
        if attach:
            con.execute(attach)
        with pytest.raises(DpforestError, match="since the run was planned"):
            spend(found, 5 * NANO)
    assert not found.ledger.read().entries


def test_a_query_is_refused_if_another_database_got_the_name_of_the_one_it_read(
    database: Path, tmp_path: Path, con: duckdb.DuckDBPyConnection
) -> None:
    planned = _copied_before_a_cap(database, tmp_path)
    con.execute(f"ATTACH '{planned}' AS private")
    query = find_rows(con, con.sql("SELECT x FROM private.t WHERE x > 0"))
    found = query.account(tmp_path / "ledger", "d")
    con.execute("DETACH private")
    con.execute(f"ATTACH '{database}' AS private")
    with pytest.raises(DpforestError, match="since the run was planned"):
        found.debit(charge())


def test_a_run_is_refused_if_a_column_is_computed_since_it_was_planned(tmp_path: Path) -> None:
    """It would read the column as a stored one, and end where the value of a row fails."""
    domain = Domain((Attribute("x", "numeric", lower=0, upper=9),), "y", ("false", "true"))
    with duckdb.connect(str(tmp_path / "data.duckdb")) as con:
        con.execute("CREATE TABLE t (text VARCHAR, x INTEGER, y BOOLEAN)")
        run = prepare(con, "t", domain=domain, epsilon=1, recipe="dpdf")
        computed = "x INTEGER GENERATED ALWAYS AS (CAST(text AS INTEGER))"
        con.execute(f"CREATE OR REPLACE TABLE t (text VARCHAR, {computed}, y BOOLEAN)")
        con.execute("INSERT INTO t (text, y) VALUES ('1', true), ('2', false)")
        con.execute("UPDATE t SET text = 'two' WHERE text = '2'")  # which DuckDB does not check
        with pytest.raises(DpforestError, match="have changed since the run was planned"):
            run.execute()
        assert not account(con).budget().entries
        planned_again = prepare(con, "t", domain=domain, epsilon=1, recipe="dpdf")
        assert planned_again.execute().trees


def test_a_release_that_is_not_private_is_refused_under_a_cap(database: Path) -> None:
    with duckdb.connect(str(database)) as con:
        account(con).set_cap(NANO, 0, ROW, raise_cap=False)
        with pytest.raises(BudgetError):
            spend(account(con), private=False)


def test_the_same_name_in_two_schemas_has_two_budgets(database: Path) -> None:
    with duckdb.connect(str(database)) as con:
        con.execute("CREATE SCHEMA s")
        con.execute("CREATE TABLE s.t (x INTEGER)")
        spend(account(con, "main.t"))
        assert account(con, "s.t").budget().spent_epsilon == 0


def renamed_over_another(db: Path) -> None:
    """The capped visits become fresh, whose budget has no cap, and lose their comment."""
    words = ("--table", "fresh", "--target", "ill", "--epsilon", "1", "--name", "other")
    assert dpforest("train", "--db", db, *words).code == 0
    assert dpforest("budget", "set", "--db", db, "--table", "visits", "--epsilon", "2").code == 0
    make(
        db,
        "DROP TABLE fresh",
        "ALTER TABLE visits RENAME TO fresh",
        "COMMENT ON TABLE fresh IS NULL",
    )


def test_a_capped_table_renamed_over_another_is_refused(db: Path) -> None:
    """The ledger knows a table of that name and place, but not by its comment."""
    renamed_over_another(db)
    shared = ("--db", db, "--table", "fresh")
    for words in (
        ("train", *shared, "--target", "ill", "--epsilon", "1"),
        ("evaluate", *shared, "--model", "risk"),
        ("budget", "show", *shared),
    ):
        said = dpforest(*words)
        assert said.code == 1, words
        assert "restore the comment, or run dpforest budget retire --table visits" in said.err
        assert "budget move" not in said.err, "a table with a budget of its own takes over none"


def test_exact_figures_are_refused_for_a_table_that_may_be_a_capped_one(db: Path) -> None:
    assert dpforest("budget", "set", "--db", db, "--table", "visits", "--epsilon", "2").code == 0
    make(db, 'ALTER TABLE visits RENAME TO "new ones"', 'COMMENT ON TABLE "new ones" IS NULL')
    said = dpforest("evaluate", "--db", db, "--table", "new ones", "--model", "risk")
    assert said.code == 1
    assert "budget move --table visits --to 'new ones'" in said.err
    assert "accuracy" not in said.out


def test_a_model_with_more_rows_per_unit_than_any_run_allows_is_refused(db: Path) -> None:
    """Else the noise of its evaluation could not be drawn, and that would show after the debit."""
    with open_database(db) as con:
        content = json.loads(store.load(DuckDBEngine(con).models, "risk").to_json())
    content["guarantee"] |= {"unit": "who", "rows_per_unit": 2**62}
    file = db.parent / "huge.json"
    file.write_text(json.dumps(content))
    spent = Path(f"{db}.ledger").read_bytes()
    said = dpforest("evaluate", "--db", db, "--table", "visits", "--model", file, "--epsilon", "1",
                    "--unseen")  # fmt: skip
    assert said.code == 1
    assert "damaged" in said.err
    assert Path(f"{db}.ledger").read_bytes() == spent


class SharedComment:
    """A comment that several processes write, each when it commits."""

    exclusive = False
    comment = ""

    def __init__(self, info: TableInfo) -> None:
        self.info, self.written = info, ""

    def read(self) -> TableInfo:
        return replace(self.info, comment=SharedComment.comment)

    def write(self, text: str) -> None:
        self.written = text

    def commit(self) -> None:
        SharedComment.comment, self.written = self.written or SharedComment.comment, ""


class SharedTable:
    """An engine whose one table several processes use."""

    def __init__(self) -> None:
        self.info = TableInfo("lake", "main", "t", {})

    def home(self, catalog: str) -> Home:
        return Home("", read_only=False)

    def tables(self, catalog: str) -> list[TableInfo]:
        return [replace(self.info, comment=SharedComment.comment)]

    @contextmanager
    def stored_comment(self, table: TableInfo) -> Iterator[SharedComment]:
        comment = SharedComment(self.info)
        yield comment
        comment.commit()


def test_the_anchor_of_an_earlier_debit_does_not_replace_that_of_a_later_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process debits, and sets a cap, just after the ledger has this one's debit."""
    monkeypatch.setattr("dpforest_duckdb.ledger.account._ONE_WRITER", nullcontext())
    monkeypatch.setattr(SharedComment, "comment", "")
    ours, other = (
        Account.of(SharedTable(), SharedTable().info, tmp_path / "book") for _ in range(2)
    )
    writing, turns = Ledger.writing, []

    @contextmanager
    def overtaken(ledger: Ledger) -> Iterator[Chain]:
        with writing(ledger) as chain:
            yield chain
        turns.append(ledger)
        if len(turns) == 1:
            spend(other)
            other.set_cap(9 * NANO, 0, ROW, raise_cap=False)

    monkeypatch.setattr(Ledger, "writing", overtaken)
    spend(ours)
    kept = json.loads(SharedComment.comment.partition(": ")[2])
    assert kept["cap"] == [9 * NANO, 0]
    assert kept["head"] == ours.ledger.read().head
    assert ours.budget().spent_epsilon == 2 * NANO


def forge(ledger: Path, change: Callable[[list[dict]], dict]) -> None:
    """Append an entry that follows from the last one by its hash."""
    with closing(sqlite3.connect(ledger)) as connection, connection:
        rows = connection.execute("SELECT * FROM entries ORDER BY seq").fetchall()
        content = {"seq": len(rows) + 1, **change([json.loads(row[1]) for row in rows])}
        text, head = json.dumps(content, sort_keys=True, separators=(",", ":")), rows[-1][3]
        digest = hashlib.sha256(f"{head}\n{text}".encode()).hexdigest()
        connection.execute(
            "INSERT INTO entries VALUES (?, ?, ?, ?)", (len(rows) + 1, text, head, digest)
        )


def last(entries: list[dict], kind: str) -> dict:
    found = [entry for entry in entries if entry["kind"] == kind][-1]
    return {name: value for name, value in found.items() if name != "seq"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda entries: {**last(entries, "cap"), "epsilon": 50 * NANO}, "higher cap"),
        (lambda entries: {**last(entries, "cap"), "delta": 1}, "higher cap"),
        (lambda entries: {**last(entries, "open"), "epsilon": -NANO}, "damaged"),
        (lambda entries: {**last(entries, "open"), "epsilon": 0.5}, "damaged"),
        (lambda entries: {**last(entries, "open"), "epsilon": 1, "seq": 2}, "damaged"),
        (lambda entries: {**last(entries, "close"), "forest": "f" * 64}, "damaged"),
        (lambda entries: {**last(entries, "close"), "run": 1}, "damaged"),
    ],
)
def test_a_forged_entry_gives_no_budget_back(
    database: Path, change: Callable[[list[dict]], dict], words: str
) -> None:
    with duckdb.connect(str(database)) as con:
        account(con).set_cap(NANO, 0, ROW, raise_cap=False)
        run = spend(account(con))
        account(con).close_run(run, "done", "a" * 64)
        forge(Path(f"{database}.ledger"), change)
        with pytest.raises(DpforestError, match=words):
            spend(account(con))


def test_a_cap_that_was_raised_in_the_ledger_alone_can_be_set_again(database: Path) -> None:
    """A crash can come between the two."""
    with duckdb.connect(str(database)) as con:
        account(con).set_cap(NANO, 0, ROW, raise_cap=False)
        forge(Path(f"{database}.ledger"), lambda entries: {**last(entries, "cap"), "epsilon": 3})
        forge(Path(f"{database}.ledger"), lambda e: {**last(e, "cap"), "epsilon": 5 * NANO})
        with pytest.raises(BudgetError, match="budget set"):
            spend(account(con))
        account(con).set_cap(5 * NANO, 0, ROW, raise_cap=False)
        spend(account(con), 4 * NANO)
