"""dpforest train"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpforest_duckdb.cli import opening, options, sections, written_files
from dpforest_duckdb.cli.exit_codes import debiting, printing, stop_if_interrupted
from dpforest_duckdb.cli.output import emit, facts, note, say_spent, tell, warn
from dpforest_duckdb.cli.plan import show_plans
from dpforest_duckdb.cli.progress import shown_progress
from dpforest_duckdb.cli.public_facts import OPTIONS, say_public
from dpforest_duckdb.errors import DpforestError, UsageError

if TYPE_CHECKING:
    from dpforest_duckdb.domain import Domain
    from dpforest_duckdb.model.forest import Forest
    from dpforest_duckdb.training.run import Run

SEED_ALONE = (
    "--seed makes repeatable noise, which gives no privacy: use --seed and --not-private together."
)


@debiting
def train(
    epsilon: options.Epsilon,
    db: options.MaybeDataDb = None,
    table: options.MaybeTable = None,
    delta: options.Delta = "0",
    target: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="The column to predict. [default: the domain file's]",
            rich_help_panel=sections.DATA,
        ),
    ] = None,
    domain: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="The domain file. [default: DuckDB's declarations]",
            rich_help_panel=sections.DATA,
        ),
    ] = None,
    numeric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=LOW:HIGH",
            help="Bounds: 0:110 for whole numbers, 0.0:1.0 for fractions; may be repeated.",
            rich_help_panel=sections.DATA,
        ),
    ] = None,
    categories: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=A,B",
            help="Categories of a column; put one with a comma in double quotes. May be repeated.",
            rich_help_panel=sections.DATA,
        ),
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help="The classes; with --numeric or --categories. Put one with a comma in double "
            "quotes.",
            rich_help_panel=sections.DATA,
        ),
    ] = None,
    privacy_unit: options.PrivacyUnit = None,
    rows_per_unit: options.RowsPerUnit = None,
    recipe: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="How to train: see dpforest recipes. May be repeated. [default: auto]",
            autocompletion=options.completed_recipe,
            rich_help_panel=sections.FOREST,
        ),
    ] = None,
    trees: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            parser=options.whole_number(),
            help="The number of trees; with auto an upper limit for log-odds. "
            "[default: the recipe's]",
            rich_help_panel=sections.FOREST,
        ),
    ] = None,
    depth: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            parser=options.whole_number(),
            help="The most splits on a path; no effect with auto. [default: the recipe's]",
            rich_help_panel=sections.FOREST,
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Store the model under this name. [default: the table's name, unless --out]",
            rich_help_panel=sections.RESULT,
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.json", help="Write the model to a file.", rich_help_panel=sections.RESULT
        ),
    ] = None,
    replace: Annotated[
        bool,
        typer.Option(
            "--replace", help="Replace an existing model or file.", rich_help_panel=sections.RESULT
        ),
    ] = False,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B", help="Use only these attributes.", rich_help_panel=sections.DATA
        ),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B", help="Leave these attributes out.", rich_help_panel=sections.DATA
        ),
    ] = None,
    as_published: Annotated[
        bool,
        typer.Option(
            "--as-published",
            help="Follow the paper, with its flaws.",
            rich_help_panel=sections.FOREST,
        ),
    ] = False,
    seed: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            parser=options.whole_number(0),
            help="Repeatable noise, for experiments; needs --not-private.",
            rich_help_panel=sections.BUDGET,
        ),
    ] = None,
    not_private: Annotated[
        bool,
        typer.Option(
            "--not-private",
            help="Confirm that a model with --seed is not private.",
            rich_help_panel=sections.BUDGET,
        ),
    ] = False,
    ledger: options.Ledger = None,
    dataset: options.Dataset = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Show plan, cost and noise; change nothing.",
            rich_help_panel=sections.BUDGET,
        ),
    ] = False,
    timings: Annotated[
        bool,
        typer.Option(
            "--timings",
            help="Show the time of each step; do not publish it.",
            rich_help_panel=sections.RESULT,
        ),
    ] = False,
    as_json: options.AsJson = False,
    show_sql: options.ShowSql = False,
    threads: options.Threads = None,
    memory_limit: options.MemoryLimit = None,
    temp_dir: options.TempDir = None,
    rows_at_most: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            parser=options.whole_number(),
            help="Refuse to start if N rows may not fit into memory and disk; no row is counted.",
            rich_help_panel=sections.MACHINE,
        ),
    ] = None,
    engine: options.EngineName = "duckdb",
    master: options.Master = None,
    remote: options.Remote = None,
) -> None:
    """Train a forest on a private table, within a privacy budget.

    Several --epsilon or --recipe train one forest each; each is debited.

    \b
    Example:
      dpforest train --db data.duckdb --table visits --target ill --epsilon 1
    """
    pairs = [(each, e) for each in recipe or ["auto"] for e in epsilon]
    several = len(pairs) > 1
    _refuse_repeated(epsilon, recipe or [])
    _check_seed(seed, not_private)
    spark = opening.spark_of(engine, master, remote)
    database, rows, stores = _found(db, table, spark)
    _check_file(name, out, stores=stores, several=several, dry_run=dry_run)
    _refuse_out(out, db, ledger, several=several, replace=replace)
    declared, source = _declared(rows, target, domain, numeric, categories, classes)
    from dpforest_duckdb.training.opening import find_rows
    from dpforest_duckdb.training.prepare import prepare

    machine = opening.Machine(threads, memory_limit, temp_dir)
    with opening.opened_rows(database, spark, show_sql, machine) as (connection, trace):
        if stores and name is None and out is None:
            name = find_rows(connection, rows).table.name
        settings: dict[str, Any] = {
            "delta": delta,
            "domain": declared,
            "target": target,
            "privacy_unit": privacy_unit,
            "rows_per_unit": rows_per_unit,
            "trees": trees,
            "depth": depth,
            "columns": options.column_names("--columns", columns) or None,
            "exclude": options.column_names("--exclude", exclude),
            "replace": replace or dry_run,  # a dry run stores nothing
            "as_published": as_published,
            "seed": seed,
            "rows_at_most": rows_at_most,
            "ledger": ledger,
            "dataset": dataset,
            "file": Path(out).name if out else "",
            "trace": trace,
        }
        runs = []
        for one, e in pairs:
            named = " ".join([name or "", one, e]) if several and name is not None else name
            runs.append(prepare(connection, rows, epsilon=e, recipe=one, name=named, **settings))
        say_public(runs, source)
        if dry_run:
            _show_dry(runs, as_json, replace=replace)
            return
        forests = _trained(runs, timings=timings)
        _write(forests[0], out, name, replace=replace)
        say_spent(runs[0].account)
    _show_forests(runs, forests, out, as_json)


def _trained(runs: list[Run], *, timings: bool) -> list[Forest]:
    """The forests of the runs. If not all of them end, it says which models are stored: the same
    command would pay for these again.
    """
    from dpforest_duckdb.training.train import train_many

    forests: list[Forest] = []
    try:
        with shown_progress(timings=timings) as observe:
            stop_if_interrupted()
            for forest in train_many(runs, observe):
                forests.append(forest)
    finally:
        if 0 < len(forests) < len(runs):
            done = " and ".join(f'"{forest.name}"' for forest in forests)
            left = " and ".join(f'"{run.name}"' for run in runs[len(forests) :])
            note(
                f"Stored and paid for: {done}. Left: {left}; train each with its --name, unless "
                "dpforest models lists it."
            )
    return forests


def _show_dry(runs: list[Run], as_json: bool, *, replace: bool) -> None:
    """Refuse what a run would refuse; show the plans, and say which names are taken."""
    from dpforest_duckdb.domain.names import fold
    from dpforest_duckdb.training.train import check_together

    check_together(runs)
    show_plans(runs, as_json)
    taken = set() if replace else {fold(name) for name in runs[0].engine.models.names()}
    for run in runs:
        if run.name is not None and fold(run.name) in taken:
            note(f'There is a model "{run.name}" already: train with --name or --replace.')


def _write(forest: Forest, out: str | None, name: str | None, *, replace: bool) -> None:
    """Write a forest that is paid for. If that fails, the error says where the forest is kept."""
    if out is None:
        return
    from dpforest_duckdb.model.files import write_file
    from dpforest_duckdb.model.store import rescued

    try:
        write_file(out, forest.to_json(), "model", replace=replace)
    except DpforestError as error:
        if name is None:
            raise rescued(forest, error) from None
        raise DpforestError(f'{error.sentence} The model is stored as "{forest.name}".') from None


def _refuse_out(
    out: str | None, db: str | None, ledger: str | None, *, several: bool, replace: bool
) -> None:
    """Refuse a file that cannot hold the model."""
    if out is None:
        return
    if several:
        raise UsageError(
            "--out holds one model: leave it out, or train once for each --epsilon and --recipe."
        )
    written_files.check_out(out, db, ledger, replace=replace)


def _found(
    db: str | None, table: str | None, spark: opening.Spark | None
) -> tuple[str, str | Path, bool]:
    """The database to open, the rows to train on, and whether the database can store the model."""
    if spark is None:
        database, rows = opening.rows_of(db, table)
        return database, rows, isinstance(rows, str)
    if (db is None) == (table is None):
        raise UsageError("Name a table of Spark with --table, or Parquet files with --db.")
    return "", str(table) if db is None else Path(db), False


def _check_seed(seed: int | None, not_private: bool) -> None:
    """Refuse --seed without --not-private, and --not-private without --seed."""
    if seed is not None and not not_private:
        raise UsageError(SEED_ALONE)
    if not_private and seed is None:
        raise UsageError("--not-private is only for --seed: leave it out, or pass --seed too.")


def _check_file(
    name: str | None, out: str | None, *, stores: bool, several: bool, dry_run: bool
) -> None:
    """Refuse a run without a file for the model, unless a database `stores` it."""
    if stores:
        return
    if several and not dry_run:
        raise UsageError(
            "Each model of data files, and of Spark, goes to a file of its own: train once for "
            "each --epsilon and --recipe, with --out FILE.json."
        )
    if name is not None:
        raise UsageError(
            "--name stores a model in a database of DuckDB: leave it out, and name a file with "
            "--out FILE.json."
        )
    if out is None and not dry_run:
        raise UsageError(
            "Models of data files, and of Spark, go to a file: name one with --out FILE.json."
        )


def _declared(
    rows: str | Path,
    target: str | None,
    domain: str | None,
    numeric: list[str] | None,
    categories: list[str] | None,
    classes: str | None,
) -> tuple[Domain | str | None, str]:
    """The domain as the options give it, and its source in words."""
    if not (numeric or categories or classes is not None):
        if domain is not None:
            return domain, f"the file {domain}"
        if isinstance(rows, Path):
            raise UsageError(
                "Data files declare nothing: pass --numeric, --categories and --classes, or "
                "--domain with the file that dpforest domain prints, filled in."
            )
        return None, "DuckDB's declarations (they must not contain private values)"
    if domain is not None:
        raise UsageError(
            "--domain replaces --numeric, --categories and --classes: give one or the other."
        )
    from dpforest_duckdb.domain.flags import domain_from_flags

    declared = domain_from_flags(target, numeric or [], categories or [], classes)
    return declared, OPTIONS


def _refuse_repeated(epsilon: list[str], recipes: list[str]) -> None:
    from dpforest_duckdb.privacy.amounts import nano_epsilon

    amounts = {nano_epsilon(each) for each in epsilon}
    for option, given, different in (
        ("--epsilon", epsilon, len(amounts)),
        ("--recipe", recipes, len(set(recipes))),
    ):
        if different < len(given):
            raise UsageError(f"{option} has the same value twice: give each once.")


def _show_forests(runs: list[Run], forests: list[Forest], out: str | None, as_json: bool) -> None:
    from dpforest_duckdb.model.doubts import doubts
    from dpforest_duckdb.privacy.amounts import NANO

    for doubt in {doubt: None for forest in forests for doubt in doubts(forest)}:
        warn(doubt)
    with printing(_if_unprinted(runs, forests, out)):
        if as_json:
            found = [
                {**facts(forest), "picked": forest.picked, "cost": run.cost / NANO}
                for run, forest in zip(runs, forests, strict=True)
            ]
            emit({"models": found} if len(found) > 1 else found[0])
            return
        for run, forest in zip(runs, forests, strict=True):
            _report(forest, run.name and forest.name, out)


def _if_unprinted(runs: list[Run], forests: list[Forest], out: str | None) -> str:
    """The sentence for a summary that cannot be printed: the models are paid for, and where."""
    named = [f'"{forest.name}"' for run, forest in zip(runs, forests, strict=True) if run.name]
    where = f"stored as {' and '.join(named)}" if named else f"in {out}"
    several = len(forests) > 1
    model, its = ("models are", "their") if several else ("model is", "its")
    return f"The {model} {where}, and paid for; only {its} summary cannot be printed"


def _report(forest: Forest, name: str | None, out: str | None) -> None:
    places = [place for place in (f'stored as "{name}"' if name else "", out or "") if place]
    tell(f"model      {forest.name} ({', '.join(places)})")
    tell(f"recipe     {forest.system}")
    tell(f"forest     trees {len(forest.trees)}, nodes {forest.nodes}, depth {forest.depth}")
    if forest.limited:
        tell(f"limit      {forest.limited} nodes stayed leaves: the size of a forest is limited")
    tell(f"guarantee  {forest.guarantee}")
