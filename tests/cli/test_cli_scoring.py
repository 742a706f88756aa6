"""The verbs score and sql give the same predictions, and evaluate counts how many are right."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from models import bit_sets
from shell import dpforest, make, query, refused, state, train

from dpforest_duckdb.cli.evaluate import _spread
from dpforest_duckdb.scoring.dialects import DIALECTS


def test_sql_gives_the_same_result_as_score(db: Path) -> None:
    scored = dpforest(
        *("score", "--db", db, "--model", "risk", "--table", "fresh", "--into", "scored", "--json")
    ).facts
    assert set(scored) == {"into", "model", "private", "columns", "form"}
    shown = dpforest("models", "show", "risk", "--db", db, "--json").facts
    assert scored["private"] == shown["private"]
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


def test_all_columns_that_are_missing_are_named(db: Path) -> None:
    make(db, "CREATE TABLE persons AS SELECT who FROM visits")
    missing = 'There are no columns "age", "city", which the model reads: add them to '
    rows = ("--db", db, "--model", "risk", "--table", "persons")
    refused(dpforest("score", *rows, "--into", "s"), f"{missing}the rows.")
    columns = ("--dialect", "postgres", "--columns", "who", "--from", "persons")
    refused(dpforest("sql", "--db", db, "--model", "risk", *columns), f"{missing}--columns.")
    make(db, "ALTER TABLE persons ADD COLUMN ill BOOLEAN")
    refused(dpforest("evaluate", *rows), f"{missing}the rows.")


def test_a_dbt_model_gets_its_name_from_its_file(db: Path) -> None:
    shared = ("sql", "--db", db, "--model", "risk", "--into", "risky", "--as")
    refused(dpforest(*shared, "dbt"), "the name of its file", "dbt-schema", code=2)
    assert '- name: "risky"' in dpforest(*shared, "dbt-schema").text
    refused(dpforest(*shared, "select"), "a select creates nothing", code=2)


def test_noise_is_shown_with_the_digits_of_its_figure() -> None:
    shown = {0.0085: "0.0170", 0.3: "0.6000", 11.1: "22", 61: "120", 1e-6: "0.000002"}
    assert {noise: _spread(noise) for noise in shown} == {
        noise: f" ± {text}" for noise, text in shown.items()
    }
    assert _spread(None) == ""


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
    few = dpforest(*model, "postgres", "--from", "elsewhere", "--columns", "who")
    refused(few, "which the model reads: add them to --columns")
    wrong = dpforest(*model, "postgers")
    assert (wrong.code, wrong.out) == (2, "")
    assert 'Did you mean "postgres"?' in wrong.err


def test_sql_that_would_not_run_is_refused(db: Path) -> None:
    """A column that is there twice is ambiguous, and a view cannot read itself."""
    model = ("sql", "--db", db, "--model", "risk")
    twice = "names a column twice"
    refused(dpforest(*model, "--key", "who,WHO"), f"--key {twice}", code=2)
    columns = ("--dialect", "postgres", "--from", "elsewhere", "--columns", "age,city,Age")
    refused(dpforest(*model, *columns), f"--columns {twice}", code=2)
    for form in ("view", "table"):
        into = ("--as", form, "--into", "VISITS")
        refused(dpforest(*model, *into), "--into names the table that is scored", code=2)
        assert dpforest(*model, *into, "--from", "other.visits").code == 0
    assert dpforest(*model, "--as", "macro", "--into", "visits").code == 0


def test_sql_for_dbt(db: Path) -> None:
    model = ["sql", "--db", db, "--model", "risk", "--as"]
    assert "{{ source('raw', 'visits') }}" in dpforest(*model, "dbt", "--from", "raw.visits").out
    assert 'name: "p_true"' in dpforest(*model, "dbt-schema").out
    said = dpforest(*model, "dbt-schema", "--dialect", "polars")
    assert (said.code, said.out) == (2, "")
    said = dpforest(*model, "dbt", "--from", "{{ ref('visits') }}")
    refused(said, "--from must be MODEL or SOURCE.TABLE", "without ref", code=2)
    assert "Note:" not in said.err, "a refusal makes no SQL to say something about"


def test_sql_json_and_defaults(db: Path) -> None:
    facts = dpforest("sql", "--db", db, "--model", "risk", "--as", "view", "--json").facts
    assert set(facts) == {"model", "as", "dialect", "sql"}
    assert 'CREATE VIEW "risk_scored"' in facts["sql"]
    assert 'FROM "visits"' in facts["sql"], "by default the training table"
    assert "-- private: yes" in facts["sql"]
    said = dpforest("sql", "--db", db, "--model", "risk", "--into", "v")
    refused(said, "--into", "--as view", code=2)
    refused(dpforest("sql", "--model", "risk"), "--db", ".json", code=2)
    assert dpforest("sql", "--model", "risk", "--db", db, "--as", "csv").code == 2


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
    make(db, "CREATE VIEW seen AS FROM fresh", "CREATE VIEW beside AS FROM (FROM seen), visits v")
    for view in ("seen", "beside"):
        said = dpforest(*shared, view, "--into", "fresh", "--replace")
        refused(said, "may be the table that is scored")
    assert dpforest(*shared, "seen", "--into", "scored", "--replace").code == 0
    query(db, 'CREATE TABLE "É" (a INTEGER)')
    query(db, 'ALTER TABLE visits RENAME TO "é"')
    refused(dpforest(*shared, "fresh", "--into", "é", "--replace"), "privacy budget")
    assert dpforest(*shared, "scored", "--into", "twice", "--prefix", "old_").code == 0
    assert query(db, "SELECT count(*) FROM twice WHERE old_prediction = prediction") == [(4,)]


@pytest.mark.parametrize("into", ["x.parquet", "out/x.CSV", "../x.csv.gz", "/tmp/it's/x.parquet"])
def test_rows_of_a_table_go_to_a_file_by_a_copy(db: Path, into: str) -> None:
    before = state(db)
    said = dpforest("score", "--db", db, "--model", "risk", "--table", "fresh", "--into", into)
    quoted = into.replace("'", "''")
    copy = f"export that in DuckDB with COPY … TO '{quoted}'."
    refused(said, "--into names a file", "a table go to a table", copy, code=2)
    assert state(db) == before
    words = ("score", "--db", db, "--model", "risk", "--table", "fresh", "--into", "zz.new")
    refused(dpforest(*words), 'no schema "zz" in the database: check --into.')


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
        *("bins", "bin_edges", "confusion", "most_frequent", "unlabelled"),
    }
    make(db, "CREATE TABLE nobody AS FROM visits LIMIT 0")
    nobody = dpforest("evaluate", "--db", db, "--model", "risk", "--table", "nobody", "--json")
    assert set(nobody.facts) == set(said.facts)
    assert nobody.facts["confusion"] == [[0, 0], [0, 0]]
    assert nobody.facts["most_frequent"] is None
    assert said.facts["rows"] == 1000
    assert said.facts["unlabelled"] == 0
    assert said.facts["accuracy"] > 0.9
    assert said.facts["private"] is False
    assert "not private" in said.err
    assert "Note: The model was trained on these rows" in said.err
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
    for option in (("--privacy-unit", "row"), ("--rows-per-unit", "2"), ("--unseen",)):
        refused(dpforest(*shared, *option), option[0], "go with --epsilon", code=2)
    assert state(db) == before
    said = dpforest(*shared, "--epsilon", "2.5", "--json")
    figures = {"model", "forest", "table", "rows", "accuracy", "log_loss", "auc", "private"}
    figures |= {"bins", "bin_edges", "confusion", "most_frequent"}
    noisy = {"epsilon", "privacy_unit", "rows_per_unit", "noise", "accuracy_noise"}
    noisy |= {"rows_noise", "log_loss_noise", "auc_noise", "confusion_noise"}
    assert set(said.facts) == {*figures, *noisy}
    assert said.facts["private"] is True
    assert (said.facts["privacy_unit"], said.facts["rows_per_unit"]) == ("row", 1)
    assert said.facts["epsilon"] == 2.5
    assert said.facts["confusion_noise"] == pytest.approx(said.facts["noise"] * 11**0.5)
    assert abs(said.facts["rows"] - 1000) < 200
    assert "not private" not in said.err
    left = dpforest("budget", "show", "--db", db, "--json").facts
    assert left["left"] == 0.5
    assert [entry["recipe"] for entry in left["entries"]] == ["auto", "evaluate"]
    text = dpforest(*shared, "--epsilon", "0.5").text
    assert "each row, at ε = 0.5" in text
    assert re.search(r"^rows      \d+ ± 37$", text, re.MULTILINE)
    assert "noise     2.8 (one standard deviation in each count" in text
    assert "Each number of rows has noise of ± 19." in text
    assert "two standard deviations of the noise in a figure\n" in text


def test_evaluate_says_that_perhaps_no_row_has_a_class(db: Path) -> None:
    make(db, "CREATE TABLE nobody AS FROM visits LIMIT 0")
    shared = ("evaluate", "--db", db, "--model", "risk", "--table", "nobody", "--epsilon", "1")
    found = (dpforest(*shared, "--unseen") for _ in range(60))  # half of them have noise above 0
    said = next(said for said in found if "rows      0 ±" in said.text)
    assert "perhaps no row has a class of the model" in said.err
    assert "rarely above 1/2" not in said.err
    assert "accuracy  -\n" in said.text


def test_evaluate_marks_figures_of_a_model_that_is_not_private(db: Path) -> None:
    made = dpforest(*train(db, "--name", "seeded", "--seed", "1", "--not-private"))
    assert made.code == 0, made.err
    shared = ("evaluate", "--db", db, "--model", "seeded", "--table", "fresh", "--epsilon", "1")
    said = dpforest(*shared, "--json")
    assert said.facts["private"] is False
    assert "not private" in said.facts["reasons"][0]
    before, after = said.err.split("Spent")
    assert "this table cannot be capped" in before
    assert "--unseen" in before
    assert "These figures are not private" in after
    declared = dpforest(*shared, "--unseen", "--json")
    assert declared.facts["private"] is True
    assert "not be private" not in declared.err
    again = dpforest(*shared, "--json").err
    assert "will not be private" in again
    assert "cannot be capped" not in again, "it could not be capped before"
    assert "not be private" not in dpforest(*shared, "--target", "nope").err, "nothing is paid"
    its_own = ("evaluate", "--db", db, "--model", "seeded", "--table", "visits", "--epsilon", "1")
    said = dpforest(*its_own, "--json")
    assert said.facts["private"] is False
    assert "--unseen" not in said.err, "it would be refused"
    assert "leave out --unseen" in dpforest(*its_own, "--unseen").err


def test_the_help_names_every_engine() -> None:
    shown = " ".join(dpforest("sql", "--help").out.split())
    assert f"{', '.join([*DIALECTS][:-1])} or {[*DIALECTS][-1]}." in shown
