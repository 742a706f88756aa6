"""A forest as SQL: one SELECT of nested CASEs over integer votes, in the dialect of an engine.

Each tree is one CASE. If there are two classes whose votes sum to a constant, the CASE gives the
votes of one class. Otherwise it gives the number of a leaf, and one CASE per class gives the votes
of that leaf. The votes of all trees are added up, or the largest is taken. This is written in
balanced pairs, because DuckDB allows expressions of at most a thousand levels. One division turns
the sums into shares. For DuckDB alone, leaves can be found by bit sets instead
(`dpforest_duckdb.scoring.quickscorer`), with the same result. `fast` takes what is faster for the
forest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from types import SimpleNamespace
from typing import Literal

import duckdb
import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.domain import Attribute
from dpforest_duckdb.domain.names import fold, listed, spellings
from dpforest_duckdb.domain.types import ANY_TEXT, ColumnType
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.scoring.content import ForestContent
from dpforest_duckdb.scoring.dialects import Dialect
from dpforest_duckdb.scoring.dialects.duckdb import DuckDB
from dpforest_duckdb.scoring.layers import Helper, Layer, Terms
from dpforest_duckdb.scoring.outcome import combined, outcome, reach
from dpforest_duckdb.scoring.quickscorer import bit_sets_pay, fast_layers
from dpforest_duckdb.scoring.tree_sql import leaf_votes, tree_case
from dpforest_duckdb.sql import Sql, render
from dpforest_duckdb.tree import Tree

_DUCKDB = DuckDB()
_NOTHING = Sql("")


@dataclass(frozen=True)
class Scored:
    """A table to score: its name as SQL, and its columns' types (empty if unknown)."""

    name: Sql
    columns: dict[str, ColumnType]


@dataclass(frozen=True)
class Around:
    """The statement or file around the SELECT."""

    opening: Sql = _NOTHING
    into: Sql = _NOTHING
    closing: Sql = _NOTHING


def score_sql(
    forest: ForestContent,
    table: Scored,
    *,
    prefix: str = "",
    fast: bool = False,
    dialect: Dialect = _DUCKDB,
    keep: Sequence[str] | None = None,
    around: Around | None = None,
) -> str:
    """The SELECT that adds `prediction` and one `p_<class>` per class to every row of a table.

    `keep` names the columns to keep: all of them if it is None. `fast` takes the faster form, for
    DuckDB alone: other engines have no such lists. Raises `DpforestError` for a missing column, a
    type that does not fit, a column name that is taken, or what the dialect cannot write.
    """
    domain, names = forest.domain, share_names(forest, prefix)
    if keep is None and not dialect.excludes:
        keep = list(table.columns)
    own = [attribute.column for attribute in domain.attributes]
    _refuse_taken(added_names(forest, prefix), (table.columns or own) if keep is None else keep)
    whole, emitted = _whole(forest), _emitted(forest)
    writer = _Writer(dialect, table, keep, own)
    layers, scores = _summed(writer, forest, emitted, whole, fast)
    votes = [Sql(f"t.{score.column}") for score in scores]
    if whole:
        votes.append(Sql(f"({' - '.join([str(whole), *votes])})"))
    found = outcome(dialect, forest, votes, whole, writer.helper)
    added = [*scores]
    for name, helpers in found.layers.items():
        layers.append(Layer(writer.cte(name), helpers, writer.carried(added)))
        added += helpers
    widest = max(len(layer.kept) + len(layer.helpers) for layer in layers)
    dialect.check_shape(max(widest, len(writer.kept()) + 1 + len(names)), _nested(dialect, forest))
    around = around or Around()
    sql = render(
        "score",
        version=forest.version,
        model=forest.name,
        predicts=f'"{domain.target}" ({listed(domain.classes)})',
        recipe=_described(forest),
        guarantee=str(forest.guarantee),
        private=forest.private,
        advice=dialect.advice,
        opening=around.opening,
        into=around.into,
        closing=around.closing,
        cte_as=dialect.cte,
        cte_end=dialect.cte_end,
        layers=layers,
        source=table.name,
        kept=writer.kept(added),
        cast=dialect.target_type(domain.target_type),
        prediction=found.prediction,
        prediction_column=dialect.ident(f"{prefix}prediction"),
        shares=[
            SimpleNamespace(share=share, column=dialect.ident(name))
            for share, name in zip(found.shares, names, strict=True)
        ],
    )
    ours = dialect.name == "duckdb" and not dialect.jinja
    return check(sql, select=not around.opening) if ours else sql


