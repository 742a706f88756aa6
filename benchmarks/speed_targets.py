"""The targets for speed in one run, and their table in the docs.

    python benchmarks/speed_targets.py --markdown docs/speed-targets.md   # the page's table
    python benchmarks/speed_targets.py --only scoring

Contenders take turns, each in a process of its own, and the figures are ratios of medians. The page
is changed only between its two comments. It gets the load of the machine meanwhile, which counts
ours too: on two cores it is about 2 if nothing else runs. LightGBM waits for all of its threads, so
other programs slow it more than DuckDB. `--before` names a commit. The parts `small` and `tables`
compare the CPU time of training now and at that commit. Calls in Python take one thread.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
from contenders import LABELS, TABLE, TARGET, Job, Outcome, column_type, make_rows, names
from shared import ROOT, around_part, markdown_table, replace_part, say, table_files
from speed import DRAWING, exponent, run_apart

from dpforest_duckdb.domain.file import domain_toml

BEFORE = "9693775"  # the commit of 21 November 2026 when the targets were set
SMALL, MANY, MOST = 30_000, 1_000_000, 20_000_000  # rows
FIRST, LAST = "<!-- written by benchmarks/speed_targets.py -->", "<!-- end -->"
CALLS = """
import os, resource, sys, tempfile
from pathlib import Path
os.environ["OPENBLAS_NUM_THREADS"] = "1"
import duckdb
from dpforest_duckdb import train
def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
path, domain, calls, epsilon, delta = sys.argv[1:]
con = duckdb.connect(path, config={"threads": 1})
for _ in range(int(calls)):
    with tempfile.TemporaryDirectory() as folder:
        given = {"domain": domain, "privacy_unit": "row", "ledger": Path(folder) / "ledger"}
        start = cpu()
        train(con, "rows", epsilon=epsilon, delta=delta, **given)
        print(cpu() - start)
    con.execute("COMMENT ON TABLE rows IS NULL")
"""
GUARANTEES = (("0.1", "0"), ("1", "0"), ("1", "1e-5"))  # the ε and δ at which tables are trained
MOST_OF_BEFORE = 1.5  # times the CPU of the earlier commit


@dataclass
class Run:
    """One run of this benchmark, with the page's table and the list below it so far."""

    folder: Path
    turns: int
    before: str
    rows: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def then(self) -> str:
        """The earlier code, in words."""
        return "21 November" if self.before == BEFORE else f"commit {self.before}"

    def add(self, target: str, most: float, found: float, more: str = "") -> None:
        self.rows.append(
            [target, f"{most:g}", f"{found:.2f}{more}", "yes" if found <= most else "no"]
        )
        say(" | ".join(self.rows[-1]))

    def table(self, rows: int, *, mixed: bool = True) -> Path:
        path = self.folder / f"{rows}-{mixed}.duckdb"
        if not path.exists():
            make_rows(path, rows, mixed=mixed)
        return path

    def measured(
        self, path: Path, jobs: Sequence[tuple[str, int]]
    ) -> dict[tuple[str, int], list[Outcome]]:
        """Contenders with their trees, taking turns."""
        found: dict[tuple[str, int], list[Outcome]] = {job: [] for job in jobs}
        for _ in range(self.turns):
            for name, trees in jobs:
                mixed = path.stem.endswith("True")
                outcome = run_apart(Job(name, str(path), trees=trees, mixed=mixed))
                if outcome.failed:
                    sys.exit(outcome.failed)
                found[name, trees].append(outcome)
                say(f"{path.stem} {name}, {trees}: {outcome.seconds:.2f} s")
        return found


def seconds(outcomes: Sequence[Outcome]) -> float:
    return statistics.median(outcome.seconds for outcome in outcomes)


def default(run: Run) -> None:
    """`auto` beside others, and how its time grows with rows."""
    auto, delta, lightgbm, ebm = (
        (name, 1) for name in ("auto", "auto, δ = 1e-5", "LightGBM, boosted", "DP-EBM")
    )
    found = run.measured(run.table(MANY), (auto, delta, lightgbm, ebm))
    for peer, most in ((ebm, 0.3), (lightgbm, 1.0)):
        for ours in (auto, delta):
            ratio = seconds(found[ours]) / seconds(found[peer])
            run.add(f"{ours[0]}, 1 M mixed rows, divided by {peer[0]}", most, ratio)
    path = run.table(MOST)
    large = run_apart(Job("auto", str(path), mixed=True))
    path.unlink()
    power = exponent([(MANY, seconds(found[auto])), (MOST, large.seconds)])
    more = f"; {large.seconds:.0f} s and {large.peak / 1e6:.0f} MB at 20 M"
    run.add("power of rows by which the time of auto grows, 1 M to 20 M", 1.1, power, more)


