"""CSV and Parquet files as rows."""

from __future__ import annotations

import gzip
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from engine_conformance import DOMAIN, ROWS
from source_rows import (
    DOUBLED,
    NAMES,
    OF_TEXTS,
    cells,
    columns,
    csv_file,
    debits,
    fitted,
    pandas,
    parquet_file,
    polars,
)

from dpforest_duckdb import DpforestError, prepare
from dpforest_duckdb.domain import Domain
from dpforest_duckdb.domain.file import domain_from_mapping
from dpforest_duckdb.domain.types import BIGINT, DOUBLE, VARCHAR
from dpforest_duckdb.engine.base import Coding
from dpforest_duckdb.engine.sources import files
from dpforest_duckdb.engine.sources.files import matched
from dpforest_duckdb.ledger.book import Ledger
from dpforest_duckdb.ledger.datasets import DatasetAccount
from dpforest_duckdb.privacy.amounts import NANO
from dpforest_duckdb.privacy.unit import ROW
from dpforest_duckdb.progress import Event, Phase
from dpforest_duckdb.training.opening import find_rows


def test_files_are_known_by_their_resolved_paths(tmp_path: Path) -> None:
    con, book, path = duckdb.connect(), tmp_path / "ledger", csv_file(tmp_path)
    link = tmp_path / "link.csv"
    link.symlink_to(path)
    fitted(con, path, ledger=book)
    fitted(con, link, ledger=book)
    fitted(con, tmp_path / "." / "rows.csv", ledger=book)
    assert DatasetAccount(Ledger(book), (path,)).budget().spent_epsilon == 3 * NANO


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("visits.parquet", "visits"),
        ("data/part-*.csv.gz", "part"),
        ("data/*.parquet", "data"),
        ("data/year=*/**/*.parquet", "data"),
        ("/*.csv", "rows"),
    ],
)
def test_files_are_named_after_their_pattern_or_their_folder(path: str, name: str) -> None:
    assert files.plain_name(Path(path)) == name


def test_a_glob_is_all_of_its_files_whatever_the_order_of_columns(tmp_path: Path) -> None:
    con, book, path = duckdb.connect(), tmp_path / "ledger", csv_file(tmp_path)
    header, *lines = path.read_text().splitlines()
    middle = len(lines) // 2
    (tmp_path / "part-1.csv").write_text("\n".join([header, *lines[:middle]]))
    turned = [";".join(reversed(line.split(","))) for line in (header, *lines[middle:])]
    with gzip.open(tmp_path / "part-2.csv.gz", "wt") as stream:
        stream.write("\ufeff" + "\n".join(turned))
    parts = tmp_path / "part-*"
    whole, split = (fitted(con, p, ledger=book, seed=3, recipe="boosted") for p in (path, parts))
    assert [t.votes.tolist() for t in whole.trees] == [t.votes.tolist() for t in split.trees]
    assert [run.holder.name for run in debits(book)] == ["rows.csv", "part-1.csv", "part-2.csv.gz"]
    assert split.name == "part"


def test_no_value_of_a_csv_decides_about_a_type_or_fails_a_run(tmp_path: Path) -> None:
    """Rows that are no numbers, too long, not UTF-8 or unfinished change counts, nothing else."""
    con, path = duckdb.connect(), tmp_path / "odd.csv"
    odd = [b"red,abc,1,yes", b"\xff,1,1,no", b"red,1,1,no,1,1,1", b"red", b'"a\nb",2,1,no']
    odd += [b"red,1e999,1,yes", b"red,nan,1,yes", b"red,1.5,1,no", b",,,", b'"red,1,1,no']
    path.write_bytes(b"colour,size,who,label\n" + b"\n".join([b"red,1,1,yes"] * 50 + odd))
    found = find_rows(con, path)
    info = found.engine.typed(found.table, DOMAIN, ROW)
    assert info.columns == {"colour": VARCHAR, "size": BIGINT, "label": VARCHAR}
    with found.engine.snapshot(info) as rows:
        coded = rows.encode(Coding(DOMAIN.bind(info.columns), ROW, trees=1, sample="all", salt=1))
        size = coded.count_classes(0, 1)[1][0].sum(axis=1)
    # 1 → up to 1 (in the long row too), 1.5 → up to 2, infinity above all, text and NaN missing
    assert size.tolist() == [0, 51, 2, 1, 2]


