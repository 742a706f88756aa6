"""A complete session on a real table that needs no download: UCI's Nursery, made by SQL.

All of its rows are published, so exact figures harm nobody. The session still follows the rules:
the training table has a cap, and exact figures come from another table, which has none.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

from dpforest_duckdb.engine.connection.connect import SPILL, open_database
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.ledger.account import Account
from dpforest_duckdb.ledger.entries import Budget
from dpforest_duckdb.model import store
from dpforest_duckdb.model.figures import Evaluation
from dpforest_duckdb.model.files import TEMPORARY, write_file
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.model.rules import Rule
from dpforest_duckdb.privacy.amounts import NANO, nano_epsilon, show
from dpforest_duckdb.privacy.unit import ROW
from dpforest_duckdb.scoring.publish import publish_sql
from dpforest_duckdb.sql import Sql, nested, render
from dpforest_duckdb.training.evaluate import evaluate
from dpforest_duckdb.training.train import train

EPSILON, CAP, RECIPE = "1", "3", "dpdf"
SHOWN_RULES = 5
NURSERY = {
    "parents": ("usual", "pretentious", "great_pret"),
    "has_nurs": ("proper", "less_proper", "improper", "critical", "very_crit"),
    "form": ("complete", "completed", "incomplete", "foster"),
    "children": ("1", "2", "3", "more"),
    "housing": ("convenient", "less_conv", "critical"),
    "finance": ("convenient", "inconv"),
    "social": ("nonprob", "slightly_prob", "problematic"),
    "health": ("recommended", "priority", "not_recom"),
    "class": ("not_recom", "recommend", "very_recom", "priority", "spec_prior"),
}
Say = Callable[[str], None]
_FILES = ("nursery.duckdb", "nursery.duckdb.ledger", "score.sql")
_LOG = "nursery.duckdb.wal"  # DuckDB's


def demo(folder: str | Path, *, replace: bool = False, say: Say = print) -> dict[str, Any]:
    """Run the session in a folder and return its figures; `say` gets each line of the session.

    Raises `DpforestError` if the folder is not empty, unless it holds a demo and `replace` is set.
    """
    home = _prepared(Path(folder), replace=replace)
    database, ledger, script = (home / name for name in _FILES)
    try:
        _make_tables(database)
    except duckdb.Error:
        for name in (_FILES[0], _LOG):  # so that the demo can be run again
            (home / name).unlink(missing_ok=True)
        raise DpforestError(
            f"The tables cannot be written to {database}: check the folder, and whether the disk "
            "is full."
        ) from None
    say("UCI's Nursery: 12,960 applications to nursery schools, three quarters for training.")
    say(f"The tables are in {database}; their ENUM columns declare the domain.")
    with open_database(database) as connection:
        engine, path = DuckDBEngine(connection), shlex.quote(str(database))
        forest = _train(engine, ledger, path, say)
        figures = _evaluate_and_score(engine, forest, script, path, say)
        rules = _show_rules(forest, path, say)
        budget = _show_budget(engine, ledger, path, say)
    return {
        "database": str(database),
        "sql": str(script),
        "model": forest.name,
        "recipe": forest.recipe,
        "epsilon": float(EPSILON),
        "private": forest.private,
        "rows": figures.rows,
        "accuracy": figures.accuracy,
        "log_loss": figures.log_loss,
        "spent": budget.spent_epsilon / NANO,
        "left": (budget.left_epsilon or 0) / NANO,
        "rules": rules[:SHOWN_RULES],
    }


def _train(engine: DuckDBEngine, ledger: Path, path: str, say: Say) -> Forest:
    """Set a cap and train under it."""
    say(f"\n$ dpforest budget set --db {path} --table nursery --epsilon {CAP}")
    account = Account.of(engine, engine.table("nursery"), ledger)
    account.set_cap(nano_epsilon(CAP), 0, ROW, raise_cap=False)
    say(f"At most ε = {CAP} may be spent on this table, for {ROW}.")
    say(
        f"\n$ dpforest train --db {path} --table nursery --target class --recipe {RECIPE} "
        f"--epsilon {EPSILON}"
    )
    forest = train(
        engine.connection, "nursery", target="class", recipe=RECIPE, epsilon=EPSILON, name="nursery"
    )
    say(f"A forest of {forest.nodes} nodes, depth {forest.depth}. Guarantee: {forest.guarantee}.")
    return forest


def _evaluate_and_score(
    engine: DuckDBEngine, forest: Forest, script: Path, path: str, say: Say
) -> Evaluation:
    """Print exact figures on the other table; write the SQL that scores it, and run it."""
    say(f"\n$ dpforest evaluate --db {path} --model nursery --table nursery_test")
    figures = evaluate(engine.connection, store.load(engine.models, "nursery"), "nursery_test")
    say(f"Accuracy {figures.accuracy:.4f} on {figures.rows} rows not used in training.")
    say(
        f"\n$ dpforest sql --db {path} --model nursery --from nursery_test "
        f"--as table --into scored > {shlex.quote(str(script))}"
    )
    scored = engine.scored("nursery_test")
    write_file(script, publish_sql(forest, form="table", name="scored", scored=scored))
    engine.run(script.read_text(encoding="utf-8"), step="score")
    say("This SQL runs without this package. Run in DuckDB, it made the table scored:")
    _say_rows(engine, say)
    return figures


def _show_rules(forest: Forest, path: str, say: Say) -> list[Rule]:
    """The rules of the leaves; show the first few."""
    say(f"\n$ dpforest rules --db {path} --model nursery --leaves-only")
    rules = _rules(forest)
    for rule in rules[:SHOWN_RULES]:
        say(f"{rule['rule']} => {rule['prediction']} (noisy counts {rule['counts']})")
    say(f"… and {len(rules) - SHOWN_RULES} more.")
    return rules


def _show_budget(engine: DuckDBEngine, ledger: Path, path: str, say: Say) -> Budget:
    say(f"\n$ dpforest budget show --db {path} --table nursery")
    budget = Account.of(engine, engine.table("nursery"), ledger).budget()
    spent, left = show(budget.spent_epsilon), show(budget.left_epsilon or 0)
    say(f"Spent ε = {spent} of {CAP}; {left} left.")
    return budget


def _prepared(home: Path, *, replace: bool) -> Path:
    """The folder, created if it does not exist, without the files of an earlier demo."""
    try:
        home.mkdir(parents=True, exist_ok=True)
        found = [entry.name for entry in home.iterdir()]
        # a demo that was killed leaves a temporary folder, which the next connection removes
        left = {name for name in found if name.startswith((_LOG, TEMPORARY))}
        known = {*_FILES, *(name for name in left if not name.startswith(SPILL))}
        strangers = set(found) - known - left
        if found and (strangers or not replace):
            raise DpforestError(
                f"The folder {home} holds other files: choose another --dir."
                if strangers
                else f"The folder {home} is not empty: pass --replace to run the demo again, or "
                "choose another --dir."
            )
        for name in known:
            (home / name).unlink(missing_ok=True)
    except OSError:
        raise DpforestError(
            f"The folder {home} cannot be created or used: choose another --dir."
        ) from None
    return home


def _make_tables(database: Path) -> None:
    """Create the two tables, `nursery` and `nursery_test`, with ENUM types and no NULL."""
    dialect = DuckDBEngine.dialect
    columns = [
        Sql(
            f"CAST({dialect.ident(name)} AS ENUM ({', '.join(map(dialect.text, values))})) "
            f"AS {dialect.ident(name)}"
        )
        for name, values in NURSERY.items()
    ]
    with duckdb.connect(str(database)) as connection:
        for table, test in (("nursery", False), ("nursery_test", True)):
            connection.execute(
                render(
                    "nursery_part",
                    table=dialect.ident(table),
                    columns=columns,
                    attributes=Sql(", ".join(dialect.ident(n) for n in NURSERY if n != "class")),
                    test=test,
                    nursery=nested("nursery"),
                )
            )
            for name in NURSERY:
                connection.execute(
                    f"ALTER TABLE {dialect.ident(table)} ALTER {dialect.ident(name)} SET NOT NULL"
                )


def _say_rows(engine: DuckDBEngine, say: Say) -> None:
    """Show one scored row for each of three predictions; these rows are public."""
    found = engine.run(
        "SELECT DISTINCT ON (prediction) has_nurs, health, class, prediction "
        "FROM scored ORDER BY ALL LIMIT 3"
    )
    for nurse, health, label, prediction in found:
        say(f"  has_nurs={nurse}, health={health}, class={label}: prediction={prediction}")


def _rules(forest: Forest) -> list[Rule]:
    """The rules of the leaves, largest noisy support first."""
    leaves = [rule for rule in forest.rules() if rule["leaf"]]
    return sorted(leaves, key=lambda rule: rule["support"] or 0, reverse=True)
