"""A forest as a dbt model gives the same answer, whatever its names and categories hold."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import jinja2
import pytest
from forests import MADE, Case, MakeCase, assert_equal
from models import forest_of, one_split, two_attributes
from variants import some

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import VARCHAR, column_type
from dpforest_duckdb.errors import UsageError
from dpforest_duckdb.model.forest import Forest, load_forest
from dpforest_duckdb.scoring.dialects import DIALECTS
from dpforest_duckdb.scoring.dialects.duckdb import DuckDB
from dpforest_duckdb.scoring.publish import publish_sql

PROJECT = Path(__file__).parent.parent.parent.parent / "docs" / "examples" / "dbt"


def compiled(sql: str) -> str:
    """A dbt model after Jinja, with names where `ref` and `source` stand."""
    names = {"config": lambda **_: "", "ref": str, "source": lambda *parts: ".".join(parts)}
    return jinja2.Environment().from_string(sql).render(names)


@some("name", MADE, keep=2)
def test_jinja_changes_no_name_and_no_category(made: MakeCase, name: str) -> None:
    case = made(name)
    model = publish_sql(case.forest, "numbered", form="dbt", key=["id"])
    assert model.count("{{ ref('numbered') }}") == 1
    assert ";" not in model.splitlines()[-1]
    with duckdb.connect() as con:
        con.execute(f"CREATE TABLE numbered AS FROM '{case.file}'")
        assert_equal(case, con.execute(compiled(model)).fetchall())


def test_jinja_changes_no_enum_and_no_line_end(con: duckdb.DuckDBPyConnection) -> None:
    """Of the target: its type and its classes are in the SQL too."""
    labels = ("{{ 1+1 }}", "a{\rb", "it's")
    kind = column_type("ENUM({})".format(", ".join(map(DuckDB().quoted, labels))))
    attributes = (Attribute("x{\ry", "categorical", ("a{\rb",), type=VARCHAR),)
    domain = Domain(attributes, "y", labels[:2], kind)
    forest = forest_of(domain, one_split(domain, 0, [[9, 0], [0, 9], [0, 9]]))
    con.execute('CREATE TABLE visits ("x{\ry" VARCHAR)')
    con.execute("INSERT INTO visits VALUES ('a{\rb'), ('b')")
    model = compiled(publish_sql(Forest.from_json(forest.to_json()), "visits", form="dbt"))
    scored, expected = con.sql(model), forest.predict(con, "visits")
    assert scored.columns == expected.columns
    assert scored.types == expected.types
    assert scored.fetchall() == expected.fetchall()


@pytest.mark.parametrize("engine", [e for e, own in DIALECTS.items() if "dbt" in own.forms])
def test_literals_contain_no_jinja(engine: str) -> None:
    own = DIALECTS[engine](jinja=True)
    for text in ("{{ 1+1 }}", "{% endraw %}", "{# no #}", "{{{", "a{{b{%c"):
        written = own.text(text)
        assert jinja2.Environment().from_string(written).render() == written
    assert "".join(own.text("{{ 1+1 }}").split()).count("1+1") == 1


def test_a_source_is_written_for_a_dotted_name_and_odd_names_are_refused(made: MakeCase) -> None:
    case = made("two classes")
    model = publish_sql(case.forest, "raw.visits", form="dbt", key=["id"])
    assert "{{ source('raw', 'visits') }}" in model
    for odd in ("a.b.c", "a'b", "{{ x }}"):
        with pytest.raises(UsageError, match="table"):
            publish_sql(case.forest, odd, form="dbt", key=["id"])


@pytest.mark.parametrize("odd", ["", "a/b", "../a", "a.b", "{{ 1 }}", "a\nb", 'a"b'])
def test_a_model_has_the_name_of_a_file(made: MakeCase, odd: str) -> None:
    case = made("two classes")  # its own name holds braces and a line break
    for name in (odd, None):
        with pytest.raises(UsageError, match="file"):
            publish_sql(case.forest, form="dbt-schema", name=name)


def test_a_properties_file_holds_any_class_as_yaml_reads_it() -> None:
    """Of characters beyond U+FFFF YAML reads no halves, and it refuses some control characters."""
    odd = "\x7f\x85\u2028\u2029\ufeff\uffff\t"
    domain = two_attributes(labels=("é😀", f"no{odd}"))
    forest = forest_of(domain, one_split(domain, 0, [[9, 0], [0, 9], [0, 9], [1, 1]]))
    schema = publish_sql(forest, form="dbt-schema", name="hard")
    assert '- name: "p_é😀"\n' in schema
    assert '- name: "p_no\\u007f\\u0085\\u2028\\u2029\\ufeff\\uffff\\t"\n' in schema
    assert not set(odd) & set(schema)


def test_tests_have_their_arguments_where_dbt_expects_them(made: MakeCase) -> None:
    case = made("two classes")
    schema = publish_sql(case.forest, form="dbt-schema", name="m")
    assert "- accepted_values:\n              arguments:\n                values: [" in schema
    braces = publish_sql(case.forest, form="dbt-schema", name="m", prefix="{{ 1 }}")
    assert "data_tests" not in braces
    assert "accepted_values" not in braces


def write_models(case: Case, models: Path) -> None:
    """A case as a model of a dbt project, with its properties."""
    model = publish_sql(case.forest, "numbered", form="dbt", key=["id"])
    (models / "hard.sql").write_text(model)
    (models / "hard.yml").write_text(publish_sql(case.forest, form="dbt-schema", name="hard"))
    (models / "numbered.sql").write_text(f"SELECT * FROM '{case.file}'")


@pytest.mark.slow
def test_dbt_builds_the_example_and_a_model_of_hard_names(made: MakeCase, tmp_path: Path) -> None:
    """In a virtual environment of its own, with every test of the properties files."""
    environment, project = tmp_path / "venv", tmp_path / "dbt"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    install = [environment / "bin" / "pip", "install", "-q", "dbt-core<1.11", "dbt-duckdb"]
    subprocess.run([*install, f"duckdb=={duckdb.__version__}"], check=True)
    shutil.copytree(PROJECT, project)
    subprocess.run([sys.executable, "make.py"], cwd=project, check=True)
    case = made("log-odds of four")
    write_models(case, project / "models")
    quiet = {**os.environ, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
    build = [environment / "bin" / "dbt", "build", "--profiles-dir", "."]
    built = subprocess.run(build, cwd=project, env=quiet, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout
    with duckdb.connect(str(project / "clinic.duckdb")) as con:
        assert_equal(case, con.execute("FROM hard").fetchall())
        built_rows = con.execute("FROM risk_scored ORDER BY id").fetchall()
        (content,) = con.execute("SELECT model FROM dpforest.models").fetchone() or ("",)
        (tmp_path / "risk.json").write_text(content)
        expected = load_forest(tmp_path / "risk.json").predict(con, "visits").order("id")
        assert built_rows == expected.fetchall()
