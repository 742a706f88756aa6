"""What another engine must be: a catalogue, coded rows, and a store of models.

No SQL text crosses these protocols. Trees, domains, integers and names go in; integer arrays,
names and JSON text come out. `tests/engine_conformance.py` checks an engine against them.

An engine gives the columns of its tables as `ColumnType`, the package's own types.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal, Protocol

from dpforest_duckdb.arrays import Floats, Integers
from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.table import TableInfo
from dpforest_duckdb.domain.types import ColumnType
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.ledger.anchor import Anchor
from dpforest_duckdb.privacy.unit import PrivacyUnit
from dpforest_duckdb.scoring.content import ForestContent
from dpforest_duckdb.tree import Tree

Trace = Callable[[str], None]  # gets the text of each statement before it runs
Sample = Literal["all", "disjoint", "bootstrap"]


@dataclass(frozen=True)
class CodedTable:
    """A table of coded rows that a run may need: public facts, which bound the temporary space.

    It has at most `rows` rows for each private row, in the order of their trees if `by_tree`. They
    are drawn from `numbered` rows for each private row; 0 if they are not drawn. They may be routed
    `routed` times before the run codes rows again. Tables that have the same rows in the same codes
    for certain are equal in `alike`, so an engine may make one for all of them; None says nothing.
    """

    domain: Domain
    rows: int = 1
    by_tree: bool = False
    numbered: int = 0
    routed: int = 0
    alike: Hashable = None


@dataclass(frozen=True)
class StoredRow:
    """What a run may store of each private row.

    It is coded in each of the `tables`, one after the other, and then routed in the last one.
    `unit` is the type of the privacy unit's column; None if rows are the units. It has
    `node_columns` of nodes, and columns of `scores`. If `grouped`, equal rows may be found in the
    last table. If the snapshot is `shared` with other runs, those before coded the tables `before`.
    """

    tables: Sequence[CodedTable]
    unit: ColumnType | None
    node_columns: int
    scores: int
    grouped: bool = False
    shared: bool = False
    before: Sequence[CodedTable] = ()


@dataclass(frozen=True)
class Coding:
    """How a snapshot's rows are coded, and which tree sees which of them.

    "disjoint" assigns every privacy unit to one tree, by a hash of the unit (of the whole row if
    rows are the units) and `salt`. "bootstrap" draws for each tree as many rows as there are, with
    replacement, which is never private. With "all" every tree sees all rows. `first_phase` are
    released trees on the same domain: a row that half of them or more classify wrongly counts
    `misclassified_weight` times; a bootstrap draws rows in proportion to the number of trees that
    are wrong, or all alike if none is.
    """

    domain: Domain
    unit: PrivacyUnit
    _: KW_ONLY
    trees: int
    sample: Sample
    salt: int = field(repr=False)
    first_phase: Sequence[Tree] = ()
    misclassified_weight: int = 1

    @property
    def node_columns(self) -> int:
        """How many columns of nodes a coded row has: one for each tree that sees all rows."""
        return self.trees if self.sample == "all" else 1

    @property
    def parts(self) -> int:
        """How many trees share a column of nodes, because each row is in one of them."""
        return self.trees // self.node_columns


@dataclass(frozen=True)
class Splits:
    """The splits of one depth, as parallel arrays: row i sends node[i] to its children.

    `kind` is a `tree.NodeKind`; `cell` is the cut of a binary split; `first` is the node number
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

    A gradient is `whole` · (y - p): y is 1 for the row's class and 0 for others, and p is rounded
    down to a multiple of 1 / `whole`, a power of two. A hessian is
    `whole` · `hessian_numerator` / `hessian_denominator` · p(1 - p), rounded down.
    """

    whole: int
    hessian_numerator: int
    hessian_denominator: int


MIXTURE_PARTS = 20  # weights in a mixture are multiples of 1 / MIXTURE_PARTS
POINTS = 2**12  # the most points that a row gives a mixture


@dataclass(frozen=True)
class Outcomes:
    """How often a model is right, as parallel arrays over groups of rows. All of it is private.

    `rows[i]` rows have the class `label[i]` and the probability `value[i]`; their prediction is
    correct if `right[i]` is 1, else wrong. With two classes `value` is the probability of the
    second, with more that of the row's class. `unlabelled` other rows have no class of the model.
    """

    label: Integers
    right: Integers
    value: Floats
    rows: Integers
    unlabelled: int = 0


def tables_of_all(rows: CodedRows) -> list[Integers]:
    """The private `counts[value, class]` of each attribute, of rows that are all at the root."""
    return [table[0] for table in rows.count_classes(0, 1)]


class CodedRows(Protocol):
    """The private rows as integer codes inside the engine, with the node of each row."""

    def count_classes(self, first: int, nodes: int) -> list[Integers]:
        """Per attribute the dense `counts[node, value, class]` of nodes first … first+nodes-1."""

    def count_leaves(self, first: int, nodes: int) -> Integers:
        """Dense `counts[node, class]` of nodes first … first+nodes-1."""

    def count_scores(self, votes: Sequence[Integers], cuts: Sequence[int]) -> Integers:
        """Dense `counts[bin, …, class]` of the rows: a bin of each score, then the class.

        A row's score is the sum of `votes[score][node]` over its nodes; its bin is the number of
        `cuts` below the score.
        """

    def count_pairs(self, attribute: int, bins: Sequence[int]) -> list[Integers]:
        """Per attribute the dense `counts[bin of the given attribute, value, class]` of all rows.

        `bins[value]` numbers the bins from 0. Rows must not have been routed yet.
        """

    def sum_products(self, positions: Mapping[int, Integers]) -> Integers:
        """The sums `[dimension, dimension]` of products of positions over all rows, symmetric.

        A row has the position `positions[attribute][code, dimension]`; the dimensions of the
        attributes follow each other. Rows must not have been routed yet.
        """

    def count_labels(self, trees: Sequence[Tree]) -> tuple[Integers, Integers, Integers]:
        """The combinations of labels that trees give: `labels[combination, tree]`, class and rows.

        A tree's label of a row is the class with most votes at its leaf, for any row. Only
        combinations that occur are listed, and which ones occur is private: sum over all of them.
        """

    def add_votes(self, trees: Sequence[Tree]) -> None:
        """Add the votes of trees to the rows' scores: log-odds, 0 before the first tree."""

    def sum_gradients(self, trees: Sequence[Tree], scale: Gradients) -> list[Integers]:
        """Per tree the dense `sums[node, part]` of gradients and hessians at the rows' scores.

        The parts are a gradient and a hessian of the logistic loss for each class, or for the
        second of two; a row adds to one leaf of a tree.
        """

    def rate_mixtures(
        self, models: Sequence[Sequence[Tree]], mixtures: Sequence[Sequence[int]], one_in: int
    ) -> Integers:
        """The points `[mixture]` of log-odds mixed from models; a model's are its trees' votes.

        A mixture has a weight for each model, in units of 1 / `MIXTURE_PARTS`. Votes are multiples
        of `MIXTURE_PARTS`, so that weighted votes are whole. A row gives each mixture a whole
        number from 0 to `POINTS`: half of `POINTS` if its class has the highest odds, and part of
        the other half, from all at a log loss of 0 down to nothing at 4 ln(classes). About one row
        in `one_in` gives points. A row's codes alone, and no other row, decide whether it does, so
        one more row still adds 0 to `POINTS` to each mixture.
        """

    def route(self, splits: Splits, nodes: int) -> None:
        """Move the rows of split nodes to their children; `nodes` is the new number of nodes."""

    def drop(self) -> None:
        """Delete the codes."""


