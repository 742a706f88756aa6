"""What `dpforest recipes` and the page of systems show of a recipe."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import product
from typing import Any

from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.domain.types import INTEGER, VARCHAR
from dpforest_duckdb.privacy.amounts import ATTO
from dpforest_duckdb.privacy.plan import Plan
from dpforest_duckdb.recipes import adaptation
from dpforest_duckdb.recipes.branches import branches
from dpforest_duckdb.recipes.recipe import OURS, Recipe
from dpforest_duckdb.request import Request

PICKED = "those of the recipe that is picked"


@dataclass(frozen=True)
class Pieces:
    """The pieces of a recipe in words, or as numbers."""

    rows: str
    splits: str
    trees: object
    depth: object
    depth_of_root: int
    leaf: str
    one_tree_per_attribute: bool

    @property
    def depth_in_words(self) -> str:
        """The depth, and where it is counted from if not with 0 at the root."""
        return f"{self.depth}{', with the root at 1' if self.depth_of_root else ''}"


@dataclass(frozen=True)
class RecipeFacts:
    """A recipe, of which each fact is found when it is shown; ε is in nano."""

    recipe: Recipe
    epsilon: int

    @property
    def private_as_published(self) -> bool | None:
        """None if no text published it."""
        return None if self.recipe.one_form == OURS else not self.flaws

    @property
    def private(self) -> bool:
        return not self.recipe.flaws

    @property
    def flaws(self) -> tuple[str, ...]:
        """Of the form as published."""
        return (self.recipe.published or self.recipe).flaws

    @property
    def variants(self) -> list[str]:
        return [f"{self.recipe.name}:{variant}" for variant in self.recipe.variants]

    @property
    def picks(self) -> list[str]:
        """The names of the recipes that it picks one of; none if it is one itself."""
        return list(dict.fromkeys(each.name for each in self.recipe.adaptation.successors))

    @property
    def pieces(self) -> Pieces:
        recipe, picks = self.recipe, bool(self.picks)
        return Pieces(
            rows=recipe.rows,
            splits=PICKED if picks else recipe.split_type,
            trees=PICKED if picks else _number(recipe.trees),
            depth=PICKED if picks else _number(recipe.depth),
            depth_of_root=recipe.depth_of_root,
            leaf="log-odds" if recipe.link.log_odds else recipe.leaf.gives,
            one_tree_per_attribute=recipe.one_tree_per_attribute and not picks,
        )

    @cached_property
    def mechanisms(self) -> dict[str, str]:
        """The mechanisms of every query that the recipe may ask, by its purpose.

        A recipe that adapts to the rows is shown for two, three and eight classes, few and many
        numbers, with a δ and without.
        """
        plans = [self.example]
        if self.recipe.adaptation.counts_rows:
            for numbers, classes, delta in product((2, 12), (2, 3, 8), (0, ATTO // 10**5)):
                domain = _domain(numbers, classes, 1_000)
                request = self.recipe.request(domain, self.epsilon, delta=delta)
                plans.extend(adaptation.plans(self.recipe, request))
        found: dict[str, list[str]] = {}
        for query in (query for plan in plans for query in plan.queries):
            of_purpose = found.setdefault(query.purpose, [])
            if query.mechanism not in of_purpose:
                of_purpose.append(query.mechanism)
        return {purpose: " or ".join(several) for purpose, several in found.items()}

    @property
    def example(self) -> Plan:
        """The plan for a domain of six categorical attributes and two numeric ones."""
        return self.recipe.whole_plan(self._request)

    @property
    def adapts(self) -> bool:
        """Whether it asks other queries of other numbers of rows."""
        return len(branches(self.recipe, self._request)) > 1

    @property
    def _request(self) -> Request:
        return self.recipe.request(_domain(2, 2, 31), self.epsilon)

    def as_json(self) -> dict[str, Any]:
        recipe = self.recipe
        return {
            "name": recipe.name,
            "title": recipe.title,
            "year": recipe.year,
            "private_as_published": self.private_as_published,
            "rigorous_repair": recipe.repair,
            "private": self.private,
            "paper": recipe.paper,
            "flaws": self.flaws,
            "one_form_because": recipe.one_form,
            "variants": self.variants,
            "picks": self.picks,
            "pieces": {**asdict(self.pieces), "mechanisms": self.mechanisms},
            "lines": [
                {
                    "step": line.step,
                    "source": line.source,
                    "piece": line.piece,
                    "form": line.standing,
                    "note": line.note,
                }
                for line in recipe.lines
            ],
        }


def _number(of: object) -> object:
    """A number of trees or of splits on a path, or words if a function gives it."""
    return of if isinstance(of, int) else "depends on the domain"


def _domain(numbers: int, classes: int, upper: int) -> Domain:
    """Six categorical attributes, and some numbers from 0 to `upper`."""
    attributes = [Attribute(f"a{n}", "categorical", ("x", "y", "z")) for n in range(6)]
    attributes += [Attribute(f"n{n}", "numeric", lower=0, upper=upper) for n in range(numbers)]
    types = {each.name: VARCHAR if each.kind == "categorical" else INTEGER for each in attributes}
    labels = tuple(map(str, range(classes)))
    return Domain(tuple(attributes), "c", labels).bind({**types, "c": VARCHAR})