def test_the_names_of_folders_give_files_no_columns(tmp_path: Path) -> None:
    """Their types would follow from all of these names together."""
    path = parquet_file(tmp_path)
    for day in ("2024-01-01", "2024-01-02"):
        folder = tmp_path / f"day={day}"
        folder.mkdir()
        (folder / "rows.parquet").write_bytes(path.read_bytes())
    found = find_rows(duckdb.connect(), tmp_path / "day=*" / "*.parquet")
    assert list(found.table.columns) == NAMES


def test_a_file_that_is_written_during_a_run_fails_it(tmp_path: Path) -> None:
    """And no model of it is stored, nor is its run recorded as done."""
    con, path, book = duckdb.connect(), parquet_file(tmp_path), tmp_path / "ledger"
    given: dict[str, Any] = {"domain": DOMAIN, "epsilon": 1, "ledger": book, "name": "m"}
    for recipe in ("auto", "boosted", "greedy-tree"):
        run = prepare(con, path, recipe=recipe, **given)

        def touch(event: Event) -> None:
            if event.phase != Phase.DEBIT:
                path.touch()

        with pytest.raises(DpforestError, match="changed while they were read"):
            run.execute(touch)
    entries = DatasetAccount(Ledger(book), (path,)).budget().entries
    assert [entry.state for entry in entries] == ["failed"] * 3
    assert run.execute().private, "the file as it is now"
    assert con.execute("SELECT name FROM dpforest.models").fetchall() == [("m",)]


def test_a_file_that_becomes_a_link_ends_the_run_before_the_debit(tmp_path: Path) -> None:
    """The file that it names has a budget of its own."""
    con, book, path = duckdb.connect(), tmp_path / "ledger", parquet_file(tmp_path)
    run = prepare(con, path, domain=DOMAIN, epsilon=1, ledger=book)
    path.rename(tmp_path / "other.parquet")
    path.symlink_to(tmp_path / "other.parquet")
    with pytest.raises(DpforestError, match="has become a link to another"):
        run.execute()
    assert not book.exists()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_files_that_are_gone_or_have_other_columns_are_refused_before_the_debit(
    kind: str, tmp_path: Path
) -> None:
    con, book = duckdb.connect(), tmp_path / "ledger"
    path = csv_file(tmp_path) if kind == "csv" else parquet_file(tmp_path)
    run = prepare(con, path, domain=DOMAIN, epsilon=1, ledger=book)
    duckdb.sql(f"COPY (SELECT 1 AS size, 'secret-value' AS label) TO '{path}'")
    with pytest.raises(DpforestError, match='columns of "rows" have changed since'):
        run.execute()
    path.unlink()
    with pytest.raises(DpforestError, match="is gone since the run was planned"):
        run.execute()
    assert not book.exists()


