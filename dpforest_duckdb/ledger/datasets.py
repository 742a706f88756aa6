"""The account of rows that are in no table: files are known by paths, anything else by a name.

Nothing can be stored with a file or a DataFrame, so its identity, budget and cap are in the ledger
alone. A file is known by its resolved path: a copy has a budget of its own. A dataset is known by
the name that its users give it. A file that was once used under the name of a dataset stays in that
dataset: its earlier spending is added to the dataset's, and later runs on it are debited there.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from unicodedata import normalize

from dpforest_duckdb.domain.names import hint, listed
from dpforest_duckdb.domain.table import TableInfo
from dpforest_duckdb.errors import BudgetError, UsageError
from dpforest_duckdb.ledger.accounts import KeptAccount
from dpforest_duckdb.ledger.book import Ledger
from dpforest_duckdb.ledger.chain import Chain
from dpforest_duckdb.ledger.entries import DATASET, FILE, Budget, Charge, Holder
from dpforest_duckdb.ledger.refusals import check_join
from dpforest_duckdb.privacy.unit import PrivacyUnit


def _nothing() -> None:
    """Rows that come from no other table or file: there is nothing to refuse."""


@dataclass(frozen=True)
class DatasetAccount(KeptAccount):
    """The budgets that a run on files, or on a named dataset, is debited from.

    `files` are resolved paths. Without `dataset` each of them has a budget, and every one is
    debited with the whole cost, in one transaction. `columns` are those that a privacy unit may be;
    None if they are not known. `refuse_capped_sources` is called at each debit.
    """

    ledger: Ledger
    files: tuple[Path, ...] = ()
    dataset: str | None = None
    columns: tuple[str, ...] | None = None
    refuse_capped_sources: Callable[[], None] = field(default=_nothing, repr=False, compare=False)

    def __post_init__(self) -> None:
        name = self.dataset
        if name is not None and (
            not isinstance(name, str) or not name.strip() or not name.isprintable()
        ):
            raise UsageError("--dataset must be a name of printable characters.")
        if not self.files and name is None:
            raise UsageError("Name the dataset that the budget belongs to with --dataset.")

    @property
    def noun(self) -> str:
        """What the budget belongs to, for people."""
        return "file" if self.dataset is None else "dataset"

    @property
    def display(self) -> str:
        """The name for people."""
        if self.dataset is not None:
            return self.dataset
        first = self.files[0].name
        return first if len(self.files) == 1 else f"{first} and {len(self.files) - 1} more"

    @property
    def rows_may_change(self) -> bool:
        """Whether a dataset has the budget: its users may give its name to other rows each time."""
        return self.dataset is not None

    def budget(self, seen: TableInfo | None = None) -> Budget:
        """The budget that leaves least, or else has spent most. Rows in no table are never `seen`.

        Raises `BudgetError` if a file cannot join the dataset.
        """
        chain = self.ledger.read()
        return min((chain.budget(holder.budget_id) for holder in self._debited(chain)), key=_room)

    @property
    def new_ledger(self) -> str:
        """Says that there is no ledger yet, or one without entries.

        A table knows its ledger and its budget. Files and names do not, so a wrong one must show,
        and so must one that was cut off.
        """
        if self.ledger.read().entries:
            return ""
        return f"New ledger {self.ledger.path}: runs and caps in other ledgers do not count in it."

    @property
    def new_dataset(self) -> str:
        """Says that the ledger has other datasets, but none of this name.

        The name may be misspelt, and would have a budget of its own.
        """
        chain = self.ledger.read()
        named = (entry.holder for entry in chain.placed if entry.holder.place.startswith(DATASET))
        others = sorted({holder.name for holder in named})
        if self.dataset is None or not others or chain.find(_place_of(self.dataset)):
            return ""
        return (
            f'New dataset "{self.dataset}"{hint(self.dataset, others)}: the ledger knows of no '
            f"earlier run on it (it has {listed(others)})."
        )

    @property
    def caution(self) -> str:
        """Says that a file is known by its path."""
        if self.dataset is not None:
            return ""
        return (
            "A copy of these files, or the files under other names, would have a budget of its own."
        )

    def debit(self, charge: Charge) -> tuple[int, ...]:
        """Spend on every budget, committed before this returns; the numbers of the runs.

        Raises `BudgetError` or `DpforestError`, and spends nothing, if one of them does not allow
        the run.
        """
        self.refuse_capped_sources()
        with self.ledger.writing() as chain:
            return tuple(chain.debit(holder, charge) for holder in self._debited(chain))

    def check(self, chain: Chain, charge: Charge, seen: TableInfo | None = None) -> None:
        """Raise what `debit` would raise, else add the run to `chain`, in memory."""
        self.refuse_capped_sources()
        for holder in self._debited(chain):
            chain.debit(holder, charge)

    def set_cap(self, epsilon: int, delta: int, unit: PrivacyUnit, *, raise_cap: bool) -> Budget:
        """Cap every budget: each file's own, or the dataset's."""
        with self.ledger.writing() as chain:
            for holder in self._debited(chain):
                chain.set_cap(holder, epsilon, delta, unit, raise_cap=raise_cap)
        return self.budget()

    def _debited(self, chain: Chain) -> list[Holder]:
        """The budgets, each once, after the files have joined the dataset."""
        if self.dataset is None:
            found = [_holder(chain, FILE + str(file), file.name) for file in self.files]
        else:
            named = _holder(chain, _place_of(self.dataset), self.dataset)
            for file in self.files:
                _join(chain, file, named)
            found = [named]
        return list({holder.budget_id: holder for holder in found}.values())


def capped_files(ledger: Ledger, dataset: str) -> bool:
    """Whether a file has a cap in this ledger, by itself or in another dataset than this one."""
    chain = ledger.read()
    of_files = {e.holder.budget_id for e in chain.placed if e.holder.place.startswith(FILE)}
    capped = {holder.budget_id for holder in chain.capped()}
    return bool((capped & of_files) - {chain.find(_place_of(dataset))})


def _holder(chain: Chain, place: str, name: str) -> Holder:
    """The budget at a place; one that was never seen gets a new budget."""
    budget_id = chain.find(place)
    if budget_id is None:
        return Holder(secrets.token_hex(16), name, place)
    first = _first(chain, budget_id)
    return first if first.place.startswith(DATASET) else Holder(budget_id, name, place)


def _place_of(dataset: str) -> str:
    """One place for all spellings of a name: of case, and of Unicode's composed characters."""
    return DATASET + normalize("NFKC", normalize("NFKC", dataset).strip().casefold())


