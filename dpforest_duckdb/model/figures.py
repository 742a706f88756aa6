"""The figures of a model from counts: exact ones, and private ones from a grid with noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpforest_duckdb.arrays import Floats, Integers, Mask
from dpforest_duckdb.engine.base import Outcomes
from dpforest_duckdb.privacy.amounts import NANO, show
from dpforest_duckdb.privacy.noise import CountNoise, laplace_deviation
from dpforest_duckdb.privacy.unit import PrivacyUnit

# of the bins of probabilities in private figures: closer near 0 and 1, for rare classes
EDGES = (
    *(0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5),
    *(0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998),
)
HALF = EDGES.index(0.5) + 1  # the bins up to 1/2
TOO_NOISY = 0.1  # a larger standard deviation of the accuracy leaves a figure that says nothing
LEAST_PROBABILITY = 1e-15  # smaller probabilities are replaced by this in the log loss


@dataclass(frozen=True)
class Evaluation:
    """Figures of a model on a table; None if there is nothing to compute them from.

    `accuracy` is the share of correct predictions, `log_loss` the mean of -ln p with the p of a
    row's own class, `auc` the area under the ROC curve of two classes.

    `private` says whether they may be published. If they have noise and are not private, `reasons`
    say why. Noisy figures cost `epsilon`, in nano-ε, for each privacy `unit`; `noise` is the
    standard deviation of the noise in each count that they are computed from, `rows_noise` that of
    the number of rows, and `accuracy_noise`, `log_loss_noise` and `auc_noise` roughly those that it
    causes in these figures.

    With two classes, `bins[bin]` are the rows of the first and of the second class whose
    probability of the second is above `EDGES[bin - 1]` and up to `EDGES[bin]`; noisy if the figures
    are. With more classes and exact figures, `by_class` has the rows of each class, and how many
    are predicted correctly. `unlabelled` rows were left out of exact figures because they have no
    class of the model; None if figures are noisy.
    """

    rows: int | None
    accuracy: float | None
    log_loss: float | None
    auc: float | None
    private: bool = False
    epsilon: int | None = None
    unit: PrivacyUnit | None = None
    noise: float | None = None
    rows_noise: float | None = None
    accuracy_noise: float | None = None
    log_loss_noise: float | None = None
    auc_noise: float | None = None
    reasons: tuple[str, ...] = ()
    bins: tuple[tuple[int, int], ...] = ()
    by_class: tuple[tuple[int, int], ...] = ()
    unlabelled: int | None = None

    def __repr__(self) -> str:
        figures = {"accuracy": self.accuracy, "log loss": self.log_loss, "AUC": self.auc}
        shown = [f"{name} {value:.4f}" for name, value in figures.items() if value is not None]
        rows = "" if self.rows is None else f"{self.rows} rows"
        cost = "exact" if self.epsilon is None else f"noisy, ε = {show(self.epsilon)}"
        secret = "" if self.private else ", not private"
        return f"<Evaluation: {', '.join(filter(None, [rows, *shown]))} ({cost}{secret})>"

    @property
    def confusion(self) -> tuple[tuple[int, int], ...]:
        """Rows `[class][predicted class]` of two classes, as `bins` has them, but none below 0."""
        halves = (self.bins[:HALF], self.bins[HALF:])  # 1/2 and below: the first class
        return tuple(
            (_rows_of(halves[0], number), _rows_of(halves[1], number))
            for number in range(2 if self.bins else 0)
        )

    @property
    def confusion_noise(self) -> float | None:
        """The standard deviation of the noise in a cell of `confusion`, before it is cut off at 0.

        A cell adds up half of the bins.
        """
        if self.noise is None or not self.bins:
            return None
        return self.noise * math.sqrt(len(self.bins) / 2)

    @property
    def most_frequent(self) -> float | None:
        """The accuracy of always predicting the most frequent class, by `bins` or `by_class`."""
        rows = [rows for rows, _ in self.by_class]
        if self.bins:
            rows = [_rows_of(self.bins, number) for number in (0, 1)]
        return max(rows) / sum(rows) if self.rows != 0 and any(rows) else None

    @property
    def mostly_noise(self) -> bool:
        """Whether noise hides what the figures say."""
        return self.accuracy_noise is not None and self.accuracy_noise > TOO_NOISY

    @property
    def doubt(self) -> str:
        """Why the figures say nothing, in a sentence; "" if they say something."""
        if self.rows == 0 and self.epsilon is None:
            return "No row has a class of the model, so there are no figures: check --target."
        if self.rows == 0:
            return (
                "By the noisy counts, perhaps no row has a class of the model, so there are no "
                "figures: check --target, or take a larger --epsilon."
            )
        if self.mostly_noise:
            return (
                "These figures are mostly noise: more rows or a larger --epsilon would tell more."
            )
        return ""

    def facts(self) -> dict[str, Any]:
        """The figures as a JSON object, with their cost and privacy unit if they are noisy."""
        names = ("rows", "accuracy", "log_loss", "auc", "private")
        found = {name: getattr(self, name) for name in names}
        if self.bins or self.by_class:
            found["most_frequent"] = self.most_frequent
        if self.by_class:
            found["by_class"] = [list(rows) for rows in self.by_class]
        if self.bins:
            found["confusion"] = [list(rows) for rows in self.confusion]
            found["bins"] = [list(rows) for rows in self.bins]
            found["bin_edges"] = list(EDGES)
        if self.epsilon is None or self.unit is None:
            return {**found, "unlabelled": self.unlabelled}
        return {
            **found,
            **({"reasons": list(self.reasons)} if self.reasons else {}),
            "epsilon": self.epsilon / NANO,
            "privacy_unit": self.unit.column,
            "rows_per_unit": self.unit.rows,
            "noise": self.noise,
            "rows_noise": self.rows_noise,
            **({"confusion_noise": self.confusion_noise} if self.bins else {}),
            "accuracy_noise": self.accuracy_noise,
            "log_loss_noise": self.log_loss_noise,
            "auc_noise": self.auc_noise,
        }


def exact_figures(outcomes: Outcomes, classes: int) -> Evaluation:
    """The figures of counted rows. They are not private: keep them as secret as the rows."""
    rows, total = outcomes.rows, int(outcomes.rows.sum())
    label, value = outcomes.label, outcomes.value
    correct = rows * outcomes.right
    of_own_class = np.where(label == 0, 1 - value, value) if classes == 2 else value
    found = Evaluation(
        rows=total,
        accuracy=float(correct.sum() / total) if total else None,
        log_loss=log_loss(of_own_class, rows) if total else None,
        auc=None,
        unlabelled=outcomes.unlabelled,
    )
    if classes > 2:
        each = ((int(of[label == c].sum()) for of in (rows, correct)) for c in range(classes))
        return replace(found, by_class=tuple((rows, right) for rows, right in each))
    by_label = [rows * (label == c) for c in (0, 1)]
    return replace(
        found,
        auc=auc(value, by_label[1], by_label[0]),
        bins=_bins(np.array([_in_bins(value, rows) for rows in by_label])),
    )


def _in_bins(value: Floats, rows: Integers) -> Integers:
    """The rows `[bin]` by the bin of their probability."""
    bins = np.searchsorted(EDGES, value)
    return np.bincount(bins, weights=rows, minlength=len(EDGES) + 1).astype(np.int64)


def _bins(rows: Integers) -> tuple[tuple[int, int], ...]:
    """Pairs per bin of `rows[class, bin]`."""
    return tuple((int(first), int(second)) for first, second in rows.T)


def _rows_of(bins: tuple[tuple[int, int], ...], number: int) -> int:
    """The rows of a class in some bins, at least 0: noise may take them below."""
    return max(0, sum(rows[number] for rows in bins))


def log_loss(of_own_class: Floats, rows: Integers | Floats) -> float:
    """The mean of -log p over rows, where `rows[…]` have a p of `of_own_class[…]` for their class.

    The sum is rounded once, so the order in which the engine returns the rows does not matter.
    """
    logs = rows * np.log(np.clip(of_own_class, LEAST_PROBABILITY, 1))
    return 0.0 - math.fsum(logs.flat) / float(rows.sum())  # not -0.0


def auc(score: Floats, positive: Integers | Floats, negative: Integers | Floats) -> float | None:
    """The share of pairs in which the positive row has the higher score; ties count half.

    `positive[i]` and `negative[i]` rows have `score[i]`. None if either class is missing.
    """
    pairs = float(positive.sum()) * float(negative.sum())
    if positive.sum() <= 0 or negative.sum() <= 0:
        return None
    values, group = np.unique(score, return_inverse=True)
    up = np.bincount(group, weights=positive, minlength=len(values))
    down = np.bincount(group, weights=negative, minlength=len(values))
    return float((up * (np.cumsum(down) - down / 2)).sum() / pairs)


def possible(classes: int) -> Mask:
    """The cells `[class, right, bin]` of the grid that a row can be in; public.

    Bins lie between EDGES. With two classes the second is predicted only above 1/2. With more
    classes, a predicted class has at least an equal share, and a class that is not predicted has at
    most half.
    """
    above_half = np.arange(len(EDGES) + 1) >= HALF
    if classes == 2:
        return np.array([[above_half, ~above_half], [~above_half, above_half]])
    return np.array([[~above_half, np.array([*EDGES, 1]) * classes >= 1]])


def noisy_figures(
    grid: Integers, epsilon: int, unit: PrivacyUnit, classes: int, noise: CountNoise
) -> Evaluation:
    """Private figures of true counts `grid[class, right, bin]`, for nano-ε.

    One privacy unit changes the grid by at most its rows. A probability is known up to its bin, and
    the middle of the bin is used.
    """
    cells, deviation = possible(classes), laplace_deviation(epsilon, unit.rows)
    noisy = noise.laplace(grid, epsilon, unit.rows) * cells
    rows = int(noisy.sum())
    nothing = Evaluation(
        rows=max(rows, 0),
        accuracy=None,
        log_loss=None,
        auc=None,
        private=noise.private,
        epsilon=epsilon,
        unit=unit,
        noise=deviation,
        rows_noise=deviation * math.sqrt(cells.sum()),
        bins=_bins(noisy.sum(axis=1)) if classes == 2 else (),
    )
    if rows < 1:
        return nothing
    middle = np.mean([[0, *EDGES], [*EDGES, 1]], axis=0)
    of_own_class = np.array([1 - middle, middle]) if classes == 2 else middle[None, :]
    counts = noisy.sum(axis=1)  # counts[class, bin]
    right = np.broadcast_to(np.array([0.0, 1.0])[:, None], cells.shape)
    losses = np.broadcast_to(-np.log(of_own_class)[:, None], cells.shape)
    accuracy, loss = float(noisy[:, 1].sum() / rows), log_loss(of_own_class, counts)
    found = replace(
        nothing,
        accuracy=_between(accuracy, 0.0, 1.0),
        accuracy_noise=deviation * _slope_of_mean(right[cells], accuracy, rows),
        log_loss=_between(loss, -math.log(middle[-1]), -math.log(middle[0])),
        log_loss_noise=deviation * _slope_of_mean(losses[cells], loss, rows),
    )
    area = auc(middle, counts[1], counts[0]) if classes == 2 else None
    if area is None:
        return found
    slope = _slope_of_auc(counts[1], counts[0], area)
    return replace(found, auc=_between(area, 0.0, 1.0), auc_noise=deviation * slope)


def _slope_of_mean(values: Floats, mean: float, rows: int) -> float:
    """How much a mean over rows changes if every cell, of `values[cell]`, has independent noise of
    deviation 1; to first order.
    """
    return math.sqrt(((values - mean) ** 2).sum()) / rows


def _slope_of_auc(positive: Integers, negative: Integers, area: float) -> float:
    """How much the AUC changes if each count `[bin]` has independent noise of deviation 1; to
    first order.
    """
    positives, negatives = float(positive.sum()), float(negative.sum())
    below = (np.cumsum(negative) - negative / 2) / negatives
    above = 1 - (np.cumsum(positive) - positive / 2) / positives
    of_positives = ((below - area) ** 2).sum() / positives**2
    return math.sqrt(of_positives + ((above - area) ** 2).sum() / negatives**2)


def _between(value: float, low: float, high: float) -> float:
    """Limit a figure to its possible range, which noise may leave."""
    return min(max(value, low), high)
