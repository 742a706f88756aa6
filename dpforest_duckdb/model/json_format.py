"""A forest as JSON text and back.

Reading checks everything, so that a hostile file never reaches SQL.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import date
from typing import Any, TypeVar

import numpy as np

from dpforest_duckdb.arrays import Floats, Integers
from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.names import is_unicode
from dpforest_duckdb.domain.types import column_type
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.guarantee import Guarantee
from dpforest_duckdb.privacy.unit import MAX_ROWS
from dpforest_duckdb.scoring.content import ForestContent
from dpforest_duckdb.scoring.links import LINKS, SHARES, Link
from dpforest_duckdb.tree import EQUALS, LEAF, MULTIWAY, Tree, Voting

SCHEMA = "dpforest/1"
MAX_CHARACTERS = 256 * 2**20
MAX_NODES = 1_000_000
MAX_DEPTH = 100


_STORED = re.compile(r',"stored":"(\d{4}-\d\d-\d\d)"}\Z', re.ASCII)
AnyForest = TypeVar("AnyForest", bound=ForestContent)


def to_json(forest: ForestContent) -> str:
    """A forest as JSON, columns of integers per tree; `from_json` reads it back."""
    content = {
        "schema": SCHEMA,
        "name": forest.name,
        "recipe": forest.recipe,
        **({"picked": forest.picked} if forest.picked else {}),
        "table": forest.table,
        "version": forest.version,
        "voting": forest.voting,
        "limited": forest.limited,
        "guarantee": asdict(forest.guarantee),
        "link": forest.link.name,
        "domain": _domain_json(forest.domain),
        "trees": [_tree_json(tree) for tree in forest.trees],
    }
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def with_day(text: str, day: date) -> str:
    """The JSON of a forest with the day when it is stored, which is no part of the forest."""
    return f'{text.removesuffix("}")},"stored":"{day.isoformat()}"}}'


def stored_day(text: str) -> str | None:
    """The day that `with_day` added; None if it did not."""
    found = _STORED.search(text)
    return found[1] if found else None


def fingerprint(forest: ForestContent) -> str:
    """A hash of all of a forest but its name, which may be changed."""
    return hashlib.sha256(to_json(replace(forest, name="")).encode()).hexdigest()


def from_json(text: str, kind: type[AnyForest], *, named: str = "The model") -> AnyForest:
    """Read a forest of a class. Raises `DpforestError` for a damaged, newer or huge model.

    `named` begins the errors.
    """
    try:
        if len(text) > MAX_CHARACTERS:
            raise DpforestError(
                f"{named} has more than {MAX_CHARACTERS:,} characters, which is too much for a "
                "model: check the file."
            )
        content = json.loads(text, parse_constant=_no_constant)
        schema = content["schema"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise DpforestError(f"{named} is damaged: it is not the JSON of a forest.") from None
    if schema != SCHEMA:
        raise DpforestError(
            f"{named} has a schema other than {SCHEMA}: update dpforest-duckdb to read it."
        )
    try:
        return _forest(content, kind)
    except DpforestError as error:
        raise DpforestError(f"{named} is damaged: {error.sentence}") from None
    except (ValueError, TypeError, KeyError, IndexError, OverflowError, AttributeError):
        raise DpforestError(f"{named} is damaged: a field is missing or wrong.") from None


def _no_constant(name: str) -> None:
    raise ValueError(name)


def splits_json(tree: Tree) -> dict[str, list[int]]:
    """The splits of a tree, as lists over its nodes."""
    return {
        "kind": tree.kind.tolist(),
        "attribute": tree.attribute.tolist(),
        "cell": tree.cell.tolist(),
        "first": tree.first.tolist(),
    }


def _tree_json(tree: Tree) -> dict[str, Any]:
    return {
        **splits_json(tree),
        "counts": None if tree.counts is None else tree.counts.tolist(),
        "votes": tree.votes[tree.leaves].tolist(),
        "noise": None if tree.noise is None else _noise_json(tree.noise),
        **({} if tree.vote_noise is None else {"vote_noise": _vote_noise_json(tree)}),
    }


def _vote_noise_json(tree: Tree) -> list[list[int]]:
    """By leaf and class, in whole votes."""
    assert tree.vote_noise is not None
    found: list[list[int]] = np.rint(tree.vote_noise[tree.leaves]).astype(np.int64).tolist()
    return found


def _noise_json(noise: Floats) -> list[float | None]:
    """Standard deviations, with null for NaN, which alone differs from itself."""
    return [round(value, 3) if value == value else None for value in noise.tolist()]


def _domain_json(domain: Domain) -> dict[str, Any]:
    """The domain of a forest, as `_forest` reads it."""
    return {
        "target": domain.target,
        "target_type": domain.target_type.name,
        "classes": list(domain.classes),
        "attributes": [
            {
                "name": a.name,
                "kind": a.kind,
                "type": a.type.name,
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
    if not isinstance(value, str) or not is_unicode(value):
        raise ValueError("not text")
    return value


def _amount(value: object) -> str:
    """A plain, finite decimal, at least 0: it is shown as it is, and as a JSON number."""
    text = _text(value)
    if not re.fullmatch(r"\d{1,30}(\.\d{1,30})?", text, re.ASCII):
        raise ValueError("not an amount of privacy")
    return text


def _texts(values: object) -> tuple[str, ...]:
    if not isinstance(values, list):
        raise ValueError("not a list")
    return tuple(_text(value) for value in values)


def _bool(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("not true or false")
    return value


def _integers(values: object, low: int, high: int, shape: tuple[int, ...]) -> Integers:
    """An integer array of a given shape with entries in [low, high]; anything else is refused."""
    array = np.array(values)
    if array.shape != shape or array.dtype != np.int64:
        raise ValueError("not integers of the right shape")
    if array.size and not (low <= array.min() and array.max() <= high):
        raise ValueError("out of range")
    return array


def _attribute(content: Mapping[str, Any]) -> Attribute:
    """An attribute of a model. Raises `ValueError` for values that no model has."""
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
        type=column_type(_text(content["type"])),
        of=_text(content.get("of", "")),
        taxonomy=tuple((_text(g), _texts(held)) for g, held in content.get("taxonomy", [])),
    )
    if declared.of and [group for group, _ in declared.taxonomy] != list(declared.values):
        raise ValueError("groups do not fit their names")
    # binding again checks that categories and edges have the declared type
    bound = declared.bound(declared.type) if edges or kind == "categorical" else declared
    if bound != replace(declared, type=bound.type) or not bound.type.usable:
        raise ValueError("categories or edges do not fit the type")
    return bound


def _forest(content: Mapping[str, Any], kind: type[AnyForest]) -> AnyForest:
    """A model, of the class `kind`. Raises `ValueError` for values that no model has."""
    given = content["domain"]
    domain = Domain(
        attributes=tuple(_attribute(a) for a in given["attributes"]),
        target=_text(given["target"]),
        target_type=column_type(_text(given["target_type"])),
        classes=_texts(given["classes"]),
    )
    labels = domain.labels.bound(domain.target_type)
    enumerated = domain.target_type.labels
    if labels.values != domain.classes or (enumerated and set(domain.classes) - set(enumerated)):
        raise ValueError("classes do not fit the type")
    claimed = content["guarantee"]
    guarantee = Guarantee(
        epsilon=_amount(claimed["epsilon"]),
        delta=_amount(claimed["delta"]),
        private=_bool(claimed["private"]),
        reasons=_texts(claimed["reasons"]),
        unit=_text(claimed["unit"]),
        rows_per_unit=int(_integers(claimed["rows_per_unit"], 1, MAX_ROWS, ())),
        neighbours=_text(claimed["neighbours"]),
        noise=_text(claimed["noise"]),
        plan=_texts(claimed["plan"]),
    )
    link = LINKS[content.get("link", SHARES.name)]
    if not content["trees"]:
        raise ValueError("no tree")
    return kind(
        name=_text(content["name"]),
        recipe=_text(content["recipe"]),
        guarantee=guarantee,
        domain=domain,
        trees=tuple(_tree(tree, domain, link) for tree in content["trees"]),
        link=link,
        table=_text(content["table"]),
        version=_text(content["version"]),
        voting=Voting(content["voting"]),
        limited=int(_integers(content.get("limited", 0), 0, MAX_NODES, ())),
        picked=_text(content.get("picked", "")),
    )


def _tree(content: Mapping[str, Any], domain: Domain, link: Link) -> Tree:
    """A tree of a model. Raises `ValueError` for arrays that make no tree."""
    nodes, classes = len(content["kind"]), len(domain.classes)
    if not 1 <= nodes <= MAX_NODES:
        raise ValueError("too many nodes")
    kind = _integers(content["kind"], LEAF, EQUALS, (nodes,))
    leaves = int((kind == LEAF).sum())
    counts = content["counts"]

    def of_leaves(field: str) -> Integers:
        found = np.zeros((nodes, classes), dtype=np.int64)
        found[kind == LEAF] = _integers(content[field], 0, 2**31, (leaves, classes))
        return found

    tree = Tree(
        kind=kind,
        attribute=_integers(content["attribute"], -1, len(domain.attributes) - 1, (nodes,)),
        cell=_integers(content["cell"], 0, max(domain.cells), (nodes,)),
        first=_integers(content["first"], -1, nodes, (nodes,)),
        counts=None if counts is None else _integers(counts, -(2**62), 2**62, (nodes, classes)),
        votes=of_leaves("votes"),
        noise=_noise(content.get("noise"), nodes),
        vote_noise=of_leaves("vote_noise").astype(np.float64) if "vote_noise" in content else None,
    )
    if tree.noise is not None and tree.counts is None:
        raise ValueError("noise of no counts")
    if not link.allows(tree.votes[tree.leaves]):
        raise ValueError("a leaf without votes")
    _check_shape(tree, domain)
    return tree


def _noise(values: object, nodes: int) -> Floats | None:
    """Standard deviations `[node]`, with NaN for null, or None."""
    if values is None:
        return None
    if not isinstance(values, list) or len(values) != nodes:
        raise ValueError("not one for each node")
    known = [value for value in values if value is not None]
    if any(type(value) not in (int, float) or not 0 <= value < math.inf for value in known):
        raise ValueError("not standard deviations")
    return np.array([math.nan if value is None else float(value) for value in values])


def _check_shape(tree: Tree, domain: Domain) -> None:
    """One root, every other node the child of exactly one earlier node, limited depth."""
    parent = np.full(tree.nodes, -1, dtype=np.int64)
    depth = np.zeros(tree.nodes, dtype=np.int64)
    for node in range(tree.nodes):
        if tree.kind[node] == LEAF:
            continue
        if tree.attribute[node] < 0:
            raise ValueError("a split without attribute")
        attribute = domain.attributes[tree.attribute[node]]
        last = attribute.cells - 1 if tree.kind[node] == EQUALS else attribute.proper - 2
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
