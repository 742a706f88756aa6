"""The published value: a forest as arrays of nodes, and its JSON.

Everything here is released: noisy counts, splits drawn under the budget, integer votes. The arrays
of a tree are in breadth-first order, the root first, the children of a node side by side.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.errors import DpforestError

if TYPE_CHECKING:
    import duckdb

Array = NDArray[np.int64]
Kind = Literal[0, 1, 2, 3]
Voting = Literal["sum", "surest"]
Link = Literal["shares", "softmax"]  # p ∝ votes, or p ∝ e^(votes / SCALE)

LEAF: Kind = 0
MULTIWAY: Kind = 1  # a child per cell of the attribute
THRESHOLD: Kind = 2  # cells up to `cell` go to the first child, the others to the second
ONE: Kind = 3  # the cell `cell` goes to the first child, the others to the second

SCHEMA = "dpforest/1"
SCALE = 1_000_000  # the votes of a leaf are shares, or log-odds, in units of one millionth
MAX_BYTES = 64 * 2**20
MAX_NODES = 1_000_000
MAX_DEPTH = 100


def branch_of(kind: Array, cell: Array, code: Array) -> Array:
    """The branch, from 0, that a code takes at a split; elementwise."""
    binary = np.where(kind == THRESHOLD, code > cell, code != cell).astype(np.int64)
    return np.where(kind == MULTIWAY, code, binary)


@dataclass(frozen=True)
class Tree:
    """One tree, as parallel arrays over its nodes.

    `kind`, `attribute`, `cell`, `first` [node]: the split, `first` the number of the first child;
    -1 for attribute and first of a leaf. `counts` [node, class]: noisy class counts, where the
    recipe has them. `votes` [node, class]: integer votes of the leaves, zero elsewhere. `noise`
    [node]: the standard deviation of the noise in each of a node's counts, which is public; NaN
    where a node's counts were not asked for, None where no node's were, or it is not known.
    """

    kind: Array
    attribute: Array
    cell: Array
    first: Array
    counts: Array | None
    votes: Array
    noise: NDArray[np.float64] | None = None

    @property
    def nodes(self) -> int:
        return len(self.kind)

    @property
    def leaves(self) -> Array:
        return np.flatnonzero(self.kind == LEAF)

    def children(self, node: int, cells: Sequence[int]) -> range:
        """The node numbers of a node's children; `cells` is the domain's."""
        if self.kind[node] == LEAF:
            return range(0)
        arity = cells[self.attribute[node]] if self.kind[node] == MULTIWAY else 2
        return range(int(self.first[node]), int(self.first[node]) + arity)

    def below(self, nodes: Array, cells: Sequence[int]) -> tuple[Array, Array]:
        """The children of nodes, and the parent of each."""
        inner = nodes[self.kind[nodes] != LEAF]
        arity = np.where(self.kind[inner] == MULTIWAY, np.array(cells)[self.attribute[inner]], 2)
        branch = np.arange(arity.sum()) - np.repeat(arity.cumsum() - arity, arity)
        return np.repeat(self.first[inner], arity) + branch, np.repeat(inner, arity)

    def parents(self, cells: Sequence[int]) -> Array:
        """The parent of each node, -1 for the root."""
        parent = np.full(self.nodes, -1, dtype=np.int64)
        children, above = self.below(np.arange(self.nodes), cells)
        parent[children] = above
        return parent

    def descents(self, cells: Sequence[int]) -> list[tuple[Array, Array]]:
        """The nodes of each depth from one on, and the parent of each."""
        found = [self.below(np.zeros(1, dtype=np.int64), cells)]
        while len(found[-1][0]):
            found.append(self.below(found[-1][0], cells))
        return found[:-1]

    def depth(self, cells: Sequence[int]) -> int:
        """The number of splits on the longest path."""
        return len(self.descents(cells))

    def find(self, codes: Array) -> Array:
        """The leaf of each row of `codes[row, attribute]`."""
        node = np.zeros(len(codes), dtype=np.int64)
        rows = np.arange(len(codes))
        while len(rows):
            rows = rows[self.kind[node[rows]] != LEAF]
            at = node[rows]
            code = codes[rows, self.attribute[at]]
            node[rows] = self.first[at] + branch_of(self.kind[at], self.cell[at], code)
        return node

    def cut(self, closed: NDArray[np.bool_], cells: Sequence[int]) -> Tree:
        """The tree with the `closed` nodes made leaves, what lies below them left out."""
        keep = np.zeros(self.nodes, dtype=np.bool_)
        keep[0] = True
        for node in range(self.nodes):
            if keep[node] and not closed[node]:
                keep[list(self.children(node, cells))] = True
        number = np.cumsum(keep) - 1
        leaf = closed | (self.kind == LEAF)
        first = np.where(leaf, -1, number[np.clip(self.first, 0, None)])
        return Tree(
            kind=np.where(leaf, LEAF, self.kind)[keep],
            attribute=np.where(leaf, -1, self.attribute)[keep],
            cell=np.where(leaf, 0, self.cell)[keep],
            first=first[keep],
            counts=None if self.counts is None else self.counts[keep],
            votes=self.votes[keep],
            noise=None if self.noise is None else self.noise[keep],
        )


@dataclass(frozen=True)
class Guarantee:
    """What a forest promises about the rows it was trained on, in plain text for people.

    `epsilon` and `delta` are exact decimals; `reasons` say why `private` is false.
    """

    epsilon: str
    delta: str = "0"
    private: bool = True
    reasons: tuple[str, ...] = ()
    unit: str = "row"
    rows_per_unit: int = 1
    neighbours: str = "add-remove"
    noise: str = "opendp"
    plan: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.private:
            return "NOT PRIVATE: " + " ".join(self.reasons)
        rows = "1 row" if self.rows_per_unit == 1 else f"{self.rows_per_unit} rows"
        unit = "row" if self.unit == "row" else f'"{self.unit}" (at most {rows})'
        return f"ε = {self.epsilon}, δ = {self.delta}, per {unit}, {self.neighbours} neighbours"


@dataclass(frozen=True)
class Forest:
    """A trained forest: public domain, trees, guarantee. Free to publish if `private`.

    `voting`: votes of a class are the sum of all trees' ("sum"), or those of the tree that gives it
    most ("surest").
    """

    name: str
    recipe: str
    guarantee: Guarantee
    domain: Domain
    trees: tuple[Tree, ...]
    link: Link = "shares"
    table: str = ""
    version: str = ""
    voting: Voting = "sum"

    @property
    def private(self) -> bool:
        return self.guarantee.private

    @cached_property
    def nodes(self) -> int:
        return sum(tree.nodes for tree in self.trees)

    @cached_property
    def depth(self) -> int:
        return max(tree.depth(self.domain.cells) for tree in self.trees)

    def votes(self, rows: Iterable[Mapping[str, object]]) -> Array:
        """Votes of all trees `[row, class]` of raw rows, by Python's own way through them."""
        codes = np.array(
            [[a.code(row[a.column]) for a in self.domain.attributes] for row in rows],
            dtype=np.int64,
        ).reshape(-1, len(self.domain.attributes))
        combine = np.add if self.voting == "sum" else np.maximum
        total = np.zeros((len(codes), len(self.domain.classes)), dtype=np.int64)
        for tree in self.trees:
            total = combine(total, tree.votes[tree.find(codes)])
        return total

    def probabilities(self, votes: Array) -> NDArray[np.float64]:
        """Summed votes `[row, class]` as class probabilities of the same shape."""
        if self.link == "shares":
            shares: NDArray[np.float64] = votes / votes.sum(axis=1, keepdims=True)
            return shares
        odds = np.exp((votes - votes.max(axis=1, keepdims=True)) / SCALE)
        softmax: NDArray[np.float64] = odds / odds.sum(axis=1, keepdims=True)
        return softmax

    def predict(
        self, con: duckdb.DuckDBPyConnection, table: str, *, prefix: str = ""
    ) -> duckdb.DuckDBPyRelation:
        """The rows of a table with `prediction` and `p_<class>`, as a DuckDB relation."""
        from dpforest_duckdb.engine.duckdb import DuckDBEngine
        from dpforest_duckdb.scoring import score_sql

        scored = DuckDBEngine(con).scored(table)
        return con.sql(score_sql(self, scored, prefix=prefix, fast=True))

    def to_sql(
        self,
        table: str | None = None,
        *,
        form: str = "select",
        prefix: str = "",
        fast: bool = False,
    ) -> str:
        """SQL that scores a table: a select, or the statement that makes a view, table or macro.

        `fast` gives the same by bit sets, sooner where trees are many, for DuckDB alone.
        """
        from dpforest_duckdb.scoring import publish_sql

        return publish_sql(self, table or self.table, form=form, prefix=prefix, fast=fast)

    def rules(self) -> list[dict[str, Any]]:
        """Every root-to-node path as a row (see `dpforest_duckdb.rules`)."""
        from dpforest_duckdb.rules import rules

        return rules(self)

    def save(self, path: str | Path) -> None:
        """Write the forest as JSON, whole or not at all."""
        from dpforest_duckdb.store import write_file

        write_file(path, self.to_json())

    def to_json(self) -> str:
        """The forest as JSON, columns of integers per tree; `from_json` reads it back."""
        content = {
            "schema": SCHEMA,
            "name": self.name,
            "recipe": self.recipe,
            "table": self.table,
            "version": self.version,
            "voting": self.voting,
            "guarantee": asdict(self.guarantee),
            "link": self.link,
            "domain": _domain_json(self.domain),
            "trees": [_tree_json(tree) for tree in self.trees],
        }
        return json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)

    def named(self, name: str) -> Forest:
        return replace(self, name=name)

    @staticmethod
    def from_json(text: str) -> Forest:
        """Read a forest, checking everything: a hostile file must not reach SQL.

        Raises `DpforestError` for a damaged, newer or oversized model.
        """
        if len(text) > MAX_BYTES:
            raise DpforestError("The model is larger than 64 MiB: it is not one of ours.")
        try:
            content = json.loads(text, parse_constant=_no_constant)
            schema = content["schema"]
        except (ValueError, TypeError, KeyError, RecursionError):
            raise DpforestError("The model is damaged: it is not the JSON of a forest.") from None
        if schema != SCHEMA:
            raise DpforestError(
                f"The model has a schema other than {SCHEMA}: update dpforest-duckdb to read it."
            )
        try:
            return _forest(content)
        except DpforestError as error:
            raise DpforestError(f"The model is damaged: {error}") from None
        except (ValueError, TypeError, KeyError, IndexError, OverflowError, AttributeError):
            raise DpforestError("The model is damaged: a field is missing or wrong.") from None


