"""A forest as SQL: one SELECT of nested CASEs over integer votes.

Each tree is one CASE. Where one class's votes tell everything (two classes whose votes sum to a
constant), the CASE gives them; else it gives the number of a leaf, and a list per class the votes
of the leaves. Trees are summed, or the surest is taken, in balanced pairs (an expression may nest a
thousand deep in DuckDB, no deeper), and one division makes shares of the sums. The fast form finds
the leaves by bit sets instead (`dpforest_duckdb.model.quickscorer`) and gives the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Literal, get_args

import duckdb
import numpy as np
from numpy.typing import NDArray

from dpforest_duckdb.domain import Attribute, Domain, type_family
from dpforest_duckdb.engine.base import Scored
from dpforest_duckdb.engine.dialect import DuckDBDialect, split_name
from dpforest_duckdb.errors import DpforestError, UsageError
from dpforest_duckdb.model.content import ForestContent
from dpforest_duckdb.model.quickscorer import groups, groups_of, key, leaves_left, votes_of_key
from dpforest_duckdb.sql import Sql, render
from dpforest_duckdb.tree import MULTIWAY, SCALE, THRESHOLD, Tree, Voting

Form = Literal["select", "view", "table", "macro"]

_DIALECT = DuckDBDialect()
_NOTHING = Sql("")
_WORD = Sql("UBIGINT")  # that holds a bit set
_BREAK = "\x00"  # between lines to be indented: no name or value holds it, as they may a newline


def score_sql(
    forest: ForestContent,
    table: Scored,
    *,
    prefix: str = "",
    fast: bool = False,
    opening: Sql = _NOTHING,
    closing: Sql = _NOTHING,
) -> str:
    """The SELECT that adds `prediction` and one `p_<class>` per class to every row of a table.

    `fast` is for DuckDB alone: other databases have no such lists. `opening` and `closing` make
    another statement around it. Raises `DpforestError` for a missing
    column, a type that does not fit, or a column name that is taken.
    """
    domain, names = forest.domain, share_names(forest, prefix)
    attributes = [_attribute(a, table) for a in domain.attributes]
    columns = [_DIALECT.ident("t", _column(a, table)) for a in domain.attributes]
    _refuse_taken([f"{prefix}prediction", *names], table)
    helper = _free_name("dpforest_votes", table)
    whole = _whole(forest)
    # where votes sum to a constant, the last class has what the others leave
    emitted = len(names) - 1 if whole else len(names)
    helpers = [_free_name(f"dpforest_{kind}", table) for kind in ("key", "leaf")]
    layers, terms = _written(forest, attributes, columns, emitted, fast, *helpers)
    scores = [
        SimpleNamespace(
            label=label,
            votes=_combined(terms[number], forest.voting),
            column=_DIALECT.ident(f"{helper}_{number}"),
        )
        for number, label in enumerate(domain.classes[:emitted])
    ]
    votes = [Sql(f"s.{score.column}") for score in scores]
    if whole:
        votes.append(Sql(f"({' - '.join([str(whole), *votes])})"))
    trees = f"{len(forest.trees)} tree{'s' if len(forest.trees) > 1 else ''}"
    sql = render(
        "score",
        version=forest.version,
        model=forest.name,
        recipe=f"{forest.recipe}, {trees}, {forest.nodes} nodes, {forest.depth} deep",
        guarantee=str(forest.guarantee),
        private=forest.private,
        opening=opening,
        closing=closing,
        cte=_DIALECT.ident(_free_name("dpforest_scored", table)),
        layers=[
            SimpleNamespace(
                cte=_DIALECT.ident(_free_name(f"dpforest_helpers_{number}", table)), helpers=layer
            )
            for number, layer in enumerate(layers)
        ],
        scores=scores,
        source=table.name,
        cast=_cast(domain.target_type),
        prediction=_prediction(forest, votes),
        prediction_column=_DIALECT.ident(f"{prefix}prediction"),
        shares=[
            SimpleNamespace(share=share, column=_DIALECT.ident(name))
            for share, name in zip(_shares(forest, votes, whole), names, strict=True)
        ],
    )
    return check(sql, select=not opening)


def publish_sql(
    forest: ForestContent,
    table: str | None = None,
    *,
    form: str = "select",
    name: str | None = None,
    prefix: str = "",
    scored: Scored | None = None,
    replace: bool = False,
    fast: bool = False,
) -> str:
    """A forest as a select, or as the statement that makes a view, a table or a table macro of it.

    `table` is the table to score (any columns; `scored` says what is known of it), `name` the view,
    table or macro to make, in place of one of that name with `replace`. A macro takes the table's
    name as its argument instead.
    """
    if form not in get_args(Form):
        raise UsageError(f"--as must be one of {', '.join(get_args(Form))}.")
    made = _DIALECT.ident(*(split_name(name) if name else [f"{forest.name}_scored"]))
    create = "CREATE OR REPLACE" if replace else "CREATE"
    if form == "macro":
        source = Scored(Sql('query_table("table_name")'), {})
        opening, closing = Sql(f'{create} MACRO {made}("table_name") AS TABLE (\n'), Sql(")")
    else:
        if scored is None and not table:
            raise UsageError("Name the table to score with --from.")
        source = scored or Scored(_DIALECT.ident(*split_name(str(table))), {})
        opening = _NOTHING if form == "select" else Sql(f"{create} {form.upper()} {made} AS\n")
        closing = _NOTHING
    text = score_sql(forest, source, prefix=prefix, fast=fast, opening=opening, closing=closing)
    return text.rstrip() + ";\n"


def share_names(forest: ForestContent, prefix: str = "") -> list[str]:
    """The column of each class: `p_<class>`, numbered where two differ by case alone."""
    names: list[str] = []
    for label in forest.domain.classes:
        name, number = f"{prefix}p_{label}", 1
        while name.casefold() in {other.casefold() for other in names}:
            number += 1
            name = f"{prefix}p_{label}_{number}"
        names.append(name)
    return names


def labels(trees: Sequence[Tree], domain: Domain) -> list[Sql]:
    """The class number that each tree votes for, as an expression on a row `t` of its table."""
    columns = [_DIALECT.ident("t", attribute.column) for attribute in domain.attributes]
    return [_case(tree, domain.attributes, columns, tree.votes.argmax(axis=1)) for tree in trees]


def check(sql: str, *, select: bool = True) -> str:
    """The same SQL, after DuckDB has read it as exactly one statement (a SELECT if `select`)."""
    statements = duckdb.extract_statements(sql)
    if len(statements) != 1:
        raise AssertionError("scoring SQL must be one statement")
    if select and statements[0].type != duckdb.StatementType.SELECT:
        raise AssertionError("scoring SQL must be a SELECT")
    return sql


def _column(attribute: Attribute, table: Scored) -> str:
    """The name of an attribute's column as the scored table spells it."""
    if not table.columns:
        return attribute.column
    found = {name.casefold(): name for name in table.columns}
    if attribute.column.casefold() not in found:
        raise DpforestError(
            f'The table has no column "{attribute.column}", which the model reads: check --table.'
        )
    return found[attribute.column.casefold()]