BAD_FILES: dict[str, tuple[bytes | None, str]] = {
    "missing.csv": (None, "no data file"),
    "none-*.csv": (None, "no data file"),
    "empty.csv": (b"", "no header"),
    "blank.csv": (b"\n\n", "no header"),
    "twice.csv": (b"size,Size,label\n1,2,no\n", "names a column twice"),
    "latin.csv": (b"gr\xf6sse,label\n1,no\n", "not UTF-8"),
    "headless.csv": (b"secret-value,17,no\n", "may be a row"),
    "words.csv": (b"secret-value,no\n", 'no column "label"'),
    "rows.csv": (b"size,label,12/03/1957\n1,no,secret-value\n", "may be a row"),
    "open.csv": (b'colour,label,size,"who\nsecret-value,no,1,2\n', "no header"),
    "broken.parquet": (b"PAR1 no", "cannot be read as Parquet"),
    "empty.parquet": (b"", "cannot be read as Parquet"),
    "text.csv.gz": (b"colour,size,label\n", "cannot be read"),
    "notes.txt": (b"colour,size,label\n", "Parquet files alone"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_is_refused_before_the_debit(name: str, tmp_path: Path) -> None:
    content, words = BAD_FILES[name]
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DpforestError, match=words) as refused:
        fitted(duckdb.connect(), tmp_path / name, ledger=tmp_path / "ledger")
    assert "secret-value" not in str(refused.value)
    assert not (tmp_path / "ledger").exists()


@pytest.mark.parametrize("name", ["rows[1].csv", "row?.csv", "rows*.csv"])
def test_a_file_whose_name_is_a_pattern_is_refused(name: str, tmp_path: Path) -> None:
    path = csv_file(tmp_path)
    path.rename(tmp_path / "rows1.csv")
    (tmp_path / name).write_bytes((tmp_path / "rows1.csv").read_bytes())
    for rows in (tmp_path / name, tmp_path / "*.csv"):
        with pytest.raises(DpforestError, match="pattern of other files"):
            matched(rows)


def test_a_file_with_two_names_is_not_read_twice(tmp_path: Path) -> None:
    path = csv_file(tmp_path)
    (tmp_path / "same.csv").hardlink_to(path)
    with pytest.raises(DpforestError, match="hard links"):
        matched(tmp_path / "*.csv")
    assert matched(path) == (path.resolve(),)


def test_a_folder_and_mixed_kinds_are_refused(tmp_path: Path) -> None:
    csv_file(tmp_path), parquet_file(tmp_path)
    with pytest.raises(DpforestError, match="is a folder"):
        matched(tmp_path)
    with pytest.raises(DpforestError, match="CSV files alone"):
        matched(tmp_path / "rows.*")
    duckdb.sql(f"COPY (SELECT 1 AS size) TO '{tmp_path / 'other.parquet'}'")
    with pytest.raises(DpforestError, match="other columns or types"):
        find_rows(duckdb.connect(), tmp_path / "*.parquet")


@pytest.mark.parametrize("more", [None, Decimal("9.25")])
def test_no_digit_of_a_decimal_in_a_file_changes_its_categories(
    more: Decimal | None, tmp_path: Path
) -> None:
    values = [Decimal("1.5"), Decimal("2.5"), Decimal("2.5"), *([more] if more else [])]
    frame = pandas.DataFrame({"a": values, "y": values})
    frame.to_parquet(tmp_path / "rows.parquet")
    code, word = ({"kind": "categorical", "domain": ["1.5", "2.5", *w]} for w in ([], ["unknown"]))
    for a, y in ((code, word), (word, code)):
        domain = domain_from_mapping(
            {"target": "y", "column": [{"name": "a", **a}, {"name": "y", **y}]}
        )
        with pytest.raises(DpforestError, match="a category that is no number never occurs"):
            cells(tmp_path / "rows.parquet", domain)
    domain = domain_from_mapping(
        {"target": "y", "column": [{"name": "a", **code}, {"name": "y", **code}]}
    )
    assert cells(tmp_path / "rows.parquet", domain)[:2] == [[1, 0], [0, 2]]


def test_nested_columns_that_are_not_used_may_differ_between_files(tmp_path: Path) -> None:
    for number, (tags, dicts) in enumerate(
        [([[], []], [{"k": 1}] * 2), ([["x"], []], [{"k": 1}, {"other": "w"}])]
    ):
        frame = pandas.DataFrame({**DOUBLED, "tags": tags, "dicts": dicts})
        frame.to_parquet(tmp_path / f"{number}.parquet")
    assert np.sum(cells(tmp_path / "*.parquet", OF_TEXTS)) == 4


@pytest.mark.more
def test_rows_after_a_long_record_of_a_csv_file_are_read(tmp_path: Path) -> None:
    """DuckDB reads 32 MB at once by default, and loses what follows a longer record."""
    path, row, before = tmp_path / "rows.csv", "p,1,no\n", 4_550_000
    path.write_text("a,n,y\n" + row * before + 'p,"' + "z\n" * 20_000_000 + '",yes\n' + row * 9)
    assert np.sum(cells(path, OF_TEXTS)) == before + 10


@pytest.mark.parametrize("suffix", ["csv", "csv.gz"])
def test_the_statement_that_reads_a_csv_file_does_not_show_its_size(
    tmp_path: Path, suffix: str
) -> None:
    """Statements are printed with --show-sql, and one row more or less changes the size."""
    path = tmp_path / f"rows.{suffix}"
    header = files.Header(("a", "n", "y"), ",")
    shown = set()
    for size in (50_000, 50_001, 2**25 + 1, 2**25 + 9, 2**30):
        path.touch()
        os.truncate(path, size)
        shown.add(str(files._csv([path], header)))
    assert len(shown) == 1


def test_one_thread_reads_a_csv_file(tmp_path: Path) -> None:
    """Several would begin in the middle of this note, and count its lines as 336,669 rows."""
    path, line = tmp_path / "notes.csv", f"0,{'x' * 60},no\n"
    note = '7,"' + "1,n,yes\n" * 200_000 + '",yes\n'
    path.write_text("size,note,label\n" + line * 120_000 + note + line * 80_000)
    domain = Domain(DOMAIN.attributes[1:], "label", ("no", "yes"))
    con = duckdb.connect(config={"threads": 2})
    rows = find_rows(con, path)
    info = rows.engine.typed(rows.table, domain, ROW)
    with rows.engine.snapshot(info) as snapshot:
        coded = snapshot.encode(
            Coding(domain.bind(info.columns), ROW, trees=1, sample="all", salt=1)
        )
        assert coded.count_leaves(0, 1).tolist() == [[200_000, 1]]


def test_missing_values_in_a_parquet_file_refuse_nothing(tmp_path: Path) -> None:
    """A column without values has a type of its own, which any other type agrees with."""
    given = {"ledger": tmp_path / "l", "dataset": "d", "privacy_unit": "row"}
    con = duckdb.connect()
    for number, column in enumerate(NAMES):
        polars.DataFrame({**columns(), column: [None] * len(ROWS)}).write_parquet(
            tmp_path / f"{column}.parquet"
        )
        fitted(con, tmp_path / f"{column}.parquet", **given)
        assert len(debits(tmp_path / "l")) == 2 * number + 1
        fitted(con, con.sql(f"FROM '{tmp_path / column}.parquet' WHERE true"), **given)
    fitted(con, tmp_path / "*.parquet", **given)
    for other in ("text", 0.5):
        part = polars.DataFrame({**columns(), "size": [other] * len(ROWS)})
        part.write_parquet(tmp_path / "other.parquet")
        with pytest.raises(DpforestError, match="other columns or types"):
            fitted(con, tmp_path / "*.parquet", **given)


@pytest.mark.parametrize("more", ["2", "123456.789", "1e40"])
def test_the_digits_of_one_decimal_are_in_no_model(more: str, tmp_path: Path) -> None:
    """pandas takes the digits of a Parquet column from the values that it writes."""
    rows = {"size": [Decimal("1.5"), Decimal(more)], "label": ["no", "yes"]}
    pandas.DataFrame(rows).to_parquet(tmp_path / "t.parquet")
    domain = domain_from_mapping(
        {
            "target": "label",
            "column": [
                {"name": "size", "kind": "numeric", "lower": 0, "upper": 10**12},
                {"name": "label", "kind": "categorical", "domain": ["no", "yes"]},
            ],
        }
    )
    forest = fitted(duckdb.connect(), tmp_path / "t.parquet", domain=domain, ledger=tmp_path / "l")
    assert [attribute.type for attribute in forest.domain.attributes] == [DOUBLE]
