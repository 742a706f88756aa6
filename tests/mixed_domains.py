"""Domains of numbers and categories for tests of class means."""

from __future__ import annotations

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import DOUBLE, VARCHAR

MIXED = (
    Attribute("number", "numeric", lower=0, upper=100),
    Attribute("grade", "categorical", tuple("abcde"), ordered=True),
    Attribute("two", "categorical", tuple("ab"), nullable=False),
    Attribute("three", "categorical", tuple("abc"), nullable=False),
    Attribute("four", "categorical", tuple("abc"), nullable=True),
    Attribute("many", "categorical", tuple("abcdef"), nullable=True),
)
NAMES = [attribute.name for attribute in MIXED]
LABELS = ("p", "q", "r")
DOMAIN = Domain(MIXED, "label", LABELS).bind(
    {**dict.fromkeys(NAMES, VARCHAR), "number": DOUBLE, "label": VARCHAR}
)


def numbers(classes: int) -> Domain:
    kinds = [Attribute(f"x{i}", "numeric", lower=0, upper=100) for i in range(3)]
    text = Attribute("text", "categorical", tuple("abcdef"))
    return Domain((*kinds, text), "c", tuple(f"c{i}" for i in range(classes)))
