"""Training time and memory: against the bare counts, LightGBM and scikit-learn, all in one run.

    python benchmarks/speed.py                                  # 1 M and 5 M rows, 3 runs
    python benchmarks/speed.py --rows 1000000 --runs 5 --markdown docs/speed.md
    python benchmarks/speed.py --out-of-core                    # a table ten times the memory limit

Every contender runs in a process of its own, and the contenders take turns, so that a busy machine
slows all of them; figures are medians. LightGBM and scikit-learn include the fetch out of DuckDB.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import duckdb
from contenders import CONTENDERS, TREES, Job, Outcome, make_rows
from shared import markdown_table, say

ATTRIBUTES = 14
DEPTH = 6
TURNS = tuple(CONTENDERS)
PHASES = (
    "encode", "count_classes", "count_leaves", "route", "noise", "select",
    "housekeeping", "other Python", "fetch", "fit",
)  # fmt: skip
LIMITS = (400,)  # MB

Measured = dict[str, list[Outcome]]


def run_apart(job: Job) -> Outcome:
    """Run a contender in a process of its own."""
    script = Path(__file__).with_name("contenders.py")
    done = subprocess.run(
        [sys.executable, str(script), json.dumps(asdict(job))],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return Outcome(failed=f"{job.contender} died: {last}")
    return Outcome(**json.loads(done.stdout.splitlines()[-1]))


def measure(rows: int, runs: int, folder: Path) -> Measured:
    """All contenders on a table of `rows`, taking turns."""
    database = folder / f"{rows}.duckdb"
    make_rows(database, rows, ATTRIBUTES)
    job = Job("", str(database), ATTRIBUTES, DEPTH)
    measured: Measured = {name: [] for name in TURNS}
    for turn in range(runs):
        for name in TURNS:
            grows = name in ("one tree", "bare counts")
            forest = str(folder / "forest.json") if grows else ""
            outcome = run_apart(replace(job, contender=name, forest=forest))
            if outcome.failed:
                sys.exit(outcome.failed)
            measured[name].append(outcome)
            say(f"{rows:,} rows, run {turn + 1}: {name} {outcome.seconds:.2f} s")
    database.unlink()
    return measured


def seconds(measured: Measured, name: str) -> float:
    return statistics.median(outcome.seconds for outcome in measured[name])


def ratio(measured: Measured, name: str, other: str) -> float:
    """The median of the ratios turn by turn."""
    return statistics.median(
        one.seconds / two.seconds for one, two in zip(measured[name], measured[other], strict=True)
    )


def phase_table(measured: Measured) -> str:
    """Median seconds by phase, whole and peak memory."""
    found = [p for p in PHASES if any(p in o[0].phases for o in measured.values())]
    rows = []
    for name, outcomes in measured.items():
        medians = [
            f"{statistics.median(o.phases[phase] for o in outcomes):.2f}"
            if phase in outcomes[0].phases
            else ""
            for phase in found
        ]
        peak = statistics.median(outcome.peak for outcome in outcomes) / 1e6
        rows.append([name, f"{seconds(measured, name):.2f}", *medians, f"{peak:.0f}"])
    return markdown_table(["seconds", "whole", *found, "peak MB"], rows)


def ratio_table(measured: Measured) -> str:
    """What was asked, beside what was measured."""
    asked = (
        ("one tree", "bare counts", 2.0),
        ("one tree", "LightGBM, 1", 1.0),
        ("one tree", "scikit-learn, 1", 1.0),
        ("disjoint trees", "one tree", 1.3),
        ("all-row trees", "one tree", None),
        ("disjoint trees", "LightGBM, 10", None),
        ("disjoint trees", "scikit-learn, 10", None),
        ("all-row trees", "LightGBM, 10", None),
        ("all-row trees", "scikit-learn, 10", None),
    )
    rows = []
    for name, other, most in asked:
        found = ratio(measured, name, other)
        goal = "" if most is None else f"{most:.1f}, {'met' if found <= most else 'MISSED'}"
        rows.append([f"{name} / {other}", f"{found:.2f}", goal])
    return markdown_table(["ratio of whole times", "measured", "at most"], rows)


def speed_report(sizes: Sequence[int], runs: int) -> str:
    """Time and memory at each size."""
    parts = [
        f"{ATTRIBUTES} integer attributes of 8 values, two classes, depth {DEPTH}, on disk in a "
        f'DuckDB file; medians of {runs} runs. "disjoint trees" and "all-row trees" are '
        f'{TREES} trees. "bare counts" is what any trainer on this engine has to do: the plain '
        "encoding scan, then one GROUP BY of node, attribute and class per attribute and depth, "
        "and one for the leaves. LightGBM (`rf`, 63 % of the rows, as it demands) and scikit-learn "
        "include the fetch out of DuckDB.",
    ]
    with tempfile.TemporaryDirectory(prefix="speed-") as folder:
        for rows in sizes:
            measured = measure(rows, runs, Path(folder))
            parts += [f"## {rows:,} rows", phase_table(measured), ratio_table(measured)]
    return "\n\n".join(parts)


class Spill(threading.Thread):
    """Watches the size of a folder; `peak` is the largest seen."""

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)
        self.folder, self.peak, self._stop_asked = folder, 0, threading.Event()

    def run(self) -> None:
        while not self._stop_asked.wait(0.05):
            self.peak = max(self.peak, size_of(self.folder))

    def stop(self) -> int:
        self._stop_asked.set()
        self.join()
        return self.peak


def size_of(folder: Path) -> int:
    """Bytes of the files below a folder, some of which may vanish meanwhile."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_blocks * 512
        except OSError:
            continue
    return total


