"""A domain from short texts, as the command line takes them: `age=17:90`, `sex=F,M`."""

from __future__ import annotations

import contextlib
import csv
import datetime as dt
import re
from collections.abc import Sequence
from typing import Any

from dpforest_duckdb.domain.domain import Domain
from dpforest_duckdb.domain.file import domain_from_mapping
from dpforest_duckdb.domain.names import fold
from dpforest_duckdb.errors import UsageError

_WHOLE = re.compile(r"[+-]?[0-9]+")
_QUOTED = re.compile(r'\s*"((?:[^"]|"")+)"\s*=(.*)', re.DOTALL)


def domain_from_flags(
    target: str | None,
    numeric: Sequence[str],
    categories: Sequence[str],
    classes: str | None,
) -> Domain:
    """The domain that the options declare.

    Bounds without a decimal point declare whole numbers. Raises `UsageError` for text of another
    form, `DpforestError` for a domain that is not valid.

    >>> domain = domain_from_flags("ill", ["age=0:99"], ["sex=F,M"], "no,yes")
    >>> [attribute.name for attribute in domain.attributes], domain.classes
    (['age', 'sex'], ('no', 'yes'))

    A name with an equals sign is put in double quotes, and a double quote in it is doubled:

    >>> domain_from_flags("ill", ['"k=""v"=0:9'], [], "no,yes").attributes[0].name
    'k="v'
    """
    if not target:
        raise UsageError("Name the column to predict with --target.")
    if not classes:
        raise UsageError(
            f'List the classes of "{target}" with --classes A,B: --numeric, --categories and '
            "--classes replace what the table declares."
        )
    columns = [*map(_numeric, numeric), *map(_categorical, categories)]
    if not columns:
        raise UsageError(
            "Declare an attribute with --numeric NAME=LOW:HIGH or --categories NAME=A,B."
        )
    names = [fold(column["name"]) for column in columns]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f'--numeric and --categories name "{name}" twice: give it once.')
    label = {"name": target, "kind": "categorical", "domain": between_commas("--classes", classes)}
    attributes = [column for column in columns if fold(column["name"]) != fold(target)]
    others = [column for column in columns if fold(column["name"]) == fold(target)]
    if any(column.get("domain") != label["domain"] for column in others):
        raise UsageError(
            f'"{target}" is the column to predict, and --classes lists its values: leave it out of '
            "--numeric and --categories."
        )
    return domain_from_mapping({"target": target, "column": [*attributes, label]})


def _numeric(text: str) -> dict[str, Any]:
    name, bounds = _named("--numeric", text, "NAME=LOW:HIGH, such as age=0:99")
    if "=" in bounds:
        raise UsageError(
            f'--numeric "{text}" has two equals signs: put a name that has one in double quotes.'
        )
    parts = bounds.split(":")
    if len(parts) % 2:  # times of day have colons too, the same number in both bounds
        raise UsageError(f'--numeric "{text}" needs two bounds: write NAME=LOW:HIGH.')
    half = len(parts) // 2
    lower, upper = (_limit(text, ":".join(s).strip()) for s in (parts[:half], parts[half:]))
    return {"name": name, "kind": "numeric", "lower": lower, "upper": upper}


def _categorical(text: str) -> dict[str, Any]:
    name, values = _named("--categories", text, "NAME=A,B, such as sex=F,M")
    return {"name": name, "kind": "categorical", "domain": between_commas("--categories", values)}


def _named(option: str, text: str, form: str) -> tuple[str, str]:
    """A column's name, which may stand in double quotes, and what is declared of it."""
    quoted = _QUOTED.fullmatch(text)
    name, _, rest = text.partition("=")
    if quoted:
        name, rest = quoted[1].replace('""', '"'), quoted[2]
    if not name.strip() or not rest.strip():
        raise UsageError(f'{option} "{text}" is not of the form {form}.')
    return name.strip(), rest


def between_commas(option: str, text: str) -> list[str]:
    """Values between commas; double quotes protect a comma in a value.

    Raises `UsageError`, with the name of the `option`, for an empty value or an open quote.
    """
    try:
        (values,) = csv.reader([text], skipinitialspace=True, strict=True)
    except (csv.Error, ValueError):
        raise UsageError(
            f"{option} has a quote or a line end within a value: check its quotes."
        ) from None
    found = [value.strip() for value in values]
    if not all(found):
        raise UsageError(f"{option} has an empty value: check its commas.")
    return found


def _limit(text: str, part: str) -> int | float | dt.date:
    """A whole number, a number, or a date."""
    if _WHOLE.fullmatch(part):
        return int(part)
    if part.isascii() and "_" not in part:  # float reads 1_000 and other digits too
        with contextlib.suppress(ValueError):
            return float(part)
    try:
        return dt.date.fromisoformat(part) if len(part) == 10 else dt.datetime.fromisoformat(part)
    except ValueError:
        raise UsageError(
            f'--numeric "{text}" has a bound that is no number and no date: write numbers with a '
            "decimal point, as in weight=0.5:200, and dates as 2024-01-31."
        ) from None
