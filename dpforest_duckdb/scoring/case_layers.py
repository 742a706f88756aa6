"""The layers that find the votes of trees by nested CASE, for any engine.

`dpforest_duckdb.scoring.quickscorer` finds them by bit sets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.scoring.content import ForestContent
from dpforest_duckdb.scoring.dialects import Dialect
from dpforest_duckdb.scoring.inputs import Inputs
from dpforest_duckdb.scoring.layers import Helper, Layer, Terms
from dpforest_duckdb.scoring.tree_sql import leaf_votes, tree_case
from dpforest_duckdb.sql import Sql
from dpforest_duckdb.tree import Tree


def case_layers(
    dialect: Dialect,
    forest: ForestContent,
    inputs: Inputs,
    emitted: int,
    name: Callable[[str], Sql],
) -> tuple[list[Layer], Terms]:
    """The layers that find leaves, and the votes of each tree for each class, `[class][tree]`.

    The votes are of the first `emitted` classes. They are expressions on a row `t` with the helpers
    of all layers. `name` gives free names.
    """
    compared, columns = _compared(dialect, inputs, name)
    cells, leaves = forest.domain.cells, list[Helper]()

    def case(tree: Tree, of_node: Integers) -> Sql:
        return tree_case(dialect, tree, inputs.attributes, columns, cells, of_node)

    terms: Terms = [[] for _ in range(emitted)]
    for number, tree in enumerate(forest.trees):
        at = tree.leaves
        votes, number_of = np.unique(tree.votes[at, :emitted], axis=0, return_inverse=True)
        leaf = np.zeros(tree.nodes, dtype=np.int64)
        leaf[at] = number_of.reshape(-1)
        if emitted == 1 or len(votes) == 1:
            for of_class, values in zip(terms, tree.votes.T, strict=False):
                of_class.append(case(tree, values))
            continue
        value = case(tree, leaf)
        leaves.append(Helper(f"leaf of tree {number}", value, name(f"leaf_{number}")))
        column = Sql(f"t.{leaves[-1].column}")
        for of_class, values in zip(terms, votes.T, strict=True):
            of_class.append(leaf_votes(values, column))
    found = Layer(name("leaves"), leaves)
    return [layer for layer in (compared, found) if layer.helpers], terms


def _compared(
    dialect: Dialect, inputs: Inputs, name: Callable[[str], Sql]
) -> tuple[Layer, Mapping[int, Sql]]:
    """The layer of columns that are compared as expressions, and all columns as compared.

    The layer keeps those that are compared as they are.
    """
    helpers: dict[str, Helper] = {}
    columns = dict(inputs.columns)
    for number, column in inputs.columns.items():
        value = dialect.input(inputs.attributes[number], column)
        if value != column and value not in helpers:
            made = name(f"input_{len(helpers)}")
            helpers[value] = Helper(f"{inputs.names[number]} as it is compared", value, made)
        if value in helpers:
            columns[number] = Sql(f"t.{helpers[value].column}")
    read = dict.fromkeys(inputs.columns.values())
    plain = [column for column in read if column in columns.values()]
    return Layer(name("inputs"), list(helpers.values()), plain), columns
