"""Which budget stands for a table: its identity, its ledger, and the anchor in the database.

A table carries its id, the head of the ledger's hash chain and its cap in its own comment, on a
line after whatever the user wrote there: a comment follows the table through renames and copies of
the database. What someone who can write both files can still undo: copying the rows into a new
table, or restoring both files from one backup.
"""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpforest_duckdb.errors import BudgetError, DpforestError, UsageError
from dpforest_duckdb.ledger.anchor import Anchor, TableInfo
from dpforest_duckdb.ledger.book import Budget, Ledger, Table
from dpforest_duckdb.privacy.unit import PrivacyUnit

_MARK = "dpforest-budget: "


@dataclass
class Account:
    """The budget of one base table: everything that is spent on it goes through here."""

    engine: Anchor
    info: TableInfo
    ledger: Ledger
    table: Table
    writable: bool

    @staticmethod
    def of(engine: Anchor, info: TableInfo, ledger: str | Path | None = None) -> Account:
        """The guard of a table; the ledger lies beside the table's database unless it is named.

        Raises `DpforestError` for a database in memory without a ledger, and where the ledger is
        not the one that the table was last debited in.
        """
        place_of = engine.home(info)
        path, read_only = place_of.path, place_of.read_only
        if ledger is None and not path:
            raise DpforestError(
                "A database in memory has no place for its budget: name one with --ledger."
            )
        own = Path(f"{path}.ledger")
        book = Ledger(ledger if ledger is not None else own)
        # a ledger beside its database moves with it, so where the two lie says nothing
        beside = path and book.path.resolve() == own.resolve()
        home = "" if beside else Path(path).resolve() if path else ":memory:"
        place = f"{home}::{info.schema}.{info.name}"
        anchor = _anchor(info.comment)
        if not book.holds(anchor.get("head", "")):
            raise DpforestError(
                f'The ledger at {book.path} does not hold the last debit of table "{info.display}":'
                " restore it, or name the right one with --ledger."
            )
        dataset = anchor.get("dataset") or book.find(place) or secrets.token_hex(16)
        if anchor.get("cap") and book.budget(dataset).cap is None:
            raise DpforestError(
                f'The ledger at {book.path} has no cap for table "{info.display}", which has one: '
                "restore it, or name the right one with --ledger."
            )
        return Account(engine, info, book, Table(dataset, info.display, place), not read_only)

    def budget(self) -> Budget:
        return self.ledger.budget(self.table.dataset)

    def unit(self, column: str | None, rows: int | None) -> PrivacyUnit:
        """The unit that is asked for; by default that of the cap in force, else the row."""
        cap = self.budget().cap
        if column is None and cap:
            return cap.unit if rows is None else replace(cap.unit, rows=rows)
        if column is None or column == "row":
            if rows not in (None, 1):
                raise UsageError("--rows-per-unit goes with a --privacy-unit column, not rows.")
            return PrivacyUnit("row")
        declared = {name.casefold(): name for name in self.info.columns}
        if column.casefold() not in declared:
            raise DpforestError(f'The table has no column "{column}": correct --privacy-unit.')
        return PrivacyUnit(declared[column.casefold()], rows or 1)

    def debit(
        self,
        epsilon: int,
        delta: int,
        unit: PrivacyUnit,
        *,
        recipe: str,
        model: str,
        private: bool,
        plan: Sequence[Mapping[str, Any]],
    ) -> int:
        """Spend on the table, committed before this returns; the number of the run."""
        run = self.ledger.debit(
            self.table,
            epsilon,
            delta,
            unit,
            recipe=recipe,
            model=model,
            private=private,
            plan=plan,
        )
        try:
            self._write_anchor()
        except BaseException:
            with contextlib.suppress(DpforestError):
                self.ledger.close_run(run, "failed")
            raise
        return run

    def set_cap(self, epsilon: int, delta: int, unit: PrivacyUnit, *, raise_cap: bool) -> Budget:
        """Cap the table; the database must be writable, because it keeps the cap too."""
        if not self.writable:
            raise BudgetError("A cap is kept in the database too: open it for writing.")
        budget = self.ledger.set_cap(self.table, epsilon, delta, unit, raise_cap=raise_cap)
        self._write_anchor()
        return budget

    def _write_anchor(self) -> None:
        """Put id, head and cap into the table's comment, keeping what the user wrote there."""
        if not self.writable:
            return
        cap = self.budget().cap
        anchor = {
            "dataset": self.table.dataset,
            "head": self.ledger.head(),
            "cap": [cap.epsilon, cap.delta] if cap else None,
        }
        kept = [line for line in self.info.comment.splitlines() if not line.startswith(_MARK)]
        self.engine.write_note(self.info, "\n".join([*kept, _MARK + json.dumps(anchor)]))


def _anchor(comment: str) -> dict[str, Any]:
    """What a table's comment says of its budget; a damaged line counts as foul play."""
    for line in comment.splitlines():
        if line.startswith(_MARK):
            try:
                found = json.loads(line.removeprefix(_MARK))
                return {"dataset": str(found["dataset"]), "head": str(found["head"]), **found}
            except (ValueError, KeyError, TypeError):
                raise DpforestError(
                    "The budget line in the table's comment is damaged: restore the comment."
                ) from None
    return {}
