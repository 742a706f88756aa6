"""Domains as mappings, for the tests of domains."""

from __future__ import annotations

from dpforest_duckdb.domain import Domain
from dpforest_duckdb.domain.file import domain_from_mapping

TARGET = {"name": "y", "kind": "categorical", "domain": ["a", "b"]}


def mapping(*columns: dict, **rest: object) -> dict:
    return {"target": "y", "column": [*columns, TARGET], **rest}


def numeric(**keys: object) -> dict:
    return {"name": "x", "kind": "numeric", **keys}


def small() -> Domain:
    return domain_from_mapping(mapping(numeric(lower=0, upper=9)))
