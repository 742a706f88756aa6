"""The pages on accuracy: means over tables, what fails, and the figures of every table."""

from __future__ import annotations

import csv
import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from generated import HARD
from peer_accuracy import known_peers
from plots import Chart
from shared import data_folder, markdown_table, standard_error, table_files

DEFAULT, CEILING = "auto", "random forest without privacy"
OURS = (
    DEFAULT,
    "class-means",
    "tree-beside-sums",
    "rooted-tables",
    "joint-tables",
    "log-odds",
    "greedy-tree",
    "boosted",
)
PEERS = ("diffprivlib", "DP-EBM")
EPSILONS = (0.1, 0.5, 1.0)
NEAR = 0.01  # how far below an aim still reaches it
STRENGTHS = (300, 3_000)  # rows times ε that divide tables into few, more and many rows
CLEARLY = 0.05  # of accuracy that a forest without privacy must add to the most frequent class
AIM = "the best seen, with hindsight"
SET_AIMS = {  # set before measuring: at least this accuracy or AUC, by ε; first pure, then with a δ
    False: {
        ("letter_recognition", "accuracy"): {0.1: 0.27, 0.5: 0.56, 1.0: 0.64},
        ("covertype", "accuracy"): {0.1: 0.69, 0.5: 0.71, 1.0: 0.72},
        ("german_credit", "auc"): {1.0: 0.66},
        ("skin_segmentation", "accuracy"): {1.0: 0.99},
        ("eeg_eye_state", "auc"): {1.0: 0.68},
        ("nursery", "accuracy"): {1.0: 0.92},
        ("krkopt", "accuracy"): {1.0: 0.42},
        ("tic_tac_toe", "accuracy"): {1.0: 0.72},
        ("kr_vs_kp", "accuracy"): {1.0: 0.92},
    },
    True: {("covertype", "accuracy"): {0.1: 0.71, 0.5: 0.735, 1.0: 0.74}},
}


@dataclass(frozen=True)
class Cell:
    """Means of a contender on a table at an ε, the standard error of accuracy over runs, and what
    the most frequent class and the class shares would reach. None if a figure is not known.
    """

    table: str
    contender: str
    epsilon: float
    accuracy: float
    error: float | None
    auc: float | None
    log_loss: float | None
    majority: float = math.nan
    entropy: float = math.nan
    missing: int = 0  # runs that were planned
    rows: int = 0  # of training

    @classmethod
    def mean(
        cls,
        table: str,
        contender: str,
        epsilon: float,
        runs: Sequence[Mapping[str, object]],
        shares: np.ndarray,
        missing: int = 0,
        rows: int = 0,
    ) -> Cell:
        """The mean of runs; `shares` are those of the classes that have rows."""

        def values(key: str) -> list[float]:
            return [float(str(run[key])) for run in runs if run[key] is not None]

        right, areas = values("accuracy"), values("auc")
        return cls(
            table,
            contender,
            epsilon,
            statistics.mean(right),
            standard_error(right) if len(right) > 1 else None,
            statistics.mean(areas) if areas else None,
            statistics.mean(values("log_loss")),
            float(shares.max()),
            float(-(shares * np.log(shares)).sum()),
            missing,
            rows,
        )


@dataclass(frozen=True)
class Aim:
    """What is known of a table and ε from the folder of targets; None if a figure is not known."""

    file: str
    accuracy: float
    auc: float | None
    ebm: tuple[float, float] | None  # accuracy and AUC of DP-EBM, which has a δ


def aims(delta: float) -> dict[tuple[str, float], Aim]:
    """The best figures seen under a guarantee, by table and ε; empty without a folder of targets.

    The best was chosen with hindsight in every row.
    """
    found: dict[tuple[str, float], Aim] = {}
    for name, best in (("accuracy", "target"), ("more", "best")):
        file = data_folder().parent / "targets" / f"{name}{'_delta' if delta else ''}.csv"
        if not file.is_file():
            continue
        with file.open(encoding="utf-8") as lines:
            for row in csv.DictReader(lines):
                ebm = row.get("dp_ebm_accuracy"), row.get("dp_ebm_auc")
                found[row["table"], float(row["epsilon"])] = Aim(
                    file.name,
                    float(row[f"{best}_accuracy"]),
                    float(row[f"{best}_auc"]) if row[f"{best}_auc"] else None,
                    (float(ebm[0]), float(ebm[1])) if ebm[0] and ebm[1] else None,
                )
    return found