def _summed(
    writer: _Writer, forest: ForestContent, emitted: int, whole: int, fast: bool
) -> tuple[list[Layer], list[Helper]]:
    """The layers that find the leaves and sum their votes, and the columns of the sums."""
    dialect = writer.dialect
    layers, terms = writer.terms(forest, emitted, fast)
    largest = len(forest.domain.classes) * reach(forest)  # the votes of all classes are summed too
    wide = max(largest, whole) >= 2**31
    scores = [
        Helper(
            f"votes for {label}",
            _of_trees(dialect, forest, terms[number], wide),
            writer.helper(f"votes_{number}"),
        )
        for number, label in enumerate(forest.domain.classes[:emitted])
    ]
    return writer.linked([*layers, Layer(writer.cte("votes"), scores)]), scores


def _of_trees(dialect: Dialect, forest: ForestContent, votes: Sequence[Sql], wide: bool) -> Sql:
    """The votes of all trees for a class, from those of each; trees that add 0 are left out."""
    added = [each for each in votes if each != "0"] if forest.voting == "sum" else votes
    terms = [_term(dialect, each, wide) for each in added or votes[:1]]
    return combined(dialect, terms, forest.voting)


def _described(forest: ForestContent) -> str:
    """The recipe and the size of a forest, for the comment on top of the SQL."""
    trees = f"{len(forest.trees)} tree{'s' if len(forest.trees) > 1 else ''}"
    return f"{forest.system}, {trees}, {forest.nodes} nodes, {forest.depth} deep"


def added_names(forest: ForestContent, prefix: str = "") -> list[str]:
    """The columns that scoring adds: the prediction, then the probability of each class."""
    return [f"{prefix}prediction", *share_names(forest, prefix)]


def share_names(forest: ForestContent, prefix: str = "") -> list[str]:
    """The column of each class: `p_<class>`, numbered where two differ by case alone."""
    names: list[str] = []
    for label in forest.domain.classes:
        name, number = f"{prefix}p_{label}", 1
        while name.casefold() in {other.casefold() for other in names}:  # as most engines
            number += 1
            name = f"{prefix}p_{label}_{number}"
        names.append(name)
    return names


def check(sql: str, *, select: bool = True) -> str:
    """The same SQL, after DuckDB has read it as exactly one statement (a SELECT if `select`).

    Raises `AssertionError` for anything else, which would be a defect of this package.
    """
    statements = duckdb.extract_statements(sql)
    if len(statements) != 1:
        raise AssertionError("scoring SQL must be one statement")
    if select and statements[0].type != duckdb.StatementType.SELECT:
        raise AssertionError("scoring SQL must be a SELECT")
    return sql


class _Writer:
    """Writes the layers of one statement: names that are free, and the columns each layer keeps."""

    def __init__(
        self, dialect: Dialect, table: Scored, keep: Sequence[str] | None, own: Sequence[str]
    ) -> None:
        """`own` are the columns of the model's attributes."""
        self.dialect, self._table, self._keep = dialect, table, keep
        taken = [*table.columns, *(keep or []), *own]
        self._taken = {column.casefold() for column in taken}

    def helper(self, name: str) -> Sql:
        """A quoted name that starts with none of the table's."""
        return self.dialect.ident(self._free(f"dpforest_{name}"))

    cte = helper

    def kept(self, dropped: Sequence[Helper] = ()) -> list[Sql]:
        """The columns to keep of a row `t` that has the helpers `dropped` too."""
        if self._keep is not None:
            return [Sql(f"t.{self.dialect.ident(name)}") for name in self._keep]
        left_out = ", ".join(helper.column for helper in dropped)
        return [Sql(f"t.* EXCLUDE ({left_out})" if dropped else "t.*")]

    def carried(self, helpers: Sequence[Helper]) -> list[Sql]:
        """The columns to keep of a row `t`, with its helpers."""
        if self._keep is None:
            return self.kept()
        return [*self.kept(), *(Sql(f"t.{helper.column}") for helper in helpers)]

    def linked(self, layers: Sequence[Layer]) -> list[Layer]:
        """The layers with what each keeps of the one before."""
        *before, last = layers
        if self._keep is None:
            added = [helper for layer in before for helper in layer.helpers]
            return [
                *(replace(x, kept=self.kept()) for x in before),
                replace(last, kept=self.kept(added)),
            ]
        return [replace(layer, kept=[*self.kept(), *layer.kept]) for layer in layers]

    def terms(self, forest: ForestContent, emitted: int, fast: bool) -> tuple[list[Layer], Terms]:
        """The layers that find leaves, and the votes of each tree for each class, `[class][tree]`.

        The terms are expressions on a row `t` with the helpers of all layers.
        """
        known = self._table.columns
        if known:
            refuse_missing(forest, known)
        attributes = {number: fitted(a, known) for number, a in forest.used.items()}
        names = {number: _column(a, known) for number, a in forest.used.items()}
        raw = {number: Sql(f"t.{self.dialect.ident(name)}") for number, name in names.items()}
        if fast and fastest_form(forest) == "bit sets":
            return fast_layers(forest, attributes, raw, emitted, self.helper)
        kept = {fold(name) for name in self._keep or []}
        read = {raw[number]: None for number, name in names.items() if fold(name) not in kept}
        inputs, columns = self._inputs(attributes, names, raw)
        inputs = replace(inputs, kept=[column for column in read if column in columns.values()])
        cells, leaves = forest.domain.cells, list[Helper]()

        def case(tree: Tree, of_node: Integers) -> Sql:
            return tree_case(self.dialect, tree, attributes, columns, cells, of_node)

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
            leaves.append(Helper(f"leaf of tree {number}", value, self.helper(f"leaf_{number}")))
            column = Sql(f"t.{leaves[-1].column}")
            for of_class, values in zip(terms, votes.T, strict=True):
                of_class.append(leaf_votes(values, column))
        found = Layer(self.cte("leaves"), leaves)
        return [layer for layer in (inputs, found) if layer.helpers], terms

    def _inputs(
        self,
        attributes: Mapping[int, Attribute],
        names: Mapping[int, str],
        raw: Mapping[int, Sql],
    ) -> tuple[Layer, dict[int, Sql]]:
        """The layer of columns that are compared as expressions, and all columns as compared."""
        helpers: dict[str, Helper] = {}
        columns = dict(raw)
        for number, column in raw.items():
            value = self.dialect.input(attributes[number], column)
            if value != column and value not in helpers:
                made = self.helper(f"input_{len(helpers)}")
                helpers[value] = Helper(f"{names[number]} as it is compared", value, made)
            if value in helpers:
                columns[number] = Sql(f"t.{helpers[value].column}")
        return Layer(self.cte("inputs"), list(helpers.values())), columns

    def _free(self, name: str) -> str:
        source = fold(self._table.name)
        while name in source or any(column.startswith(name) for column in self._taken):
            name += "_"
        return name


