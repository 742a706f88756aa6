"""Tables that are made here, seeded, to see where a default fails.

    python benchmarks/generated.py FOLDER     # NAME.parquet and NAME.toml of each, to look at

Six hard cases, each with a structure that some recipe finds and another does not; and seven of bad
input, which a curator may give by mistake. Columns are numbers; categories are whole numbers too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
from in_memory import Table
from numpy.typing import NDArray

from dpforest_duckdb.domain import Attribute, Domain

TARGET = "class"
Columns = list[NDArray[np.generic]]


@dataclass(frozen=True)
class Case:
    """Columns of numbers, one attribute for each, and the class of each row."""

    columns: Columns
    attributes: tuple[Attribute, ...]
    labels: NDArray[np.int64]
    classes: int

    @property
    def domain(self) -> Domain:
        return Domain(self.attributes, TARGET, tuple(map(str, range(self.classes))))

    def write(self, con: duckdb.DuckDBPyConnection, name: str) -> None:
        """Make a table of it."""
        names = [attribute.name for attribute in self.attributes]
        data = dict(zip([*names, TARGET], [*self.columns, self.labels], strict=True))
        con.register("made", data)
        con.execute(f"CREATE TABLE {name} AS FROM made")
        con.unregister("made")

    def table(self) -> Table:
        con = duckdb.connect()
        self.write(con, "rows")
        return Table(con, "rows", self.domain)


def _numbers(count: int, lower: float, upper: float, first: int = 0) -> tuple[Attribute, ...]:
    return tuple(
        Attribute(f"a{n}", "numeric", lower=lower, upper=upper, nullable=False)
        for n in range(first, first + count)
    )


def _categories(name: str, count: int) -> Attribute:
    return Attribute(name, "categorical", tuple(map(str, range(count))), nullable=False)


def _split(values: NDArray[np.generic]) -> Columns:
    return [np.ascontiguousarray(column) for column in values.T]


def many_classes(n: int = 20_000) -> Case:
    """26 classes, 16 attributes of 16 whole numbers, independent within a class."""
    random, classes, m = np.random.default_rng(0), 26, 16
    y = random.integers(0, classes, n)
    mean = random.uniform(3, 12, (classes, m))
    deviation = random.uniform(1.2, 2.6, (classes, m))
    mean = 7.5 + (mean - 7.5) * random.uniform(0.3, 1.0, m)[None]
    x = np.clip(np.rint(random.normal(mean[y], deviation[y])), 0, 15).astype(np.int64)
    return Case(_split(x), _numbers(m, 0, 15), y, classes)


def many_weak(n: int = 2_300) -> Case:
    """7 classes, 18 numbers, each with a little information: all of them are needed."""
    random, classes, m = np.random.default_rng(1), 7, 18
    y = random.integers(0, classes, n)
    mean = random.normal(0, 1.0, (classes, m))
    x = np.clip((mean[y] + random.normal(0, 1, (n, m))) * 20 + 128, 0, 255)
    return Case(_split(x), _numbers(m, 0, 255), y, classes)


def spikes(n: int = 15_000) -> Case:
    """2 classes, 14 numbers within 100 of about 4200, and a few spikes; bounds 0 to 8400."""
    random, m = np.random.default_rng(2), 14
    y = (random.random(n) < 0.45).astype(np.int64)
    centre, scale = random.uniform(4000, 4600, m), random.uniform(15, 40, m)
    z = random.normal(0, 1, (n, m)) + 0.9 * random.normal(0, 1, (n, 1))
    shift = random.choice([-0.6, -0.4, 0, 0, 0.4, 0.6], m)
    wider = 1 + 0.25 * y[:, None] * (np.arange(m) % 3 == 0)
    x = centre + scale * (z * wider + shift * y[:, None])
    spike = random.random((n, m)) < 0.0003
    x[spike] = random.uniform(0, 8400, spike.sum())
    return Case(_split(np.clip(x, 0, 8400)), _numbers(m, 0, 8400), y, 2)


def boxes(n: int = 240_000) -> Case:
    """2 classes, 3 numbers of 256 values; the second class is a region of their differences."""
    random = np.random.default_rng(3)
    y = (random.random(n) < 0.21).astype(np.int64)
    base = random.integers(0, 256, n)
    noise = [random.normal(0, deviation, n) for deviation in (12, 12, 14)]
    x = np.stack([base + noise[0] - 6, base + noise[1], base + noise[2] + 4], 1)
    start = random.uniform(50, 200, n)
    noise = [random.normal(0, deviation, n) for deviation in (10, 8, 12)]
    region = np.stack([start + noise[0], start + 30 + noise[1], start + 75 + noise[2]], 1)
    x[y == 1] = region[y == 1]
    whole = np.clip(np.rint(x), 0, 255).astype(np.int64)
    return Case(_split(whole), _numbers(3, 0, 255), y, 2)


def redundant(n: int = 5_400) -> Case:
    """4 classes by rules on three hidden numbers, and 24 numbers that repeat these."""
    random, m = np.random.default_rng(4), 24
    hidden = random.uniform(0, 1, (n, 3))
    last = np.where((hidden[:, 2] > 0.6) & (hidden[:, 0] > 0.6), 2, 3)
    y = np.where(hidden[:, 0] < 0.25, 0, np.where(hidden[:, 1] < 0.35, 1, last))
    repeated = np.arange(m)
    x = hidden[:, repeated % 3] + random.normal(0, 0.03 + 0.02 * (repeated // 3), (n, m))
    return Case(_split(np.clip(x * 5, 0, 5)), _numbers(m, 0, 5), y.astype(np.int64), 4)


def terrain(n: int = 300_000) -> Case:
    """7 classes in bands of one number; other numbers and two categories move their edges."""
    random = np.random.default_rng(5)
    height = random.beta(4, 3, n) * 2000 + 1850
    area, soil = random.integers(0, 4, n), random.integers(0, 30, n)
    scale = np.array([180, 8, 130, 30, 1700, 60, 60, 60, 1500])
    x = random.gamma(2.0, 1.0, (n, 9)) * scale / 2
    band = (height - 1850) / 2000 + 0.10 * (area - 1.5) + 0.06 * ((soil % 5) - 2)
    band = band - 0.05 * (x[:, 3] / 30 > 1) + 0.08 * np.tanh(x[:, 4] / 1700 - 1) * (area < 2)
    band = band + random.normal(0, 0.07, n)
    edges = np.array([0.28, 0.4, 0.5, 0.68, 0.80, 0.92])
    y = np.array([2, 5, 3, 1, 0, 4, 6])[np.searchsorted(edges, band)]
    most = (4000, 1000, 60, 1000, 300, 7200, 400, 400, 400, 7200)
    numbers = np.clip(np.column_stack([height, x]), 0, most)
    attributes = [_numbers(1, 0, upper, number)[0] for number, upper in enumerate(most)]
    attributes += [_categories("c0", 4), _categories("c1", 30)]
    return Case([*_split(numbers), area, soil], tuple(attributes), y, 7)


def _plain(n: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Three numbers from 0 to 1 and two classes, which a sum predicts well."""
    random = np.random.default_rng(seed)
    x = random.uniform(0, 1, (n, 3))
    odds = 6 * (x[:, 0] - 0.5) + 4 * (x[:, 1] - 0.5) + 2 * (x[:, 2] - 0.5)
    return x, (random.random(n) < 1 / (1 + np.exp(-odds))).astype(np.int64)