def _first(chain: Chain, budget_id: str) -> Holder:
    """The holder of a budget in its first entry; for a dataset, that is the dataset, not a file."""
    return next(e.holder for e in chain.placed if e.holder.budget_id == budget_id)


def _join(chain: Chain, file: Path, named: Holder) -> None:
    """Put a file into a dataset for good: the dataset pays for what was spent on the file before.

    Raises `BudgetError` if the file is in another dataset, has a cap of its own, or has runs that
    the dataset's cap cannot count.
    """
    place = FILE + str(file)
    present = chain.find(place)
    if present == named.budget_id:
        return
    if chain.find(named.place) is None:
        chain.move(named)
    if present is not None:
        if _first(chain, present).place.startswith(DATASET):
            raise BudgetError(
                f'The file {file} is in the dataset "{_first(chain, present).name}" already: give '
                "that name with --dataset."
            )
        budget = chain.budget(present)
        if budget.cap:
            raise BudgetError(
                f"The file {file} has a cap of its own, so it cannot join a dataset: leave "
                "--dataset out."
            )
        check_join(file, budget, named, chain.budget(named.budget_id))
        for run in budget.entries:
            chain.debit(named, run)
    chain.move(replace(named, place=place))


def _room(budget: Budget) -> tuple[float, int]:
    """A key to sort budgets: by what is left, and without a cap by what is spent."""
    left = budget.left_epsilon
    return (float("inf") if left is None else left, -budget.spent_epsilon)
