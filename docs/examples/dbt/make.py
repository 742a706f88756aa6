"""Makes the database of the dbt project, trains a model, and writes it as a dbt model.

The command line writes the same two files:

    dpforest sql --db clinic.duckdb --model risk --from main.visits --as dbt
    dpforest sql --db clinic.duckdb --model risk --as dbt-schema
"""

from __future__ import annotations

from pathlib import Path

import duckdb

from dpforest_duckdb import train

VISITS = """
CREATE TABLE visits (
    id INTEGER PRIMARY KEY,
    age INTEGER NOT NULL CHECK (age BETWEEN 0 AND 110),
    ward ENUM ('surgery', 'cardiology', 'neurology') NOT NULL,
    readmitted BOOLEAN NOT NULL
)
"""
ROWS = """
INSERT INTO visits
SELECT
    i AS id,
    20 + (i * 37) % 70 AS age,
    ['surgery', 'cardiology', 'neurology'][1 + i % 3] AS ward,
    20 + (i * 37) % 70 > 60 OR i % 11 = 0 AS readmitted
FROM range(5000) AS r(i)
"""


def main() -> None:
    """Write clinic.duckdb, models/risk_scored.sql and models/risk_scored.yml."""
    with duckdb.connect("clinic.duckdb") as con:
        con.execute(VISITS)
        con.execute(ROWS)
        forest = train(
            con, "visits", target="readmitted", privacy_unit="id", epsilon=1, name="risk"
        )
    models = Path("models")
    (models / "risk_scored.sql").write_text(forest.to_sql("main.visits", form="dbt"))
    (models / "risk_scored.yml").write_text(forest.to_sql(form="dbt-schema"))


if __name__ == "__main__":
    main()
