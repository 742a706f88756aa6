"""Budgets as integers: nano-ε and atto-δ, so that no budget is ever a rounded float.

ε is stored in multiples of 1e-9, δ in multiples of 1e-18. Amounts that users name are limits, of a
run or of a cap, so they are rounded down.
"""

from __future__ import annotations

from decimal import ROUND_FLOOR, Decimal, InvalidOperation, localcontext

from dpforest_duckdb.arguments import is_whole
from dpforest_duckdb.domain.values import plain_digits
from dpforest_duckdb.errors import UsageError

NANO = 10**9
ATTO = 10**18
SMALLEST_EPSILON, SMALLEST_DELTA = Decimal("1e-9"), Decimal("1e-18")
MAX_EPSILON = 10**6
LARGE_EPSILON = 10
LARGE_DELTA = 10**15  # atto-δ: .001


def _decimal(value: float | str | Decimal, option: str) -> Decimal:
    """The exact number that an option gives. Raises `UsageError` for what is no finite number."""
    like = "0.5" if option == "--epsilon" else "0.000001"
    wrong = UsageError(f"{option} must be a number; write a fraction with a point, as in {like}.")
    if isinstance(value, str) and ("_" in value or not value.isascii()):  # Python reads both
        raise wrong
    try:
        if is_whole(value):  # Python writes no whole number of thousands of digits
            number = Decimal(int(value))
        else:
            number = Decimal(repr(float(value)) if isinstance(value, float) else str(value))
    except InvalidOperation:
        raise wrong from None
    if not number.is_finite():
        raise UsageError(f"{option} must be a finite number.")
    return number


def _whole(number: Decimal, unit: int) -> int:
    """A number in whole multiples of 1 / unit, rounded down."""
    with localcontext() as context:
        context.prec = len(number.as_tuple().digits) + len(str(unit))  # the product is exact
        return int((number * unit).to_integral_value(ROUND_FLOOR))


def nano_epsilon(value: float | str | Decimal) -> int:
    """ε in nano-ε, rounded down: a run never spends more than was asked, and a cap grants no more.

    Raises `UsageError` for NaN, infinities, zero, negative numbers and numbers above 10^6.
    """
    number = _decimal(value, "--epsilon")
    if number <= 0:
        raise UsageError("--epsilon must be greater than zero.")
    if number > MAX_EPSILON:
        raise UsageError(f"--epsilon must be at most {MAX_EPSILON}; a larger ε protects nobody.")
    if number < SMALLEST_EPSILON:
        raise UsageError("--epsilon must be at least 1e-9, the smallest unit of the ledger.")
    return _whole(number, NANO)


def large_epsilon(nano: int) -> tuple[str, ...]:
    """A sentence about an ε, in nano-ε, that protects little; none for a usual one."""
    if nano <= LARGE_EPSILON * NANO:
        return ()
    return (
        f"ε = {show(nano)} is above {LARGE_EPSILON} and protects little: to add or remove one "
        f"privacy unit may change the odds of what is published by a factor of e^{show(nano)}.",
    )


def atto_delta(value: float | str | Decimal) -> int:
    """δ in multiples of 1e-18, rounded down; zero means pure ε.

    Raises `UsageError` outside [0, 1), and for numbers above zero and below 1e-18.
    """
    number = _decimal(value, "--delta")
    if number < 0 or number >= 1:
        raise UsageError("--delta must be at least 0 and less than 1.")
    if 0 < number < SMALLEST_DELTA:
        raise UsageError("--delta must be 0, or at least 1e-18, the smallest unit of the ledger.")
    return _whole(number, ATTO)


def large_delta(atto: int) -> tuple[str, ...]:
    """A sentence about a δ, in atto-δ, that protects little; none for a usual one."""
    if atto <= LARGE_DELTA:
        return ()
    return (
        f"δ = {show(atto, ATTO)} is above {show(LARGE_DELTA, ATTO)} and protects little: the "
        "guarantee may fail with this probability, so choose one far below 1 / (number of "
        "persons).",
    )


def significant(amount: float) -> str:
    """Three significant digits, without an exponent.

    >>> significant(0.0000973652)
    '0.0000974'
    """
    return f"{Decimal(f'{amount:.3g}'):f}"


def show(amount: int, unit: int = NANO) -> str:
    """An integer budget as the shortest exact decimal: 1500000000 → '1.5'."""
    return plain_digits(Decimal(amount) / unit)
