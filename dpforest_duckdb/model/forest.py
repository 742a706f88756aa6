"""The forest and its verbs: predict, to SQL, rules, save and load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb

from dpforest_duckdb.dialects import Form
from dpforest_duckdb.dialects import dialect as find_dialect
from dpforest_duckdb.engine.duckdb import DuckDBEngine
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.model.content import ForestContent
from dpforest_duckdb.model.files import write_file
from dpforest_duckdb.model.json_format import MAX_BYTES, from_json, to_json
from dpforest_duckdb.model.rules import rules
from dpforest_duckdb.model.score_sql import publish_sql, score_sql


@dataclass(frozen=True)
class Forest(ForestContent):
    """A trained forest: public domain, trees, guarantee. Free to publish if `private`."""

    def predict(
        self, con: duckdb.DuckDBPyConnection, table: str, *, prefix: str = ""
    ) -> duckdb.DuckDBPyRelation:
        """The rows of a table with `prediction` and `p_<class>`, as a DuckDB relation."""
        scored = DuckDBEngine(con).scored(table)
        return con.sql(score_sql(self, scored, prefix=prefix, fast=True))

    def to_sql(
        self,
        table: str | None = None,
        *,
        form: Form = "select",
        prefix: str = "",
        fast: bool = False,
        dialect: str = "duckdb",
        columns: Sequence[str] = (),
        key: Sequence[str] = (),
    ) -> str:
        """SQL that scores a table: a select, or the statement that makes a view, table or macro.

        `dialect` is the engine it is for (docs/engines.md); for others than DuckDB, `columns` names
        the table's columns or `key` those to keep. `fast` gives the same by bit sets, sooner where
        trees are many, for DuckDB alone. Raises `UsageError` for an unknown dialect or a missing
        option, `DpforestError` for what the engine cannot have.
        """
        return publish_sql(
            self,
            table or self.table,
            form=form,
            prefix=prefix,
            fast=fast,
            dialect=find_dialect(dialect),
            columns=columns,
            key=key,
        )

    def rules(self) -> list[dict[str, Any]]:
        """Every root-to-node path as a row (see `dpforest_duckdb.model.rules`)."""
        return rules(self)

    def save(self, path: str | Path) -> None:
        """Write the forest as JSON, whole or not at all."""
        write_file(path, self.to_json())

    def to_json(self) -> str:
        """The forest as JSON, columns of integers per tree; `from_json` reads it back."""
        return to_json(self)

    def named(self, name: str) -> Forest:
        return replace(self, name=name)

    @staticmethod
    def from_json(text: str) -> Forest:
        """Read a forest, checking everything: a hostile file must not reach SQL.

        Raises `DpforestError` for a damaged, newer or oversized model.
        """
        return from_json(text, Forest)


def load_forest(path: str | Path) -> Forest:
    """Read a forest from a JSON file. Raises `DpforestError` with one sentence."""
    try:
        file = Path(path)
        if file.stat().st_size > MAX_BYTES:
            raise DpforestError(f"The model file {path} is larger than 64 MiB: it is not ours.")
        return Forest.from_json(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        raise DpforestError(f"The model file {path} cannot be read: check --model.") from None
