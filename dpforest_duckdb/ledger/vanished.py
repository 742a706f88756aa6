"""Capped tables that vanished from their database: dropped, or renamed without their comment.

A renamed table without its comment looks like a new one, and would get a new budget. So the account
of a table looks for capped tables that are gone. While there is one, it refuses tables that may be
the same under a new name, until `dpforest budget move` says which it is now, or
`dpforest budget retire` that it was dropped.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

from dpforest_duckdb.domain.names import fold, split_name
from dpforest_duckdb.domain.table import TableInfo, quoted_name
from dpforest_duckdb.errors import BudgetError, DpforestError
from dpforest_duckdb.ledger.anchor import Anchor
from dpforest_duckdb.ledger.chain import Chain
from dpforest_duckdb.ledger.entries import (
    DATASET,
    FILE,
    NO_FILE,
    Cap,
    Holder,
    folded,
    table_place,
)
from dpforest_duckdb.ledger.note import note_in


def vanished_tables(chain: Chain, engine: Anchor, catalog: str, home: str) -> list[Holder]:
    """The capped tables of the database at `home`, or of a deleted one, that no longer exist."""
    capped, present = chain.capped(), set()
    for info in engine.tables(catalog) if capped else ():
        note = note_in(info)
        place = table_place(info, home)
        present.add(note.budget_id if note else chain.find(place, home))
    lost = []
    for holder in capped:
        if holder.place.startswith((FILE, DATASET)):
            continue
        here = folded(holder.place, home).startswith(f"{home}::")
        if (here or _database_is_gone(holder.place)) and holder.budget_id not in present:
            lost.append(holder)
    return lost


def vanished_named(lost: Sequence[Holder], name: str, present: Iterable[TableInfo]) -> Holder:
    """The vanished table of a name, as messages show it or as SQL spells it.

    `present` are the tables of the database. Raises `DpforestError` unless exactly one table of
    that name has vanished.
    """
    parts = split_name(name)
    plain = ".".join(parts)
    found = [holder for holder in lost if fold(holder.name) == fold(name)]
    found = found or [holder for holder in lost if fold(holder.name) == fold(plain)]
    if len(found) > 1:  # such as "t" of the schema "s", and "s.t" of the schema "main"
        place = fold(quoted_name(*("main", *parts)[-2:]))
        found = [holder for holder in found if fold(holder.place).endswith(f"::{place}")]
    if len(found) == 1:
        return found[0]
    if lost:
        names = ", ".join(f'"{holder.name}"' for holder in lost)
        raise DpforestError(
            f'No capped table "{plain}" has vanished from the database: name one of {names}.'
        )
    start = f'The database has no table "{plain}", and no'
    if any(fold(plain) in _names_of(info) for info in present):
        start = f'Table "{plain}" is still there and no'
    raise DpforestError(
        f"{start} table with a cap is missing, so there is nothing to move or retire."
    )


def _names_of(info: TableInfo) -> set[str]:
    """How a table may be named, folded: with its schema and database, or without."""
    catalog, schema, table = info.key
    dotted = {f"{schema}.{table}", f"{catalog}.{table}", f"{catalog}.{schema}.{table}"}
    return set(map(fold, dotted | {info.display}))


def refuse_without_unit(cap: Cap | None, lost: Holder, info: TableInfo) -> None:
    """Raise `DpforestError` if a table lacks the column that the cap of a vanished one protects."""
    if cap and not _has_unit(cap, info):
        raise DpforestError(
            f'Table "{info.display}" has no column "{cap.unit.column}", which the cap of '
            f'"{lost.name}" protects: name another with --to, or rename the column back first.'
        )


def _has_unit(cap: Cap, info: TableInfo) -> bool:
    """Whether the table has the column that the cap protects, if it protects one."""
    return set(map(fold, cap.unit.columns)) <= set(map(fold, info.columns))


def may_be_renamed(
    lost: Holder, cap: Cap | None, info: TableInfo, *, new: bool, here: bool
) -> BudgetError:
    """The refusal of table `info`, which may be the vanished table `lost` with a `cap`, renamed.

    A `new` table has no budget yet, so the other budget can move to it. `here` says that the
    vanished table was at the place of `info`.
    """
    old = shlex.quote(lost.name)
    retire = f"dpforest budget retire --table {old}"
    if here:
        return BudgetError(
            f'The comment of table "{info.display}" carries the budget of another table, and the '
            f"one that was here before had a cap: restore the comment, or run {retire} if it was "
            "dropped."
        )
    gone = f'Table "{lost.name}", which has a cap, is gone, and "{info.display}" may be it'
    if new and cap and not _has_unit(cap, info):
        return BudgetError(
            f'{gone}: if it is, rename its column back to "{cap.unit.column}" and run '
            f"dpforest budget move; if it was dropped, run {retire}."
        )
    if new:
        move = f"dpforest budget move --table {old} --to {shlex.quote(info.reference)}"
        return BudgetError(f"{gone}: run {move} if it is, or {retire} if it was dropped.")
    return BudgetError(
        f"{gone}, without the comment that keeps its budget: restore the comment, or run {retire} "
        "if it was dropped."
    )


def _database_is_gone(place: str) -> bool:
    """Whether the file of the database in a place ("path::schema.table") was deleted.

    A path or a name may have "::" too, so the file may end at any of them. A place without a path
    is in the database beside the ledger, wherever that is now.
    """
    if place.startswith((NO_FILE, "::")):
        return False
    ends = [found.start() for found in re.finditer("(?=::)", place)]
    return not any(_may_exist(Path(place[:end])) for end in ends)


def _may_exist(path: Path) -> bool:
    """Whether there is such a file, or it is in a folder that this user may not look into."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except PermissionError:
        return True
    except (OSError, ValueError):  # such as a name that is too long for a file
        return False
