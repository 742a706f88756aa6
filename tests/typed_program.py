"""A program of a user, to be checked by `mypy --strict` beside the installed package.

It is never run. Lines that must not pass have a comment for mypy, which refuses a needless one.
"""

from __future__ import annotations

import datetime as dt
import warnings
from decimal import Decimal
from pathlib import Path

import duckdb

import dpforest_duckdb as dp
from dpforest_duckdb import Attribute, Domain, Forest
from dpforest_duckdb.sklearn import DPForestClassifier


def domain() -> Domain:
    """With lists, and numbers and dates as bounds."""
    return Domain(
        attributes=[
            Attribute("age", "numeric", lower=0, upper=120, bins=20),
            Attribute("income", "numeric", lower=Decimal("0.5"), upper=1e6, scale="log"),
            Attribute("since", "numeric", edges=[dt.date(2020, 1, 1), dt.date(2021, 1, 1)]),
            Attribute("city", "categorical", ["Ulm", "Bern"], nullable=False),
        ],
        target="repaid",
        classes=["no", "yes"],
        privacy_unit="customer",
    )


def wrong() -> None:
    Attribute("age", "number")  # type: ignore[arg-type]
    Attribute("age", "numeric", lower="zero")  # type: ignore[arg-type]
    Domain([], "repaid", classes=2)  # type: ignore[arg-type]
    DPForestClassifier(epsilon=[1])  # type: ignore[arg-type]


def main(path: Path) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dp.errors.PublicFactWarning)
        with duckdb.connect(str(path)) as con:
            forest: Forest = dp.train(con, "loans", domain=domain(), epsilon="0.5", delta=1e-6)
            first: int = forest.trees[0].nodes
            shares = forest.probabilities(forest.votes([{"age": 30}]))
            scored: duckdb.DuckDBPyRelation = forest.predict(con, "new_loans")
            found = dp.evaluate(con, forest, "held_out", epsilon=Decimal("0.1"))
            sql: str = forest.to_sql("new_loans", form="view", dialect="postgresql")
    accuracy: float | None = found.accuracy
    forest.save(path.with_suffix(".json"))
    try:
        dp.load_forest(path.with_suffix(".json"))
    except dp.UsageError as error:
        return str(error)
    return f"{sql} {first} {shares.shape} {accuracy} {scored.columns}"
