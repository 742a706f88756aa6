"""What an engine must do, as checks that can run on any engine.

A test gives `conforms` a way to make an engine that has one table of made-up rows, and one that
runs a change of the table as its user would. Everything is checked through the protocols of
`engine/base.py` alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from grown_trees import Rows

from dpforest_duckdb.domain import Domain
from dpforest_duckdb.domain.file import domain_from_mapping
from dpforest_duckdb.domain.table import TableInfo
from dpforest_duckdb.domain.types import INTEGER, VARCHAR
from dpforest_duckdb.engine.base import (
    MIXTURE_PARTS,
    POINTS,
    CodedTable,
    Coding,
    Engine,
    Gradients,
    NameTakenError,
    Snapshot,
    Splits,
    StoredRow,
)
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.guarantee import Guarantee
from dpforest_duckdb.privacy.unit import ROW, PrivacyUnit
from dpforest_duckdb.scoring.content import ForestContent
from dpforest_duckdb.tree import EQUALS, MULTIWAY, SCALE, THRESHOLD, Tree

COLUMNS = {"colour": VARCHAR, "size": INTEGER, "who": INTEGER, "label": VARCHAR}
ROWS: list[tuple[str | None, int | None, int | None, str | None]] = [
    (["red", "blue", "grey", None][i % 4], [0, 1, 2, 3, None][i % 5], i // 3, ["no", "yes"][i % 2])
    for i in range(200)
] + [("red", 1, None, "yes"), ("red", 1, 1, None), ("red", 1, 1, "maybe")]
DOMAIN = domain_from_mapping(
    {
        "target": "label",
        "column": [
            {"name": "colour", "kind": "categorical", "domain": ["red", "blue"], "nullable": True},
            {"name": "size", "kind": "numeric", "edges": [0, 1, 2], "nullable": True},
            {"name": "label", "kind": "categorical", "domain": ["no", "yes"]},
        ],
    }
)


# trees 0 and 1: a child per colour, nodes 2 …; and size up to 1, or above
FIRST_OF_SIZES = 2 + DOMAIN.cells[0]
BY_COLOUR_AND_SIZE = Splits(
    node=[0, 1],
    attribute=[0, 1],
    kind=[MULTIWAY, THRESHOLD],
    cell=[0, 1],
    first=[2, FIRST_OF_SIZES],
)
RED_IS_NO = Tree(  # for a red row three of four votes are for "no", for others for "yes"
    kind=np.array([EQUALS, 0, 0]),
    attribute=np.array([0, -1, -1]),
    cell=np.zeros(3, dtype=np.int64),
    first=np.array([1, -1, -1]),
    counts=None,
    votes=np.array([[0, 0], [3, 1], [1, 3]]),
)


@dataclass(frozen=True)
class Subject:
    """An engine to check, and a way to add `ROWS`-like rows to its table `t` behind its back."""

    engine: Engine
    insert: Callable[[Sequence[tuple[object, ...]]], None]


def bound(info: TableInfo) -> Domain:
    return DOMAIN.bind(info.columns)


def codes() -> list[tuple[int, int, int]]:
    """Per counted row the codes of colour and size, and the class."""
    domain = bound(TableInfo("", "", "t", COLUMNS))
    colour, size = domain.attributes
    return [
        (colour.code(row[0]), size.code(row[1]), domain.classes.index(row[3]))
        for row in ROWS
        if row[3] in domain.classes
    ]


def in_memory(domain: Domain, trees: int = 1) -> Rows:
    """The counted rows in Python."""
    colour, size, label = np.array(codes()).T
    classes = len(domain.classes)
    return Rows(np.column_stack([colour, size]), label, domain.cells, classes, trees)


def conforms(subject: Subject) -> None:
    """Raise `AssertionError` for the first thing that an engine does not do."""
    info = a_table_is_resolved_with_its_columns(subject.engine)
    a_comment_is_kept_with_the_table(subject.engine, info)
    models_are_stored_and_replaced(subject.engine)
    rows_are_counted(subject.engine, info)
    a_snapshot_shows_one_moment(subject, info)
    shared_codes_are_those_of_one_moment(subject, info)
    units_with_the_same_rows_use_different_ones(subject, info)


def conforms_without_tables(subject: Subject) -> None:
    """The same for rows in no table: there are no other tables, and no comment is kept."""
    engine = subject.engine
    info = engine.typed(engine.table("t"), DOMAIN, PrivacyUnit("who"))
    assert info.columns.keys() == COLUMNS.keys()
    assert engine.tables(info.catalog) == []
    assert [column.name for column in engine.declared(info)] == list(info.columns)
    assert engine.home(info.catalog).path == ""
    engine.refuse_unseen(info)
    assert engine.same_rows(engine)
    assert engine.room() > 0
    with pytest.raises(DpforestError):
        written_and_failed(engine, info)
    models_are_stored_and_replaced(engine)
    rows_are_counted(engine, info)
    a_snapshot_shows_one_moment(subject, info)
    units_with_the_same_rows_use_different_ones(subject, info)


def rows_are_counted(engine: Engine, info: TableInfo) -> None:
    with engine.snapshot(info) as rows:
        counts_are_dense_and_routing_moves_rows(rows, info)
        units_are_bounded(rows, info)
        first_phase_trees_give_weights(rows, info)
        pairs_and_labels_are_counted(rows, info)
        products_of_positions_are_summed(rows, info)
        bins_of_scores_are_counted(rows, info)
        scores_and_gradients_are_summed(rows, info)
        mixtures_get_points(rows, info)
        outcomes_are_counted(rows, info)


def a_table_is_resolved_with_its_columns(engine: Engine) -> TableInfo:
    info = engine.table("t")
    assert info.name == "t"
    assert info.columns == COLUMNS
    assert "t" in [table.name for table in engine.tables(info.catalog)]
    assert [column.name for column in engine.declared(info)] == list(COLUMNS)
    assert [column.type for column in engine.declared(info)] == list(COLUMNS.values())
    engine.refuse_unseen(info)
    assert engine.same_rows(engine)
    assert engine.room() > 0
    tables = [CodedTable(DOMAIN)]
    narrow = StoredRow(tables, unit=None, node_columns=1, scores=0)
    wide = StoredRow(tables, unit=info.columns["who"], node_columns=9, scores=2, before=tables)
    assert 0 < engine.bytes_of_a_row(narrow) <= engine.bytes_of_a_row(wide)
    with pytest.raises(DpforestError, match="no_such_table"):
        engine.table("no_such_table")
    return info


def a_comment_is_kept_with_the_table(engine: Engine, info: TableInfo) -> None:
    text = "the user's\nour own: {\"a\": 'b'}"
    with engine.stored_comment(info) as comment:
        assert comment.read().key == info.key
        comment.write(text)
    assert engine.table("t").comment == text
    with pytest.raises(DpforestError):
        written_and_failed(engine, info)
    assert engine.table("t").comment == text, "what fails writes nothing"


def written_and_failed(engine: Engine, info: TableInfo) -> None:
    with engine.stored_comment(info) as comment:
        comment.write("never")
        engine.table("no_such_table")


def models_are_stored_and_replaced(engine: Engine) -> None:
    models = engine.models
    assert models.names() == []
    if not models.writable:
        with pytest.raises(DpforestError):
            models.write("a", "{}")
        return
    models.write("a", '{"x": 1}')
    models.write("B; --", "second")
    assert models.names() == ["B; --", "a"]
    assert models.read("a") == '{"x": 1}'
    for name in ("a", "A"):
        with pytest.raises(NameTakenError):
            models.write(name, "other")
    models.write("A", "third", instead_of="a")
    assert models.names() == ["A", "B; --"]
    assert models.read("A") == "third"
    models.delete("A")
    assert models.names() == ["B; --"]


def counts_are_dense_and_routing_moves_rows(rows: Snapshot, info: TableInfo) -> None:
    domain, found = bound(info), codes()
    coded = rows.encode(Coding(domain, ROW, trees=2, sample="all", salt=1))
    colour, size = coded.count_classes(0, 2)
    assert colour.shape == (2, domain.cells[0], 2)
    assert size.shape == (2, domain.cells[1], 2)
    for tree in range(2):
        for attribute, table in enumerate((colour, size)):
            for value, label in np.ndindex(*table[tree].shape):
                expected = sum(c[attribute] == value and c[2] == label for c in found)
                assert table[tree, value, label] == expected
    first = FIRST_OF_SIZES
    coded.route(BY_COLOUR_AND_SIZE, first + 2)
    leaves = coded.count_leaves(2, first)
    for value in range(domain.cells[0]):
        for label in range(2):
            assert leaves[value, label] == sum(c[0] == value and c[2] == label for c in found)
    for label in range(2):
        low = sum(c[1] <= 1 and c[2] == label for c in found)
        assert leaves[first - 2, label] == low
        assert leaves[first - 1, label] == sum(c[2] == label for c in found) - low
    coded.drop()


def units_are_bounded(rows: Snapshot, info: TableInfo) -> None:
    """Two rows of each unit at most; all rows of a unit in one of three trees."""
    coded = rows.encode(
        Coding(bound(info), PrivacyUnit("who", 2), trees=3, sample="disjoint", salt=7)
    )
    units = [row[2] for row in ROWS if row[3] in DOMAIN.classes and row[2] is not None]
    expected = sum(min(2, units.count(unit)) for unit in set(units))
    leaves = coded.count_leaves(0, 3)
    assert leaves.sum() == expected
    assert (leaves.sum(axis=1) > 0).all(), "no tree is empty"
    coded.drop()


def first_phase_trees_give_weights(rows: Snapshot, info: TableInfo) -> None:
    """Rows that a tree gets wrong count three times: red is "no", all else "yes"."""
    coded = rows.encode(
        Coding(
            bound(info),
            ROW,
            trees=1,
            sample="all",
            salt=1,
            first_phase=[RED_IS_NO],
            misclassified_weight=3,
        )
    )
    expected = [0, 0]
    for colour, _, label in codes():
        expected[label] += 1 if label == (colour != 0) else 3
    assert coded.count_leaves(0, 1).tolist() == [expected]
    coded.drop()


def pairs_and_labels_are_counted(rows: Snapshot, info: TableInfo) -> None:
    domain = bound(info)
    coded, known = (
        rows.encode(Coding(domain, ROW, trees=1, sample="all", salt=1)),
        in_memory(domain),
    )
    bins = [number % 2 for number in range(domain.cells[1])]
    for found, expected in zip(coded.count_pairs(1, bins), known.count_pairs(1, bins), strict=True):
        assert found.tolist() == expected.tolist()
    by_size = replace(RED_IS_NO, kind=np.array([THRESHOLD, 0, 0]), attribute=np.array([1, -1, -1]))
    found, expected = (
        sorted(
            zip(*(part.tolist() for part in each.count_labels([RED_IS_NO, by_size])), strict=True)
        )
        for each in (coded, known)
    )
    assert found == expected
    coded.drop()


def bins_of_scores_are_counted(rows: Snapshot, info: TableInfo) -> None:
    domain, random = bound(info), np.random.default_rng(0)
    coded = rows.encode(Coding(domain, ROW, trees=2, sample="all", salt=1))
    known, nodes = in_memory(domain, trees=2), FIRST_OF_SIZES + 2
    for each in (coded, known):
        each.route(BY_COLOUR_AND_SIZE, nodes)
    votes = [random.integers(-9, 10, nodes) for _ in range(2)]
    cuts = sorted({int(votes[0][3] + votes[0][-1]), 0, 5})  # one score is equal to a cut
    found = coded.count_scores(votes, cuts)
    assert found.sum() == len(codes())
    assert found.tolist() == known.count_scores(votes, cuts).tolist()
    coded.drop()


def products_of_positions_are_summed(rows: Snapshot, info: TableInfo) -> None:
    domain = bound(info)
    coded = rows.encode(Coding(domain, ROW, trees=1, sample="all", salt=1))
    random = np.random.default_rng(0)
    colour, size = (random.integers(-100, 101, (cells, 2)) for cells in domain.cells)
    placed = np.array([[*colour[c], *size[s]] for c, s, _ in codes()])
    found = coded.sum_products({0: colour, 1: size})
    assert found.tolist() == (placed.T @ placed).tolist()
    coded.drop()


def scores_and_gradients_are_summed(rows: Snapshot, info: TableInfo) -> None:
    coded = rows.encode(Coding(bound(info), ROW, trees=1, sample="all", salt=1))
    one = np.zeros(1, dtype=np.int64)
    tree = Tree(one, one - 1, one, one - 1, None, np.array([[0, 0]]))
    coded.add_votes([tree])
    (sums,) = coded.sum_gradients(
        [tree], Gradients(2**16, hessian_numerator=1, hessian_denominator=2)
    )
    labels = [label for _, _, label in codes()]
    gradient = sum(2**16 * label - 2**15 for label in labels)
    assert sums.tolist() == [[gradient, len(labels) * 2**13]]
    coded.drop()


def mixtures_get_points(rows: Snapshot, info: TableInfo) -> None:
    """Half of the points are for the right class, the others for a small log loss."""
    coded = rows.encode(Coding(bound(info), ROW, trees=1, sample="all", salt=1))
    of_red = ([SCALE, 0], [0, SCALE // 2])  # what two models say of a red row
    models = [replace(RED_IS_NO, votes=np.array([[0, 0], odds, [0, SCALE]])) for odds in of_red]
    mixtures = [(MIXTURE_PARTS, 0), (0, MIXTURE_PARTS), (MIXTURE_PARTS // 2, MIXTURE_PARTS // 4)]
    expected = np.zeros(len(mixtures))
    for colour, _, label in codes():
        for number, weights in enumerate(mixtures):
            leaf = 1 if colour == 0 else 2
            parts = zip(models, weights, strict=True)
            odds = sum(w * int(m.votes[leaf, 1] - m.votes[leaf, 0]) for m, w in parts)
            own = (1 if label else -1) * odds / SCALE / MIXTURE_PARTS
            loss = np.log1p(np.exp(-own)) / (4 * np.log(2))
            expected[number] += POINTS / 2 * ((own > 0) + 1 - min(loss, 1))
    found = coded.rate_mixtures([[model] for model in models], mixtures, 1)
    assert np.abs(found - expected).max() <= len(codes())  # points are whole numbers
    assert found[0] != found[1]
    coded.drop()


def outcomes_are_counted(rows: Snapshot, info: TableInfo) -> None:
    domain = bound(info)
    forest = ForestContent("m", "", Guarantee("1"), domain, (RED_IS_NO,))
    labels = domain.labels.bound(info.columns["label"])
    found = rows.count_outcomes(forest, labels)
    groups = zip(found.label, found.right, found.value, found.rows, strict=True)
    counted = {(int(label), int(right), float(value)): int(n) for label, right, value, n in groups}
    expected: dict[tuple[int, int, float], int] = {}
    for colour, _, label in codes():
        share = 0.25 if colour == 0 else 0.75
        key = (label, int(label == (share > 0.5)), share)
        expected[key] = expected.get(key, 0) + 1
    assert counted == expected
    grid = rows.count_outcome_grid(forest, labels, ROW, (0.25, 0.5, 0.75), 1)
    assert grid.shape == (2, 2, 4)
    for (label, right, share), count in expected.items():
        assert grid[label, right, round(share * 4) - 1] == count
    assert grid.sum() == sum(expected.values())
    units = [row[2] for row in ROWS if row[3] in domain.classes and row[2] is not None]
    bounded = rows.count_outcome_grid(forest, labels, PrivacyUnit("who", 2), (0.25, 0.5, 0.75), 1)
    assert bounded.sum() == sum(min(2, units.count(unit)) for unit in set(units))


def a_snapshot_shows_one_moment(subject: Subject, info: TableInfo) -> None:
    """Rows that are added meanwhile are in no reading of a snapshot, and in the next snapshot."""
    coding = Coding(bound(info), ROW, trees=1, sample="all", salt=1)
    with subject.engine.snapshot(info) as rows:
        first = rows.encode(coding).count_leaves(0, 1)
        subject.insert([("red", 1, 9, "yes")] * 5)
        second = rows.encode(coding).count_leaves(0, 1)
    assert (first == second).all()
    with subject.engine.snapshot(info) as rows:
        third = rows.encode(coding).count_leaves(0, 1)
    assert (third - second).tolist() == [[0, 5]]


def shared_codes_are_those_of_one_moment(subject: Subject, info: TableInfo) -> None:
    """Runs that share codes: each one sees the rows of its start, also those coded by another."""

    def seen(rows: Snapshot, domain: Domain, *, last: bool) -> np.ndarray:
        coded = rows.encode(Coding(domain, ROW, trees=1, sample="all", salt=1), last=last)
        return coded.count_leaves(0, 1)

    domain = bound(info)
    narrow = replace(domain, attributes=domain.attributes[:1])
    more = [("red", 1, 9, "yes")] * 5
    with subject.engine.snapshot(info, shared=True) as rows:
        first = seen(rows, narrow, last=False)
        subject.insert(more)  # within the first run
        assert (seen(rows, domain, last=True) == first).all()
        second = seen(rows, narrow, last=False)
        assert (second - first).tolist() == [[0, 5]], "the second run sees them, in every reading"
        subject.insert(more)
        assert (seen(rows, domain, last=True) == second).all()
        third = seen(rows, narrow, last=False)
        assert (seen(rows, domain, last=True) == third).all()


def units_with_the_same_rows_use_different_ones(subject: Subject, info: TableInfo) -> None:
    """About half of the units that have a row of each class use that of a class."""
    pairs = [("red", 1, 1000 + i // 2, ["no", "yes"][i % 2]) for i in range(600)]
    unit, domain = PrivacyUnit("who", 1), bound(info)
    forest = ForestContent("m", "", Guarantee("1"), domain, (RED_IS_NO,))
    labels = domain.labels.bound(info.columns["label"])

    def used(salt: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows of each class, in training and in a noisy evaluation."""
        with subject.engine.snapshot(info) as rows:
            coded = rows.encode(Coding(domain, unit, trees=1, sample="all", salt=salt))
            counted = coded.count_leaves(0, 1)[0]
            coded.drop()
            grid = rows.count_outcome_grid(forest, labels, unit, (0.25, 0.5, 0.75), salt)
        return counted, grid.sum(axis=(1, 2))

    before = [used(salt) for salt in range(3)]
    subject.insert(pairs)
    for salt, olds in enumerate(before):
        for old, new in zip(olds, used(salt), strict=True):
            added = new - old
            assert added.sum() == 300
            assert 90 < added[0] < 210, "all units drew alike"
