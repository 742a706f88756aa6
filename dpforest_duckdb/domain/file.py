"""Domain files: TOML in and out."""

from __future__ import annotations

import datetime as dt
import json
import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from dpforest_duckdb.arguments import refuse_wrong_types
from dpforest_duckdb.domain.attribute import Attribute, Groups
from dpforest_duckdb.domain.domain import Domain
from dpforest_duckdb.domain.names import fold, hint, listed, meant
from dpforest_duckdb.domain.types import Number
from dpforest_duckdb.domain.values import category_text
from dpforest_duckdb.errors import DpforestError, Refusals

COLUMN_KEYS = (
    *("name", "kind", "domain", "ordered", "lower", "upper", "bins", "edges", "scale"),
    *("nullable", "taxonomy"),
)

# keys that only columns of one kind have
KEYS_OF_KIND = {
    "categorical": ("domain", "ordered", "taxonomy"),
    "numeric": ("lower", "upper", "bins", "edges", "scale"),
}

FILE_KEYS = ("target", "privacy_unit", "column")

UNIT_HINT = "if a person may have several rows: the column that says whose row it is"

# words that other tools have for keys of a column
OTHER_WORDS = {"values": "domain", "categories": "domain", "min": "lower", "max": "upper"}


def load_domain(path: str | Path, target: str | None = None) -> Domain:
    """Read a domain file (TOML, docs/domain.md); a `target` replaces the one that the file names.

    Raises `DpforestError` for a file that cannot be read or contradicts itself, and for a key that
    seems misspelt: one sentence for each column with an error.
    """
    refuse_wrong_types(locals())
    return _domain_of(_text_of(path), target)


def ignored_keys(path: str | Path, target: str | None = None) -> list[str]:
    """Sentences on the keys of a domain file that nothing reads; `target` and errors are as in
    `load_domain`.
    """
    content = _parsed(_text_of(path))
    of_file = [key for key in content if key not in FILE_KEYS]
    columns = [key for column in content.get("column", []) for key in column]
    of_columns = [key for key in dict.fromkeys(columns) if key not in COLUMN_KEYS]
    unread = [
        f"These keys of {place} have no meaning and are ignored: {listed(keys)}."
        for place, keys in (("the file", of_file), ("columns", of_columns))
        if keys
    ]
    wanted = fold(target or content.get("target", ""))
    without_effect = [
        f'These keys of column "{column["name"]}" have no effect: {listed(keys)}.'
        for column in content.get("column", [])
        if fold(column["name"]) != wanted and (keys := _keys_without_effect(column))
    ]
    return unread + without_effect


def _keys_without_effect(column: Mapping[str, Any]) -> list[str]:
    """The keys that columns of this kind do not have, and a scale beside edges."""
    fitting = KEYS_OF_KIND.get(column.get("kind", ""), ())
    others = [key for keys in KEYS_OF_KIND.values() for key in keys if key not in fitting]
    if column.get("edges"):
        others.append("scale")
    return [key for key in column if key in others]