def with_peers(cells: Sequence[Cell]) -> list[Cell]:
    """The cells, and those of peers on the same tables."""
    asked = {(cell.table, cell.epsilon) for cell in cells}
    peers = [
        Cell(table, peer, epsilon, figures.accuracy, figures.error, figures.auc, figures.log_loss)
        for (table, epsilon, peer), figures in known_peers().items()
        if (table, epsilon) in asked
    ]
    return [*cells, *peers]


def summary(cells: Sequence[Cell], delta: float) -> str:
    """Means over tables, and how many rows reach the targets."""
    measured = {cell.table for cell in cells if cell.contender == DEFAULT}
    made = measured & set(HARD)
    every = with_peers(cells)
    groups = {f"{len(measured - made)} tables": measured - made, f"{len(made)} generated": made}
    for peer in PEERS:
        tables = {cell.table for cell in every if cell.contender == peer}
        groups[f"the {len(tables)} with {peer}"] = tables
    rows = []
    for title, tables in groups.items():
        contenders = dict.fromkeys(cell.contender for cell in every if cell.table in tables)
        if title.endswith(PEERS):
            contenders = dict.fromkeys([DEFAULT, title.split()[-1]])
        else:
            contenders = dict.fromkeys(name for name in contenders if name not in PEERS)
        for contender in contenders:
            rows.append([f"{title}: {contender}", *_means(every, tables, contender)])
    head = ["", *(f"ε = {e:g}: {figure}" for e in EPSILONS for figure in ("acc.", "AUC", "loss"))]
    return f"{markdown_table(head, rows)}\n\n{reached(cells, delta)}"


def _means(cells: Sequence[Cell], tables: set[str], contender: str) -> Iterator[str]:
    """Accuracy, AUC and log loss for each ε, over the tables that all have them."""
    for epsilon in EPSILONS:
        figures = [
            cell
            for cell in cells
            if (cell.contender, cell.epsilon) == (contender, epsilon) and cell.table in tables
        ]
        for values in (
            [cell.accuracy for cell in figures],
            [cell.auc for cell in figures if cell.auc is not None],
            [cell.log_loss for cell in figures if cell.log_loss is not None],
        ):
            yield f"{statistics.mean(values):.3f}" if values else "-"


def reached(cells: Sequence[Cell], delta: float) -> str:
    """How many rows of the default reach the targets of each file, and the figures of a guess."""
    auto = [cell for cell in cells if cell.contender == DEFAULT]
    known = aims(delta)
    lines = []
    for file in dict.fromkeys(aim.file for aim in known.values()):
        pairs = [
            (cell, aim)
            for cell in auto
            if (aim := known.get((cell.table, cell.epsilon))) and aim.file == file
        ]
        if not pairs:
            continue
        right = [cell.accuracy >= aim.accuracy - NEAR for cell, aim in pairs]
        areas = [
            cell.auc >= aim.auc - NEAR
            for cell, aim in pairs
            if cell.auc is not None and aim.auc is not None
        ]
        means = [statistics.mean(values) for values in zip(
            *((cell.accuracy, aim.accuracy) for cell, aim in pairs), strict=True
        )]  # fmt: skip
        line = f"- `targets/{file}`: within .01 of the best seen "
        line += f"in accuracy {sum(right)} of {len(right)} rows"
        line += f", in AUC {sum(areas)} of {len(areas)}; mean accuracy {means[0]:.4f}, of the best "
        line += f"seen {means[1]:.4f}."
        beaten = [
            cell.accuracy >= aim.ebm[0] and (cell.auc or 0) >= aim.ebm[1]
            for cell, aim in pairs
            if aim.ebm
        ]
        if beaten:
            line += f" Neither figure below DP-EBM's: {sum(beaten)} of {len(beaten)}."
        lines.append(line)
    below = sum(cell.accuracy < cell.majority - NEAR for cell in auto)
    above = sum(cell.log_loss is not None and cell.log_loss > cell.entropy + NEAR for cell in auto)
    lines.append(
        "- Rows with an accuracy below the share of the most frequent class by more than .01: "
        f"{below} of {len(auto)}; with a log loss above that of the class shares by more than .01: "
        f"{above}."
    )
    return "\n".join(lines)


