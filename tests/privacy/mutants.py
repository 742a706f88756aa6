"""Deliberate faults in the package: `python mutants.py '{"FAULT": "TEST", …}'`.

Each is a mistake that software of this kind has shipped with. `test_mutants.py` says which test
must fail for it. The package is imported once; each fault is put into a copy of the process, which
then runs its test. The exit codes of the tests are printed as JSON.
"""

from __future__ import annotations

import functools
import gc
import json
import os
import re
import shlex
import sys
import tomllib
from collections.abc import Callable
from dataclasses import replace
from decimal import ROUND_CEILING
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import hypothesis
import numpy as np
import pytest

from dpforest_duckdb.domain.table import TableInfo
from dpforest_duckdb.engine.base import DeclaredColumn, Gradients
from dpforest_duckdb.engine.coded_rows import encoding
from dpforest_duckdb.engine.coded_rows import rows as coded_rows
from dpforest_duckdb.engine.coded_rows.rows import DuckDBRows
from dpforest_duckdb.engine.connection.statements import Statements
from dpforest_duckdb.engine.tables import snapshot
from dpforest_duckdb.engine.tables.engine import DuckDBComment, DuckDBEngine
from dpforest_duckdb.learners import (
    boosting,
    candidate_bins,
    class_means,
    informative_tables,
    mixtures,
    private_bounds,
    specialisation,
)
from dpforest_duckdb.learners import private_bins as medians
from dpforest_duckdb.ledger import account
from dpforest_duckdb.privacy import amounts, gaussian_dp, measure, noise, selection
from dpforest_duckdb.privacy.accountant import Accountant
from dpforest_duckdb.privacy.bits import SecureBits, SeededBits
from dpforest_duckdb.privacy.noise import ExactNoise
from dpforest_duckdb.privacy.plan import ROW_COUNTS, Plan
from dpforest_duckdb.privacy.unit import ROW
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.recipes.ours import boosted, tree_beside_sums
from dpforest_duckdb.recipes.published import guan_aggregation
from dpforest_duckdb.splits import choose, positions, table_codes
from dpforest_duckdb.splits.table_codes import TableCodes
from dpforest_duckdb.sql import Sql
from dpforest_duckdb.training import run as training
from dpforest_duckdb.training.preliminary import row_counts, strongest_attribute
from dpforest_duckdb.training.reading import Reader


def sensitivity_left_out() -> None:
    """Utilities of sensitivity 2 are drawn as if it were 1."""
    exponents = selection.exponents
    selection.exponents = lambda u, a, e, s, monotone: exponents(u, a, e, 1, monotone)


def factor_2_left_out() -> None:
    """Utilities that move both ways are drawn by the form for monotone ones."""
    exponents = selection.exponents
    selection.exponents = lambda u, a, e, s, monotone: exponents(u, a, e, s, monotone=True)


def empty_cells_without_noise() -> None:
    """Cells that hold no row are released as they are: GROUP BY does not show them."""
    laplace = ExactNoise.laplace
    ExactNoise.laplace = lambda self, c, e, s: laplace(self, c, e, s) * (c != 0)  # type: ignore[method-assign]


def noise_used_twice() -> None:
    """Every release of a shape has the noise of the first one."""
    laplace, kept = ExactNoise.laplace, {}

    def again(self: ExactNoise, counts: Any, epsilon: int, sensitivity: int) -> Any:
        if counts.shape not in kept:
            kept[counts.shape] = laplace(self, counts, epsilon, sensitivity) - counts
        return counts + kept[counts.shape]

    ExactNoise.laplace = again  # type: ignore[method-assign]


def trees_by_position() -> None:
    """A row's tree is its place in the table: one more row moves those behind it."""
    render = encoding.render

    def by_position(step: str, **values: Any) -> Sql:
        if step == "encode" and values["unit"] is None:
            values["row"] = Sql("row_number() OVER ()")
        return render(step, **values)

    encoding.render = by_position


