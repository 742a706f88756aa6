"""The weight of sums of log-odds of several classes: when it is planned, and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import numpy as np
import pytest

from dpforest_duckdb import Forest, prepare
from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import VARCHAR
from dpforest_duckdb.engine.base import POINTS
from dpforest_duckdb.learners import mixtures
from dpforest_duckdb.learners.mixtures import WEIGHTS
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.recipes import find
from dpforest_duckdb.recipes.ours import auto_rules, log_odds
from dpforest_duckdb.request import Request

CLASSES = ("p", "q", "r")
COPIES = tuple(Attribute(f"a{n}", "categorical", CLASSES, nullable=False) for n in range(5))


def asked(rows: int, classes: int = 3, k: int = 1, trees: int = 4) -> Request:
    domain = Domain(COPIES, "c", tuple(f"c{n}" for n in range(classes)))
    types = {**{each.name: VARCHAR for each in COPIES}, "c": VARCHAR}
    return Request(
        domain=domain.bind(types), epsilon=NANO, trees=trees, depth=1, rows=rows, rows_per_unit=k
    )


@pytest.mark.parametrize("k", [1, 3])
def test_rows_for_two_leaves_of_a_tree_choose_a_weight(k: int) -> None:
    """Two leaves of three classes hold 2 · 100 · 3^1.5 = 1,039.2 rows at ε = 1."""
    enough, weighed = asked(1_040 * k, k=k), log_odds.sums_are_weighed
    assert weighed(enough)
    assert not weighed(asked(1_039 * k, k=k))
    assert not weighed(asked(10**6, classes=2)), "sums of two classes are fitted"
    assert not weighed(asked(10**6, trees=1)), "one table counts nothing twice"
    plan = find("log-odds").plan(enough)
    (*_, last) = plan.queries
    counted = sum(query.total for query in plan.queries[:-3])  # then attributes, tables, weight
    assert last.purpose == "mixture"
    assert last.total == int((NANO - counted) * auto_rules.choice_part(enough))
    assert NANO * 0.999 < plan.epsilon <= NANO
    assert find("log-odds").plan(asked(1_000, k=k)).query("mixture") is None


def test_a_statement_that_would_be_too_large_rates_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto_rules, "MOST_RATED", 12)
    assert log_odds.sums_are_weighed(asked(10**5, trees=4))
    assert not log_odds.sums_are_weighed(asked(10**5, trees=5))


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    """Rows with five copies of an attribute that says the class of 60 % of them; units of three."""
    with duckdb.connect() as con:
        copies = ", ".join(f"v AS a{n}" for n in range(5))
        con.execute(
            f"CREATE TABLE t AS SELECT {copies}, CASE WHEN i % 10 < 4 THEN 'pqr'[1 + i // 10 % 3] "
            "ELSE v END AS c, i // 3 AS u FROM (SELECT i, 'pqr'[1 + i * 7 % 3] AS v "
            "FROM range(30000) AS r(i))"
        )
        yield con


@pytest.mark.parametrize("k", [1, 3])
def test_the_draw_of_a_weight_pays_what_is_planned(
    con: duckdb.DuckDBPyConnection,
    fit: Callable[..., Forest],
    monkeypatch: pytest.MonkeyPatch,
    k: int,
) -> None:
    """Copies are counted five times, so a small weight gets the most points."""
    asked, draw = list[tuple[Any, ...]](), mixtures.draw_best

    def noted(points: Any, *rest: Any) -> int:
        asked.append((points, *rest[:2]))
        return draw(points, *rest)

    monkeypatch.setattr(mixtures, "draw_best", noted)
    forest = fit(con, "t", domain=Domain(COPIES, "c", CLASSES), recipe="log-odds", epsilon=2,
                 privacy_unit="u", rows_per_unit=k)  # fmt: skip
    ((points, cost, sensitivity),) = asked
    assert sensitivity == POINTS * k
    (line,) = (line for line in forest.guarantee.plan if line.startswith("mixture"))
    assert line == f"mixture: permute-and-flip on points, ε = {cost / NANO:.9g}"
    assert WEIGHTS[int(np.argmax(points))] in (3, 5)


@pytest.mark.parametrize("drawn", range(len(WEIGHTS)))
def test_what_attributes_add_is_weighed_and_class_shares_are_not(
    con: duckdb.DuckDBPyConnection, fit: Callable[..., Forest], monkeypatch: pytest.MonkeyPatch,
    drawn: int,
) -> None:  # fmt: skip
    given = {"domain": Domain(COPIES, "c", CLASSES), "recipe": "log-odds", "privacy_unit": "row"}
    made = []
    for number in (0, drawn):
        monkeypatch.setattr(mixtures, "draw_best", lambda *_, number=number: number)
        made.append(fit(con, "t", **given, epsilon=2, seed=5))
    whole, weighed = made
    (first, *others), (same, *less) = whole.trees, weighed.trees
    assert first.votes.tolist() == same.votes.tolist()
    assert len(others) == len(less) == 5
    for one, other in zip(others, less, strict=True):
        assert (one.votes * WEIGHTS[drawn] // 20).tolist() == other.votes.tolist()
        assert one.votes.any()


def test_the_default_weighs_its_sums_too(con: duckdb.DuckDBPyConnection, tmp_path: Any) -> None:
    """Where it picks log-odds: the plan that is shown before a run has the query."""
    words = tuple(
        Attribute(f"w{n}", "categorical", tuple(f"v{v}" for v in range(90))) for n in range(17)
    )
    for word in words:
        con.execute(f"ALTER TABLE t ADD COLUMN {word.name} VARCHAR")
    run = prepare(con, "t", domain=Domain((*COPIES, *words), "c", CLASSES), epsilon=0.1,
                  privacy_unit="row", ledger=tmp_path / "l")  # fmt: skip
    forest = run.execute()
    assert forest.picked == "log-odds"
    assert any(line.startswith("mixture") for line in forest.guarantee.plan)