def ways(cells: Sequence[Cell]) -> str:
    """How far the default gets from a guess towards the forest without privacy, by rows times ε."""
    best = {cell.table: cell.accuracy for cell in cells if cell.contender == CEILING}
    found: dict[int, list[float]] = {}
    for cell in cells:
        room = best.get(cell.table, 0.0) - cell.majority
        if cell.contender == DEFAULT and cell.table not in HARD and room >= CLEARLY:
            place = int(np.searchsorted(STRENGTHS, cell.rows * cell.epsilon))
            found.setdefault(place, []).append((cell.accuracy - cell.majority) / room)
    low, high = (f"{strength:,}" for strength in STRENGTHS)
    titles = (f"up to {low}", f"{low} to {high}", f"above {high}")
    rows = [
        [
            titles[place],
            f"{len(parts)}",
            *(f"{part:.0%}" for part in np.quantile(parts, (0.25, 0.5))),
        ]
        for place, parts in sorted(found.items())
    ]
    head = ["training rows × ε", "runs", "a quarter gets less than", "half get less than"]
    return (
        "How far the accuracy of auto gets from that of a guess, the most frequent class (0 %), to "
        "that of a random forest without privacy (100 %). These are real tables on which the two "
        f"are at least .05 apart, and a run is a table at an ε:\n\n{markdown_table(head, rows)}"
    )


def set_aims(cells: Sequence[Cell], delta: float) -> str:
    """Which of the aims that were set for single tables are met; nothing if none was measured."""
    auto = {(cell.table, cell.epsilon): cell for cell in cells if cell.contender == DEFAULT}
    rows = []
    for (table, figure), by_epsilon in SET_AIMS[bool(delta)].items():
        for epsilon, aim in by_epsilon.items():
            if cell := auto.get((table, epsilon)):
                reached = cell.accuracy if figure == "accuracy" else cell.auc or 0.0
                name = "AUC" if figure == "auc" else figure
                verdict = "yes" if reached >= aim else f"no, {aim - reached:.4f} short"
                rows.append([table, f"{epsilon:g}", name, f"{aim:g}", f"{reached:.4f}", verdict])
    if not rows:
        return ""
    head = ["table", "ε", "figure", "at least", "auto", "met"]
    return f"Aims that were set for single tables:\n\n{markdown_table(head, rows)}\n\n"


def _rows(cells: Sequence[Cell], delta: float) -> list[list[str]]:
    """A line for each row of the default, the furthest behind first."""
    known, others = aims(delta), with_peers(cells)
    lines: list[tuple[float, list[str]]] = []
    for cell in (cell for cell in cells if cell.contender == DEFAULT):
        same = [o for o in others if (o.table, o.epsilon) == (cell.table, cell.epsilon)]
        private = [o for o in same if o.contender not in (DEFAULT, CEILING)]
        if not delta:
            private = [o for o in private if o.contender != "DP-EBM"]
        best = [(o.accuracy, o.contender) for o in private]
        areas = [o.auc for o in private if o.auc is not None]
        if aim := known.get((cell.table, cell.epsilon)):
            best.append((aim.accuracy, "hindsight"))
            areas += [aim.auc] if aim.auc is not None else []
        accuracy, name = max(best, default=(cell.accuracy, "-"))
        ceiling = next((o.accuracy for o in same if o.contender == CEILING), None)
        lines.append(
            (
                cell.accuracy - accuracy,
                [
                    cell.table,
                    f"{cell.epsilon:g}",
                    f"{cell.accuracy:.3f}" + (f" ± {cell.error:.3f}" if cell.error else ""),
                    f"{cell.accuracy - accuracy:+.3f}",
                    f"{accuracy:.3f}, {name}",
                    _text(cell.auc),
                    _text(max(areas, default=None)),
                    _text(cell.log_loss),
                    f"{cell.majority:.3f}",
                    f"{cell.entropy:.3f}",
                    _text(ceiling),
                ],
            )
        )
    return [line for _, line in sorted(lines, key=lambda one: one[0])]


def _text(figure: float | None) -> str:
    return "-" if figure is None else f"{figure:.3f}"


def _others(cells: Sequence[Cell]) -> str:
    """Accuracy, AUC and log loss of every contender, a line for each table and ε."""
    every = with_peers(cells)
    names = list(dict.fromkeys(cell.contender for cell in every))
    found = {(cell.table, cell.epsilon, cell.contender): cell for cell in every}
    rows = []
    for table, epsilon in dict.fromkeys((cell.table, cell.epsilon) for cell in cells):
        each = [found.get((table, epsilon, name)) for name in names]
        texts = [
            " / ".join(map(_text, (o.accuracy, o.auc, o.log_loss))) if o else "-" for o in each
        ]
        rows.append([f"{table}, {epsilon:g}", *texts])
    return markdown_table(["table, ε", *names], rows)


