"""Reads a snapshot for the phases of a run: it codes the rows and counts them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.domain import Domain
from dpforest_duckdb.engine.base import CodedRows, Coding, Snapshot, tables_of_all
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.privacy.randomness import Randomness
from dpforest_duckdb.privacy.unit import PrivacyUnit


@dataclass(frozen=True)
class Reader:
    """The rows of a run's snapshot, of which each privacy unit has a bounded number.

    All counts are private: a phase adds noise to them, or draws by them.
    """

    rows: Snapshot
    unit: PrivacyUnit
    randomness: Randomness

    def class_counts(self, domain: Domain) -> Integers:
        """The counts `[class]` of all rows."""
        with self.encoded(self.all_rows(domain)) as coded:
            counts: Integers = coded.count_leaves(0, 1)[0]
            return counts

    def cell_counts(self, domain: Domain) -> list[Integers]:
        """The counts `[cell]` of each attribute."""
        return [table.sum(axis=1) for table in self.tables(domain)]

    def tables(self, domain: Domain) -> list[Integers]:
        """The counts `[cell, class]` of each attribute."""
        with self.encoded(self.all_rows(domain)) as coded:
            return tables_of_all(coded)

    def all_rows(self, domain: Domain) -> Coding:
        """The coding of all rows at one node."""
        return Coding(domain, self.unit, trees=1, sample="all", salt=self.randomness.salt)

    @contextlib.contextmanager
    def encoded(
        self, coding: Coding, *, likely_rows: int = 0, last: bool = False
    ) -> Iterator[CodedRows]:
        """The coded rows; dropped at the end. Nothing else is coded after the `last` ones."""
        coded = self.rows.encode(coding, likely_rows=likely_rows, last=last)
        try:
            yield coded
        except BaseException:
            # an interrupt aborts the transaction, in which nothing can be dropped; what was coded
            # then goes with the connection
            with contextlib.suppress(DpforestError):
                coded.drop()
            raise
        coded.drop()
