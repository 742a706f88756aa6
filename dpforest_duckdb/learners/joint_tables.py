"""The class counts of all attributes' values in one release, by noise made for them together.

A row is in one cell of every attribute's table. With noise of its own each of m tables needs m
times the noise of one, a variance of 2m²/ε² in a count. But a row cannot move the tables just
anyhow: in its class's vector it changes each block by 1 in L1, however many blocks there are. Noise
for that norm (`privacy.noise`) has a variance of about d²/3ε² in a block of one dimension and of
2d²/((v+1)(v+2)ε²) in one of v, with d dimensions in all.

An attribute of at most `CODED` values is not told by its counts but by what they differ by: signed
sums, one dimension less than values, each a block of its own, as a row adds 1 or -1 to any number
of them. With them goes the number of rows, one more block. An attribute of more values is one block
of its counts.
"""

from __future__ import annotations

import numpy as np

from dpforest_duckdb.arrays import Floats, Integers
from dpforest_duckdb.engine.base import CodedRows
from dpforest_duckdb.learners.growth import Growth
from dpforest_duckdb.progress import Event, Phase
from dpforest_duckdb.request import Grown, Learner, TrainingContext
from dpforest_duckdb.splits.table_codes import blocks, deviation, parts, sums, table_of
from dpforest_duckdb.tree import MULTIWAY


def release_tables(rows: CodedRows, context: TrainingContext) -> Grown:
    """A tree without a split and one of a single split for each attribute, with noisy counts.

    The first tells the rows of each class, as the others' roots do; it is alone where
    `request.trees` is 0: then nothing else is asked. Leaves of values that the domain does not
    speak of are told nothing of.
    """
    context.observe(Event(Phase.COUNT_TABLES))
    request, account, noise = context.request, context.account, context.randomness.noise
    k, cost = request.rows_per_unit, account.spend("tables")
    private = [table[0] for table in rows.count_classes(0, 1)]
    asked = request.domain.attributes if request.trees else ()
    scale = parts(asked, k)
    noisy = noise.joint(sums(private, asked) * scale, blocks(asked), cost, k * scale) / scale
    growth = Growth(request.domain.cells, 1 + len(asked), len(request.domain.classes))
    roots, told = np.arange(growth.trees), deviation(None, asked, cost, k)
    growth.release(roots, _whole(noisy[:, 0]), told)
    for number, attribute in enumerate(asked):
        leaves = growth.nodes + np.array(attribute.expected)
        growth.split(*(np.array([value]) for value in (number + 1, number, MULTIWAY, 0)))
        table = table_of(noisy, number, asked)[list(attribute.expected)]
        growth.release(leaves, _whole(table), deviation(attribute, asked, cost, k))
    return Grown(growth.finished())


def _whole(counts: Floats) -> Integers:
    return np.rint(counts).astype(np.int64)


JOINT_TABLES = Learner(release_tables, node_columns=lambda request: 1)
