"""Which rows of a unit are used does not depend on other units, even if hashes collide."""

from __future__ import annotations

import random

import duckdb
import pytest
from steps import encode

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import VARCHAR
from dpforest_duckdb.engine.coded_rows.rows import DuckDBRows
from dpforest_duckdb.engine.tables.engine import DuckDBEngine
from dpforest_duckdb.privacy.unit import PrivacyUnit

COLUMNS = [f"a{i}" for i in range(7)]
LABELS = tuple(f"r{i}" for i in range(255))  # 256 cells of each attribute: 56 bits of codes
MODULUS, FACTOR = 2**64, 0xD6E8FEB86659FD93  # of DuckDB's hash of numbers, and of several of them
SALT, UNIT = 7, 500
INVERSE = pow(FACTOR, -1, MODULUS)


def hashed(number: int) -> int:
    for _ in range(2):
        number = (number ^ number >> 32) * FACTOR % MODULUS
    return number ^ number >> 32


def unhashed(number: int) -> int:
    for _ in range(2):
        number = (number ^ number >> 32) * INVERSE % MODULUS
    return number ^ number >> 32


def mixed(number: int, other: int) -> int:
    """DuckDB's hash of two hashes."""
    return (number ^ number >> 32) * FACTOR % MODULUS ^ other


def unmixed(number: int, other: int) -> int:
    number = (number ^ other) * INVERSE % MODULUS
    return number ^ number >> 32


def colliding(draw: random.Random, salt: int, unit: int) -> tuple[int, int]:
    """Codes of rows of the unit whose hashes, with the classes 0 and 1, are equal."""
    before = mixed(hashed(salt), hashed(unit))
    while True:
        first = draw.getrandbits(56)
        whole = mixed(mixed(before, hashed(first)), hashed(0))
        second = unhashed(unmixed(whole, hashed(1)) ^ mixed(before, 0))
        bytes_of = [code.to_bytes(8, "big") for code in (first, second)]
        if all(code[0] == 0 and 255 not in code for code in bytes_of):
            return first, second


@pytest.mark.more
def test_the_rows_of_a_unit_do_not_depend_on_other_units() -> None:
    draw, con = random.Random(3), duckdb.connect(config={"threads": 1})
    first, second = colliding(draw, SALT, UNIT)
    ((equal,),) = con.execute(
        "SELECT hash($salt::UBIGINT, $unit::INTEGER, $first::UBIGINT, 0::UTINYINT) = "
        "hash($salt::UBIGINT, $unit::INTEGER, $second::UBIGINT, 1::UTINYINT)",
        {"salt": SALT, "unit": UNIT, "first": first, "second": second},
    ).fetchall()
    assert equal, "DuckDB hashes otherwise now"
    attributes = tuple(Attribute(name, "categorical", LABELS, nullable=False) for name in COLUMNS)
    domain = Domain(attributes, "c", ("c0", "c1")).bind(dict.fromkeys([*COLUMNS, "c"], VARCHAR))
    con.execute(f"CREATE TABLE t (who INTEGER, {' VARCHAR, '.join(COLUMNS)} VARCHAR, c VARCHAR)")

    def coded() -> DuckDBRows:
        engine = DuckDBEngine(con)
        unit = PrivacyUnit("who", 1)
        found = encode(engine, engine.table("t"), domain, unit, salt=SALT)
        assert isinstance(found, DuckDBRows)
        return found

    places = coded()._layout.places
    shifts = [places[number].shift for number in range(len(COLUMNS))]

    def row(unit: int, codes: int, label: int) -> list[object]:
        return [unit, *(f"r{codes >> shift & 255}" for shift in shifts), f"c{label}"]

    used = set()
    for _ in range(20):  # orders of the rows
        rows = [row(unit, draw.getrandbits(56) & 0x7F7F7F7F7F7F7F, unit % 2) for unit in range(40)]
        draw.shuffle(rows)
        for mine in (row(UNIT, first, 0), row(UNIT, second, 1)):
            rows.insert(draw.randrange(len(rows) + 1), mine)
        con.execute("TRUNCATE t")
        columns = [list(column) for column in zip(*rows, strict=True)]
        con.execute(f"INSERT INTO t SELECT {', '.join(['unnest(?)'] * 9)}", columns)
        kept = coded()  # until its rows are read
        made = kept._stored
        selected = f"SELECT {made.layout.words[0]} FROM {made.codes}"
        found = {codes for (codes,) in made.cursor.execute(selected).fetchall()}
        used |= found & {first, second}
    assert len(used) == 1
