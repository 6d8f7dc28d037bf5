"""Amounts as text: GPU time, money, ratios, durations, counts and sizes, each with its unit."""

import math
from collections.abc import Iterable
from datetime import datetime, timedelta

from goodput_app.settings import settings
from goodput_billing.statement.amounts import currency as currencies

MS_PER_GPU_H = 3_600_000
MS_PER_GPU_MIN = 60_000
POINT = 0.0005  # of a change of a ratio: less reads as none
WHOLE_FROM = 10_000  # of an amount of money
FEW_DECIMALS_FROM = 10  # of a price
NOT_KNOWN = "not known"
NOT_MEASURED = "not measured"
NO_PRICE = "no price"


def gpu_time_unit(gpu_ms: float | None) -> tuple[str, int]:
    """Return the unit in which such an amount reads well, and its milliseconds."""
    amount = abs(gpu_ms or 0)
    if amount >= MS_PER_GPU_H:
        return "GPU-h", MS_PER_GPU_H
    if amount >= MS_PER_GPU_MIN:
        return "GPU-min", MS_PER_GPU_MIN
    return "GPU-s", 1000


def gpu_time(gpu_ms: float | None) -> str:
    """Return GPU time with one decimal: `12,345.6 GPU-h`, below one GPU-h in GPU-min or GPU-s."""
    if gpu_ms is None:
        return NOT_KNOWN
    unit, divisor = gpu_time_unit(gpu_ms)
    return f"{gpu_ms / divisor:,.1f} {unit}"


def currency() -> str:
    """Return the code of the currency in which the site writes its prices."""
    return settings().statement.currency


def currency_sign() -> str:
    """Return what stands before an amount."""
    return currencies.sign(currency())


def money_decimals() -> int:
    """Return how many decimals an amount has."""
    return currencies.decimals(currency())


def price(amount: float | None) -> str:
    """Return the price of a unit: below ten with two decimals more than an amount."""
    if amount is None or math.isnan(amount):
        return NO_PRICE
    more = currencies.PRICE_DECIMALS if abs(amount) < FEW_DECIMALS_FROM else 0
    return f"{currency_sign()}{amount:,.{money_decimals() + more}f}"


def cost(amount: float | None, *, beside: Iterable[float | None] = ()) -> str:
    """Return money with separators; what has no price says so and is never $0.

    beside: other amounts in the same row of tiles, or chart. One from 10,000 on is written without
    decimals, and so are the others then.
    """
    if amount is None or math.isnan(amount):
        return NO_PRICE
    sign, unit = "-" if amount < 0 else "", currency_sign()
    size = abs(amount)
    largest = max(abs(other) for other in (amount, *beside) if other is not None)
    decimals = 0 if largest >= WHOLE_FROM else money_decimals()
    least = 10.0**-decimals
    if size == 0 or size >= least:
        return f"{sign}{unit}{size:,.{decimals}f}"
    return f"{sign}<{unit}{least:.{decimals}f}"


def sign_of(change: float) -> str:
    """Return the sign that stands before the size of a change."""
    return "+" if change > 0 else "\N{MINUS SIGN}" if change < 0 else ""


def amount(size: float, *, is_priced: bool) -> str:
    """Return an amount of money or, where nothing has a price, of GPU time in milliseconds."""
    return cost(size) if is_priced else gpu_time(size)


def signed(change: float, *, is_priced: bool) -> str:
    """Return a change of such an amount with its sign."""
    return f"{sign_of(change)}{amount(abs(change), is_priced=is_priced)}"


def points(change: float) -> str:
    """Return the change of a ratio in percentage points, with its sign: `+2.1`."""
    return "0.0" if abs(change) < POINT else f"{sign_of(change)}{abs(100 * change):.1f}"


def percent(ratio: float | None) -> str:
    """Return a ratio as percent with one decimal."""
    return NOT_KNOWN if ratio is None or math.isnan(ratio) else f"{ratio * 100:.1f} %"


def duration(seconds: float | None) -> str:
    """Return a length of time as `2h 14m`, `3m 20s`, `4.0 s`, `12 ms`."""
    if seconds is None or math.isnan(seconds):
        return NOT_KNOWN
    sign, size = ("-", -seconds) if seconds < 0 else ("", seconds)
    if size == 0:
        return "0 s"
    if size < 0.9995:
        return f"{sign}{size * 1000:.0f} ms"
    if size < 59.95:
        return f"{sign}{size:.1f} s"
    whole = round(size)
    for name, length, inner, inner_length in (
        ("d", 86_400, "h", 3600),
        ("h", 3600, "m", 60),
        ("m", 60, "s", 1),
    ):
        if whole >= length:
            rest = whole % length // inner_length
            return f"{sign}{whole // length}{name}" + (f" {rest}{inner}" if rest else "")
    return f"{sign}{whole}.0 s"


def count(number: int, thing: str) -> str:
    """Return `1 gap`, `1,234 gaps`."""
    return f"{number:,} {thing}" + ("" if number == 1 else "s")


def ago(at: datetime, now: datetime) -> str:
    """Return how long ago an instant was."""
    age = now - at
    return "just now" if age < timedelta(seconds=1) else f"{duration(age.total_seconds())} ago"


def size(size_bytes: float) -> str:
    """Return a size of messages as people say it: `256 MiB`."""
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size_bytes >= factor:
            return f"{size_bytes / factor:g} {unit}"
    return f"{size_bytes:g} B"
