"""Bins of numeric attributes by entropy, read from the rows: thesis §4.3.1 and (4.4).

A range of values is cut in two where the entropy of the classes is lowest, as long as the gain is
not below δ of (4.4), by the principle of minimum description length (Fayyad & Irani 1993). Patil &
Singh prepare Adult so. It is not private: the package has public bins instead.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from dpforest_duckdb.domain import Domain

Counts = NDArray[np.int64]


def entropy(counts: Counts) -> NDArray[np.float64]:
    """In bits, over the last axis."""
    share = counts / np.maximum(counts.sum(axis=-1, keepdims=True), 1)
    bits = share * np.log2(share, where=share > 0, out=np.zeros_like(share))
    return np.asarray(-bits.sum(axis=-1))


def cuts(values: NDArray[Any], counts: Counts) -> list[Any]:
    """Ascending cuts between ascending values with `counts[value, class]`.

    A value equal to a cut lies below it.
    """
    if len(values) < 2:
        return []
    below = counts.cumsum(axis=0)[:-1]
    whole = counts.sum(axis=0)
    sides, rows = (below, whole - below), whole.sum()
    left = sum(side.sum(axis=1) * entropy(side) for side in sides) / rows
    best = int(np.argmin(left))
    classes = [int((side > 0).sum()) for side in (whole, sides[0][best], sides[1][best])]
    bits = [float(entropy(side)) for side in (whole, sides[0][best], sides[1][best])]
    weighed = classes[0] * bits[0] - classes[1] * bits[1] - classes[2] * bits[2]
    delta = (np.log2(rows - 1) + np.log2(3.0 ** classes[0] - 2) - weighed) / rows
    if bits[0] - left[best] < delta:
        return []
    end = best + 1
    return [*cuts(values[:end], counts[:end]), values[best], *cuts(values[end:], counts[end:])]


def by_entropy(con: duckdb.DuckDBPyConnection, domain: Domain) -> Domain:
    """The domain with cuts of the table `train`; a number that is not cut is left out."""
    attributes = []
    for attribute in domain.attributes:
        if attribute.kind == "numeric":
            name, target = f'"{attribute.name}"', f'"{domain.target}"'
            found = con.execute(
                f"SELECT {name}, CAST({target} AS VARCHAR), count(*) FROM train "
                f"WHERE {name} IS NOT NULL AND {target} IS NOT NULL GROUP BY ALL"
            ).fetchall()
            values, row = np.unique([value for value, _, _ in found], return_inverse=True)
            classes, column = np.unique([label for _, label, _ in found], return_inverse=True)
            counts = np.zeros((len(values), len(classes)), dtype=np.int64)
            counts[row, column] = [rows for _, _, rows in found]
            edges = tuple(cut.item() for cut in cuts(values, counts))
            if not edges:
                continue
            attribute = replace(attribute, edges=edges, lower=None, upper=None, bins=None)
        attributes.append(attribute)
    return replace(domain, attributes=tuple(attributes))
