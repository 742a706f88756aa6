"""Comparing systems: several recipes at two budgets, trained on the same rows.

`train_many` codes the rows once for all runs. Every run is debited: comparing four systems on a
private table at ε = 1 costs ε = 4. So compare on public or synthetic rows, as here.
"""

from __future__ import annotations

from pathlib import Path

import duckdb

from dpforest_duckdb import prepare, train_many

RECIPES = ("auto", "greedy-tree", "dpdf", "diffp-id3")
BUDGETS = ("0.1", "1")
LOANS = """
CREATE TABLE {table} (
    income INTEGER NOT NULL CHECK (income BETWEEN 0 AND 99),
    job ENUM ('none', 'part', 'full') NOT NULL,
    owner BOOLEAN NOT NULL,
    grade ENUM ('low', 'middle', 'high') NOT NULL
)
"""
ROWS = """
INSERT INTO {table}
SELECT
    (i * 61) % 100 AS income,
    ['none', 'part', 'full'][1 + i % 3] AS job,
    i % 4 < 2 AS owner,
    CASE
        WHEN i % 3 = 0 OR (i * 61) % 100 < 20 THEN 'low'
        WHEN (i * 61) % 100 > 65 THEN 'high'
        ELSE 'middle'
    END AS grade
FROM range({first}, {last}) AS r(i)
"""


def main() -> None:
    """Train every recipe at every budget, and print the accuracy on other rows."""
    if Path("loans.duckdb").exists():
        raise SystemExit("There is a loans.duckdb already: start in an empty folder.")
    con = duckdb.connect("loans.duckdb")
    for table, first, last in (("loans", 0, 6000), ("test", 6000, 8000)):
        con.execute(LOANS.format(table=table))
        con.execute(ROWS.format(table=table, first=first, last=last))

    runs = [
        prepare(con, "loans", target="grade", epsilon=epsilon, recipe=recipe, privacy_unit="row")
        for recipe in RECIPES
        for epsilon in BUDGETS
    ]
    print(f"{'recipe':12} {'ε':>4} {'trees':>5} {'accuracy':>8}")
    for forest in train_many(runs):
        scored = forest.predict(con, "test")
        accuracy = scored.aggregate("avg(CAST(prediction = grade AS INTEGER))").fetchall()[0][0]
        epsilon = forest.guarantee.epsilon
        print(f"{forest.recipe:12} {epsilon:>4} {len(forest.trees):5} {accuracy:8.3f}")
    con.close()


if __name__ == "__main__":
    main()
