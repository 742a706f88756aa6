"""The SQL that moves rows from the nodes of a level to their children.

The node_class of a row decides which split moves it. The figures of that split (see `Moves`) are
looked up by the node_class: in constant lists, or, if many nodes are split, in a table that is
joined. All figures are public or released.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.engine.base import Splits
from dpforest_duckdb.engine.shared.packing import Place
from dpforest_duckdb.sql import Column, Sql
from dpforest_duckdb.tree import EQUALS, MULTIWAY, THRESHOLD

MAX_LIST = 1024  # entries; DuckDB copies a list for every 2,048 rows, so long ones are slow


@dataclass(frozen=True)
class Moves:
    """Where the rows of split nodes go, as parallel arrays over their node_classes.

    `code` is `(word xor flip) & mask`: the bits of the split's attribute, where they are in the
    word. `flip` makes it zero for the cell of an EQUALS split.

    If all splits are binary, the row goes to the second child if `code > above`. If some are
    multiway, the number of the child is `(code + carry) >> shift` for all of them. At a multiway
    split `carry` is 0. At a binary one, a code above the cut plus `carry` overflows into the bit
    above the code, which makes the number 1.
    """

    node_class: Integers
    first: Integers  # the node_class in the first child
    word: Integers
    flip: Integers
    mask: Integers
    above: Integers
    carry: Integers
    shift: Integers
    binary: bool

    @classmethod
    def of(
        cls, splits: Splits, mine: Sequence[int], places: Sequence[Place], classes: int
    ) -> Moves:
        """The moves by the splits `mine` (indices); `places[attribute]` says where its code is."""
        at = [places[splits.attribute[i]] for i in mine]
        node, first, kind, cell = (
            np.array([column[i] for i in mine], dtype=np.int64)
            for column in (splits.node, splits.first, splits.kind, splits.cell)
        )
        word, shift, bits = (
            np.array(part, dtype=np.int64)
            for part in zip(*((p.word, p.shift, p.bits) for p in at), strict=True)
        )
        whole, cut = (1 << bits) - 1, np.where(kind == THRESHOLD, cell, 0)
        multiway = kind == MULTIWAY

        def by_class(values: Integers) -> Integers:
            return np.repeat(values, classes)

        labels = np.tile(np.arange(classes), len(node))
        return cls(
            node_class=by_class(node * classes) + labels,
            first=by_class(first * classes) + labels,
            word=by_class(word),
            flip=by_class(np.where(kind == EQUALS, cell, 0) << shift),
            mask=by_class(whole << shift),
            above=by_class(cut << shift),
            carry=by_class(np.where(multiway, 0, whole - cut) << shift),
            shift=by_class(shift + np.where(multiway, 0, bits)),
            binary=not multiway.any(),
        )

    def child(self, value: Callable[[str], Sql], words: Sequence[Sql], classes: int) -> Sql:
        """The node_class of a row in its child; `value(name)` is a figure of its node_class."""
        word = words[self.word[0]]
        if (self.word != self.word[0]).any():
            whens = " ".join(f"WHEN {w} THEN {column}" for w, column in enumerate(words))
            word = Sql(f"CASE {value('word')} {whens} END")
        if self.flip.any():
            word = Sql(f"xor(CAST({word} AS UBIGINT), {value('flip')})")
        code = f"({word} & {value('mask')})"
        branch = f"(({code} + {value('carry')}) >> {value('shift')})"
        if self.binary:
            branch = f"({code} > {value('above')})"
        return Sql(f"{value('first')} + {classes} * CAST({branch} AS BIGINT)")


@dataclass(frozen=True)
class Move:
    """How rows move in a node_class `column`: the node_class of a row in its `child`.

    If there are `figures`, they are the columns of a table to join, by the name `table`.
    """

    column: Sql
    child: Sql
    table: Sql
    figures: Sequence[Column]


def moved(
    moves: Moves,
    node_class: Sql,
    others: Integers,
    *,
    table: Sql,
    words: Sequence[Sql],
    classes: int,
) -> Move:
    """How rows move by a column `node_class`.

    `others` are the other nodes that may hold rows. `table` is a name for a table to join.
    """
    column = f"c.{node_class}"
    first, last = int(moves.node_class.min()), int(moves.node_class.max())
    listed = last - first < MAX_LIST
    look_up = _lists(moves, column, first, last) if listed else _joined(table)
    child = moves.child(look_up, words, classes)
    if not listed:
        child = Sql(f'CASE WHEN {table}."node_class" IS NULL THEN {column} ELSE {child} END')
    elif ((others * classes < first) | (others * classes > last)).any():
        known = f"{column} BETWEEN {first} AND {last}"
        child = Sql(f"CASE WHEN {known} THEN {child} ELSE {column} END")
    return Move(node_class, child, table, [] if listed else _figures(moves))


def _lists(moves: Moves, column: str, first: int, last: int) -> Callable[[str], Sql]:
    """Figures from lists over the node_classes first … last; rows of other nodes stay."""
    at = moves.node_class - first
    index = f"CAST({column} AS BIGINT) - {first - 1}"

    def value(name: str) -> Sql:
        entries = np.zeros(last - first + 1, dtype=np.int64)
        if name == "first":
            entries += np.arange(first, last + 1)
        entries[at] = getattr(moves, name)
        if (entries == entries[0]).all():
            return Sql(f"CAST({entries[0]} AS {_type(name)})")
        return Sql(f"CAST('{entries.tolist()}' AS {_type(name)}[])[{index}]")

    return value


def _joined(table: Sql) -> Callable[[str], Sql]:
    return lambda name: Sql(f'{table}."{name}"')


def _figures(moves: Moves) -> list[Column]:
    """The columns of the table to join."""
    names = ["node_class", "first", "word", "flip", "mask"]
    names += ["above"] if moves.binary else ["carry", "shift"]
    return [
        Column(
            Sql(f"unnest(CAST('{getattr(moves, name).tolist()}' AS {_type(name)}[]))"),
            Sql(f'"{name}"'),
        )
        for name in names
    ]


def _type(name: str) -> str:
    """The type of a figure: packed codes have up to 63 bits."""
    return "UBIGINT" if name in ("flip", "mask", "above", "carry", "shift") else "BIGINT"