def debit_after() -> None:
    """Rows are read before the budget is asked."""
    execute = training.Run.execute

    def late(self: training.Run, *args: Any, **more: Any) -> Any:
        with self.engine.snapshot(self.table) as rows:
            training.grown_forest(self, rows)
        return execute(self, *args, **more)

    training.Run.execute = late  # type: ignore[method-assign]


def unit_bound_ignored() -> None:
    """Every row of a privacy unit counts."""
    render = encoding.render

    def unbounded(step: str, **values: Any) -> Sql:
        if step == "encode" and values["unit"] is not None:
            values["unit"].rows = 10**9
        return render(step, **values)

    encoding.render = unbounded


def noisy_n_as_sensitivity() -> None:
    """The sensitivity of a split is made of the node's noisy size, as DPDF was published."""
    exponents = choose.exponents_of

    def scaled(choice: Any, utility: Any, *args: Any) -> Any:
        rows = 1 if choice.noisy is None else max(1, int(choice.noisy.sum()))
        return exponents(choice, replace(utility, sensitivity=rows), *args)

    choose.exponents_of = scaled


def domain_from_rows() -> None:
    """The categories of a column are those that its rows hold."""
    declared = DuckDBEngine.declared

    def distinct(self: DuckDBEngine, table: TableInfo) -> list[DeclaredColumn]:
        held = tuple(value for (value,) in self.run("SELECT DISTINCT a FROM t ORDER BY a"))
        return [
            replace(column, categories=held) if column.type.labels else column
            for column in declared(self, table)
        ]

    DuckDBEngine.declared = distinct  # type: ignore[method-assign]


def seed_unflagged() -> None:
    """Noise that can be repeated passes for private."""
    SeededBits.private = True  # type: ignore[misc]


def hessians_too_large() -> None:
    """Hessians weigh 10/3 of a gradient: hardly more than the bound in L2 has room for."""
    boosting.gradient_scale = lambda query, classes: Gradients(boosting.WHOLE, 10, 3)


def gradients_of_several_classes_as_of_two() -> None:
    """The sums of several classes are noised as if a row changed one of them."""
    sensitivity = boosting.sensitivity
    boosting.sensitivity = lambda query, classes, k: sensitivity(query, 2, k)


def second_sweep_not_divided() -> None:
    """Each attribute of the second sweep of boosting gets the cost of all of them."""
    spend = Accountant.spend

    def whole(self: Accountant, purpose: str, *where: int, times: int = 1, among: int = 1) -> int:
        return spend(self, purpose, *where, times=times)

    Accountant.spend = whole  # type: ignore[method-assign]


def attributes_chosen_by_true_sums() -> None:
    """The attributes of the second sweep of boosting follow from hessians without noise."""
    true, values = list[Any](), boosting.FittedValues
    sum_gradients = DuckDBRows.sum_gradients

    def kept(self: DuckDBRows, trees: Any, scale: Any) -> Any:
        true[:] = sum_gradients(self, trees, scale)
        return true

    def of_true(added: Any, hessians: Any) -> Any:
        found = true[0][-len(hessians) :, 1::2] / boosting.WHOLE
        return values(added, found.astype(float))

    DuckDBRows.sum_gradients = kept  # type: ignore[method-assign]
    boosting.FittedValues = of_true  # type: ignore[misc, assignment]


def medians_at_double_cost() -> None:
    """The exponential mechanism is taken to cost a quarter of its μ²."""
    drawn_epsilon = measure.drawn_epsilon
    measure.drawn_epsilon = lambda cost: 2 * drawn_epsilon(cost)


def pure_costs_free_with_a_delta() -> None:
    """What is asked in ε is left out where costs are added in μ²."""
    type(measure.PURE_DP).squared_mu = lambda self, cost: 0  # type: ignore[method-assign]


