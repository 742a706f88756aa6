"""Release the class counts of all attributes' values together, with joint noise.

`dpforest_duckdb.splits.table_codes` explains the vectors and why joint noise is smaller than noise
for each table.
"""

from __future__ import annotations

import numpy as np

from dpforest_duckdb.engine.base import CodedRows
from dpforest_duckdb.learners.growth import Growth
from dpforest_duckdb.privacy.plan import PlannedQuery
from dpforest_duckdb.progress import Event, Phase
from dpforest_duckdb.request import Grown, Learner, Request, TrainingContext
from dpforest_duckdb.splits.table_codes import (
    deviation,
    deviations,
    release,
    sums,
    tables_of,
    whole,
)


def release_tables(rows: CodedRows, context: TrainingContext) -> Grown:
    """A tree without a split, and one of a single split for each attribute, with noisy counts.

    The first tree has the rows of each class, and so do the roots of the others. If `request.trees`
    is 0 it is the only tree, and there is no other query. Leaves of values that the domain does not
    describe have no counts.
    """
    context.observe(Event(Phase.COUNT_TABLES))
    request, account, noise = context.request, context.account, context.randomness.noise
    k, cost = request.rows_per_unit, account.spend("tables")
    private = [table[0] for table in rows.count_classes(0, 1)]
    attributes = request.domain.attributes if request.trees else ()
    noisy = release(sums(private, attributes), attributes, cost, k, noise)
    growth = Growth(request.domain.cells, 1 + len(attributes), len(request.domain.classes))
    roots, noise_of_rows = np.arange(growth.trees), deviation(None, attributes, cost, k)
    growth.release(roots, whole(noisy[:, 0]), noise_of_rows)
    of_counts = deviations(attributes, attributes, cost, k)
    tables = zip(attributes, tables_of(noisy, attributes), of_counts, strict=True)
    for number, (attribute, table, noise_of_counts) in enumerate(tables):
        leaves = growth.nodes + np.array(attribute.expected)
        growth.split_by_cell(np.array([number + 1]), number)
        growth.release(leaves, whole(table), noise_of_counts)
    return Grown(growth.finished())


def tables_deviation(query: PlannedQuery, request: Request) -> float | None:
    """The largest standard deviation of a count in the tables of all attributes."""
    if query.purpose != "tables":
        return query.count_noise(request.rows_per_unit)
    attributes, k = request.domain.attributes if request.trees else (), request.rows_per_unit
    (cost,) = query.by_depth
    return max(deviations([None, *attributes], attributes, cost, k))


JOINT_TABLES = Learner(release_tables, node_columns=lambda request: 1, deviation=tables_deviation)
