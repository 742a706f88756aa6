"""The SQL of every step, one Jinja template per file, and the only way to render it.

A template prints only integers and `Sql`, text that a Dialect has quoted. A plain string in a
template is an error, and so is an undefined name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Undefined
from jinja2.runtime import LoopContext

from dpforest_duckdb.errors import one_line

TERMS = 100  # in one bracket of a sum: DuckDB allows expressions of at most a thousand levels
_HEADER = re.compile(r"(--.*\n)*\n*")
_QUOTED = re.compile(r"""--.*|'[^']*'|"[^"]*"|`[^`]*`""")  # where no quote is escaped by \\
_REPLACED = re.compile(r"\{(?=[{%#])|\$(?=\{)")  # {{ {% {# of Jinja and ${ of Spark


class Sql(str):
    """SQL text that is safe in a statement: made by a Dialect or by `render`."""

    __slots__ = ()


Ident = Callable[[str], Sql]  # quotes a name, as a Dialect does


@dataclass(frozen=True)
class Column:
    """A column of a SELECT, by its value and its name."""

    value: Sql
    name: Sql


def comment(text: object) -> Sql:
    """Text for a `--` comment, on one line; one that ends in a backslash would go on in Spark."""
    plain = one_line(text)
    ended = f"{plain} " if plain.endswith("\\") else plain
    return Sql(_REPLACED.sub(r"\g<0> ", ended))


def comma(loop: LoopContext) -> Sql:
    """A comma at the end of each turn of a loop but the last."""
    return Sql("" if loop.last else ",")


def join(values: Iterable[object], between: str) -> Sql:
    """Values that a template may print, with a text between them."""
    return Sql(between.join(str(_only_sql(value)) for value in values))


def summed(terms: Sequence[str]) -> Sql:
    """The sum of terms; if there are many, TERMS of them in each bracket."""
    parts = [" + ".join(terms[first : first + TERMS]) for first in range(0, len(terms), TERMS)]
    return Sql(parts[0] if len(parts) == 1 else " + ".join(f"({part})" for part in parts))


def indent(sql: Sql, width: int) -> Sql:
    """SQL with all lines but the first moved to the right by some spaces.

    It stays as it is if that could change a name or a literal, which may have several lines.
    """
    if "\n" not in sql or "\\'" in sql or any("\n" in each for each in _QUOTED.findall(sql)):
        return sql
    return Sql(sql.replace("\n", "\n" + " " * width))


def render(step: str, **values: Any) -> Sql:
    """The statement of a step (the template's name without `.sql`)."""
    return Sql(_environment().get_template(f"{step}.sql").render(**values).strip() + "\n")


def nested(step: str, **values: Any) -> Sql:
    """The statement of a step as a part of another one: see `bracketed`."""
    return bracketed(render(step, **values))


def bracketed(statement: Sql) -> Sql:
    """A statement in brackets, indented, and without its header."""
    body = _HEADER.sub("", statement, count=1).rstrip("\n")
    return Sql(indent(Sql(f"(\n{body}"), 2) + "\n)")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(__name__, "."),
        undefined=StrictUndefined,
        finalize=_only_sql,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
        auto_reload=False,  # looking for changes takes a third of the time to render
    )
    environment.filters.update(comment=comment, comma=comma, indent=indent, join=join)
    return environment


def _only_sql(value: object) -> object:
    if isinstance(value, Undefined | Sql) or type(value) is int:
        return value
    raise TypeError(f"a template may print integers and Sql only, not {type(value).__name__}")
