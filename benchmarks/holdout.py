"""One seeded training and the share of held-out rows that it gets right.

Rows are scored by the SQL of the forest. A forest of many nodes is scored in Python instead, whose
answers are the same for every row (tests/scoring/test_scoring.py): to plan so much SQL takes longer
than training.

Adult is trained on adult_train and scored on adult_test; other tables are dealt for each run, a
quarter of the rows held out. "TABLE_complete" is a table's rows without NULL, as the thesis has
Mushroom and Adult. Seeded noise is an experiment on public data: it is not private.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
from shared import data_folder

from dpforest_duckdb import Forest, load_domain
from dpforest_duckdb.domain import Domain
from dpforest_duckdb.training.train import train

MANY_WEIGHTS = 40_000  # of all nodes and classes
Bins = Callable[[duckdb.DuckDBPyConnection, Domain], Domain]


def accuracy(
    table: str,
    recipe: str,
    epsilon: str,
    seed: int,
    ledgers: Path,
    bins: Bins | None = None,
    **options: object,
) -> float:
    """Train once and score the rows that were held out; options are those of training.

    `bins` gives the domain other bins, from the table `train`.
    """
    folder, con = data_folder(), duckdb.connect()
    if table.endswith("_complete"):
        name = {"adult": "adult_train"}.get(table[:-9], table[:-9])
        rows = con.sql(f"FROM '{folder / name}.parquet'")
        filled = " AND ".join(f'"{column}" IS NOT NULL' for column in rows.columns)
        _deal(con, f"(FROM '{folder / name}.parquet' WHERE {filled})", seed)
        domain = load_domain(folder / f"{name}.toml")
    elif table == "adult":
        parts = {"train": "adult_train", "test": "adult_test"}
        for part, name in parts.items():
            con.execute(f"CREATE TABLE {part} AS FROM '{folder / name}.parquet'")
        domain = load_domain(folder / "adult_train.toml")
    else:
        _deal(con, f"'{folder / table}.parquet'", seed)
        domain = load_domain(folder / f"{table}.toml")
    if bins:
        domain = bins(con, domain)
    forest = train(
        con,
        "train",
        domain=domain,
        recipe=recipe,
        epsilon=epsilon,
        seed=seed,
        privacy_unit="row",
        ledger=ledgers / f"{table}-{recipe}-{epsilon}-{seed}-{options.get('as_published')}",
        **options,
    )
    return share_right(con, forest)


def share_right(con: duckdb.DuckDBPyConnection, forest: Forest) -> float:
    """The share of the rows of `test` whose class the forest predicts."""
    target = forest.domain.target
    if forest.nodes * len(forest.domain.classes) <= MANY_WEIGHTS:
        hits = f'avg(CAST(prediction = "{target}" AS INTEGER))'
        return float(forest.predict(con, "test").aggregate(hits).fetchall()[0][0])
    test = con.sql(f'FROM test WHERE "{target}" IS NOT NULL')
    rows = [dict(zip(test.columns, row, strict=True)) for row in test.fetchall()]
    labels = np.array(forest.domain.classes)[forest.votes(rows).argmax(axis=1)]
    return float(np.mean(labels == [str(row[target]) for row in rows]))


def _deal(con: duckdb.DuckDBPyConnection, source: str, seed: int) -> None:
    """The tables train and test, of three quarters and one quarter of the rows."""
    dealt = f"SELECT *, hash(row_number() OVER (), {seed}) % 4 AS dealt FROM {source}"
    for part, chosen in (("train", "dealt > 0"), ("test", "dealt = 0")):
        con.execute(
            f"CREATE TABLE {part} AS SELECT * EXCLUDE (dealt) FROM ({dealt}) WHERE {chosen}"
        )