class Snapshot(Protocol):
    """The private rows of one table at one moment, whatever is written later."""

    def encode(self, coding: Coding, *, likely_rows: int = 0, last: bool = False) -> CodedRows:
        """Code the rows once; node i holds the rows of tree i's root.

        `likely_rows` is a public estimate of the number of rows, such as a noisy one, or 0: an
        engine may count few rows by another statement, and group equal ones only if they are many.
        `last` says that nothing else will be coded, so the snapshot need not be kept.
        """

    def table_seen(self) -> TableInfo | None:
        """The table that the rows come from, as the transaction that reads them sees it.

        None if the rows are in no table, or if the engine has no such transaction.
        """

    def count_outcomes(self, forest: ForestContent, labels: Attribute) -> Outcomes:
        """How often a forest is right about rows of a class; `labels` is the column of classes.

        `labels.values` are the forest's classes in the forest's order, in the type of the column.
        """

    def count_outcome_grid(
        self,
        forest: ForestContent,
        labels: Attribute,
        unit: PrivacyUnit,
        edges: Sequence[float],
        salt: int,
    ) -> Integers:
        """Dense `counts[label, right, bin]`, from at most `unit.rows` rows of each unit.

        Bin b holds probabilities above `edges[b - 1]` and up to `edges[b]`; edges ascend. `salt`
        decides which rows of a unit count.
        """


