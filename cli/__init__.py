"""The command line: one file per verb, each a call into the library.

Importing this package loads no database, no NumPy and no noise. Each verb imports what it needs
when it runs, so `--help` answers at once.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Annotated

import typer

from dpforest_duckdb.cli.audit import audit
from dpforest_duckdb.cli.budget import budget
from dpforest_duckdb.cli.demo import demo
from dpforest_duckdb.cli.domain import domain
from dpforest_duckdb.cli.evaluate import evaluate
from dpforest_duckdb.cli.exit_codes import ended_by, interrupt, reported
from dpforest_duckdb.cli.models import models
from dpforest_duckdb.cli.output import be_quiet
from dpforest_duckdb.cli.recipes import recipes
from dpforest_duckdb.cli.report import report
from dpforest_duckdb.cli.rules import rules
from dpforest_duckdb.cli.score import score
from dpforest_duckdb.cli.sections import Program, Verb
from dpforest_duckdb.cli.show import show
from dpforest_duckdb.cli.sql import sql
from dpforest_duckdb.cli.train import train
from dpforest_duckdb.version import __version__

VERBS = (
    train,
    score,
    sql,
    evaluate,
    rules,
    show,
    report,
    models,
    budget,
    domain,
    recipes,
    audit,
    demo,
)

app = typer.Typer(
    name="dpforest",
    cls=Program,
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help: Rich takes twice as long
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

for _verb in VERBS:
    app.command(cls=Verb)(reported(_verb))


def _version(wanted: bool) -> None:
    if wanted:
        from importlib import metadata

        print(f"dpforest {__version__}")
        for library in ("duckdb", "opendp"):
            print(f"{library} {metadata.version(library)}")
        raise typer.Exit


@app.callback()
def _about(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the versions.")
    ] = False,
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet",
            "-q",
            envvar="DPFOREST_QUIET",
            help="Print only notes, warnings and errors on stderr.",
        ),
    ] = False,
) -> None:
    """Differentially private decision forests, trained inside DuckDB and scored with plain SQL."""
    be_quiet(quiet)


def main() -> None:
    """The `dpforest` command."""
    for stream in ("stdout", "stderr"):
        if getattr(sys, stream) is None:  # closed by the caller: print must not fail
            setattr(sys, stream, open(os.devnull, "w"))  # noqa: SIM115  stays open until exit
    if hasattr(sys.stdout, "reconfigure"):
        # SQL and JSON files are UTF-8 whatever the locale
        sys.stdout.reconfigure(encoding="utf-8")
    for stop in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        # not if nohup, or a shell's background, ignores it
        if signal.getsignal(stop) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(stop, interrupt)  # nothing is left behind
    try:
        app(prog_name="dpforest")  # also as a module: the shell completes this name
    except KeyboardInterrupt:  # before a command began, which has a sentence of its own
        print("Interrupted.", file=sys.stderr)
        sys.exit(130)
    except SystemExit as ended:
        # Typer makes an exit code of an interruption while it reads the options
        if isinstance(getattr(ended.__context__, "__cause__", None), KeyboardInterrupt):
            print("Interrupted.", file=sys.stderr)
        raise
    except OSError as error:  # stdout takes no help
        sys.exit(ended_by(error))
