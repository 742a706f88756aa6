"""The fast form of scoring: leaves found by bit sets, without a CASE per tree.

A value of an attribute excludes leaves: those behind the other branches of every split on that
attribute. The one leaf that no attribute excludes is the row's (Lucchese et al., QuickScorer, SIGIR
2015). A leaf is one bit of a 64-bit word, and small trees share a word. For each row DuckDB

1. computes the code of each attribute, and the joint code of each group of attributes, its key;
2. looks up the words that each group leaves, all in one entry of a list, and takes their AND, in
   which each tree has one bit;
3. looks up the votes of several trees at once: the bits of these trees, modulo a number for which
   all their combinations differ, are the place in a list.

Trees that split by the attributes of one group are added up beforehand, and looked up by its key.
So are large trees with a leaf for most combinations of a few attributes, by a key of their own:
bit sets would need a word for every 64 of their leaves.

The lists are columns of tables of one row: DuckDB copies a list that is part of an expression for
every 2,048 rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpforest_duckdb.arrays import Integers, Mask
from dpforest_duckdb.domain import Attribute
from dpforest_duckdb.scoring.codes import DuckDBCodes
from dpforest_duckdb.scoring.content import ForestContent
from dpforest_duckdb.scoring.layers import ConstantTable, Helper, Layer, Terms, combined
from dpforest_duckdb.scoring.lookups import Group, Lookups
from dpforest_duckdb.sql import Sql
from dpforest_duckdb.tree import Tree, Voting, branch_of

MAX_WORDS = 40_000  # over all cells: 800 KB of SQL; more take longer to read than to use

# What a row takes, in nanoseconds on one core with DuckDB 2.0. All were measured by hand;
# docs/speed-targets.md shows what they choose.
ARM = 1.0  # a WHEN of a CASE
CHOICE = 0.7  # a CASE that chooses between the votes of leaves
UNCACHED_CHOICE = 2.0  # the same if there are so many that a processor does not cache their results
CACHED_CHOICES = 1000
KEY = 1.5  # adding an attribute's code to a key
BIN = 0.8  # the bins of a number, each
CATEGORY = 30.0  # the place of a text among the categories
GROUP = 5  # looking up what a group leaves
WORD = 1.0  # the AND of a word
VOTES = 7.0  # looking up the votes for a class in a list

_DIALECT = DuckDBCodes()


def bit_sets_pay(forest: ForestContent, emitted: int) -> bool:
    """Whether bit sets are faster than a CASE per tree, for `emitted` votes per tree.

    A cost is the time for one row. It depends on the model alone, not on the rows.
    """
    lookups = Lookups.of(forest)
    keys = lookups.keys
    used = [forest.domain.attributes[a] for a in sorted({a for group in keys for a in group})]
    cases = [_arms_and_choices(tree, emitted, forest.domain.cells) for tree in forest.trees]
    arms, choices = map(sum, zip(*cases, strict=True))
    choice = CHOICE if choices <= CACHED_CHOICES else UNCACHED_CHOICE
    of_cases = ARM * arms + choice * choices
    of_codes = sum(BIN * a.cells if a.kind == "numeric" else CATEGORY for a in used)
    of_keys = KEY * sum(map(len, keys))
    of_words = len(lookups.groups) * (GROUP + WORD * lookups.words)
    of_votes = VOTES * emitted * (len(lookups.bundles) + len(lookups.by_key))
    small = lookups.words * sum(a.cells for a in used) <= MAX_WORDS
    return small and of_codes + of_keys + of_words + of_votes < of_cases


def _arms_and_choices(tree: Tree, emitted: int, cells: Sequence[int]) -> tuple[int, int]:
    """The arms of the CASE that finds a leaf, and the number of choices between votes of leaves.

    Leaves of the same votes count once, as `tree_case` merges branches that are the same.
    """
    votes, of_leaf = np.unique(tree.votes[tree.leaves, :emitted], axis=0, return_inverse=True)
    outcome = len(votes) + np.arange(tree.nodes)  # of a node whose leaves differ: its own number
    outcome[tree.leaves] = of_leaf.reshape(-1)
    arms = 0
    for children, above in reversed(tree.descents(cells)):
        found = np.unique(np.stack([above, outcome[children]]), axis=1)
        parents, first, branches = np.unique(found[0], return_index=True, return_counts=True)
        same = branches == 1
        outcome[parents[same]] = found[1, first[same]]
        arms += int((branches - 1).sum())
    changes = int((votes[1:] != votes[:-1]).sum())  # `leaf_votes` compares where votes change
    return arms, changes if emitted > 1 else 0


def fast_layers(
    forest: ForestContent,
    attributes: Mapping[int, Attribute],
    columns: Mapping[int, Sql],
    emitted: int,
    name: Callable[[str], Sql],
) -> tuple[list[Layer], Terms]:
    """The layers that find the votes of trees, and these votes `[class][term]` as columns of `t`.

    `attributes` are those that trees split on, by number; `columns` are theirs, in terms of `t`;
    `name` gives free names.
    """
    lookups, cells = Lookups.of(forest), forest.domain.cells
    codes = {
        a: Helper(
            f"code of {attributes[a].name}",
            _DIALECT.code(attributes[a], column),
            name(f"code_{a}"),
        )
        for a, column in columns.items()
        if any(a in group for group in lookups.keys)
    }
    coded = {a: Sql(f"t.{helper.column}") for a, helper in codes.items()}
    keys = [
        Helper(
            "key of " + ", ".join(attributes[a].name for a in group),
            key(group, cells, coded),
            name(f"key_{number}"),
        )
        for number, group in enumerate(lookups.keys)
    ]
    found = {g: Sql(f"t.{each.column}") for g, each in zip(lookups.keys, keys, strict=True)}
    words, layers = _words(lookups, forest, found, name)
    listed = _listed_votes(lookups, forest, found, [Sql(f"t.{word.column}") for word in words])
    votes, terms = _looked_up(lookups, forest, listed, emitted, name)
    first = Layer(name("codes"), list(codes.values())), Layer(name("keys"), keys)
    return [*(first if keys else []), *layers, *votes], terms


def _words(
    lookups: Lookups, forest: ForestContent, keys: Mapping[Group, Sql], name: Callable[[str], Sql]
) -> tuple[list[Helper], list[Layer]]:
    """The words in which each tree has one bit, and the layers that make them.

    `keys` are the columns of the keys.
    """
    if not lookups.bundles:
        return [], []
    left = {a: name(f"left_{a}") for group in lookups.groups for a in group}
    sets = ConstantTable(name("all_left"), _sets(lookups, left))
    found = [
        Helper("the leaves that are left", Sql(f"s.sets_{g}[{keys[group]}]"), name(f"sets_{g}"))
        for g, group in enumerate(lookups.groups)
    ]
    columns = list(keys.values())
    words = [
        Helper(
            "the leaf of each tree, as a bit",
            Sql(" & ".join(f"t.{helper.column}.w{word}" for helper in found)),
            name(f"word_{word}"),
        )
        for word in range(lookups.words)
    ]
    return words, [
        Layer(name("found"), found, columns, tables=[*_left(lookups, forest, left), sets]),
        Layer(name("words"), words, columns),
    ]


def _left(lookups: Lookups, forest: ForestContent, names: Mapping[int, Sql]) -> list[ConstantTable]:
    """For each attribute a table of the leaves that each of its codes leaves, as words."""
    cells = forest.domain.cells
    words = np.zeros((lookups.words, sum(cells)), dtype=np.uint64)
    for bundle in lookups.bundles:
        shift = bundle.shift
        for part in bundle.parts:
            left = leaves_left(forest.trees[part.tree], cells)
            bits = left[part.first : part.first + part.leaves].astype(np.uint64)
            places = np.arange(shift, shift + part.leaves, dtype=np.uint64)[:, None]
            words[bundle.word] |= np.bitwise_or.reduce(bits << places)
            shift += part.leaves
    tables = []
    for attribute, name in names.items():
        start = sum(cells[:attribute])
        mine = words[:, start : start + cells[attribute]]
        columns = [f"unnest({_list(each, 'UBIGINT')}) AS w{w}" for w, each in enumerate(mine)]
        code = f"unnest({_DIALECT.call('range', str(cells[attribute]))}) AS code"
        tables.append(ConstantTable(name, Sql(f"SELECT {code}, {', '.join(columns)}")))
    return tables


def _sets(lookups: Lookups, left: dict[int, Sql]) -> Sql:
    """The words that each group leaves, as lists in the order of keys."""
    lists = []
    for number, group in enumerate(lookups.groups):
        words = (" & ".join(f"a{a}.w{word}" for a in group) for word in range(lookups.words))
        fields = ", ".join(f"'w{number}': {word}" for number, word in enumerate(words))
        order = ", ".join(f"a{a}.code ASC" for a in group)
        tables = ", ".join(f"{left[a]} AS a{a}" for a in group)
        listed = _DIALECT.call("list", f"{{{fields}}} ORDER BY {order}")
        lists.append(f"(SELECT {listed} FROM {tables}) AS sets_{number}")
    return Sql(f"SELECT {', '.join(lists)}")


def _listed_votes(
    lookups: Lookups, forest: ForestContent, keys: Mapping[Group, Sql], words: Sequence[Sql]
) -> list[tuple[int, Sql, Integers]]:
    """Lists of votes `[place - 1, class]`: the first tree in each, the place of a row, the list."""
    found = [
        (trees[0], keys[group], votes_of_key(forest, trees, group))
        for group, trees in lookups.by_key.items()
    ]
    for bundle in lookups.bundles:
        modulus = bundle.modulus
        places = (bundle.states() % np.uint64(modulus)).astype(np.int64)
        votes = np.zeros((modulus, len(forest.domain.classes)), dtype=np.int64)
        for label, of_class in enumerate(votes.T):
            of_class[places] = bundle.votes(forest.trees, label)
        place = f"1 + CAST(({words[bundle.word]} & {bundle.mask}) % {modulus} AS BIGINT)"
        found.append((bundle.parts[0].tree, Sql(place), votes))
    return found


def _looked_up(
    lookups: Lookups,
    forest: ForestContent,
    listed: Sequence[tuple[int, Sql, Integers]],
    emitted: int,
    name: Callable[[str], Sql],
) -> tuple[list[Layer], Terms]:
    """The layer that looks up the votes, and the terms. The parts of a tree are added up."""
    helpers, lists, by_tree = [], [], dict[int, list[list[Sql]]]()
    for number, (tree, place, votes) in enumerate(listed):
        for label, of_class in enumerate(votes.T[:emitted]):
            column = f"votes_{number}_{label}"
            lists.append(f"{_list(of_class, 'BIGINT')} AS {column}")
            helpers.append(Helper("votes", Sql(f"s.{column}[{place}]"), name(column)))
            parts = by_tree.setdefault(tree, [[] for _ in range(emitted)])
            parts[label].append(Sql(f"t.{helpers[-1].column}"))
    terms: Terms = [
        [combined(_DIALECT, of_tree[label], Voting.SUM) for of_tree in by_tree.values()]
        for label in range(emitted)
    ]
    if lookups.constant:
        alone = [forest.trees[number] for number in lookups.constant]
        votes = combine(forest, [tree.votes[tree.leaves[0]] for tree in alone])
        for term, vote in zip(terms, votes, strict=False):
            term.append(Sql(int(vote)))
    table = ConstantTable(name("all_votes"), Sql(f"SELECT {', '.join(lists)}"))
    return [Layer(name("leaves"), helpers, tables=[table])] if helpers else [], terms


def combine(forest: ForestContent, votes: Sequence[Integers]) -> Integers:
    """The votes of several trees, elementwise."""
    combined_votes: Integers = forest.voting.combine.reduce(votes)
    return combined_votes


def _list(values: NDArray[Any], kind: str) -> str:
    """A list of constants, from one literal: DuckDB reads it faster than an expression."""
    return f"CAST('[{','.join(map(str, values.tolist()))}]' AS {kind}[])"


def key(group: Group, cells: Sequence[int], codes: Mapping[int, Sql]) -> Sql:
    """A row's joint code of a group, from 1 as lists count; the last attribute varies fastest."""
    strides = [prod(cells[a] for a in group[i + 1 :]) for i in range(len(group))]
    terms = [
        f"CAST({codes[a]} AS BIGINT)" + (f" * {stride}" if stride > 1 else "")
        for a, stride in zip(group, strides, strict=True)
    ]
    return Sql(f"1 + {' + '.join(terms)}")


