"""Train a forest, or several on the same rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path

from dpforest_duckdb.domain import Domain
from dpforest_duckdb.errors import BudgetError, UsageError
from dpforest_duckdb.ledger.chain import Chain
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.progress import Observer, observer
from dpforest_duckdb.training.opening import Connection, Rows
from dpforest_duckdb.training.prepare import prepare
from dpforest_duckdb.training.run import Run


def train(
    con: Connection,
    table: Rows,
    *,
    epsilon: float | str | Decimal,
    delta: float | str | Decimal = 0,
    domain: Domain | str | Path | None = None,
    target: str | None = None,
    privacy_unit: str | None = None,
    rows_per_unit: int | None = None,
    recipe: str = "auto",
    trees: int | None = None,
    depth: int | None = None,
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    name: str | None = None,
    replace: bool = False,
    as_published: bool = False,
    seed: int | None = None,
    rows_at_most: int | None = None,
    ledger: str | Path | None = None,
    dataset: str | None = None,
    trace: Callable[[str], None] | None = None,
    progress: Observer | None = None,
) -> Forest:
    """Train a forest, which may be published if `forest.private`.

    Parameters
    ----------
    con : a DuckDB connection (models and ledger lie in or beside its database) or a Spark session.
    table : a table's name, a relation, a DataFrame (pandas, polars, Arrow, a dictionary of NumPy
        arrays), or a `pathlib.Path` of Parquet or CSV files. In Spark a name, or a path of Parquet.
    epsilon, delta : the cost, debited before a row is read. Recipes that use no δ spend none.
    domain : a `Domain`, a domain file, or None for what DuckDB declares.
    target : the column to predict; by default the domain's.
    privacy_unit, rows_per_unit : a column or "row", and the most rows used of each; by default as
        in the domain or the cap, else each row.
    recipe, trees, depth : the system that trains (`dpforest recipes`), and its size.
    columns, exclude : the attributes to use, or to leave out; by default all are used.
    name, replace : store the model under a name, in the place of another if `replace`.
    as_published : follow the paper, with its flaws.
    seed : makes the noise repeatable, and the forest not private.
    rows_at_most : a public bound on the rows; refuse if memory and disk may not hold their codes.
    ledger : the file of the budget; by default beside the connection's database.
    dataset : the name of the budget of rows that are in no table.
    trace, progress : called with every statement, and with each step: text that is an `Event` too.

    Raises `UsageError`, `BudgetError` or another `DpforestError`; if it can, before the debit.
    >>> import duckdb, tempfile
    >>> from dpforest_duckdb import Attribute, Domain
    >>> con = duckdb.connect()
    >>> rows = con.sql("SELECT i % 99 AS age, i % 99 > 60 AS ill FROM range(5000) r(i)")
    >>> domain = Domain((Attribute("age", "numeric", lower=0, upper=99),), "ill", ("false", "true"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     budget = {"ledger": f"{folder}/ledger", "dataset": "visits"}
    ...     train(con, rows, domain=domain, epsilon=1, recipe="dpdf", **budget)
    <Forest 'query': dpdf, 1 tree, ε = 1, δ = 0, per row, add-remove neighbours>
    """
    run = prepare(
        con,
        table,
        epsilon=epsilon,
        delta=delta,
        domain=domain,
        target=target,
        privacy_unit=privacy_unit,
        rows_per_unit=rows_per_unit,
        recipe=recipe,
        trees=trees,
        depth=depth,
        columns=columns,
        exclude=exclude,
        name=name,
        replace=replace,
        as_published=as_published,
        seed=seed,
        rows_at_most=rows_at_most,
        ledger=ledger,
        dataset=dataset,
        trace=trace,
    )
    return run.execute(progress)


def train_many(runs: Sequence[Run], progress: Observer | None = None) -> Iterator[Forest]:
    """Execute prepared runs on one table, one after the other.

    A run starts when its forest is asked for; what can be checked before is checked at once.

    Runs on a DuckDB table share coded rows, if they code them in the same way and the table has not
    changed since; other runs read the rows again. Each run sees the rows of one moment. Each run is
    debited; if a cap does not allow all of them, or `rows_at_most` rows may need more space than
    there is, none is. Raises `DpforestError` as `train` does, and `UsageError` if the runs have
    different tables or ledgers.
    """
    observe = observer(progress)
    if not isinstance(runs, Sequence) or not all(isinstance(run, Run) for run in runs):
        raise UsageError("runs must be a list of what dpforest_duckdb.prepare gives.")
    if not runs:
        return iter(())
    if len({(run.table.key, run.account.ledger and run.account.ledger.path) for run in runs}) > 1:
        raise UsageError(
            "The runs have different tables or ledgers: prepare all of them with the same ones, or "
            "execute each by itself."
        )
    check_together(runs)
    return _executed(runs, observe)


def _executed(runs: Sequence[Run], observe: Observer) -> Iterator[Forest]:
    """The forests of runs on the same rows, one after the other."""
    first = runs[0]
    first.engine.refuse_unseen(first.table)
    with first.engine.snapshot(first.table, shared=len(runs) > 1) as rows:
        for run in runs:
            yield (
                run.execute_on(rows, observe)
                if run.engine.same_rows(first.engine)
                else run.execute(observe)
            )


def check_together(runs: Sequence[Run]) -> None:
    """Raise `DpforestError` unless the ledger can be written, and all runs fit into their budgets,
    and one after the other into memory and temporary disk; nothing is debited.
    """
    chain, ledger = Chain(), runs[0].account.ledger
    seen = runs[0].account.seen_now()
    if ledger is not None:
        ledger.refuse_unwritable()
        chain = ledger.read()
    for number, run in enumerate(runs):
        try:
            run.check(chain, seen)
        except BudgetError as error:
            if number == 0:
                raise
            raise BudgetError(
                f"{error.sentence} The runs before it count too; no run was started."
            ) from None
        run.refuse_if_too_large(runs[:number], shared=len(runs) > 1)
