"""Differentially private decision forests, trained inside DuckDB and scored with plain SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpforest_duckdb.domain import Attribute, Domain, load_domain
    from dpforest_duckdb.errors import BudgetError, DpforestError, UsageError
    from dpforest_duckdb.forest import Forest, Tree, load_forest
    from dpforest_duckdb.training import prepare, train, train_many

__version__ = "0.1.0"

__all__ = [
    "Attribute",
    "BudgetError",
    "Domain",
    "DpforestError",
    "Forest",
    "Tree",
    "UsageError",
    "load_domain",
    "load_forest",
    "prepare",
    "train",
    "train_many",
]

_HOMES = {
    **dict.fromkeys(("Attribute", "Domain", "load_domain"), "domain"),
    **dict.fromkeys(("BudgetError", "DpforestError", "UsageError"), "errors"),
    **dict.fromkeys(("Forest", "Tree", "load_forest"), "forest"),
    **dict.fromkeys(("prepare", "train", "train_many"), "training"),
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use: the command line must start fast."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
