"""Queries of a plan in words."""

from __future__ import annotations

import copy
import json
import pickle

from dpforest_duckdb.privacy.plan import Plan, PlannedQuery
from dpforest_duckdb.privacy.wording import Purpose, steps, wording


def test_a_purpose_is_its_text() -> None:
    assert (f"{Purpose.ROWS_AGAIN}", str(Purpose.ROWS_AGAIN)) == ("rows again", "rows again")
    for purpose in Purpose:
        assert json.dumps({purpose: purpose}) == json.dumps({str(purpose): purpose.value})
        assert copy.deepcopy(purpose) is purpose
        assert pickle.loads(pickle.dumps(purpose)) is purpose
        plan = Plan((PlannedQuery(purpose, "m", (5,)),))
        assert plan.query(purpose) == plan.queries[0]
        assert plan.queries == (PlannedQuery(purpose.value, "m", (5,)),)
        assert plan.lines()[0].startswith(f"{purpose.value}: m, ε = ")


def test_a_query_is_repeated_for_what_its_recipe_repeats_it_for() -> None:
    assert wording("split").repeated((5, 20)) == "5 depths × 20 trees"
    assert wording("sweep").repeated((1, 14)) == "14 attributes"
    assert wording("bounds window 3").repeated((1, 6)) == "6 attributes"
    assert wording("rows").repeated((1, 1)) == ""
    assert wording("rows").often((1, 1)) == "once"
    divided = PlannedQuery("sweep again", "m", (6,))
    assert str(divided) == "sweep again: m, ε = 0.000000006, divided among attributes"
    by_rank = PlannedQuery("tables", "joint noise", (6, 4))
    assert str(by_rank).endswith("× 2 attributes = 0.00000001")


def test_what_differs_with_the_rows_is_a_range() -> None:
    assert wording("tables").repeated((4, 1), (1, 6)) == "4 to 6 attributes"
    assert wording("bins").repeated((4, 5), (5, 5)) == "4 to 5 turns × 5 attributes"
    assert wording("attribute").repeated((1, 1), (4, 1)) == "1 to 4 draws"


def test_steps_are_in_the_order_of_a_run_and_each_once() -> None:
    asked = ("leaf", "rows", "leaf", "bounds window 1", "bounds window 2", "new")
    assert steps(asked) == (
        "count the rows of each class, find narrower bounds, count the rows of each class in "
        "leaves, new"
    )
