"""What is compared to evaluate a forest, in an engine's SQL: the same for every engine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dpforest_duckdb.arrays import Floats, Integers
from dpforest_duckdb.domain import Attribute
from dpforest_duckdb.domain.names import fold
from dpforest_duckdb.domain.table import TableInfo
from dpforest_duckdb.engine.base import Outcomes
from dpforest_duckdb.engine.shared.grids import dense
from dpforest_duckdb.privacy.unit import PrivacyUnit
from dpforest_duckdb.scoring.codes import Codes, UnitColumn
from dpforest_duckdb.scoring.content import ForestContent
from dpforest_duckdb.scoring.score_sql import share_names
from dpforest_duckdb.sql import Sql


@dataclass(frozen=True)
class Comparison:
    """What the templates `evaluate` compare in the scored rows `s`, in an engine's SQL.

    `label` and `predicted` are the numbers of a row's class and of its prediction, `value` is a
    probability: with two classes (`binary`) that of the second, else that of the row's own class.
    `unit` is None if it is the row.
    """

    label: Sql
    predicted: Sql
    binary: bool
    value: Sql
    unit: UnitColumn | None


def compared(
    forest: ForestContent,
    labels: Attribute,
    table: TableInfo,
    unit: PrivacyUnit | None,
    dialect: Codes,
    prefix: str,
) -> Comparison:
    """What is compared to evaluate a forest; names of the scored columns begin with `prefix`."""
    classes = forest.domain.classes
    shares = [dialect.ident("s", name) for name in share_names(forest, prefix)]
    label = dialect.class_code(labels.values, labels.type, dialect.ident("s", labels.name))
    arms = " ".join(f"WHEN {number} THEN {share}" for number, share in enumerate(shares))
    predicted = dialect.ident("s", f"{prefix}prediction")
    binary = len(classes) == 2
    return Comparison(
        label=label,
        predicted=dialect.class_code(classes, forest.domain.target_type, predicted),
        binary=binary,
        value=shares[1] if binary else Sql(f"CASE {label} {arms} END"),
        unit=dialect.unit("s", unit, table.columns) if unit else None,
    )


def free_prefix(columns: Iterable[str]) -> str:
    """A prefix that no column of the table begins with."""
    prefix = "dpforest_"
    while any(fold(name).startswith(prefix) for name in columns):
        prefix += "_"
    return prefix


def outcome_groups(label: Integers, right: Integers, value: Floats, rows: Integers) -> Outcomes:
    """The outcomes of groups of `rows`; the rows of label -1 have no class of the model."""
    known = label >= 0
    unlabelled = int(rows[~known].sum())
    return Outcomes(label[known], right[known], value[known], rows[known], unlabelled)


def outcome_grid(
    keys: Sequence[Integers], rows: Integers, classes: int, edges: Sequence[float]
) -> Integers:
    """Dense `counts[label, right, bin]` between edges: `keys` are those three of groups of `rows`.

    With more than two classes all labels are 0.
    """
    return dense(keys, rows, (2 if classes == 2 else 1, 2, len(edges) + 1))
