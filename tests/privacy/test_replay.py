"""A training is recorded on a table, then replayed on a neighbour with the recorded outcomes.

Every call of a mechanism must be the same but for its private input, which may differ from the
recorded one by the sensitivity in use. So rows have no influence but through these inputs. The
losses of all calls are added up and compared with the debit; the accountant is not asked.
"""

from __future__ import annotations

import copy
import math
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import numpy as np
import pytest
from variants import some

from dpforest_duckdb.arrays import Integers, Mask
from dpforest_duckdb.audit.recipes import release_uncapped
from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.engine.base import Coding
from dpforest_duckdb.engine.tables.snapshot import DuckDBSnapshot
from dpforest_duckdb.learners import boosting, specialisation
from dpforest_duckdb.privacy import selection
from dpforest_duckdb.privacy.accountant import Accountant
from dpforest_duckdb.privacy.amounts import ATTO, NANO
from dpforest_duckdb.privacy.bits import SeededBits
from dpforest_duckdb.privacy.gaussian_dp import DRAWN, PURE, squared_mu_of
from dpforest_duckdb.privacy.noise import ExactNoise
from dpforest_duckdb.privacy.randomness import Randomness
from dpforest_duckdb.recipes import RECIPES
from dpforest_duckdb.recipes.recipe import OURS
from dpforest_duckdb.training import run as training
from dpforest_duckdb.training.context import RunContext
from dpforest_duckdb.training.preliminary import row_counts
from dpforest_duckdb.training.prepare import prepare

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # of seeds and public facts

OWN = [name for name, recipe in RECIPES.items() if recipe.one_form == OURS]
CASES = [
    *((recipe, 0.0) for recipe in OWN),
    *((recipe, 1e-5) for recipe in ("auto", "boosted", "class-means")),
]
PUBLISHED = [name for name, recipe in RECIPES.items() if name not in OWN and not recipe.flaws]
TOO_FAR = "an input changes by more than its sensitivity"
OTHER_CALL = "a call has other public arguments"
OVERSPENT = "more is lost than debited"


@dataclass(frozen=True, kw_only=True)
class Rated(selection.Exponents):
    """Exponents that remember what they were made from: utilities, what is allowed, nano-ε,
    sensitivity, and whether the utilities are monotone.
    """

    given: tuple[Integers, Mask, int, int, bool]