def _attribute(attribute: Attribute, table: Scored) -> Attribute:
    if not table.columns:
        return attribute
    return attribute.rebound(table.columns[_column(attribute, table)])


def _refuse_taken(names: Sequence[str], table: Scored) -> None:
    taken = {column.casefold() for column in table.columns}
    for name in names:
        if name.casefold() in taken:
            raise DpforestError(
                f'The table has a column "{name}" already: pass --prefix to name ours differently.'
            )


def _free_name(name: str, table: Scored) -> str:
    """A name that neither a column of the table nor the table itself has."""
    lower = {column.casefold() for column in table.columns}
    while name in table.name.casefold() or any(column.startswith(name) for column in lower):
        name += "_"
    return name


@dataclass(frozen=True)
class Helper:
    """A column that helps to score: what it tells, as what expression, under which name."""

    told: str
    value: Sql
    column: Sql


Layers = list[list[Helper]]  # each in terms of a row `t` that has the columns of those before
Terms = list[list[Sql]]  # [class][tree] votes, in terms of a row `t` with all helpers


def _written(
    forest: ForestContent,
    attributes: Sequence[Attribute],
    columns: Sequence[Sql],
    emitted: int,
    fast: bool,
    key_name: str,
    leaf_name: str,
) -> tuple[Layers, Terms]:
    """Every tree as a CASE: of votes for one class, of leaves for several; or by bit sets."""
    cells, leaves = forest.domain.cells, list[Helper]()
    terms: Terms = [[] for _ in range(emitted)]
    found = groups(forest.trees, cells) if fast else []
    looked = [groups_of(tree, found) for tree in forest.trees]
    codes = [_DIALECT.code(a, column) for a, column in zip(attributes, columns, strict=True)]
    keys = {
        group: Helper(
            "key of " + ", ".join(attributes[a].name for a in group),
            key(group, cells, codes),
            _DIALECT.ident(f"{key_name}_{number}"),
        )
        for number, group in enumerate(found)
        if any(group in mine for mine in looked)
    }
    for number, (tree, mine) in enumerate(zip(forest.trees, looked, strict=True)):
        if len(mine) == 1:
            for votes, own in zip(votes_of_key(tree, mine[0], cells).T, terms, strict=False):
                own.append(_one_of(votes, keys[mine[0]].column))
            continue
        if emitted == 1 and not mine:
            terms[0].append(_case(tree, attributes, columns, tree.votes[:, 0]))
            continue
        column = _DIALECT.ident(f"{leaf_name}_{number}")
        if mine:
            votes_of_leaf = tree.votes[tree.leaves]
            left = [_one_of(leaves_left(tree, g, cells), keys[g].column, _WORD) for g in mine]
            value = Sql(f"1 + bit_count(({' & '.join(left)}) - 1)")
        else:
            votes_of_leaf, leaf = np.unique(tree.votes, axis=0, return_inverse=True)
            value = _case(tree, attributes, columns, leaf.reshape(-1) + 1)  # lists count from 1
        leaves.append(Helper(f"leaf of tree {number + 1}", value, column))
        for votes, own in zip(votes_of_leaf.T, terms, strict=False):
            own.append(_one_of(votes, column))
    return [layer for layer in (list(keys.values()), leaves) if layer], terms


