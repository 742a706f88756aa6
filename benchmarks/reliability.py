"""The ledger and the database under attack: races, killed trainings, changed files.

    python benchmarks/reliability.py --markdown docs/reliability.md

Checks each step with the harness of the tests, and stops at the first failure.
Takes about ten minutes. Needs POSIX; for the full disk, the right to mount one. With --parts, the
results are kept in a folder, and a part that is there is not run again: so parts may run one by
one, or at the same time.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date
from importlib.metadata import version
from pathlib import Path

from shared import ROOT, markdown_table, say, write_page

sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "tests" / "privacy"))
sys.path.insert(0, str(ROOT / "tests" / "ledger"))

import test_races
from crash import Ending, crashed, home
from shell import dpforest, make, state, train

from dpforest_duckdb.ledger import chain as ledger_chain
from dpforest_duckdb.ledger.book import Ledger
from dpforest_duckdb.ledger.entries import Holder
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.privacy.unit import PrivacyUnit

RACER = """
import sys
from dpforest_duckdb.errors import BudgetError, DpforestError
from dpforest_duckdb.ledger.book import Ledger
from dpforest_duckdb.ledger.entries import Charge, Holder
from dpforest_duckdb.privacy.unit import PrivacyUnit

ledger, amount, tries = Ledger(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
holder, granted, tried = Holder("0", "t", "d::main.t"), 0, 0
while tried < tries:
    try:
        with ledger.writing() as chain:
            chain.debit(holder, Charge(amount, 0, PrivacyUnit("row"), "r", "m", True, ()))
        granted += 1
    except BudgetError:
        pass
    except DpforestError as error:
        assert "in use by another process" in str(error)  # for half a minute: ask again
        continue
    tried += 1
print(granted)
"""
RACERS, TRIES, FIT = 8, 1250, 400
ROUNDS, EACH = 3, 100  # of races through the accounts of tables, and debits of each racer
MOMENTS = 40  # killed trainings at times spread over a second


def main() -> None:
    """Run everything, print a page, and write it if asked to."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--markdown", type=Path, help="write the page here")
    parser.add_argument("--parts", type=Path, help="keep the parts in this folder")
    parser.add_argument("--only", choices=["race", "kill", "change"], help="run one part alone")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="reliability-") as folder:
        place = Path(folder)
        made = home(place / "home")
        runs: dict[str, Callable[[], str]] = {
            "race": lambda: race(place),
            "kill": lambda: kill(made, place),
            "change": lambda: change(made, place),
        }
        wanted = [given.only] if given.only else list(runs)
        parts = [_kept(given.parts, name, runs[name]) for name in wanted]
    page = (
        "# Reliability\n\nCan a budget be overspent, or a debit be lost? This page attacks the "
        "[ledger](glossary.md#privacy) and the database: with processes that race for one budget, "
        "trainings that are killed, and files that are changed.\n\nWritten by "
        "`python benchmarks/reliability.py --markdown "
        "docs/reliability.md`, which stops at the first failure. Run on "
        f"{date.today()} with dpforest-duckdb {version('dpforest-duckdb')} and duckdb "
        f"{version('duckdb')}.\n\n" + "\n\n".join(parts) + "\n"
    )
    write_page(page, None if given.only else given.markdown)


def _kept(folder: Path | None, name: str, run: Callable[[], str]) -> str:
    """A part of the page, from the folder if it was run before."""
    if folder is None:
        return run()
    file = folder / f"{name}.md"
    if not file.exists():
        folder.mkdir(exist_ok=True)
        file.write_text(run(), encoding="utf-8")
    return file.read_text(encoding="utf-8")


