"""Differentially private decision forests, trained inside DuckDB and scored with plain SQL."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpforest_duckdb.version import __version__

if TYPE_CHECKING:
    from dpforest_duckdb.domain import Attribute, Domain
    from dpforest_duckdb.domain.file import load_domain
    from dpforest_duckdb.errors import BudgetError, DpforestError, UsageError
    from dpforest_duckdb.model.forest import Forest, load_forest
    from dpforest_duckdb.training.budget import (
        budget,
        budgets,
        move_budget,
        retire_budget,
        set_budget,
    )
    from dpforest_duckdb.training.evaluate import evaluate
    from dpforest_duckdb.training.opening import stored_forest
    from dpforest_duckdb.training.prepare import prepare
    from dpforest_duckdb.training.train import train, train_many
    from dpforest_duckdb.tree import Tree

__all__ = [
    "Attribute",
    "BudgetError",
    "Domain",
    "DpforestError",
    "Forest",
    "Tree",
    "UsageError",
    "__version__",
    "budget",
    "budgets",
    "evaluate",
    "load_domain",
    "load_forest",
    "move_budget",
    "prepare",
    "retire_budget",
    "set_budget",
    "stored_forest",
    "train",
    "train_many",
]

_HOMES = {
    **dict.fromkeys(("Attribute", "Domain"), "domain"),
    "load_domain": "domain.file",
    **dict.fromkeys(("BudgetError", "DpforestError", "UsageError"), "errors"),
    **dict.fromkeys(("Forest", "load_forest"), "model.forest"),
    "Tree": "tree",
    "prepare": "training.prepare",
    **dict.fromkeys(
        ("budget", "budgets", "move_budget", "retire_budget", "set_budget"), "training.budget"
    ),
    "evaluate": "training.evaluate",
    "stored_forest": "training.opening",
    **dict.fromkeys(("train", "train_many"), "training.train"),
}
_MODULES = ("errors", "progress")  # the warnings, and the events that `progress` gets


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    """Import a public name on first use: the command line must start fast."""
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
