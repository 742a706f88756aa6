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

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Literal

import duckdb
import numpy as np

from dpforest_duckdb.domain.names import listed
from dpforest_duckdb.domain.types import ColumnType
from dpforest_duckdb.errors import DpforestError, number_of
from dpforest_duckdb.scoring.case_layers import case_layers
from dpforest_duckdb.scoring.content import ForestContent
from dpforest_duckdb.scoring.dialects import Dialect
from dpforest_duckdb.scoring.dialects.duckdb import DUCKDB
from dpforest_duckdb.scoring.inputs import Inputs
from dpforest_duckdb.scoring.layers import FreeNames, Helper, Kept, Layer, combined
from dpforest_duckdb.scoring.outcome import outcome, reach
from dpforest_duckdb.scoring.quickscorer import bit_sets_pay, fast_layers
from dpforest_duckdb.sql import TERMS, Column, Sql, render, summed
from dpforest_duckdb.tree import Voting

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
    dialect: Dialect = DUCKDB,
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
    features = [attribute.column for attribute in domain.attributes]
    _refuse_taken(
        added_names(forest, prefix), (table.columns or features) if keep is None else keep
    )
    whole, kept = _whole(forest), Kept(dialect, keep)
    free = FreeNames(dialect, table.name, [*table.columns, *(keep or []), *features])
    inputs = Inputs.of(forest, table.columns, dialect)
    layers, scores = _summed(dialect, forest, inputs, free, fast=fast)
    layers = kept.linked(layers)
    votes = [Sql(f"t.{score.column}") for score in scores]
    if whole:
        votes.append(_left_of(whole, votes))
    found = outcome(dialect, forest, votes, whole, free)
    added = [*scores]
    for name, helpers in found.layers.items():
        layers.append(Layer(free(name), helpers, kept.columns_and(added)))
        added += helpers
    widest = max(len(layer.kept) + len(layer.helpers) for layer in layers)
    dialect.check_shape(max(widest, len(kept.columns()) + 1 + len(names)), _nested(dialect, forest))
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
        kept=kept.columns(added),
        cast=dialect.target_type(domain.target_type),
        prediction=found.prediction,
        prediction_column=dialect.ident(f"{prefix}prediction"),
        shares=[
            Column(share, dialect.ident(name))
            for share, name in zip(found.shares, names, strict=True)
        ],
    )
    ours = dialect.name == "duckdb" and not dialect.jinja
    return check(sql, select=not around.opening) if ours else sql


def _summed(
    dialect: Dialect, forest: ForestContent, inputs: Inputs, free: FreeNames, *, fast: bool
) -> tuple[list[Layer], list[Helper]]:
    """The layers that find the leaves and sum their votes, and the columns of the sums."""
    emitted = _emitted(forest)
    if fast and fastest_form(forest) == "bit sets":
        layers, terms = fast_layers(forest, inputs.attributes, inputs.columns, emitted, free)
    else:
        layers, terms = case_layers(dialect, forest, inputs, emitted, free)
    largest = len(forest.domain.classes) * reach(forest)  # the votes of all classes are summed too
    wide = max(largest, _whole(forest)) >= 2**31
    scores = [
        Helper(
            f"votes for {label}",
            _of_trees(dialect, forest, terms[number], wide),
            free(f"votes_{number}"),
        )
        for number, label in enumerate(forest.domain.classes[:emitted])
    ]
    return [*layers, Layer(free("votes"), scores)], scores


def _of_trees(dialect: Dialect, forest: ForestContent, votes: Sequence[Sql], wide: bool) -> Sql:
    """The votes of all trees for a class, from those of each; trees that add 0 are left out."""
    added = [each for each in votes if each != "0"] if forest.voting == Voting.SUM else votes
    terms = [_term(dialect, each, wide) for each in added or votes[:1]]
    return combined(dialect, terms, forest.voting)


def _described(forest: ForestContent) -> str:
    """The recipe and the size of a forest, for the comment on top of the SQL."""
    trees = number_of(len(forest.trees), "tree")
    return f"{forest.system}, {trees}, {forest.nodes} nodes, {forest.depth} deep"


def added_names(forest: ForestContent, prefix: str) -> list[str]:
    """The columns that scoring adds: the prediction, then the probability of each class."""
    return [f"{prefix}prediction", *share_names(forest, prefix)]


def share_names(forest: ForestContent, prefix: str) -> list[str]:
    """The column of each class: `p_<class>`, numbered where two differ by case alone."""
    names: dict[str, str] = {}  # by their lower case, in which most engines compare them
    for label in forest.domain.classes:
        name, number = f"{prefix}p_{label}", 1
        while name.casefold() in names:
            number += 1
            name = f"{prefix}p_{label}_{number}"
        names[name.casefold()] = name
    return list(names.values())


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


def _left_of(whole: int, votes: Sequence[Sql]) -> Sql:
    """The votes of the last class: those of all classes without the others'."""
    if len(votes) <= TERMS:
        return Sql(f"({' - '.join([str(whole), *votes])})")
    return Sql(f"({whole} - ({summed(votes)}))")


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
    if forest.voting != Voting.SUM:
        return 0
    sums = [np.unique(tree.votes[tree.leaves].sum(axis=1)) for tree in forest.trees]
    return sum(int(each[0]) for each in sums) if all(len(each) == 1 for each in sums) else 0
