"""Training and scoring: time, memory and spill, against the bare counts and peers, in one run.

    python benchmarks/speed.py                                   # all but the largest table
    python benchmarks/speed.py --most 100000000 --markdown docs/speed.md   # some 10 GB of disk
    python benchmarks/speed.py --part train --rows 5000000 --runs 5

Every contender runs in a process of its own, and the contenders take turns, so that a busy machine
slows all of them; figures are medians. LightGBM and scikit-learn include the fetch out of DuckDB.
Peers that need other versions of what we use run in an environment of their own, made at first use.
"""

from __future__ import annotations

import argparse
import json
import math
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
from contenders import ATTRIBUTES, CONTENDERS, Job, Outcome, make_rows
from environments import python_of
from plots import Chart, sheet
from shared import markdown_table, say, write_page

PHASES = (
    "encode", "pairs", "count_classes", "count_leaves", "route", "sum_gradients", "add_votes",
    "noise", "select", "housekeeping", "other Python", "fetch", "fit", "score",
)  # fmt: skip
PARTS = ("train", "grow", "score", "default")
SIZES = (100_000, 1_000_000, 5_000_000, 10_000_000)  # of training beside peers
TRAINED = (  # contender, trees
    ("idle", 1), ("ours", 1), ("bare counts", 1), ("LightGBM", 1), ("scikit-learn", 1),
    ("ours", 10), ("ours", 100), ("ours, all rows", 10), ("LightGBM", 10), ("scikit-learn", 10),
    ("diffprivlib", 10),
)  # fmt: skip
ASKED = (  # of training: over what, on integers at most, on mixed columns at most
    (("ours", 1), ("bare counts", 1), 1.3, None),
    (("ours", 1), ("LightGBM", 1), None, 0.7),
    (("ours", 1), ("scikit-learn", 1), None, 0.25),
    (("ours", 100), ("ours", 1), 1.5, None),
    (("ours", 10), ("LightGBM", 10), None, None),
    (("ours", 10), ("scikit-learn", 10), None, None),
    (("ours", 10), ("diffprivlib", 10), None, None),
    (("ours, all rows", 10), ("LightGBM", 10), None, None),
    (("ours, all rows", 10), ("scikit-learn", 10), None, None),
)
SCORED = ("ours, portable SQL", "ours, --fast", "scikit-learn, predict")
SCORING = ((1, 6), (10, 4), (10, 6), (100, 4), (100, 6))  # trees, depth
DRAWING = 0.1  # the part of the time at a million rows that noise and selection may take
LINEAR = 0.05  # how far the power of rows may be from 1
SLOW_PEER = 1_000_000  # rows beyond which diffprivlib is left out

OURS = ("auto", "auto, δ = 1e-5", "boosted", "boosted, δ = 1e-5")
PEERS = ("LightGBM, boosted", "scikit-learn, boosted", "DP-EBM")
DEFAULT_LIMITS = {"LightGBM, boosted": 1.0, "DP-EBM": 0.3}  # at a million rows, two classes

Key = tuple[str, int]
Measured = dict[Key, list[Outcome]]