def _text_of(path: str | Path) -> str:
    """The text of a file, which is TOML."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
        _parsed(text)
    except FileNotFoundError:
        raise DpforestError(f"There is no domain file {path}: check its path.") from None
    except IsADirectoryError:
        raise DpforestError(f"{path} is a folder: name the domain file in it.") from None
    except (OSError, UnicodeDecodeError):
        raise DpforestError(f"The domain file {path} cannot be read as UTF-8 text.") from None
    except tomllib.TOMLDecodeError as error:
        raise DpforestError(
            f"The domain file {path} is not valid TOML: {error} (text needs quotes, and decimals a "
            "point)."
        ) from None
    except ValueError:  # Python reads no whole number of thousands of digits
        raise DpforestError(
            f"The domain file {path} has a number of too many digits: correct it."
        ) from None
    except RecursionError:
        raise DpforestError(
            f"The domain file {path} is nested too deeply: write it as in docs/domain.md."
        ) from None
    return text


@lru_cache(maxsize=2**4)  # a program may train many models on one table
def _domain_of(text: str, target: str | None) -> Domain:
    return domain_from_mapping(_parsed(text), target)


@lru_cache(maxsize=2**4)
def _parsed(text: str) -> Mapping[str, Any]:
    return tomllib.loads(text)


def domain_from_mapping(content: Mapping[str, Any], target: str | None = None) -> Domain:
    """A domain from the keys of a domain file; unknown keys are ignored.

    Raises `DpforestError` for a key that looks like a known one, and for what is missing or wrong.
    """
    tables = [key for key, value in content.items() if _is_list_of_tables(value)]
    refuse_misspelt("The domain", tables, ("column",), {"columns": "column"})
    refuse_misspelt("The domain", content, ("target", "privacy_unit"), {"unit": "privacy_unit"})
    if "rows_per_unit" in content:
        raise DpforestError(
            "The domain has the key rows_per_unit, which belongs to a run: delete it and pass "
            "--rows-per-unit."
        )
    wanted = target or content.get("target")
    if not isinstance(wanted, str) or not wanted:
        raise DpforestError('The domain names no target: add target = "…" or pass --target.')
    columns = content.get("column", ())
    if not _is_list_of_tables(columns):
        raise DpforestError("The domain has no [[column]] tables: add one per attribute.")
    unit = _privacy_unit(content)
    attributes, identifiers, targets, other_kinds = [], [], [], {}
    refusals = Refusals()
    for column in columns:
        name = column.get("name")
        if not isinstance(name, str) or not name:
            raise DpforestError("A [[column]] of the domain has no name: add one.")
        with refusals.gathered():
            refuse_misspelt(f'Column "{name}" of the domain', column, COLUMN_KEYS, OTHER_WORDS)
            if column.get("kind") == "identifier":
                identifiers.append(name)
            elif fold(name) == fold(wanted):
                targets.append(_class_list(name, column))
            elif column.get("kind") not in ("categorical", "numeric"):
                other_kinds[name] = column.get("kind")
            else:
                attributes.append(_attribute(name, column))
    for refuse in (_refuse_without_kind, _refuse_other_kinds):
        with refusals.gathered():
            refuse(other_kinds)
    refusals.refuse()
    if fold(wanted) in map(fold, identifiers):
        raise DpforestError(
            f'The target "{wanted}" is an identifier in the domain: name another with --target, or '
            "list its classes."
        )
    return Domain(
        attributes=tuple(attributes),
        target=wanted,
        classes=_only_list(wanted, targets, [column["name"] for column in columns]),
        privacy_unit=unit,
        identifiers=tuple(identifiers),
    )


def _is_list_of_tables(value: object) -> bool:
    """Whether a key of a domain file has [[…]] tables."""
    return isinstance(value, list) and value != [] and all(isinstance(e, dict) for e in value)


def _only_list(
    target: str, lists: Sequence[tuple[str, ...]], names: Sequence[str]
) -> tuple[str, ...]:
    """The one list of the target's classes; `names` are those of all columns of the domain."""
    if not lists:
        raise DpforestError(
            f'The domain does not describe the target "{target}"{hint(target, names)}: add its '
            "[[column]] with the classes."
        )
    if len(lists) > 1:
        raise DpforestError(f'The domain describes the target "{target}" twice: remove one.')
    return lists[0]


