"""Compare a domain with the columns of rows. No row is read."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from dpforest_duckdb.domain import Domain
from dpforest_duckdb.domain.checks import remarks
from dpforest_duckdb.domain.file import ignored_keys, load_domain
from dpforest_duckdb.domain.names import fold, may_be_a_value
from dpforest_duckdb.domain.table import TableInfo, refuse_folders
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.privacy.unit import PrivacyUnit, requested_unit
from dpforest_duckdb.training.found_rows import FoundRows


@dataclass(frozen=True)
class FittedDomain:
    """A domain bound to the columns of some rows, without the privacy unit.

    `table` has the columns in the types that they are read as. `remarks` are sentences about
    labels.
    """

    domain: Domain
    table: TableInfo
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class CheckedDomain:
    """What a domain file says of some rows: how many `attributes` they have, which of their columns
    are `unused`, and in `notes`, which are sentences, what may be wrong.
    """

    attributes: int
    unused: tuple[str, ...]
    notes: tuple[str, ...]


def check_domain(rows: FoundRows, file: str | Path, target: str | None = None) -> CheckedDomain:
    """Compare a domain file with the columns of rows. No row is read.

    Raises `DpforestError` for what cannot be right.
    """
    domain, columns = load_domain(file, target), rows.table.columns
    refuse_folders(rows.table, domain.columns)
    unit = requested_unit(domain.privacy_unit, None, usual=None, columns=columns)
    fitted = fit(rows, domain, unit)
    return CheckedDomain(
        attributes=len(fitted.domain.attributes),
        unused=unused_columns(rows.table, domain, unit),
        notes=(
            *fitted.remarks,
            *rows.remarks(fitted.domain, fitted.table.columns),
            *ignored_keys(file, target),
        ),
    )


def refuse_row_as_names(rows: FoundRows, declared: Collection[str]) -> None:
    """Raise `DpforestError`, without a name, if the header of a CSV file may be a row.

    That is if a column that is not `declared` is called as a number or a date is written.
    """
    known = set(map(fold, declared))
    others = (name for name in rows.table.columns if fold(name) not in known)
    if rows.in_text and any(map(may_be_a_value, others)):
        raise DpforestError(
            f'The first line of "{rows.table.display}" has a number or a date where the name of a '
            "column should be, so it may be a row: add a line of names above it; if it is a name, "
            "declare that column or rename it."
        )


def fit(rows: FoundRows, domain: Domain, unit: PrivacyUnit) -> FittedDomain:
    """Bind a domain, without the privacy unit, to the columns of rows. No row is read.

    Raises `DpforestError` for what cannot be right.
    """
    unit.refuse_target(domain.target)
    refuse_row_as_names(rows, (*domain.columns, *domain.identifiers, *unit.columns))
    used = domain.without(unit.columns)
    used.refuse_missing(rows.table.columns)
    table = rows.engine.typed(rows.table, used, unit)
    found = remarks(domain, table.columns)
    return FittedDomain(used.bind(table.columns), table, found)


def unused_columns(table: TableInfo, domain: Domain, unit: PrivacyUnit) -> tuple[str, ...]:
    """The columns of the rows, as they are stored, that are neither in the domain nor the unit."""
    used = (*domain.columns, *domain.identifiers, *unit.columns)
    known = {fold(name) for name in used}
    return tuple(name for name in table.columns if fold(name) not in known)
