"""Every verb of the command line: what it prints, where, and how it ends."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import duckdb
import pytest
from models import bit_sets
from shell import SECRET, dpforest, make, query, refused, state, train

from dpforest_duckdb import load_forest
from dpforest_duckdb.cli.plan import _cost
from dpforest_duckdb.cli.sections import SECTIONS
from dpforest_duckdb.domain.file import load_domain
from dpforest_duckdb.privacy.plan import PlannedQuery

FOREST_KEYS = {"model", "recipe", "epsilon", "delta", "private", "trees", "nodes", "depth"}


def test_train_reports_the_forest_and_nothing_else(db: Path) -> None:
    said = dpforest(*train(db, "--name", "again", "--json"))
    assert set(said.facts) == FOREST_KEYS
    assert said.facts["model"] == "again"
    assert said.facts["private"] is True
    assert (said.facts["epsilon"], said.facts["delta"]) == (1, 0)
    assert 'Taken as public: "ill" and its 2 classes, 2 attributes' in said.err
    assert 'Privacy unit: each row of table "visits"' in said.err
    assert 'Spent on table "visits" so far: ε = 2.' in said.err
    models = dpforest("models", "--db", db, "--json").facts["models"]
    assert [model["model"] for model in models] == ["again", "risk"]


def test_train_for_people(db: Path) -> None:
    said = dpforest(*train(db, "--name", "again", "--timings", "--delta", "0.000001"))
    for word in ('stored as "again"', "auto", "ε = 1, δ = 0.000001, per row"):
        assert word in said.text
    for word in ("Timings depend on private rows", " s  encoding", "so far: ε = 2, δ = 0.000001"):
        assert word in said.err
        assert word not in said.out
    cap = ("budget", "set", "--db", db, "--table", "visits", "--epsilon", "4", "--delta", "0.00001")
    assert dpforest(*cap).code == 0
    said = dpforest(*train(db, "--name", "third", "--delta", "0.000001"))
    assert "ε = 3 of a cap of 4, 1 left; δ = 0.000002 of 0.00001, 0.000008 left." in said.err


@pytest.mark.more
def test_delta_is_spent_by_recipes_that_can_use_it(db: Path) -> None:
    delta = ("--delta", "1e-6", "--name", "new")
    said = dpforest(
        *train(db, "--recipe", "greedy-tree", "--delta", "1e-6", "--name", "x", "--json")
    )
    assert said.facts["delta"] == 0
    assert "Note: Recipe greedy-tree uses pure ε and spends no δ." in said.err
    planned = dpforest(*train(db, "--recipe", "boosted", *delta, "--dry-run", "--json")).facts
    assert planned["delta"] == 1e-6
    assert [set(query_) & {"epsilon", "rho"} for query_ in planned["plan"]][:3] == [
        {"epsilon"},
        {"epsilon"},
        {"rho"},
    ]
    shown = dpforest(*train(db, "--recipe", "boosted", *delta, "--dry-run")).text
    assert "cost ε = 1, δ = 0.000001" in shown
    assert "discrete Gaussian on gradients" in shown
    capped = ("budget", "set", "--db", db, "--table", "visits", "--epsilon", "9")
    dpforest(*capped, "--delta", "1e-9")
    before = state(db)
    refused(dpforest(*train(db, *delta)), "δ")
    assert state(db) == before
    dpforest(*capped, "--delta", "1e-5", "--raise")
    assert dpforest(*train(db, *delta, "--recipe", "boosted")).code == 0
    budget = dpforest("budget", "show", "--db", db, "--table", "visits").text
    assert "spent   ε = 3, δ = 0.000001\nleft    ε = 6, δ = 0.000009" in budget


@pytest.mark.parametrize(
    ("more", "delta"), [("", 0), ("amount DOUBLE CHECK (amount BETWEEN 0 AND 9), ", 1e-6)]
)
def test_the_default_spends_a_delta_only_if_a_recipe_that_may_follow_uses_one(
    more: str, delta: float, tmp_path: Path
) -> None:
    file = tmp_path / "grid.duckdb"
    with duckdb.connect(str(file)) as con:
        con.execute("CREATE TYPE v AS ENUM ('x', 'y', 'z')")
        con.execute(f"CREATE TABLE t (a v, b v, c v, d v, {more}k v)")
    said = dpforest(
        "train", "--db", file, "--table", "t", "--target", "k", "--privacy-unit", "row",
        "--epsilon", "1", "--delta", "1e-6", "--dry-run", "--json",
    )  # fmt: skip
    assert said.facts.get("delta", 0) == delta
    assert ("Note: Recipe auto uses pure ε and spends no δ." in said.err) == (delta == 0)


@pytest.mark.more
def test_options_that_do_nothing_or_protect_little_get_a_note(db: Path) -> None:
    deep = ("--dry-run", "--depth", "4")
    note = "Note: --depth has no effect: recipe {} sets the depth of its trees itself."
    assert note.format("auto") in dpforest(*train(db, *deep)).err
    assert note.format("log-odds") in dpforest(*train(db, *deep, "--recipe", "log-odds")).err
    assert "--depth" not in dpforest(*train(db, *deep, "--recipe", "greedy-tree")).err
    said = dpforest(*train(db, *deep, "--recipe", "dpdf"))
    assert "--depth counts the nodes on a path in dpdf, as its paper does: the most" in said.err
    assert "depth at most 3" in said.out
    few = dpforest(*train(db, "--dry-run", "--trees", "1", "--recipe", "joint-tables"))
    assert "Note: --trees has no effect: recipe joint-tables uses all attributes." in few.err
    large = ("--recipe", "boosted", "--dry-run", "--delta")
    assert "Note: δ = 0.5 is above 0.001" in dpforest(*train(db, *large, "0.5")).err
    assert "δ = 0.001" not in dpforest(*train(db, *large, "0.001")).err


def test_dry_run_touches_nothing(db: Path) -> None:
    before = state(db)
    said = dpforest(*train(db, "--dry-run", "--json", "--name", "again"))
    assert set(said.facts) == {"recipe", "cost", "left", "trees", "depth", "plan", "branches"}
    assert said.facts["cost"] == 1
    assert said.facts["left"] is None
    for query_ in said.facts["plan"]:
        assert set(query_) == {"purpose", "mechanism", "epsilon", "trees", "noise"}
        spread = query_["noise"]
        # counts have the discrete Laplace's deviation, a little below the continuous one
        assert spread is None or 0.5 < spread * min(query_["epsilon"]) < 2**0.5
    assert any(query_["noise"] for query_ in said.facts["plan"])
    table = dpforest(*train(db, "--dry-run", "--name", "again")).text
    first = table.splitlines()
    assert first[:4] == [
        "A dry run: no row is read, and nothing is debited.",
        'debit     cost ε = 1, before a row is read (table "visits": no cap)',
        "protects  each row, added or removed",
        "recipe    auto: a noisy count of the rows first, then by that number:",
    ]
    assert first[4].startswith("  1 to ")
    assert "count the rows of each class at each value" in first[4]
    assert "Every query:" in first[5:9]
    assert "discrete Laplace" in table
    assert state(db) == before


def test_dry_run_says_what_is_left_of_a_cap(db: Path) -> None:
    dpforest("budget", "set", "--db", db, "--table", "visits", "--epsilon", "1.5")
    said = dpforest(*train(db, "--dry-run", "--name", "again"))
    assert said.code == 1
    assert '(table "visits": left ε = 0.5)' in said.out
    assert "does not allow this run" in said.err


@pytest.mark.more
def test_dry_run_names_the_recipe_that_follows_if_one_attribute_suffices(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "d.duckdb")) as con:
        numbers = ", ".join(f"n{i} DOUBLE CHECK (n{i} BETWEEN 0 AND 9)" for i in range(6))
        con.execute(f"CREATE TABLE t ({numbers}, y ENUM ('a', 'b', 'c', 'd', 'e', 'f'))")
    asked = ("train", "--db", tmp_path / "d.duckdb", "--table", "t", "--target", "y")
    asked += ("--epsilon", "1", "--privacy-unit", "row", "--name", "m", "--dry-run")
    found = {b["recipe"]: b for b in dpforest(*asked, "--json").facts["branches"]}
    other = found["class-means"]["if_one_suffices"]
    assert all("if_one_suffices" not in b for name, b in found.items() if name != "class-means")
    (line,) = re.findall(r"^strongest: .*$", dpforest(*asked).text, re.MULTILINE)
    assert other == "log-odds"
    assert "These ranges assume equally frequent classes" in dpforest(*asked).text
    assert f"{other} uses what is left" in line


def test_show_sql_is_on_stderr_and_hides_the_salt(db: Path) -> None:
    said = dpforest(*train(db, "--name", "again", "--show-sql", "--json", "--privacy-unit", "who"))
    assert set(said.facts) == FOREST_KEYS
    for word in ("CREATE TEMP TABLE", "GROUP BY", "-- reads private rows: yes", "$salt"):
        assert word in said.err
    assert not re.search(r"\b\d{15,}\b", said.err), "a number as long as a salt"
    assert "CREATE TEMP TABLE" not in dpforest(*train(db, "--name", "third")).err
    shared = ("--db", db, "--model", "risk", "--show-sql", "--json")
    for words in (("score", "--table", "fresh", "--into", "s"), ("evaluate", "--table", "fresh")):
        said = dpforest(*words, *shared)
        assert said.facts
        assert "CASE" in said.err


def test_show_sql_marks_every_statement_that_reads_rows(db: Path) -> None:
    model = ("--db", db, "--model", "risk")
    for words, reads in (
        (train(db, "--name", "again"), True),
        (train(db, "--name", "third", "--dry-run"), False),
        (("evaluate", *model, "--table", "visits"), True),
        (("sql", *model), False),
        (("rules", *model), False),
        (("models", "--db", db), False),
        (("budget", "--db", db, "--table", "visits"), False),
        (("domain", "--db", db, "--table", "visits"), False),
    ):
        said = dpforest(*words, "--show-sql")
        assert said.code == 0
        shown = [text for text in said.err.split(";\n") if "SELECT" in text]
        assert shown, words
        assert all("-- reads private rows: " in text for text in shown)
        assert ("-- reads private rows: yes" in said.err) == reads, words


def test_domain_and_dry_run_name_no_table_of_the_user(
    db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DuckDB reports which tables a statement reads; functions of the catalogue are left out."""
    from dpforest_duckdb.engine.duckdb import DuckDBEngine

    run_, read = DuckDBEngine.run, set()

    def watched(self: DuckDBEngine, sql: str, *values: object, **more: object) -> object:
        read.update(self.connection.get_table_names(sql.replace("?", "NULL")))
        return run_(self, sql, *values, **more)

    monkeypatch.setattr(DuckDBEngine, "run", watched)
    assert dpforest("domain", "--db", db, "--table", "visits", "--target", "ill").code == 0
    assert read == set()
    assert dpforest(*train(db, "--name", "new", "--dry-run")).code == 0
    assert read == {"models"}
    assert dpforest("evaluate", "--db", db, "--model", "risk", "--table", "visits").code == 0
    assert "visits" in read