def race(place: Path) -> str:
    """Processes that race for one budget."""
    say("race")
    ledger, holder = Ledger(place / "race"), Holder("0", "t", "d::main.t")
    with ledger.writing() as chain:
        chain.set_cap(holder, NANO, 0, PrivacyUnit("row"), raise_cap=False)
    words = [sys.executable, "-c", RACER, str(ledger.path), str(NANO // FIT), str(TRIES)]
    racing = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(RACERS)]
    granted = [int(process.communicate()[0]) for process in racing]
    budget = ledger.read().budget("0")
    assert sum(granted) == FIT == len(budget.entries)
    assert budget.spent_epsilon == NANO
    threads = test_races.THREADS
    racing_accounts = {
        test_races.threads_of_one_writer: threads,
        test_races.attached_databases: threads,
        test_races.read_only_processes: 3,
    }
    for kind in racing_accounts:
        for number in range(ROUNDS):
            say(f"{kind.__name__} {number + 1} of {ROUNDS}")
            kind(place / f"{kind.__name__}{number}", EACH)
    return (
        f"## Races\n\n{RACERS} processes requested 1/{FIT} of one cap {RACERS * TRIES:,} times: "
        f"{sum(granted)} requests were granted, 0 above the cap. Three other groups made "
        f"{ROUNDS * EACH * sum(racing_accounts.values()):,} requests more, through the accounts of "
        "their tables: threads of one process that opened its accounts before the cap was set, "
        "threads on attached databases, and read-only processes. Nothing was overspent or lost."
    )


def kill(made: Path, place: Path) -> str:
    """Trainings killed at every step, and at moments in between."""
    steps = crashed(made, place / "whole").steps
    ends: list[tuple[str, Ending]] = []
    for point in range(1, len(steps) + 1):
        say(f"kill at step {point} of {len(steps)}")
        ends.append(("step", _crash(made, place, point=point)))
    for moment in range(MOMENTS):
        say(f"kill at moment {moment + 1} of {MOMENTS}")
        ends.append(("moment", _crash(made, place, after=moment / MOMENTS)))
    rows = []
    for kind, when in (("step", "at each step"), ("moment", "at a moment within a second")):
        mine = [end for of, end in ends if of == kind]
        after = Counter((end.finished, end.spent > 0, end.stored or end.written) for end in mine)
        rows.append(
            [
                when,
                str(len(mine)),
                str(after[False, False, False]),
                str(after[False, True, False]),
                str(after[False, True, True]),
                str(sum(n for (finished, _, _), n in after.items() if finished)),
                str(sum(n for (_, spent, model), n in after.items() if model and not spent)),
            ]
        )
    head = ["killed (SIGKILL)", "trainings", "before the debit", "debit, no model"]
    head += ["debit and model", "had ended", "model without debit"]
    return (
        "## Killed trainings\n\nA training is killed before or after a statement of DuckDB, at a "
        "statement of the ledger, a sync or a rename. After each kill: the ledger's hash chain is "
        "intact; no private row was read before the debit; a model is complete or absent; the "
        "table is unchanged; and the next training works, is debited once, and removes the "
        "temporary files of the killed one.\n\n" + markdown_table(head, rows)
    )


def _crash(made: Path, place: Path, **when: float) -> Ending:
    end = crashed(made, place / "crash", **when)  # type: ignore[arg-type]
    shutil.rmtree(place / "crash")
    return end


def _edit(statement: str) -> Callable[[Path], None]:
    """Change the ledger's rows without its triggers, which are restored afterwards."""

    def edit(folder: Path) -> None:
        with contextlib.closing(sqlite3.connect(folder / "clinic.duckdb.ledger")) as connection:
            made = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
            triggers = connection.execute(made).fetchall()
            for name, _ in triggers:
                connection.execute(f'DROP TRIGGER "{name}"')
            assert connection.execute(statement).rowcount > 0
            for _, sql in triggers:
                connection.execute(sql)
            connection.commit()

    return edit


def _sql(*statements: str) -> Callable[[Path], None]:
    return lambda folder: make(folder / "clinic.duckdb", *statements)


def _roll_back(folder: Path) -> None:
    old = (folder / "clinic.duckdb.ledger").read_bytes()
    more = train(folder / "clinic.duckdb", "--name", "second", "--epsilon", "0.25")
    assert dpforest(*more).code == 0
    (folder / "clinic.duckdb.ledger").write_bytes(old)


def _move(folder: Path) -> None:
    """Move the database and its ledger to another name."""
    for end in ("", ".ledger"):
        (folder / f"clinic.duckdb{end}").rename(folder / f"moved.duckdb{end}")


def _copy(folder: Path) -> None:
    """Copy the database alone to another name, as if the copy had a budget of its own."""
    shutil.copy(folder / "clinic.duckdb", folder / "moved.duckdb")


# what is done to a home where 1 of a cap of 1.5 is spent; whether half of 1 more is then granted
CHANGES: tuple[tuple[str, Callable[[Path], None], bool], ...] = (
    ("nothing", lambda folder: None, True),
    ("ledger deleted", lambda folder: (folder / "clinic.duckdb.ledger").unlink(), False),
    ("ledger emptied", lambda folder: (folder / "clinic.duckdb.ledger").write_bytes(b""), False),
    ("ledger rolled back to an older copy", _roll_back, False),
    ("ledger truncated at its tail",
     _edit("DELETE FROM entries WHERE seq > 1"), False),
    ("an amount in the ledger edited",
     _edit("UPDATE entries SET content = replace(content, '1000000000', '1')"), False),
    ("ledger replaced by another file",
     lambda folder: (folder / "clinic.duckdb.ledger").write_bytes(b"x" * 5000), False),
    ("table renamed", _sql("ALTER TABLE visits RENAME TO people"), True),
    ("table's comment removed", _sql("COMMENT ON TABLE visits IS NULL"), True),
    ("table created again under its name",
     _sql("CREATE TABLE copy AS FROM visits", "DROP TABLE visits",
          "ALTER TABLE copy RENAME TO visits"), True),
    ("database and ledger moved", _move, True),
    ("database copied without its ledger", _copy, False),
)  # fmt: skip


def change(made: Path, place: Path) -> str:
    """Change files and tables without the ledger, and try to train."""
    capped = place / "capped"
    shutil.copytree(made, capped)
    words = ("--db", capped / "clinic.duckdb", "--table", "visits", "--epsilon", "1.5")
    assert dpforest("budget", "set", *words).code == 0
    rows = [_tried(capped, place / "tried", *one) for one in CHANGES]
    shutil.rmtree(place / "tried")
    rows.append(_backwards(capped, place / "tried"))
    with _full_disk(capped, place / "small") as small:
        rows.append(_full(small) if small else ["full disk", "not tried: no mount", "", ""])
    head = ["what was changed", "a run of ε = 0.5", "a second such run", "sentence"]
    return (
        "## Changed files\n\nThe cap is 1.5, and 1 is spent. A refusal debits nothing and changes "
        "no file.\n\n" + markdown_table(head, rows)
    )


def _tried(
    capped: Path, folder: Path, name: str, act: Callable[[Path], None], fits: bool
) -> list[str]:
    """Request ε = .5 twice after a change: the first may be granted, the second must not be."""
    say(name)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(capped, folder)
    act(folder)
    moved, table = folder / "moved.duckdb", "people" if "renamed" in name else "visits"
    db = moved if moved.exists() else folder / "clinic.duckdb"
    first, sentence = _ask(db, table)
    assert (first == "granted") == fits, (name, sentence)
    second, refusal = _ask(db, table)
    assert second == "refused", name
    return [name, first, second, (sentence or refusal).replace(str(folder), "…")]


def _ask(db: Path, table: str) -> tuple[str, str]:
    """Request ε = .5: it is granted, or refused in one sentence with nothing changed."""
    before = state(db)
    words = ["train", "--db", db, "--table", table, "--target", "ill", "--epsilon", "0.5"]
    said = dpforest(*words, "--name", "new", "--replace")
    if said.code == 0:
        return "granted", ""
    assert state(db) == before
    (sentence,) = [line for line in said.err.splitlines() if line.startswith("Error: ")]
    return "refused", sentence.removeprefix("Error: ")


def _backwards(capped: Path, folder: Path) -> list[str]:
    now = ledger_chain._now
    ledger_chain._now = lambda: "1999-01-01T00:00:00+00:00"
    try:
        return _tried(capped, folder, "clock set back to 1999", lambda folder: None, True)
    finally:
        ledger_chain._now = now


@contextlib.contextmanager
def _full_disk(capped: Path, folder: Path) -> Iterator[Path | None]:
    """A small disk with a home on it and 8 KB of free space; None if none can be mounted."""
    folder.mkdir()
    size = sum(p.stat().st_size for p in capped.iterdir()) // 1024 + 200
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}k", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        yield None
        return
    try:
        for file in capped.iterdir():
            shutil.copy(file, folder)
        free = os.statvfs(folder)
        (folder / "filler").write_bytes(b"\0" * (free.f_bavail * free.f_frsize - 8192))
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=False)


def _full(folder: Path) -> list[str]:
    say("full disk")
    db = folder / "clinic.duckdb"
    first, sentence = _ask(db, "visits")
    assert first == "refused"
    (folder / "filler").unlink()
    second, _ = _ask(db, "visits")
    assert second == "granted", "with space again the budget is what it was"
    return ["full disk", first, "granted, with space again", sentence.replace(str(folder), "…")]


if __name__ == "__main__":
    main()
