"""The time of a fit of the scikit-learn estimator beside the same training from a DuckDB table.

Adult has 32,561 rows and 14 columns. Each pair trains on both, one after the other, and the order
alternates, so that other work on the machine slows both alike. `--first` starts a process for each
fit instead, and so includes what is imported at the first noise.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import duckdb
from shared import data_folder

from dpforest_duckdb import load_domain, train
from dpforest_duckdb.sklearn import DPForestClassifier


def ways(folder: Path) -> dict[str, Callable[[], object]]:
    """The two trainings on the same rows, each with a budget in a file of its own."""
    data = data_folder()
    domain = load_domain(data / "adult_train.toml")
    con = duckdb.connect(str(folder / "adult.duckdb"))
    con.execute(f"CREATE TABLE adult AS FROM '{data / 'adult_train.parquet'}'")
    con.execute("CHECKPOINT")
    frame = con.table("adult").df()
    features, labels = frame.drop(columns=domain.target), frame[domain.target]
    model = DPForestClassifier(domain=domain, ledger=folder / "ledger", dataset="adult")
    return {
        "table": lambda: train(con, "adult", domain=domain, epsilon=1, privacy_unit="row"),
        "frame": lambda: model.fit(features, labels),
    }


def measured(fit: Callable[[], object]) -> tuple[float, float]:
    """Seconds of the clock and of the processors."""
    wall, processor = time.perf_counter(), time.process_time()
    fit()
    return time.perf_counter() - wall, time.process_time() - processor


def compared(pairs: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        found = ways(Path(name))
        for fit in found.values():
            fit()
        times: dict[str, list[tuple[float, float]]] = {way: [] for way in found}
        for pair in range(pairs):
            for way in sorted(found, reverse=bool(pair % 2)):
                times[way].append(measured(found[way]))
    for kind, words in enumerate(("clock", "processors")):
        frame, table = ([each[kind] for each in times[way]] for way in ("frame", "table"))
        ratio = statistics.median(a / b for a, b in zip(frame, table, strict=True))
        print(
            f"{words:<11} frame {statistics.median(frame):.3f} s, table "
            f"{statistics.median(table):.3f} s, median ratio of {pairs} pairs {ratio:.2f}"
        )


def first() -> None:
    """The first fit of a process."""
    with tempfile.TemporaryDirectory() as name:
        fit = ways(Path(name))["frame"]
        print(f"{measured(fit)[0]:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--first", action="store_true", help="the first fit of each process")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.one:
        first()
    elif given.first:
        one = [sys.executable, __file__, "--one"]
        runs = [subprocess.run(one, capture_output=True, text=True, check=True) for _ in range(5)]
        print(f"first fit   {statistics.median(float(run.stdout) for run in runs):.3f} s")
    else:
        compared(given.pairs)


if __name__ == "__main__":
    main()