PEERS_AND_AIMS = (
    "- **Generated tables** are those of `benchmarks/generated.py`.\n"
    "- **Peers** are diffprivlib's forest of 10 trees of depth 5, and DP-EBM with its default "
    "settings, for two classes and with δ = 1e-5. `benchmarks/peer_accuracy.py` measured them and "
    "wrote `benchmarks/peer_accuracy.csv`. On the sixteen tables of the second folder "
    "(`DPFOREST_MORE_DATA`), DP-EBM's figures are from the folder `targets` beside the tables, "
    "without log loss.\n"
    "- **The best seen** is from that folder too: the best result of any model, prototype or peer "
    "under this guarantee, chosen afterwards for each table and ε.\n"
    "- **Without privacy**: scikit-learn's random forest of 100 trees, on the first fold and at "
    "most 20,000 rows."
)


def measured(seeds: int, command: str, note: str) -> str:
    """How the figures were measured."""
    return (
        f"Written by `{command}`. Each figure is from cross-validation with three stratified "
        "folds; tables of fewer than 8,000 rows are split into folds three times. Each fold has "
        f"{seeds} {'seed' if seeds == 1 else 'seeds'} for auto. Other recipes have one seed, on "
        "the first three folds. ± is the standard error over these runs. Noise is from seeds. "
        f"{note}"
    )


def page(
    cells: Sequence[Cell], delta: float, seeds: int, command: str, chart: str, note: str
) -> tuple[str, list[Chart]]:
    """The page, and the charts that it shows."""
    title = f"Accuracy, δ = {delta:g}" if delta else "Accuracy"
    given = f"δ = {delta:g}" if delta else "δ = 0"
    head = ["table", "ε", "auto: accuracy", "behind by", "best other", "AUC", "best other's"]
    head += ["log loss", "guess: accuracy", "log loss", "without privacy"]
    left = [name for name in (*table_files(), *HARD) if name not in {c.table for c in cells}]
    missing = f" Not measured yet: {', '.join(left)}." if left else ""
    fewer = [f"{c.table} at {c.epsilon:g} ({c.missing})" for c in cells if c.missing]
    if fewer:
        missing += f" Runs that are missing: {', '.join(fewer)}."
    pure = " Recipes other than auto, boosted and class-means spend no δ." if delta else ""
    return (
        f"# {title}\n\nHow accurate is the [default](auto.md), `auto`, compared with other "
        "recipes, other private packages and a random forest without privacy, with "
        f"{given}?\n\n"
        f"{measured(seeds, command, note)}{pure}{missing}\n\n{PEERS_AND_AIMS}\n\n"
        "Means over tables, AUC over those with two classes. A row of a list below is a table at "
        f"an ε.\n\n{summary(cells, delta)}\n\n"
        f"{ways(cells)}\n\n"
        f"{set_aims(cells, delta)}"
        "## Every table, the furthest behind first\n\n"
        "The best other is the best of the other recipes of this package, the peers under the same "
        "guarantee, and the best seen (*hindsight*). The recipes have one seed, so the best of "
        "seven is partly luck.\n\n"
        f"{markdown_table(head, _rows(cells, delta))}\n\n"
        f"![accuracy and AUC over ε]({chart}.svg)\n\n"
        f"## Every contender: accuracy / AUC / log loss\n\n{_others(cells)}\n",
        list(_charts(cells, delta)),
    )


def _charts(cells: Sequence[Cell], delta: float) -> Iterator[Chart]:
    """Accuracy over ε of every table, then the area under the curve where there is one."""
    known, every = aims(delta), with_peers(cells)
    shown = (DEFAULT, *PEERS)
    tables = list(dict.fromkeys(cell.table for cell in cells if cell.table not in HARD))
    figures: dict[str, Callable[[Cell | Aim], float | None]] = {
        "accuracy": lambda one: one.accuracy,
        "AUC": lambda one: one.auc,
    }
    for figure, value in figures.items():
        for table in tables:
            curves = {
                name: [
                    (cell.epsilon, known_value)
                    for cell in every
                    if (cell.table, cell.contender) == (table, name)
                    and (known_value := value(cell)) is not None
                ]
                for name in shown
            }
            aim = [
                (epsilon, known_value)
                for epsilon in EPSILONS
                if (row := known.get((table, epsilon))) and (known_value := value(row)) is not None
            ]
            lines = {name: points for name, points in {**curves, AIM: aim}.items() if points}
            if set(lines) <= {AIM}:
                continue
            values = [y for points in lines.values() for _, y in points]
            marks = [m / 10 for m in range(11) if min(values) - 0.1 < m / 10 < max(values) + 0.1]
            title = f"{table}: {figure}"
            yield Chart(title, lines, (EPSILONS, marks), (True, False), frozenset({AIM}))
