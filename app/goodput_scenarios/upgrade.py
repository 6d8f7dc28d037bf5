"""Fewer, newer GPUs for those there are: power, electricity, unit price, payback."""

from decimal import Decimal

from goodput_scenarios.scenario import ELECTRICITY, HOURS_PER_YEAR, Known, Worked, scenario
from goodput_scenarios.span import Span

MONTHS_PER_YEAR = 12


def _new_w(v: Known) -> Span:
    """Return what a new GPU draws: its limit at most, the old one's share of it at least."""
    limit = v.new_power_w
    if "power_limit_w" not in v:
        return limit
    share = v.old_power_w / v.power_limit_w
    return Span(min(limit.lo, limit.lo * share.lo), limit.hi)


def _change(v: Known) -> Worked:
    if v.old_kw.lo <= 0:
        return None, "the old GPUs draw nothing"
    change = (v.new_kw / v.old_kw - 1) * 100
    return change, f"({v.new_kw} / {v.old_kw} - 1) x 100 = {change:1} %"


def _payback(v: Known) -> Worked:
    """Return after how many months the investment has come back; none beyond the GPUs' life."""
    spent = v.new_gpus * v.new_unit_cost - v.old_gpus * v.resale_cost
    worth = v.extra_gpu_h * v.cost_per_productive_gpu_h
    gain = v.saved_kwh * v.price_per_kwh + v.overhead_saved_cost + worth
    fraction = f"{spent:0} USD / {gain:0} USD a year"
    if spent.hi <= 0:
        return Span.of(0), f"{fraction}: nothing is spent"
    if gain.hi <= 0:
        return None, f"{fraction}: nothing is gained at this use, so it never pays back"
    if gain.lo <= 0:
        return None, f"{fraction}: at the lower end of this use nothing is gained; none is sure"
    life = v.life_years * MONTHS_PER_YEAR
    months = spent.at_least(Decimal(0)) / gain * MONTHS_PER_YEAR
    if months.lo > life.hi:
        return None, f"{fraction} x 12 = {months:0} months: beyond {life:0} of life"
    late = "; its upper end is beyond the GPUs' life" if months.hi > life.hi else ""
    return months, f"{fraction} x 12 = {months:1} months{late}"


UPGRADE = scenario(
    "upgrade",
    "Upgrade",
    "What do fewer, newer GPUs save, what may they cost, and when have they paid for themselves?",
    (
        lambda v: v.new_kw,
        "{old_gpus:0} x {old_power_w:1} W = {old_kw} kW; {new_gpus:0} x {new_w:1} W = {it} kW",
    ),
    _change,
    (lambda v: v.saved_kwh, "{saved_kw} kW x 8,760 h = {it:0} kWh"),
    ELECTRICITY,
    (lambda v: v.ratio, "{old_gpus:0} / {new_gpus:0} = {it} x"),
    (lambda v: v.ratio * v.old_unit_cost, "{ratio} x {old_unit_cost:0} USD = {it:0} USD"),
    (
        lambda v: v.extra_gpu_h,
        "({new_gpus:0} x {speed_up} - {old_gpus:0}) x 8,760 h x {use_ratio:3} = {it:0}",
    ),
    _payback,
    parts={
        "old_kw": lambda v: v.old_gpus * v.old_power_w / 1000,
        "new_w": _new_w,
        "new_kw": lambda v: v.new_gpus * v.new_w / 1000,
        "saved_kw": lambda v: v.old_kw - v.new_kw,
        "saved_kwh": lambda v: v.saved_kw * HOURS_PER_YEAR,
        "ratio": lambda v: v.old_gpus / v.new_gpus,
        "extra_gpu_h": lambda v: (
            (v.new_gpus * v.speed_up - v.old_gpus) * HOURS_PER_YEAR * v.use_ratio
        ),
    },
)