def _one_of(values: NDArray[Any], column: Sql, kind: Sql = _NOTHING) -> Sql:
    """One of a constant list of a type, by its number from 1 in a helper column."""
    constants = f"[{', '.join(map(str, values.tolist()))}]"
    return Sql(f"{f'CAST({constants} AS {kind}[])' if kind else constants}[t.{column}]")


def _case(
    tree: Tree, attributes: Sequence[Attribute], columns: Sequence[Sql], outcome: NDArray[np.int64]
) -> Sql:
    """One tree as nested CASE that gives `outcome[leaf]`; branches that give the same are one.

    What follows an ELSE are arms of the same CASE: every CASE costs DuckDB vectors of its own.
    """
    cells = [attribute.cells for attribute in attributes]
    written: dict[int, str] = {}
    arms_of: dict[int, list[str]] = {}
    for node in reversed(range(tree.nodes)):
        children = list(tree.children(node, cells))
        if not children:
            written[node] = str(int(outcome[node]))
            continue
        below = [written.pop(child) for child in children]
        inner = {
            own: arms_of.pop(child)
            for child, own in zip(children, below, strict=True)
            if child in arms_of
        }
        if len(set(below)) == 1:
            written[node] = below[0]
            if inner:
                arms_of[node] = inner[below[0]]
            continue
        a = int(tree.attribute[node])
        *arms, rest = _arms(
            attributes[a], columns[a], int(tree.kind[node]), int(tree.cell[node]), below
        )
        arms += inner.get(rest.removeprefix("ELSE "), [rest])
        arms_of[node] = arms
        lines = ["CASE", *(f"  {arm.replace(_BREAK, f'{_BREAK}  ')}" for arm in arms), "END"]
        written[node] = _BREAK.join(lines)
    return Sql(written[0].replace(_BREAK, "\n    "))