def forests(run: Run) -> None:
    """Disjoint trees, and trees that all see all rows."""
    for rows in (MANY, 5 * MANY):
        for mixed in (True, False):
            path = run.table(rows, mixed=mixed)
            kind = f"{rows // MANY} M {'mixed rows' if mixed else 'rows of integers'}"
            one, hundred = ("ours", 1), ("ours", 100)
            found = run.measured(path, (one, hundred))
            ratio = seconds(found[hundred]) / seconds(found[one])
            run.add(f"a hundred disjoint trees, divided by one, {kind}", 1.5, ratio)
            share = statistics.median(
                (o.phases["noise"] + o.phases["select"]) / o.seconds for o in found[hundred]
            )
            run.add(f"noise and selection, part of the hundred trees' time, {kind}", DRAWING, share)
            if rows > MANY:
                ours, peer = ("ours, all rows", 10), ("LightGBM", 10)
                found = run.measured(path, (ours, peer))
                ratio = seconds(found[ours]) / seconds(found[peer])
                run.add(f"ten trees on all rows, divided by LightGBM's forest, {kind}", 0.8, ratio)
                path.unlink()


def scoring(run: Run) -> None:
    """`score` of a model of `auto`, beside fetching the rows and LightGBM's `predict`."""
    path = run.table(MANY)
    ours, peer = ("auto, score", 1), ("LightGBM, predict", 1)
    found = run.measured(path, (ours, peer))
    ratio = seconds(found[ours]) / seconds(found[peer])
    run.add(
        "scoring a model of auto, 1 M rows, divided by fetch and LightGBM's predict", 0.6, ratio
    )


def small(run: Run) -> None:
    """CPU seconds of training a small table, now and before."""
    path, domain = run.table(SMALL), run.folder / "domain.toml"
    domain.write_text(domain_toml(_declared()), encoding="utf-8")
    trees = _packages(run)
    if trees is None:
        return
    process, later = ({tree: [] for tree in trees} for _ in range(2))  # type: tuple[dict[Path, list[float]], dict[Path, list[float]]]
    for _ in range(run.turns):
        for tree in trees:
            process[tree].append(_process(path, domain, tree))
            later[tree].append(_later_calls(5, path, domain, tree))
    for title, cpu in (("a process", process), ("later calls in Python", later)):
        found, old = (statistics.median(cpu[tree]) for tree in trees)
        more = f"; {found:.2f} s"
        run.add(
            f"training 30,000 rows, CPU of {title}, divided by {run.then}", 0.5, found / old, more
        )


def tables(run: Run) -> None:
    """CPU seconds of training each table of the accuracy benchmark, now and before.

    They are measured in two ways: later calls in Python, and `dpforest train`, with its start.
    """
    trees, files = _packages(run), table_files()
    if trees is None:
        return
    for name, file in files.items():
        with duckdb.connect(str(run.folder / f"{name}.duckdb")) as con:
            con.execute(f"CREATE TABLE {TABLE} AS FROM '{file}'")
    for epsilon, delta in GUARANTEES:
        for way, measure in (("later calls in Python", _later_of_two), ("a process", _process)):
            case = f"ε = {epsilon}, δ = {delta}, {way}"
            found: list[tuple[float, str]] = []  # the ratio, and what it is of
            for name, file in files.items():
                path, domain = run.folder / f"{name}.duckdb", file.with_suffix(".toml")
                now, before = (measure(path, domain, tree, epsilon, delta) for tree in trees)
                found.append((now / before, f"{name} {now / before:.1f} ({now:.2f} s)"))
                say(f"{case}: {found[-1][1]}")
            _add_tables(run, case, sorted(found, reverse=True))


def _add_tables(run: Run, case: str, found: Sequence[tuple[float, str]]) -> None:
    """Add the largest of the ratios, and list those that are too large."""
    over = [text for ratio, text in found if ratio > MOST_OF_BEFORE]
    run.add(
        f"training, {case}: CPU divided by {run.then}, the largest of {len(found)} tables",
        MOST_OF_BEFORE,
        found[0][0],
    )
    middle = statistics.geometric_mean(ratio for ratio, _ in found)
    above = f" Above {MOST_OF_BEFORE}: {', '.join(over)}." if over else ""
    run.notes.append(
        f"- {case}: the geometric mean of the {len(found)} ratios is {middle:.2f}.{above}"
    )


def _declared() -> dict[str, object]:
    """The domain of the benchmark's mixed columns, as a domain file holds it."""
    columns: list[dict[str, object]] = []
    for number, name in enumerate(names(14)):
        kind = column_type(number, mixed=True)
        one: dict[str, object] = {"name": name, "nullable": False}
        if kind in ("INTEGER", "DOUBLE"):
            upper = 99 if kind == "INTEGER" else 1
            one |= {"kind": "numeric", "lower": 0, "upper": upper, "bins": 16}
        else:
            one |= {"kind": "categorical", "domain": list(LABELS)}
        columns.append(one)
    columns.append({"name": TARGET, "kind": "categorical", "domain": ["0", "1"]})
    return {"target": TARGET, "column": columns}


