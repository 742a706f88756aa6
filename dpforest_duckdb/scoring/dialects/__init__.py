"""The engines that a model can be scored in, by name."""

from __future__ import annotations

from difflib import get_close_matches

from dpforest_duckdb.errors import UsageError
from dpforest_duckdb.scoring.dialects.base import Dialect, Form
from dpforest_duckdb.scoring.dialects.clickhouse import ClickHouse
from dpforest_duckdb.scoring.dialects.datafusion import DataFusion
from dpforest_duckdb.scoring.dialects.duckdb import DuckDB
from dpforest_duckdb.scoring.dialects.generated import TSQL, BigQuery, Redshift, Snowflake, Trino
from dpforest_duckdb.scoring.dialects.mysql import MySQL
from dpforest_duckdb.scoring.dialects.polars import Polars
from dpforest_duckdb.scoring.dialects.postgres import Postgres
from dpforest_duckdb.scoring.dialects.spark import Spark
from dpforest_duckdb.scoring.dialects.sqlite import SQLite

__all__ = ["DIALECTS", "Dialect", "Form", "dialect"]

_EXECUTED = (DuckDB, Postgres, SQLite, MySQL, ClickHouse, DataFusion, Polars, Spark)
_GENERATED = (BigQuery, Snowflake, Redshift, Trino, TSQL)
DIALECTS: dict[str, type[Dialect]] = {each.name: each for each in (*_EXECUTED, *_GENERATED)}
_ALIASES = {
    "postgresql": "postgres",
    "mariadb": "mysql",
    "databricks": "spark",
    "sqlserver": "tsql",
    "mssql": "tsql",
    "athena": "trino",
}


def dialect(name: str) -> Dialect:
    """The dialect of a name. Raises `UsageError` with the nearest name for an unknown one."""
    wanted = name.casefold()
    wanted = _ALIASES.get(wanted, wanted)
    if wanted not in DIALECTS:
        near = get_close_matches(wanted, [*DIALECTS, *_ALIASES], n=1)
        hint = f' Did you mean "{near[0]}"?' if near else f" Choose one of {', '.join(DIALECTS)}."
        raise UsageError(f'There is no dialect "{name}".{hint}')
    return DIALECTS[wanted]()
