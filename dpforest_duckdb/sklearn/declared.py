"""The domain of an estimator: what its parameters declare, and what is taken from the data.

What is taken from the data is not public, so a model that depends on it is not private.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from dpforest_duckdb.domain import Domain
from dpforest_duckdb.domain.file import domain_from_mapping, load_domain
from dpforest_duckdb.domain.names import hint
from dpforest_duckdb.domain.types import column_type
from dpforest_duckdb.engine.columns.written_values import plain_text
from dpforest_duckdb.engine.sources.frames import Frame
from dpforest_duckdb.privacy.unit import PrivacyUnit
from dpforest_duckdb.scoring.dialects.duckdb import DUCKDB
from dpforest_duckdb.sklearn.inputs import Columns
from dpforest_duckdb.sql import Sql, render

_NUMBERS = ("integer", "decimal", "float", "boolean", "date", "timestamp")


@dataclass(frozen=True)
class Declared:
    """What the parameters declare of the columns of X, of which `unit` has at most one."""

    columns: Columns
    domain: Any
    bounds: Any
    categories: Any
    unit: PrivacyUnit

    def whole(self) -> Domain | None:
        """The domain, if it is given whole; else None.

        Raises `ValueError` for what is no domain, or if bounds or categories are given too.
        """
        if self.domain is None:
            return None
        if self.bounds is not None or self.categories is not None:
            raise ValueError("Give domain, or bounds and categories, not both.")
        if isinstance(self.domain, Domain):
            return self.domain
        if isinstance(self.domain, str | Path):
            return load_domain(self.domain)
        raise ValueError("domain must be a Domain or the path of a domain file.")

    def features(self) -> dict[str, dict[str, Any]]:
        """The columns that are declared, each as the keys of a [[column]].

        Raises `ValueError` for bounds and categories of the wrong form.
        """
        found: dict[str, dict[str, Any]] = {}
        for name, values in self._by_name("categories", self.categories).items():
            refusal = ValueError(f'categories of "{name}" must be a list of one or more values.')
            if isinstance(values, str) or not isinstance(values, Iterable):
                raise refusal
            listed = [_plain(value) for value in values]
            if not listed:
                raise refusal
            if None in listed:
                raise ValueError(
                    f'categories of "{name}" hold a missing value: leave it out, because every '
                    "column may have missing values."
                )
            found[name] = {"kind": "categorical", "domain": listed}
        for name, pair in self._pairs().items():
            if name in found:
                raise ValueError(f'Column "{name}" has both bounds and categories: keep one.')
            lower, upper = map(_fractional, pair)
            if any(end is None or end in (math.inf, -math.inf) for end in (lower, upper)):
                raise ValueError(f'bounds of column "{name}" must be finite numbers, or dates.')
            found[name] = {"kind": "numeric", "lower": lower, "upper": upper}
        return found

    def _pairs(self) -> dict[str, Sequence[Any]]:
        """Lower and upper bound of each column that has them."""
        refusal = ValueError(
            "bounds must be a pair (lower, upper) of numbers or of one list each for all columns, "
            "or a dictionary of pairs by column."
        )
        if isinstance(self.bounds, Mapping):
            pairs = self._by_name("bounds", self.bounds)
            if any(isinstance(p, str) or np.ndim(p) != 1 or len(p) != 2 for p in pairs.values()):
                raise refusal
            return pairs
        if self.bounds is None:
            return {}
        categorical = self._by_name("categories", self.categories)
        names = [n for n in self.columns.names if n not in (*categorical, *self.unit.columns)]
        try:
            lower, upper = self.bounds
            lowers, uppers = (np.broadcast_to(side, len(names)).tolist() for side in (lower, upper))
        except (TypeError, ValueError):
            raise refusal from None
        if any(np.ndim(side) and len(side) != len(names) for side in (lower, upper)):
            raise refusal
        return dict(zip(names, zip(lowers, uppers, strict=True), strict=True))

    def _by_name(self, parameter: str, given: Any) -> dict[str, Any]:
        """A dictionary by column; a number stands for the column at that place."""
        if given is None:
            return {}
        if not isinstance(given, Mapping):
            raise ValueError(f"{parameter} must be a dictionary by column.")
        names, found = self.columns.names, {}
        for given_key, value in given.items():
            key = self.columns.numbered(given_key)
            if key not in names:
                near = hint(str(key), map(str, names))
                raise ValueError(
                    f'{parameter} names the column "{key}"{near}, which X does not have.'
                )
            found[str(key)] = value
        return found


def missing(declared: Declared, known: Mapping[str, Any]) -> list[str]:
    """The columns of X without bounds or categories."""
    return [n for n in declared.columns.names if n not in (*known, *declared.unit.columns)]


def read_off(frame: Frame, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Bounds and categories of columns, from their values: not private.

    Numbers, dates and text that is all numbers get bounds, anything else gets categories, truth
    values too.
    """
    families = {name: column_type(frame.columns[name]).family for name in names}
    columns = [_Read.of(name, family) for name, family in families.items()]
    with frame.reading() as (place, view, _):
        sql = render("read_bounds", columns=columns, rows=view)
        (row,) = place.run(sql, step="read_bounds")
    found = {}
    for (name, family), figures in zip(families.items(), row, strict=True):
        low = figures["low"]
        numeric = family in _NUMBERS or (figures["all_numbers"] and low is not None)
        numeric = numeric and family != "boolean"
        found[name] = _bounds(low, figures["high"]) if numeric else _categories(figures["values"])
    return found


