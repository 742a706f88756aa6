"""Names, values, domain files and models from a fuzzer: one statement, or one sentence."""

from __future__ import annotations

import copy
import json
import re
import tomllib
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pytest
import sqlglot
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlglot import expressions as parsed

from dpforest_duckdb.domain.file import domain_from_mapping, domain_toml, load_domain
from dpforest_duckdb.domain.types import VARCHAR
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.errors import DpforestError, NotPrivateWarning
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.model.rules import rules
from dpforest_duckdb.scoring.publish import publish_sql
from dpforest_duckdb.training.prepare import prepare

quote = DuckDBEngine.dialect.ident
FRAGMENTS = [
    '"', "'", "`", "\n", "\r", "\t", " ", "{{ 1 }}", "{{ x }}", "{%", "%}", "{#", "--", ";", "/*",
    "*/", ".", "$salt", "$1", "?", ":a", "\\", "DROP TABLE t", "select", "NULL", "\u202e", "\u200f",
    "\ufeff", "\x1b[31m", "\x7f", "é", "😀", "0", "x" * 10_000,
]  # fmt: skip
texts = st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=4).map("".join) | st.text(
    st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), min_size=1, max_size=20
)
names = st.lists(texts, min_size=4, max_size=4, unique_by=str.casefold)
values = st.lists(texts, min_size=2, max_size=4, unique=True)
words = texts | st.sampled_from(["", "\x00", "a\x00b", "INTEGER", "ENUM('a')", "row", "numeric"])
leaves = (
    st.none() | st.booleans() | words | st.floats()
    | st.integers() | st.sampled_from([2**63, -(2**63) - 1, 10**400, -1, 0])
)  # fmt: skip
things = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
FUZZ = settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))


def sentence(error: DpforestError) -> str:
    """What an error says: one line, without what could steer a terminal."""
    text = str(error)
    assert text.isprintable()
    assert text.endswith(".")
    return text


def paths(thing: Any) -> list[tuple[Any, ...]]:
    """Every place in nested lists and dictionaries."""
    found: list[tuple[Any, ...]] = [()]
    inside = thing.items() if isinstance(thing, dict) else enumerate(thing)
    for key, value in inside:
        below = paths(value) if isinstance(value, list | dict) else [()]
        found += [(key, *path) for path in below]
    return found


def changed(thing: Any, path: tuple[Any, ...], value: Any, *, drop: bool) -> Any:
    """A copy with another value in one place, or without it."""
    if not path:
        return value
    whole = copy.deepcopy(thing)
    *way, last = path
    at = whole
    for key in way:
        at = at[key]
    if drop:
        del at[last]
    else:
        at[last] = value
    return whole


def model() -> dict[str, Any]:
    """A forest with every kind of attribute and split, as JSON."""
    with (
        TemporaryDirectory() as folder,
        duckdb.connect() as con,
        warnings.catch_warnings(action="ignore", category=NotPrivateWarning),
    ):
        con.execute(
            "CREATE TABLE t (a ENUM ('x', 'y', 'z'), n DOUBLE CHECK (n BETWEEN 0 AND 8), "
            "d DATE CHECK (d BETWEEN DATE '2000-01-01' AND DATE '2001-01-01'), "
            "k ENUM ('u', 'v', 'w'))"
        )
        run = prepare(con, "t", epsilon=9, target="k", recipe="private-rdt", trees=2, depth=2,
                      seed=3, ledger=Path(folder) / "l")  # fmt: skip
        return json.loads(run.execute().to_json())  # type: ignore[no-any-return]


MODEL = model()


def one_statement(sql: str, form: str) -> None:
    """Both parsers read the SQL as one statement, of the kind that was asked for."""
    (statement,) = duckdb.extract_statements(sql)
    kinds = duckdb.StatementType
    assert statement.type == (kinds.SELECT if form == "select" else kinds.CREATE)
    if "x" * 10_000 not in sql:
        (tree,) = sqlglot.parse(sql, dialect="duckdb")
        assert isinstance(tree, parsed.Query if form == "select" else parsed.Create)


@FUZZ
@given(data=st.data(), name=words)
def test_a_changed_model_is_refused_or_gives_one_statement(data: st.DataObject, name: str) -> None:
    content: Any = copy.deepcopy(MODEL)
    for _ in range(data.draw(st.integers(1, 3))):
        if not isinstance(content, dict | list) or not content:
            break
        path = data.draw(st.sampled_from(paths(content)[1:]))
        content = changed(content, path, data.draw(things), drop=data.draw(st.booleans()))
    try:
        forest = Forest.from_json(json.dumps(content))
        assert len(rules(forest)) >= len(forest.trees)
        for form in ("select", "view", "table", "macro"):
            one_statement(publish_sql(forest, "some table", form=form, name=name or None), form)
    except DpforestError as error:
        sentence(error)


