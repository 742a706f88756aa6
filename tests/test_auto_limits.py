"""Limits of the default that follow from noise, and the constants that stand for the others."""

from __future__ import annotations

import ast
import math
import sys
from pathlib import Path

import pytest

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.recipes.ours import auto_rules, constants
from dpforest_duckdb.request import Request

sys.path.append(str(Path(__file__).resolve().parent.parent / "benchmarks"))

from constants import CONSTANTS


def asked(rows: int, epsilon: float, *, classes: int = 2, numbers: int = 6, k: int = 1) -> Request:
    """A request for a table of real numbers, with a noisy number of rows."""
    made = tuple(Attribute(f"a{n}", "numeric", lower=0, upper=1) for n in range(numbers))
    return Request(
        domain=Domain(made, "k", tuple(f"c{n}" for n in range(classes))),
        epsilon=round(epsilon * NANO),
        trees=numbers,
        depth=1,
        rows=rows,
        rows_per_unit=k,
    )


def test_there_are_ten_constants_and_each_is_tried_smaller_and_larger() -> None:
    file = Path(constants.__file__).read_text(encoding="utf-8")
    names = [part.targets[0].id for part in ast.parse(file).body if isinstance(part, ast.Assign)]  # type: ignore[attr-defined]
    assert len(names) <= 10
    assert {constant.name for constant in CONSTANTS} == set(names)


@pytest.mark.parametrize(("epsilon", "k"), [(1, 1), (0.1, 1), (1, 5)])
def test_two_sums_are_fitted_if_a_cell_has_as_many_rows_as_noise(epsilon: float, k: int) -> None:
    """The histogram of two sums in four bins and two classes has 32 cells and CHECK % of ε."""
    cell = math.sqrt(2) * k / (epsilon * constants.CHECK / 100)  # the noise, in rows
    enough = math.ceil(32 * cell)
    assert enough == pytest.approx(452.5 * k / epsilon, abs=1)
    assert auto_rules.sums_are_fitted(asked(enough, epsilon, k=k))
    assert not auto_rules.sums_are_fitted(asked(enough - 1, epsilon, k=k))
    assert not auto_rules.sums_are_fitted(asked(100 * enough, epsilon, k=k, classes=3))


@pytest.mark.parametrize(("classes", "numbers", "k"), [(3, 120, 1), (7, 60, 1), (7, 60, 4)])
def test_class_means_are_released_if_a_class_has_as_many_rows_as_a_sum_has_noise(
    classes: int, numbers: int, k: int
) -> None:
    """The scale of the noise is that of one count, times the positions of a row."""

    def of(rows: int) -> Request:
        return asked(rows, 1, classes=classes, numbers=numbers, k=k)

    limit = next(rows for rows in range(1, 10_000) if auto_rules.means_fit(of(rows)))
    surely = [auto_rules.careful(rows, of(rows)).rows for rows in (limit - 1, limit)]
    assert surely[0] < numbers * classes * k <= surely[1]


@pytest.mark.parametrize("classes", [2, 3])
def test_few_joint_figures_may_have_noise_up_to_the_rows_of_a_class(classes: int) -> None:
    few = asked(1, 1, classes=classes)
    assert [
        auto_rules.above_noise(figures, few) for figures in (1, 32)
    ] == [False, False]  # one row  # fmt: skip
    for figures in (1, 9, 32):
        at = asked(figures * classes, 1, classes=classes)
        assert auto_rules.above_noise(figures, at)
        assert not auto_rules.above_noise(figures, asked(at.rows - 1, 1, classes=classes))
