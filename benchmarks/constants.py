"""What the constants of `auto` are worth, and whether they carry over to tables left out.

    python benchmarks/constants.py --markdown docs/constants.md     # goes on where it was stopped

Each constant is tried smaller and larger, one at a time, on a part of every table. Each table is
left out in turn: the best setting on the other tables is compared with ours, and with the best
setting on the table itself. Half of the seeds picks settings, the other half tests them. Many
settings lead to the same forest: a run whose recipe, request and plan are the same after the rows
are counted is not repeated. Noise comes from seeds: an experiment on public data, not private.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import itertools
import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from in_memory import Table, evaluated, load, trained
from laws import dealt
from shared import (
    Results,
    command_of,
    markdown_table,
    mean_and_error,
    say,
    table_files,
    write_page,
)

from dpforest_duckdb.recipes.ours import constants
from dpforest_duckdb.recipes.ours.auto import AUTO
from dpforest_duckdb.recipes.recipe import Adaptation, Recipe
from dpforest_duckdb.request import Learner, Request, TrainingContext

DELTA = 1e-5
KEYS = ("table", "rows", "epsilon", "delta", "seed", "path")


@dataclass(frozen=True)
class Grid:
    """What every setting is tried on; the first half of the seeds picks, the second half tests."""

    rows: int = 20_000  # of training, at most
    epsilons: tuple[float, ...] = (0.1, 0.5, 1.0, 2.0)
    seeds: int = 6

    @property
    def picking(self) -> Sequence[int]:
        return range(self.seeds // 2)

    @property
    def testing(self) -> Sequence[int]:
        return range(self.seeds // 2, self.seeds)


@dataclass(frozen=True)
class Constant:
    """A constant of `auto`, and how it is tried. `delta` is the one under which it matters."""

    name: str
    smaller: float
    larger: float
    delta: float = 0.0

    @property
    def value(self) -> float:
        return float(getattr(constants, self.name))

    def shown(self, value: str = "") -> str:
        """The name and a value on the page."""
        return f"{self.name} {value}".strip() + (", with a δ" if self.delta else "")

    def put(self, value: float) -> None:
        setattr(constants, self.name, int(value) if value == int(value) else value)


CONSTANTS = (
    Constant("CAUTION", 0.0, 1.5),
    Constant("TABLES", 0.12, 0.27),
    Constant("CHOICE", 25, 60),
    Constant("CHECK", 5, 20),
    Constant("ENOUGH", 50, 200),
    Constant("ENOUGH", 50, 200, delta=DELTA),
    Constant("AMPLE", 500, 2000),
    Constant("CLEAR", 9, 38, delta=DELTA),
    Constant("CLEAN", 0.08, 0.18),
    Constant("ROOT_NOISE", 0.8, 1.8),
    Constant("LEAST_ROWS", 150, 600),
)


@dataclass(frozen=True)
class Setting:
    """All constants with their present values but one; `ours` if that one is unchanged too."""

    constant: Constant
    value: float
    ours: bool = False

    @contextlib.contextmanager
    def used(self) -> Iterator[None]:
        kept = self.constant.value
        self.constant.put(self.value)
        try:
            yield
        finally:
            self.constant.put(kept)


class SettledError(Exception):
    """Ends a run before it grows a tree, with the context that was set by then."""

    def __init__(self, context: TrainingContext) -> None:
        self.context = context


def _stop(rows: object, context: TrainingContext) -> Any:
    raise SettledError(context)


def _stopped(request: Request) -> Recipe:
    assert AUTO.adaptation.successor is not None
    return _stopping(AUTO.adaptation.successor(request))


def _stopping(recipe: Recipe) -> Recipe:
    """The recipe, and the one that may take its place, with a learner that ends the run."""
    learner, other = recipe.learner, recipe.adaptation.if_one_suffices
    stopping = None if other is None else replace(other, recipe=_stopping(other.recipe))
    return replace(
        recipe,
        learner=Learner(_stop, learner.trees_at_once, learner.score_columns),
        adaptation=replace(recipe.adaptation, if_one_suffices=stopping),
    )


def path(table: Table, rows: Any, epsilon: float, delta: float, seed: int) -> str:
    """What determines the forest of a seed, in short: recipe, request and plan.

    The constant that is tried is changed already.
    """
    try:
        trained(
            table,
            rows,
            replace(AUTO, adaptation=Adaptation(successor=_stopped)),
            epsilon,
            delta,
            seed=seed,
        )
    except SettledError as settled:
        context = settled.context
    recipe = cast(Recipe, context.recipe)
    facts = (recipe.name, context.request, context.accountant.plan)
    return f"{recipe.name} {hashlib.sha256(repr(facts).encode()).hexdigest()[:12]}"


Figure = Mapping[str, object]
Found = dict[tuple[str, Setting, int], tuple[float, float]]  # accuracy, log loss: means over ε


def measured(
    results: Results, name: str, table: Table, setting: Setting, grid: Grid, seed: int
) -> tuple[float, float]:
    """Mean accuracy and log loss over ε of one seed under a setting."""
    test, rows = dealt(len(table.labels), seed)
    rows, delta = rows[: grid.rows], setting.constant.delta
    found: list[Figure] = []
    for epsilon in grid.epsilons:
        with setting.used():
            way = path(table, rows, epsilon, delta, seed)
            run = results.get(name, grid.rows, epsilon, delta, seed, way)
            if run is None:
                forest = trained(table, rows, "auto", epsilon, delta, seed=seed)
                key = dict(zip(KEYS, (name, grid.rows, epsilon, delta, seed, way), strict=True))
                run = {**key, **evaluated(forest, table, test).rounded()}
                results.add(run)
        found.append(run)
    accuracy, loss = (
        statistics.mean(float(str(run[key])) for run in found) for key in ("accuracy", "log_loss")
    )
    return accuracy, loss


def settings() -> list[Setting]:
    """For each constant the smaller value, the present one and the larger one."""
    return [one for c in CONSTANTS for one in tried(c)]


def tried(constant: Constant) -> list[Setting]:
    """The smaller value, the present one and the larger one."""
    return [
        Setting(constant, constant.smaller),
        ours(constant),
        Setting(constant, constant.larger),
    ]


def ours(constant: Constant) -> Setting:
    return Setting(constant, constant.value, ours=True)


def main() -> None:
    """Measure what is not in the results yet, and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--table", nargs="+", help="these tables; default: all")
    parser.add_argument("--rows", type=int, default=Grid.rows, help="of training, at most")
    parser.add_argument("--epsilon", nargs="+", type=float, default=Grid.epsilons)
    parser.add_argument("--seeds", type=int, default=Grid.seeds, help="an even number")
    parser.add_argument("--results", type=Path, default=Path("constants-results.jsonl"))
    parser.add_argument("--markdown", type=Path, help="write the page here")
    given = parser.parse_args()
    grid = Grid(given.rows, tuple(given.epsilon), given.seeds)
    results, found = Results(given.results, KEYS), Found()
    tables = given.table or list(table_files())
    for name in tables:
        table = load(table_files()[name])
        base: dict[tuple[float, int], tuple[float, float]] = {}  # by δ and seed
        for setting, seed in itertools.product(settings(), range(grid.seeds)):
            if not setting.ours:
                found[name, setting, seed] = measured(results, name, table, setting, grid, seed)
                continue
            key = (setting.constant.delta, seed)
            if key not in base:
                base[key] = measured(results, name, table, setting, grid, seed)
            found[name, setting, seed] = base[key]
        say(name)
    text = page(found, tables, grid, command_of("constants.py", given.markdown))
    write_page(text, given.markdown)


