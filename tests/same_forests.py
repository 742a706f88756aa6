"""What every recipe makes of two fixed tables under a fixed seed, as hashes.

A change that is meant to leave the algorithms alone must leave these hashes alone too. After a
change that is meant to alter forests, write them again and say so in the commit:

    python tests/same_forests.py --write
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

import dpforest_duckdb
from dpforest_duckdb.errors import NotPrivateWarning
from dpforest_duckdb.recipes import RECIPES

RECORDED = Path(__file__).parent / "same_forests.json"

# every figure comes from MD5, so the rows are the same on every machine and in every version
TABLE = """
CREATE TABLE visits AS
SELECT
  CAST(18 + r(i, 1) % 70 AS INTEGER) AS age,
  CAST((r(i, 2) % 4001) / 100.0 AS DOUBLE) AS dose,
  CAST(['low', 'middle', 'high'][1 + (r(i, 3) + r(i, 1) % 2) % 3] AS VARCHAR) AS risk,
  CAST(['a', 'b', 'c', 'd', 'e'][1 + r(i, 4) % 5] AS VARCHAR) AS ward,
  CAST(r(i, 5) % 2 = 0 AS BOOLEAN) AS smoker,
  CAST(r(i, 6) % 9 AS INTEGER) AS visits,
  CAST(['no', 'yes'][1 + CAST((r(i, 1) % 70 > 40) != (r(i, 5) % 4 = 0)
    OR r(i, 7) % 9 = 0 AS INTEGER)] AS VARCHAR) AS ill,
  CAST(['mild', 'grave', 'fatal'][1 + (r(i, 3) % 3 + CAST(r(i, 2) % 4001 > 3000 AS INTEGER)
    + CAST(r(i, 7) % 7 = 0 AS INTEGER)) % 3] AS VARCHAR) AS course
FROM range(6000) AS t(i)
"""
RANDOM = """
CREATE MACRO r(row, n) AS CAST(md5_number_lower(concat(row, '/', n)) % 1000003 AS BIGINT)
"""
COLUMNS = """
[[column]]
name = "age"
kind = "numeric"
lower = 18
upper = 87
[[column]]
name = "dose"
kind = "numeric"
lower = 0
upper = 40
[[column]]
name = "risk"
kind = "categorical"
domain = ["low", "middle", "high"]
ordered = true
[[column]]
name = "ward"
kind = "categorical"
domain = ["a", "b", "c", "d", "e"]
[[column]]
name = "smoker"
kind = "categorical"
domain = [false, true]
[[column]]
name = "visits"
kind = "numeric"
lower = 0
upper = 8
"""
# seconds each with all their trees: a few of them are trained as well, for the default run
MANY_TREES = (
    "diffprf",
    "diffprfs",
    "dprf-gini",
    "dprfmaxtree",
    "hou-forest",
    "rana-forest",
    "tpdprf",
)
TARGETS = {"ill": ["no", "yes"], "course": ["mild", "grave", "fatal"]}


def cases() -> Iterator[tuple[str, dict[str, Any]]]:
    """A name and the options of `train` for every recipe, form and variant."""
    for target in TARGETS:
        for name, recipe in RECIPES.items():
            for published, form in ((False, recipe), (True, recipe.published)):
                if form is None:
                    continue
                for variant in ("", *form.variants):
                    full = f"{name}:{variant}" if variant else name
                    label = f"{full}{' as published' if published else ''}, {target}, pure"
                    yield label, {"recipe": full, "as_published": published, "target": target}
        for name in MANY_TREES:
            yield f"{name}, {target}, five trees", {"recipe": name, "target": target, "trees": 5}
        for name in ("auto", "boosted"):
            for epsilon in (1, 8):
                yield (
                    f"{name}, {target}, ε = {epsilon} with δ",
                    {"recipe": name, "target": target, "delta": "1e-5", "epsilon": epsilon},
                )
        yield f"auto, {target}, ε = 40", {"recipe": "auto", "target": target, "epsilon": 40}
        for name in ("auto", "dpdf", "smooth-forest"):
            yield (
                f"{name}, {target}, three rows per ward",
                {"recipe": name, "target": target, "privacy_unit": "ward", "rows_per_unit": 900},
            )


def forest_hash(con: duckdb.DuckDBPyConnection, folder: Path, **options: Any) -> str:
    """A digest of everything in a forest's trees, domain and way of voting."""
    target = options["target"]
    domain = folder / f"{target}.toml"
    labels = json.dumps(TARGETS[target])
    domain.write_text(
        f'target = "{target}"\n{COLUMNS}\n[[column]]\nname = "{target}"\n'
        f'kind = "categorical"\ndomain = {labels}\n',
        encoding="utf-8",
    )
    settings = {"epsilon": 1, "seed": 11, "ledger": folder / "ledger", **options}
    with warnings.catch_warnings(action="ignore", category=NotPrivateWarning):
        try:
            forest = dpforest_duckdb.train(con, "visits", domain=domain, **settings)
        except dpforest_duckdb.DpforestError as error:
            return f"refused: {type(error).__name__}"
    digest = hashlib.sha256(f"{forest.link} {forest.voting}".encode())
    for attribute in forest.domain.attributes:
        digest.update(f"{attribute.name} {attribute.edges} {attribute.values}".encode())
    for tree in forest.trees:
        for array in (tree.kind, tree.attribute, tree.cell, tree.first, tree.counts, tree.votes):
            digest.update(b"none" if array is None else np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def prepared_connection() -> duckdb.DuckDBPyConnection:
    """A database in memory that holds the table."""
    con = duckdb.connect()
    con.execute(RANDOM)
    con.execute(TABLE)
    con.execute("DROP MACRO r")
    return con


def main() -> None:
    """Print every hash; with --write, record them."""
    with tempfile.TemporaryDirectory() as folder, prepared_connection() as con:
        found = {name: forest_hash(con, Path(folder), **options) for name, options in cases()}
    if "--write" in sys.argv[1:]:
        RECORDED.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print(json.dumps(found, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