def _packages(run: Run) -> tuple[Path, Path] | None:
    """The folders of the package as it is now and before; None if there is no such commit."""
    now, before = (_package(run.folder, commit) for commit in ("", run.before))
    if now is None or before is None:
        say(f"There is no commit {run.before} here: nothing is compared with it.")
        return None
    return now, before


def _package(folder: Path, commit: str) -> Path | None:
    """A folder from which Python imports the package as it is now, or as a commit has it."""
    source, made = ROOT, folder / (commit or "now")
    if made.exists():
        return made
    if commit:
        source = folder / f"source-{commit}"
        source.mkdir(exist_ok=True)
        packed = subprocess.run(
            ["git", "-C", str(ROOT), "archive", commit], capture_output=True, check=False
        )
        if packed.returncode:
            return None
        subprocess.run(["tar", "-x", "-C", str(source)], input=packed.stdout, check=True)
    shutil.copytree(source / "dpforest_duckdb", made / "dpforest_duckdb")
    for part in ("cli", "sql"):
        shutil.copytree(source / part, made / "dpforest_duckdb" / part)
    return made


def _python(folder: Path, tree: Path, *words: str) -> str:
    """What Python prints with the package of a folder."""
    done = subprocess.run(
        [sys.executable, *words],
        env={**os.environ, "PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout


def _process(rows: Path, domain: Path, tree: Path, epsilon: str = "1", delta: str = "0") -> float:
    """CPU seconds of `dpforest train`."""
    folder = rows.parent
    path = folder / "process.duckdb"
    shutil.copy(rows, path)
    words = ["train", "--db", str(path), "--table", TABLE, "--domain", str(domain)]
    words += ["--epsilon", epsilon, "--delta", delta, "--privacy-unit", "row"]
    words += ["--name", "m", "--ledger", str(folder / "ledger")]
    (folder / "ledger").unlink(missing_ok=True)
    before = os.times()
    _python(folder, tree, "-c", "from dpforest_duckdb.cli import app; app()", *words)
    after = os.times()
    return sum(after[2:4]) - sum(before[2:4])


def _later_calls(
    calls: int, rows: Path, domain: Path, tree: Path, epsilon: str = "1", delta: str = "0"
) -> float:
    """CPU seconds of a call of `train` after the first in one process, the median."""
    words = [str(rows), str(domain), str(calls), epsilon, delta]
    _, *later = map(float, _python(rows.parent, tree, "-c", CALLS, *words).split())
    return statistics.median(later)


def _later_of_two(rows: Path, domain: Path, tree: Path, epsilon: str, delta: str) -> float:
    return _later_calls(2, rows, domain, tree, epsilon, delta)


class Load(threading.Thread):
    """The mean load of the machine while it runs."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.seen, self._ended = [os.getloadavg()[0]], threading.Event()

    def run(self) -> None:
        while not self._ended.wait(5):
            self.seen.append(os.getloadavg()[0])

    def described(self) -> str:
        self._ended.set()
        self.join()
        mean = statistics.mean(self.seen)
        return (
            f"load {self.seen[0]:.1f} before, {mean:.1f} on average, {max(self.seen):.1f} at most"
        )


PARTS: dict[str, Callable[[Run], None]] = {
    "default": default,
    "forests": forests,
    "small": small,
    "tables": tables,
    "scoring": scoring,
}


def main() -> None:
    """Measure, print the table, and write it into the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--before", default=BEFORE, help="commit to compare training with")
    parser.add_argument("--markdown", type=Path, help="the page whose table is replaced")
    given = parser.parse_args()
    if given.markdown:
        around_part(given.markdown, FIRST, LAST)
    load = Load()
    load.start()
    with tempfile.TemporaryDirectory(prefix="speed-targets-") as folder:
        run = Run(Path(folder), given.turns, given.before)
        for part in given.only:
            PARTS[part](run)
    shown = "" if len(given.only) == len(PARTS) else f" --only {' '.join(given.only)}"
    shown += "" if given.before == BEFORE else f" --before {given.before}"
    turns = "one turn" if given.turns == 1 else f"medians of {given.turns} turns"
    text = (
        f"By `python benchmarks/speed_targets.py --turns {given.turns}{shown}`: {os.cpu_count()} "
        f"cores, {platform.machine()}, DuckDB {duckdb.__version__}; {turns}; "
        f"{load.described()}.\n\n"
        + markdown_table(["target", "at most", "measured", "reached"], run.rows)
    )
    if run.notes:
        text += f"\n\nTraining divided by {run.then}, table by table:\n\n" + "\n".join(run.notes)
    print(text)
    if given.markdown:
        replace_part(given.markdown, text, FIRST, LAST)


if __name__ == "__main__":
    main()