def domain_toml(domain: Mapping[str, Any]) -> str:
    """A domain as TOML, from the keys of a domain file.

    A column may have kinds to choose from under "todo", which become comments, and its "type".
    """
    lines = []
    for key in ("target", "privacy_unit"):
        if domain.get(key):
            lines.append(f"{key} = {_toml(domain[key])}")
        elif key == "target":
            lines.append('target = ""  # TODO: name the column to predict')
        else:
            lines.append(f'# privacy_unit = "…"  # {UNIT_HINT}')
    for column in domain["column"]:
        lines.append("\n[[column]]")
        known = {key: value for key, value in column.items() if key not in ("todo", "type")}
        lines.extend(f"{key} = {_toml(value)}" for key, value in known.items())
        if "todo" in column:
            of_type = f" ({column['type']})" if "type" in column else ""
            kinds = column["todo"]
            is_target = column["name"] == domain.get("target")
            lines.append(f"# TODO{of_type}: {_remedy(kinds, is_target=is_target)}")
            several = sum(choice["kind"] == "numeric" for choice in kinds) > 1
            texts = [_commented(choice, of_several=several) for choice in kinds]
            lines += ["\n#\n".join(texts)] if texts else []
    return "\n".join(lines) + "\n"


def _remedy(kinds: Sequence[Mapping[str, Any]], *, is_target: bool) -> str:
    """What to do about a column without a declaration."""
    if is_target:
        return "list the classes"
    if not kinds:
        return "no attribute has this type: delete the column"
    if all(choice["kind"] == "identifier" for choice in kinds):
        return "no attribute has this type: make it an identifier, or delete the column"
    return "set a kind and public values, or delete the column"


def _commented(choice: Mapping[str, Any], *, of_several: bool) -> str:
    """A kind to choose, as comments. `of_several` kinds of numbers, it says which one it is."""
    lines = [f"# {key} = {_toml(value)}" for key, value in choice.items()]
    bounds = {int: "whole numbers", float: "fractions", str: "dates or times"}
    if of_several and (meaning := bounds.get(type(choice.get("lower")))):
        lines[0] += f"  # {meaning}"
    return "\n".join(lines)


def refuse_misspelt(
    where: str, content: Iterable[str], known: Sequence[str], words: Mapping[str, str]
) -> None:
    """Raise `DpforestError` for a key that is probably meant to be a known one.

    `words` gives the known key for other words of the same meaning.
    """
    for key in content:
        if key in known:
            continue
        if right := words.get(key, "") or _meant(str(key), tuple(known)):
            raise DpforestError(f'{where} has the key "{key}": did you mean {right}?')


_meant = lru_cache(meant)  # many columns have the same unknown keys, for instance notes


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        # TOML has JSON's escapes, and also escapes DEL
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(item) for item in value if item is not None) + "]"
    if isinstance(value, dict):  # TOML has no null
        given = {key: item for key, item in value.items() if item is not None}
        return "{" + ", ".join(f"{_toml(key)} = {_toml(item)}" for key, item in given.items()) + "}"
    return str(value)


def _class_list(name: str, column: Mapping[str, Any]) -> tuple[str, ...]:
    domain = column.get("domain")
    if not isinstance(domain, list) or not domain:
        ranges = " To predict a number, store ranges of it as classes."
        raise DpforestError(
            f'The target "{name}" has no list of classes: choose another --target, or add '
            "domain = […] to its [[column]] in the domain file."
            f"{ranges if column.get('kind') == 'numeric' else ''}"
        )
    if len(domain) < 2:
        raise DpforestError(
            f'The target "{name}" needs at least two classes in its domain: list all of them.'
        )
    return _categories(name, domain)


def _categories(name: str, given: Sequence[Any]) -> tuple[str, ...]:
    """The texts of a list of categories or classes.

    Raises `DpforestError` for a list in it, and for null, which JSON has.
    """
    if any(isinstance(value, list | dict) for value in given):
        raise DpforestError(
            f'domain of column "{name}" holds a list: write one list of values, [value, value, …].'
        )
    if None in given:
        raise DpforestError(
            f'domain of column "{name}" holds null: leave it out, and set nullable to true if NULL '
            "occurs."
        )
    return tuple(category_text(value) for value in given)


def _privacy_unit(content: Mapping[str, Any]) -> str | None:
    unit = content.get("privacy_unit")
    if unit is not None and not isinstance(unit, str):
        raise DpforestError("privacy_unit in the domain must be a column name in quotes.")
    return unit


