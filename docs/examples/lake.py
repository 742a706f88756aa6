"""A lake of partitioned Parquet files: trained on Spark, published as SQL, scored in DuckDB.

It needs the extra `spark` and Java. The month in a folder's name is a column of Spark's table. The
domain does not name it, so it is not used.
"""

from __future__ import annotations

from pathlib import Path

import duckdb

from dpforest_duckdb import train

LAKE = Path("trips")
DOMAIN = """
target = "tipped"
privacy_unit = "rider"
[[column]]
name = "rider"
kind = "identifier"
[[column]]
name = "distance"
kind = "numeric"
lower = 0
upper = 40
[[column]]
name = "paid"
kind = "categorical"
domain = ["cash", "card"]
[[column]]
name = "hour"
kind = "numeric"
lower = 0
upper = 23
[[column]]
name = "tipped"
kind = "categorical"
domain = [true, false]
"""
TRIPS = """
SELECT
    '2026-0' || 1 + i % 6 AS month,
    i // 3 AS rider,
    (i * 37 % 400) / 10e0 AS distance,
    CASE WHEN i % 5 > 1 THEN 'card' ELSE 'cash' END AS paid,
    i * 11 % 24 AS hour,
    i % 5 > 1 AND i * 37 % 400 > 80 AS tipped
FROM range({first}, {last}) AS r(i)
"""


def main() -> None:
    """Train on six months of trips in Spark; score new ones in DuckDB."""
    if LAKE.exists():
        raise SystemExit(f"There is a folder {LAKE} already: start in an empty folder.")
    with duckdb.connect() as con:
        trips = TRIPS.format(first=0, last=20_000)
        con.execute(f"COPY ({trips}) TO '{LAKE}' (FORMAT parquet, PARTITION_BY month)")
    Path("trips.toml").write_text(DOMAIN, encoding="utf-8")

    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    )
    forest = train(
        spark,
        LAKE,
        domain="trips.toml",
        rows_per_unit=3,
        epsilon=1,
        recipe="greedy-tree",
        ledger="trips.ledger",
    )
    print(f"Guarantee: {forest.guarantee}")
    spark.stop()
    forest.save("tips.json")
    Path("tips.sql").write_text(forest.to_sql("new_trips"), encoding="utf-8")

    # From here on neither Spark nor this package is used.
    with duckdb.connect("trips.duckdb") as analyst:
        analyst.execute(f"CREATE TABLE new_trips AS {TRIPS.format(first=20_000, last=21_000)}")
        scored = Path("tips.sql").read_text(encoding="utf-8")
        analyst.execute(f"CREATE TABLE scored AS {scored}")
        report = "SELECT paid, avg(p_true) FROM scored GROUP BY paid ORDER BY paid"
        for paid, share in analyst.execute(report).fetchall():
            print(f"paid by {paid}: {share:.2f} are expected to tip")


if __name__ == "__main__":
    main()
