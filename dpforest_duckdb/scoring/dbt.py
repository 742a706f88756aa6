"""A forest as a dbt model, and the properties file that describes and tests its columns."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from dpforest_duckdb.errors import UsageError
from dpforest_duckdb.scoring.content import ForestContent
from dpforest_duckdb.scoring.dialects import Dialect
from dpforest_duckdb.scoring.dialects.base import JINJA_OPENING
from dpforest_duckdb.sql import Sql

CONFIG = Sql("{{ config(materialized='view') }}\n\n")
_UNREADABLE = re.compile(r"[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")  # to be escaped in YAML
_NAME = re.compile(r"[\w $-]+")


def dbt_source(parts: list[str]) -> Sql:
    """`ref` for the name of a model, `source` for that of a source and its table.

    Raises `UsageError` for a name that dbt could not have.
    """
    if len(parts) > 2 or not all(_NAME.fullmatch(part) for part in parts):
        raise UsageError(
            "For dbt, --from must be MODEL or SOURCE.TABLE, a name alone without ref or source."
        )
    names = ", ".join(f"'{part}'" for part in parts)
    return Sql(f"{{{{ {'ref' if len(parts) == 1 else 'source'}({names}) }}}}")


def dbt_schema(forest: ForestContent, dialect: Dialect, name: str, added: list[str]) -> str:
    """The properties file of a dbt model: its columns `added`, described, with their tests.

    The first is the prediction, the others the probabilities of the classes. Strings are in double
    quotes; the classes are written as SQL, so that their quotes stay. Raises `UsageError` for a
    name that dbt, which takes it from a file, could not have.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            "For dbt, pass --into with the name of the model's file, without .sql: letters, "
            "digits, _, $, - and spaces."
        )
    family = forest.domain.target_type.family
    classes = [str(dialect.literal(label, family)) for label in forest.domain.classes]
    prediction, *shares = added
    accepted = [
        "          - accepted_values:",
        "              arguments:",
        f"                values: [{', '.join(map(_text, classes))}]",
        "                quote: false",
    ]
    lines = [
        "version: 2",
        "",
        "models:",
        f"  - name: {_text(name)}",
        f"    description: {_text(f'Scored by model {forest.name}. {forest.guarantee}')}",
        "    columns:",
        *_column(prediction, f"The most probable class of {forest.domain.target}.", accepted),
    ]
    for label, share in zip(forest.domain.classes, shares, strict=True):
        lines += _column(share, f"The probability of class {label}.")
    return "\n".join(lines) + "\n"


def _column(name: str, description: str, tests: Sequence[str] = ()) -> list[str]:
    """A column, with `not_null` and other tests unless dbt would read Jinja in its name."""
    lines = [
        f"      - name: {_quoted(name)}",
        "        quote: true",
        f"        description: {_text(description)}",
    ]
    if JINJA_OPENING.search(name):
        return lines
    return [*lines, "        data_tests:", "          - not_null", *tests]


def _text(text: str) -> str:
    """A YAML string without Jinja: a space separates its braces."""
    return _quoted(JINJA_OPENING.sub("{ ", text))


def _quoted(text: str) -> str:
    """A YAML string: JSON, where characters beyond U+FFFF must stand as they are."""
    readable = json.dumps(text, ensure_ascii=False)
    return _UNREADABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", readable)
