"""What a mechanism does, exactly: closed forms, and every execution of the real code."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction

from dpforest_duckdb.privacy.selection import EXPONENTIAL, PERMUTE_AND_FLIP

Choose = Callable[[Sequence[Fraction]], int]
NONE = Fraction(0)


def permute_and_flip(coins: Sequence[Fraction]) -> list[Fraction]:
    """P(candidate), from each one's probability of heads: 1/(1+m) of the cases with m others."""
    # in integers: fractions would be reduced at every step
    whole = math.lcm(*(coin.denominator for coin in coins))
    heads = [coin.numerator * (whole // coin.denominator) for coin in coins]
    parts = math.lcm(*range(1, len(coins) + 1))
    found = []
    for number, head in enumerate(heads):
        others = [1]  # [m]: P(m of the others show heads), in whole^(others)
        for other in (*heads[:number], *heads[number + 1 :]):
            pairs = zip([*others, 0], [0, *others], strict=True)
            others = [(whole - other) * t + other * h for t, h in pairs]
        first = sum(p * (parts // (m + 1)) for m, p in enumerate(others))
        found.append(Fraction(head * first, whole ** len(heads) * parts))
    return found


def exponential(coins: Sequence[Fraction]) -> list[Fraction]:
    """P(candidate) ∝ its coin."""
    return [coin / sum(coins) for coin in coins]


CLOSED_FORMS = {PERMUTE_AND_FLIP: permute_and_flip, EXPONENTIAL: exponential}


class _TooRareError(Exception):
    pass


def executions(
    run: Callable[[Choose], Hashable], rarest: Fraction = NONE
) -> tuple[dict[Hashable, Fraction], Fraction]:
    """The exact distribution of what `run(choose)` returns, and the mass that was left out.

    `choose(probabilities)` returns an index; every one is tried. Executions less likely than
    `rarest` are given up.
    """
    found: defaultdict[Hashable, Fraction] = defaultdict(Fraction)
    pending: list[list[int]] = [[]]
    while pending:
        planned = pending.pop()
        taken: list[int] = []
        mass = Fraction(1)

        def choose(
            probabilities: Sequence[Fraction],
            planned: list[int] = planned,
            taken: list[int] = taken,
        ) -> int:
            nonlocal mass
            if len(taken) == len(planned):
                possible = [i for i, p in enumerate(probabilities) if p]
                pending.extend([*taken, i] for i in possible[1:])
                planned.append(possible[0])
            taken.append(planned[len(taken)])
            mass *= probabilities[taken[-1]]
            if mass < rarest:
                raise _TooRareError
            return taken[-1]

        try:
            result = run(choose)
        except _TooRareError:
            continue
        found[result] += mass
    return dict(found), 1 - sum(found.values(), NONE)
