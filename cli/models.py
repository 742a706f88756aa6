"""dpforest models"""

from __future__ import annotations

import shlex
from dataclasses import asdict
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpforest_duckdb.cli import opening, options, written_files
from dpforest_duckdb.cli.output import cell, emit, facts, show_table, tell, warn
from dpforest_duckdb.errors import DpforestError, UsageError, one_line

if TYPE_CHECKING:
    from dpforest_duckdb.engine.base import ModelStore
    from dpforest_duckdb.model.forest import Forest


class Action(StrEnum):
    list = "list"
    show = "show"
    drop = "drop"
    import_ = "import"
    export = "export"


def models(
    action: Annotated[Action, options.one_of(Action)] = Action.list,
    what: Annotated[
        str | None, typer.Argument(metavar="[NAME|FILE]", help="The model; for import, its file.")
    ] = None,
    db: options.MaybeDb = None,
    model: Annotated[
        str | None, typer.Option(metavar="NAME|FILE", help="The model, instead of the argument.")
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Import under this name. [default: the one in the file]"),
    ] = None,
    out: Annotated[
        str | None, typer.Option(metavar="FILE.json", help="The file that export writes.")
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace an existing model or file.")
    ] = False,
    as_json: options.AsJson = False,
    show_sql: options.ShowSql = False,
) -> None:
    """List, show, drop, import or export the models of a database.

    \b
    Example:
      dpforest models export visits --db data.duckdb --out visits.json
    """
    from dpforest_duckdb.model import store
    from dpforest_duckdb.model.files import write_file
    from dpforest_duckdb.model.forest import load_forest

    _refuse_idle(action, name, out, replace)
    chosen = _chosen(action, what, model)
    if action is Action.show:
        with opening.opened_for_model(db, chosen, show_sql=show_sql) as (_, forest):
            _show(forest, as_json)
        return
    if db is None:
        raise UsageError("Name the database that holds the models with --db.")
    if action is Action.export:
        if out is None:
            raise UsageError("Name the file to write with --out.")
        written_files.check_out(out, db, replace=replace)
    reading = action in (Action.list, Action.export)
    with opening.opened(db, read_only=reading, show_sql=show_sql) as engine:
        if not reading and not engine.models.writable:
            raise DpforestError(
                f"The database {db} is read-only: make the file and its folder writable to "
                f"{action} a model."
            )
        match action:
            case Action.list:
                _list(engine.models, as_json)
                return
            case Action.drop:
                store.drop(engine.models, chosen)
            case Action.import_:
                forest = load_forest(chosen)
                forest = forest.named(forest.name if name is None else name)
                store.save(engine.models, forest, replace=replace)
                chosen = forest.name
            case Action.export:
                text = store.load(engine.models, chosen).to_json()
                write_file(str(out), text, "model", replace=replace)
    done = {"drop": "dropped", "import": "imported", "export": f"written to {out}"}[action]
    if as_json:
        emit({"model": chosen, "action": str(action)})
    else:
        tell(f'Model "{chosen}" {done}.')


def _chosen(action: Action, what: str | None, model: str | None) -> str:
    """The model that an action is for; "" for the list, which has all of them."""
    if what and model:
        raise UsageError("Name the model once: as the argument, or with --model.")
    chosen = what or model or ""
    if action is Action.list and chosen:
        raise UsageError(
            f"models list shows all of them: for one, dpforest models show {shlex.quote(chosen)}."
        )
    if action is not Action.list and not chosen:
        raise UsageError(f"Name the model to {action}: dpforest models {action} NAME.")
    return chosen


def _refuse_idle(action: Action, name: str | None, out: str | None, replace: bool) -> None:
    """Refuse options that would have no effect."""
    writes = action in (Action.import_, Action.export)
    if name is not None and action is not Action.import_:
        verb = "show" if action is Action.list else action
        raise UsageError(
            f"--name goes with models import: write dpforest models {verb} {shlex.quote(name)}."
        )
    options.refuse_idle("goes with models export", out=out if action != "export" else None)
    options.refuse_idle("goes with models import and export", replace=replace and not writes)


def _facts(forest: Forest) -> dict[str, Any]:
    return {**facts(forest), "target": forest.domain.target, "table": forest.table}


def _exact(facts: dict[str, Any]) -> dict[str, Any]:
    """Facts with ε and δ in all of their digits, for people."""
    exact = {key: Decimal(repr(facts[key])).normalize() for key in ("epsilon", "delta")}
    return {**facts, **{key: f"{amount:f}" for key, amount in exact.items()}}


def _list(models: ModelStore, as_json: bool) -> None:
    """Every stored model; one that cannot be read is listed with the reason."""
    from dpforest_duckdb.model import store

    listed: list[dict[str, Any]] = []
    for name in models.names():
        try:
            facts = _facts(store.load(models, name))
            listed.append({**facts, "stored": store.stored_on(models, name)})
        except DpforestError as error:
            listed.append({"model": name, "error": error.sentence})
    if as_json:
        emit({"models": listed})
        return
    whole = [_exact(fact) for fact in listed if "error" not in fact]
    if whole:
        show_table(list(whole[0]), [list(fact.values()) for fact in whole])
    elif not listed:
        tell("There is no model in the database.")
    for fact in listed:
        if "error" in fact:
            warn(fact["error"])


def _show(forest: Forest, as_json: bool) -> None:
    domain = forest.domain
    attributes = [attribute.name for attribute in domain.attributes]
    used = [attribute.name for attribute in forest.used.values()]
    if as_json:
        more = {
            "target": domain.target,
            "classes": domain.classes,
            "attributes": attributes,
            "used": used,
            "limited": forest.limited,
            "picked": forest.picked,
        }
        emit({**_facts(forest), **more, "guarantee": asdict(forest.guarantee)})
        return
    lines = {
        **_exact(_facts(forest)),
        "recipe": forest.system,
        "target": f"{domain.target} ({', '.join(domain.classes)})",
        "attributes": ", ".join(attributes),
        "splits on": ", ".join(used) or "none of them",
        "guarantee": forest.guarantee,
        "noise": forest.guarantee.noise,
        "made by": f"dpforest-duckdb {forest.version}",
    }
    if forest.limited:
        lines["at the limit"] = f"{forest.limited} nodes stayed leaves"
    width = max(map(len, lines))
    for key, value in lines.items():
        tell(f"{key:{width}}  {cell(value)}")
    for query in forest.guarantee.plan:
        tell(f"{'query':{width}}  {one_line(query)}")
