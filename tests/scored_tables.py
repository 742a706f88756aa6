"""A table with classes, for the tests of figures and evaluations."""

from __future__ import annotations

import duckdb

CLASSES = {2: ("no", "yes"), 3: ("a", "b", "c")}


def scored_table(con: duckdb.DuckDBPyConnection, classes: int, rows: int = 900) -> None:
    """Rows whose class depends on x and on chance; some have none, or no unit."""
    labels = ", ".join(f"'{label}'" for label in CLASSES[classes])
    con.execute(
        "CREATE TABLE t (who INTEGER, x INTEGER CHECK (x BETWEEN 0 AND 9), "
        f"label VARCHAR CHECK (label IN ({labels})))"
    )
    con.execute(
        f"INSERT INTO t SELECT i // 3, i % 10, "
        f"[{labels}][(i % 10 + i * 7919 % 97 % 4) % {classes} + 1] FROM range({rows}) r(i)"
    )
    some = CLASSES[classes][0]
    con.execute(f"INSERT INTO t VALUES (1, 1, NULL), (NULL, NULL, '{some}'), (2, NULL, NULL)")