class Tape:
    """The randomness of a training: it records every call, or repeats it and adds up the losses.

    `epsilon` (nano; infinite after Gaussian noise) and `squared_mu` (atto) are what all calls lose.
    One call may be for `together` trees that share rows, each of which pays for it.
    """

    name, private = "exact", True

    def __init__(self, seed: int) -> None:
        self.epsilon: Fraction | float = Fraction(0)
        self.squared_mu, self.together = Fraction(0), 1
        self.bits = SeededBits(seed)
        self.noise = ExactNoise(self.bits)
        self.calls: list[tuple[object, Any, Any]] = []  # public arguments, private input, outcome
        self.left: list[tuple[object, Any, Any]] | None = None  # to be repeated, the next one last

    def called(self, public: object, private: Integers, draw: Callable[[], Any]) -> tuple[Any, Any]:
        """The outcome of a call, and the change of its private input since it was recorded."""
        public = (public, private.shape)
        if self.left is None:
            self.calls.append((public, private.copy(), draw()))
        assert self.left != [], "there are more calls"
        recorded, before, outcome = self.calls[-1] if self.left is None else self.left.pop()
        assert public == recorded, OTHER_CALL
        return copy.copy(outcome), private - before

    def lose(self, distance: int, epsilon: int, sensitivity: int, factor: Fraction = PURE) -> None:
        """Add up the loss ε of a pure mechanism, which is `factor` · ε² in μ²."""
        assert distance <= sensitivity * self.together, TOO_FAR
        loss = Fraction(epsilon * int(distance), sensitivity)
        self.epsilon += loss
        self.squared_mu += (loss / NANO) ** 2 * ATTO * factor

    def laplace(self, counts: Integers, epsilon: int, sensitivity: int) -> Any:
        cost = (epsilon, sensitivity)
        noisy, change = self.called(cost, counts, lambda: self.noise.laplace(counts, *cost))
        self.lose(abs(change).sum(), *cost)
        return noisy

    def gaussian(self, sums: Integers, squared_mu: int, squared: int) -> Any:
        cost = (squared_mu, squared)
        noisy, change = self.called(
            ("in μ²", *cost), sums, lambda: self.noise.gaussian(sums, *cost)
        )
        distance = (change.astype(object) ** 2).sum()
        assert distance <= squared, TOO_FAR
        self.epsilon = math.inf
        self.squared_mu += Fraction(squared_mu * distance, squared)
        return noisy

    def joint(self, sums: Integers, blocks: Sequence[int], epsilon: int, sensitivity: int) -> Any:
        cost = (epsilon, sensitivity)
        noisy, change = self.called(
            (*blocks, *cost), sums, lambda: self.noise.joint(sums, blocks, *cost)
        )
        norms = np.add.reduceat(abs(change), np.cumsum([0, *blocks[:-1]]), axis=1)
        self.lose(norms.max(axis=1).sum(), *cost)
        return noisy

    def words(self, n: int) -> Any:
        """Words for uniform draws, which depend on no row and may be known."""
        return self.called(n, np.zeros(0, dtype=np.int64), lambda: self.bits.words(n))[0]

    def drawn(self, mechanism: Callable[..., Any], *given: Any) -> Any:
        """What a mechanism draws, by words of its own that nobody knows."""
        rated = next((x for x in given if isinstance(x, selection.Exponents)), None)
        assert isinstance(rated, Rated), "exponents without a sensitivity"
        utilities, allowed, epsilon, sensitivity, monotone = rated.given
        rest = [x for x in given if x is not rated and x is not self]
        masks = [x for x in rest if isinstance(x, np.ndarray) and x.dtype == np.bool_]
        assert all((mask == allowed).all() for mask in masks), "other candidates are rated"
        public = [x.tobytes() if isinstance(x, np.ndarray) else x for x in (allowed, *rest)]
        outcome, change = self.called(
            (mechanism.__name__, *public, epsilon, sensitivity, monotone),
            utilities,
            lambda: mechanism(*(self.bits if x is self else x for x in given)),
        )
        change = np.where(allowed, change, 0)
        one_way = (change >= 0).all() or (change <= 0).all()
        assert one_way or not monotone, "utilities move both ways"
        factor = PURE if selection.PERMUTE_AND_FLIP in public else DRAWN
        self.lose(abs(change).max(axis=1).sum(), epsilon, sensitivity, factor)
        return outcome


def everywhere(patch: pytest.MonkeyPatch, module: Any, name: str, new: object) -> None:
    """Replace a function of the package, also where it was imported by name."""
    original = getattr(module, name)
    for place, found in list(sys.modules.items()):
        if place.startswith("dpforest_duckdb") and getattr(found, name, None) is original:
            patch.setattr(found, name, new)


def on_tape(mechanism: Callable[..., Any]) -> Callable[..., Any]:
    """The mechanism, called by the tape that is among its arguments."""

    def drawn(*given: Any) -> Any:
        return next(x for x in given if isinstance(x, Tape)).drawn(mechanism, *given)

    return drawn


