"""The page: a model and its budget explained, in one HTML file without any network."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import Any

import jinja2

from dpforest_duckdb.domain import Attribute
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.guarantee import EACH_ROW
from dpforest_duckdb.model.effects import Effect, effects
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.model.json_format import splits_json
from dpforest_duckdb.model.rules import Rule
from dpforest_duckdb.model.rules import rules as all_rules
from dpforest_duckdb.privacy.wording import wording
from dpforest_duckdb.report.charts import (
    MOST_BARS,
    MOST_CLASSES,
    calibration_chart,
    effect_chart,
    importance_chart,
    isolated,
    roc_chart,
    tree_chart,
)
from dpforest_duckdb.report.evaluated import Evaluated
from dpforest_duckdb.scoring.score_sql import added_names
from dpforest_duckdb.tree import LEAF, Tree

WITH_DELTA = ("μ² = ", "ρ = ")  # costs of steps that use a δ; ρ in older models
MOST_RULES = 5_000  # rows of the table of rules
MOST_TREES = 100  # trees that can be drawn


@dataclass(frozen=True)
class Spent:
    """The budget of the rows, in ε: its cap (None without one), what is spent, what is left.

    `delta` is what was spent of δ, if any. `place` says whose budget it is.
    """

    cap: float | None
    spent: float
    left: float | None
    delta: str = ""
    place: str = "table"


def report_html(
    forest: Forest, *, spent: Spent | None = None, evaluated: Evaluated | None = None
) -> str:
    """The page as text.

    Only the model, `spent`, and `evaluated` with its figures on a table are read. All of it is
    released already, except exact figures; the page says so if it shows them. Raises
    `DpforestError` if the packages of the extra `report` are missing.
    """
    try:
        import altair  # noqa: F401  the charts need both
        import vl_convert  # noqa: F401
    except ImportError:
        raise DpforestError(
            "A report needs charts: run pip install altair vl-convert-python."
        ) from None
    found = effects(forest)
    trees = [(n, tree) for n, tree in enumerate(forest.trees) if tree.nodes > 1][:MOST_TREES]
    drawn = {n: tree_chart(forest, tree) for n, tree in trees if _deep(tree)}
    classes = len(forest.domain.classes)
    rules = [_rule(rule, classes) for rule in all_rules(forest, isolated) if rule["leaf"]]
    payload = {
        "importance": importance_chart(forest, found) if found else None,
        "effects": [_drawn_effect(forest, effect) for effect in found],
        "calibration": calibration_chart(evaluated) if evaluated else None,
        "roc": roc_chart(evaluated) if evaluated else None,
        "trees": [{"number": n, "chart": chart} for n, chart in drawn.items() if chart],
        "rules": rules[:MOST_RULES],
        "model": _scoring(forest, found),
    }
    steps = [_step(line) for line in forest.guarantee.plan]
    return (
        _environment()
        .get_template("page.html")
        .render(
            forest=forest,
            promise=_promise(forest, evaluated),
            spent=spent,
            evaluated=evaluated,
            drawn={name for name in ("calibration", "roc") if payload[name]},
            bands=bool(found) and any(math.isfinite(d) for d in found[0].deviation.ravel()),
            boosted=any(tree.vote_noise is not None for tree in forest.trees),
            effects=len(found),
            undrawn=len([chart for chart in drawn.values() if chart is None]),
            most=[forest.domain.attributes[one.attribute].name for one in found[:3]],
            steps=steps,
            most_rules=MOST_RULES,
            most_bars=MOST_BARS,
            most_classes=MOST_CLASSES,
            with_delta=any(cost.startswith(WITH_DELTA) for _, _, cost in steps),
            all_rules=len(rules),
            with_counts=any(rule.get("counts") for rule in rules),
            attributes=[_described(attribute) for attribute in forest.domain.attributes],
            sql=_sql(forest) if forest.table else "",
            payload=_script_json(payload),
            library=_library(),
        )
    )


def _drawn_effect(forest: Forest, effect: Effect) -> dict[str, Any]:
    name = forest.domain.attributes[effect.attribute].name
    return {"name": name, "chart": effect_chart(forest, effect)}


def _sql(forest: Forest) -> str:
    """The SQL of a model, with a prefix where an attribute has the name of a new column."""
    taken, prefix = {each.column.casefold() for each in forest.domain.attributes}, ""
    while taken & {name.casefold() for name in added_names(forest, prefix)}:
        prefix += "scored_"
    return forest.to_sql(prefix=prefix)


def _library() -> str:
    """The scripts that draw the charts, to be put into the page."""
    from vl_convert import javascript_bundle

    bundle: Callable[..., str] = javascript_bundle  # its type asks for a snippet that it can lack
    return bundle()


def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("dpforest_duckdb.report", "."),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _script_json(value: object) -> str:
    """JSON that is safe inside a script element, whatever names and labels hold."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _promise(forest: Forest, evaluated: Evaluated | None) -> str:
    """What the guarantee means, in one sentence. It does not speak for figures of an evaluation."""
    guarantee = forest.guarantee
    who = "any one row" if guarantee.unit == EACH_ROW else f'any one "{guarantee.unit}"'
    if guarantee.rows_per_unit > 1:
        who += f" (at most {guarantee.rows_per_unit} rows used)"
    factor = _factor(Decimal(guarantee.epsilon))
    slack = f", up to a probability of {guarantee.delta}" if float(guarantee.delta) else ""
    shown = "this page" if evaluated is None else "this model"
    return (
        f"Adding or removing {who} changes the probability of any outcome, {shown} included, "
        f"by a factor of at most {factor}{slack}."
    )