@FUZZ
@given(names=names, values=values)
def test_a_model_of_hostile_words_gives_one_statement(names: list[str], values: list[str]) -> None:
    content = copy.deepcopy(MODEL)
    content["name"], content["recipe"], content["table"] = names[0], names[1], names[2]
    content["guarantee"].update(unit=names[1], noise=values[1])
    content["guarantee"].update(private=False, reasons=values)
    for attribute, name in zip(content["domain"]["attributes"], names, strict=False):
        attribute["name"] = name
    content["domain"]["attributes"][0].update(values=(values * 2)[:3], type="VARCHAR")
    content["domain"].update(classes=(values * 2)[:3], target=names[3], target_type="VARCHAR")
    try:
        forest = Forest.from_json(json.dumps(content))
    except DpforestError as error:
        assert len(values) < 3, sentence(error)  # noqa: PT017 -- two make a list with a duplicate
        return
    for form in ("select", "view", "table", "macro"):
        sql = publish_sql(forest, quote(names[2]), form=form, name=quote(names[0]))
        one_statement(sql, form)
        head = sql.split("\nWITH")[0].split("\nSELECT")[0].splitlines()
        kept = [line for line in head if line.strip() and not line.startswith("--")]
        assert len(kept) <= 1 or form != "select", "what a model says of itself stays a comment"


@FUZZ
@given(data=st.data(), names=names, values=values)
def test_a_changed_domain_is_refused_or_a_domain(
    data: st.DataObject, names: list[str], values: list[str]
) -> None:
    content: Any = {
        "target": names[3],
        "column": [
            {"name": names[0], "kind": "categorical", "domain": values, "nullable": False},
            {"name": names[1], "kind": "numeric", "lower": 0, "upper": 9.5, "bins": 4},
            {"name": names[2], "kind": "numeric", "edges": [1, 2, 3], "scale": "log"},
            {"name": names[3], "kind": "categorical", "domain": ["u", "v"]},
        ],
    }
    assert tomllib.loads(domain_toml(content)) == content, "what is written is read"
    path = data.draw(st.sampled_from(paths(content)[1:]))
    other = changed(content, path, data.draw(things), drop=data.draw(st.booleans()))
    try:
        domain = domain_from_mapping(other)
        assert len(domain.classes) >= 1
        types = dict.fromkeys([a.column for a in domain.attributes], VARCHAR)
        domain.bind({**types, domain.target: VARCHAR})
    except DpforestError as error:
        sentence(error)


@FUZZ
@given(st.text(max_size=200) | st.binary(max_size=200))
def test_any_file_is_refused_as_a_domain_or_read(content: str | bytes) -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "d.toml"
        file.write_bytes(
            content if isinstance(content, bytes) else content.encode(errors="replace")
        )
        with pytest.raises(DpforestError) as refusal:
            load_domain(file)
        sentence(refusal.value)


@settings(FUZZ, max_examples=10)
@given(names=names, values=values, recipe=st.sampled_from(["auto", "greedy-tree", "private-rdt"]))
@pytest.mark.more
def test_training_on_hostile_words_runs_single_statements(
    names: list[str], values: list[str], recipe: str
) -> None:
    """Every statement of a run is one statement, and the model scores its own table as Python."""
    domain = domain_from_mapping(
        {
            "target": names[3],
            "column": [
                {"name": names[0], "kind": "categorical", "domain": values},
                {"name": names[1], "kind": "numeric", "lower": 0, "upper": 9, "bins": 3},
                {"name": names[3], "kind": "categorical", "domain": values},
            ],
        }
    )
    shown: list[str] = []
    with TemporaryDirectory() as folder, duckdb.connect() as con:
        table = quote(names[2])
        con.execute(
            f"CREATE TABLE {table} ({quote(names[0])} VARCHAR, {quote(names[1])} INTEGER, "
            f"{quote(names[3])} VARCHAR)"
        )
        con.executemany(
            f"INSERT INTO {table} VALUES (?, ?, ?)",
            [(values[i % len(values)], i % 10, values[i % 2]) for i in range(60)],
        )
        run = prepare(con, table, epsilon=30, domain=domain, recipe=recipe, name="m",
                      trace=shown.append, ledger=Path(folder) / "l")  # fmt: skip
        forest = run.execute()
        for sql in shown:
            assert len(duckdb.extract_statements(sql)) == 1
        prefix = "our_"
        rows = forest.predict(con, table, prefix=prefix).fetchall()
        assert con.execute(f"SELECT count(*) FROM {table}").fetchall() == [(60,)]
    raw = [dict(zip([names[0], names[1]], row, strict=False)) for row in rows]
    best = forest.votes(raw).argmax(axis=1)
    assert [row[3] for row in rows] == [forest.domain.classes[int(b)] for b in best]
    assert not re.search(r"\{[{%#] (dpforest|codes|seats)", "".join(shown)), "no template is left"
