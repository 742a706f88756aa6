"""A hospital table: several visits per patient, so the privacy unit is the patient.

With rows as units, ε protects each visit, but a patient with four visits is protected four times
less. With `privacy_unit="patient_id"`, ε protects all visits of a patient together. At most
`rows_per_unit` visits of each patient count, and the noise is that many times larger.
"""

from __future__ import annotations

from pathlib import Path

import duckdb

from dpforest_duckdb import train

# ENUM types and CHECK constraints declare the domain: what is public about the table. They come
# from the form that nurses fill in, not from the rows.
VISITS = """
CREATE TABLE visits (
    patient_id INTEGER,
    age INTEGER NOT NULL CHECK (age BETWEEN 0 AND 110),
    ward ENUM ('surgery', 'cardiology', 'neurology') NOT NULL,
    emergency BOOLEAN NOT NULL,
    readmitted BOOLEAN NOT NULL
)
"""
ROWS = """
INSERT INTO visits
SELECT
    i // 3 AS patient_id,
    20 + (i // 3 * 37) % 70 AS age,
    ['surgery', 'cardiology', 'neurology'][1 + i % 3] AS ward,
    i % 5 = 0 AS emergency,
    20 + (i // 3 * 37) % 70 > 60 OR i % 11 = 0 AS readmitted
FROM range(12000) AS r(i)
"""


def main() -> None:
    """Train for rows and for patients, and print what each model promises."""
    if Path("hospital.duckdb").exists():
        raise SystemExit("There is a hospital.duckdb already: start in an empty folder.")
    con = duckdb.connect("hospital.duckdb")
    con.execute(VISITS)
    con.execute(ROWS)

    per_visit = train(con, "visits", target="readmitted", epsilon=1, privacy_unit="row")
    print(f"per visit:   {per_visit.guarantee}")

    # A warning says that this table can never be capped: its two runs protect different units. For
    # your own table, choose the unit before the first run.
    per_patient = train(
        con,
        "visits",
        target="readmitted",
        epsilon=1,
        privacy_unit="patient_id",
        rows_per_unit=3,
        name="readmission",  # stored in the database, schema dpforest
    )
    print(f"per patient: {per_patient.guarantee}")

    print("\nThe queries of the second run, and what each costs:")
    for line in per_patient.guarantee.plan:
        print(f"  {line}")

    print("\nNoisy counts of two rules, with the standard deviation of their noise:")
    leaves = [rule for rule in per_patient.rules() if rule["leaf"] and rule["counts"]]
    for rule in leaves[:2]:
        print(f"  {rule['rule']}: {rule['counts']} ± {rule['noise']:.0f}")
    con.close()


if __name__ == "__main__":
    main()