@pytest.mark.parametrize("seed", [("--seed", "1"), ("--not-private",)])
def test_a_seed_must_be_asked_for_twice(db: Path, seed: tuple[str, ...]) -> None:
    before = state(db)
    refused(dpforest(*train(db, "--name", "again", *seed)), "--seed", "--not-private", code=2)
    assert state(db) == before


def test_a_seed_repeats_and_is_flagged(db: Path, tmp_path: Path) -> None:
    texts = []
    for name in ("a.json", "b.json"):
        out = tmp_path / name
        said = dpforest(*train(db, "--seed", "5", "--not-private", "--out", out, "--json"))
        assert said.facts["private"] is False
        assert "Warning" in said.err
        texts.append(out.read_text())
    assert texts[0] == texts[1]
    assert "-- private: NO" in dpforest("sql", "--model", tmp_path / "a.json").text


def test_a_seed_is_refused_on_a_capped_table(db: Path) -> None:
    dpforest("budget", "set", "--db", db, "--table", "visits", "--epsilon", "9")
    before = state(db)
    said = dpforest(*train(db, "--name", "again", "--seed", "5", "--not-private"))
    refused(said, "visits", "not private")
    assert state(db) == before


def test_a_run_past_the_cap_is_refused(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dpforest_duckdb.engine.snapshot import DuckDBSnapshot

    dpforest("budget", "set", "--db", db, "--table", "visits", "--epsilon", "1.25")
    before = state(db)
    monkeypatch.setattr(DuckDBSnapshot, "encode", lambda *a, **k: pytest.fail("rows were read"))
    said = dpforest(*train(db, "--name", "again"))
    refused(said, "ε = 1 but only 0.25", "cap of 1.25", '"visits"')
    assert state(db) == before


def test_out_is_checked_before_the_debit(db: Path, tmp_path: Path) -> None:
    taken = tmp_path / "taken.json"
    taken.write_text("mine")
    before = state(db)
    for out, sentence, code in (
        (tmp_path / "no" / "m.json", "--out", 1),
        (tmp_path / "m.txt", "--out must end in .json", 2),
        (taken, "--replace", 1),
        (tmp_path, "--out", 2),
    ):
        refused(dpforest(*train(db, "--out", out)), sentence, code=code)
        assert state(db) == before
    book = tmp_path / "book.json"
    for words in (("--ledger", book), ("--ledger", tmp_path / "no" / ".." / "book.json")):
        refused(dpforest(*train(db, "--out", book, *words)), "--out", "ledger", code=2)
        assert not book.exists()
    assert taken.read_text() == "mine"
    assert dpforest(*train(db, "--out", taken, "--replace", "--json")).facts["model"] == "visits"
    assert load_forest(taken).private
    assert dpforest("models", "--db", db, "--json").facts["models"][0]["model"] == "risk"


def test_a_taken_name_is_refused_before_the_debit(db: Path) -> None:
    before = state(db)
    for name in ("risk", "RISK"):
        said = dpforest(*train(db, "--name", name))
        refused(said, f'There is a model "{name}" already', "--name", "--replace")
    assert state(db) == before
    said = dpforest(*train(db, "--name", "Risk", "--replace", "--json"))
    assert said.facts["model"] == "Risk"
    models = dpforest("models", "--db", db, "--json").facts["models"]
    assert [model["model"] for model in models] == ["Risk"], "compared without regard to case"


def test_without_a_name_the_model_has_the_tables(db: Path) -> None:
    assert dpforest(*train(db, "--json")).facts["model"] == "visits"
    refused(dpforest(*train(db)), '"visits" already')


@pytest.mark.parametrize(
    ("choice", "attributes"),
    [
        (("--columns", "AGE"), ["age"]),
        (("--columns", "age,city", "--exclude", "city"), ["age"]),
        (("--columns", "age", "--columns", "city"), ["age", "city"]),
        (("--exclude", "age"), ["city"]),
    ],
)
def test_attributes_can_be_chosen(db: Path, choice: tuple[str, ...], attributes: list[str]) -> None:
    assert dpforest(*train(db, "--name", "few", *choice)).code == 0
    shown = dpforest("models", "show", "few", "--db", db, "--json").facts
    assert shown["attributes"] == attributes


def test_a_name_with_a_comma_can_be_chosen(db: Path) -> None:
    make(db, 'ALTER TABLE visits ADD COLUMN "a, b" BOOLEAN')
    said = dpforest(*train(db, "--name", "comma", "--columns", '"a, b",age', "--json"))
    assert said.code == 0, said.err
    shown = dpforest("models", "show", "comma", "--db", db, "--json").facts
    assert shown["attributes"] == ["age", "a, b"]


def test_rows_per_unit_are_bounded_and_printed(db: Path) -> None:
    said = dpforest(*train(db, "--name", "unit", "--privacy-unit", "WHO", "--rows-per-unit", "3"))
    changed = 'earlier runs protected each row; this one protects each "who" (at most 3 rows used)'
    assert changed in said.err
    assert 'Privacy unit: each "who" (at most 3 rows used)' in said.err
    assert 'per "who" (at most 3 rows used)' in said.text
    shown = dpforest("models", "show", "unit", "--db", db, "--json").facts["guarantee"]
    assert (shown["unit"], shown["rows_per_unit"]) == ("who", 3)
    plans = [
        dpforest(*train(db, "--dry-run", "--json", "--name", "x", *unit)).facts["plan"]
        for unit in ((), ("--privacy-unit", "who", "--rows-per-unit", "3"))
    ]
    one, three = ([q["noise"] for q in plan if q["noise"]] for plan in plans)
    assert all(wide > 2.5 * narrow for narrow, wide in zip(one, three, strict=True))


def test_rows_are_protected_only_with_a_word_about_persons(db: Path, tmp_path: Path) -> None:
    """Whoever caps or trains without a privacy unit, or with another one than the domain's."""
    said = dpforest("budget", "set", "--db", db, "--table", "visits", "--epsilon", "9")
    assert "protect persons with --privacy-unit COLUMN" in said.err
    again = dpforest("budget", "set", "--db", db, "--table", "visits", "--epsilon", "8")
    assert "protect persons" not in again.err, "said once"
    file = tmp_path / "visits.toml"
    content = dpforest("domain", "--db", db, "--table", "visits", "--target", "ill").out
    content = re.sub(r'name = "who"\n', 'name = "who"\nkind = "identifier"\n', content)
    file.write_text(f'privacy_unit = "who"\n{content}')
    said = dpforest(*train(db, "--name", "row", "--domain", file, "--privacy-unit", "row"))
    assert 'the domain names "who" as the privacy unit; this run protects each row' in said.err


def test_sql_gives_the_same_result_as_score(db: Path) -> None:
    scored = dpforest(
        *("score", "--db", db, "--model", "risk", "--table", "fresh", "--into", "scored", "--json")
    ).facts
    assert set(scored) == {"into", "model", "columns", "form"}
    assert scored["columns"] == ["who", "age", "city", "ill", "prediction", "p_false", "p_true"]
    # columns in the order of score, whatever their own order: EXCEPT and ORDER BY go by position
    same = "FROM scored ORDER BY ALL"
    expected = query(db, same)
    assert len(expected) == 4
    assert all(row[-3] in (True, False) and row[-1] + row[-2] == 1 for row in expected)
    shared = ("sql", "--db", db, "--model", "risk", "--from", "fresh")
    select = dpforest(*shared).text
    assert query(db, f"SELECT * FROM ({select.rstrip().rstrip(';')}) ORDER BY ALL") == expected
    for form in ("view", "table"):
        make(db, dpforest(*shared, "--as", form, "--into", f"a {form}").text)
        assert query(db, f'FROM "a {form}" ORDER BY ALL') == expected
    make(db, dpforest("sql", "--db", db, "--model", "risk", "--as", "macro").text)
    assert query(db, "FROM risk_scored('fresh') ORDER BY ALL") == expected


def test_sql_for_another_engine(db: Path) -> None:
    model = ["sql", "--db", db, "--model", "risk", "--dialect"]
    facts = dpforest(*model, "postgresql", "--from", "fresh", "--json").facts
    assert facts["dialect"] == "postgres"
    assert "AS MATERIALIZED" in facts["sql"]
    assert "EXCLUDE" not in facts["sql"]
    unknown = dpforest(*model, "postgres", "--from", "elsewhere")
    assert (unknown.code, unknown.out) == (2, "")
    assert "--columns" in unknown.err
    assert "--key" in unknown.err
    assert dpforest(*model, "sqlite", "--from", "elsewhere", "--key", "id").code == 0
    wrong = dpforest(*model, "postgers")
    assert (wrong.code, wrong.out) == (2, "")
    assert 'Did you mean "postgres"?' in wrong.err


def test_sql_for_dbt(db: Path) -> None:
    model = ["sql", "--db", db, "--model", "risk", "--as"]
    assert "{{ source('raw', 'visits') }}" in dpforest(*model, "dbt", "--from", "raw.visits").out
    assert 'name: "p_true"' in dpforest(*model, "dbt-schema").out
    refused = dpforest(*model, "dbt-schema", "--dialect", "polars")
    assert (refused.code, refused.out) == (2, "")


def test_sql_json_and_defaults(db: Path, tmp_path: Path) -> None:
    facts = dpforest("sql", "--db", db, "--model", "risk", "--as", "view", "--json").facts
    assert set(facts) == {"model", "as", "dialect", "sql"}
    assert 'CREATE VIEW "risk_scored"' in facts["sql"]
    assert 'FROM "visits"' in facts["sql"], "by default the training table"
    assert "-- private: yes" in facts["sql"]
    said = dpforest("sql", "--db", db, "--model", "risk", "--into", "v")
    refused(said, "--into", "--as view", code=2)
    refused(dpforest("sql", "--model", "risk"), "--db", ".json", code=2)
    assert dpforest("sql", "--model", "risk", "--db", db, "--as", "csv").code == 2


def test_several_models_in_one_pass(db: Path) -> None:
    """Each model is debited, and none if they do not all fit."""
    words = ("--name", "m", "--epsilon", "0.5", "--epsilon", "2", "--recipe", "auto")
    said = dpforest(*train(db, *words, "--recipe", "dpdf", "--depth", "2", "--json"))
    models = said.facts["models"]
    assert said.err.count("Taken as public") == 1, "what is the same for all is said once"
    assert [m["model"] for m in models] == ["m auto 0.5", "m auto 2", "m dpdf 0.5", "m dpdf 2"]
    assert [m["epsilon"] for m in models] == [0.5, 2, 0.5, 2]
    shown = ("budget", "--db", db, "--table", "visits", "--json")
    assert dpforest(*shown).facts["spent"] == 1 + 5
    assert query(db, "SELECT count(*) FROM duckdb_tables() WHERE temporary") == [(0,)]
    assert dpforest("budget", "set", *shown[1:5], "--epsilon", "8").code == 0
    before = state(db)
    more = ("--name", "k", "--epsilon", "1", "--epsilon", "1.5")
    refused(dpforest(*train(db, *more)), "needs ε = 1.5", "only 1 of", "before it count", "visits")
    small = ("--name", "k", "--epsilon", "0.1", "--epsilon", "0.2", "--delta", "1e-6")
    refused(dpforest(*train(db, *small)), "visits", "allows no δ: leave --delta out")
    refused(dpforest(*train(db, *more, "--out", "x.json")), "--out", code=2)
    refused(dpforest(*train(db, "--epsilon", "1", "--epsilon", "1")), "--epsilon", code=2)
    assert state(db) == before
    planned = dpforest(*train(db, *more, "--dry-run", "--json"))
    assert planned.code == 1, "the cap does not allow both"
    assert [run["cost"] for run in json.loads(planned.out)["runs"]] == [1, 1.5]
    assert len(dpforest(*train(db, *more, "--dry-run")).out.split("cost ε")) == 3


def test_temporary_space_is_printed_and_can_be_refused(db: Path, tmp_path: Path) -> None:
    before = state(db)
    said = dpforest(*train(db, "--dry-run", "--rows-at-most", "1000000"))
    assert re.search(r"Temporary space: at most \d+ MB per million rows", said.err)
    many = train(db, "--name", "m", "--rows-at-most", str(10**13))
    refused(dpforest(*many), "10,000,000,000,000 rows", "GB", "--temp-dir")
    refused(dpforest(*train(db, "--rows-at-most", "0")), "--rows-at-most", code=2)
    assert state(db) == before


def test_the_fast_form_gives_the_same(db: Path) -> None:
    shared = ("sql", "--db", db, "--model", "risk", "--from", "fresh")
    plain = dpforest(*shared).text
    with bit_sets():
        fast = dpforest(*shared, "--fast").text
    assert "dpforest_key" in fast
    assert "dpforest_key" not in plain
    assert query(db, fast) == query(db, plain)


def test_the_size_of_large_sql_is_printed_and_refused(
    db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("sql", "--db", db, "--model", "risk")
    said = dpforest(*words)
    assert f"{len(said.text.encode()) / 1000:.0f} KB of SQL" in said.err
    assert "Warning" not in said.err
    module = sys.modules["dpforest_duckdb.cli.sql"]
    monkeypatch.setattr(module, "WARNED_BYTES", 100)
    assert "Athena" in dpforest(*words).err
    monkeypatch.setattr(module, "MAX_BYTES", 1000)
    refused(dpforest(*words), "MB", "--force")
    assert dpforest(*words, "--force").text == said.text


def test_score_keeps_rows_and_columns_and_replaces_only_on_request(db: Path) -> None:
    shared = ("score", "--db", db, "--model", "risk", "--table")
    assert dpforest(*shared, "visits", "--into", "scored").code == 0
    assert query(db, "SELECT count(*) FROM scored") == [(1000,)]
    difference = "SELECT who, age, city, ill FROM scored EXCEPT ALL SELECT * FROM visits"
    assert query(db, difference) == []
    before = state(db)
    refused(dpforest(*shared, "fresh"), "--into", code=2)
    refused(dpforest(*shared, "fresh", "--into", "SCORED"), "--into", "--replace")
    refused(dpforest(*shared, "fresh", "--into", "dpforest.models", "--replace"), "dpforest")
    refused(
        dpforest(*shared, "fresh", "--into", "FRESH", "--replace"),
        "may be the table that is scored",
    )
    refused(dpforest(*shared, "fresh", "--into", "visits", "--replace"), "privacy budget")
    refused(dpforest(*shared, "scored", "--into", "twice"), '"prediction"', "--prefix")
    assert state(db) == before
    assert dpforest(*shared, "fresh", "--into", "scored", "--replace").code == 0
    assert query(db, "SELECT count(*) FROM scored") == [(4,)]
    for written in ("clinic.fresh", "CLINIC.main.Fresh", "main.fresh"):
        said = dpforest(*shared, written, "--into", "fresh", "--replace")
        refused(said, "may be the table that is scored")
    query(db, 'CREATE TABLE "É" (a INTEGER)')
    query(db, 'ALTER TABLE visits RENAME TO "é"')
    refused(dpforest(*shared, "fresh", "--into", "é", "--replace"), "privacy budget")
    assert dpforest(*shared, "scored", "--into", "twice", "--prefix", "old_").code == 0
    assert query(db, "SELECT count(*) FROM twice WHERE old_prediction = prediction") == [(4,)]


def test_a_table_is_replaced_whatever_the_model_is_called(db: Path) -> None:
    assert dpforest(*train(db, "--name", "CREATE TABLE x")).code == 0
    score = ("score", "--db", db, "--model", "CREATE TABLE x", "--into", "s", "--table")
    assert dpforest(*score, "fresh").code == 0
    assert dpforest(*score, "visits", "--replace").code == 0
    assert query(db, "SELECT count(*) FROM s") == [(1000,)]


def test_a_model_file_scores_in_another_database(db: Path, tmp_path: Path) -> None:
    file, other = tmp_path / "risk.json", tmp_path / "other.duckdb"
    assert dpforest("models", "export", "risk", "--db", db, "--out", file).code == 0
    make(other, "CREATE TABLE t AS SELECT 70 AS AGE, 'Zug' AS city, 1 AS extra")
    said = dpforest(
        *("score", "--db", other, "--model", file, "--table", "t", "--into", "s", "--json")
    )
    assert said.facts["model"] == "risk"
    assert query(other, "SELECT age, extra, prediction FROM s") == [(70, 1, True)]
    assert dpforest("rules", "--model", file, "--json").facts["rules"]
    select = dpforest("sql", "--model", file, "--from", "t").text
    assert query(other, select)[0][3] is True


def test_evaluate_exact(db: Path) -> None:
    said = dpforest("evaluate", "--db", db, "--model", "risk", "--table", "visits", "--json")
    assert set(said.facts) == {
        *("model", "forest", "table", "rows", "accuracy", "log_loss", "auc", "private"),
        *("bins", "bin_edges", "confusion", "most_frequent"),
    }
    assert said.facts["rows"] == 1000
    assert said.facts["accuracy"] > 0.9
    assert said.facts["private"] is False
    assert "not private" in said.err
    assert "the model was trained on these rows" in said.err
    text = dpforest("evaluate", "--db", db, "--model", "risk", "--table", "visits").text
    assert f"accuracy  {said.facts['accuracy']:.4f}" in text
    first, _ = said.facts["confusion"]
    assert sum(map(sum, said.facts["confusion"])) == 1000
    assert f"false {first[0]} {first[1]}" in " ".join(text.split())


def test_evaluate_on_a_capped_table_wants_epsilon_and_debits_it(db: Path) -> None:
    dpforest("budget", "set", "--db", db, "--table", "visits", "--epsilon", "4")
    shared = ("evaluate", "--db", db, "--model", "risk", "--table", "visits")
    before = state(db)
    refused(dpforest(*shared), '"visits" has a cap', "--epsilon")
    refused(dpforest(*shared, "--epsilon", "3.5"), "3.5", "only 3 of the cap of 4")
    for unit in (("--privacy-unit", "row"), ("--rows-per-unit", "2")):
        refused(dpforest(*shared, *unit), unit[0], "go with --epsilon", code=2)
    assert state(db) == before
    said = dpforest(*shared, "--epsilon", "2.5", "--json")
    figures = {"model", "forest", "table", "rows", "accuracy", "log_loss", "auc", "private"}
    figures |= {"bins", "bin_edges", "confusion", "most_frequent"}
    noisy = {"epsilon", "privacy_unit", "rows_per_unit", "noise", "accuracy_noise"}
    assert set(said.facts) == {*figures, *noisy}
    assert said.facts["private"] is True
    assert (said.facts["privacy_unit"], said.facts["rows_per_unit"]) == ("row", 1)
    assert said.facts["epsilon"] == 2.5
    assert abs(said.facts["rows"] - 1000) < 200
    assert "not private" not in said.err
    left = dpforest("budget", "show", "--db", db, "--json").facts
    assert left["left"] == 0.5
    assert [entry["recipe"] for entry in left["entries"]] == ["auto", "evaluate"]
    text = dpforest(*shared, "--epsilon", "0.5").text
    assert "each row, at ε = 0.5" in text
    assert "noise     2.8 (standard deviation of one count" in text


def test_evaluate_marks_figures_of_a_model_that_is_not_private(db: Path) -> None:
    made = dpforest(*train(db, "--name", "seeded", "--seed", "1", "--not-private"))
    assert made.code == 0, made.err
    shared = ("evaluate", "--db", db, "--model", "seeded", "--table", "fresh", "--epsilon", "1")
    said = dpforest(*shared, "--json")
    assert said.facts["private"] is False
    assert "not private" in said.facts["reasons"][0]
    assert "--unseen" in said.err
    assert dpforest(*shared, "--unseen", "--json").facts["private"] is True


def test_budget_json_and_raising(db: Path) -> None:
    show = ("budget", "show", "--db", db, "--json")
    set_ = ("budget", "set", "--db", db, "--table", "visits", "--json", "--epsilon")
    facts = dpforest(*show, "--table", "visits").facts
    assert set(facts) == {
        *("table", "cap", "spent", "left", "delta_cap", "delta_spent"),
        *("privacy_unit", "rows_per_unit", "entries"),
    }
    assert (facts["table"], facts["cap"], facts["spent"], facts["left"]) == (
        "visits",
        None,
        1,
        None,
    )
    (entry,) = facts["entries"]
    assert set(entry) == {
        *("time", "recipe", "model", "epsilon", "delta", "private", "state"),
        *("privacy_unit", "rows_per_unit"),
    }
    assert (entry["model"], entry["epsilon"], entry["state"]) == ("risk", 1, "done")
    assert dpforest(*set_, "3").facts["left"] == 2, "what was spent before counts"
    before = state(db)
    refused(dpforest(*set_, "4"), '"visits" has a cap of ε = 3', "--raise", "become 4")
    refused(dpforest(*set_, "3", "--delta", "0.1"), "cap of δ = 0", "--raise")
    refused(dpforest(*set_, "3", "--privacy-unit", "who"), "protects each row", '"who"')
    assert state(db) == before
    assert dpforest(*set_, "4", "--raise").facts["cap"] == 4
    said = dpforest(*set_, "0.5")
    assert (said.facts["cap"], said.facts["left"]) == (0.5, 0)
    assert "every run is refused" in said.err
    shown = dpforest(*show).facts
    assert shown == said.facts, "the one table with a budget needs no --table"


def test_budget_names_the_options_that_are_missing(db: Path) -> None:
    before = state(db)
    shared = ("--db", db)
    refused(dpforest("budget", "set", *shared, "--epsilon", "1"), "--table", code=2)
    refused(dpforest("budget", "set", *shared, "--table", "visits"), "--epsilon", code=2)
    for idle in (
        *(("--epsilon", "1"), ("--delta", "0"), ("--privacy-unit", "row")),
        *(("--rows-per-unit", "1"), ("--raise",)),
    ):
        refused(dpforest("budget", "show", *shared, *idle), idle[0], "budget set", code=2)
    assert state(db) == before


def test_budget_of_several_tables_asks_which(tmp_path: Path) -> None:
    database = tmp_path / "d.duckdb"
    make(database, "CREATE TABLE one (a INT)", "CREATE TABLE two (a INT)")
    refused(dpforest("budget", "--db", database), "--table", "one, two", code=2)


def test_models_list_show_drop(db: Path) -> None:
    listed = dpforest("models", "--db", db, "--json").facts
    assert set(listed) == {"models"}
    assert [set(model) for model in listed["models"]] == [FOREST_KEYS | {"target", "table"}]
    assert "risk" in dpforest("models", "list", "--db", db).text
    shown = dpforest("models", "show", "risk", "--db", db, "--json").facts
    more = {"table", "target", "classes", "attributes", "guarantee", "limited", "picked"}
    assert set(shown) == FOREST_KEYS | more
    assert shown["classes"] == ["false", "true"]
    assert "ε = 1, δ = 0, per row" in dpforest("models", "show", "risk", "--db", db).text
    refused(dpforest("models", "show", "--db", db), "models show NAME", code=2)
    refused(dpforest("models", "drop", "zzz", "--db", db), '"zzz"')
    refused(dpforest("models", "drop", "risk"), "--db", code=2)
    for words, sentence in (
        (("list", "risk"), "models show risk"),
        (("show", "risk", "--model", "other"), "--model"),
        (("drop", "risk", "--out", "m.json"), "--out goes with models export"),
        (("drop", "risk", "--replace"), "--replace goes with"),
        (("export", "risk", "--out", "m.json", "--name", "m"), "--name goes with models import"),
    ):
        refused(dpforest("models", *words, "--db", db), sentence, code=2)
    dropped = dpforest("models", "drop", "RISK", "--db", db, "--json").facts
    assert dropped == {"model": "RISK", "action": "drop"}
    assert dpforest("models", "--db", db).text == "There is no model in the database.\n"
    assert dpforest("budget", "--db", db, "--json").facts["spent"] == 1, "the debit stays"


def test_models_export_and_import(db: Path, tmp_path: Path) -> None:
    file, other = tmp_path / "m.json", tmp_path / "other.duckdb"
    export = ("models", "export", "risk", "--db", db)
    refused(dpforest(*export), "--out", code=2)
    assert dpforest(*export, "--out", file, "--json").facts == {"model": "risk", "action": "export"}
    refused(dpforest(*export, "--out", file), "--replace")
    assert dpforest(*export, "--out", file, "--replace").code == 0
    duckdb.connect(str(other)).close()
    into = ("models", "import", file, "--db", other)
    assert dpforest(*into, "--json").facts == {"model": "risk", "action": "import"}
    refused(dpforest(*into), '"risk" already', "--replace")
    assert dpforest(*into, "--replace").code == 0
    assert dpforest(*into, "--name", "second").code == 0
    back = tmp_path / "back.json"
    dpforest("models", "export", "second", "--db", other, "--out", back)
    named = json.loads(file.read_text()) | {"name": "second"}
    assert json.loads(back.read_text()) == named


def test_what_shows_a_model_says_that_it_is_not_private(db: Path) -> None:
    trained = dpforest(*train(db, "--name", "open", "--seed", "1", "--not-private"))
    assert "Note: after a run that is not private, this table cannot be capped." in trained.err
    for verb in ("show", "rules"):
        for more in ((), ("--json",)):
            said = dpforest(verb, "--db", db, "--model", "open", *more)
            assert "This model is not private, so do not publish it" in said.err
            assert "not private" not in dpforest(verb, "--db", db, "--model", "risk", *more).err


def test_rules_are_every_path_with_noisy_figures(db: Path) -> None:
    found = dpforest("rules", "--db", db, "--model", "risk", "--json").facts
    assert set(found) == {"rules"}
    for rule in found["rules"]:
        assert {"rule", "counts", "noise", "confidence", "support", "prediction"} <= set(rule)
    nodes = dpforest("models", "show", "risk", "--db", db, "--json").facts["nodes"]
    assert len(found["rules"]) == nodes
    leaves = dpforest("rules", "--db", db, "--model", "risk", "--leaves-only", "--json").facts
    assert leaves["rules"] == [rule for rule in found["rules"] if rule["leaf"]]
    most = dpforest("rules", "--db", db, "--model", "risk", "--top", 3, "--json").facts["rules"]
    support = sorted((rule["support"] or 0 for rule in found["rules"]), reverse=True)
    assert [rule["support"] for rule in most] == support[:3]
    said = dpforest("rules", "--db", db, "--model", "risk")
    assert "age <= " in said.text
    assert "classes false, true" in said.err


def test_domain_prints_toml_that_trains_once_it_is_filled_in(db: Path, tmp_path: Path) -> None:
    said = dpforest("domain", "--db", db, "--table", "visits", "--target", "ILL")
    content = tomllib.loads(said.text)
    assert content["target"] == "ill"
    assert [column["name"] for column in content["column"]] == ["who", "age", "city", "ill"]
    assert "kind" not in content["column"][0]
    assert said.text.count("TODO") == 1
    assert "not declared: 1" in said.err
    file = tmp_path / "visits.toml"
    file.write_text(said.text)
    before = state(db)
    refused(dpforest(*train(db, "--domain", file, "--name", "x")), '"who"', "kind")
    assert state(db) == before
    lines = said.text.splitlines()
    todo = next(number for number, line in enumerate(lines) if "TODO" in line)
    lines[todo] = 'kind = "identifier"'
    file.write_text("\n".join(lines))
    assert load_domain(file).identifiers == ("who",)
    refused(dpforest(*train(db, "--domain", file, "--name", "x")), '"who"', "--privacy-unit")
    assert state(db) == before
    by_file = train(db, "--domain", file, "--name", "x", "--privacy-unit", "who")
    assert f"from the file {file}" in dpforest(*by_file).err


def test_domain_json_and_errors(db: Path) -> None:
    facts = dpforest("domain", "--db", db, "--table", "visits", "--json").facts
    assert set(facts) == {"target", "column"}
    assert facts["target"] is None
    assert facts["column"][2]["domain"] == ["Bern", "Genf", "Zug"]
    asked = ("domain", "--db", db, "--table", "visits", "--target", "zzz")
    refused(dpforest(*asked), '"zzz"', "--target")
    blank = dpforest("domain", "--db", db, "--table", "visits").text
    assert tomllib.loads(blank)["target"] == ""


def test_recipes() -> None:
    facts = dpforest("recipes", "--json").facts
    assert set(facts) == {"recipes"}
    keys = {"name", "title", "year", "private_as_published", "rigorous_repair", "pieces"}
    for recipe in facts["recipes"]:
        assert keys <= set(recipe)
    assert {"auto", "dpdf"} <= {recipe["name"] for recipe in facts["recipes"]}
    assert "Fletcher" in dpforest("recipes").text
    shown = dpforest("recipes", "dpdf").text
    for word in ("paper", "flaw", "repair", "Gini"):
        assert word in shown
    refused(dpforest("recipes", "dpfd"), "did you mean dpdf")


def test_wrong_usage_ends_with_2(db: Path) -> None:
    before = state(db)
    for words in (
        ("zzz",),
        ("train",),
        ("train", "--db", db),
        train(db, "--depth", "deep"),
        train(db, "--depth", "0"),
        train(db, "--trees", "-1"),
        train(db, "--threads", "0"),
        train(db, "--zzz"),
        ("score", "--db", db, "--table", "fresh", "--into", "s"),
        ("models", "zzz"),
        ("budget", "show", "--db", db, "--rows-per-unit", "0"),
    ):
        said = dpforest(*words)
        assert said.code == 2, words
        assert said.out == ""
        assert "Error: " in said.err
    assert state(db) == before


def test_help_and_version() -> None:
    assert dpforest("--version").text.startswith("dpforest 0.")
    for verb in ("train", "score", "sql", "evaluate", "rules", "models", "budget", "domain"):
        said = dpforest(verb, "--help")
        assert "--json" in said.text
        assert "--show-sql" in said.text


def test_no_summary_of_a_verb_is_cut_in_the_list_of_verbs() -> None:
    assert "..." not in dpforest("--help").text.partition("Commands:")[2]


def test_the_help_of_train_has_sections() -> None:
    said = dpforest("train", "--help").text
    found = re.findall(r"^(\w.*):\n((?:  .*\n)+)", said, re.MULTILINE)
    sections = {name: re.findall(r"^  (-[\w-]+)", options, re.MULTILINE) for name, options in found}
    assert list(sections) == [*SECTIONS, "Options"]
    assert sections["Options"] == ["-h"], "every option is below a heading"
    assert "--epsilon" in sections["Privacy and budget"]
    assert "--recipe" in sections["Forest"]


def test_importing_and_help_load_no_database_and_no_numbers() -> None:
    program = (
        "import sys, dpforest_duckdb.cli as cli\n"
        "try: cli.app(['train', '--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted({'duckdb', 'numpy', 'opendp', 'rich', 'jinja2'} & set(sys.modules)))"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert ended.stdout.decode().splitlines()[-1] == "[]"


def test_an_unexpected_error_does_not_show_its_text(
    db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dpforest_duckdb.model import store

    def load(*args: object) -> None:
        raise ValueError(f"{SECRET}-7")

    monkeypatch.setattr(store, "load", load)
    said = dpforest("rules", "--db", db, "--model", "risk")
    assert said.code == 1
    assert said.out == ""
    assert "unexpected ValueError" in said.err


def test_a_recipe_as_published_is_flagged_and_refused_under_a_cap(db: Path) -> None:
    words = train(db, "--recipe", "dpdf", "--as-published", "--name", "flawed")
    said = dpforest(*words, "--json")
    assert said.facts["private"] is False
    assert said.err.count("Warning: not private: ") == 2
    scored = dpforest(
        "score", "--db", db, "--model", "flawed", "--table", "fresh", "--into", "s", "--json"
    )
    assert scored.facts["model"] == "flawed"
    assert "Warning: the model is NOT PRIVATE" in scored.err
    assert "-- private: NO" in dpforest("sql", "--db", db, "--model", "flawed").text
    cap = ("budget", "set", "--db", db, "--table", "visits", "--epsilon", "9")
    refused(dpforest(*cap), "was not private")
    before = state(db)
    refused(dpforest(*train(db, "--as-published", "--name", "x")), "auto", "--as-published")
    assert state(db) == before


def test_resources_can_be_bounded(db: Path, tmp_path: Path) -> None:
    bounds = ("--threads", "1", "--memory-limit", "500MB", "--temp-dir", tmp_path)
    assert dpforest(*train(db, "--name", "small", *bounds)).code == 0
    shared = ("--db", db, "--model", "small", "--table", "fresh", *bounds)
    assert dpforest("score", *shared, "--into", "s").code == 0
    assert dpforest("evaluate", *shared).code == 0
    assert [entry.name for entry in tmp_path.iterdir()] == [db.parent.name], "no spill is left"


def test_a_ledger_may_lie_elsewhere(tmp_path: Path) -> None:
    db, ledger = tmp_path / "d.duckdb", tmp_path / "book"
    make(db, "CREATE TABLE visits (age INT CHECK (age BETWEEN 0 AND 9), ill BOOLEAN)")
    assert dpforest(*train(db, "--ledger", ledger)).code == 0
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["book", "d.duckdb"]
    shown = ("budget", "--db", db, "--table", "visits")
    assert dpforest(*shown, "--ledger", ledger, "--json").facts["spent"] == 1
    refused(dpforest(*shown), "does not hold the last debit", "--ledger")


def test_budgets_follow_a_table_that_is_renamed(db: Path) -> None:
    dpforest("budget", "set", "--db", db, "--table", "visits", "--epsilon", "2")
    make(db, "ALTER TABLE visits RENAME TO calls", "CREATE TABLE visits AS FROM fresh")
    facts = dpforest("budget", "--db", db, "--table", "calls", "--json").facts
    assert (facts["table"], facts["cap"], facts["spent"]) == ("calls", 2, 1)


@pytest.mark.parametrize("verb", ["audit", "budget", "models"])
def test_an_unknown_action_is_named_with_the_known_ones(verb: str) -> None:
    said = dpforest(verb, "zzz")
    assert said.code == 2
    assert '"zzz" is none of these' in said.err
    assert "|" in said.err
    assert "Value error" not in said.err


@pytest.mark.parametrize(
    ("few", "many", "shown"),
    [
        ((20,), (20,), "0.00000002"),
        ((15,), (5,), "0.000000015 to 0.000000005"),
        ((9, 4), (7, 5, 2), "0.000000002 to 0.000000009"),
    ],
)
def test_a_cost_is_shown_as_one_range(
    few: tuple[int, ...], many: tuple[int, ...], shown: str
) -> None:
    forms = [PlannedQuery("tables", "joint noise", each) for each in (few, many)]
    assert _cost(*forms) == shown
