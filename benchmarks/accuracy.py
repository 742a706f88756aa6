"""Accuracy, AUC and log loss of recipes by cross-validation, on every benchmark table.

    python benchmarks/accuracy.py --markdown docs/accuracy.md          # auto, all tables
    python benchmarks/accuracy.py --delta 1e-5 --markdown docs/accuracy-delta.md
    python benchmarks/accuracy.py --table nursery mushroom --recipe auto dpdf --epsilon 0.5 1

Three stratified folds, dealt three times for tables of less than 8,000 rows; every forest
is trained in DuckDB and scored with the SQL that it emits. Noise comes from seeds: an experiment on
public data, not private. Peers run on the first three of these folds in Python environments of
their own, made at first use; the best of their other settings, and what to aim for, are read from
the folder targets beside the tables, and left out where there is none.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import math
import statistics
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
from environments import NEEDS, python_of
from plots import Chart, sheet
from shared import data_folder, markdown_table, say

from dpforest_duckdb import load_domain
from dpforest_duckdb.domain import Domain
from dpforest_duckdb.engine.duckdb import DuckDBEngine
from dpforest_duckdb.model.evaluate import evaluate
from dpforest_duckdb.scoring.codes import DuckDBDialect
from dpforest_duckdb.training.train import train

FOLDS, REPEATS, SMALL = 3, 3, 8_000
AIM = "the best seen, with hindsight"


@dataclass(frozen=True)
class Figures:
    """Means over folds, the standard error of accuracy, and what a constant guess reaches."""

    accuracy: float
    error: float
    auc: float | None
    log_loss: float
    majority: float
    entropy: float


def main() -> None:
    """Run what was asked for, print a table, and write the page if asked to."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    known = sorted(p.stem for p in data_folder().glob("*.toml") if p.stem != "adult_test")
    parser.add_argument("--table", nargs="+", default=known, choices=known)
    parser.add_argument("--recipe", nargs="+", default=["auto"])
    parser.add_argument("--epsilon", nargs="+", default=["0.1", "0.5", "1"])
    parser.add_argument("--delta", default="0", help="0 for pure ε")
    parser.add_argument("--peer", nargs="*", default=list(NEEDS), choices=list(NEEDS))
    parser.add_argument("--seeds", type=int, default=1, help="runs per fold, each of other noise")
    parser.add_argument("--markdown", type=Path, help="write the page here")
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # seeded noise warns at every run; this is an experiment
    aims, rows, reached = _aims(given.delta), [], []
    lines: dict[str, dict[str, list[tuple[float, Figures]]]] = {}
    with tempfile.TemporaryDirectory(prefix="accuracy-") as place:
        for table in given.table:
            found = {
                recipe: [
                    figures(table, recipe, epsilon, given.delta, given.seeds, Path(place))
                    for epsilon in given.epsilon
                ]
                for recipe in given.recipe
            }
            reached += [
                (one, aims.get((table, float(epsilon)), {}))
                for results in found.values()
                for epsilon, one in zip(given.epsilon, results, strict=True)
            ]
            for peer in given.peer:
                results = peer_figures(peer, table, given.epsilon, Path(place))
                found |= {f"*{peer}*": results} if results else {}
            for name, results in found.items():
                for epsilon, one in zip(given.epsilon, results, strict=True):
                    aim = aims.get((table, float(epsilon)), {}) if name in given.recipe else {}
                    rows.append(_row(table, name, epsilon, one, aim))
                    say(" ".join(rows[-1]))
                    lines.setdefault(table, {}).setdefault(name.strip("*"), []).append(
                        (float(epsilon), one)
                    )
    head = ["table, recipe", "ε", "accuracy", "AUC", "log loss", "guess: accuracy", "log loss"]
    head += ["best peer: accuracy", "AUC", "aim: accuracy", "AUC", "without privacy"]
    text = markdown_table(head, rows)
    print(text, "\n\n", _summary(reached), sep="")
    if given.markdown:
        plot = given.markdown.with_suffix(".svg")
        plot.write_text(sheet(list(_charts(lines, aims)), columns=4), encoding="utf-8")
        page = _page(text, _summary(reached), given.delta, given.markdown)
        given.markdown.write_text(page, encoding="utf-8")


def _charts(
    lines: dict[str, dict[str, list[tuple[float, Figures]]]],
    aims: dict[tuple[str, float], dict[str, str]],
) -> Iterator[Chart]:
    """Accuracy over ε of every table, then the area under the curve where there is one."""
    for figure in ("accuracy", "auc"):
        for table, own in lines.items():
            drawn = {
                name: [(e, value) for e, one in points if (value := getattr(one, figure))]
                for name, points in own.items()
            }
            epsilons = [e for e, _ in next(iter(own.values()))]
            aim = [
                (e, float(known))
                for e in epsilons
                if (known := aims.get((table, e), {}).get(f"target_{figure}"))
            ]
            drawn = {name: points for name, points in {**drawn, AIM: aim}.items() if points}
            if set(drawn) <= {AIM}:
                continue
            values = [value for points in drawn.values() for _, value in points]
            marks = [m / 10 for m in range(11) if min(values) - 0.1 < m / 10 < max(values) + 0.1]
            yield Chart(
                f"{table}: {'AUC' if figure == 'auc' else figure}",
                drawn,
                (epsilons, marks),
                (True, False),
                frozenset({AIM}),
            )


