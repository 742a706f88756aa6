"""An analytics workflow: train once, publish the model as SQL, and query scores with plain SQL.

The model is private, so its SQL may leave the company. The scores of a row are computed from that
row, so a table of scores is as confidential as the table that was scored.
"""

from __future__ import annotations

from pathlib import Path

import duckdb

from dpforest_duckdb import train

DATABASE = "shop.duckdb"
CUSTOMERS = """
CREATE TABLE {table} (
    customer INTEGER,
    months INTEGER NOT NULL CHECK (months BETWEEN 0 AND 120),
    plan ENUM ('basic', 'plus', 'business') NOT NULL,
    tickets INTEGER NOT NULL CHECK (tickets BETWEEN 0 AND 20),
    region VARCHAR,
    churned BOOLEAN
)
"""
ROWS = """
INSERT INTO {table}
SELECT
    i,
    (i * 31) % 121,
    ['basic', 'plus', 'business'][1 + i % 3],
    (i * 17) % 21,
    ['north', 'south', 'east', 'west'][1 + i % 4],
    (i * 31) % 121 < 24 OR (i * 17) % 21 > 15
FROM range({first}, {last}) AS r(i)
"""
REPORT = """
SELECT region, count(*) AS customers, round(avg(p_true), 2) AS expected_churn
FROM churn_scores GROUP BY region ORDER BY region
"""


def main() -> None:
    """Train on last year's customers; score this year's with a view."""
    if Path(DATABASE).exists():
        raise SystemExit(f"There is a {DATABASE} already: start in an empty folder.")
    con = duckdb.connect(DATABASE)
    for table, first, last in (("last_year", 0, 8000), ("this_year", 8000, 9000)):
        con.execute(CUSTOMERS.format(table=table))
        con.execute(ROWS.format(table=table, first=first, last=last))

    # Undeclared columns (customer, region) are not used.
    forest = train(con, "last_year", target="churned", epsilon=1, privacy_unit="row", name="churn")
    print(f"Guarantee: {forest.guarantee}")
    Path("churn.sql").write_text(forest.to_sql("this_year", form="view"), encoding="utf-8")
    con.close()

    # From here on nothing of this package is used: any DuckDB client can do it.
    analyst = duckdb.connect(DATABASE)
    analyst.execute(Path("churn.sql").read_text(encoding="utf-8"))
    (view,) = analyst.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()[
        0
    ]
    print(f"churn.sql made the view {view}.")
    analyst.execute(f'CREATE TABLE churn_scores AS FROM "{view}"')
    for region, customers, expected in analyst.execute(REPORT).fetchall():
        print(f"{region:6} {customers:5} customers, expected churn {expected:.2f}")
    analyst.close()


if __name__ == "__main__":
    main()
