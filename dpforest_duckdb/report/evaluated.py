"""The figures of an evaluation on the page, as `dpforest evaluate --json` prints them."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpforest_duckdb.domain.names import is_unicode
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.model.json_format import fingerprint
from dpforest_duckdb.scoring.content import ForestContent


@dataclass(frozen=True)
class Evaluated:
    """Figures of a model on a table. None, or no bins, where there is nothing to show.

    `private` says whether they may be published; `noise` is the standard deviation of each count in
    `bins`, 0 if they are exact. `most_frequent` is the accuracy of always predicting the most
    frequent class. `bins[bin]` are the rows of the first and the second of two classes
    by the probability of the second, which lies between `edges[bin]` and `edges[bin + 1]`.
    """

    table: str
    rows: int | None
    accuracy: float | None
    log_loss: float | None
    auc: float | None
    most_frequent: float | None
    private: bool
    epsilon: float | None
    noise: float
    bins: tuple[tuple[int, int], ...]
    edges: tuple[float, ...]


def load_evaluation(path: str | Path, forest: ForestContent) -> Evaluated:
    """Read what `dpforest evaluate --json` printed for this model.

    Raises `DpforestError` for another file, or for the figures of another model.
    """
    made = fingerprint(forest)
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        found = _parsed(content)
    except OSError:
        raise DpforestError(f"The file {path} cannot be read: check --evaluation.") from None
    except (ValueError, TypeError, KeyError, RecursionError):
        raise DpforestError(
            f"The file {path} is not what dpforest evaluate --json prints: check --evaluation."
        ) from None
    given = content.get("forest", "")  # older files have only the name
    if (given != made) if given else (content["model"] != forest.name):
        raise DpforestError(
            f"The file {path} has the figures of another model: evaluate this one, or check "
            "--evaluation."
        )
    return found


def _parsed(content: Any) -> Evaluated:
    """The figures of an evaluation. Raises `ValueError`, `TypeError` or `KeyError` for another."""
    if not isinstance(content, dict) or not isinstance(content["model"], str):
        raise ValueError("not an evaluation")
    private = content["private"]
    if not isinstance(private, bool):
        raise ValueError("private must be true or false")
    rows = content["rows"]
    if rows is not None and _count(rows) < 0:
        raise ValueError("rows must be a number of rows")
    if not isinstance(content["table"], str) or not is_unicode(content["table"]):
        raise ValueError("table must be text")
    bins = tuple((_count(first), _count(second)) for first, second in content.get("bins", ()))
    equal = [number / len(bins) for number in range(1, len(bins))]  # as older files had them
    edges = (0.0, *map(_probability, content.get("bin_edges", equal)), 1.0)
    if bins and (len(edges) != len(bins) + 1 or list(edges) != sorted(set(edges))):
        raise ValueError("bins lie between bin_edges")
    return Evaluated(
        table=content["table"],
        rows=rows,
        accuracy=_figure(content["accuracy"], most=1),
        log_loss=_figure(content["log_loss"]),
        auc=_figure(content["auc"], most=1),
        most_frequent=_figure(content.get("most_frequent"), most=1),
        private=private,
        epsilon=_figure(content.get("epsilon")),
        noise=_figure(content.get("noise")) or 0.0,
        bins=bins,
        edges=edges,
    )


def _count(value: object) -> int:
    if type(value) is not int or abs(value) >= 2**63:
        raise ValueError("a count must be a whole number")
    return value


def _probability(value: object) -> float:
    if not isinstance(value, int | float) or not 0 < value < 1:
        raise ValueError("an edge must be a probability")
    return float(value)


def _figure(value: object, most: float = sys.float_info.max) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        raise ValueError("a figure must be a number in its range")
    return float(value)