@pytest.fixture(autouse=True)
def draws_on_tape(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draws go to the tape, which takes the place of the random bits."""
    exponents = selection.exponents

    def rated(u: Integers, allowed: Mask, e: int, s: int, monotone: bool) -> Rated:
        x = exponents(u, allowed, e, s, monotone)
        given = (u, allowed, e, s, monotone)
        return Rated(x.numerator, x.denominator, x.whole, given=given)

    everywhere(monkeypatch, selection, "exponents", rated)
    monkeypatch.setattr(selection.Mechanism, "draw", on_tape(selection.Mechanism.draw))
    for mechanism in (selection.exponential_mechanism, specialisation.draw_by_entry):
        module = sys.modules[mechanism.__module__]
        everywhere(monkeypatch, module, mechanism.__name__, on_tape(mechanism))


def made_up(random: Random) -> Domain:
    """A domain of categories and of numbers, some with bounds that are far too wide."""
    attributes, numeric = [], random.choice([0.1, 0.5, 0.9])
    for name in "abcdefgh"[: random.randint(1, 8)]:
        nullable, flag = random.random() < 0.3, random.random() < 0.3
        if random.random() < numeric:
            upper, bins = random.choice([500, 1000, 10**9]), 7 if flag else None
            made = Attribute(name, "numeric", lower=0, upper=upper, bins=bins, nullable=nullable)
        else:
            values = tuple(f"v{i}" for i in range(random.choice([1, 2, 2, 3, 5, 12, 40])))
            made = Attribute(name, "categorical", values, ordered=flag, nullable=nullable)
        attributes.append(made)
    return Domain(tuple(attributes), "y", tuple("pqrstu"[: random.choice([2, 2, 3, 6])]))


def row(random: Random, domain: Domain, who: str | None, odd: float) -> list[str | None]:
    """A row as text; a part `odd` of its values is NULL, unknown or out of bounds."""
    label = random.randrange(len(domain.classes))
    cells = [domain.classes[label]]
    for attribute in domain.attributes:
        place = min(max(random.gauss(label / len(domain.classes), 0.3), 0), 0.999)
        values = attribute.values or [str(place * 1000)]
        cells.append(values[int(place * len(values))])
    strange = [None, "nan", "1e12", "-1e12"]
    return [who] + [random.choice(strange) if random.random() < odd else c for c in cells]


def neighbours(random: Random, domain: Domain, k: int) -> list[list[list[str | None]]]:
    """Two tables, one with a unit more: one row, or up to five rows of which k at most are used."""
    odd, n = random.choice([0, 0.2]), random.choice([0, 30, 300, 600])
    units = [None, *map(str, range(n // 3 + 1))]
    table = [row(random, domain, random.choice(units), odd) for _ in range(n)]
    unit = [row(random, domain, "-1", random.choice([0, odd])) for _ in range(random.randint(1, 5))]
    unit = unit[:1] * len(unit) if random.random() < 0.5 else unit
    larger = table + (unit if k > 1 else unit[:1])
    return random.sample([table, random.sample(larger, len(larger))], 2)


def trained(
    table: list[list[str | None]], domain: Domain, tape: Tape, **options: Any
) -> tuple[training.Run, str, list[str]]:
    """A run, its forest, and its statements without random names."""
    statements: list[str] = []
    with duckdb.connect(config={"threads": 1}) as con:
        kinds = ["DOUBLE" if a.kind == "numeric" else "VARCHAR" for a in domain.attributes]
        columns = [f"{a.name} {kind}" for a, kind in zip(domain.attributes, kinds, strict=True)]
        con.execute(f"CREATE TABLE t (who BIGINT, y VARCHAR, {', '.join(columns)})")
        cells = [[cells[i] for cells in table] for i in range(2 + len(columns))]
        con.execute(f"INSERT INTO t SELECT {', '.join(['unnest(?)'] * len(cells))}", cells)
        run = prepare(con, "t", domain=domain, trace=statements.append, **options)
        shared = run.recipe.name in PUBLISHED and run.recipe.rows == "all"
        tape.together = run.request.trees if shared else 1
        forest = release_uncapped(replace(run, randomness=Randomness(tape, tape, 1)))
    return run, forest.to_json(), [re.sub("dpforest_[0-9a-f]{12}", "", sql) for sql in statements]


def check(folder: Path, recipe: str, delta: float, k: int, seeds: range, **options: Any) -> None:
    """Record trainings and replay each on a neighbour."""
    for seed in seeds:
        random = Random(f"{seed} {recipe} {delta} {k}")
        domain, epsilon = made_up(random), random.choice([0.1, 1, 10, 100])
        options |= {
            "recipe": recipe, "epsilon": epsilon, "delta": delta, "rows_per_unit": k,
            "privacy_unit": "who" if k > 1 else "row", "ledger": folder / "ledger",
        }  # fmt: skip
        recorded, replayed = neighbours(random, domain, k)
        tape = Tape(seed)
        run, forest, statements = trained(recorded, domain, tape, **options)
        tape.left = tape.calls[::-1]
        _, again, others = trained(replayed, domain, tape, **options)
        assert not tape.left, "there are fewer calls"
        assert statements == others, "the statements differ"
        assert forest == again, "the forests differ"
        allowed = squared_mu_of(run.cost, run.delta)
        assert tape.epsilon <= run.cost or tape.squared_mu <= allowed, OVERSPENT


@pytest.mark.parametrize(
    "seeds", [range(2), pytest.param(range(2, 14), marks=pytest.mark.slow)], ids=["few", "many"]
)
@some(("recipe", "delta", "k"), [(*case, k) for case, k in product(CASES, (1, 3))], keep=6)
def test_a_unit_changes_private_inputs_alone_and_by_no_more_than_their_sensitivity(
    tmp_path: Path, recipe: str, delta: float, k: int, seeds: range
) -> None:
    check(tmp_path, recipe, delta, k, seeds)


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("recipe", PUBLISHED)
def test_the_same_holds_for_published_recipes_in_rigorous_form(
    tmp_path: Path, recipe: str, k: int
) -> None:
    """Two trees show whether each pays; recipes with a root for each tree set their number."""
    trees = None if RECIPES[recipe].one_tree_per_attribute else 2
    check(tmp_path, recipe, 0, k, range(3), trees=trees)


@pytest.mark.parametrize(
    ("recipe", "seen"),
    [
        ("diffprf", TOO_FAR),  # of a bootstrap
        ("privatree", OTHER_CALL),  # nodes end by their true size
        ("smooth-forest", "exponents without a sensitivity"),
    ],
)
def test_flaws_of_published_forms_are_seen(tmp_path: Path, recipe: str, seen: str) -> None:
    with pytest.raises(AssertionError, match=seen):
        check(tmp_path, recipe, 0, 1, range(60), as_published=True, trees=2)


def a_tenth_too_little_noise(patch: pytest.MonkeyPatch) -> None:
    """The sums of gradients are noised as if a row changed them by a tenth less."""
    sensitivity = boosting.sensitivity
    patch.setattr(boosting, "sensitivity", lambda *given: sensitivity(*given) * 9 // 10)


def a_tenth_more_spent(patch: pytest.MonkeyPatch) -> None:
    """Every query costs a tenth more than is planned."""
    spend = Accountant.spend
    patch.setattr(Accountant, "spend", lambda *given, **named: spend(*given, **named) * 11 // 10)


def factor_2_left_out(patch: pytest.MonkeyPatch) -> None:
    """Utilities that move both ways are drawn by the form for monotone ones."""
    rated = selection.exponents

    def one_way(u: Integers, allowed: Mask, e: int, s: int, monotone: bool) -> selection.Exponents:
        return rated(u, allowed, e, s, monotone=True)

    everywhere(patch, selection, "exponents", one_way)


def depth_by_true_rows(patch: pytest.MonkeyPatch) -> None:
    """Trees may be deeper if the true number of rows is odd."""
    after_counts = row_counts.after_counts

    def by_parity(classes: Integers, context: RunContext) -> RunContext:
        request = replace(context.request, depth=1 + int(classes.sum()) % 2)
        return after_counts(classes, replace(context, request=request))

    patch.setattr(row_counts, "after_counts", by_parity)


def true_shares_in_the_forest(patch: pytest.MonkeyPatch) -> None:
    """Noisy class counts are paid for, then the true ones are used."""
    after_counts = row_counts.after_counts

    def true(classes: Integers, context: RunContext) -> RunContext:
        found = after_counts(classes, context)
        return replace(found, request=replace(found.request, histogram=tuple(classes.tolist())))

    patch.setattr(row_counts, "after_counts", true)


def odd_tables_counted_again(patch: pytest.MonkeyPatch) -> None:
    """A statement is repeated if the true number of rows is odd."""
    encode = DuckDBSnapshot.encode

    def again(snapshot: DuckDBSnapshot, coding: Coding, **more: Any) -> Any:
        rows = encode(snapshot, coding, **more)
        if rows.count_leaves(0, coding.trees).sum() % 2:
            rows.count_leaves(0, coding.trees)
        return rows

    patch.setattr(DuckDBSnapshot, "encode", again)


@some(
    ("fault", "recipe", "delta", "seen"),
    [
        (a_tenth_too_little_noise, "boosted", 1e-5, TOO_FAR),
        (a_tenth_more_spent, "joint-tables", 0, OVERSPENT),
        (factor_2_left_out, "boosted", 0, "utilities move both ways"),
        (depth_by_true_rows, "greedy-tree", 0, OTHER_CALL),
        (true_shares_in_the_forest, "log-odds", 0, "the forests differ"),
        (odd_tables_counted_again, "joint-tables", 0, "the statements differ"),
    ],
    keep=2,
)
def test_a_fault_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Callable[[pytest.MonkeyPatch], None],
    recipe: str, delta: float, seen: str,
) -> None:  # fmt: skip
    fault(monkeypatch)
    with pytest.raises(AssertionError, match=seen):
        check(tmp_path, recipe, delta, 1, range(60), trees=6 if recipe == "boosted" else None)