def peer_figures(peer: str, table: str, epsilons: Sequence[str], place: Path) -> list[Figures]:
    """A peer on the first folds, with our codes; none if it cannot handle the table's classes."""
    con, domain = duckdb.connect(), load_domain(data_folder() / f"{table}.toml")
    if peer == "DP-EBM" and len(domain.classes) > 2:
        return []
    labels = _load(con, table, domain)
    columns = DuckDBEngine(con).table("a").columns
    bound = domain.bind(columns)
    dialect, database = DuckDBDialect(), place / "fold.duckdb"
    codes = ", ".join(
        f"{dialect.code(a, dialect.ident(a.column))} AS a{n}"
        for n, a in enumerate(bound.attributes)
    )
    kind = columns[bound.target]
    label = dialect.class_code(bound.classes, kind, dialect.ident(bound.target))
    folds: list[list[dict[str, float | None]]] = []
    for fold in itertools.islice(_folds(labels), FOLDS):
        con.register("dealt", {"fold": fold})
        database.unlink(missing_ok=True)
        con.execute(f"ATTACH '{database}' AS place")
        for part, test in (("train", "<> 0"), ("test", "= 0")):
            con.execute(
                f"CREATE TABLE place.{part} AS SELECT {codes}, {label} AS class "
                f"FROM (SELECT * FROM a POSITIONAL JOIN dealt) WHERE fold {test}"
            )
        con.execute("DETACH place")
        job = {
            "contender": peer,
            "database": str(database),
            "epsilons": [float(e) for e in epsilons],
            "delta": 1e-5,
            "cells": bound.cells,
            "classes": len(bound.classes),
            "ordered": [a.kind == "numeric" or a.ordered for a in bound.attributes],
        }
        script = str(Path(__file__).with_name("peers.py"))
        words = [python_of(peer), script, json.dumps(job)]
        ran = subprocess.run(words, capture_output=True, text=True, check=False)
        if ran.returncode:
            sys.exit(f"{peer} failed on {table}: {ran.stderr.strip().splitlines()[-1]}")
        folds.append(json.loads(ran.stdout.splitlines()[-1]))
    shares = np.unique(labels, return_counts=True)[1] / len(labels)
    return [_mean([fold[number] for fold in folds], shares) for number in range(len(epsilons))]


def figures(
    table: str, recipe: str, epsilon: str, delta: str, seeds: int, ledgers: Path
) -> Figures:
    """Cross-validate a recipe on a table."""
    con, domain = duckdb.connect(), load_domain(data_folder() / f"{table}.toml")
    labels = _load(con, table, domain)
    shares = np.unique(labels, return_counts=True)[1] / len(labels)
    found = []
    for number, fold in enumerate(_folds(labels)):
        con.register("dealt", {"fold": fold})
        for part, test in (("train", "<> 0"), ("test", "= 0")):
            con.execute(
                f"CREATE OR REPLACE TABLE {part} AS SELECT a.* FROM a POSITIONAL JOIN dealt d "
                f"WHERE d.fold {test}"
            )
        for seed in range(seeds):
            forest = train(
                con,
                "train",
                domain=domain,
                recipe=recipe,
                epsilon=epsilon,
                delta=delta,
                seed=1000 * seed + number,
                privacy_unit="row",
                ledger=ledgers / f"{table}-{number}",
            )
            engine = DuckDBEngine(con)
            found.append(evaluate(engine, forest, "test"))
    return _mean(
        [{"accuracy": f.accuracy, "auc": f.auc, "log_loss": f.log_loss} for f in found], shares
    )


def _mean(found: Sequence[dict[str, float | None]], shares: np.ndarray) -> Figures:
    right, areas, losses = (
        [value for one in found if (value := one[key]) is not None]
        for key in ("accuracy", "auc", "log_loss")
    )
    return Figures(
        accuracy=statistics.mean(right),
        error=statistics.stdev(right) / math.sqrt(len(right)),
        auc=statistics.mean(areas) if areas else None,
        log_loss=statistics.mean(losses),
        majority=float(shares.max()),
        entropy=float(-(shares * np.log(shares)).sum()),
    )


def _load(con: duckdb.DuckDBPyConnection, table: str, domain: Domain) -> np.ndarray:
    """Make the table `a` of the rows with a known class; return their classes."""
    classes = ", ".join("'" + c.replace("'", "''") + "'" for c in domain.classes)
    con.execute(
        f"CREATE TABLE a AS FROM '{data_folder() / table}.parquet' "
        f'WHERE CAST("{domain.target}" AS VARCHAR) IN ({classes})'
    )
    return np.array(
        [
            row[0]
            for row in con.execute(f'SELECT CAST("{domain.target}" AS VARCHAR) FROM a').fetchall()
        ]
    )


