"""One attribute of the domain: its cells, and how it is bound to a column."""

from __future__ import annotations

import datetime as dt
import math
import numbers
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property, lru_cache
from itertools import pairwise
from operator import le, lt
from typing import TYPE_CHECKING, Any, Literal, SupportsFloat, get_args

from dpforest_duckdb.arguments import (
    FLAG,
    GROUPS,
    LEVELS,
    NUMBERS,
    TEXT,
    TEXTS,
    ArgumentKind,
    is_whole,
    refuse_wrong_types,
)
from dpforest_duckdb.domain.bin_edges import DEFAULT_BINS, MAX_BINS, Scale, cut, rounded
from dpforest_duckdb.domain.names import is_unicode
from dpforest_duckdb.domain.type_limits import refuse_beyond, refuse_categories, refuse_inexact
from dpforest_duckdb.domain.types import NUMERIC, UNKNOWN, ColumnType, Family, Number
from dpforest_duckdb.domain.values import (
    EPOCH,
    category_text,
    last_moment,
    ordinal,
    plain_digits,
)
from dpforest_duckdb.errors import DpforestError, UsageError

AttributeKind = Literal["categorical", "numeric"]
COLUMN_TYPE: ArgumentKind = (lambda value: isinstance(value, ColumnType), "a ColumnType")
_KINDS = {
    **dict.fromkeys(("name", "kind", "of"), TEXT),
    **dict.fromkeys(("ordered", "nullable"), FLAG),
    "values": TEXTS,
    "edges": NUMBERS,
    "taxonomy": GROUPS,
    "subgroups": LEVELS,
    "type": COLUMN_TYPE,
}
MAX_CATEGORIES = 10_000
SHOWN = 8  # names, where they may be many
WHOLE: frozenset[Family] = frozenset({"integer", "date"})  # numbers, or days since 1970
TIMES: frozenset[Family] = frozenset({"date", "timestamp"})
Groups = tuple[tuple[str, tuple[str, ...]], ...]  # one level of a taxonomy: name and categories
GivenGroups = Sequence[tuple[str, Sequence[str]]]  # one level as it may be given
Limit = SupportsFloat | dt.date  # any number, also of NumPy, or a date
_PLAIN = frozenset({int, float})


