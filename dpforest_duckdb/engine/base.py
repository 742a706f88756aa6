"""What training asks of an engine: integer arrays of counts, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.domain import Domain
from dpforest_duckdb.ledger.anchor import TableInfo
from dpforest_duckdb.privacy.unit import PrivacyUnit
from dpforest_duckdb.sql import Sql
from dpforest_duckdb.tree import Tree

Sample = Literal["all", "disjoint", "bootstrap"]


@dataclass(frozen=True)
class Splits:
    """The splits of one depth, as parallel arrays: row i sends node[i] to its children.

    `kind` is one of `forest.Kind`; `cell` is the cut of a binary split; `first` is the node number
    of the first child. All of it is released, none of it private.
    """

    node: Sequence[int]
    attribute: Sequence[int]
    kind: Sequence[int]
    cell: Sequence[int]
    first: Sequence[int]


@dataclass(frozen=True)
class Gradients:
    """The integers that stand for a row's gradient and hessian at class shares p.

    A gradient is `whole` times (1 for the row's class, else 0) - p, with p in whole parts rounded
    down; a hessian is `whole` times steep/flat · p(1 - p), rounded down.
    """

    whole: int
    steep: int
    flat: int


@dataclass(frozen=True)
class Scored:
    """A table to score: its name as SQL, and its columns' types (empty where it is unknown)."""

    name: Sql
    columns: dict[str, str]


class CodedRows(Protocol):
    """The private rows as integer codes, inside the engine, with the node that each row is in."""

    def count_classes(self, first: int, nodes: int) -> list[Integers]:
        """Per attribute the dense `counts[node, value, class]` of nodes first … first+nodes-1."""

    def count_leaves(self, first: int, nodes: int) -> Integers:
        """Dense `counts[node, class]` of nodes first … first+nodes-1."""

    def count_scores(self, votes: Sequence[Integers], cuts: Sequence[int]) -> Integers:
        """Dense `counts[bin, …, class]` of the rows: a bin of each score, then the class.

        A row's score is the sum of `votes[score][node]` over the nodes that it is in; its bin is
        the number of `cuts` that lie below.
        """

    def count_pairs(self) -> dict[tuple[int, int], Integers]:
        """Of every two attributes the dense `counts[value, value, class]` of all rows."""

    def count_labels(self, trees: Sequence[Tree]) -> tuple[Integers, Integers, Integers]:
        """The combinations of labels that trees give: `labels[combination, tree]`, class and rows.

        A tree's label of a row is the class of most votes at its leaf, whatever rows it was grown
        on. Only combinations that occur are there, which is private: sum over all of them.
        """

    def add_votes(self, trees: Sequence[Tree]) -> None:
        """Add the votes of trees to the rows' scores: log-odds, 0 before the first tree."""

    def sum_gradients(self, trees: Sequence[Tree], unit: Gradients) -> list[Integers]:
        """Per tree the dense `sums[node, part]` of what the rows' scores leave to be learnt.

        The parts are a gradient and a hessian of the logistic loss for each class, or for the
        second of two; a row adds to one leaf of a tree.
        """

    def route(self, splits: Splits, nodes: int) -> None:
        """Move the rows of split nodes to their children; `nodes` is the new number of nodes."""

    def drop(self) -> None:
        """Forget the codes."""


class Engine(Protocol):
    """Runs SQL where the rows are."""

    def table(self, name: str) -> TableInfo:
        """Resolve a base table. Raises `DpforestError` for anything else."""

    def encode(
        self,
        table: TableInfo,
        domain: Domain,
        unit: PrivacyUnit,
        *,
        trees: int,
        sample: Sample,
        salt: int,
        first_phase_labels: Sequence[Sql] = (),
        misclassified_weight: int = 1,
    ) -> CodedRows:
        """Code the rows once; node i holds the rows of tree i's root.

        `judges` are the labels that released trees give to a row `t`: one that half of them or more
        get wrong counts `heavy` times.
        """
