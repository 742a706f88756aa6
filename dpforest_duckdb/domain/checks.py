"""Compares a domain with the types of a table's columns, and refuses what cannot be right.

Both are declared, so nothing private is compared. Labels that only an ENUM has are not quoted all
the same, because the ENUM may have been made from the rows.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from dpforest_duckdb.domain.attribute import Attribute
from dpforest_duckdb.domain.domain import Domain
from dpforest_duckdb.domain.names import fold
from dpforest_duckdb.domain.types import ColumnType
from dpforest_duckdb.errors import DpforestError, Refusals


def remarks(domain: Domain, columns: Mapping[str, ColumnType]) -> tuple[str, ...]:
    """Sentences about labels that the domain or an ENUM lacks.

    Raises `DpforestError` if the domain misspells a label, if no class is a label, or if dates
    bound a column of numbers, or numbers one of dates: a sentence for each column.
    """
    found = {fold(name): (name, kind) for name, kind in columns.items()}
    label = domain.labels
    sentences, refusals = list[str](), Refusals()
    for attribute in (*domain.attributes, label):
        name, kind = found.get(fold(attribute.column), ("", None))
        if kind is None:
            continue
        with refusals.gathered():
            _refuse_other_bounds(attribute, name, kind)
            if attribute.kind == "categorical" and kind.labels and not attribute.of:
                sentences += _labels(attribute, name, kind.labels, is_target=attribute is label)
    refusals.refuse()
    return tuple(sentences)


def _refuse_other_bounds(attribute: Attribute, name: str, kind: ColumnType) -> None:
    """Raise `DpforestError` for dates as bounds of numbers, or numbers as bounds of dates."""
    limits = (attribute.lower, attribute.upper, *attribute.edges)
    given = [isinstance(limit, dt.date) for limit in limits if limit is not None]
    if attribute.kind != "numeric" or not given:
        return
    if any(given) and kind.family in ("integer", "decimal", "float"):
        raise DpforestError(
            f'Column "{name}" is {kind.base}, but its bounds are dates: write numbers in the '
            "domain, or convert the column."
        )
    if not all(given) and kind.family in ("date", "timestamp"):
        raise DpforestError(
            f'Column "{name}" is {kind.base}, but its bounds are numbers: write dates in the '
            "domain, such as 2020-01-31."
        )


def _labels(
    attribute: Attribute, name: str, labels: tuple[str, ...], *, is_target: bool
) -> Iterator[str]:
    """What the labels of an ENUM and the categories of the domain do not share."""
    missing = [label for label in labels if label not in attribute.values]
    plain = [label.casefold().strip() for label in missing]
    for value in attribute.values:
        if value not in labels:
            close = get_close_matches(value.casefold().strip(), plain, 1, 0.8)
            if close:
                raise DpforestError(
                    f'The domain of "{name}" lists "{value}", but its ENUM type has a label of '
                    "nearly this spelling: correct the domain."
                )
            yield f'The domain of "{name}" lists "{value}", which its ENUM type does not have.'
    if is_target and len(missing) == len(labels):
        raise DpforestError(
            f'No class of the domain is a label of the ENUM column "{name}": no row could be used, '
            "so correct the domain."
        )
    if missing:
        fate = "Rows of these classes are left out" if is_target else "They count as other"
        yield f'The domain of "{name}" does not list all labels of its ENUM type. {fate}.'
