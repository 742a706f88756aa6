"""What the benchmarks share: where the data is, results that are kept, and tables of text."""

from __future__ import annotations

import ast
import hashlib
import json
import math
import os
import shlex
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
UNUSED_IN_MEMORY = ("audit", "engine", "ledger", "report", "sklearn")  # folders of the package
IN_MEMORY = (
    "dpforest_duckdb/engine/base.py",
    "dpforest_duckdb/engine/shared/grids.py",
    "benchmarks/in_memory.py",
    "benchmarks/generated.py",
    "benchmarks/folds.py",
)
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)  # what may have a docstring


def data_folder() -> Path:
    """The folder of benchmark tables: DPFOREST_DATA, or ../shared/data beside the checkout.

    Ends the program with one sentence if there is none.
    """
    named = os.environ.get("DPFOREST_DATA")
    folder = Path(named) if named else ROOT.parent / "shared" / "data"
    if not (folder / "nursery.parquet").is_file():
        sys.exit(
            f"There are no benchmark tables in {folder}: set DPFOREST_DATA to the folder that "
            "holds nursery.parquet, nursery.toml and the others."
        )
    return folder


def table_files() -> dict[str, Path]:
    """The Parquet file of every benchmark table by name: those of `data_folder`, then more.

    More tables are in DPFOREST_MORE_DATA, or in more-data beside the folder of the others; they are
    left out if there are none. A domain file is beside each table.
    """
    named = os.environ.get("DPFOREST_MORE_DATA")
    folders = [data_folder(), Path(named) if named else data_folder().parent / "more-data"]
    found = [path for folder in folders for path in sorted(folder.glob("*.parquet"))]
    return {path.stem: path for path in found if path.stem != "adult_test"}


def code_digest() -> str:
    """Names the code that decides what a forest predicts; comments, docstrings and layout do not
    count.
    """
    package, digest = ROOT / "dpforest_duckdb", hashlib.sha256()
    files = [
        file
        for file in sorted(package.rglob("*.py"))
        if file.relative_to(package).parts[0] not in UNUSED_IN_MEMORY
    ]
    for file in [*files, *(ROOT / name for name in IN_MEMORY)]:
        code = ast.parse(file.read_text(encoding="utf-8"))
        for part in ast.walk(code):
            if isinstance(part, DOCUMENTED) and ast.get_docstring(part) is not None:
                part.body[0] = ast.Pass()
        digest.update(ast.unparse(code).encode())
    return digest.hexdigest()[:10]


class Results:
    """Figures of runs, one JSON object a line in a file, so that a stopped benchmark can go on.

    A run is known by the values of its `keys`; the last line of a run counts. With a `code`, each
    run keeps the digest of the code that made it. Runs of other code with the same values but for
    the `repeats` (the keys of seeds and folds) are a group: it counts if one of its runs, made
    again, has the same figures, and is forgotten if not.
    """

    def __init__(
        self,
        file: Path | None,
        keys: Sequence[str],
        code: str | None = None,
        repeats: Sequence[str] = (),
    ) -> None:
        self._file, self._keys, self._code = file, keys, code
        self._group_keys = [key for key in keys if key not in repeats]
        self._known: dict[tuple[object, ...], Mapping[str, object]] = {}
        self._groups: dict[tuple[object, ...], set[tuple[object, ...]]] = {}
        self._confirmed: dict[tuple[object, ...], object] = {}  # group: by which code
        self._used: dict[tuple[object, ...], object] = {}  # the code of runs that were asked for
        if file is not None and file.is_file():
            *lines, rest = file.read_text(encoding="utf-8").split("\n")
            if rest:  # the program was stopped within a line
                file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            for line in lines:
                self._remember(json.loads(line))

    def _remember(self, run: Mapping[str, object]) -> None:
        key = tuple(run[key] for key in self._keys)
        group = tuple(run[key] for key in self._group_keys)
        before, code = self._known.get(key), run.get("code")
        if before is not None and before.get("code") != code:
            if {**before, "code": code} == run:
                self._confirmed[group] = code
            else:
                for other in list(self._groups[group]):
                    if self._known[other].get("code") != code:
                        self._groups[group].discard(other)
                        del self._known[other]
        self._known[key] = run
        self._groups.setdefault(group, set()).add(key)

    def get(self, *values: object) -> Mapping[str, object] | None:
        """A run by the values of its keys; None if it is not there yet, or is of other code."""
        run = self._known.get(values)
        if run is None or self._code is None:
            return run
        group = tuple(run[key] for key in self._group_keys)
        if run.get("code") != self._code and self._confirmed.get(group) != self._code:
            return None
        self._used[values] = run.get("code")
        return run

    def add(self, run: Mapping[str, object]) -> None:
        if self._code is not None:
            run = {**run, "code": self._code}
            self._used[tuple(run[key] for key in self._keys)] = self._code
        self._remember(run)
        if self._file is not None:
            with self._file.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(run) + "\n")

    def code_note(self) -> str:
        """What a page says of the code that made the runs."""
        text = f"The hash of the measured code is {self._code} "
        text += "(`code_digest` in `benchmarks/shared.py`)."
        earlier = sum(code != self._code for code in self._used.values())
        same = " or ".join(key for key in self._keys if key not in self._group_keys)
        if earlier:
            text += (
                f" {earlier:,} of {len(self._used):,} runs were made with earlier code. They are "
                f"used, because a sample was repeated: of each set of runs that differ only in "
                f"{same}, at least one was made again with this code, and its figures were the "
                "same. So a change of the code that alters only a few runs of a set may not show "
                "here."
            )
        return text