def run_apart(job: Job) -> Outcome:
    """Run a contender in a process of its own."""
    ours = job.contender in CONTENDERS
    script = Path(__file__).with_name("contenders.py" if ours else "peers.py")
    done = subprocess.run(
        [
            sys.executable if ours else python_of(job.contender),
            str(script),
            json.dumps(asdict(job)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return Outcome(failed=f"{job.contender} died: {last}")
    return Outcome(**json.loads(done.stdout.splitlines()[-1]))


def label_of(key: Key) -> str:
    name, trees = key
    return name if name in ("idle", "bare counts") else f"{name}, {trees}"


def measure(jobs: dict[Key, Job], runs: int) -> Measured:
    """All contenders, taking turns."""
    measured: Measured = {key: [] for key in jobs}
    for turn in range(runs):
        for key, job in jobs.items():
            outcome = run_apart(job)
            if outcome.failed:
                sys.exit(outcome.failed)
            measured[key].append(outcome)
            say(f"run {turn + 1}: {label_of(key)} {outcome.seconds:.2f} s")
    return measured


def seconds(measured: Measured, key: Key) -> float:
    return statistics.median(outcome.seconds for outcome in measured[key])


def ratio(measured: Measured, one: Key, other: Key) -> float:
    """The median of the ratios turn by turn."""
    return statistics.median(
        a.seconds / b.seconds for a, b in zip(measured[one], measured[other], strict=True)
    )


def phase_table(measured: Measured) -> str:
    """Median seconds by phase, whole and peak memory."""
    found = [p for p in PHASES if any(p in o[0].phases for o in measured.values())]
    rows = []
    for key, outcomes in measured.items():
        medians = [
            f"{statistics.median(o.phases[phase] for o in outcomes):.2f}"
            if phase in outcomes[0].phases
            else ""
            for phase in found
        ]
        peak = statistics.median(outcome.peak for outcome in outcomes) / 1e6
        rows.append([label_of(key), f"{seconds(measured, key):.2f}", *medians, f"{peak:.0f}"])
    return markdown_table(["seconds", "whole", *found, "peak MB"], rows)


def beyond(measured: Measured, one: Key, other: Key) -> str:
    """A sentence on the phases in which a contender needs more time than another, largest first."""

    def spent(key: Key, phase: str) -> float:
        return statistics.median(o.phases.get(phase, 0.0) for o in measured[key])

    more = {phase: spent(one, phase) - spent(other, phase) for phase in PHASES}
    parts = [
        f"{phase} {took:.2f}"
        for phase, took in sorted(more.items(), key=lambda pair: -pair[1])
        if took >= 0.01
    ]
    whole = seconds(measured, one) - seconds(measured, other)
    return f"{label_of(one)} takes {whole:.2f} s more than {label_of(other)}: {', '.join(parts)}."


def ratio_table(measured: Measured, mixed: bool, rows: int) -> str:
    """Targets for five million rows or more, beside the measured ratios."""
    table, lacks = [], []
    for one, other, *limits in ASKED:
        if one not in measured or other not in measured:
            continue
        found, most = ratio(measured, one, other), limits[mixed] if rows >= 5_000_000 else None
        goal = "" if most is None else f"{most:g}, {'met' if found <= most else 'MISSED'}"
        table.append([f"{label_of(one)} / {label_of(other)}", f"{found:.2f}", goal])
        if most is not None and found > most and one[0] == other[0]:
            lacks.append(beyond(measured, one, other))
    text = markdown_table(["ratio of whole times", "measured", "at most"], table)
    return "\n\n".join([text, *lacks])


def drawing(measured: Measured) -> str:
    """A sentence on the part of our time that noise and selection take."""
    parts = []
    for key in (key for key in measured if key[0] == "ours"):
        share = statistics.median(
            (o.phases["noise"] + o.phases["select"]) / o.seconds for o in measured[key]
        )
        goal = "met" if share <= DRAWING else "MISSED"
        parts.append(f"{label_of(key)}: {share:.0%} ({goal})")
    return f"Noise and select should take at most {DRAWING:.0%} of the whole: {'; '.join(parts)}."


def train_report(sizes: Sequence[int], runs: int, folder: Path) -> list[str]:
    """Training at each size, on both kinds of table."""
    parts = [
        "## Training\n\n"
        f'Depth 6, two classes, {ATTRIBUTES} attributes. "ours, 10" and "ours, 100" are trees on '
        'disjoint parts of the rows, "ours, all rows" each on all of them. "bare counts" is what '
        "a plain trainer on this engine does: the plain encoding scan, then one GROUP BY of node, "
        "attribute and class per attribute and depth, and one for the leaves. The times of "
        "LightGBM (`rf` on 63 % of the rows, which it requires), scikit-learn and diffprivlib "
        "include fetching the rows from DuckDB and coding the categories. `count_*`, `encode` and "
        "`route` run in DuckDB."
    ]
    for mixed, kind in ((False, "INTEGER columns"), (True, "VARCHAR, ENUM, INTEGER, DOUBLE")):
        for rows in sizes:
            say(f"train on {rows:,} rows, {kind}")
            database = folder / f"{rows}-{mixed}.duckdb"
            make_rows(database, rows, mixed=mixed)
            made = str(folder / "forest.json")
            jobs = {
                (name, trees): Job(
                    name,
                    str(database),
                    trees=trees,
                    mixed=mixed,
                    forest=made if (name, trees) in (("ours", 1), ("bare counts", 1)) else "",
                )
                for name, trees in TRAINED
                if name != "diffprivlib" or rows <= SLOW_PEER
            }
            if mixed:  # whose bins are not codes yet: nothing that can be counted as it stands
                jobs = {key: job for key, job in jobs.items() if key[0] != "bare counts"}
            measured = measure(jobs, runs if rows < 10_000_000 else 1)
            title = f"### {rows:,} rows, {kind}"
            parts += [title, phase_table(measured), ratio_table(measured, mixed, rows)]
            parts += [drawing(measured)] if rows == 1_000_000 else []
            database.unlink()
    return parts


def default_report(sizes: Sequence[int], runs: int, folder: Path) -> list[str]:
    """What people run first: `auto` with nothing but a budget, beside boosting by others."""
    parts = [
        "## The default\n\n"
        f"`auto` at ε = 1 on {ATTRIBUTES} columns of VARCHAR, ENUM, INTEGER and DOUBLE, pure and "
        "with a δ, beside LightGBM's boosting (a hundred trees), scikit-learn's "
        "HistGradientBoostingClassifier (a hundred rounds) and DP-EBM (ε = 1, δ = 1e-5). "
        "The others' times include fetching the rows and coding the categories. Preparing the run "
        "and the debit in the ledger are counted for `auto` and `boosted`. On these made-up "
        "columns `auto` mostly picks `rooted-tables`, which needs few passes over the rows. Many "
        "real tables are boosted, so `boosted` is timed by name too."
    ]
    for classes in (2, 8):
        for rows in sizes:
            database = folder / f"default-{rows}-{classes}.duckdb"
            make_rows(database, rows, mixed=True, classes=classes)
            jobs = {
                (name, 1): Job(name, str(database), mixed=True, classes=classes)
                for name in (*OURS, *PEERS)
                if name != "DP-EBM" or classes == 2  # it has no more than two
            }
            measured = measure(jobs, runs if rows < 10_000_000 else 1)
            ratios = [
                [
                    f"{ours} / {peer}",
                    f"{ratio(measured, (ours, 1), (peer, 1)):.2f}",
                    _default_limit(ours, peer, rows, classes),
                ]
                for ours in OURS
                for peer in PEERS
                if (peer, 1) in measured
            ]
            head = ["ratio of whole times", "measured", "at most"]
            title = f"### {rows:,} rows, {classes} classes"
            parts += [title, phase_table(measured), markdown_table(head, ratios)]
            database.unlink()
    return parts


def _default_limit(ours: str, peer: str, rows: int, classes: int) -> str:
    aimed = ours.startswith("auto") and (rows, classes) == (1_000_000, 2)
    wanted = DEFAULT_LIMITS.get(peer) if aimed else None
    return "" if wanted is None else f"{wanted:g}"


def exponent(points: Sequence[tuple[float, float]]) -> float:
    """The slope of a straight line through the points' logarithms."""
    x, y = ([math.log(point[axis]) for point in points] for axis in (0, 1))
    middle = [statistics.mean(axis) for axis in (x, y)]
    above = sum((a - middle[0]) * (b - middle[1]) for a, b in zip(x, y, strict=True))
    return above / sum((a - middle[0]) ** 2 for a in x)


def growth(name: str, points: Sequence[tuple[float, float]]) -> str:
    """A sentence on how the time grows with the rows: its exponent, and the constant part."""
    slopes = []
    for least in (1_000_000, 10_000_000):
        large = [point for point in points if point[0] >= least]
        if len(large) > 1:
            power = exponent(large)
            goal = "met" if abs(power - 1) <= LINEAR else "MISSED"
            slopes.append(f"{power:.2f} from {least // 1_000_000} M on ({goal})")
    (rows, low), (more, high) = points[1:3]
    fixed = low - (high - low) / (more - rows) * rows
    return (
        f"{name}: seconds grow with a power of the rows, which should be within {LINEAR} of 1: "
        f"{', '.join(slopes)}. By the line through {rows // 1_000_000} M and "
        f"{more // 1_000_000} M rows, {fixed:.2f} s do not depend on rows."
    )


def grow_report(most: int, runs: int, folder: Path, plot: Path | None) -> list[str]:
    """How the time grows with rows, attributes, depth and trees."""
    sizes = [rows for rows in (100_000, 1_000_000, 10_000_000, 100_000_000) if rows <= most]
    rows_lines: dict[str, list[tuple[float, float]]] = {"one tree": [], "ten disjoint trees": []}
    table = []
    base = folder / "grow.duckdb"
    for rows in sizes:
        make_rows(base, rows, mixed=True)
        for name, trees in (("one tree", 1), ("ten disjoint trees", 10)):
            job = Job("ours", str(base), trees=trees, mixed=True, memory_limit=LARGE_LIMIT)
            times = runs if rows < 10_000_000 else 1
            outcome, spilled = _watched(job, folder, times)
            rows_lines[name].append((rows, outcome.seconds))
            table.append(
                [f"{rows:,}", name, f"{outcome.seconds:.2f}", f"{outcome.peak / 1e6:.0f}",
                 f"{spilled / 1e6:.0f}"]
            )  # fmt: skip
            say(" ".join(table[-1]))
        base.unlink()
    parts = [
        f"## Growth with rows\n\nMixed columns, depth 6, `memory_limit={LARGE_LIMIT}`.",
        markdown_table(["rows", "forest", "seconds", "peak MB", "spilled MB"], table),
    ]
    parts += [growth(name, points) for name, points in rows_lines.items() if len(points) > 2]
    parts += _shapes(folder, runs)
    if plot:
        marks = sizes, (0.1, 1, 10, 100)
        plot.write_text(
            sheet([Chart("seconds over rows", rows_lines, marks)], columns=1), encoding="utf-8"
        )
        parts.append(f"![seconds over rows]({plot.name})")
    return parts


def _shapes(folder: Path, runs: int) -> list[str]:
    """The same rows with other attributes, depths and trees."""
    rows = 1_000_000
    table, measured = [], {}
    for attributes in (7, 14, 28):
        database = folder / "shape.duckdb"
        make_rows(database, rows, attributes)
        shapes = [(1, 6)] if attributes != ATTRIBUTES else [
            (1, 2), (1, 4), (1, 6), (1, 8), (1, 10), (10, 6), (100, 6)
        ]  # fmt: skip
        for trees, depth in shapes:
            job = Job("ours", str(database), attributes, depth, trees)
            found = statistics.median(run_apart(job).seconds for _ in range(runs))
            measured[attributes, trees, depth] = found
            say(f"{attributes} attributes, {trees} trees, depth {depth}: {found:.2f} s")
        database.unlink()
    one = measured[ATTRIBUTES, 1, 6]
    for (attributes, trees, depth), found in measured.items():
        shape = [str(attributes), str(trees), str(depth), f"{2**depth:,}"]
        table.append([*shape, f"{found:.2f}", f"{found / one:.2f}"])
    head = ["attributes", "disjoint trees", "depth", "leaves of a tree", "seconds", "over one tree"]
    return [
        f"## Growth with attributes, depth and trees\n\n{rows:,} rows, INTEGER columns.",
        markdown_table(head, table),
    ]


LARGE_LIMIT = "2GB"


def _watched(job: Job, folder: Path, runs: int) -> tuple[Outcome, int]:
    """The median run, and the most that any of them spilled."""
    spill = folder / "spill"
    spill.mkdir(exist_ok=True)
    watch = Spill(spill)
    watch.start()
    outcomes = [run_apart(replace(job, temp_dir=str(spill))) for _ in range(runs)]
    for outcome in outcomes:
        if outcome.failed:
            sys.exit(outcome.failed)
    outcomes.sort(key=lambda outcome: outcome.seconds)
    return outcomes[len(outcomes) // 2], watch.stop()


def score_report(runs: int, folder: Path) -> list[str]:
    """Scoring a million rows into a table, parsing and planning included."""
    rows, database, table = 1_000_000, folder / "score.duckdb", []
    make_rows(database, rows)
    for trees, depth in SCORING:
        jobs = {(name, trees): Job(name, str(database), depth=depth, trees=trees)
                for name in SCORED}  # fmt: skip
        measured = measure(jobs, runs)
        peer = (SCORED[-1], trees)
        for name in SCORED:
            most = LIMITS.get((name, trees, depth))
            found = ratio(measured, (name, trees), peer)
            goal = "" if most is None else f"{most:g}, {'met' if found <= most else 'MISSED'}"
            size = measured[name, trees][0].kilobytes
            table.append(
                [f"{trees}", f"{depth}", name, f"{seconds(measured, (name, trees)):.2f}",
                 f"{found:.2f}", goal, f"{size:.0f}" if size else ""]
            )  # fmt: skip
    database.unlink()
    head = ["trees", "depth", "way", "seconds", "over scikit-learn", "at most", "KB of SQL"]
    return [
        f"## Scoring\n\n{rows:,} rows of INTEGER columns into a table; scikit-learn fetches the "
        "rows first and keeps its probabilities in Python.",
        markdown_table(head, table),
    ]


LIMITS = {
    ("ours, portable SQL", 10, 6): 1.0,
    ("ours, portable SQL", 100, 6): 3.0,
    ("ours, --fast", 100, 6): 2.0,
}


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


def main() -> None:
    """Run the chosen parts and print the report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--rows", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--most", type=int, default=10_000_000, help="rows of --part grow")
    parser.add_argument("--markdown", type=Path, help="write the report, and its plot, here")
    given = parser.parse_args()
    start = time.perf_counter()
    plot = given.markdown.with_suffix(".svg") if given.markdown else None
    parts = []
    with tempfile.TemporaryDirectory(prefix="speed-") as place:
        folder = Path(place)
        if "train" in given.part:
            parts += train_report(given.rows, given.runs, folder)
        if "grow" in given.part:
            parts += grow_report(given.most, given.runs, folder, plot)
        if "score" in given.part:
            parts += score_report(given.runs, folder)
        if "default" in given.part:
            parts += default_report(given.rows, given.runs, folder)
    machine = f"{os.cpu_count()} cores, {platform.machine()}, DuckDB {duckdb.__version__}"
    sizes = " ".join(map(str, given.rows))
    shown = "" if len(given.part) == len(PARTS) else f"--part {' '.join(given.part)} "
    title = (
        f"# Speed\n\nBy `python benchmarks/speed.py {shown}--rows {sizes} --most {given.most}`: "
        f"{machine}; medians of "
        f"{given.runs} runs, a single run from 10 M rows on."
    )
    text = "\n\n".join([title, *parts]) + "\n"
    write_page(text, given.markdown)
    say(f"{time.perf_counter() - start:.0f} s in all")


if __name__ == "__main__":
    main()
