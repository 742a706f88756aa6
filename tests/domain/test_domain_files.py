"""Domain files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest
from domain_mappings import mapping, numeric, small

from dpforest_duckdb.domain import Domain
from dpforest_duckdb.domain.file import domain_from_mapping, domain_toml, load_domain
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.errors import DpforestError


@pytest.mark.more
def test_every_sidecar_is_a_valid_domain(data_dir: Path) -> None:
    files = sorted(data_dir.glob("*.toml"))
    assert len(files) >= 18
    for file in files:
        con = duckdb.connect()
        con.execute(f"CREATE TABLE t AS FROM '{file.with_suffix('.parquet')}'")
        bound = load_domain(file).bind(DuckDBEngine(con).table("t").columns)
        assert all(a.type and a.cells >= 2 for a in bound.attributes)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("target = [")
    given = domain_toml(mapping(numeric(lower=0, upper=9)))
    (tmp_path / "mark.toml").write_text(given, encoding="utf-8-sig")  # as Windows writes it
    assert load_domain(tmp_path / "mark.toml") == small()
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "digits.toml").write_text(f"target = 1{'0' * 5000}")
    for name in ("missing", "bad", "binary", "digits"):
        with pytest.raises(DpforestError, match=name):
            load_domain(tmp_path / f"{name}.toml")


def test_a_file_that_is_nested_without_end_is_no_domain(tmp_path: Path) -> None:
    path = tmp_path / "deep.toml"
    path.write_text("a=" + "[" * 100_000)
    with pytest.raises(DpforestError, match="nested too deeply"):
        load_domain(path)


AGE = {"name": "age", "kind": "numeric", "lower": 0, "upper": 9}
CITY = {"name": "city", "kind": "categorical", "domain": ["Bern", "Rome"]}
ILL = {"name": "ill", "kind": "categorical", "domain": ["no", "yes"]}


def declared(*columns: dict[str, Any], **content: Any) -> Domain:
    return domain_from_mapping({"target": "ill", "column": [*columns, ILL], **content})


def test_what_a_column_does_not_say_is_the_cautious_default() -> None:
    """NULL may occur, and categories have no order."""
    (city,) = declared(CITY).attributes
    assert city.nullable
    assert not city.ordered


def test_the_target_is_found_in_any_case_and_another_replaces_that_of_the_file() -> None:
    content = {"target": "ILL", "column": [CITY, ILL]}
    assert domain_from_mapping(content).classes == ("no", "yes")
    assert domain_from_mapping(content, "city").classes == ("Bern", "Rome")


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        ({**CITY, "ordered": "yes"}, 'ordered of column "city" must be true or false'),
        ({**CITY, "nullable": 1}, 'nullable of column "city" must be true or false'),
        ({**CITY, "domain": [{"Bern": 1}, "Rome"]}, 'domain of column "city" holds a list'),
        ({**CITY, "domain": [["Bern"], "Rome"]}, 'domain of column "city" holds a list'),
        ({**CITY, "taxonomy": {}}, 'taxonomy of column "city" must be groups'),
        ({**CITY, "taxonomy": {"all": {}}}, 'taxonomy of column "city" must be groups'),
        ({**AGE, "upper": 1e300}, 'upper of column "age" must be a finite number'),
        ({**AGE, "lower": True}, 'lower of column "age" must be a finite number'),
        ({**AGE, "name": ""}, "has no name"),
    ],
)
def test_a_wrong_value_of_a_key_is_one_sentence(column: dict[str, Any], sentence: str) -> None:
    with pytest.raises(DpforestError, match=sentence):
        declared(column)


def test_rows_per_unit_belong_to_a_run_and_a_target_is_text() -> None:
    with pytest.raises(DpforestError, match="rows_per_unit, which belongs to a run"):
        declared(CITY, rows_per_unit=3)
    with pytest.raises(DpforestError, match="names no target"):
        declared(CITY, target=3)