@dataclass(frozen=True)
class Attribute:
    """One public attribute of the table.

    `values` are the categories as text, in public order; `ordered` says that this order has a
    meaning. `lower` and `upper` are inclusive public bounds. `edges` are the cut points between
    bins, ascending; a value equal to an edge lies below it. If none are given, the bounds are cut
    into `bins` (32 by default) on a `scale` ("linear" by default). Once the attribute is bound to a
    column, its edges are numbers: days since 1970 for DATE, seconds for TIMESTAMP. `type` is
    the column's type, filled in by `bound`. With `nullable`, NULL of a categorical attribute has
    a cell of its own. `taxonomy` puts every category into one named group; `subgroups` are the
    levels below, each finer than the one before. An attribute of groups has their names as
    `values`, and `of` names the column that it reads. Lists become tuples, and numbers of other
    libraries become Python's.

    Raises `UsageError` for a wrong type, `DpforestError` for what contradicts itself.
    """

    name: str
    kind: AttributeKind
    values: tuple[str, ...] = ()
    ordered: bool = False
    lower: Number | dt.date | None = None
    upper: Number | dt.date | None = None
    edges: tuple[Any, ...] = ()
    bins: int | None = None
    scale: Scale | None = None
    nullable: bool = True
    type: ColumnType = UNKNOWN
    taxonomy: Groups = ()
    subgroups: tuple[Groups, ...] = ()
    of: str = ""

    if TYPE_CHECKING:  # what may be given, and becomes the fields above

        def __init__(
            self,
            name: str,
            kind: AttributeKind,
            values: Sequence[str] = (),
            ordered: bool = False,
            lower: Limit | None = None,
            upper: Limit | None = None,
            edges: Sequence[Limit] = (),
            bins: int | None = None,
            scale: Scale | None = None,
            nullable: bool = True,
            type: ColumnType = UNKNOWN,
            taxonomy: GivenGroups = (),
            subgroups: Sequence[GivenGroups] = (),
            of: str = "",
        ) -> None: ...

    def __post_init__(self) -> None:
        refuse_wrong_types(vars(self), **_KINDS)
        settled = {
            "values": tuple(self.values),
            "lower": None if self.lower is None else _limit(self, "lower", self.lower),
            "upper": None if self.upper is None else _limit(self, "upper", self.upper),
            "edges": _plain_edges(self),
            "bins": int(self.bins) if is_whole(self.bins) else self.bins,
            "taxonomy": _groups(self.taxonomy),
            "subgroups": tuple(map(_groups, self.subgroups)),
        }
        for key, value in settled.items():
            object.__setattr__(self, key, value)
        _check_attribute(self)

    def __hash__(self) -> int:
        """A hash of a few fields: a run looks attributes up often."""
        return hash((self.name, len(self.values), len(self.edges)))

    def __repr__(self) -> str:
        if self.kind == "categorical":
            about = f"{len(self.values)} categories{' in order' * self.ordered}"
            about += f" ({shortened(self.values)})"
        else:
            ends = (str(end).removesuffix(" 00:00:00") for end in (self.lower, self.upper))
            bounds = "" if self.lower is None else f" from {' to '.join(ends)}"
            bins = f", {len(self.edges) + 1} bins" if self.edges else ""
            about = f"numeric{bounds}{bins}"
        return f"<Attribute {self.name!r}: {about}>"

    @property
    def column(self) -> str:
        """The name of the column with the values."""
        return self.of or self.name

    def categories(self, cell: int) -> tuple[str, ...]:
        """The categories that a proper cell of a categorical attribute holds."""
        return self.taxonomy[cell][1] if self.of else (self.values[cell],)

    def groups(self) -> list[Attribute]:
        """An attribute of the same column, by the groups of its taxonomy."""
        levels = (self.taxonomy, *self.subgroups)
        names = [" (group)", *(f" (group {level})" for level in range(2, len(levels) + 1))]
        return [
            replace(
                self,
                name=self.name + name,
                of=self.name,
                values=tuple(group for group, _ in level),
                ordered=False,
                taxonomy=level,
                subgroups=(),
            )
            for name, level in zip(names, levels, strict=True)
        ]

    @property
    def proper(self) -> int:
        """The number of cells with categories or bins, before "other" and NULL."""
        return len(self.values) if self.kind == "categorical" else len(self.edges) + 1

    @property
    def in_order(self) -> bool:
        """Whether neighbours among the proper cells are similar: bins, or ordered categories."""
        return self.kind == "numeric" or self.ordered

    @property
    def used_in_order(self) -> int:
        """The number of first cells whose order models may use (curves, steps).

        0 if the cells have no order, or are more than the bins that MAX_BINS edges make: such
        models need memory for every pair of cells.
        """
        return self.proper if self.in_order and self.proper <= MAX_BINS + 1 else 0

    @property
    def other(self) -> int:
        """The cell of everything outside the domain (for a number: NULL and NaN)."""
        return self.proper

    @property
    def null(self) -> int:
        """The cell of NULL and NaN: their own if a categorical is nullable, else "other"."""
        return self.proper + (self.kind == "categorical" and self.nullable)

    @property
    def cells(self) -> int:
        """The number of cells, "other" and NULL included."""
        return self.null + 1

    @cached_property
    def described(self) -> tuple[int, ...]:
        """The cells that the domain describes: no "other", and NULL only if declared."""
        return (*range(self.proper), *([self.null] if self.nullable else []))

    @property
    def family(self) -> Family:
        """The family of the column's type; "other" before the attribute is bound."""
        return self.type.family

    def label(self, cell: int) -> str:
        """A cell in words, for rules and comments."""
        if cell == self.null and self.nullable:
            return "NULL"
        if cell == self.other:
            return "other"
        if self.kind == "categorical":
            value = self.values[cell]
            # in quotes if it could be taken for one of the labels above, or for nothing
            return f"'{value}'" if value in ("NULL", "other") or not value.strip() else value
        return self.bins_label(cell, cell)

    def bins_label(self, first: int, last: int) -> str:
        """Neighbouring bins in words, as one."""
        inside = first > 0 and last < len(self.edges)
        if inside and self.family in WHOLE and self.edges[last] - self.edges[first - 1] == 1:
            return self.text(self.edges[last])  # the only value in the bins
        low = f"> {self.text(self.edges[first - 1])}" if first else ""
        high = f"<= {self.text(self.edges[last])}" if last < len(self.edges) else ""
        return " and ".join(part for part in (low, high) if part) or "any number"

    def text(self, edge: Number) -> str:
        """An edge for people: a date for a DATE column, and digits for a number of usual size."""
        if self.family == "date":
            return str(EPOCH + dt.timedelta(days=int(edge)))
        if self.family == "timestamp":
            return str(last_moment(edge, self.type.microseconds))
        if not isinstance(edge, float):
            return str(edge)
        # 15 digits hide that 0.1 + 0.2 is not .3; from 10^15 on they would hide whole numbers
        text = repr(edge) if abs(edge) >= 1e15 else f"{edge:.15g}"
        return plain_digits(Decimal(text)) if 1e-6 <= abs(edge) < 1e16 else text

    def code(self, value: object) -> int:
        """The cell of one Python value, the same as SQL computes. The attribute must be bound."""
        if value is None or (isinstance(value, float | Decimal) and math.isnan(value)):
            return self.null
        if self.kind == "numeric":
            return bisect_left(self.edges, ordinal(value, self.family))
        try:
            text = category_text(value, self.family)
        except ValueError:
            return self.other
        held = (cell for cell in range(self.proper) if text in self.categories(cell))
        return next(held, self.other)

    def bound(self, kind: ColumnType, name: str | None = None) -> Attribute:
        """This attribute for a column of a type: categories in canonical text, edges filled in.

        Raises `DpforestError` if the declared kind does not fit the type.
        """
        family = kind.family
        named = name or self.name
        if not kind.usable:
            raise DpforestError(
                f'Column "{named}" has type {kind.base}, which cannot be an attribute: '
                "leave it out of the domain or pass --exclude."
            )
        if self.kind == "categorical":
            try:
                taxonomy, *subgroups = [
                    tuple(
                        (group, tuple(category_text(v, family) for v in held))
                        for group, held in one
                    )
                    for one in (self.taxonomy, *self.subgroups)
                ]
                plain = [] if self.of else self.values
                values = tuple(category_text(value, family) for value in plain)
            except ValueError:
                remedy = "write true and false" if family == "boolean" else "correct the domain"
                raise DpforestError(
                    f'Column "{named}" is {kind.base}, but its domain lists a category that is no '
                    f"{kind.base}: {remedy}."
                ) from None
            bound = replace(
                self,
                name=named,
                values=self.values if self.of else values,
                type=kind,
                taxonomy=taxonomy,
                subgroups=tuple(subgroups),
            )
            refuse_categories(named, kind, bound.held)
            return bound
        if family not in NUMERIC:
            raise DpforestError(
                f'Column "{named}" is declared numeric but has type {kind.base}: declare it '
                "categorical with its domain, or convert the column."
            )
        try:
            edges = self._edges(family)
        except (OverflowError, ValueError):  # some number is far too large, or not a number
            edges = (math.inf,)
        refuse_beyond(named, kind, edges)
        return replace(self, name=named, edges=edges, type=kind)

    @property
    def held(self) -> tuple[str, ...]:
        """The categories that the column can hold, those of all groups if there are groups."""
        groups = [value for _, group in self.taxonomy for value in group]
        return tuple(groups) if self.of else self.values

    def rebound(self, kind: ColumnType) -> Attribute:
        """This bound attribute for a column of another type with the same values.

        Values stay in their cells. For a column of whole numbers or dates, edges become whole: such
        a value is above an edge if it is above its floor. Edges of numbers may be equal then, with
        an empty bin between them. Raises `DpforestError` if the types differ in more than
        precision, or if two edges are on one day.
        """
        families = {self.family, kind.family}
        refusal = DpforestError(
            f'Column "{self.name}" has type {kind.base}, but the model was trained on {self.type}: '
            "convert the column."
        )
        if self.kind == "categorical":
            # text may spell these in many ways, which would be other values without a word
            written = kind.family == "text" and self.family in ("decimal", "float", "timestamp")
            if written or families == {"boolean", "text"}:
                raise refusal
            try:
                bound = self.bound(kind)  # refuses categories that are no values of the type
                if kind != self.type:
                    refuse_inexact(self.name, kind, self.held)
                return bound
            except DpforestError:
                raise refusal from None
        edges = self.edges
        if self.family == "timestamp" and kind.family == "date":
            edges = tuple(math.floor(edge / 86_400) for edge in edges)
            if len(set(edges)) < len(edges):
                raise refusal  # the hours that the model compares are lost
        elif len(families) > 1 and not families <= {"integer", "decimal", "float"}:
            raise refusal
        elif kind.family == "integer":
            edges = tuple(math.floor(edge) for edge in edges)
        refuse_beyond(self.name, kind, edges)
        return replace(self, type=kind, edges=edges)

    def recut(self, bins: int, scale: Scale = "mixed") -> Attribute:
        """This bound attribute in about that many bins on the mixed scale, if it is numeric.

        Bins, a scale or edges that the domain sets stay as they are.
        """
        return _recut(self, bins, scale) if self.may_be_recut else self

    @property
    def may_be_recut(self) -> bool:
        """Whether it is a bound numeric attribute whose bins follow from its bounds alone."""
        if self.kind != "numeric" or self.lower is None or self.bins or self.scale:
            return False
        return _has_default_edges(self)

    def between(self, first: int, end: int) -> Attribute:
        """This bound numeric attribute with the bounds of its bins `first` to `end - 1`, in the
        default bins. Values outside go to the first and the last bin.
        """
        lower = self.edges[first - 1] if first else self.lower
        upper = self.edges[end - 1] if end < self.proper else self.upper
        uncut = replace(self, lower=lower, upper=upper, edges=())
        return replace(uncut, edges=uncut._edges(self.family))

    def _edges(self, family: Family) -> tuple[Number, ...]:
        """The cut points in a column of this family: as given, or from the bounds, and whole where
        its values are. Raises `DpforestError` if bounds are too close together.
        """
        if self.edges:
            edges = [ordinal(edge, family) for edge in self.edges]
        else:
            try:
                edges = cut(
                    ordinal(self.lower, family),
                    ordinal(self.upper, family),
                    self.bins or DEFAULT_BINS,
                    self.scale or "linear",
                    whole=family in WHOLE,
                    has_zero=family not in TIMES,
                )
            except ZeroDivisionError:
                raise DpforestError(
                    f'lower and upper of column "{self.name}" are too close together to be cut '
                    "into bins: move them apart, or give edges."
                ) from None
        if family in WHOLE:
            edges = [math.floor(edge) for edge in edges]
        edges = sorted(set(edges))
        curved = self.scale in ("mixed", "log") and family != "date"
        if not self.edges and (curved or family == "timestamp"):
            lower, upper = ordinal(self.lower, family), ordinal(self.upper, family)
            edges = rounded(lower, edges, upper, moments=family == "timestamp")
        return tuple(edges)


