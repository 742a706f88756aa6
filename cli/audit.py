"""dpforest audit"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from dpforest_duckdb.cli import options
from dpforest_duckdb.cli.output import emit, inform, number, show_table
from dpforest_duckdb.errors import DpforestError

if TYPE_CHECKING:
    from dpforest_duckdb.audit.mechanisms import Finding


DRAWS, RUNS = 1_000_000, 500  # by default


class Subject(StrEnum):
    mechanisms = "mechanisms"
    recipes = "recipes"


_FIGURES = ("claimed ε", "exact loss", "bound")
HEADINGS = {
    Subject.mechanisms: ("mechanism", *_FIGURES, "events", "draws", "verdict"),
    Subject.recipes: ("recipe", *_FIGURES, "right | wrong", "guesses", "verdict"),
}


def audit(
    subject: Annotated[Subject, options.one_of(Subject)] = Subject.mechanisms,
    recipe: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A recipe to train; may be repeated. [default: all]",
            autocompletion=options.completed_recipe,
        ),
    ] = None,
    draws: Annotated[
        int | None,
        typer.Option(
            parser=options.whole_number(100, 10**9),
            metavar="N",
            help=f"Draws of each mechanism, on each of the two tables. [default: {DRAWS}]",
        ),
    ] = None,
    runs: Annotated[
        int | None,
        typer.Option(
            parser=options.whole_number(100, 10**6),
            metavar="N",
            help=f"Trainings of each recipe, at least 100. [default: {RUNS}]",
        ),
    ] = None,
    as_published: Annotated[
        bool, typer.Option("--as-published", help="Audit the recipes as published.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Look for an ε that is larger than claimed, on made-up tables.

    Every bound holds with 99.9 % confidence. A bound above its claim proves the claim wrong.

    \b
    Example:
      dpforest audit mechanisms --draws 2000
    """
    from dpforest_duckdb.audit.mechanisms import audit as audit_mechanism
    from dpforest_duckdb.audit.mechanisms import cases
    from dpforest_duckdb.audit.recipes import DELTA, WITH_DELTA, audit_recipe
    from dpforest_duckdb.recipes import RECIPES, find

    findings: list[Finding] = []
    if subject is Subject.mechanisms:
        options.refuse_idle(
            "goes with audit recipes", recipe=recipe, runs=runs, as_published=as_published
        )
        for case in cases():
            findings.append(audit_mechanism(case, draws or DRAWS))
            inform(_line(findings[-1]))
    else:
        options.refuse_idle("goes with audit mechanisms", draws=draws)
        every = [n for n, r in RECIPES.items() if r.published is not None or not as_published]
        names = recipe or every
        for name in names:
            find(name, as_published=as_published)  # refuse a wrong name before hours of work
        for name in names:
            for delta in ("0", DELTA) if name in WITH_DELTA else ("0",):
                found = audit_recipe(name, runs or RUNS, delta=delta, as_published=as_published)
                findings.append(found)
                inform(_line(found))
    if as_json:
        emit({"findings": [_facts(finding) for finding in findings]})
    else:
        show_table(
            HEADINGS[subject],
            [
                [
                    f.name,
                    f.claim,
                    number(f.loss, 3),
                    round(f.bound.epsilon, 3),
                    f"{f.bound.seen[0]} | {f.bound.seen[1]}",
                    f.bound.draws,
                    _verdict(f),
                ]
                for f in findings
            ],
        )
    broken = [finding.name for finding in findings if finding.broken]
    if broken:
        raise DpforestError(f"The claim does not hold for {', '.join(broken)}: report this.")


def _verdict(finding: Finding) -> str:
    if finding.broken:
        return "CLAIM REFUTED"
    if finding.private:
        return "not refuted"
    return "not private: refuted" if finding.bound.epsilon > finding.claim else "not private"


def _line(finding: Finding) -> str:
    return f"{finding.name}: ε ≥ {finding.bound.epsilon:.3f}, claimed {finding.claim:g}"


def _facts(finding: Finding) -> dict[str, object]:
    return {
        "name": finding.name,
        "claim": finding.claim,
        "exact_loss": finding.loss,
        "bound": finding.bound.epsilon,
        "seen": list(finding.bound.seen),
        "draws": finding.bound.draws,
        "private": finding.private,
        "refuted": finding.broken,
    }
