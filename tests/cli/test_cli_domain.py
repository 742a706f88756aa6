"""The verb domain prints a file that trains once it is filled in."""

from __future__ import annotations

import tomllib
from pathlib import Path

from shell import dpforest, refused, state, train

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


def test_domain_json_and_errors(db: Path) -> None:
    facts = dpforest("domain", "--db", db, "--table", "visits", "--json").facts
    assert set(facts) == {"target", "column"}
    assert facts["target"] is None
    assert facts["column"][2]["domain"] == ["Bern", "Genf", "Zug"]
    asked = ("domain", "--db", db, "--table", "visits", "--target", "zzz")
    refused(dpforest(*asked), '"zzz"', "--target")
    blank = dpforest("domain", "--db", db, "--table", "visits").text
    assert tomllib.loads(blank)["target"] == ""