@dataclass(frozen=True)
class _Read:
    """A column whose bounds are read: its name, it as a `number`, and what must be `finite`."""

    name: Sql
    number: Sql
    finite: Sql

    @classmethod
    def of(cls, column: str, family: str) -> _Read:
        name = DUCKDB.ident(column)
        if family in ("date", "timestamp"):
            return cls(name, name, name)
        plain = family in ("integer", "float", "boolean")
        number = name if plain else Sql(f"TRY_CAST({name} AS DOUBLE)")
        return cls(name, number, Sql(f"CAST({number} AS DOUBLE)"))


def _bounds(low: Any, high: Any) -> dict[str, Any]:
    """Bounds that were read off a column, moved apart if they are equal; 0 and 1 if it is empty."""
    if low is None:
        low, high = 0.0, 1.0
    if isinstance(low, int | float) and low == high:
        high = low + max(1, abs(low)) if isinstance(low, int) else low + max(1.0, abs(low))
    if low == high:
        if low.year < dt.MAXYEAR:
            high = low.replace(year=low.year + 1, day=1)
        else:
            low = low.replace(year=low.year - 1, day=1)
    return {"kind": "numeric", "lower": low, "upper": high}


def _categories(values: list[str] | None) -> dict[str, Any]:
    found = {plain for value in values or () if (plain := plain_text(value)) is not None}
    return {"kind": "categorical", "domain": sorted(found or ["missing"])}


def assembled(
    columns: Mapping[str, Mapping[str, Any]],
    names: Sequence[str],
    target: str,
    classes: Sequence[str],
) -> Domain:
    """The domain of columns, in the order of X."""
    found = [{"name": name, **columns[name]} for name in names if name in columns]
    label = {"name": target, "kind": "categorical", "domain": list(classes)}
    return domain_from_mapping({"target": target, "column": [*found, label]})


def _fractional(bound: Any) -> Any:
    """A bound of numbers that may have fractions, also if it is written without: (0, 1) is usual
    for numbers between 0 and 1. The type of the column cannot tell: one missing value changes it.
    """
    plain = _plain(bound)
    try:
        return float(plain) if isinstance(plain, int | Decimal | Fraction) else plain
    except OverflowError:  # a whole number beyond all floating-point numbers
        return math.inf


def _plain(value: Any) -> Any:
    """A NumPy number as Python's."""
    plain = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(plain, float) and math.isnan(plain) else plain