def fitted(attribute: Attribute, columns: Mapping[str, ColumnType]) -> Attribute:
    """An attribute for a table, with the same cells; `columns` are its types, empty if unknown.

    Raises `DpforestError` for a column that has an unsuitable type.
    """
    if columns:
        return attribute.rebound(columns[_column(attribute, columns)])
    return replace(attribute, type=ANY_TEXT) if attribute.family == "text" else attribute


def _column(attribute: Attribute, columns: Mapping[str, ColumnType]) -> str:
    """The name of an attribute's column as the table spells it."""
    if not columns:
        return attribute.column
    return spellings(columns)[fold(attribute.column)]


def refuse_missing(forest: ForestContent, columns: Iterable[str], place: str = "the rows") -> None:
    """Raise `DpforestError` if `columns`, those of a `place`, lack some that a forest reads."""
    known = spellings(columns)
    read = dict.fromkeys(attribute.column for attribute in forest.used.values())
    missing = [name for name in read if fold(name) not in known]
    if missing:
        are, them = ("are no columns", "them") if len(missing) > 1 else ("is no column", "it")
        raise DpforestError(
            f"There {are} {listed(missing)}, which the model reads: add {them} to {place}."
        )


def _refuse_taken(names: Sequence[str], columns: Iterable[str]) -> None:
    taken = {column.casefold() for column in columns}
    for name in names:
        if name.casefold() in taken:
            raise DpforestError(
                f'There is a column "{name}" already: pass --prefix to name ours differently.'
            )


def _term(dialect: Dialect, votes: Sql, wide: bool) -> Sql:
    return dialect.as_integer(votes) if wide else dialect.votes(votes)


def fastest_form(forest: ForestContent) -> Literal["bit sets", "nested CASE"]:
    """How the fast SQL finds the leaves of a forest."""
    return "bit sets" if bit_sets_pay(forest, _emitted(forest)) else "nested CASE"


def _emitted(forest: ForestContent) -> int:
    """The classes whose votes SQL sums: if all votes are a constant, the last class follows."""
    return len(forest.domain.classes) - (1 if _whole(forest) else 0)


def _nested(dialect: Dialect, forest: ForestContent) -> int:
    """The most levels of CASE in each other: in a tree, or in the votes of its leaves.

    The outermost is part of the sum of all trees, which may count as some levels more.
    """
    if dialect.most_nested is None:
        return 0
    trees, emitted = forest.trees, _emitted(forest)
    sums = ceil((len(trees) - 1).bit_length() * dialect.nested_by_sum)
    if emitted == 1:
        return forest.depth + sums
    votes = max(len(np.unique(tree.votes[tree.leaves, :emitted], axis=0)) for tree in trees)
    return max(forest.depth, (votes - 1).bit_length() + sums)


def _whole(forest: ForestContent) -> int:
    """All votes of a row, if they are the same number at every leaf of a tree; else 0."""
    if forest.voting != "sum":
        return 0
    sums = [np.unique(tree.votes[tree.leaves].sum(axis=1)) for tree in forest.trees]
    return sum(int(each[0]) for each in sums) if all(len(each) == 1 for each in sums) else 0
