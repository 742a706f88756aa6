"""Options that declare the columns of files about people, and commands that train on such files."""

from __future__ import annotations

DECLARED = ("--numeric", "age=0:99", "--categories", "city=Bern,Genf", "--classes", "no,yes")
FIXED = ("--target", "ill", "--epsilon", "1")


def trained(*words: str, ledger: bool = True, out: str = "m.json") -> tuple[object, ...]:
    kept = ("--ledger", "book") if ledger else ()
    return ("train", *FIXED, *kept, "--out", out, "--replace", *words)