def draws_at_half_of_their_cost() -> None:
    """The exponential mechanism is counted as if concentrated DP and Gaussian DP were the same."""
    gaussian_dp.DRAWN = gaussian_dp.PURE / 8


def medians_by_permute_and_flip() -> None:
    """Medians are drawn by a mechanism that costs four times as much in μ²."""
    medians.EXPONENTIAL = selection.PERMUTE_AND_FLIP


def mu_of_twice_the_delta() -> None:
    """A budget allows what twice its δ would allow."""
    delta_of = gaussian_dp.delta_of
    gaussian_dp.delta_of = lambda squared_mu, epsilon: delta_of(squared_mu, epsilon) // 2


def gaussian_noise_on_the_integers() -> None:
    """Gaussian noise is drawn as discrete, which is not Gaussian DP where it is small."""
    noise.FINE = 0


def gaussian_noise_on_the_grid_not_rounded_back() -> None:
    """Noise on the grid is divided by twice its steps."""
    rounded = noise._rounded
    noise._rounded = lambda drawn, bits: rounded(drawn, bits + 1)


def joint_noise_of_one_dimension() -> None:
    """The radius of noise for all tables is drawn as if there were one figure."""
    joint_noise = noise.joint_noise

    def narrow(vectors: int, blocks: Any, t: int, s: int, bits: Any) -> Any:
        return joint_noise(vectors, blocks, t, s * sum(blocks), bits)

    noise.joint_noise = narrow


