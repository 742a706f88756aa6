"""Models in an engine's store or in a JSON file; each is complete or absent."""

from __future__ import annotations

import contextlib
import re
import tempfile
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from dpforest_duckdb.engine.base import ModelStore, NameTakenError
from dpforest_duckdb.errors import DebitStaysError, DpforestError, UsageError
from dpforest_duckdb.model.files import is_model_file, write_file
from dpforest_duckdb.model.forest import Forest, load_forest
from dpforest_duckdb.model.json_format import from_json, stored_day, with_day

LONGEST_NAME = 200  # characters of a model's name


def check_name(models: ModelStore, name: str, *, replace: bool) -> None:
    """Raise `DpforestError` unless a model of this name can be stored.

    For a name that no database can store, this is a `UsageError`.
    """
    if not name.strip() or not name.isprintable() or len(name) > LONGEST_NAME:
        raise UsageError(
            f"A model's name must be printable, 1 to {LONGEST_NAME} characters, not only spaces: "
            "change --name."
        )
    if not models.writable:
        raise DpforestError(
            "The database is read-only, so it stores no model: leave --name out, and name a file "
            "for the model with --out."
        )
    if not replace and name.casefold() in _stored(models):
        raise DpforestError(
            f'There is a model "{name}" already: choose another --name or pass --replace.'
        )


def save(models: ModelStore, forest: Forest, *, replace: bool = False) -> None:
    """Store a forest; with `replace`, in the place of one with its name, whatever the case.

    Its JSON gets the day in UTC. An hour would show how long a training took, which depends on
    private rows.

    Raises `DpforestError` for a name that is taken or not allowed.
    """
    check_name(models, forest.name, replace=replace)
    old = _stored(models).get(forest.name.casefold())
    text = with_day(forest.to_json(), datetime.now(UTC).date())
    models.write(forest.name, text, instead_of=old)


def stored_on(models: ModelStore, name: str) -> str | None:
    """The day when a model was stored, such as "2026-01-31"; None if its version kept none.

    `name` is spelt as in `models.names()`.
    """
    return stored_day(models.read(name))


class NotStoredError(DebitStaysError):
    """A forest that is paid for could not be stored.

    `forest` is the forest, `kept` the file that it was written to, None if there is none.
    """

    def __init__(self, why: DpforestError, forest: Forest, kept: Path | None) -> None:
        place = "only in the attribute `forest` of this error"
        if kept is not None:
            place = f"in the file {kept}: add it with dpforest models import"
        super().__init__(f"{why.sentence} The model is paid for and kept {place}.")
        self._why, self.forest, self.kept = why, forest, kept

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return type(self), (self._why, self.forest, self.kept)


def rescued(forest: Forest, why: DpforestError) -> NotStoredError:
    """Write a forest that could not be stored to a file, and return the error to raise.

    The file gets a free name in the current folder, else in the user's folder, else in the folder
    of temporary files.
    """
    name = re.sub(r"[^\w-]+", "_", forest.name)[:100]
    for folder in (Path.cwd, Path.home, lambda: Path(tempfile.gettempdir())):
        for number in count(1):
            with contextlib.suppress(DpforestError, OSError, RuntimeError):
                place = folder() / (f"{name}.json" if number == 1 else f"{name} {number}.json")
                if place.exists():
                    continue
                write_file(place, forest.to_json(), "model", replace=False)
                return NotStoredError(why, forest, place)
            break
    return NotStoredError(why, forest, None)


def keep(models: ModelStore, forest: Forest, *, replace: bool = False) -> Forest:
    """Store a forest that is already paid for.

    If its name was taken in the meantime, it gets another, which the returned forest has. Raises
    `NotStoredError`, and keeps the forest in a file, if it cannot be stored.
    """
    wanted, number = forest.name, 1
    while True:
        try:
            save(models, forest, replace=replace)
            return forest
        except DpforestError as error:
            if not _taken(models, forest.name) or (
                replace and not isinstance(error, NameTakenError)
            ):
                raise rescued(forest, error) from None
        number += 1
        forest = forest.named(f"{wanted[:190]} {number}")


def _taken(models: ModelStore, name: str) -> bool:
    with contextlib.suppress(DpforestError):
        return name.casefold() in _stored(models)
    return False


def load(models: ModelStore, name: str) -> Forest:
    """A forest by its name in the store, or by the path of a JSON file.

    Raises `DpforestError` if there is neither.
    """
    stored = _stored(models)
    if name.casefold() in stored:
        text = models.read(stored[name.casefold()])
        return from_json(text, Forest, named=f'The model "{name}"')
    if is_model_file(name):
        return load_forest(name)
    raise _no_model(name, stored)


def drop(models: ModelStore, name: str) -> None:
    """Remove a stored model. Raises `DpforestError` if there is none of this name."""
    stored = _stored(models)
    if name.casefold() not in stored:
        raise _no_model(name, stored)
    models.delete(stored[name.casefold()])


def _no_model(name: str, stored: dict[str, str]) -> DpforestError:
    """The refusal of a name that no stored model has."""
    known = ", ".join(f'"{other}"' for other in stored.values()) or "none"
    file = ", or name a file that ends in .json" if "." in name else ""
    return DpforestError(
        f'There is no model "{name}" in the database (it has {known}): check --model{file}.'
    )


def _stored(models: ModelStore) -> dict[str, str]:
    """The stored names by their lower case: names ignore case."""
    return {known.casefold(): known for known in models.names()}
