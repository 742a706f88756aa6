"""Training on the command line prints a forest, does as asked, and refuses before the debit."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest
from shell import FOREST_KEYS, dpforest, make, query, refused, state, train
from visits import DDL

from dpforest_duckdb import load_forest


def test_train_reports_the_forest_and_nothing_else(db: Path) -> None:
    said = dpforest(*train(db, "--name", "again", "--json"))
    assert set(said.facts) == FOREST_KEYS | {"picked", "cost"}
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
    for word in (
        "Warning: Timings depend on private rows",
        " s  encoding",
        "so far: ε = 2, δ = 0.000001",
    ):
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
    assert [set(query_) & {"epsilon", "mu_squared"} for query_ in planned["plan"]][:3] == [
        {"epsilon"},
        {"epsilon"},
        {"mu_squared"},
    ]
    shown = dpforest(*train(db, "--recipe", "boosted", *delta, "--dry-run")).text
    assert "cost ε = 1, δ = 0.000001" in shown
    assert "rounded Gaussian on gradients" in shown
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
    assert "at most 3 splits on a path" in said.out
    few = dpforest(*train(db, "--dry-run", "--trees", "1", "--recipe", "joint-tables"))
    assert "Note: --trees has no effect: recipe joint-tables uses all attributes." in few.err
    some = dpforest(*train(db, "--dry-run", "--trees", "4", "--recipe", "boosted"))
    assert "Note: --trees limits only the random trees of recipe boosted: there may be" in some.err
    large = ("--recipe", "boosted", "--dry-run", "--delta")
    assert "Note: δ = 0.5 is above 0.001" in dpforest(*train(db, *large, "0.5")).err
    assert "δ = 0.001" not in dpforest(*train(db, *large, "0.001")).err


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


def test_out_is_checked_before_the_debit(db: Path, tmp_path: Path) -> None:
    taken = tmp_path / "taken.json"
    taken.write_text('{"schema":"dpforest/ mine')
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
    assert taken.read_text().endswith("mine")
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
    changed = 'Earlier runs protected each row; this one protects each "who" (at most 3 rows used)'
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


def test_a_run_after_which_no_cap_is_possible_is_named_once(db: Path) -> None:
    """A later run rules out no cap."""
    who = ("--privacy-unit", "who")
    said = dpforest(*train(db, "--name", "a", *who))
    assert "After it, this table can never be capped" in said.err
    for unit in (who, ("--privacy-unit", "row")):
        said = dpforest(*train(db, "--name", "b", "--replace", *unit))
        assert said.code == 0
        assert "never be capped" not in said.err


def test_only_another_unit_prevents_a_cap(db: Path) -> None:
    """How many rows of a person a run uses makes no difference, and a cap that exists stays."""
    who = ("--privacy-unit", "who")
    make(db, DDL.replace("visits", "few"), "INSERT INTO few FROM visits LIMIT 200")
    few = ("--table", "few", "--name")
    assert dpforest(*train(db, *few, "two", *who, "--rows-per-unit", "2")).code == 0
    said = dpforest(*train(db, *few, "three", *who, "--rows-per-unit", "3"))
    assert said.code == 0
    assert "can never be capped" not in said.err
    set_cap = ("budget", "set", "--db", db, "--table", "few", "--epsilon", "9")
    assert dpforest(*set_cap).err.endswith("pass --privacy-unit who --rows-per-unit 2.\n")
    assert dpforest(*set_cap, *who).code == 0
    said = dpforest(*train(db, *few, "row", "--privacy-unit", "row"))
    refused(said, "--privacy-unit who --rows-per-unit 1")
    assert "can never be capped" not in said.err


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
    for again in ("1", "1.0", "1e0"):
        refused(dpforest(*train(db, "--epsilon", "1", "--epsilon", again)), "twice", code=2)
    assert state(db) == before
    refused(dpforest(*train(db, *more, "--dry-run", "--json")), "only 1 of", "before it count")
    fewer = ("--name", "k", "--epsilon", "0.5", "--epsilon", "1.5", "--dry-run")
    planned = dpforest(*train(db, *fewer, "--json")).facts
    assert [run["cost"] for run in planned["runs"]] == [0.5, 1.5]
    shown = dpforest(*train(db, *fewer)).out
    assert shown.count("debit     cost ε") == 2
    assert shown.endswith("All 2 runs together: cost ε = 2; then ε = 0 is left.\n")


def test_the_cost_of_several_models_has_the_sum_of_their_deltas(db: Path) -> None:
    words = ("--name", "k", "--dry-run", "--epsilon", "1", "--epsilon", "2", "--recipe", "boosted")
    shown = dpforest(*train(db, *words, "--delta", "1e-6")).out
    assert shown.endswith("All 2 runs together: cost ε = 3, δ = 0.000002.\n")
    assert dpforest(*train(db, *words)).out.endswith("All 2 runs together: cost ε = 3.\n")


def test_the_temporary_space_of_several_models_is_that_of_all(db: Path) -> None:
    """Codes of the models before take space too."""

    def space(*recipes: str) -> int:
        words = [word for recipe in recipes for word in ("--recipe", recipe)]
        said = dpforest(*train(db, "--epsilon", "1", *words, "--name", "m", "--dry-run"))
        lines = [line for line in said.err.splitlines() if line.startswith("Temporary space")]
        assert len(lines) == 1, "one run of the command"
        return int(lines[0].split()[4])

    alone = max(space("auto"), space("dpdf"))
    assert space("auto", "dpdf") >= alone, "the first may need the most"
    assert space("dpdf", "auto") > alone


def test_temporary_space_is_printed_and_can_be_refused(db: Path) -> None:
    before = state(db)
    said = dpforest(*train(db, "--dry-run", "--rows-at-most", "1000000"))
    assert re.search(r"Temporary space: at most \d+ MB per million rows", said.err)
    many = train(db, "--name", "m", "--rows-at-most", str(10**13))
    refused(dpforest(*many), "10,000,000,000,000 rows", "GB", "--temp-dir")
    refused(dpforest(*train(db, "--rows-at-most", "0")), "--rows-at-most", code=2)
    assert state(db) == before


def test_a_recipe_as_published_is_flagged_and_refused_under_a_cap(db: Path) -> None:
    words = train(db, "--recipe", "dpdf", "--as-published", "--name", "flawed")
    said = dpforest(*words, "--json")
    assert said.facts["private"] is False
    assert said.err.count("Warning: Recipe dpdf as published is not private: ") == 2
    spent = dpforest("budget", "--db", db, "--table", "visits", "--json").facts["entries"]
    assert said.facts["cost"] == spent[-1]["epsilon"] > said.facts["epsilon"] == 1
    scored = dpforest(
        "score", "--db", db, "--model", "flawed", "--table", "fresh", "--into", "s", "--json"
    )
    assert scored.facts["model"] == "flawed"
    assert "This model is not private, so do not publish it: " in scored.err
    assert "-- private: NO" in dpforest("sql", "--db", db, "--model", "flawed").text
    cap = ("budget", "set", "--db", db, "--table", "visits", "--epsilon", "9")
    refused(dpforest(*cap), "was not private")
    before = state(db)
    alone = train(db, "--as-published", "--name", "x")
    refused(dpforest(*alone), "auto", "--as-published", code=2)
    assert state(db) == before


def test_resources_can_be_bounded(db: Path, tmp_path: Path) -> None:
    bounds = ("--threads", "1", "--memory-limit", "500MB", "--temp-dir", tmp_path)
    assert dpforest(*train(db, "--name", "small", *bounds)).code == 0
    shared = ("--db", db, "--model", "small", "--table", "fresh", *bounds)
    assert dpforest("score", *shared, "--into", "s").code == 0
    assert dpforest("evaluate", *shared).code == 0
    assert [entry.name for entry in tmp_path.iterdir()] == [db.parent.name], "no spill is left"
