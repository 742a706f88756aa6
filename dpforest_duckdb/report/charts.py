"""The charts of the page, as Vega specifications; the browser draws them."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from dpforest_duckdb.model.effects import BAND, Effect
from dpforest_duckdb.model.rules import step
from dpforest_duckdb.report.evaluated import Evaluated
from dpforest_duckdb.scoring.content import ForestContent
from dpforest_duckdb.tree import LEAF, Tree

MOST_BARS = 40  # attributes in the chart of importances
MOST_CLASSES = 6  # drawn in the chart of an effect
MOST_NODES = 400  # of a drawn tree: more cannot be read
LEVEL, LAST = 165, 250  # pixels of a level of a tree, and of the text of its leaves


def isolated(text: str) -> str:
    """A name that stands in a longer text. A right-to-left mark in it ends with it."""
    turning = ("R", "AL", "RLE", "RLO", "RLI", "LRE", "LRO", "LRI", "FSI")
    if any(unicodedata.bidirectional(character) in turning for character in text):
        return f"\u2068{text}\u2069"
    return text


def importance_chart(forest: ForestContent, found: Sequence[Effect]) -> dict[str, Any]:
    """A bar for each attribute, the most important first."""
    import altair as alt

    rows = [
        {"attribute": forest.domain.attributes[one.attribute].name, "importance": one.importance}
        for one in found[:MOST_BARS]
    ]
    chart = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_bar()
        .encode(
            x=alt.X("importance:Q", title=f"mean change in {forest.link.effect_scale}"),
            y=alt.Y("attribute:N", sort=None, title=None, axis=alt.Axis(labelLimit=260)),
            tooltip=["attribute:N", alt.Tooltip("importance:Q", format=".4g", title="mean change")],
        )
        .properties(width="container", height={"step": 22})
    )
    return _spec(chart)


def effect_chart(forest: ForestContent, effect: Effect) -> dict[str, Any]:
    """Points for each value and class, with a band of two standard deviations of the noise.

    With two classes only the second is drawn: the first is its mirror image. Of many, those that
    change most are.
    """
    import altair as alt

    classes = forest.domain.classes
    shown = [1] if len(classes) == 2 else _most_changed(effect)
    most = forest.link.largest_effect
    rows = []
    for number in shown:
        for cell, label in enumerate(effect.labels):
            value = float(effect.values[cell, number])
            band = BAND * float(effect.deviation[cell, number])
            known = bool(np.isfinite(band))
            rows.append(
                {
                    "order": cell,
                    "value": label,
                    "class": classes[number],
                    "effect": value,
                    "low": max(value - band, -most) if known else value,
                    "high": min(value + band, most) if known else value,
                    "rows": float(effect.weights[cell]),
                }
            )
    # titles must not contain names or labels, because Vega evaluates titles as expressions
    title = f"change in {forest.link.effect_scale}"
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=alt.X("value:N", sort=alt.SortField("order"), title=None, axis=alt.Axis(labelLimit=160)),
        color=alt.Color(
            "class:N",
            title="class",
            sort=[classes[number] for number in shown],
            legend=alt.Legend(symbolOpacity=1),
        ),
        tooltip=[
            "value:N",
            "class:N",
            alt.Tooltip("effect:Q", format=".3f", title="effect"),
            alt.Tooltip("low:Q", format=".3f", title="low"),
            alt.Tooltip("high:Q", format=".3f", title="high"),
            alt.Tooltip("rows:Q", format=".1%", title="noisy part of the rows"),
        ],
    )
    band = base.mark_rule(strokeWidth=7, opacity=0.3).encode(
        y=alt.Y("low:Q", title=title), y2="high:Q"
    )
    points = base.mark_point(filled=True, size=60, opacity=1).encode(y="effect:Q")
    zero = (
        alt.Chart(alt.InlineData(values=[{"zero": 0}]))
        .mark_rule(strokeDash=[4, 3])
        .encode(y="zero:Q")
    )
    return _spec(alt.layer(zero, band, points).properties(width="container", height=220))


def _most_changed(effect: Effect) -> list[int]:
    """The classes whose effects are the largest, in the order of the domain."""
    change = effect.weights @ np.abs(effect.values)
    largest: list[int] = np.argsort(-change, kind="stable")[:MOST_CLASSES].tolist()
    return sorted(largest)


def calibration_chart(evaluated: Evaluated) -> dict[str, Any] | None:
    """The share of the second class by its predicted probability; None without two classes.

    A bin is shown if its noisy rows exceed the noise in them. The bar is about two standard
    deviations of the noise on either side.
    """
    import altair as alt

    rows = []
    limits = pairwise(evaluated.edges)
    for (low, high), (first, second) in zip(limits, evaluated.bins, strict=False):
        total = first + second
        if total < 1 or total <= BAND * math.sqrt(2) * evaluated.noise:
            continue
        share = min(max(second / total, 0.0), 1.0)
        band = BAND * evaluated.noise * math.hypot(share, 1 - share) / total
        rows.append(
            {
                "probability": (low + high) / 2,
                "share": share,
                "low": max(share - band, 0.0),
                "high": min(share + band, 1.0),
                "rows": total,
            }
        )
    if not rows:
        return None
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=alt.X("probability:Q", title="predicted probability", scale=alt.Scale(domain=[0, 1])),
        tooltip=[
            alt.Tooltip("probability:Q", format=".3f", title="predicted"),
            alt.Tooltip("share:Q", format=".3f", title="share of rows"),
            alt.Tooltip("rows:Q", title="rows"),
        ],
    )
    band_marks = base.mark_rule(strokeWidth=5, opacity=0.3).encode(
        y=alt.Y("low:Q", title="share of rows", scale=alt.Scale(domain=[0, 1])), y2="high:Q"
    )
    points = base.mark_point(filled=True, size=60, opacity=1).encode(y="share:Q")
    return _spec(
        alt.layer(_diagonal(), band_marks, points).properties(width="container", height=260)
    )


def roc_chart(evaluated: Evaluated) -> dict[str, Any] | None:
    """The share of each class above a probability, for every edge of a bin; None without rows.

    Noise can make a share smaller than the one before it. It is then raised to that one.
    """
    import altair as alt

    counts = np.array(evaluated.bins, dtype=np.int64).reshape(-1, 2)[::-1]
    totals = counts.sum(axis=0)
    if not len(counts) or totals.min() < 1:
        return None
    shares = np.maximum.accumulate(np.clip(counts.cumsum(axis=0) / totals, 0, 1), axis=0)
    points = [[0.0, 0.0], *shares.tolist()]
    rows = [{"false": x, "true": y, "order": n} for n, (x, y) in enumerate(points)]
    line = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_line(point=True)
        .encode(
            x=alt.X("false:Q", title="false positives", scale=alt.Scale(domain=[0, 1])),
            y=alt.Y("true:Q", title="true positives", scale=alt.Scale(domain=[0, 1])),
            order="order:Q",
            tooltip=[
                alt.Tooltip("false:Q", format=".3f", title="false positives"),
                alt.Tooltip("true:Q", format=".3f", title="true positives"),
            ],
        )
    )
    return _spec(alt.layer(_diagonal(), line).properties(width="container", height=260))


def _diagonal() -> Any:
    import altair as alt

    ends = [{"x": 0, "y": 0}, {"x": 1, "y": 1}]
    return (
        alt.Chart(alt.InlineData(values=ends))
        .mark_line(strokeDash=[4, 3], color="gray")
        .encode(x="x:Q", y="y:Q")
    )


def tree_chart(forest: ForestContent, tree: Tree) -> dict[str, Any] | None:
    """A tree as nodes and links; None if it has too many nodes to be read."""
    if tree.nodes > MOST_NODES:
        return None
    parent = tree.parents(forest.domain.cells)
    rows = []
    for node in range(tree.nodes):
        above = int(parent[node])
        words = "all rows"
        if above >= 0:
            branch = node - int(tree.first[above])
            words = step(forest.domain, tree, above, branch, isolated)
        leaf = tree.kind[node] == LEAF
        label = forest.domain.classes[int(tree.votes[node].argmax())] if leaf else ""
        rows.append(
            {
                "id": node,
                "parent": above if above >= 0 else None,
                "step": words,
                "label": label,
                "counts": "" if tree.counts is None else str(tree.counts[node].tolist()),
            }
        )
    return _tree_spec(rows, depth=tree.depth(forest.domain.cells))


def _tree_spec(rows: list[dict[str, Any]], *, depth: int) -> dict[str, Any]:
    leaves = sum(1 for row in rows if row["label"]) or 1
    marks = [
        {
            "type": "path",
            "from": {"data": "links"},
            "encode": {"update": {"path": {"field": "path"}, "stroke": {"value": "#999999"}}},
        },
        {
            "type": "symbol",
            "from": {"data": "nodes"},
            "encode": {
                "update": {
                    "x": {"field": "x"},
                    "y": {"field": "y"},
                    "size": {"value": 70},
                    "fill": {"scale": "color", "field": "label"},
                    "tooltip": {
                        "signal": "{'condition': datum.step, 'prediction': datum.label, "
                        "'noisy counts': datum.counts}"
                    },
                }
            },
        },
        {
            "type": "text",
            "from": {"data": "nodes"},
            "encode": {
                "update": {
                    "x": {"field": "x", "offset": {"signal": "datum.label ? 8 : -4"}},
                    "y": {"field": "y", "offset": {"signal": "datum.label ? 0 : -7"}},
                    "baseline": {"signal": "datum.label ? 'middle' : 'bottom'"},
                    "limit": {"signal": "datum.label ? 240 : 170"},
                    "fill": {"signal": "textColor"},
                    "text": {
                        "signal": "datum.label ? datum.step + ' → ' + datum.label : datum.step"
                    },
                }
            },
        },
    ]
    return {
        "$schema": "https://vega.github.io/schema/vega/v6.json",
        "width": LEVEL * depth + LAST,
        "height": max(60, 18 * leaves),
        "padding": 6,
        "background": None,
        "signals": [{"name": "textColor", "value": "#333333"}],
        "data": [
            {
                "name": "nodes",
                "values": rows,
                "transform": [
                    {"type": "stratify", "key": "id", "parentKey": "parent"},
                    {
                        "type": "tree",
                        "method": "tidy",
                        "size": [{"signal": "height"}, {"signal": f"width - {LAST}"}],
                        "as": ["y", "x", "depth", "children"],
                    },
                ],
            },
            {
                "name": "links",
                "source": "nodes",
                "transform": [
                    {"type": "treelinks"},
                    {"type": "linkpath", "orient": "horizontal", "shape": "diagonal"},
                ],
            },
        ],
        "scales": [
            {
                "name": "color",
                "type": "ordinal",
                "domain": {"data": "nodes", "field": "label", "sort": True},
                "range": "category",
            }
        ],
        "marks": marks,
    }


def _spec(chart: Any) -> dict[str, Any]:
    """A chart as a specification without a background, so that it suits light and dark pages."""
    import altair as alt

    fit = alt.AutoSizeParams(type="fit-x", contains="padding")
    chart = (
        chart.properties(autosize=fit)
        .configure(background="transparent")
        .configure_view(stroke=None)
    )
    spec: dict[str, Any] = chart.to_dict(validate=False)
    return spec