def copies(n: int = 7_500) -> Case:
    """Three attributes, each of them nine times."""
    x, y = _plain(n, 10)
    return Case(_split(np.tile(x, 9)), _numbers(27, 0, 1), y, 2)


def no_information(n: int = 7_500) -> Case:
    """A hundred attributes without any information beside three that have some."""
    x, y = _plain(n, 11)
    random = np.random.default_rng(12)
    numbers, codes = random.uniform(0, 1, (n, 50)), random.integers(0, 5, (n, 50))
    attributes = [*_numbers(53, 0, 1), *(_categories(f"c{number}", 5) for number in range(50))]
    return Case([*_split(np.hstack([x, numbers])), *_split(codes)], tuple(attributes), y, 2)


def two_rows(n: int = 7_500) -> Case:
    """A third class with two rows."""
    x, y = _plain(n, 13)
    y[:2] = 2
    return Case(_split(x), _numbers(3, 0, 1), y, 3)


def absent_classes(n: int = 7_500) -> Case:
    """Six classes, of which two have rows."""
    x, y = _plain(n, 14)
    return Case(_split(x), _numbers(3, 0, 1), 2 * y + 1, 6)


def one_value(n: int = 7_500) -> Case:
    """Every attribute has one value everywhere."""
    _, y = _plain(n, 15)
    same = np.full((n, 4), 0.5)
    codes = np.ones((n, 4), dtype=np.int64)
    attributes = [*_numbers(4, 0, 1), *(_categories(f"c{number}", 3) for number in range(4))]
    return Case([*_split(same), *_split(codes)], tuple(attributes), y, 2)


def wide_bounds(n: int = 7_500) -> Case:
    """Bounds a thousand times too wide."""
    x, y = _plain(n, 16)
    return Case(_split(x), _numbers(3, -500, 500), y, 2)


def target_twice(n: int = 7_500) -> Case:
    """An attribute that equals the target, beside others."""
    x, y = _plain(n, 17)
    return Case([*_split(x), y.copy()], (*_numbers(3, 0, 1), _categories("same", 2)), y, 2)


HARD: dict[str, Callable[[], Case]] = {
    case.__name__: case
    for case in (many_classes, many_weak, spikes, boxes, redundant, terrain)
}  # fmt: skip
BAD: dict[str, Callable[[], Case]] = {
    case.__name__: case
    for case in (
        copies, no_information, two_rows, absent_classes, one_value, wide_bounds, target_twice
    )
}  # fmt: skip
GENERATED = {**HARD, **BAD}


def main() -> None:
    """Write every case to a folder."""
    folder = Path(sys.argv[1])
    for name, make in GENERATED.items():
        case, con = make(), duckdb.connect()
        case.write(con, name)
        con.execute(f"COPY {name} TO '{folder / name}.parquet'")
        text = [f'target = "{TARGET}"']
        for attribute in case.attributes:
            text += ["[[column]]", f'name = "{attribute.name}"', f'kind = "{attribute.kind}"']
            text += ["nullable = false"]
            if attribute.kind == "numeric":
                text += [f"lower = {attribute.lower}", f"upper = {attribute.upper}"]
            else:
                text += [f"domain = {list(map(int, attribute.values))}"]
        text += ["[[column]]", f'name = "{TARGET}"', 'kind = "categorical"']
        text += [f"domain = {list(range(case.classes))}", ""]
        (folder / f"{name}.toml").write_text("\n".join(text), encoding="utf-8")


if __name__ == "__main__":
    main()
