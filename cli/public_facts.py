"""What `dpforest train` says before the debit: what is taken as public, and whom ε protects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dpforest_duckdb.cli.output import inform, note

if TYPE_CHECKING:
    from dpforest_duckdb.training.run import Run

OPTIONS = "the options (they must not contain private values)"  # a source of the domain


def say_public(runs: list[Run], source: str) -> None:
    """Print what is public about runs on the same rows; what is the same for several, once."""
    if new := runs[0].account.new_ledger:
        note(new)
    shared = len(runs) > 1
    space = max(run.bytes_after(runs[:number], shared=shared) for number, run in enumerate(runs))
    for line in dict.fromkeys(line for run in runs for line in _public(run, source, space)):
        inform(line)
    for sentence in dict.fromkeys(sentence for run in runs for sentence in _notes(run)):
        note(sentence)


def _public(run: Run, source: str, space: int) -> Iterator[str]:
    """What the guarantee takes as public, and so does not protect; and whom it protects.

    `space` is the temporary space per row of all runs, in bytes.
    """
    from dpforest_duckdb.domain.names import listed

    public = run.request.domain
    # a class with a comma would be two
    listing = f" ({listed(public.classes)})" if source == OPTIONS else ""
    yield (
        f'Taken as public: "{public.target}" and its {len(public.classes)} classes{listing}, '
        f"{_attributes(len(public.attributes))} categories and bounds, from {source}."
    )
    column = run.unit.column
    long = not run.unit.is_row and run.table.columns[column].long
    more = f', if no "{column}" has more than 64 bytes' if long else ""
    yield f"Temporary space: at most {space} MB per million rows{more}."
    if run.unused_columns:
        yield f"Columns not used, because they are not declared: {listed(run.unused_columns)}."
    if run.left_out:
        yield f"Attributes left out by an option: {listed(run.left_out)}."
    yield (
        f'Privacy unit: {run.unit} of {run.account.noun} "{run.account.display}", added or removed.'
    )


def _notes(run: Run) -> Iterator[str]:
    """What users should know of a run before the debit."""
    from dpforest_duckdb.domain.names import fold

    if not run.unit.is_row and run.unit.rows == 1:
        yield f'Only one row of each "{run.unit.column}" is used: use more with --rows-per-unit.'
    named = run.request.domain.privacy_unit
    if named and fold(named) != fold(run.unit.column):
        yield f'The domain names "{named}" as the privacy unit; this run protects {run.unit}.'
    if run.account.caution:
        yield run.account.caution
    yield from run.notes
    if run.request.cut:
        yield run.request.cut
    if run.reasons and not run.account.budget().cap:
        yield f"After a run that is not private, this {run.account.noun} cannot be capped."


def _attributes(number: int) -> str:
    return "1 attribute with its" if number == 1 else f"{number} attributes with their"
