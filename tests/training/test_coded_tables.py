"""Preliminary steps say in which domains they may code the rows, which bounds what they code."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import DOUBLE, VARCHAR
from dpforest_duckdb.engine.base import CodedRows, Coding
from dpforest_duckdb.privacy.amounts import ATTO, NANO
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.recipes import RECIPES
from dpforest_duckdb.recipes.adaptation import DENSE, plans
from dpforest_duckdb.training import phases
from dpforest_duckdb.training.preliminary import PRELIMINARY_STEPS
from dpforest_duckdb.training.preliminary.median_bins import MEDIAN_BINS
from dpforest_duckdb.training.prepare import prepare
from dpforest_duckdb.training.reading import Reader

NUMBERS = 12


def numbers(classes: int, **own: Any) -> Domain:
    """Numbers with bounds that are far too wide, and a text."""
    attributes = [
        Attribute(f"x{i}", "numeric", lower=-1000, upper=1000, **own) for i in range(NUMBERS)
    ]
    text = Attribute("text", "categorical", ("a", "b", "c"))
    domain = Domain((*attributes, text), "c", tuple(f"c{i}" for i in range(classes)))
    return domain.bind(
        {**dict.fromkeys([a.name for a in attributes], DOUBLE), "text": VARCHAR, "c": VARCHAR}
    )


@pytest.mark.parametrize(
    ("recipe", "domain", "planned"),
    [
        ("log-odds", numbers(3), {0, 1, 2, 4}),
        ("log-odds", numbers(3, bins=5), {0, 2, 4}),
        ("boosted", numbers(2), {0, 1, 3}),
    ],
    ids=["drawn bins", "bins of its own", "medians"],
)
@pytest.mark.filterwarnings("ignore::dpforest_duckdb.errors.NotPrivateWarning")
def test_a_step_codes_no_more_than_it_says(
    con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
    recipe: str, domain: Domain, planned: set[int],
) -> None:  # fmt: skip
    """Neither more often, nor in more cells; every one of these tables is in the bound."""
    # the text alone gives the class, so few attributes are used
    columns = ", ".join(f"hash(i, {n}) % 1000 / 1000 AS x{n}" for n in range(NUMBERS))
    con.execute(
        f"CREATE TABLE t AS SELECT {columns}, 'abc'[1 + i % {len(domain.classes)}] AS text, "
        f"'c' || i % {len(domain.classes)} AS c FROM range(3000) AS rows(i)"
    )
    run = prepare(
        con, "t", epsilon=1, domain=domain, recipe=recipe, privacy_unit="row", seed=1,
        ledger=tmp_path / "l",
    )  # fmt: skip
    coded: dict[int, list[Domain]] = {}
    encoded = Reader.encoded

    @contextlib.contextmanager
    def noted(reader: Reader, coding: Coding, **more: Any) -> Iterator[CodedRows]:
        coded[max(coded)].append(coding.domain)
        with encoded(reader, coding, **more) as rows:
            yield rows

    def marked(number: int) -> Any:
        def adapt(reader: Reader, context: Any) -> Any:
            coded[number] = []
            return PRELIMINARY_STEPS[number].adapt(reader, context)

        return replace(PRELIMINARY_STEPS[number], adapt=adapt)

    monkeypatch.setattr(Reader, "encoded", noted)
    monkeypatch.setattr(
        phases, "PRELIMINARY_STEPS", tuple(map(marked, range(len(PRELIMINARY_STEPS))))
    )
    run.execute()
    *_, grown = coded.values()
    grown.pop()
    assert set(coded) == planned
    bound = [table.domain for table in run.tables]
    for number, domains in coded.items():
        said = PRELIMINARY_STEPS[number].domains(run.request.domain)
        assert 0 < len(domains) <= len(said)
        for at, most in zip(domains, said, strict=False):
            cells = {a.name: a.cells for a in most.attributes}
            assert all(a.cells <= cells[a.name] for a in at.attributes)
        assert all(domain in bound for domain in said)


@pytest.mark.parametrize("delta", [0, ATTO // 10**5])
def test_recipes_that_cut_at_medians_have_room_for_them(delta: int) -> None:
    cutting = set()
    for recipe in RECIPES.values():
        request = recipe.request(numbers(2), NANO, delta=delta)
        if any(plan.query(Purpose.BINS) for plan in plans(recipe, request, DENSE)):
            cutting.add(recipe.name)
            every = (recipe, *recipe.adaptation.successors)
            assert any(MEDIAN_BINS.may_be_planned(each.adaptation) for each in every)
    assert cutting == {"auto", "boosted", "tree-beside-sums"}
