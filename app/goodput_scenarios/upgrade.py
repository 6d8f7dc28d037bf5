"""Fewer, newer GPUs for those there are: power, electricity, unit price, payback."""

from decimal import Decimal

from goodput_scenarios.electricity import YEAR_H, kilowatts, priced
from goodput_scenarios.scenario import Values, Worked, number, scenario
from goodput_scenarios.span import Span

MONTHS_PER_YEAR = Span.of(12)
NOTHING = Decimal(0)


def _old_kw(values: Values) -> Span:
    return kilowatts(values["old_gpus"], values["old_power_w"])


def _new_w(values: Values) -> Span:
    """Return what a new GPU draws: its limit at most, the old one's share of it at least."""
    limit = values["new_power_w"]
    if "power_limit_w" not in values:
        return limit
    share = values["old_power_w"] / values["power_limit_w"]
    return Span(min(limit.lo, limit.lo * share.lo), limit.hi)


def _new_kw(values: Values) -> Span:
    return kilowatts(values["new_gpus"], _new_w(values))


def _saved_kwh(values: Values) -> Span:
    return (_old_kw(values) - _new_kw(values)) * YEAR_H


def _saved_cost(values: Values) -> Span:
    return _saved_kwh(values) * values["price_per_kwh"]


def _extra_gpu_h(values: Values) -> Span:
    added = values["new_gpus"] * values["speed_up"] - values["old_gpus"]
    return added * YEAR_H * values["use_ratio"]


def _power(values: Values) -> Worked:
    old, new = _old_kw(values), _new_kw(values)
    return new, (
        f"{number(values['old_gpus'], 0)} x {number(values['old_power_w'], 1)} W = "
        f"{number(old)} kW; {number(values['new_gpus'], 0)} x "
        f"{number(_new_w(values), 1)} W = {number(new)} kW"
    )


def _change(values: Values) -> Worked:
    old, new = _old_kw(values), _new_kw(values)
    if old.lo <= 0:
        return None, "the old GPUs draw nothing"
    change = (new / old - Span.of(1)) * Span.of(100)
    return change, f"({number(new)} / {number(old)} - 1) x 100 = {number(change, 1)} %"


def _energy(values: Values) -> Worked:
    saved_kw, saved_kwh = _old_kw(values) - _new_kw(values), _saved_kwh(values)
    return saved_kwh, f"{number(saved_kw)} kW x 8,760 h = {number(saved_kwh, 0)} kWh"


def _electricity(values: Values) -> Worked:
    return priced(_saved_kwh(values), values["price_per_kwh"])


def _neutral_ratio(values: Values) -> Worked:
    ratio = values["old_gpus"] / values["new_gpus"]
    counts = f"{number(values['old_gpus'], 0)} / {number(values['new_gpus'], 0)}"
    return ratio, f"{counts} = {number(ratio)} x"


def _neutral_price(values: Values) -> Worked:
    ratio = values["old_gpus"] / values["new_gpus"]
    price = ratio * values["old_unit_cost"]
    old = number(values["old_unit_cost"], 0)
    return price, f"{number(ratio)} x {old} USD = {number(price, 0)} USD"


def _work(values: Values) -> Worked:
    extra = _extra_gpu_h(values)
    return extra, (
        f"({number(values['new_gpus'], 0)} x {number(values['speed_up'])} - "
        f"{number(values['old_gpus'], 0)}) x 8,760 h x {number(values['use_ratio'], 3)} = "
        f"{number(extra, 0)}"
    )


def _payback(values: Values) -> Worked:
    """Return after how many months the investment has come back; none beyond the GPUs' life."""
    price = values["new_unit_cost"]
    spent = values["new_gpus"] * price - values["old_gpus"] * values["resale_cost"]
    worth = _extra_gpu_h(values) * values["cost_per_productive_gpu_h"]
    gain = _saved_cost(values) + values["overhead_saved_cost"] + worth
    fraction = f"{number(spent, 0)} USD / {number(gain, 0)} USD a year"
    if spent.hi <= 0:
        return Span.of(0), f"{fraction}: nothing is spent"
    if gain.hi <= 0:
        return None, f"{fraction}: nothing is gained at this use, so it never pays back"
    if gain.lo <= 0:
        return None, f"{fraction}: at the lower end of this use nothing is gained; none is sure"
    life = values["life_years"] * MONTHS_PER_YEAR
    months = spent.at_least(NOTHING) / gain * MONTHS_PER_YEAR
    if months.lo > life.hi:
        return (
            None,
            f"{fraction} x 12 = {number(months, 0)} months: beyond {number(life, 0)} of life",
        )
    late = "; its upper end is beyond the GPUs' life" if months.hi > life.hi else ""
    return months, f"{fraction} x 12 = {number(months, 1)} months{late}"


UPGRADE = scenario(
    "upgrade",
    "Upgrade",
    "What do fewer, newer GPUs save, what may they cost, and when have they paid for themselves?",
    _power,
    _change,
    _energy,
    _electricity,
    _neutral_ratio,
    _neutral_price,
    _work,
    _payback,
)