Mean = Callable[[str, Setting, Sequence[int]], float]


def page(found: Found, tables: Sequence[str], grid: Grid, command: str) -> str:
    """What each constant is worth, then what is lost on tables left out."""

    def mean(figure: int) -> Mean:
        return lambda table, setting, seeds: statistics.mean(
            found[table, setting, seed][figure] for seed in seeds
        )

    accuracy, loss = mean(0), mean(1)
    rows = [_worth(constant, tables, range(grid.seeds), accuracy, loss) for constant in CONSTANTS]
    head = ["constant", "value", "best ± its standard error", "smaller", "accuracy", "log loss"]
    head += ["larger", "accuracy", "log loss", "tables it changes"]
    return (
        "# What the constants are worth\n\nWould other values of the constants make the default "
        "more accurate? This page changes one constant at a time. "
        "[auto.md](auto.md#its-constants) says what each of them does, and "
        "[trials.md](trials.md) what else was tried.\n\n"
        f"Written by `{command}`: {len(tables)} tables, at most "
        f"{grid.rows:,} training rows of each, ε = {', '.join(f'{e:g}' for e in grid.epsilons)}, "
        f"and {grid.seeds} seeds, the same for all settings. There is no δ, except δ = {DELTA:g} "
        'in rows that say "with a δ".\n\n## Left-out tables\n\n'
        f"{_left_out(accuracy, tables, grid)}\n\n## Each constant\n\n"
        "Changes are in thousandths, means over tables ± standard error. Higher accuracy is "
        "better, and lower log loss. The best value is the top of a parabola through the three "
        "mean accuracies, within the range tried. The parabola is over the logarithm of the value, "
        "or over the value itself if one of the three is 0. The standard error of the best value "
        "is from the jackknife over tables. A constant that changes few tables, and these only "
        "a little, could be left out.\n\n"
        "AMPLE has more effects than show here, because hardly any table here has enough rows: it "
        "is also the [signal](glossary.md#forests) from which boosting has finer bins with a δ, "
        "and random trees without one (three times AMPLE with three classes or more, where "
        "boosting of these starts). CHECK also decides from which [n·ε](glossary.md#forests) on "
        "sums are fitted: 905 at 5 %, 226 at 20 %.\n\n"
        f"{markdown_table(head, rows)}\n"
    )