def out_of_core_report(limits: Sequence[int], threads: int | None) -> str:
    """Train below each memory limit on a table ten times as large as the largest of them.

    The size is what the rows take encoded (a byte per pair of attributes, three for class and node)
    and stored raw on disk.
    """
    with tempfile.TemporaryDirectory(prefix="speed-") as place:
        folder = Path(place)
        database, spill = folder / "rows.duckdb", folder / "spill"
        spill.mkdir()
        encoded = ATTRIBUTES // 2 + 3
        raw = 6  # bytes of a stored row, near enough to choose how many there are
        rows = 10 * limits[0] * 1_000_000 // (encoded + raw)
        make_rows(database, rows, ATTRIBUTES)
        size = database.stat().st_size + encoded * rows
        say(
            f"{rows:,} rows: {database.stat().st_size / 1e6:.0f} MB stored, {size / 1e6:.0f} in all"
        )
        table = []
        for limit in limits:
            table.append(out_of_core_line(database, spill, limit, size, threads))
            say(" ".join(table[-1]))
    text = (
        f"{rows:,} rows of {ATTRIBUTES} attributes, {size / 1e6:.0f} MB stored and encoded, one "
        f"tree of depth {DEPTH}, {threads or os.cpu_count()} threads. The peak is of the whole "
        "process: interpreter and libraries take about 100 MB of it, and DuckDB's limit "
        "leaves out some of what it allocates."
    )
    head = ["memory limit", "table / limit", "seconds", "peak MB", "spilled MB", "result"]
    return f"{text}\n\n{markdown_table(head, table)}"


def out_of_core_line(
    database: Path, spill: Path, limit: int, size: int, threads: int | None
) -> list[str]:
    """Train once below a memory limit."""
    watch = Spill(spill)
    watch.start()
    outcome = run_apart(
        Job(
            "one tree",
            str(database),
            ATTRIBUTES,
            DEPTH,
            memory_limit=f"{limit}MB",
            temp_dir=str(spill),
            threads=threads,
        )
    )
    return [
        f"{limit} MB",
        f"{size / limit / 1e6:.1f}",
        f"{outcome.seconds:.1f}" if not outcome.failed else "",
        f"{outcome.peak / 1e6:.0f}",
        f"{watch.stop() / 1e6:.0f}",
        outcome.failed or "works",
    ]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", nargs="+", type=int, default=[1_000_000, 5_000_000])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--out-of-core", action="store_true", help="measure below memory limits")
    parser.add_argument("--limits", nargs="+", type=int, default=list(LIMITS), help="in MB")
    parser.add_argument("--threads", type=int, help="for --out-of-core")
    parser.add_argument("--markdown", type=Path, help="write the report to this file too")
    return parser.parse_args()


def main() -> None:
    """Run what was asked for and print the report."""
    given = arguments()
    start = time.perf_counter()
    if given.out_of_core:
        title = "# Training on a table larger than memory"
        body = out_of_core_report(sorted(given.limits, reverse=True), given.threads)
    else:
        title = "# Speed"
        body = speed_report(given.rows, given.runs)
    machine = f"{os.cpu_count()} cores, {platform.machine()}, DuckDB {duckdb.__version__}"
    text = f"{title}\n\nBy `python benchmarks/speed.py`: {machine}.\n\n{body}\n"
    print(text)
    say(f"{time.perf_counter() - start:.0f} s in all")
    if given.markdown:
        given.markdown.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
