"""Domain files."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from domain_mappings import mapping, numeric, small

from dpforest_duckdb.domain.file import domain_toml, load_domain
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