def _refuse_without_kind(kinds: Mapping[str, object]) -> None:
    """Raise `DpforestError` if there are columns without a kind, as in a file that is not filled in
    yet.
    """
    names = [name for name, kind in kinds.items() if kind is None]
    if names:
        raise DpforestError(
            f"The domain gives no kind for {listed(names, 3)}: add kind = "
            '"categorical", "numeric" or "identifier" with its keys to each, or delete the column.'
        )


def _refuse_other_kinds(kinds: Mapping[str, object]) -> None:
    """Raise `DpforestError` if there are columns with an unknown kind."""
    names = [name for name, kind in kinds.items() if kind is not None]
    if names:
        written = sorted({kind for kind in kinds.values() if isinstance(kind, str)})
        instead = f", not {', '.join(map(_toml, written[:3]))}" if written else ""
        raise DpforestError(
            f'The domain must have kind = "categorical", "numeric" or "identifier"{instead} for '
            f"{listed(names, 3)}: correct it, or delete the column."
        )


def _attribute(name: str, column: Mapping[str, Any]) -> Attribute:
    """The attribute that a [[column]] declares. Raises `DpforestError` for a wrong key or value."""
    kind = column["kind"]
    domain = column.get("domain", [])
    edges = column.get("edges", [])
    for key, value in (("domain", domain), ("edges", edges)):
        if not isinstance(value, list):
            raise DpforestError(f'{key} of column "{name}" must be a list: put it in [ ].')
    for key in ("nullable", "ordered"):
        if not isinstance(column.get(key, True), bool):
            raise DpforestError(f'{key} of column "{name}" must be true or false.')
    if kind == "categorical" and not domain:
        raise DpforestError(f'Column "{name}" has no categories: add domain = […].')
    levels = _taxonomy(name, column.get("taxonomy"))
    return Attribute(
        name=name,
        kind=kind,
        values=_categories(name, domain) if kind == "categorical" else (),
        ordered=column.get("ordered", False),
        lower=None if column.get("lower") is None else _limit(name, "lower", column["lower"]),
        upper=None if column.get("upper") is None else _limit(name, "upper", column["upper"]),
        edges=[_limit(name, "edges", edge) for edge in edges],
        bins=column.get("bins"),
        scale=column.get("scale"),
        nullable=column.get("nullable", True),
        taxonomy=levels[0] if levels else (),
        subgroups=tuple(levels[1:]),
    )


def _taxonomy(name: str, content: object) -> list[Groups]:
    """The levels of a taxonomy, top first: `{ group = ["category", …] }`, or groups in groups.

    A group that holds categories beside one that holds groups is its own only subgroup.
    """
    if content is None:
        return []
    refusal = DpforestError(
        f'taxonomy of column "{name}" must be groups of categories: {{ group = ["…"], … }}.'
    )
    if not isinstance(content, dict) or not content:
        raise refusal
    levels, level = [], list(content.items())
    while True:
        levels.append(tuple((group, _held(held, refusal)) for group, held in level))
        if not any(isinstance(held, dict) for _, held in level):
            return levels
        level = [
            one
            for group, held in level
            for one in (held.items() if isinstance(held, dict) else [(group, held)])
        ]


def _held(content: object, refusal: DpforestError) -> tuple[str, ...]:
    """The categories in a group of any level."""
    if isinstance(content, dict) and content:
        return tuple(value for held in content.values() for value in _held(held, refusal))
    if not isinstance(content, list):
        raise refusal
    return tuple(category_text(value) for value in content)


def _limit(name: str, key: str, value: object) -> Number | dt.date:
    """A bound or edge from the file: a number, a date, or a date in quotes."""
    if isinstance(value, str):
        try:
            value = dt.datetime.fromisoformat(value)
        except ValueError:
            value = math.nan
    if isinstance(value, dt.date):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e300:
        raise DpforestError(
            f'{key} of column "{name}" must be a finite number between -1e300 and 1e300 (both '
            "exclusive) without quotes, or a date such as 2020-01-31."
        )
    return value
