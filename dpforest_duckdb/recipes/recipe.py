"""A recipe: a declaration of the pieces of a system, published or this package's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any

from dpforest_duckdb.arrays import Integers
from dpforest_duckdb.domain import Domain
from dpforest_duckdb.engine.base import Sample
from dpforest_duckdb.errors import DpforestError
from dpforest_duckdb.learners.candidate_bins import worth_drawing
from dpforest_duckdb.learners.levels import LEVELS
from dpforest_duckdb.privacy.measure import PURE_DP, Measure
from dpforest_duckdb.privacy.plan import Plan, PlanError
from dpforest_duckdb.privacy.wording import Purpose
from dpforest_duckdb.recipes.conformance import Line
from dpforest_duckdb.recipes.leaf_queries import LEAF_COUNTS, LeafRelease
from dpforest_duckdb.request import Finish, Learner, Request, Stop
from dpforest_duckdb.scoring.links import SHARES, SOFTMAX, Link
from dpforest_duckdb.splits.candidates import SplitType
from dpforest_duckdb.splits.choose import Chooser
from dpforest_duckdb.splits.limits import MAX_LEAVES, deepest_complete, most_leaves, most_roots
from dpforest_duckdb.tree import Voting

BOOTSTRAP = "A row drawn several times into a bootstrap sample changes its counts by more than one."
LOSS = "One noisy count may have a privacy loss of up to e^ε - 1 instead of ε."
ALL_ROWS = "Every tree sees all rows once."
OURS = "It is this package's own."  # for recipes without a paper


def as_many_as_attributes(domain: Domain) -> int:
    """m trees, or splits on a path."""
    return len(domain.attributes)


def half_the_attributes(domain: Domain) -> int:
    """m/2 splits on a path: a public rule of several papers."""
    return max(1, len(domain.attributes) // 2)


@dataclass(frozen=True)
class SecondPhase:
    """A second phase, whose trees give more weight to rows that the first phase classifies wrongly.

    `share` of the trees, and of the budget, belongs to the first phase. A row that half of its
    trees or more classify wrongly counts `misclassified_weight` times in the second phase, so every
    sensitivity is that many times larger. In a bootstrap sample it is drawn in proportion to the
    trees that are wrong.
    """

    share: Fraction
    misclassified_weight: int


@dataclass(frozen=True)
class IfOneSuffices:
    """The recipe to switch to if one attribute alone classifies enough rows correctly.

    `suffices` decides that from a request whose noisy `misclassified` rows are known. They are the
    answer to the query "strongest", whose `cost` in nano-ε follows from the noisy class counts. If
    that is 0, the query is not asked. `when` says in words when one suffices.
    """

    recipe: Recipe
    when: str
    cost: Callable[[Request], int]
    suffices: Callable[[Request], bool]


@dataclass(frozen=True)
class Adaptation:
    """How a recipe adapts to noisy figures of the rows, which a run asks for before trees grow.

    - `size` sets trees, depth and bins, from noisy class counts `[class]` of all rows.
    - `successor` picks the recipe to switch to, one of `successors`, by the same counts; both query
      them at the same ε. A successor that `keeps_size` gets trees and depth as they were requested,
      others set their own.
    - `private_bounds`: the queries "bounds" and "bounds window 1", … estimate narrower bounds if
      public ones are far too wide. With `all_in_mu` and a δ they too cost μ².
    - The query "strongest" counts the rows that one attribute alone classifies wrongly, for the
      attribute where they are fewest. With `queries_strongest` it is asked if there are three
      classes or more, more than one tree, and little noise in the figure; then `size` uses it. If
      there is an `if_one_suffices`, that says whether it is asked and what follows.
    - `cuts_at_medians`: the plan may have the query "bins", which cuts numeric attributes at
      private medians (`learners.private_bins`).
    - `draws_bins`: with three classes or more, numeric attributes are drawn together with their
      bins (`learners.candidate_bins`).
    """

    size: Callable[[Integers, Request], Request] | None = None
    successor: Callable[[Request], Recipe] | None = None
    successors: tuple[Recipe, ...] = ()
    keeps_size: bool = False
    private_bounds: bool = False
    all_in_mu: bool = False
    queries_strongest: bool = False
    if_one_suffices: IfOneSuffices | None = None
    cuts_at_medians: bool = False
    draws_bins: bool = False

    @property
    def counts_rows(self) -> bool:
        """Whether trees, depth or the recipe itself follow from noisy class counts of all rows."""
        return self.size is not None or self.successor is not None

    def measure(self, request: Request) -> Measure:
        """How the costs of bounds add up: in μ² only if every plan with a δ is in μ²."""
        return request.measure if self.all_in_mu else PURE_DP


FIXED = Adaptation()  # nothing depends on the rows


@dataclass(frozen=True, eq=False, kw_only=True)  # without eq a recipe can be a key
class Recipe:
    """One system, rigorous or as published.

    Rows, splits and leaves:

    - `rows`: every tree sees all rows (the budget is divided by the trees), a disjoint part of
      them, or a bootstrap sample (never private).
    - `split_type` says which splits are possible. `bins` is the number of equal parts of a number's
      range; 0 for the default. With `taxonomies`, groups of categories are split before their
      categories.
    - The level loop asks `choose` how a node is split, `stop` which nodes stay leaves, and `leaf`
      at every leaf. A recipe whose `learner` does not use that loop has no `choose` and no `stop`.
    - `learner` grows the trees. With `ends_early`, `choose` or `learner` may leave a node unsplit
      too, so that trees need not be complete.
    - `second` is a second phase, if there is one.

    The budget, and what follows from released figures: `plan` gives the queries.

    - "rows": a noisy class histogram of all rows, if there is an `adaptation`; "rows again": a
      second one, only if the first is too noisy (`row_count_queries`);
    - the level loop's: "histogram" or "size" at every node, "split" at every inner node, "leaf" at
      every leaf, "scores" of sums of votes;
    - boosting's "sweep", "sweep again" and "forest", the "tables" of attributes, class means'
      "window", "means", "squares" and "products" (see `learners`);
    - those of the `adaptation`.

    `finish` turns what was released into votes, `voting` says how trees vote together, `link` how
    votes become probabilities.

    Trees and depth:

    - `trees` and `depth` are numbers or public rules; they are maxima if the recipe adapts. `depth`
      is counted as in the paper, in which the root has the depth `depth_of_root`: the longest path
      has depth - depth_of_root splits.
    - With `one_tree_per_attribute` there are at most as many trees as attributes.
    - With `fixed_trees` or `fixed_depth` a requested number has no effect. `limited_trees` names
      the trees that a requested number limits, if there are others besides.
    - `instead` names the nearest recipe for requests that this one cannot meet.

    Its forms:

    - `published` is the form as published, in which `as_published` is true. `flaws` say why a form
      is not private, `repair` what the rigorous form does instead, `one_form` why there is no
      other.
    - `variants` are pieces that NAME:VARIANT replaces; `refused` says why a variant does not exist.
    - `lines` are the lines of the system in its sources, each with the piece that implements it.
    """

    name: str
    title: str
    year: int
    paper: str

    # rows, splits and leaves
    rows: Sample
    split_type: SplitType
    bins: int = 0
    taxonomies: bool = False
    choose: Chooser | None = None
    stop: Stop | None = None
    leaf: LeafRelease = LEAF_COUNTS
    learner: Learner = LEVELS
    ends_early: bool = False
    second: SecondPhase | None = None

    # the budget, and what follows from released figures
    plan: Callable[[Request], Plan]
    adaptation: Adaptation = FIXED
    finish: Finish
    voting: Voting = Voting.SUM
    link: Link = SHARES

    # trees and depth, and what a requested number of them does
    trees: int | Callable[[Domain], int]
    depth: int | Callable[[Domain], int]
    depth_of_root: int = 0
    one_tree_per_attribute: bool = False
    fixed_trees: bool = False
    fixed_depth: bool = False
    limited_trees: str = ""
    instead: str = "dprfmaxtree"

    # its forms, and how they differ from the paper
    published: Recipe | None = None
    as_published: bool = False
    flaws: tuple[str, ...] = ()
    repair: str = ""
    one_form: str = ""
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    lines: tuple[Line, ...] = ()

    @property
    def label(self) -> str:
        """The name, and the form, for models and ledgers."""
        return f"{self.name} as published" if self.as_published or self.flaws else self.name

    def request(
        self,
        domain: Domain,
        epsilon: int,
        *,
        trees: int | None = None,
        depth: int | None = None,
        rows_per_unit: int = 1,
        delta: int = 0,
    ) -> Request:
        """The request with trees and depth, set by public rules.

        Raises `DpforestError` if the recipe cannot meet it.
        """
        if self.taxonomies:
            domain = domain.generalised()
        if self.bins:
            domain = domain.recut(self.bins, "linear")
        usual_trees = self.trees if isinstance(self.trees, int) else self.trees(domain)
        usual_depth = self.depth if isinstance(self.depth, int) else self.depth(domain)
        depth = None if self.fixed_depth else depth
        wanted = usual_trees if trees is None else trees
        if self.one_tree_per_attribute and self.adaptation.counts_rows:  # `wanted` is a maximum
            wanted = min(wanted, len(domain.attributes))
        if self.one_tree_per_attribute and wanted > len(domain.attributes):
            raise DpforestError(
                f"Recipe {self.name} gives every tree another root attribute and the domain has "
                f"{len(domain.attributes)}: ask for at most that many --trees, or take --recipe "
                f"{self.instead}."
            )
        deep = max(1, (usual_depth if depth is None else depth) - self.depth_of_root)
        limit = self._limit(domain, wanted, deep)
        if limit and depth is not None:
            raise DpforestError(
                f"Recipe {self.name} splits every node, and a forest of {wanted} trees cannot be "
                f"that large: ask for --depth {limit + self.depth_of_root} at most, or for fewer "
                "--trees."
            )
        request = Request(
            domain,
            epsilon,
            wanted,
            deep,
            rows_per_unit,
            delta=delta,
            max_splits=limit,
            disjoint=self.rows == "disjoint",
        )
        self._refuse_uncountable(request)
        return request

    def remarks(self, trees: int | None, depth: int | None) -> list[str]:
        """A sentence for each requested number that has no effect, or another one."""
        found = []
        if trees is not None and self.fixed_trees:
            found.append(f"--trees has no effect: recipe {self.name} uses all attributes.")
        if trees is not None and self.limited_trees:
            found.append(
                f"--trees limits only the {self.limited_trees} of recipe {self.name}: there may be "
                "fewer, and it has other trees too."
            )
        if trees is not None and self.adaptation.successors:
            found.append(
                f"--trees is only an upper limit, for log-odds: recipe {self.name} may pick a "
                "recipe that sets the number of its trees itself. If --trees is less "
                "than the number of attributes, it picks none that needs a tree for each."
            )
        if depth is not None and self.fixed_depth:
            found.append(
                f"--depth has no effect: recipe {self.name} sets the depth of its trees itself."
            )
        elif depth is not None and self.depth_of_root:
            splits = depth - self.depth_of_root
            found.append(
                f"--depth counts the nodes on a path in {self.name}, as its paper does: the most "
                f"splits are {splits}."
                if splits
                else f"--depth 1 is a root alone in {self.name}, so it counts as "
                f"{self.depth_of_root + 1}."
            )
        return found

    def _limit(self, domain: Domain, trees: int, depth: int) -> int:
        """The depth at which trees that the recipe does not limit are cut; 0 if they are not.

        Raises `DpforestError` if not even the roots can be split.
        """
        most = most_leaves(domain)
        deepest = deepest_complete(domain, self.split_type, most // trees)
        if deepest == 0:
            narrowest = min(domain.attributes, key=lambda a: a.cells)
            many = f" and {len(domain.classes)} classes" if most < MAX_LEAVES else ""
            raise DpforestError(
                f"Recipe {self.name} gives every category a branch, and even "
                f'"{narrowest.name}" has too many for {trees} trees{many}: group its categories, '
                f"ask for fewer --trees, or take --recipe {self.instead}."
            )
        complete = self.stop is None and not self.ends_early
        return deepest if complete and deepest is not None and deepest < depth else 0

    def _refuse_uncountable(self, request: Request) -> None:
        """Raise `DpforestError` if the roots of all trees have too many counts for memory.

        Below the roots there is no need: nodes beyond the limit stay leaves. A recipe that counts
        rows first is not refused, because it may make fewer trees than were requested.
        """
        if self.adaptation.counts_rows or self.plan(request).query(Purpose.SPLIT) is None:
            return
        most, trees = most_roots(request.domain), max(each.trees for each in self.phases(request))
        if trees > most:
            fewer = f" ask for --trees {most} at most, or" if most else ""
            raise DpforestError(
                f"Recipe {self.name} counts the rows of {trees} roots by "
                f"{sum(request.domain.cells)} cells and {len(request.domain.classes)} classes, "
                f"which is too much:{fewer} leave out attributes with many categories or bins."
            )

    def phases(self, request: Request) -> tuple[Request, ...]:
        """The request of each phase: its trees, and a budget in proportion to them."""
        if self.second is None or request.trees < 2:
            return (request,)
        first = max(1, int(request.trees * self.second.share))
        counts = (first, request.trees - first)
        weights = (1, self.second.misclassified_weight)
        return tuple(
            replace(
                request,
                epsilon=request.epsilon * trees // request.trees,
                trees=trees,
                rows_per_unit=request.rows_per_unit * weight,
            )
            for trees, weight in zip(counts, weights, strict=True)
        )

    def draws_bins_for(self, request: Request) -> bool:
        """Whether attributes are drawn together with their bins."""
        draws = self.adaptation.draws_bins and worth_drawing(request.domain)
        return draws and self.plan(request).query(Purpose.ATTRIBUTE) is not None

    def whole_plan(self, request: Request) -> Plan:
        """The queries of all phases.

        Raises `PlanError` if they cost more than was requested. Only a form that has flaws may cost
        more.
        """
        plan = Plan(tuple(q for phase in self.phases(request) for q in self.plan(phase).queries))
        if not self.flaws and not plan.fits(request.epsilon, request.delta):
            raise PlanError(f"the plan of {self.name} costs more than its budget")
        return plan


own_recipe = partial(Recipe, year=2026, paper="this package", one_form=OURS, rows="all")
# trees of one attribute each, or below roots, that the learner grows from tables of class counts
recipe_of_tables = partial(
    own_recipe,
    split_type="multiway",
    trees=as_many_as_attributes,
    fixed_depth=True,
    link=SOFTMAX,
)


def repaired(published: Recipe, repair: str, **pieces: Any) -> Recipe:
    """The rigorous form of a published one, with other pieces in place of those that fail."""
    form = replace(published, as_published=True)
    return replace(published, published=form, flaws=(), repair=repair, **pieces)
