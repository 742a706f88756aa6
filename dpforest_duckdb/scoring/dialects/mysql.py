"""MySQL and MariaDB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.scoring.dialects.base import Dialect
from dpforest_duckdb.sql import Sql


class MySQL(Dialect):
    """Tested in MariaDB.

    Text is compared as bytes, because the default collations ignore case and spaces at the end. A
    CTE is merged into its reader, and computed again for every use of its columns, unless it has a
    LIMIT: the largest one keeps every row.
    """

    name = "mysql"
    title = "MySQL"
    quotes = ("`", "`")
    longest_name = 64
    most_bytes = 16_777_216
    most_columns = 4096
    cte_end = Sql(f" LIMIT {2**64 - 1}")
    types: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("SMALLINT", "INTEGER", "BIGINT"), "SIGNED"),
        "VARCHAR": "CHAR CHARACTER SET utf8mb4",
        "TIMESTAMP": "DATETIME(6)",
        "FLOAT": "FLOAT",
    }

    def check_name(self, name: str) -> None:
        super().check_name(name)
        if name[-1] in " \t\n\v\f\r" or any(c > "\uffff" for c in name):
            raise DpforestError(
                f"The name {name!r} ends with a space or holds a character beyond U+FFFF, which "
                "MySQL allows in no name: rename the column or class, or write another name."
            )

    def quoted(self, value: str) -> Sql:
        """In hexadecimal if there is a backslash: a server setting decides if it escapes."""
        if "\\" in value:
            return Sql(f"_utf8mb4 X'{value.encode().hex().upper()}'")
        plain = "'" + value.replace("'", "''") + "'"
        return Sql(plain if value.isascii() else f"_utf8mb4 {plain}")

    def concatenated(self, parts: Sequence[Sql]) -> Sql:
        return Sql(f"CONCAT({', '.join(parts)})")

    def bytewise(self, column: Sql) -> Sql:
        return Sql(f"CAST(CONVERT({column} USING utf8mb4) AS BINARY)")

    def is_nan(self, column: Sql) -> None:
        return None