def _factor(epsilon: Decimal) -> str:
    """e^ε, rounded up: a factor that is rounded down would promise too much."""
    if epsilon > 10:
        return f"e^{epsilon:f}"
    factor = epsilon.exp()
    places = max(2 - factor.adjusted(), 1 - epsilon.adjusted(), 0)
    return f"{factor.quantize(Decimal(1).scaleb(-places), ROUND_CEILING):f}"


def _step(line: str) -> tuple[str, str, str]:
    """A line of a plan as its step in words, its mechanism and its cost."""
    found = re.fullmatch(r"([\w ]+): (.*), ((?:ε|μ²|ρ) = .*)", line)
    if found is None:
        return line, "", ""
    return wording(found[1]).step, found[2], found[3]


def _deep(tree: Tree) -> bool:
    """Whether a tree has more than one split: others are shown by their effects."""
    return int((tree.kind != LEAF).sum()) > 1


def _rule(rule: Rule, classes: int) -> dict[str, Any]:
    """The cells of a leaf; of two classes, the log-odds of the prediction against the other."""
    cells = {
        "tree": rule["tree"],
        "rule": rule["rule"],
        "prediction": rule["prediction"],
        "confidence": rule["confidence"],
        "support": rule["support"],
    }
    if classes > MOST_CLASSES:  # a figure for each class is too much for a cell
        return cells
    odds: Any = rule.get("log_odds")
    if odds is not None and classes == 2:
        odds = round(2 * odds[rule["prediction"]], 3)
    return {**cells, "counts": rule["counts"], "log_odds": odds}


def _described(attribute: Attribute) -> dict[str, Any]:
    """An attribute in words, with the cells that a row can be in."""
    labels = [attribute.label(cell) for cell in attribute.described]
    kind = attribute.kind
    return {"name": attribute.name, "kind": kind, "type": attribute.type.name, "labels": labels}


def _scoring(forest: Forest, found: Sequence[Effect]) -> dict[str, Any]:
    """What the page needs to follow one row through the trees, by `asked` attributes alone: those
    with an effect, which are all that a tree splits by.
    """
    return {
        "asked": [effect.attribute for effect in found],
        "classes": list(forest.domain.classes),
        "link": forest.link.name,
        "voting": forest.voting,
        "attributes": [
            {
                "name": attribute.name,
                "cells": [[cell, attribute.label(cell)] for cell in range(attribute.cells)],
            }
            for attribute in forest.domain.attributes
        ],
        "trees": [{**splits_json(tree), "votes": tree.votes.tolist()} for tree in forest.trees],
    }
