"""What goes to stdout (the result) and to stderr (everything else)."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from dpforest_duckdb.errors import one_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from dpforest_duckdb.ledger.accounts import AnyAccount
    from dpforest_duckdb.model.forest import Forest


_NAMED = re.compile(r"(?:\S+(?: \S+)?)? {2,}")  # the name of a fact, up to the fact
Paragraph = tuple[str, list[str]]  # a heading, and the lines below it


class _Quiet:
    """What `dpforest --quiet` asks for."""

    wanted = False


def tell(text: object, *, hanging: int = 0) -> None:
    """One line of the result, on stdout; `hanging` more columns indent what follows if it is cut.

    Names come from catalogues and files, so every verb writes them through here, `say`, `inform`,
    `note`, `warn`, `show_table` or `emit`: none of these lets a character through that steers a
    terminal.
    """
    print(_wrapped(one_line(text), sys.stdout, hanging))


def say(text: object) -> None:
    """One line that people must see, on stderr."""
    _print(_wrapped(one_line(text), sys.stderr))


def be_quiet(quiet: bool) -> None:
    """Whether `inform` prints nothing from now on."""
    _Quiet.wanted = quiet


def inform(text: object) -> None:
    """One line for people who look on, on stderr."""
    if not _Quiet.wanted:
        say(text)


def note(sentence: str) -> None:
    """What people should know, on stderr."""
    say(f"Note: {sentence}")


def warn(sentence: str) -> None:
    """What may be wrong, or must not be published, on stderr."""
    say(f"Warning: {sentence}")


def warn_if_not_private(forest: Forest) -> None:
    """Say on stderr why a model must not be published, if it must not."""
    if not forest.private:
        reasons = " ".join(forest.guarantee.reasons)
        warn(f"This model is not private, so do not publish it: {reasons}")


def say_if_new(account: AnyAccount) -> None:
    """Say on stderr if a ledger or a dataset is new, and so may be the wrong one."""
    if new := account.new_ledger or account.new_dataset:
        note(new)


def say_spent(account: AnyAccount) -> None:
    """Say on stderr what was spent, and what is left of a cap."""
    from dpforest_duckdb.privacy.amounts import ATTO, show

    budget, name = account.budget(), account.display
    cap, spent = budget.cap, f"ε = {show(budget.spent_epsilon)}"
    if cap:
        spent += f" of a cap of {show(cap.epsilon)}, {show(budget.left_epsilon or 0)} left"
    if budget.spent_delta:
        spent += f"{';' if cap else ','} δ = {show(budget.spent_delta, ATTO)}"
    if budget.spent_delta and cap:
        spent += f" of {show(cap.delta, ATTO)}, {show(budget.left_delta or 0, ATTO)} left"
    inform(f'Spent on {account.noun} "{name}" so far: {spent}.')


def _wrapped(line: str, stream: TextIO | None, hanging: int = 0) -> str:
    """A line, cut between words where the terminal that it goes to is too narrow.

    The rest of a fact goes below the fact, not below its name.
    """
    if stream is None or not stream.isatty():
        return line
    width = shutil.get_terminal_size().columns
    start = _NAMED.match(line)
    indent = (start.end() if start else 0) + hanging
    return "\n".join(
        textwrap.wrap(
            line,
            width,
            subsequent_indent=" " * (indent if indent > 2 else indent + 2),
            break_long_words=False,
            break_on_hyphens=False,
        )
    )


def show_statement(sql: str) -> None:
    """Print a statement on stderr before it runs."""
    _print("\n".join(map(one_line, sql.rstrip().split("\n"))) + ";\n")


def _print(text: str) -> None:
    """Print on stderr; a failure to print must not stop the work."""
    try:
        print(text, file=sys.stderr)
    except OSError:  # for example a closed pipe
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115  stays open until exit


def facts(forest: Forest) -> dict[str, Any]:
    """The facts of a model, for --json."""
    return {
        "model": forest.name,
        "recipe": forest.recipe,
        "epsilon": float(forest.guarantee.epsilon),
        "delta": float(forest.guarantee.delta),
        "private": forest.private,
        "trees": len(forest.trees),
        "nodes": forest.nodes,
        "depth": forest.depth,
    }


def shortest_path(path: Path) -> Path:
    """A path for people: relative to the current folder if it is in it."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def emit(found: object) -> None:
    """Print the one JSON object on stdout, in ASCII so that any locale can show it."""
    print(json.dumps(found, allow_nan=False))