def shortened(names: Sequence[str]) -> str:
    """Names for people; of many, the first SHOWN."""
    return ", ".join(names[:SHOWN]) + (", …" if len(names) > SHOWN else "")


# A run asks again and again, for other numbers of rows. Wide tables need that many.
@lru_cache(2**13)
def _has_default_edges(a: Attribute) -> bool:
    return a.edges == replace(a, edges=())._edges(a.family)


@lru_cache(2**14)
def _recut(a: Attribute, bins: int, scale: Scale) -> Attribute:
    edges = replace(a, edges=(), bins=bins, scale=scale)._edges(a.family)
    refuse_beyond(a.name, a.type, edges)
    return replace(a, edges=edges)


def _groups(level: GivenGroups) -> Groups:
    """A level of a taxonomy in tuples."""
    return tuple((group, tuple(held)) for group, held in level)


def _limit(a: Attribute, key: str, limit: object) -> Number | dt.date:
    """A bound or an edge as a date or Python's number. Raises `UsageError` for anything else."""
    if isinstance(limit, dt.date) or (isinstance(limit, int | float) and type(limit) in _PLAIN):
        return limit
    if isinstance(limit, numbers.Real | Decimal) and not isinstance(limit, bool):
        try:
            if isinstance(limit, Decimal) and abs(limit) < 10**38:
                whole = limit == limit.to_integral_value()
                return int(limit) if whole else float(limit)
            return int(limit) if is_whole(limit) else float(limit)
        except (ArithmeticError, ValueError):  # a number far too large, or NaN
            return math.nan
    raise UsageError(
        f'{key} of column "{a.name}" must be a number or a date, such as '
        "datetime.date(2020, 1, 31)."
    )