def _worth(
    constant: Constant, tables: Sequence[str], seeds: Sequence[int], accuracy: Mean, loss: Mean
) -> list[str]:
    cells: list[str] = []
    changed = set()
    for value in (constant.smaller, constant.larger):
        other, texts = Setting(constant, value), []
        for figure in (accuracy, loss):
            change = [figure(t, other, seeds) - figure(t, ours(constant), seeds) for t in tables]
            changed |= {t for t, one in zip(tables, change, strict=True) if one}
            texts.append(mean_and_error(change))
        cells += [f"{value:g}", *texts]
    three = tried(constant)
    curves = np.array([[accuracy(t, s, seeds) for s in three] for t in tables])
    best, error = jackknife(curves, lambda means: best_value(means, [s.value for s in three]))
    shown = f"{_short(best)} ± {_short(error)}" if changed else "-"
    return [constant.shown(), f"{constant.value:g}", shown, *cells, str(len(changed))]


def _short(number: float) -> str:
    return f"{number:.0f}" if number >= 99.5 else f"{number:.2g}"


def best_value(means: Any, values: Sequence[float]) -> float:
    """The top of a parabola through three means, over the logarithm of the values if they have
    one; the better end where there is no top.
    """
    logarithmic = min(values) > 0
    x = np.log(values) if logarithmic else np.array(values, dtype=float)
    curvature, slope, _ = np.polyfit(x, means, 2)
    if curvature < 0:
        top = float(np.clip(-slope / (2 * curvature), x[0], x[-1]))
    else:
        top = float(x[int(np.argmax(means))])
    return math.exp(top) if logarithmic else top


def jackknife(curves: Any, estimate: Callable[[Any], float]) -> tuple[float, float]:
    """An estimate from means over tables `curves[table, value]`, and its standard error."""
    n = len(curves)
    estimates = (
        [estimate(np.delete(curves, left, axis=0).mean(axis=0)) for left in range(n)]
        if n > 1
        else []
    )
    error = (
        math.sqrt((n - 1) / n * sum((one - statistics.mean(estimates)) ** 2 for one in estimates))
        if estimates
        else 0.0
    )
    return estimate(curves.mean(axis=0)), error


def _left_out(accuracy: Mean, tables: Sequence[str], grid: Grid) -> str:
    """Each table with the setting that is best on the others, and with its own best one."""
    every = settings()
    picked = {(t, s): accuracy(t, s, grid.picking) for t in tables for s in every}
    base = {
        (t, s): accuracy(t, ours(s.constant), grid.picking)
        for t in tables for s in every
    }  # fmt: skip
    rows, gains = [], []
    for table in tables:
        others = [t for t in tables if t != table]
        there = max(every, key=lambda s, o=others: sum(picked[t, s] - base[t, s] for t in o))
        best_here = max(every, key=lambda s, t=table: picked[t, s] - base[t, s])
        gain = [_gain(accuracy, table, setting, grid.testing) for setting in (there, best_here)]
        gains.append((*gain, gain[0] - gain[1]))
        rows.append(
            [
                table,
                f"{accuracy(table, ours(CONSTANTS[0]), grid.testing):.3f}",
                _name(there),
                f"{1000 * gain[0]:+.1f}",
                _name(best_here),
                f"{1000 * gain[1]:+.1f}",
            ]
        )
    chosen, best, lost = zip(*gains, strict=True)
    head = ["table left out", "ours", "best on the others", "gain", "best there", "gain"]
    return (
        "Does a setting that is chosen on some tables help on another one? A setting is one "
        "constant with one of the values of the [second table](#each-constant). Half of the seeds "
        "choose a setting, and the other half measure its accuracy on the table that is left out. "
        "*Best on the others* is chosen on all other tables, *best there* on the table itself. "
        "Gains are against today's constants (*ours*), in thousandths of accuracy. Mean gain of "
        f"the best on the others: {mean_and_error(chosen)}; of the best there: "
        f"{mean_and_error(best)}; the first minus the second: {mean_and_error(lost)}.\n\n"
        f"{markdown_table(head, rows)}"
    )


def _gain(accuracy: Mean, table: str, setting: Setting, seeds: Sequence[int]) -> float:
    return accuracy(table, setting, seeds) - accuracy(table, ours(setting.constant), seeds)


def _name(setting: Setting) -> str:
    if setting.ours:
        return "ours"
    return setting.constant.shown(f"{setting.value:g}")


if __name__ == "__main__":
    main()