def load_forest(path: str | Path) -> Forest:
    """Read a forest from a JSON file. Raises `DpforestError` with one sentence."""
    try:
        file = Path(path)
        if file.stat().st_size > MAX_BYTES:
            raise DpforestError(f"The model file {path} is larger than 64 MiB: it is not ours.")
        return Forest.from_json(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        raise DpforestError(f"The model file {path} cannot be read: check --model.") from None


def _no_constant(name: str) -> None:
    raise ValueError(name)


def _tree_json(tree: Tree) -> dict[str, Any]:
    return {
        "kind": tree.kind.tolist(),
        "attribute": tree.attribute.tolist(),
        "cell": tree.cell.tolist(),
        "first": tree.first.tolist(),
        "counts": None if tree.counts is None else tree.counts.tolist(),
        "votes": tree.votes[tree.leaves].tolist(),
        "noise": None if tree.noise is None else [_known(value) for value in tree.noise],
    }


def _known(value: float) -> float | None:
    return None if math.isnan(value) else round(float(value), 3)


def _domain_json(domain: Domain) -> dict[str, Any]:
    return {
        "target": domain.target,
        "target_type": domain.target_type,
        "classes": list(domain.classes),
        "attributes": [
            {
                "name": a.name,
                "kind": a.kind,
                "type": a.type,
                "nullable": a.nullable,
                "ordered": a.ordered,
                "values": list(a.values),
                "edges": list(a.edges),
                **({"of": a.of, "taxonomy": a.taxonomy} if a.of else {}),
            }
            for a in domain.attributes
        ],
    }


def _text(value: object) -> str:
    if not isinstance(value, str) or len(value) > 100_000:
        raise ValueError("not text")
    return value


def _texts(values: object) -> tuple[str, ...]:
    if not isinstance(values, list):
        raise ValueError("not a list")
    return tuple(_text(value) for value in values)


def _bool(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("not true or false")
    return value


def _integers(values: object, low: int, high: int, shape: tuple[int, ...]) -> Array:
    """An integer array of a shape with entries in [low, high]; anything else is refused."""
    array = np.array(values)
    if array.shape != shape or array.dtype != np.int64:
        raise ValueError("not integers of the right shape")
    if array.size and not (low <= array.min() and array.max() <= high):
        raise ValueError("out of range")
    return array


def _attribute(content: Mapping[str, Any]) -> Attribute:
    edges = content["edges"]
    if any(isinstance(e, bool) or not isinstance(e, int | float) for e in edges):
        raise ValueError("edges must be numbers")
    kind = content["kind"]
    if kind not in ("categorical", "numeric"):
        raise ValueError("unknown kind")
    declared = Attribute(
        name=_text(content["name"]),
        kind=kind,
        values=_texts(content["values"]),
        ordered=_bool(content["ordered"]),
        edges=tuple(edges),
        nullable=_bool(content["nullable"]),
        type=_text(content["type"]),
        of=_text(content.get("of", "")),
        taxonomy=tuple((_text(g), _texts(held)) for g, held in content.get("taxonomy", [])),
    )
    if declared.of and [group for group, _ in declared.taxonomy] != list(declared.values):
        raise ValueError("groups do not fit their names")
    # binding again makes sure that categories and edges are of the type that they claim
    bound = declared.bound(declared.type) if edges or kind == "categorical" else declared
    if bound != replace(declared, type=bound.type) or not bound.family:
        raise ValueError("categories or edges do not fit the type")
    return bound


def _forest(content: Mapping[str, Any]) -> Forest:
    given = content["domain"]
    domain = Domain(
        attributes=tuple(_attribute(a) for a in given["attributes"]),
        target=_text(given["target"]),
        target_type=_text(given["target_type"]),
        classes=_texts(given["classes"]),
    )
    labels = Attribute(domain.target, "categorical", domain.classes).bound(domain.target_type)
    if labels.values != domain.classes:
        raise ValueError("classes do not fit the type")
    claimed = content["guarantee"]
    guarantee = Guarantee(
        epsilon=_text(claimed["epsilon"]),
        delta=_text(claimed["delta"]),
        private=_bool(claimed["private"]),
        reasons=_texts(claimed["reasons"]),
        unit=_text(claimed["unit"]),
        rows_per_unit=int(_integers(claimed["rows_per_unit"], 1, 2**62, ())),
        neighbours=_text(claimed["neighbours"]),
        noise=_text(claimed["noise"]),
        plan=_texts(claimed["plan"]),
    )
    link = content.get("link", "shares")
    if link not in get_args(Link):
        raise ValueError("unknown link")
    if not content["trees"]:
        raise ValueError("no tree")
    voting = content["voting"]
    if voting not in get_args(Voting):
        raise ValueError("unknown voting")
    return Forest(
        name=_text(content["name"]),
        recipe=_text(content["recipe"]),
        guarantee=guarantee,
        domain=domain,
        trees=tuple(_tree(tree, domain, link) for tree in content["trees"]),
        link=link,
        table=_text(content["table"]),
        version=_text(content["version"]),
        voting=voting,
    )


def _tree(content: Mapping[str, Any], domain: Domain, link: Link) -> Tree:
    nodes, classes = len(content["kind"]), len(domain.classes)
    if not 1 <= nodes <= MAX_NODES:
        raise ValueError("too many nodes")
    kind = _integers(content["kind"], LEAF, ONE, (nodes,))
    leaves = int((kind == LEAF).sum())
    counts = content["counts"]
    votes = np.zeros((nodes, classes), dtype=np.int64)
    votes[kind == LEAF] = _integers(content["votes"], 0, 2**31, (leaves, classes))
    tree = Tree(
        kind=kind,
        attribute=_integers(content["attribute"], -1, len(domain.attributes) - 1, (nodes,)),
        cell=_integers(content["cell"], 0, max(domain.cells), (nodes,)),
        first=_integers(content["first"], -1, nodes, (nodes,)),
        counts=None if counts is None else _integers(counts, -(2**62), 2**62, (nodes, classes)),
        votes=votes,
        noise=_noise(content.get("noise"), nodes),
    )
    if link == "shares" and (tree.votes[tree.leaves].sum(axis=1) < 1).any():
        raise ValueError("a leaf without votes")
    _check_shape(tree, domain)
    return tree


def _noise(values: object, nodes: int) -> NDArray[np.float64] | None:
    """Standard deviations `[node]`, NaN for null, or none at all."""
    if values is None:
        return None
    if not isinstance(values, list) or len(values) != nodes:
        raise ValueError("not one for each node")
    known = [value for value in values if value is not None]
    if any(type(value) not in (int, float) or not 0 <= value < math.inf for value in known):
        raise ValueError("not standard deviations")
    return np.array([math.nan if value is None else float(value) for value in values])


def _check_shape(tree: Tree, domain: Domain) -> None:
    """One root, every other node the child of exactly one earlier node, bounded depth."""
    parent = np.full(tree.nodes, -1, dtype=np.int64)
    depth = np.zeros(tree.nodes, dtype=np.int64)
    for node in range(tree.nodes):
        if tree.kind[node] == LEAF:
            continue
        if tree.attribute[node] < 0:
            raise ValueError("a split without attribute")
        attribute = domain.attributes[tree.attribute[node]]
        last = attribute.cells - 1 if tree.kind[node] == ONE else attribute.proper - 2
        if tree.kind[node] != MULTIWAY and tree.cell[node] > last:
            raise ValueError("a cut outside the attribute")
        children = tree.children(node, domain.cells)
        if children.start <= node or children.stop > tree.nodes:
            raise ValueError("a child out of place")
        if (parent[list(children)] >= 0).any():
            raise ValueError("a node with two parents")
        parent[list(children)] = node
        depth[list(children)] = depth[node] + 1
    if (parent[1:] < 0).any() or depth.max() > MAX_DEPTH:
        raise ValueError("a node without parent, or too deep")