def _are_plain(edges: Sequence[object]) -> bool:
    """Whether edges are numbers of Python, no dates."""
    return _PLAIN.issuperset(map(type, edges))


def _plain_edges(a: Attribute) -> tuple[Number | dt.date, ...]:
    """The edges as `_limit` has them. A run makes many attributes whose edges are so already."""
    if isinstance(a.edges, tuple) and _are_plain(a.edges):
        return a.edges
    return tuple(_limit(a, "an edge", edge) for edge in a.edges)


def _check_attribute(a: Attribute) -> None:
    """Raise `DpforestError` for the first thing that is wrong with an attribute."""
    if not a.name or "\x00" in a.name:
        raise DpforestError("A column name in the domain is empty or holds a NUL character.")
    if not is_unicode(a.name):
        raise DpforestError(
            f'The column name "{a.name}" in the domain is not valid Unicode: correct it.'
        )
    if a.kind not in get_args(AttributeKind):
        raise DpforestError(f'kind of column "{a.name}" must be "categorical" or "numeric".')
    if a.kind == "categorical":
        _check_categories(a)
        if a.taxonomy and not a.of:
            _check_taxonomy(a)
        return
    if a.taxonomy:
        raise DpforestError(
            f'Column "{a.name}" is numeric, and a taxonomy groups categories: remove the taxonomy.'
        )
    _check_bins(a)
    if a.edges:
        _check_edges(a)
    if a.type == UNKNOWN:
        _check_limits(a)