def _arms(
    attribute: Attribute, column: Sql, kind: int, cell: int, below: Sequence[str]
) -> list[str]:
    """The WHEN and ELSE lines of a split, whose branches lead to `below`."""
    if kind != MULTIWAY:
        tested = _DIALECT.at_most if kind == THRESHOLD else _DIALECT.is_cell
        test: str = tested(attribute, column, cell)
        return [f"WHEN {test} THEN {below[0]}", f"ELSE {below[1]}"]
    if attribute.kind == "numeric":
        arms = [f"WHEN {_DIALECT.missing(attribute, column)} THEN {below[attribute.null]}"]
        for bin_ in range(attribute.proper - 1):
            if below[bin_] == below[bin_ + 1]:
                continue
            test = _DIALECT.at_most(attribute, column, bin_)
            arms.append(f"WHEN {test} THEN {below[bin_]}")
        return [*arms, f"ELSE {below[attribute.proper - 1]}"]
    rest = below[attribute.other]
    alike: dict[str, list[int]] = {}
    for value in range(attribute.proper):
        if below[value] != rest:
            alike.setdefault(below[value], []).append(value)
    arms = []
    if attribute.null != attribute.other and below[attribute.null] != rest:
        arms.append(f"WHEN {column} IS NULL THEN {below[attribute.null]}")
    for outcome, values in alike.items():
        test = _DIALECT.is_any(attribute, column, values)
        arms.append(f"WHEN {test} THEN {outcome}")
    return [*arms, f"ELSE {rest}"]


def _combined(terms: Sequence[Sql], voting: Voting) -> Sql:
    """The sum of trees, or the largest of them, as a balanced expression."""
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    left, right = _combined(terms[:half], voting), _combined(terms[half:], voting)
    if voting == "surest":
        return Sql(f"greatest({left},\n    {right})")
    return Sql(f"({left}\n    + {right})")


def _shares(forest: ForestContent, votes: Sequence[Sql], whole: int) -> list[Sql]:
    """The probability of each class: its part of the votes, or their softmax."""
    if forest.link == "shares":
        total = whole or f"({' + '.join(votes)})"
        return [Sql(f"CAST({vote} AS DOUBLE) / {total}") for vote in votes]
    if len(votes) == 2:
        second = f"1.0 / (1.0 + exp(({votes[0]} - {votes[1]}) / {SCALE}.0))"
        return [Sql(f"1.0 - {second}"), Sql(second)]
    shares = []
    for own in votes:
        odds = [f"exp(({other} - {own}) / {SCALE}.0)" for other in votes if other is not own]
        shares.append(Sql(f"1.0 / (1.0 + {' + '.join(odds)})"))
    return shares


def _prediction(forest: ForestContent, votes: Sequence[Sql]) -> Sql:
    """The class with most votes; the first of the public class list where votes are equal."""
    family = type_family(forest.domain.target_type)
    labels = [_DIALECT.literal(label, family) for label in forest.domain.classes]
    if len(votes) == 2:
        test = f"{votes[0]} >= {votes[1]}"
        return Sql(f"CASE WHEN {test} THEN {labels[0]} ELSE {labels[1]} END")
    best = f"greatest({', '.join(votes)})"
    whens = "".join(
        f"\n    WHEN {vote} = {best} THEN {label}"
        for vote, label in zip(votes[:-1], labels[:-1], strict=True)
    )
    return Sql(f"CASE{whens}\n    ELSE {labels[-1]}\n  END")


def _cast(target_type: str) -> Sql | None:
    """The type that a prediction is cast to; None where a literal has it already."""
    return None if target_type in ("VARCHAR", "BOOLEAN") else _DIALECT.type(target_type)


def _whole(forest: ForestContent) -> int:
    """All votes of a row, if they are the same number at every leaf of a tree; else 0."""
    if forest.voting != "sum":
        return 0
    sums = [np.unique(tree.votes[tree.leaves].sum(axis=1)) for tree in forest.trees]
    return sum(int(each[0]) for each in sums) if all(len(each) == 1 for each in sums) else 0
