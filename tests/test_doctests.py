"""The examples in docstrings of the public API give what they show."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
import warnings

import pytest

from dpforest_duckdb import prepare, train

MODULES = (
    "dpforest_duckdb.errors",
    "dpforest_duckdb.domain.flags",
    "dpforest_duckdb.training.train",
    "dpforest_duckdb.sklearn.classifier",
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name: str) -> None:
    if "sklearn" in name:
        pytest.importorskip("sklearn")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        failed, tried = doctest.testmod(importlib.import_module(name))
    assert tried
    assert not failed


def test_help_lists_every_option_with_its_type_and_default() -> None:
    given, planned = inspect.signature(train).parameters, inspect.signature(prepare).parameters
    internal = {"account", "leaks"}
    assert set(given) == set(planned) - internal | {"progress"}
    for name in set(given) & set(planned):
        assert given[name].default == planned[name].default
        assert name == "trace" or given[name].annotation == planned[name].annotation
        assert re.search(rf"\b{name}\b", train.__doc__ or ""), name
