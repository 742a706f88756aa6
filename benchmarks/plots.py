"""Line charts as SVG: small multiples on one sheet, with axes that may be logarithmic."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

Points = Sequence[tuple[float, float]]

WIDE, HIGH, LEFT, TOP, GAP = 220, 150, 46, 26, 42
COLOURS = ("#1b6ca8", "#d1495b", "#66a182", "#edae49", "#7d5ba6", "#8d8d8d", "#2e4057")


@dataclass(frozen=True)
class Chart:
    """Lines by name over one pair of axes; `marks` are the numbers written at the axes."""

    title: str
    lines: Mapping[str, Points]
    marks: tuple[Sequence[float], Sequence[float]]
    logarithmic: tuple[bool, bool] = (True, True)
    dashed: frozenset[str] = field(default_factory=frozenset)


def sheet(charts: Sequence[Chart], columns: int = 3) -> str:
    """All charts as one SVG, a legend of all their lines below."""
    names = list(dict.fromkeys(name for chart in charts for name in chart.lines))
    colours = {name: COLOURS[number % len(COLOURS)] for number, name in enumerate(names)}
    rows = -(-len(charts) // columns)
    width, height = columns * (WIDE + LEFT + 12), rows * (HIGH + TOP + GAP) + 18 * len(names) + 12
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for number, chart in enumerate(charts):
        x = (number % columns) * (WIDE + LEFT + 12) + LEFT
        y = (number // columns) * (HIGH + TOP + GAP) + TOP
        parts += [f'<g transform="translate({x},{y})">', *_drawn(chart, colours), "</g>"]
    for number, name in enumerate(names):
        y = rows * (HIGH + TOP + GAP) + 18 * number + 8
        parts.append(f'<path d="M{LEFT},{y}h24" stroke="{colours[name]}" stroke-width="2"/>')
        parts.append(f'<text x="{LEFT + 32}" y="{y + 4}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>\n"])


def _drawn(chart: Chart, colours: Mapping[str, str]) -> list[str]:
    values = [
        [point[axis] for line in chart.lines.values() for point in line] + list(chart.marks[axis])
        for axis in (0, 1)
    ]
    ends = [(min(pair), max(pair)) for pair in values]

    def at(axis: int, value: float) -> float:
        low, high = ends[axis]
        if chart.logarithmic[axis]:
            low, high, value = math.log(low), math.log(high), math.log(value)
        part = (value - low) / (high - low) if high > low else 0.5
        return round(part * WIDE if axis == 0 else HIGH - part * HIGH, 1)

    parts = [f'<text x="0" y="-9" font-weight="bold">{escape(chart.title)}</text>']
    for mark in chart.marks[0]:
        x = at(0, mark)
        parts.append(f'<path d="M{x},0v{HIGH}" stroke="#e4e4e4"/>')
        parts.append(f'<text x="{x}" y="{HIGH + 15}" text-anchor="middle">{_short(mark)}</text>')
    for mark in chart.marks[1]:
        y = at(1, mark)
        parts.append(f'<path d="M0,{y}h{WIDE}" stroke="#e4e4e4"/>')
        parts.append(f'<text x="-5" y="{y + 4}" text-anchor="end">{_short(mark)}</text>')
    for name, line in chart.lines.items():
        path = "L".join(f"{at(0, x)},{at(1, y)}" for x, y in line)
        dash = ' stroke-dasharray="5,4"' if name in chart.dashed else ""
        colour = colours[name]
        parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        parts += [
            f'<circle cx="{at(0, x)}" cy="{at(1, y)}" r="2.5" fill="{colour}"/>' for x, y in line
        ]
    return parts


def _short(number: float) -> str:
    for size, sign in ((1e6, " M"), (1e3, " k")):
        if number >= size:
            return f"{number / size:g}{sign}"
    return f"{number:g}"
