"""The verb domain prints a file that trains; files with errors are refused, odd rows are not."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import duckdb
import pytest
from shell import dpforest, make, query, refused, state, train
from variants import some

import dpforest_duckdb
from dpforest_duckdb.domain.file import load_domain


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


def test_the_check_of_a_domain_file_counts_the_privacy_unit_as_used(
    db: Path, tmp_path: Path
) -> None:
    printed = dpforest("domain", "--db", db, "--table", "visits", "--target", "ill").text
    before = '\n[[column]]\nname = "who"'
    assert '\n# privacy_unit = "…"  # if a person may have several rows' in printed
    named = printed.replace('# privacy_unit = "…"', 'privacy_unit = "who"')
    head, _, rest = named.partition(before)
    file = tmp_path / "visits.toml"
    file.write_text(head + rest[rest.index("\n[[column]]") :])
    checked = ("domain", "--db", db, "--table", "visits", "--check", file)
    assert "not used" not in dpforest(*checked).text
    assert dpforest(*checked, "--json").facts["unused"] == []
    parts = file.read_text().split("\n[[column]]")
    file.write_text("\n[[column]]".join(part for part in parts if '"age"' not in part))
    assert 'Columns not used: "age".' in dpforest(*checked).text


def test_a_privacy_unit_with_declared_values_is_no_attribute_in_the_check_either(
    db: Path, tmp_path: Path
) -> None:
    """A run drops it from the attributes, and so does the check."""
    declared = '\n[[column]]\nname = "who"\nkind = "categorical"\ndomain = ["a", "b"]\n'
    domain, rows = tmp_path / "visits.toml", tmp_path / "visits.csv"
    domain.write_text('privacy_unit = "who"\n' + COLUMNS + declared)
    query(db, f"COPY visits TO '{rows}'")
    of_table = dpforest("domain", "--db", db, "--table", "visits", "--check", domain, "--json")
    of_file = dpforest("domain", "--db", rows, "--check", domain, "--json")
    assert (of_table.facts["attributes"], of_table.facts["unused"]) == (2, [])
    assert (of_file.facts["attributes"], of_file.facts["unused"]) == (2, [])


def test_the_target_as_privacy_unit_is_refused_by_the_check_too(db: Path, tmp_path: Path) -> None:
    domain = tmp_path / "visits.toml"
    domain.write_text('privacy_unit = "ill"\n' + COLUMNS)
    for words in (("domain", "--check", domain), ("train", "--domain", domain, "--epsilon", "1")):
        said = dpforest(*words, "--db", db, "--table", "visits")
        assert (said.code, said.err.count("The target cannot be the privacy unit")) == (1, 1)


def test_truth_values_of_files_and_enumerations_of_queries_declare_themselves(
    tmp_path: Path,
) -> None:
    con, file = duckdb.connect(), tmp_path / "t.parquet"
    con.execute("CREATE TABLE t (a ENUM ('p', 'q'), y BOOLEAN)")
    con.execute("INSERT INTO t SELECT 'p', i % 2 = 0 FROM range(50) r(i)")
    con.execute(f"COPY t TO '{file}'")
    (column, target) = dpforest("domain", "--db", file, "--target", "y", "--json").facts["column"]
    assert target["domain"] == [False, True]
    assert "kind" not in column
    rows = con.sql("SELECT * FROM t WHERE y IS NOT NULL")
    forest = dpforest_duckdb.train(
        con, rows, target="y", epsilon=1, ledger=tmp_path / "l", dataset="d"
    )
    assert forest.domain.attributes[0].values == ("p", "q")


def test_domain_json_and_errors(db: Path) -> None:
    facts = dpforest("domain", "--db", db, "--table", "visits", "--json").facts
    assert set(facts) == {"target", "column"}
    assert facts["target"] is None
    assert facts["column"][2]["domain"] == ["Bern", "Genf", "Zug"]
    asked = ("domain", "--db", db, "--table", "visits", "--target", "zzz")
    refused(dpforest(*asked), '"zzz"', "--target")
    blank = dpforest("domain", "--db", db, "--table", "visits").text
    assert tomllib.loads(blank)["target"] == ""


COLUMNS = """
target = "ill"
[[column]]
name = "age"
kind = "numeric"
lower = 0
upper = 99
[[column]]
name = "city"
kind = "categorical"
domain = ["Bern", "Genf", "Zug"]
[[column]]
name = "ill"
kind = "categorical"
domain = [false, true]
"""


def bare(db: Path, *words: object) -> tuple[object, ...]:
    """A training command on visits that leaves the target to the domain file."""
    cost = () if "--epsilon" in words else ("--epsilon", "1")
    return ("train", "--db", db, "--table", "visits", *cost, *words)


@some(
    ("old", "new", "words"),
    [
        ('name = "city"', 'name = "town"', ('no column "town"', "--exclude")),
        ('name = "city"', 'name = "Age"', ('"age" and "Age"', "one column")),
        ('name = "city"', 'name = ""', ("[[column]]", "no name")),
        ('name = "age"', 'name = "city"', ('"city"',)),
        ('name = "age"', 'name = "who"', ('"who" is declared numeric but has type VARCHAR',)),
        ('kind = "numeric"', 'kind = "number"', ('"age"', "kind = ")),
        ('kind = "numeric"', "", ('"age"', "kind = ")),
        ("lower = 0", "lower = 99", ('lower of column "age"', "less than upper")),
        ("lower = 0", "lower = nan", ('lower of column "age"', "finite")),
        ("upper = 99", "upper = inf", ('upper of column "age"', "finite")),
        ("lower = 0", "", ('"age"', "needs lower and upper")),
        ("lower = 0", "lower = [1]", ('lower of column "age"',)),
        ("upper = 99", "upper = 99\nbins = 0", ('bins of column "age"', "1 to 250")),
        ("upper = 99", 'upper = 99\nscale = "cubic"', ('scale of column "age"',)),
        ("upper = 99", "upper = 99\nedges = [2, 1]", ('edges of column "age"', "ascend")),
        ("upper = 99", "upper = 99\nedges = 3", ('edges of column "age"', "list")),
        ('["Bern", "Genf", "Zug"]', "[]", ('"city" has no categories', "domain")),
        ('["Bern", "Genf", "Zug"]', '["Bern", "Bern"]', ('"city" lists a value twice',)),
        ('["Bern", "Genf", "Zug"]', '"Bern"', ('domain of column "city"', "list")),
        ('["Bern", "Genf", "Zug"]', '["a\\u0000b"]', ('"city"', "NUL")),
        ("[false, true]", "[true]", ('"ill"', "two classes")),
        ("[false, true]", '["yes", "no"]', ('"ill" is BOOLEAN', "classes to true and false.")),
        ("[false, true]", "", ("TOML",)),
        ('target = "ill"', 'target = "sick"', ('the target "sick"', "[[column]]")),
        ('target = "ill"', "target = 3", ("names no target", "--target")),
        ('target = "ill"', 'target = "age"', ('"age" has no list of classes',)),
        ('target = "ill"', 'target = "ill"\nprivacy_unit = 3', ("privacy_unit",)),
        ('target = "ill"', 'target = "ill"\nprivacy_unit = "zzz"', ('"zzz"', "--privacy-unit")),
        ('target = "ill"', "target = ill", ("TOML", "line 2")),
        ("[[column]]", "[column]", ("TOML",)),
    ],
    keep=10,
)
def test_a_domain_file_with_an_error(
    db: Path, tmp_path: Path, old: str, new: str, words: tuple[str, ...]
) -> None:
    assert old in COLUMNS
    file = tmp_path / "visits.toml"
    file.write_text(COLUMNS.replace(old, new, 1))
    before = state(db)
    said = dpforest(*bare(db, "--name", "new", "--domain", file))
    refused(said, *words)
    assert state(db) == before


@some(
    ("sql_type", "facts"),
    [
        ("INTEGER", f"lower = 0\nupper = 1{'0' * 400}"),
        ("INTEGER", "lower = 0\nupper = 1e299"),
        ("INTEGER", 'lower = 0\nupper = 1e299\nscale = "log"'),
        ("HUGEINT", f"edges = [{2**127}]"),
        ("DOUBLE", "lower = -1.7e308\nupper = 1.7e308"),
        ("DOUBLE", 'lower = 1e-299\nupper = 1e299\nscale = "log"'),
        ("DECIMAL(38,10)", f"edges = [{10**28}]"),
        ("DATE", "edges = [1e10]"),
        ("TIMESTAMP", "lower = 0\nupper = 1e20"),
        ("BIGINT", f"domain = [{2**127}]"),
        ("DECIMAL(38,10)", f"domain = [{10**28}]"),
        ("DOUBLE", "domain = [1e305]"),
    ],
    keep=4,
)
def test_numbers_outside_a_type_are_refused_before_the_debit(
    db: Path, tmp_path: Path, sql_type: str, facts: str
) -> None:
    make(db, f"ALTER TABLE visits ADD COLUMN big {sql_type}")
    kind = "categorical" if "domain" in facts else "numeric"
    file = tmp_path / "visits.toml"
    file.write_text(f'{COLUMNS}\n[[column]]\nname = "big"\nkind = "{kind}"\n{facts}\n')
    before = state(db)
    refused(dpforest(*bare(db, "--name", "new", "--domain", file)), '"big"')
    assert state(db) == before


@pytest.mark.parametrize("declared", ["file", "comment", "check"])
def test_bounds_too_close_for_bins_are_refused_before_the_debit(
    db: Path, tmp_path: Path, declared: str
) -> None:
    check = " CHECK (small BETWEEN 0 AND 5e-324)" if declared == "check" else ""
    make(db, f"CREATE TABLE more (small DOUBLE{check}, ill BOOLEAN)")
    make(db, "INSERT INTO more SELECT 0, i % 3 = 0 FROM range(400) r(i)")
    if declared == "comment":
        note = json.dumps({"kind": "numeric", "lower": 0, "upper": 5e-324})
        make(db, f"COMMENT ON COLUMN more.small IS '{note}'")
    file = tmp_path / "more.toml"
    small = '[[column]]\nname = "small"\nkind = "numeric"\nlower = 0\nupper = 5e-324\n'
    file.write_text(f'target = "ill"\n{small}[[column]]{COLUMNS.rpartition("[[column]]")[2]}')
    where = ("--domain", file) if declared == "file" else ("--target", "ill")
    before = state(db)
    words = ("train", "--db", db, "--table", "more", "--epsilon", "1", "--name", "new", *where)
    refused(dpforest(*words), 'lower and upper of column "small"', "too close", "edges")
    assert state(db) == before


def test_a_domain_file_that_cannot_be_read(db: Path, tmp_path: Path) -> None:
    latin = tmp_path / "latin.toml"
    latin.write_bytes(b'target = "\xe9"')
    before = state(db)
    for file, words in (
        (tmp_path / "no.toml", ("no domain file", "check its path")),
        (tmp_path, ("is a folder", "name the domain file")),
        (latin, ("UTF-8",)),
    ):
        refused(dpforest(*bare(db, "--name", "new", "--domain", file)), str(file), *words)
    assert state(db) == before


def test_a_column_of_a_wrong_type_or_none(db: Path, tmp_path: Path) -> None:
    file = tmp_path / "visits.toml"
    file.write_text(COLUMNS)
    make(
        db,
        "ALTER TABLE visits DROP COLUMN city",
        "ALTER TABLE visits ADD COLUMN city INTEGER[]",
    )
    before = state(db)
    words = ("train", "--db", db, "--table", "visits", "--epsilon", "1", "--name", "new")
    said = dpforest(*words, "--domain", file)
    refused(said, 'Column "city" has type INTEGER[]', "--exclude")
    shared = ("--db", db, "--model", "risk", "--table", "visits")
    refused(dpforest("score", *shared, "--into", "s"), '"city"')
    refused(dpforest("evaluate", *shared), '"city"')
    assert state(db) == before
    make(db, "ALTER TABLE visits DROP COLUMN city")
    before = state(db)
    refused(dpforest(*words, "--domain", file), 'no column "city"', "--exclude")
    refused(dpforest("score", *shared, "--into", "s"), 'no column "city"')
    refused(dpforest("evaluate", *shared), 'no column "city"')
    refused(dpforest("evaluate", *shared, "--target", "zzz"), 'no column "zzz"', "--target")
    assert state(db) == before
    assert dpforest(*words, "--domain", file, "--exclude", "city").code == 0


ROWS = {
    "strangers": "SELECT 'a' || i, 1000 * i, 'Paris', i % 2 = 0 FROM range(100) r(i)",
    "strange classes": "SELECT 'a' || i, i, 'Bern', 'maybe' FROM range(100) r(i)",
    "nothing but NULL": "SELECT NULL, NULL, NULL, NULL FROM range(100)",
    "none": "SELECT 'a', 1, 'Bern', 'true' WHERE false",
    "one": "SELECT 'a', 1, 'Bern', 'true'",
    "one class": "SELECT 'a' || i, i, 'Zug', 'true' FROM range(100) r(i)",
    "no number": "SELECT i::VARCHAR, ['NaN', 'inf', '-inf', '1e308'][i % 4 + 1]::DOUBLE, "
    "'Bern', i % 2 = 0 FROM range(100) r(i)",
}


@some("rows", ROWS.values(), ids=ROWS.keys(), keep=3)
def test_rows_with_bad_values_train(tmp_path: Path, rows: str) -> None:
    """Private rows must not decide whether a run works."""
    db, file = tmp_path / "d.duckdb", tmp_path / "d.toml"
    file.write_text(COLUMNS)
    make(
        db,
        "CREATE TABLE visits (who VARCHAR, age DOUBLE, city VARCHAR, ill VARCHAR)",
        f"INSERT INTO visits {rows}",
    )
    for unit in ("row", "who"):
        words = ("--name", f"by {unit}", "--domain", file, "--privacy-unit", unit, "--json")
        facts = dpforest(*bare(db, *words)).facts
        assert facts["trees"] >= 1
        assert facts["private"] is True
    shared = ("--db", db, "--model", "by row", "--table", "visits")
    assert dpforest("score", *shared, "--into", "scored").code == 0
    same = "(SELECT count(*) FROM scored WHERE prediction IN ('false', 'true'))"
    assert query(db, f"SELECT count(*) = {same} FROM visits") == [(True,)]
    facts = dpforest("evaluate", *shared, "--json").facts
    assert 0 <= facts["rows"] <= 100
    assert dpforest("evaluate", *shared, "--epsilon", "1", "--json").facts["private"] is True


def test_values_outside_the_domain_go_to_other(tmp_path: Path) -> None:
    """A category that is not in the domain has a cell of its own, in training and in scoring."""
    db, file = tmp_path / "d.duckdb", tmp_path / "d.toml"
    file.write_text(COLUMNS)
    make(
        db,
        "CREATE TABLE visits AS SELECT 1 AS age, ['Bern', 'Genf', 'Paris'][i % 3 + 1] AS city, "
        "i % 3 = 2 AS ill FROM range(3000) r(i)",
    )
    assert dpforest(*bare(db, "--name", "m", "--domain", file, "--epsilon", "20")).code == 0
    make(db, "CREATE TABLE t AS SELECT 1 AS age, unnest(['Lyon', 'Bern']) AS city")
    assert dpforest("score", "--db", db, "--model", "m", "--table", "t", "--into", "s").code == 0
    assert query(db, "SELECT city, prediction FROM s ORDER BY ALL") == [
        ("Bern", False),
        ("Lyon", True),
    ]


def test_a_check_lists_the_keys_that_are_ignored(db: Path, tmp_path: Path) -> None:
    """Nobody should believe that they do something."""
    file = tmp_path / "visits.toml"
    age = '[[column]]\nname = "age"\nkind = "numeric"\nlower = 0\nupper = 99\n'
    ill = '[[column]]\nname = "ill"\nkind = "categorical"\ndomain = [true, false]\n'
    head, more = 'target = "ill"\n', 'sensitive = true\n"odd\\u001bkey" = 1\n'
    check = ("domain", "--db", db, "--table", "visits", "--check", file)
    for text, said in (
        (head + age + ill, []),
        (
            head + age + more + ill + more,
            ['These keys of columns have no meaning and are ignored: "sensitive", "odd?key".'],
        ),
        (
            'title = "x"\n' + head + age + ill,
            ['These keys of the file have no meaning and are ignored: "title".'],
        ),
        (
            head + age + 'edges = [18, 65]\nscale = "log"\nordered = true\n' + ill,
            ['These keys of column "age" have no effect: "scale", "ordered".'],
        ),
    ):
        file.write_text(text)
        lines = dpforest(*check).text.splitlines()
        assert [line for line in lines if " keys of " in line] == [f"Note: {note}" for note in said]
        notes = dpforest(*check, "--json").facts["notes"]
        assert len(notes) == len(said)
    classes = ill.replace('kind = "categorical"\n', "")  # a target needs no kind
    for head in ("", 'target = "age"\n'):  # --target names the target in any case
        file.write_text(head + age + "ordered = true\n" + classes)
        notes = dpforest(*check, "--target", "ill", "--json").facts["notes"]
        assert notes == ['These keys of column "age" have no effect: "ordered".']
