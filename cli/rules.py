"""dpforest rules"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Annotated

import typer

from dpforest_duckdb.cli import opening, options
from dpforest_duckdb.cli.output import (
    emit,
    inform,
    show_table,
    shown_log_odds,
    warn_if_not_private,
)

SCREEN = 40  # more rules than that fill a screen


def rules(
    model: options.Model,
    db: options.MaybeDb = None,
    leaves_only: Annotated[
        bool, typer.Option("--leaves-only", help="Leave out the rules of inner nodes.")
    ] = False,
    top: Annotated[
        int | None,
        typer.Option(
            "--top",
            parser=options.whole_number(1),
            metavar="N",
            help="Only N rules: those with the largest support, or the first ones if none has one, "
            "without inner nodes of all rows. [default: all, tree by tree]",
        ),
    ] = None,
    as_json: options.AsJson = False,
    show_sql: options.ShowSql = False,
) -> None:
    """List the rules of a model and their noisy class counts.

    Leaves of boosted and class-means have no counts. Only the model is read, and no row of a table.

    \b
    Example:
      dpforest rules --db data.duckdb --model visits --leaves-only --top 20
    """
    with opening.opened_for_model(db, model, show_sql=show_sql) as (_, forest):
        found = [rule for rule in forest.rules() if rule["leaf"] or not leaves_only]
    warn_if_not_private(forest)
    if top is not None:
        found = [rule for rule in found if rule["leaf"] or rule["depth"]]
        found = sorted(found, key=lambda rule: -(rule["support"] or 0))[:top]
    if as_json:
        emit({"private": forest.private, "rules": found})
        return
    rows: list[Mapping[str, object]] = [*found]
    keys = ["tree", "node", "rule", "prediction", "counts", "noise", "confidence", "support"]
    if forest.link.log_odds:  # no leaf predicts alone, so a prediction would mislead
        keys = ["tree", "node", "rule", "log_odds", "counts", "noise", "support"]
        rows = [{**rule, "log_odds": shown_log_odds(rule["log_odds"])} for rule in found]
    show_table(keys, [[row[key] for key in keys] for row in rows], title="rule", between="AND")
    sys.stdout.flush()  # the note comes below the rules, also if both go to one file
    classes = forest.domain.classes
    inform(
        f"Counts are in the order of the classes {', '.join(classes)}; noise is the "
        "standard deviation of the noise in each count."
    )
    if forest.link.log_odds:
        whose = f'of "{classes[1]}"' if len(classes) == 2 else "of all classes in that order"
        inform(
            f"Log-odds are what a leaf adds to the log-odds {whose}: the prediction follows from "
            "the sum over all trees."
        )
    if len(found) > SCREEN and top is None:
        or_leaves = "" if leaves_only else ", --leaves-only leaves out inner nodes"
        inform(f"{len(found):,} rules: --top 20 shows those with the largest support{or_leaves}.")
