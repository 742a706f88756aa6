"""The public domain of a table: its attributes, its classes, its privacy unit."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from dpforest_duckdb.arguments import (
    NAMES,
    TEXT,
    TEXTS,
    ArgumentKind,
    is_list,
    optional,
    refuse_wrong_types,
)
from dpforest_duckdb.domain.attribute import COLUMN_TYPE, Attribute, refuse_duplicates, shortened
from dpforest_duckdb.domain.bin_edges import Scale
from dpforest_duckdb.domain.names import fold, hint, spellings
from dpforest_duckdb.domain.type_limits import refuse_inexact
from dpforest_duckdb.domain.types import UNKNOWN, VARCHAR, ColumnType, enumeration
from dpforest_duckdb.errors import DpforestError, Refusals, UsageError, number_of
from dpforest_duckdb.guarantee import EACH_ROW

ATTRIBUTES: ArgumentKind = (
    lambda value: is_list(value) and all(isinstance(one, Attribute) for one in value),
    "a list of Attribute",
)
_KINDS = {
    "attributes": ATTRIBUTES,
    "target": TEXT,
    "target_type": COLUMN_TYPE,
    **dict.fromkeys(("classes", "identifiers"), TEXTS),
}


@dataclass(frozen=True)
class Domain:
    """The public description of a table: attributes, target and privacy unit.

    `attributes` are the features only. `classes` is the public class list, in the order that breaks
    ties. `target_type` is the type of the target's column, filled in by `bind`. `privacy_unit` is a
    column name, "row", or None if nothing is declared. `identifiers` are columns that name persons,
    and are never attributes. Lists become tuples.

    Raises `UsageError` for a wrong type; `DpforestError` if two names are one column, if there is
    no attribute, or if there are fewer than two classes.
    """

    attributes: tuple[Attribute, ...]
    target: str
    classes: tuple[str, ...]
    target_type: ColumnType = UNKNOWN
    privacy_unit: str | None = None
    identifiers: tuple[str, ...] = ()

    if TYPE_CHECKING:  # what may be given, and becomes the fields above

        def __init__(
            self,
            attributes: Sequence[Attribute],
            target: str,
            classes: Sequence[str],
            target_type: ColumnType = UNKNOWN,
            privacy_unit: str | None = None,
            identifiers: Sequence[str] = (),
        ) -> None: ...

    def __post_init__(self) -> None:
        refuse_wrong_types(vars(self), **_KINDS)
        for key in ("attributes", "classes", "identifiers"):
            object.__setattr__(self, key, tuple(getattr(self, key)))
        names = [attribute.name for attribute in self.attributes]
        if fold(self.target) in map(fold, names):
            raise DpforestError(
                f'Column "{self.target}" is the target and an attribute: leave it out of the '
                "attributes."
            )
        _refuse_clashes([*names, self.target, *self.identifiers])
        if not names:
            raise DpforestError(
                f'There is no attribute besides the target "{self.target}": declare columns with '
                "ENUM types or CHECK bounds, fill in the file that dpforest domain prints, or "
                "change --columns or --exclude."
            )
        if len(self.classes) < 2:
            raise DpforestError(
                f'The target "{self.target}" needs at least two classes: list them in classes.'
            )
        refuse_duplicates(self.target, self.classes)
        alike = [name for name in self.identifiers if fold(name) == EACH_ROW]
        if (
            alike
            and EACH_ROW in (self.privacy_unit, *alike)
            and fold(self.privacy_unit or "") == EACH_ROW
        ):
            raise DpforestError(
                'The privacy unit "row" means each row, but the domain has an identifier '
                f'"{alike[0]}": rename the column.'
            )

    def __repr__(self) -> str:
        attributes = number_of(len(self.attributes), "attribute")
        names = shortened([attribute.name for attribute in self.attributes])
        unit = f", privacy unit {self.privacy_unit}" if self.privacy_unit else ""
        return (
            f"<Domain: {attributes} ({names}), predicts {self.target} "
            f"({shortened(self.classes)}){unit}>"
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns with the values of the attributes and the target."""
        return (*(attribute.column for attribute in self.attributes), self.target)

    @property
    def labels(self) -> Attribute:
        """The classes, as an attribute that is the target's column."""
        return Attribute(self.target, "categorical", self.classes)

    @cached_property
    def cells(self) -> tuple[int, ...]:
        """The number of cells of each attribute."""
        return tuple(attribute.cells for attribute in self.attributes)

    @property
    def has_numbers(self) -> bool:
        """Whether an attribute is numeric. Only then may a run choose its cells."""
        return any(attribute.kind == "numeric" for attribute in self.attributes)

    def keep(self, columns: Sequence[str] | None = None, exclude: Sequence[str] = ()) -> Domain:
        """Only some attributes: `columns`, or all if it is None, without `exclude`.

        Raises `UsageError` for an empty list, and `DpforestError` for unknown names and the target.
        """
        refuse_wrong_types(locals(), columns=optional(NAMES))
        if columns is None and not exclude:
            return self
        if columns is not None and not columns:
            raise UsageError("--columns names no column: name some, or leave it out.")
        known = {fold(a.name) for a in self.attributes} | {fold(self.target)}
        known |= {fold(name) for name in self.identifiers}
        remedies = {
            "--columns": "declare its values, as in the file that dpforest domain prints",
            "--exclude": "leave it out, because a column that is not declared is not used",
        }
        for option, names in (("--columns", columns or ()), ("--exclude", exclude)):
            for name in names:
                if fold(name) not in known:
                    near = hint(name, [a.name for a in self.attributes])
                    raise DpforestError(
                        f'{option} names "{name}"{near}, which is not declared: correct the name, '
                        f"or {remedies[option]}."
                    )
        if fold(self.target) in (fold(name) for name in exclude):
            raise DpforestError(
                f'--exclude names "{self.target}", which is the target: leave it out of --exclude.'
            )
        wanted = {fold(name) for name in columns or ()}
        unwanted = {fold(name) for name in exclude}
        used = tuple(
            a
            for a in self.attributes
            if (not wanted or fold(a.name) in wanted) and fold(a.name) not in unwanted
        )
        return replace(self, attributes=used)

    def recut(self, bins: int, scale: Scale = "mixed") -> Domain:
        """This bound domain with its numeric attributes in about that many bins.

        See `Attribute.recut`.
        """
        return replace(self, attributes=tuple(a.recut(bins, scale) for a in self.attributes))

    def generalised(self) -> Domain:
        """With an attribute of groups for each level of every taxonomy."""
        groups = tuple(group for a in self.attributes if a.taxonomy for group in a.groups())
        return replace(self, attributes=(*self.attributes, *groups))

    def without(self, columns: Collection[str]) -> Domain:
        """The same without some columns, such as that of the privacy unit."""
        left_out = {fold(column) for column in columns}
        others = tuple(a for a in self.attributes if fold(a.name) not in left_out)
        return self if others == self.attributes else replace(self, attributes=others)

    def refuse_missing(self, columns: Collection[str]) -> None:
        """Raise `DpforestError` for columns that the domain names and a table does not have."""
        spelt, refusals = spellings(columns), Refusals()
        for name in (self.target, *(attribute.name for attribute in self.attributes)):
            with refusals.gathered():
                self._found(name, spelt)
        refusals.refuse()

    def _found(self, name: str, spelt: Mapping[str, str]) -> str:
        """A column of the domain as the table spells it; `spelt` has its columns by `fold`.

        Raises `DpforestError` if it has no such column.
        """
        if fold(name) in spelt:
            return spelt[fold(name)]
        named = {fold(each) for each in (*self.columns, *self.identifiers)}
        near = hint(name, [other for folded, other in spelt.items() if folded not in named])
        remedy = "correct the domain, or leave it out with --exclude"
        if name == self.target:
            remedy = "correct --target, or the target in the domain"
        raise DpforestError(f'There is no column "{name}"{near}, which the domain names: {remedy}.')

    def bind(self, columns: Mapping[str, ColumnType]) -> Domain:
        """This domain for a table: real column names, types, canonical categories and bin edges.

        `columns` maps the table's column names to types. Names ignore case, as in the database.
        Raises `DpforestError` for a missing column or a wrong type.
        """
        found = spellings(columns)
        target = self._found(self.target, found)
        labels = bound_labels(self.classes, target, columns[target])
        attributes, refusals = [], Refusals()
        for attribute in self.attributes:
            with refusals.gathered():
                if attribute.of:
                    raise DpforestError(
                        f'Attribute "{attribute.name}" has of="{attribute.of}", which is for the '
                        "groups that training makes: give the column as name, and its groups as "
                        "taxonomy."
                    )
                named = self._found(attribute.name, found)
                attributes.append(attribute.bound(columns[named], named))
                if attribute.kind == "categorical":
                    refuse_inexact(named, columns[named], attributes[-1].held)
        refusals.refuse()
        return replace(
            self,
            attributes=tuple(attributes),
            target=target,
            classes=labels.values,
            target_type=columns[target],
            identifiers=tuple(found.get(fold(name), name) for name in self.identifiers),
        )

    def published(self) -> Domain:
        """This domain without labels of ENUM types that it does not list, and without another order
        of those that it lists: both may come from rows.

        A column of such a type is one of text in models. A target has a type of the classes alone.
        """
        attributes = [
            replace(each, type=VARCHAR) if each.type.lists_others(each.held) else each
            for each in self.attributes
        ]
        kind = self.target_type
        if kind.lists_others(self.classes):
            kind = enumeration(self.classes)
        return replace(self, attributes=tuple(attributes), target_type=kind)


def bound_labels(classes: tuple[str, ...], column: str, kind: ColumnType) -> Attribute:
    """The classes as a column of this type has them. Raises `DpforestError` if it cannot."""
    try:
        labels = Attribute(column, "categorical", classes).bound(kind)
        refuse_inexact(column, kind, labels.values)
        return labels
    except DpforestError:
        known = " to true and false" if kind.base == "BOOLEAN" else ""
        raise DpforestError(
            f'Column "{column}" is {kind.base}, which cannot hold the classes of the domain: name '
            f"the column of the classes with --target, or correct the classes{known}."
        ) from None


def _refuse_clashes(names: Iterable[str]) -> None:
    seen: dict[str, str] = {}
    for name in names:
        if fold(name) in seen:
            raise DpforestError(
                f'The domain names "{seen[fold(name)]}" and "{name}", which are one column to the '
                "database: remove one."
            )
        seen[fold(name)] = name
