"""A base table as the catalogue has it: its name and the types of its columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dpforest_duckdb.domain.names import fold, listed
from dpforest_duckdb.domain.types import ColumnType
from dpforest_duckdb.errors import DpforestError


@dataclass(frozen=True)
class TableInfo:
    """What the catalogue has on a base table: its full name and its columns' types. Public.

    `computed` are the columns that the database computes whenever they are read. `categories`
    are those that values of a DataFrame's columns are compared with; none for a column of numbers.
    `folders` are the names, folded, that folders of files have as in year=2024: no columns. `units`
    are the columns of the privacy unit, once it is known.
    """

    catalog: str
    schema: str
    name: str
    columns: dict[str, ColumnType]
    comment: str = ""
    computed: frozenset[str] = frozenset()
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    folders: frozenset[str] = frozenset()
    units: frozenset[str] = frozenset()

    @property
    def key(self) -> tuple[str, str, str]:
        """Database, schema and name, which identify the table."""
        return self.catalog, self.schema, self.name

    @property
    def display(self) -> str:
        return self.name if self.schema == "main" else f"{self.schema}.{self.name}"

    @property
    def reference(self) -> str:
        """The name as `Engine.table` reads it: a part with a dot or a quote is quoted."""
        return quoted_name(*([self.name] if self.schema == "main" else [self.schema, self.name]))

    def has_columns_of(self, other: TableInfo) -> bool:
        """Whether both have the same columns, of the same types, and compute the same of them.

        A computed column is read in another way than a stored one, because its value may fail.
        """
        return (self.columns, self.computed) == (other.columns, other.computed)


def refuse_folders(table: TableInfo, names: Iterable[str]) -> None:
    """Raise `DpforestError` for names of columns that only folders have, as in year=2024."""
    known = set(map(fold, table.columns))
    missing = [name for name in dict.fromkeys(names) if fold(name) in table.folders - known]
    if missing:
        several = len(missing) > 1
        lacking, them = ("are no columns", "them") if several else ("is no column", "it")
        raise DpforestError(
            f"The names of folders are not read as columns, so there {lacking} {listed(missing)}: "
            f"write {them} into the files (DuckDB's COPY does with WRITE_PARTITION_COLUMNS), or "
            f"leave {them} out."
        )


def columns_changed(rows: str) -> DpforestError:
    """The error for rows whose columns are no longer those of the plan."""
    return DpforestError(
        f"The columns of {rows} have changed since the run was planned: plan it again."
    )


def quoted_name(*parts: str) -> str:
    """A name of several parts, each in quotes if it has a dot or a quote: no two names are equal.

    >>> quoted_name("a.b", "c"), quoted_name("a", "b.c")
    ('"a.b".c', 'a."b.c"')
    """
    return ".".join(
        '"' + part.replace('"', '""') + '"' if set(part) & {".", '"'} else part for part in parts
    )
