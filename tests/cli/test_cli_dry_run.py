"""A dry run shows a plan and touches nothing; --show-sql shows what reads rows."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest
from shell import FOREST_KEYS, dpforest, state, train
from variants import some

from dpforest_duckdb.cli.plan import cost_in_words
from dpforest_duckdb.privacy.plan import PlannedQuery
from dpforest_duckdb.recipes import RECIPES


def test_dry_run_touches_nothing(db: Path) -> None:
    before = state(db)
    said = dpforest(*train(db, "--dry-run", "--json", "--name", "again"))
    keys = {"recipe", "cost", "left", "private", "trees", "depth", "plan", "branches"}
    assert set(said.facts) == keys
    assert said.facts["private"] is True
    seeded = train(db, "--dry-run", "--json", "--name", "again", "--seed", "1", "--not-private")
    assert dpforest(*seeded).facts["private"] is False
    assert said.facts["cost"] == 1
    assert said.facts["left"] is None
    for query_ in said.facts["plan"]:
        assert set(query_) == {"purpose", "mechanism", "epsilon", "trees", "often", "noise"}
        spread = query_["noise"]
        # counts have the discrete Laplace's deviation, a little below the continuous one
        assert spread is None or 0.5 < spread * min(query_["epsilon"]) < 2**0.5
    assert any(query_["noise"] for query_ in said.facts["plan"])
    table = dpforest(*train(db, "--dry-run", "--name", "again")).text
    first = table.splitlines()
    assert first[:6] == [
        "A dry run: no row is read, and nothing is debited.",
        'debit     cost ε = 1, before a row is read (table "visits": no cap)',
        "protects  each row, added or removed",
        "public    age: 0 to 99",
        '          city: "Bern", "Genf", "Zug"',
        "recipe    auto: a noisy count of the rows first, then by that number:",
    ]
    assert first[6].startswith("  1 to ")
    assert "count the rows of each class at each value" in first[6]
    assert "Every query:" in first[7:11]
    assert "discrete Laplace" in table
    assert state(db) == before


@pytest.mark.parametrize("name", ["rana-forest", "snr-forest", "privatree"])
def test_dry_run_says_if_the_count_of_the_rows_has_no_noise(db: Path, name: str) -> None:
    words = ("--dry-run", "--name", "again", "--recipe", name)
    form = () if RECIPES[name].flaws else ("--as-published",)
    shown = dpforest(*train(db, *words, *form)).out
    assert f"{name} as published: a count of the rows without noise first, then by" in shown
    assert "\nrows: the recipe depends on them" in shown
    assert "noisy count of the rows" not in shown
    assert "noisy rows" not in shown
    if form:
        shown = dpforest(*train(db, *words)).out
        assert f"{name}: a noisy count of the rows first, then by that number:" in shown
        assert "\nnoisy rows: the recipe depends on them" in shown


@pytest.mark.parametrize(("name", "unused"), [("hou-forest", False), ("hou-forest:sparing", True)])
def test_dry_run_says_how_much_of_the_debit_no_query_uses(
    db: Path, name: str, unused: bool
) -> None:
    words = ("--dry-run", "--name", "again", "--recipe", name)
    shown = dpforest(*train(db, *words)).out
    assert "at most 6 splits on a path" in shown
    assert ("The queries use ε = 0.32197775. The rest of the debit is spent" in shown) is unused
    assert ("The queries use" in shown) is unused


def test_dry_run_says_what_is_left_of_a_cap(db: Path) -> None:
    dpforest("budget", "set", "--db", db, "--table", "visits", "--epsilon", "2.5")
    said = dpforest(*train(db, "--dry-run", "--name", "again"))
    assert said.code == 0
    assert '(table "visits": left ε = 1.5)' in said.out


def test_dry_run_refuses_what_a_cap_refuses_and_shows_no_plan(db: Path) -> None:
    dpforest("budget", "set", "--db", db, "--table", "visits", "--epsilon", "1.5")
    for words in ((), ("--json",)):
        said = dpforest(*train(db, "--dry-run", "--name", "again", *words))
        assert (said.code, said.out) == (1, "")
        assert "only 0.5 of the cap of 1.5 is left" in said.err


def test_dry_run_says_of_the_ledger_what_a_run_says(
    db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("train", "--db", db, "--table", "fresh", "--target", "ill", "--epsilon", "1")
    words += ("--name", "again", "--ledger", tmp_path / "missing" / "book")
    dry, real = dpforest(*words, "--dry-run"), dpforest(*words)
    assert (dry.code, dry.out) == (real.code, real.out) == (1, "")
    assert "check that its folder exists and is writable" in dry.err
    assert dry.err == real.err
    for closed in (db.parent, Path(f"{db}.ledger")):
        monkeypatch.setattr("os.access", lambda path, mode, closed=closed: Path(path) != closed)
        said = dpforest(*train(db, "--name", "again", "--dry-run"))
        assert (said.code, said.out) == (1, "")
        assert "make the file and its folder writable" in said.err


def test_dry_run_shows_bounds_of_dates_without_midnight(tmp_path: Path) -> None:
    db = tmp_path / "d.duckdb"
    with duckdb.connect(db) as con:
        con.execute("CREATE TABLE t (day DATE, moment TIMESTAMP, y BOOLEAN)")
    file = tmp_path / "d.toml"
    file.write_text(
        'target = "y"\n[[column]]\nname = "y"\nkind = "categorical"\ndomain = [false, true]\n'
        '[[column]]\nname = "day"\nkind = "numeric"\nlower = "2020-01-01"\nupper = "2020-12-31"\n'
        '[[column]]\nname = "moment"\nkind = "numeric"\nlower = "2020-01-01"\n'
        'upper = "2020-12-31 23:59:59"\n'
    )
    table = ("--db", db, "--table", "t", "--domain", file, "--epsilon", 1)
    shown = dpforest("train", *table, "--dry-run").out
    assert "public    day: 2020-01-01 to 2020-12-31\n" in shown
    assert "moment: 2020-01-01 to 2020-12-31 23:59:59\n" in shown


@some(
    ("recipe", "keys", "shown"),
    [
        ("auto", "edges = [0.25, 0.5]", "cut at 0.25, 0.5"),
        ("snr-forest", "edges = [0.25, 0.5]", "cut at 0.25, 0.5"),
        ("auto", "edges = [25]\nlower = 0\nupper = 50", "0 to 50, cut at 25"),
        ("snr-forest", "edges = [25]\nlower = 0\nupper = 50", "0 to 50, cut at 25"),
        ("auto", "lower = 0\nupper = 50", "0 to 50"),
        ("snr-forest", "lower = 0\nupper = 50", "0 to 50"),
        ("auto", "lower = 0\nupper = 50\nbins = 4", "0 to 50"),
        ("snr-forest", "lower = 0\nupper = 50\nbins = 4", "0 to 50"),
        ("auto", 'lower = 1\nupper = 50\nscale = "log"', "1 to 50"),
        ("snr-forest", 'lower = 1\nupper = 50\nscale = "log"\nbins = 9', "1 to 50"),
        (
            "auto",
            f"edges = {list(range(1, 31))}",
            f"cut at {str(list(range(1, 13)))[1:-1]} and 18 more",
        ),
    ],
    keep=7,
)
def test_dry_run_shows_the_cut_points_that_the_domain_sets(
    tmp_path: Path, recipe: str, keys: str, shown: str
) -> None:
    """They are public, so the curator checks them; those that follow from bounds are not shown."""
    db, file = tmp_path / "t.duckdb", tmp_path / "t.toml"
    with duckdb.connect(db) as con:
        con.execute("CREATE TABLE t (x DOUBLE, y BOOLEAN)")
    file.write_text(
        'target = "y"\n[[column]]\nname = "y"\nkind = "categorical"\ndomain = [false, true]\n'
        f'[[column]]\nname = "x"\nkind = "numeric"\n{keys}\n'
    )
    table = ("--db", db, "--table", "t", "--domain", file, "--epsilon", 1, "--recipe", recipe)
    assert f"public    x: {shown}\n" in dpforest("train", *table, "--dry-run").out


@pytest.mark.more
def test_dry_run_names_the_recipe_that_follows_if_one_attribute_suffices(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "d.duckdb")) as con:
        numbers = ", ".join(f"n{i} DOUBLE CHECK (n{i} BETWEEN 0 AND 9)" for i in range(6))
        con.execute(f"CREATE TABLE t ({numbers}, y ENUM ('a', 'b', 'c', 'd', 'e', 'f'))")
    asked = ("train", "--db", tmp_path / "d.duckdb", "--table", "t", "--target", "y")
    asked += ("--epsilon", "1", "--privacy-unit", "row", "--name", "m", "--dry-run")
    found = {b["recipe"]: b for b in dpforest(*asked, "--json").facts["branches"]}
    asking = {
        name for name, b in found.items() if any(q["purpose"] == "strongest" for q in b["plan"])
    }
    alternatives = {
        name: b["if_one_suffices"] for name, b in found.items() if "if_one_suffices" in b
    }
    asked_first = ("class-means", "tree-beside-sums", "boosted")
    assert alternatives == dict.fromkeys(asked_first, "log-odds")
    assert asking == {*alternatives, "log-odds"}
    (line,) = re.findall(r"^strongest: .*$", dpforest(*asked).text, re.MULTILINE)
    assert "These ranges assume equally frequent classes" in dpforest(*asked).text
    assert (
        "half of all rows correctly, the run goes on with log-odds in place of class-means" in line
    )
    assert (
        "frequent class, the run goes on with log-odds in place of tree-beside-sums or boosted"
        in line
    )


def test_show_sql_is_on_stderr_and_hides_the_salt(db: Path) -> None:
    said = dpforest(*train(db, "--name", "again", "--show-sql", "--json", "--privacy-unit", "who"))
    assert set(said.facts) == FOREST_KEYS | {"picked", "cost"}
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
    from dpforest_duckdb.engine.tables.engine import DuckDBEngine

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
    assert cost_in_words(*forms) == shown


def test_dry_run_says_that_attributes_divide_the_cost_of_the_second_sweep(db: Path) -> None:
    words = ("--dry-run", "--recipe", "boosted", "--name", "again", "--epsilon", "1")
    shown = dpforest(*train(db, *words, "--delta", "0.00001")).text
    lines = [line for line in shown.splitlines() if " sweep again " in line]
    assert lines
    for line in lines:
        assert " in total " in line
        assert "divided among attributes" in line
        assert line.rstrip().endswith("at most")
    assert "sweep again: the first sweep shows for which attributes another step pays." in shown
    assert "sweep again" not in dpforest(*train(db, *words)).text, "one sweep: no δ, two classes"