@dataclass
class Runs:
    """The figures of each run by name, in order, in a file that outlives the command."""

    file: Path
    found: dict[str, list[float]]

    @staticmethod
    def read(name: str) -> Runs:
        """Those of benchmarks/results/NAME.json; none if there is no such file yet."""
        file = ROOT / "benchmarks" / "results" / f"{name}.json"
        return Runs(file, json.loads(file.read_text("utf-8")) if file.exists() else {})

    def add(self, key: str, figure: float) -> None:
        """Keep one figure; the file is replaced whole, so that a stop leaves it readable."""
        self.found.setdefault(key, []).append(round(figure, 6))
        lines = (f" {json.dumps(key)}: {json.dumps(self.found[key])}" for key in sorted(self.found))
        self.file.parent.mkdir(exist_ok=True)
        fresh = self.file.with_suffix(".new")
        fresh.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        fresh.replace(self.file)

    def of(self, key: str) -> list[float]:
        """The figures kept under a name."""
        return self.found.get(key, [])


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table whose columns also line up as plain text; the first is flush left."""
    cells = [list(head), *map(list, rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]

    def line(row: Sequence[str]) -> str:
        padded = [
            text.rjust(width) if column else text.ljust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        return f"| {' | '.join(padded)} |"

    rule = [
        "-" * width if not column else "-" * (width - 1) + ":"
        for column, width in enumerate(widths)
    ]
    return "\n".join([line(cells[0]), line(rule), *map(line, cells[1:])])


def standard_error(values: Sequence[float]) -> float:
    """Of the mean of values; 0 of one value, which does not say."""
    return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0


def mean_and_error(values: Sequence[float]) -> str:
    """The mean of values in thousandths, ± its standard error."""
    return f"{1000 * statistics.mean(values):+.1f} ± {1000 * standard_error(values):.1f}"


def command_of(script: str, page: Path | None) -> str:
    """The command that runs now, for the page that it writes, which is named as one of docs/."""
    words = [f"docs/{w.name}" if (w := Path(word)) == page else word for word in sys.argv[1:]]
    return shlex.join(["python", f"benchmarks/{script}", *words])


def write_page(text: str, path: Path | None) -> None:
    """Print a page, and write it to a file if there is a path."""
    print(text)
    if path:
        path.write_text(text, encoding="utf-8")


def around_part(page: Path, first: str, last: str) -> tuple[str, str]:
    """A page up to one comment, and from another on. Ends the program if one is missing."""
    before, found, rest = page.read_text(encoding="utf-8").partition(first)
    _, ended, after = rest.partition(last)
    if not (found and ended):
        sys.exit(f"{page} has no place for the table: it lacks {first} or {last}.")
    return before + first, last + after


def replace_part(page: Path, text: str, first: str, last: str) -> None:
    """Replace what is between two comments of a page. Ends the program if one is missing."""
    before, after = around_part(page, first, last)
    page.write_text(f"{before}\n\n{text}\n\n{after}", encoding="utf-8")


def say(text: str) -> None:
    """Progress, on stderr: stdout is for the figures."""
    print(text, file=sys.stderr, flush=True)
