"""The figures by which joint tables fit, one by one; `test_auto_limits` has the decisions."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import DOUBLE, VARCHAR
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.recipes.ours import constants, joint_rules
from dpforest_duckdb.request import Request


def asked(rows: int, *, values: int = 2, classes: int = 3, k: int = 1, numbers: int = 0) -> Request:
    """A request for five attributes of so many values, and numbers, at ε = 1."""
    labels = tuple(map(str, range(values)))
    made = [Attribute(f"w{n}", "categorical", labels, nullable=False) for n in range(5)]
    made += [
        Attribute(f"n{n}", "numeric", lower=0, upper=1, nullable=False) for n in range(numbers)
    ]
    domain = Domain(tuple(made), "c", tuple(f"c{n}" for n in range(classes)))
    types = {each.name: DOUBLE if each.kind == "numeric" else VARCHAR for each in made}
    return Request(domain.bind({**types, "c": VARCHAR}), NANO, len(made), 1, k, rows=rows)


@pytest.mark.parametrize("k", [1, 4])
def test_joint_noise_is_compared_with_the_rows_of_a_class(k: int) -> None:
    """The scale of the noise, times the number of figures, by √3: about its deviation."""
    found = joint_rules.roughness(12, asked(1000, k=k))
    assert found == pytest.approx(12 * k / math.sqrt(3) * 3 / 1000)
    assert joint_rules.roughness(12, asked(0, k=k)) == pytest.approx(1000 * found)


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("bins", [2, 4, 8, 16, 32])
def test_numbers_have_as_many_bins_as_joint_noise_allows(bins: int, k: int) -> None:
    """Half as many until there is little noise for the rows of a class."""
    request = asked(1, k=k, numbers=40)
    figures = joint_rules._figures(request.domain.attributes, bins)
    enough = math.ceil(figures * k / math.sqrt(3) * 3 / constants.CLEAN)
    assert joint_rules.joint_bins(replace(request, rows=enough)) == bins
    fewer = joint_rules.joint_bins(replace(request, rows=enough - 1))
    assert fewer == (bins // 2 if bins > 2 else 0)


@pytest.mark.parametrize("k", [1, 4])
def test_tables_are_out_of_reach_if_a_cell_has_less_than_half_of_the_noise(k: int) -> None:
    """The tables get 70 % of ε; at least 300 rows are assumed. Two classes always have tables."""
    for values, classes in ((60, 30), (60, 4)):
        request = asked(1, values=values, classes=classes, k=k)
        enough = math.ceil(k / 0.7 / 2 * classes * values)
        assert joint_rules.out_of_reach(replace(request, rows=enough - 1)) == (enough > 300)
        assert not joint_rules.out_of_reach(replace(request, rows=enough))
        assert joint_rules.out_of_reach(replace(request, rows=1)) == (enough > 300)
    assert not joint_rules.out_of_reach(asked(1, values=2, classes=3))
    assert not joint_rules.out_of_reach(asked(1, values=60, classes=2, k=1000))
    assert joint_rules.out_of_reach(asked(1, values=60, classes=3, k=1000))
