"""Spark and Databricks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from dpforest_duckdb.domain.types import Family
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.scoring.dialects.base import Dialect
from dpforest_duckdb.sql import Sql


class Spark(Dialect):
    """Text has backslash escapes; ${…} is replaced by Spark wherever it stands.

    Spark translates a forest into one Java method. Java does not compile a method of more than
    8,000 bytes to machine code. Above 64 KB Spark fails to generate the method, and tries again in
    every query. With the setting in `advice` it generates several smaller methods.
    """

    name = "spark"
    title = "Spark"
    quotes = ("`", "`")
    advice = (
        "Faster after SET spark.sql.codegen.wholeStage = false, which avoids one long Java method."
    )
    types: ClassVar[Mapping[str, str]] = {
        "VARCHAR": "STRING",
        "INTEGER": "INT",
        "TIMESTAMP": "TIMESTAMP_NTZ",
        "FLOAT": "FLOAT",
    }

    def check_name(self, name: str) -> None:
        super().check_name(name)
        if "${" in name:
            raise DpforestError(
                f'The name "{name}" holds "${{", which Spark replaces in any statement: '
                "rename the column or class, or write another name."
            )

    def quoted(self, value: str) -> Sql:
        text = value.replace("\\", "\\\\").replace("'", "\\'")
        return Sql("'" + text.replace("${", "\\u0024{") + "'")

    def category(self, value: str, family: Family) -> Sql:
        """Whole numbers of a DECIMAL column with as many digits as they have.

        As INT they would count as ten digits, and Spark rounds a column of 29 decimals or more to
        have room for both.
        """
        found = super().category(value, family)
        return Sql(f"{found}BD") if family == "decimal" and "." not in found else found

    def timestamp(self, text: str) -> Sql:
        return Sql(f"TIMESTAMP_NTZ {self.text(text)}")
