"""The forest and its methods: predict, to SQL, rules, save and load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any, overload

import duckdb

from dpforest_duckdb.arguments import TEXT, optional, refuse_wrong_types
from dpforest_duckdb.engine.predictions.scores import predicted
from dpforest_duckdb.engine.sources.frames import AnyFrame
from dpforest_duckdb.engine.spark.scores import predicted as predicted_in_spark
from dpforest_duckdb.engine.spark.steps import Frame as SparkFrame
from dpforest_duckdb.engine.spark.steps import Session, is_session
from dpforest_duckdb.engine.tables.engine import checked_connection
from dpforest_duckdb.errors import DpforestError, number_of
from dpforest_duckdb.model.files import write_file
from dpforest_duckdb.model.json_format import MAX_CHARACTERS, from_json, to_json
from dpforest_duckdb.model.plot import plot_effects, plot_importances, plot_tree
from dpforest_duckdb.model.rules import Rule, rules
from dpforest_duckdb.scoring.content import ForestContent
from dpforest_duckdb.scoring.dialects import Form
from dpforest_duckdb.scoring.dialects import dialect as find_dialect
from dpforest_duckdb.scoring.publish import publish_sql


@dataclass(frozen=True, repr=False)
class Forest(ForestContent):
    """A trained forest, which may be published if `private`.

    Its `domain` is public. Its `trees` hold noisy counts, splits that were drawn, and votes: all of
    it was paid for. `guarantee` says what it promises, or why it promises nothing. See
    `ForestContent` for the other fields.
    """

    @overload
    def predict(
        self, con: duckdb.DuckDBPyConnection, table: str | AnyFrame, *, prefix: str = ""
    ) -> duckdb.DuckDBPyRelation: ...

    @overload
    def predict(self, con: Session, table: object, *, prefix: str = "") -> SparkFrame: ...

    def predict(self, con: object, table: Any, *, prefix: str = "") -> Any:
        """The rows of a table with `prediction` and `p_<class>`, as a DuckDB relation.

        `table` is a name, a relation of the connection, or a DataFrame. The model reads columns of
        a DataFrame in the types that it was trained on; the result has them as they are.
        With a Spark session as `con`, it is a name or a DataFrame of Spark, and so is the result.
        Raises `UsageError` for a connection or rows of another kind, and `DpforestError` if a
        column is missing, has another type, or has the name of a new one; `prefix` changes the new
        names.
        """
        refuse_wrong_types(locals())
        if is_session(con):
            return predicted_in_spark(con, self, table, prefix)
        return predicted(checked_connection(con), self, table, prefix)

    def to_sql(
        self,
        table: str | None = None,
        *,
        form: Form = "select",
        name: str | None = None,
        prefix: str = "",
        replace: bool = False,
        fast: bool = False,
        dialect: str = "duckdb",
        columns: Sequence[str] = (),
        key: Sequence[str] = (),
        force: bool = False,
    ) -> str:
        """SQL that scores a table: a select, or the statement that makes a view, table or macro.

        `name` is that of the view, table or macro; by default the model's with `_scored`. With
        `replace` the statement makes it in place of one of that name. `dialect` is the engine
        (docs/engines.md). For engines other than DuckDB, `columns` names the table's columns or
        `key` those to keep. `fast` takes the fastest form, which works in DuckDB only. `force`
        allows statements that are larger than the engine accepts by default. Raises `UsageError`
        for an unknown dialect or a missing option, `DpforestError` for what the engine does not
        support.
        """
        refuse_wrong_types(locals(), table=optional(TEXT), name=optional(TEXT))
        return publish_sql(
            self,
            table or self.table,
            form=form,
            name=name,
            prefix=prefix,
            replace=replace,
            fast=fast,
            dialect=find_dialect(dialect),
            columns=columns,
            key=key,
            force=force,
        )

    def rules(self) -> list[Rule]:
        """Every path from a root to a node as a dictionary, tree by tree. All of it is released.

        - `tree`, `node`, `leaf`, `depth`; `rule` (the path in words).
        - `counts` (noisy, in the order of `domain.classes`) and `noise` (the standard deviation of
          the noise in each); None if the recipe keeps none.
        - `prediction` (a class), `confidence` and `support` (shares of the counts, from 0 to 1).
        - `votes` (of a leaf, in the order of the classes); `log_odds` (by class) if they are that.
        """
        return rules(self)

    def save(self, path: str | Path) -> None:
        """Write the forest as JSON, completely or not at all.

        A model in a file of that name is replaced, as by `joblib.dump`: if it were refused, a
        script that ends there would lose a forest that is paid for. Raises `DpforestError` for a
        file that holds anything else: it stays as it is. The command line checks this before the
        debit, and replaces a model only with --replace.
        """
        refuse_wrong_types(locals())
        write_file(path, self.to_json(), "model")

    def to_json(self) -> str:
        """The forest as JSON, columns of integers per tree; `from_json` reads it back."""
        return to_json(self)

    def plot_importances(self, ax: Any = None) -> Any:
        """The importance of each attribute, drawn with matplotlib; returns the axes.

        Raises `DpforestError` without the extra `plot`, as do the other drawings.
        """
        return plot_importances(self, ax)

    def plot_effects(self, attribute: str | None = None, ax: Any = None) -> Any:
        """The effect of an attribute, with a band for the noise, drawn with matplotlib."""
        return plot_effects(self, attribute, ax)

    def plot_tree(self, tree: int = 0, ax: Any = None) -> Any:
        """One tree, drawn with matplotlib; `tree` counts from 0."""
        return plot_tree(self, tree, ax)

    def __eq__(self, other: object) -> bool:
        """Whether the files of both would be the same."""
        return isinstance(other, Forest) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __repr__(self) -> str:
        trees = number_of(len(self.trees), "tree")
        return f"<Forest {self.name!r}: {self.system}, {trees}, {self.guarantee}>"

    def _repr_html_(self) -> str:
        """A short table for notebooks."""
        facts = {
            "recipe": self.system,
            "predicts": f"{self.domain.target} ({', '.join(self.domain.classes[:8])})",
            "forest": f"{len(self.trees)} trees, {self.nodes} nodes, depth {self.depth}",
            "guarantee": str(self.guarantee),
        }
        rows = "".join(
            f"<tr><th style='text-align:left'>{name}</th><td>{escape(value)}</td></tr>"
            for name, value in facts.items()
        )
        caption = escape(f"Forest {self.name}")
        return f"<table><caption><b>{caption}</b></caption>{rows}</table>"

    def named(self, name: str) -> Forest:
        """This forest under another name."""
        refuse_wrong_types(locals(), name=TEXT)
        return replace(self, name=name)

    @staticmethod
    def from_json(text: str) -> Forest:
        """Read a forest, checking everything: a hostile file must not reach SQL.

        Raises `DpforestError` for a damaged, newer or oversized model.
        """
        return from_json(text, Forest)


def load_forest(path: str | Path) -> Forest:
    """Read a forest from a JSON file. Raises `DpforestError` with one sentence."""
    refuse_wrong_types(locals())
    try:
        file = Path(path)
        if file.stat().st_size > 4 * MAX_CHARACTERS:  # the most that UTF-8 needs
            raise DpforestError(f"The model file {path} is too large for a model: check its name.")
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise DpforestError(f"There is no model file {path}: check its name and folder.") from None
    except (OSError, UnicodeDecodeError):
        raise DpforestError(
            f"The model file {path} cannot be read: check that it is one, and its permissions."
        ) from None
    return from_json(text, Forest, named=f"The model file {path}")
