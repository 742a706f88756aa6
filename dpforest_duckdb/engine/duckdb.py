"""DuckDB as the engine."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import duckdb

from dpforest_duckdb.domain import Domain
from dpforest_duckdb.engine.base import Sample, Scored
from dpforest_duckdb.engine.dialect import split_name
from dpforest_duckdb.engine.rows import DuckDBRows
from dpforest_duckdb.engine.statements import Statements, Trace
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.ledger.anchor import Home, TableInfo
from dpforest_duckdb.privacy.unit import PrivacyUnit
from dpforest_duckdb.sql import Sql


class DuckDBEngine(Statements):
    """The catalogue of one connection, and the coded rows of its tables."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, trace: Trace | None = None) -> None:
        super().__init__(connection, trace)
        self._shared: dict[tuple[object, ...], DuckDBRows] | None = None

    @contextlib.contextmanager
    def sharing(self) -> Iterator[None]:
        """Until the end, rows that are to be coded alike are coded once."""
        self._shared = {}
        try:
            yield
        finally:
            kept, self._shared = self._shared, None
            for rows in kept.values():
                rows.drop()

    def table(self, name: str) -> TableInfo:
        """Resolve a table name (`t`, `schema.t` or `catalog.schema.t`) to a base table.

        Raises `DpforestError` for a missing or ambiguous table, a view, or a base table that a
        temporary one hides.
        """
        parts = split_name(name)
        rows = self.run(
            "SELECT database_name, schema_name, table_name, temporary, comment, 'table' "
            "FROM duckdb_tables() UNION ALL "
            "SELECT database_name, schema_name, view_name, temporary, NULL, 'view' "
            "FROM duckdb_views() WHERE NOT internal"
        )
        home, path = self.run("SELECT current_database(), current_schema()")[0]
        wanted = [part.casefold() for part in parts]
        matches = [row for row in rows if wanted in _spellings(row[0], row[1], row[2])]
        if len(parts) == 1:
            matches = [r for r in matches if r[3] or (r[0] == home and r[1] in (path, "main"))]
        if any(row[3] for row in matches) and len(matches) > 1:
            raise DpforestError(
                f'"{name}" is hidden by a temporary table or view of the same name: drop that one.'
            )
        if not matches:
            raise DpforestError(f'There is no table "{name}" in the database: check --table.')
        if len(matches) > 1:
            raise DpforestError(f'"{name}" names several tables: write schema.table.')
        catalog, schema, table, temporary, note, kind = matches[0]
        if kind == "view":
            raise DpforestError(
                f'"{name}" is a view, whose rows the budget cannot follow: name its base table.'
            )
        if temporary:
            raise DpforestError(f'"{name}" is a temporary table: store it as a table first.')
        columns = self.run(
            "SELECT column_name, data_type FROM duckdb_columns() WHERE database_name = ? "
            "AND schema_name = ? AND table_name = ? ORDER BY column_index",
            [catalog, schema, table],
        )
        return TableInfo(catalog, schema, table, dict(columns), note or "")

    def home(self, table: TableInfo) -> Home:
        """The database file that a table lies in, and whether it is opened for reading only."""
        path, read_only = self.run(
            "SELECT path, readonly FROM duckdb_databases() WHERE database_name = ?", [table.catalog]
        )[0]
        return Home(path or "", bool(read_only))

    def write_note(self, table: TableInfo, note: str) -> None:
        """Replace the comment of a table."""
        name = self.dialect.ident(table.catalog, table.schema, table.name)
        self.run(f"COMMENT ON TABLE {name} IS {self.dialect.text(note)}")

    def read_only(self) -> bool:
        """Whether the connection's own database cannot be written."""
        found = self.run(
            "SELECT readonly FROM duckdb_databases() WHERE database_name = current_database()"
        )
        return bool(found[0][0])

    def spills_plain(self, catalog: str) -> bool:
        """Whether a database is encrypted, but not what DuckDB spills of it: DuckDB's default."""
        found = self.run(
            "SELECT encrypted AND NOT current_setting('temp_file_encryption') "
            "FROM duckdb_databases() WHERE database_name = ?",
            [catalog],
        )
        return bool(found[0][0])

    def scored(self, name: str) -> Scored:
        """A table or view to score, with its columns. Raises `DpforestError` if there is none.

        Scoring is not private: views, temporary tables and attached ones are as good.
        """
        ident = self.dialect.ident(*split_name(name))
        try:
            rows = self.run(f"DESCRIBE SELECT * FROM {ident}")
        except DpforestError:
            raise DpforestError(
                f'There is no table "{name}" in the database: check --table.'
            ) from None
        return Scored(ident, {row[0]: row[1] for row in rows})

    def encode(
        self,
        table: TableInfo,
        domain: Domain,
        unit: PrivacyUnit,
        *,
        trees: int,
        sample: Sample,
        salt: int,
        first_phase_labels: Sequence[Sql] = (),
        misclassified_weight: int = 1,
    ) -> DuckDBRows:
        """Code the private rows once into a TEMP table; node i holds the rows of tree i's root.

        "disjoint" gives every privacy unit to one tree, by a hash of the unit (of the whole row,
        where rows are the units) and `salt`; "bootstrap" draws for each tree as many rows as there
        are, with replacement, which no guarantee survives; with "all" every tree sees all rows.
        A row that half of the `judges` or more, labels by released trees, get wrong counts `heavy`
        times; a bootstrap draws in proportion to the judges that get it wrong.
        """
        alike = (table.reference, domain, unit, sample, trees if sample == "disjoint" else 1)
        shared = self._shared if sample != "bootstrap" and not first_phase_labels else None
        copies = trees if sample == "all" else 1
        if shared is not None and alike in shared:
            return shared[alike].again(copies)
        rows = DuckDBRows(self, domain, copies)
        try:
            rows.encode(
                table,
                unit,
                parts=1 if sample == "all" else trees,
                sample=sample,
                salt=salt,
                first_phase_labels=first_phase_labels,
                misclassified_weight=misclassified_weight,
            )
        except BaseException:  # Ctrl-C may come when the table is there already
            rows.drop()
            raise
        if shared is not None:
            shared[alike] = rows
            return rows.again(copies)
        return rows


def _spellings(catalog: str, schema: str, table: str) -> list[list[str]]:
    """The ways to write a table's name, in lower case; `catalog.table` means its main schema."""
    full = [name.casefold() for name in (catalog, schema, table)]
    short = [[full[0], full[2]]] if full[1] == "main" else []
    return [full, full[1:], full[2:], *short]