def votes_of_key(forest: ForestContent, trees: Sequence[int], group: Group) -> Integers:
    """`votes[code, class]` by the joint code of a group, of trees that split by no other."""
    cells = forest.domain.cells
    grid = np.indices([cells[a] for a in group]).reshape(len(group), -1)
    place = {attribute: number for number, attribute in enumerate(group)}
    places = [place.get(attribute, -1) for attribute in range(len(cells))]
    found = [forest.trees[tree].renumbered(places) for tree in trees]
    return combine(forest, [tree.votes[tree.find(grid.T)] for tree in found])


def leaves_left(tree: Tree, cells: Sequence[int]) -> Mask:
    """Whether each leaf is left by each code of each attribute, `[leaf, code]`.

    Leaves are in the order of `tree.leaves`. For the codes of a row, one leaf is left by all.
    """
    attribute = np.repeat(np.arange(len(cells)), cells)
    code = np.concatenate([np.arange(size) for size in cells])
    left = np.ones((tree.nodes, len(code)), dtype=np.bool_)
    for children, above in tree.descents(cells):
        branch = branch_of(tree.kind[above, None], tree.cell[above, None], code)
        goes = branch == (children - tree.first[above])[:, None]
        left[children] = left[above] & (goes | (tree.attribute[above, None] != attribute))
    return left[tree.leaves]