def _folds(labels: np.ndarray) -> Iterator[np.ndarray]:
    """For every test part an array that is 0 on it: each class dealt out evenly, at random."""
    for repeat in range(REPEATS if len(labels) < SMALL else 1):
        random, fold = np.random.default_rng(repeat), np.empty(len(labels), dtype=np.int64)
        dealt = 0  # classes go on where the one before ended, so that folds are of one size
        for label in np.unique(labels):
            mine = random.permutation(np.flatnonzero(labels == label))
            fold[mine] = (dealt + np.arange(len(mine))) % FOLDS
            dealt += len(mine)
        for test in range(FOLDS):
            yield (fold - test) % FOLDS


def _aims(delta: str) -> dict[tuple[str, float], dict[str, str]]:
    """What is known of each table and ε; with a δ the one peer that uses it is DP-EBM."""
    found: dict[tuple[str, float], dict[str, str]] = {}
    for name in ("accuracy.csv", "accuracy_delta.csv")[: 2 if float(delta) else 1]:
        file = data_folder().parent / "targets" / name
        if not file.is_file():
            continue
        with file.open(encoding="utf-8") as lines:
            for row in csv.DictReader(lines):
                known = found.setdefault((row["table"], float(row["epsilon"])), {})
                known.update(row)
                if "dp_ebm_accuracy" in row:
                    known["peer_accuracy"] = row["dp_ebm_accuracy"]
                    known["peer_auc"] = row["dp_ebm_auc"]
    return found


def _row(table: str, recipe: str, epsilon: str, found: Figures, peer: dict[str, str]) -> list[str]:
    def known_figure(key: str) -> str:
        return peer.get(key) or "-"

    return [
        f"{table}, {recipe}",
        epsilon,
        f"{found.accuracy:.3f} ± {found.error:.3f}",
        "-" if found.auc is None else f"{found.auc:.3f}",
        f"{found.log_loss:.3f}",
        f"{found.majority:.3f}",
        f"{found.entropy:.3f}",
        *map(known_figure, ("peer_accuracy", "peer_auc", "target_accuracy", "target_auc")),
        known_figure("random_forest_accuracy"),
    ]


def _summary(reached: Sequence[tuple[Figures, dict[str, str]]]) -> str:
    """How many rows reach what was aimed at, less .01, and how many fall below other figures."""

    def count(pairs: Iterator[bool]) -> str:
        said = list(pairs)
        return f"{sum(said)} of {len(said)}"

    def by(key: str) -> list[tuple[Figures, float]]:
        return [(found, float(peer[key])) for found, peer in reached if peer.get(key)]

    areas = [(f.auc, aim) for f, aim in by("target_auc") if f.auc is not None]
    beaten = [
        f.accuracy >= float(peer["dp_ebm_accuracy"]) and (f.auc or 0) >= float(peer["dp_ebm_auc"])
        for f, peer in reached
        if peer.get("dp_ebm_auc")
    ]
    lines = [
        "Rows that reach the aim minus .01: accuracy "
        + count(f.accuracy >= aim - 0.01 for f, aim in by("target_accuracy"))
        + ", AUC " + count(auc >= aim - 0.01 for auc, aim in areas) + ".",
        "Rows below the best peer's accuracy minus .01: "
        + count(f.accuracy < aim - 0.01 for f, aim in by("peer_accuracy"))
        + "; below the majority class less .01: "
        + count(f.accuracy < f.majority - 0.01 for f, _ in reached)
        + "; with a log loss above that of the class shares plus .01: "
        + count(f.log_loss > f.entropy + 0.01 for f, _ in reached) + ".",
    ]  # fmt: skip
    if beaten:
        lines.append(f"Rows where neither figure is below DP-EBM's: {count(iter(beaten))}.")
    return "\n".join(lines)


def _page(text: str, summary: str, delta: str, file: Path) -> str:
    title = f"Accuracy, δ = {delta}" if float(delta) else "Accuracy"
    given = f"(ε, {delta})" if float(delta) else "pure ε"
    best = (
        "the best peer is DP-EBM, for two classes only"
        if float(delta)
        else "the best peer is diffprivlib, PrivaTree or DP-EBM, each in its best setting"
    )
    words = [f"docs/{file.name}" if word == str(file) else word for word in sys.argv[1:]]
    command = " ".join(["python benchmarks/accuracy.py", *words])
    return (
        f"# {title}\n\nWritten by `{command}`. "
        f"Three stratified folds, dealt three times where there are less than 8,000 rows; {given}, "
        "noise from seeds; mean ± standard error over folds. A guess is the most frequent class, "
        "and the class shares for the log loss. In italics, where there are such rows, peers on "
        "the first three of these folds in one setting: diffprivlib's forest of 10 trees of depth "
        f"5, DP-EBM as it comes, which has δ = 1e-5; {best}, measured elsewhere. The aim is the "
        "best that any model has been seen to reach under that ε, chosen with hindsight in every "
        "row. Without privacy: scikit-learn's random forest of 100 trees.\n\n"
        f"{summary}\n\n![accuracy and AUC over ε]({file.with_suffix('.svg').name})\n\n{text}\n"
    )


if __name__ == "__main__":
    main()