def parts_of_a_row_left_out() -> None:
    """Sums in parts of a row are noised as if they were in rows."""
    joint = ExactNoise.joint
    ExactNoise.joint = lambda self, s, b, e, bound: joint(  # type: ignore[method-assign]
        self, s, b, e, max(1, bound // 4096)
    )


def code_of_two() -> None:
    """A value adds 2 in a signed contrast, so that a row moves a block by two."""
    for signs in table_codes.SIGNS.values():
        signs *= 2


def positions_noised_as_rows() -> None:
    """Sums of positions are noised as if a row added 1 to them at most."""
    release = class_means._release
    class_means._release = lambda private, blocks, reach, purpose, context: release(
        private, blocks, 1 if purpose == "means" else reach, purpose, context
    )


def squares_noised_as_positions() -> None:
    """Squares and products are noised as if a row added no more to them than to a sum."""
    release = class_means._release
    class_means._release = lambda private, blocks, reach, purpose, context: release(
        private, blocks, min(reach, positions.REACH), purpose, context
    )


def class_means_noised_as_one_figure() -> None:
    """With a δ, a row is taken to change one position only: √n too little noise."""
    measure.l2_squared = lambda blocks, change: change**2


def windows_by_rows_outside_too() -> None:
    """A row lowers the utility of windows that it is not in, but the draw is for monotone ones."""
    window_utilities = positions.window_utilities
    positions.window_utilities = lambda counts, rows: (
        2 * window_utilities(counts, rows) - counts.sum()
    )


def windows_at_double_cost() -> None:
    """Windows are drawn at twice the ε that is charged."""
    best = class_means.draw_best
    class_means.draw_best = lambda u, cost, *rest: best(u, 2 * cost, *rest)


def strongest_attribute_as_of_one_row() -> None:
    """The rows that an attribute classifies wrongly are noised as if a unit had one row."""
    wrong = strongest_attribute.misclassified
    strongest_attribute.misclassified = lambda tables, cost, k, noise: wrong(tables, cost, 1, noise)


def strongest_attribute_without_noise() -> None:
    """The rows that an attribute classifies wrongly are used as they are."""
    wrong = strongest_attribute.misclassified

    def true(tables: Any, cost: int, k: int, noise: Any) -> int:
        wrong(tables, cost, k, noise)
        return min(int(table.sum() - table.max(axis=-1).sum()) for table in tables)

    strongest_attribute.misclassified = true


def tables_in_two_groups() -> None:
    """Each table is released with two groups, at twice its cost."""
    groups = informative_tables.like_groups
    informative_tables.like_groups = lambda attributes, costs: 2 * groups(attributes, costs)


def grouped_rows_counted_twice() -> None:
    """A row counts twice in tables that are released in groups."""
    vectors = TableCodes.vectors
    TableCodes.vectors = lambda *given: 2 * vectors(*given)  # type: ignore[method-assign]


def mixtures_rated_without_bound() -> None:
    """A row's loss counts in full: a model that is far off loses more than POINTS by one row."""
    render = coded_rows.render

    def unbounded(step: str, **values: Any) -> Sql:
        sql = render(step, **values)
        return Sql(re.sub(r'greatest\((\d+ - "loss\d+"), 0\)', r"(\1)", sql))

    coded_rows.render = unbounded


def points_of_some_rows_scaled_up() -> None:
    """Rows that stand for others, which give no points, give the points of all of these."""
    render = coded_rows.render

    def scaled(step: str, **values: Any) -> Sql:
        sql = render(step, **values)
        times = values.get("one_in", 1)
        sql = Sql(sql.replace("COUNT(*)", f"{times} * COUNT(*)"))
        return Sql(sql.replace('1 AS "rows"', f'{times} AS "rows"'))

    coded_rows.render = scaled


def rated_rows_by_their_place() -> None:
    """Which rows give points follows from their place in the table: one more moves the others."""
    render = coded_rows.render

    def by_place(step: str, **values: Any) -> Sql:
        return Sql(re.sub(r"WHERE hash\([^)]*\)", "WHERE rowid", render(step, **values)))

    coded_rows.render = by_place


def trees_removed_as_of_one_row() -> None:
    """Trees are removed by draws that protect one row of a unit."""
    drawn = guan_aggregation.drawn
    guan_aggregation.drawn = lambda context: drawn(
        replace(context, request=replace(context.request, rows_per_unit=1))
    )


def entries_drawn_one_way() -> None:
    """Entries of a cut are drawn by the form for monotone utilities, whatever their utility."""
    exponents = specialisation._exponents
    specialisation._exponents = lambda tables, splits, offered, utility, *rest: exponents(
        tables, splits, offered, replace(utility, monotone=True), *rest
    )


def points_drawn_as_rows() -> None:
    """Points are drawn by as if a row gave one of them at most."""
    mixtures.POINTS = 1  # type: ignore[misc]


def pairs_drawn_as_one_count() -> None:
    """A sum of several counts is drawn by as if a row raised it by one at most."""
    draw = informative_tables.draw_in_bins

    def one_row(rows: Any, tables: Any, candidates: Any, context: Any) -> Any:
        best = informative_tables.draw_best
        informative_tables.draw_best = lambda u, cost, bound, bits: best(u, cost, 1, bits)
        try:
            return draw(rows, tables, candidates, context)
        finally:
            informative_tables.draw_best = best

    informative_tables.draw_in_bins = one_row


def rows_in_two_bins() -> None:
    """A row counts in its own bin and in another one, so that it may be correct twice."""
    once = candidate_bins.Options.classified
    candidate_bins.Options.classified = lambda options, counts: 2 * once(options, counts)


def rare_classes_count_more() -> None:
    """Rare classes are weighed up, not the most frequent one down: a row may count more than 1."""
    weights = informative_tables.class_weights

    def up(request: Any, plan: Any) -> Any:
        down = weights(request, plan)
        return down * informative_tables.PARTS // down.min()

    informative_tables.class_weights = up


def macros_reach_the_rows() -> None:
    """Private rows are read on the user's search path."""
    snapshot.new_cursor = lambda statements: statements.connection.cursor()


def computed_columns_as_they_are() -> None:
    """A row for which a generated column cannot be computed ends the run."""
    Statements.rows_of = lambda self, table, used: self.dialect.ident(*table.key)  # type: ignore[method-assign]


def identity_from_the_plan() -> None:
    """A debit goes by the comment as it was when the run was prepared."""
    read = DuckDBComment.read
    DuckDBComment.read = lambda self: self._table if read(self) else read(self)  # type: ignore[method-assign]


def transaction_per_coding() -> None:
    """Each coding of the rows sees the rows of its own moment."""
    snapshot.DuckDBSnapshot.encode = functools.partialmethod(  # type: ignore[assignment]
        snapshot.DuckDBSnapshot.encode, last=True
    )


def shared_codes_of_other_rows() -> None:
    """Runs that share codes are not asked whether the rows are still the same."""
    snapshot.render = lambda step, **values: Sql("SELECT 0")


def lost_cap_unnoticed() -> None:
    """A cap that the table's comment has and the ledger has not is not missed."""
    note_in = account.note_in

    def without_cap(table: Any) -> Any:
        note = note_in(table)
        return note and replace(note, cap=None)

    account.note_in = without_cap


def cap_not_anchored() -> None:
    """Setting a cap leaves the table's comment alone."""
    set_cap, write = account.Account.set_cap, DuckDBComment.write

    def silent(self: account.Account, *args: Any, **more: Any) -> Any:
        DuckDBComment.write = lambda self, text: None  # type: ignore[method-assign]
        try:
            return set_cap(self, *args, **more)
        finally:
            DuckDBComment.write = write  # type: ignore[method-assign]

    account.Account.set_cap = silent  # type: ignore[method-assign]


def rows_counted_without_the_bound() -> None:
    """The noisy number of rows counts every row of a unit."""
    counts = Reader.class_counts
    Reader.class_counts = lambda self, *args: counts(  # type: ignore[method-assign]
        replace(self, unit=ROW), *args
    )


def second_count_at_double_cost() -> None:
    """The rows are counted a second time with half of the noise that is paid for."""
    spend = Accountant.spend

    def double(self: Accountant, purpose: str, depth: int = 0) -> int:
        return spend(self, purpose, depth) * (2 if purpose == Purpose.ROWS_AGAIN else 1)

    Accountant.spend = double  # type: ignore[method-assign]


def first_count_at_the_cost_of_both() -> None:
    """The first count has as little noise as if it cost what both cost."""
    spend = Accountant.spend

    def whole(self: Accountant, purpose: str, depth: int = 0) -> int:
        cost, again = spend(self, purpose, depth), self.plan.query(Purpose.ROWS_AGAIN)
        return cost + again.total if purpose == Purpose.ROWS and again else cost

    Accountant.spend = whole  # type: ignore[method-assign]


def rows_counted_as_of_one_row() -> None:
    """Counts of the rows are noised as if a unit had one row."""
    counted = row_counts.counted

    def one_row(private: Any, context: Any) -> Any:
        counts, request = counted(
            private, replace(context, request=replace(context.request, rows_per_unit=1))
        )
        return counts, replace(request, rows_per_unit=context.request.rows_per_unit)

    row_counts.counted = one_row


def second_count_of_noisy_rows() -> None:
    """The second count is of what the first one shows."""
    counted = row_counts.counted

    def chained(private: Any, context: Any) -> Any:
        noise, kept = context.randomness.noise, [private]

        def laplace(counts: Any, epsilon: int, sensitivity: int) -> Any:
            kept.append(noise.laplace(kept[-1], epsilon, sensitivity))
            return kept[-1]

        randomness = replace(context.randomness, noise=SimpleNamespace(laplace=laplace))
        return counted(private, replace(context, randomness=randomness))

    row_counts.counted = chained


def counts_weigh_the_same() -> None:
    """The mean of two counts of different noise is a plain one."""
    Plan.row_precisions = lambda self, k: (
        [1.0]
        * len(  # type: ignore[method-assign]
            [query for query in self.queries if query.purpose in ROW_COUNTS]
        )
    )


def counts_weigh_by_their_deviations() -> None:
    """Counts are weighted by one over the deviation of their noise, not over its variance."""
    exactness = Plan.row_precisions
    Plan.row_precisions = lambda self, k: [e**0.5 for e in exactness(self, k)]  # type: ignore[method-assign]


def asked_counts_forgotten() -> None:
    """A later plan may leave out what was asked, and spend it again."""
    replan = Accountant.replan

    def forgetful(self: Accountant, plan: Plan) -> None:
        self._queried, asked = {}, self._queried
        replan(self, plan)
        self._queried = {purpose: asked[purpose] for purpose in asked if plan.query(purpose)}

    Accountant.replan = forgetful  # type: ignore[method-assign]


def medians_charged_once() -> None:
    """All attributes are cut at the cost of one."""
    planned = boosted.medians

    def once(*args: Any) -> Any:
        queries, rest = planned(*args)
        costs = [tuple(cost * query.times for cost in query.by_depth) for query in queries]
        once = [
            replace(query, by_depth=cost, times=1)
            for query, cost in zip(queries, costs, strict=True)
        ]
        return tuple(once), rest

    boosted.medians = tree_beside_sums.medians = once


def medians_without_the_bound() -> None:
    """Bins are cut by every row of a unit."""
    counts = Reader.cell_counts
    Reader.cell_counts = lambda self, *args: counts(  # type: ignore[method-assign]
        replace(self, unit=ROW), *args
    )


def bounds_checked_as_of_one_attribute() -> None:
    """The fullest bins of all attributes are noised as if a row were in one attribute's only."""
    too_wide = private_bounds.too_wide

    def narrow(domain: Any, counts: Any, rows: int, cost: int, *rest: Any) -> bool:
        return too_wide(domain, counts, rows, cost * len(counts), *rest)

    private_bounds.too_wide = narrow


def joint_tables_with_true_totals() -> None:
    """The classes' rows that joint tables release are the true ones."""
    release = TableCodes.release

    def with_true_totals(self: TableCodes, tables: Any, *rest: Any) -> Any:
        return replace(release(self, tables, *rest), totals=self.vectors(tables)[:, 0])

    TableCodes.release = with_true_totals  # type: ignore[method-assign]


def joint_tables_print_the_number_of_rows() -> None:
    """Joint tables say how many rows they count."""
    vectors = TableCodes.vectors

    def said(*args: Any) -> Any:
        found = vectors(*args)
        print(f"{found[:, 0].sum()} rows")
        return found

    TableCodes.vectors = said  # type: ignore[method-assign]


def true_gradients_printed() -> None:
    """Boosting shows the sums of gradients before they are noised."""
    sum_gradients = DuckDBRows.sum_gradients

    def said(self: DuckDBRows, *args: Any) -> Any:
        found = sum_gradients(self, *args)
        print(found[0].tolist())
        return found

    DuckDBRows.sum_gradients = said  # type: ignore[method-assign]


def secure_bits_of_numpy() -> None:
    """The secure generator is NumPy's, which its output gives away."""
    generator = np.random.PCG64()
    SecureBits.words = lambda self, n: generator.random_raw(n)  # type: ignore[method-assign]


def amounts_rounded_up() -> None:
    """A run spends, and a cap allows, up to a billionth more than was asked."""
    amounts.ROUND_FLOOR = ROUND_CEILING


MUTANTS: dict[str, Callable[[], None]] = {
    mutant.__name__: mutant
    for mutant in (
        sensitivity_left_out,
        factor_2_left_out,
        empty_cells_without_noise,
        noise_used_twice,
        trees_by_position,
        debit_after,
        unit_bound_ignored,
        noisy_n_as_sensitivity,
        domain_from_rows,
        seed_unflagged,
        hessians_too_large,
        gradients_of_several_classes_as_of_two,
        second_sweep_not_divided,
        attributes_chosen_by_true_sums,
        medians_at_double_cost,
        pure_costs_free_with_a_delta,
        draws_at_half_of_their_cost,
        medians_by_permute_and_flip,
        mu_of_twice_the_delta,
        gaussian_noise_on_the_integers,
        gaussian_noise_on_the_grid_not_rounded_back,
        joint_noise_of_one_dimension,
        parts_of_a_row_left_out,
        code_of_two,
        positions_noised_as_rows,
        squares_noised_as_positions,
        class_means_noised_as_one_figure,
        windows_by_rows_outside_too,
        windows_at_double_cost,
        strongest_attribute_as_of_one_row,
        strongest_attribute_without_noise,
        tables_in_two_groups,
        grouped_rows_counted_twice,
        macros_reach_the_rows,
        computed_columns_as_they_are,
        identity_from_the_plan,
        transaction_per_coding,
        shared_codes_of_other_rows,
        mixtures_rated_without_bound,
        pairs_drawn_as_one_count,
        rows_in_two_bins,
        rare_classes_count_more,
        points_of_some_rows_scaled_up,
        rated_rows_by_their_place,
        trees_removed_as_of_one_row,
        entries_drawn_one_way,
        points_drawn_as_rows,
        lost_cap_unnoticed,
        cap_not_anchored,
        rows_counted_without_the_bound,
        second_count_at_double_cost,
        first_count_at_the_cost_of_both,
        rows_counted_as_of_one_row,
        second_count_of_noisy_rows,
        counts_weigh_the_same,
        counts_weigh_by_their_deviations,
        asked_counts_forgotten,
        medians_charged_once,
        medians_without_the_bound,
        bounds_checked_as_of_one_attribute,
        joint_tables_with_true_totals,
        joint_tables_print_the_number_of_rows,
        true_gradients_printed,
        secure_bits_of_numpy,
        amounts_rounded_up,
    )
}
_SETTINGS = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
_DEFAULT = shlex.split(_SETTINGS["tool"]["pytest"]["ini_options"]["addopts"])
OPTIONS = (
    "-x",
    "-q",
    "-p",
    "no:cacheprovider",
    "-o",
    "addopts=",
    "--tb=no",
    "--disable-warnings",
    # a fault that only tests of a longer run would catch is not caught
    *("-m", _DEFAULT[_DEFAULT.index("-m") + 1]),
)


def started(mutant: str, test: str) -> int:
    """A copy of this process that puts a fault in, runs a test, and exits as pytest does."""
    child = os.fork()
    if child:
        return child
    try:
        MUTANTS[mutant]()
        os._exit(pytest.main([*OPTIONS, test]))
    finally:
        os._exit(70)


def main(caught_by: dict[str, str]) -> dict[str, int]:
    """The exit code of each fault's test: 1 if it fails, as it should."""
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # to look for plugins takes long
    # that a test fails is enough: no simpler example is looked for
    generate = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    hypothesis.settings.register_profile("faults", phases=generate, database=None)
    hypothesis.settings.load_profile("faults")
    # what every copy needs is imported before they are made, but no test: a test that was imported
    # already would hold functions without the fault
    noise._opendp()
    pytest.main([*OPTIONS, "conftest.py"])
    gc.freeze()
    waiting = list(caught_by.items())
    running: dict[int, str] = {}
    codes: dict[str, int] = {}
    while waiting or running:
        while waiting and len(running) < 2:
            mutant, test = waiting.pop(0)
            running[started(mutant, test)] = mutant
        child, status = os.wait()
        codes[running.pop(child)] = os.waitstatus_to_exitcode(status)
    gc.unfreeze()
    return codes


if __name__ == "__main__":
    report = os.dup(1)
    os.dup2(2, 1)  # what the tests print is no report
    codes = main(json.loads(sys.argv[1]))
    os.write(report, json.dumps(codes).encode())
