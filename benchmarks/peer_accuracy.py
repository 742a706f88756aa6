"""Accuracy, AUC and log loss of other people's private models, kept in peer_accuracy.csv.

    python benchmarks/peer_accuracy.py --table adult_train nursery   # measures them again

Peers run in Python environments of their own, made at first use, on the first three of the folds
with our codes: 32 cells for a number. diffprivlib has 10 trees of depth 5; DP-EBM is as it comes,
for two classes only, with δ = 1e-5. This takes hours on all tables, so the figures are kept. Rows
whose source is a file of `targets` were measured there, by its protocol.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
from environments import NEEDS, python_of
from folds import FOLDS, folds
from in_memory import Table, load
from numpy.typing import NDArray
from shared import say, standard_error, table_files

FILE = Path(__file__).with_name("peer_accuracy.csv")
HEAD = ("table", "epsilon", "peer", "accuracy", "error", "auc", "log_loss", "source")
EPSILONS = (0.1, 0.5, 1.0)
DELTA = 1e-5  # of DP-EBM
Rows = NDArray[np.intp]  # places of rows


@dataclass(frozen=True)
class PeerFigures:
    """Means over runs and the standard error of accuracy; None if a figure is not known."""

    accuracy: float
    error: float | None
    auc: float | None
    log_loss: float | None


def known_peers() -> dict[tuple[str, float, str], PeerFigures]:
    """The figures that are kept, by table, ε and peer."""
    with FILE.open(encoding="utf-8") as lines:
        return {
            (row["table"], float(row["epsilon"]), row["peer"]): PeerFigures(
                float(row["accuracy"]), *(_number(row[key]) for key in ("error", "auc", "log_loss"))
            )
            for row in csv.DictReader(lines)
        }


def _number(text: str) -> float | None:
    return float(text) if text else None


def main() -> None:
    """Measure peers, and replace their rows in the file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--table", nargs="+", help="these tables; default: all")
    parser.add_argument("--peer", nargs="+", default=list(NEEDS), choices=list(NEEDS))
    given = parser.parse_args()
    files = table_files()
    if unknown := set(given.table or ()) - set(files):
        parser.error(f"there is no table {', '.join(sorted(unknown))}")
    with FILE.open(encoding="utf-8") as lines:
        kept = {(row["table"], row["epsilon"], row["peer"]): row for row in csv.DictReader(lines)}
    with tempfile.TemporaryDirectory(prefix="peers-") as place:
        for name, peer in itertools.product(given.table or files, given.peer):
            table = load(files[name])
            if peer == "DP-EBM" and len(table.domain.classes) > 2:
                continue
            for epsilon, row in zip(EPSILONS, measured(peer, table, Path(place)), strict=True):
                kept[name, f"{epsilon:g}", peer] = row | {
                    "table": name, "epsilon": f"{epsilon:g}", "peer": peer
                }  # fmt: skip
                say(f"{name}, {peer}, ε = {epsilon:g}: {row['accuracy']}")
    with FILE.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.DictWriter(lines, HEAD, lineterminator="\n")
        writer.writeheader()
        writer.writerows(kept[key] for key in sorted(kept, key=lambda k: (k[0], k[2], float(k[1]))))


def measured(peer: str, table: Table, place: Path) -> list[dict[str, str]]:
    """The means of a peer over the first folds, for each ε."""
    parts = [
        (np.flatnonzero(fold), np.flatnonzero(fold == 0))
        for fold in itertools.islice(folds(table), FOLDS)
    ]
    runs = figures_of(peer, table, parts, place)
    rows = []
    for found in zip(*runs, strict=True):
        right = [one["accuracy"] for one in found]
        areas = [one["auc"] for one in found if one["auc"] is not None]
        rows.append(
            {
                "accuracy": f"{statistics.mean(right):.4f}",
                "error": f"{standard_error(right):.4f}",
                "auc": f"{statistics.mean(areas):.4f}" if areas else "",
                "log_loss": f"{statistics.mean(one['log_loss'] for one in found):.4f}",
                "source": f"{len(runs)} runs",
            }
        )
    return rows


def figures_of(
    peer: str,
    table: Table,
    parts: Sequence[tuple[Rows, Rows]],
    place: Path,
    epsilons: Sequence[float] = EPSILONS,
    delta: float = DELTA,
) -> list[list[dict[str, float]]]:
    """A peer's accuracy, AUC and log loss, of each pair of training and test rows and each ε.

    `place` is a folder for a database of codes. The peer runs in one process of its own. Ends the
    program with one sentence if it fails.
    """
    database = place / "folds.duckdb"
    database.unlink(missing_ok=True)
    with duckdb.connect(str(database)) as con:
        for number, pair in enumerate(parts):
            for part, rows in zip(("train", "test"), pair, strict=True):
                codes = table.codes(table.domain, rows)
                data = {f"a{attribute}": code for attribute, code in enumerate(codes)}
                con.register("coded", {**data, "class": table.labels[rows]})
                con.execute(f"CREATE TABLE {part}{number} AS FROM coded")
                con.unregister("coded")
    job = {
        "contender": peer,
        "database": str(database),
        "folds": len(parts),
        "epsilons": epsilons,
        "delta": delta,
        "cells": table.domain.cells,
        "classes": len(table.domain.classes),
        "ordered": [a.kind == "numeric" or a.ordered for a in table.domain.attributes],
    }
    script = str(Path(__file__).with_name("peers.py"))
    words = [python_of(peer), script, json.dumps(job)]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    if ran.returncode:
        sys.exit(f"{peer} failed: {ran.stderr.strip().splitlines()[-1]}")
    found: list[list[dict[str, float]]] = json.loads(ran.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    main()