def _check_categories(a: Attribute) -> None:
    """Refuse no categories, too many, or one that is listed twice."""
    if not a.values:
        raise DpforestError(f'Attribute "{a.name}" has no categories: list them in values.')
    if len(a.values) > MAX_CATEGORIES:
        raise DpforestError(
            f'Column "{a.name}" has more than {MAX_CATEGORIES} categories: '
            "group them, or leave the column out."
        )
    refuse_duplicates(a.name, a.values)


def _check_taxonomy(a: Attribute) -> None:
    """Refuse a level that does not put every category into one group."""
    for level in (a.taxonomy, *a.subgroups):
        held = [value for _, group in level for value in group]
        if sorted(held) != sorted(a.values):
            raise DpforestError(
                f'taxonomy of column "{a.name}" must put every category of its domain into '
                "one group, and no other."
            )
        refuse_duplicates(a.name, [group for group, _ in level])


def _check_bins(a: Attribute) -> None:
    """Refuse an unknown scale, and a number of bins beyond the limit."""
    if not (a.scale is None or (isinstance(a.scale, str) and a.scale in get_args(Scale))):
        raise DpforestError(f'scale of column "{a.name}" must be "linear", "log" or "mixed".')
    bins = DEFAULT_BINS if a.bins is None else a.bins
    if isinstance(bins, bool) or not isinstance(bins, int) or not 1 <= bins <= MAX_BINS:
        raise DpforestError(f'bins of column "{a.name}" must be a whole number, 1 to {MAX_BINS}.')


def _check_edges(a: Attribute) -> None:
    """Refuse edges that do not ascend, are too many, or come with a number of bins.

    Those of an attribute that is bound may be equal (`rebound`).
    """
    plain = a.edges if _are_plain(a.edges) else [ordinal(edge, "float") for edge in a.edges]
    ascend = lt if a.type == UNKNOWN else le
    if len(plain) > MAX_BINS or not all(ascend(x, y) for x, y in pairwise(plain)):
        raise DpforestError(
            f'edges of column "{a.name}" must ascend, with at most {MAX_BINS} of them.'
        )
    if a.type == UNKNOWN and a.bins is not None:
        raise DpforestError(
            f'Column "{a.name}" has both bins and edges in the domain: give one of them.'
        )


def _check_limits(a: Attribute) -> None:
    """Refuse bounds of an unbound attribute that are missing, or that do not fit together.

    A bound attribute may have no edge at all: it has one bin then.
    """
    limits = [limit for limit in (a.lower, a.upper, *a.edges) if limit is not None]
    if len({isinstance(limit, dt.date) for limit in limits}) > 1:
        raise DpforestError(
            f'Bounds and edges of column "{a.name}" must be all numbers, or all dates.'
        )
    if a.edges:
        return
    if a.lower is None or a.upper is None:
        raise DpforestError(
            f'Column "{a.name}" is numeric and needs lower and upper, or edges, in the domain.'
        )
    if not ordinal(a.lower, "float") < ordinal(a.upper, "float"):  # NaN is neither
        raise DpforestError(
            f'lower of column "{a.name}" must be less than upper: correct the bounds.'
        )


def refuse_duplicates(name: str, values: Sequence[str]) -> None:
    """Raise `DpforestError` for a value that is listed twice, or that no database can hold."""
    if len(set(values)) < len(values):
        raise DpforestError(f'The domain of "{name}" lists a value twice: remove one.')
    if any("\x00" in value for value in values):
        raise DpforestError(f'The domain of "{name}" holds a NUL character: remove it.')
    if not all(map(is_unicode, values)):
        raise DpforestError(
            f'The domain of "{name}" holds text that is not valid Unicode: correct it.'
        )
