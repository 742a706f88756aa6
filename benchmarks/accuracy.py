"""Accuracy of recipes: seeded runs through the library, scored with the SQL that it emits.

    python benchmarks/accuracy.py                                     # auto on Adult
    python benchmarks/accuracy.py --table nursery mushroom --recipe auto dpdf --epsilon 0.5 1

Adult is trained on adult_train and scored on adult_test; other tables are dealt anew for each run,
a quarter of the rows held out. Seeded noise is an experiment on public data: it is not private.
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
import warnings
from pathlib import Path

import duckdb
from shared import data_folder, markdown_table, say

from dpforest_duckdb import load_domain
from dpforest_duckdb.training import train


def accuracy(
    table: str, recipe: str, epsilon: str, seed: int, ledgers: Path, **options: object
) -> float:
    """Train once and score the rows that were held out; options are those of training."""
    folder, con = data_folder(), duckdb.connect()
    if table == "adult":
        parts = {"train": "adult_train", "test": "adult_test"}
        for part, name in parts.items():
            con.execute(f"CREATE TABLE {part} AS FROM '{folder / name}.parquet'")
        domain = load_domain(folder / "adult_train.toml")
    else:
        source = (
            f"SELECT *, hash(row_number() OVER (), {seed}) % 4 AS dealt "
            f"FROM '{folder / table}.parquet'"
        )
        for part, test in (("train", "dealt > 0"), ("test", "dealt = 0")):
            con.execute(
                f"CREATE TABLE {part} AS SELECT * EXCLUDE (dealt) FROM ({source}) WHERE {test}"
            )
        domain = load_domain(folder / f"{table}.toml")
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
    hits = f'avg(CAST(prediction = "{domain.target}" AS INTEGER))'
    return float(forest.predict(con, "test").aggregate(hits).fetchall()[0][0])


def main() -> None:
    """Run what was asked for and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--table", nargs="+", default=["adult"])
    parser.add_argument("--recipe", nargs="+", default=["auto"])
    parser.add_argument("--epsilon", nargs="+", default=["0.1", "0.5", "1", "2"])
    parser.add_argument("--seeds", type=int, default=10)
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # seeded noise warns at every run; this is an experiment
    rows = []
    with tempfile.TemporaryDirectory(prefix="accuracy-") as ledgers:
        for table in given.table:
            for recipe in given.recipe:
                cells = []
                for epsilon in given.epsilon:
                    found = [
                        accuracy(table, recipe, epsilon, seed, Path(ledgers))
                        for seed in range(given.seeds)
                    ]
                    error = statistics.stdev(found) / math.sqrt(len(found)) if found[1:] else 0.0
                    cells.append(f"{statistics.mean(found):.4f} ± {error:.4f}")
                rows.append([f"{table}, {recipe}", *cells])
                say(" ".join(rows[-1]))
    print(f"Mean of {given.seeds} seeded runs ± standard error.\n")
    print(markdown_table(["accuracy", *(f"ε = {e}" for e in given.epsilon)], rows))


if __name__ == "__main__":
    main()