def show_table(
    headings: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    title: str | None = None,
    between: str = "",
    narrow: Callable[[], list[Paragraph]] | None = None,
) -> None:
    """Print rows under headings on stdout, in full.

    If stdout is a terminal that is too narrow for the table, each row becomes a paragraph: the
    column `title` (by default the first) on a line of its own, and the others below it. `narrow`
    gives other paragraphs instead. The first line of a paragraph is cut only before `between`, if
    that is given and the part between two of them fits on a line.
    """
    texts = [[cell(value) for value in row] for row in rows]
    numeric = [
        bool(rows) and all(isinstance(row[number], int | float) for row in rows)
        for number in range(len(headings))
    ]
    console = plain_console()
    if not console.is_terminal:
        console.width = 10_000
    grid = _grid(headings, texts, numeric)
    wide = console.options.update(max_width=10_000)
    if console.measure(grid, options=wide).maximum <= console.width:
        with console.capture() as capture:
            console.print(grid)
        for line in capture.get().splitlines():
            print(line.rstrip())
        return
    first = title or headings[0]
    for head, below in narrow() if narrow else [_paragraph(headings, row, first) for row in texts]:
        for line in _lines(one_line(head), [one_line(line) for line in below], between, console):
            console.print(line)


def plain_console() -> Console:
    """Rich's console without markup. A closed pipe is an error, as it is for `print`.

    Rich would end the program, with an exit code that says that it failed.
    """
    from rich.console import Console

    class Plain(Console):
        def on_broken_pipe(self) -> None:
            raise  # Rich calls this where it handles the error

    return Plain(markup=False, highlight=False, emoji=False, soft_wrap=False)


def _grid(headings: Sequence[str], rows: list[list[str]], numeric: list[bool]) -> Table:
    """The rows as a table whose cells stay on one line."""
    from rich import box
    from rich.table import Table

    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading, right in zip(headings, numeric, strict=True):
        grid.add_column(heading, justify="right" if right else "left", no_wrap=True)
    for row in rows:
        grid.add_row(*row)
    return grid


def _paragraph(headings: Sequence[str], row: list[str], title: str) -> Paragraph:
    """A row in words: its title, and below it the other columns with their headings."""
    texts = dict(zip(headings, row, strict=True))
    first = texts.pop(title)
    return first or title, [", ".join(f"{name} {text}" for name, text in texts.items() if text)]


def _lines(head: str, below: list[str], between: str, console: Console) -> list[str]:
    """A paragraph as lines that fit the console, cut between words, and see `show_table`."""
    lines, hanging = _cut(head, between, console.width), "    " if len(below) > 1 else "  "
    for text in below:
        lines += textwrap.wrap(text, console.width, initial_indent="  ", subsequent_indent=hanging)
    return lines


def _cut(text: str, between: str, width: int) -> list[str]:
    """A text as lines of at most `width` characters, all but the first indented."""
    parts = text.split(f" {between} ") if between else [text]
    parts = [parts[0], *(f"{between} {part}" for part in parts[1:])]
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + 1 + len(part) <= width:
            lines[-1] += f" {part}"
        else:
            indent = "  " if lines else ""
            lines += textwrap.wrap(part, width, initial_indent=indent, subsequent_indent="  ")
    return lines


def cell(value: object) -> str:
    """A value for people: yes or no, six significant digits, nothing for None."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case float():
            text = f"{value:.6g}"
            return f"{Decimal(text):f}" if abs(value) > 1e-20 and "e-" in text else text
    return one_line(value)


def rounded(value: float, digits: int = 3) -> str:
    """A number of so many significant digits, without an exponent.

    >>> rounded(141421.4), rounded(0.01414)
    ('141,000', '0.0141')
    """
    return f"{Decimal(f'{value:.{digits}g}'):,f}"


def number(value: float | None, digits: int = 4) -> str:
    """A figure for people; a dash for None."""
    return "-" if value is None else f"{value:.{digits}f}"


def shown_log_odds(log_odds: dict[str, float] | None) -> str | None:
    """The log-odds that a leaf adds, in nats: of the second of two classes, or of each class."""
    if log_odds is None:
        return None
    first, *others = log_odds.values()
    return f"{others[0] - first:+.3f}" if len(others) == 1 else f"{[first, *others]}"
