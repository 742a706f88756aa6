"""Release the class counts of all attributes' values together, with joint noise.

`dpforest_duckdb.splits.table_codes` explains the vectors and why joint noise is smaller than noise
for each table.
"""

from __future__ import annotations

import numpy as np

from dpforest_duckdb.engine.base import CodedRows, tables_of_all
from dpforest_duckdb.learners.growth import Growth
from dpforest_duckdb.privacy.plan import PlannedQuery
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.progress import Event, Phase
from dpforest_duckdb.request import Grown, Learner, Request, TrainingContext
from dpforest_duckdb.splits.table_codes import TableCodes


def release_jointly(rows: CodedRows, context: TrainingContext) -> Grown:
    """A tree without a split, and one of a single split for each attribute, with noisy counts.

    The first tree has the rows of each class, and so do the roots of the others. If `request.trees`
    is 0 it is the only tree, and there is no other query. Leaves of values that the domain does not
    describe have no counts.
    """
    context.observe(Event(Phase.COUNT_TABLES))
    request, accountant, noise = context.request, context.accountant, context.randomness.noise
    k, cost = request.rows_per_unit, accountant.spend(Purpose.TABLES)
    private = tables_of_all(rows)
    attributes = request.domain.attributes if request.trees else ()
    tables = TableCodes(attributes).release(private, cost, k, noise)
    assert tables.totals is not None, "the rows are one of the blocks"
    growth = Growth(request.domain.cells, 1 + len(attributes), len(request.domain.classes))
    growth.release(np.arange(growth.trees), tables.totals, tables.noise_of_totals)
    of_each = zip(attributes, tables.counts, tables.noise, strict=True)
    for number, (attribute, counts, noise_of_counts) in enumerate(of_each):
        leaves = growth.nodes + np.array(attribute.described)
        growth.split_by_cell(np.array([number + 1]), number)
        growth.release(leaves, counts, noise_of_counts)
    return Grown(growth.finished())


def joint_tables_deviation(query: PlannedQuery, request: Request) -> float:
    """The largest standard deviation of a count in the tables of all attributes."""
    attributes, k = request.domain.attributes if request.trees else (), request.rows_per_unit
    (cost,) = query.by_depth
    codes = TableCodes(attributes)
    return max([codes.deviation_of_totals(cost, k), *codes.deviations(cost, k)])


JOINT_TABLES = Learner(release_jointly, noise={Purpose.TABLES: joint_tables_deviation})
