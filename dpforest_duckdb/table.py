"""A base table as the catalogue shows it; all of it is public."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TableInfo:
    """What the catalogue says of a base table: its full name and its columns' types. Public."""

    catalog: str
    schema: str
    name: str
    columns: dict[str, str]
    comment: str = ""

    @property
    def display(self) -> str:
        return self.name if self.schema == "main" else f"{self.schema}.{self.name}"

    @property
    def reference(self) -> str:
        """The name as `Engine.table` reads it: a part that holds a dot or a quote is quoted."""
        parts = [self.name] if self.schema == "main" else [self.schema, self.name]
        return ".".join(
            '"' + part.replace('"', '""') + '"' if set(part) & {".", '"'} else part
            for part in parts
        )