@dataclass(frozen=True)
class DeclaredColumn:
    """What the catalogue declares about a column; no row is read for it.

    `categories` are the values that its type or a constraint allows, `lower` and `upper` its
    bounds; None if nothing is declared.
    """

    name: str
    type: ColumnType
    nullable: bool
    comment: str = ""
    categories: tuple[Any, ...] | None = None
    lower: Any = None
    upper: Any = None


class Catalogue(Anchor, Protocol):
    """What is known about tables without reading a row, and where their budgets are anchored."""

    def table(self, name: str) -> TableInfo:
        """Resolve a base table. Raises `DpforestError` for anything else."""

    def typed(self, table: TableInfo, domain: Domain, unit: PrivacyUnit) -> TableInfo:
        """The table with the types that its columns are read as.

        A table has types of its own. Files and DataFrames get theirs from the domain, and only the
        columns that it names, and the column of the privacy unit.
        """

    def declared(self, table: TableInfo) -> list[DeclaredColumn]:
        """What is declared of each column, in the table's order."""

    def refuse_unseen(self, table: TableInfo, columns: Collection[str] = ()) -> None:
        """Raise `DpforestError` if a snapshot would read other values than the user sees.

        A snapshot may not see what the user has changed and not committed. The values of a computed
        column may change with each reading.
        """

    def spills_plain(self, table: TableInfo) -> bool:
        """Whether the table is encrypted at rest, but temporary files with its rows are not."""


class ModelStore(Protocol):
    """Models at rest, as JSON text under a name. `dpforest_duckdb.model.store` checks both."""

    @property
    def writable(self) -> bool:
        """Whether models can be stored and dropped."""

    @property
    def lasting(self) -> bool:
        """Whether models are still there when the connection is closed."""

    def names(self) -> list[str]:
        """The names of the stored models, sorted."""

    def read(self, name: str) -> str:
        """The JSON text of a stored model; `name` is spelt as in `names`."""

    def write(self, name: str, text: str, *, instead_of: str | None = None) -> None:
        """Store a model, whole or not at all; `instead_of` names the stored one that it replaces.

        Raises `NameTakenError` where a model of this name is there already.
        """

    def delete(self, name: str) -> None:
        """Remove a stored model."""


class NameTakenError(DpforestError):
    """A model of this name was stored by someone else in the meantime."""


class Engine(Catalogue, Protocol):
    """All that a training run needs from an engine."""

    @property
    def models(self) -> ModelStore:
        """The store of models."""

    def snapshot(
        self, table: TableInfo, *, shared: bool = False
    ) -> AbstractContextManager[Snapshot]:
        """The rows of a table at one moment.

        With `shared`, several runs may use it, one after the other, and rows with the same coding
        are coded once, unless others have changed them since the run before.
        """

    def same_rows(self, other: Engine) -> bool:
        """Whether a table certainly has the same rows when it is read by another engine."""

    def room(self) -> float:
        """Bytes of memory and of temporary disk that coded rows may use."""

    def bytes_of_a_row(self, stored: StoredRow) -> int:
        """The most bytes of memory and of temporary disk that a row needs."""
