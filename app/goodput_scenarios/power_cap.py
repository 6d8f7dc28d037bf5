"""A lower power limit: energy saved, work lost, and what is left of it."""

from decimal import Decimal

from goodput_scenarios.electricity import W_PER_KW, YEAR_H, priced
from goodput_scenarios.scenario import Values, Worked, number, scenario
from goodput_scenarios.span import Span

ONE = Span.of(1)
NOTHING = Decimal(0)


def drawn_above_w(mean_w: Span, limit_w: Span, cap_ratio: Span) -> Span:
    """Return what a GPU draws on average above a cap, as far as its mean shows.

    At least mean - cap (it draws alike all the time), at most mean x (1 - cap / limit) (it is
    either at its limit or at rest).
    """
    least = (mean_w - limit_w * cap_ratio).at_least(NOTHING)
    return Span.over(least.lo, (mean_w * (ONE - cap_ratio)).hi)


def _cut_w(values: Values) -> Span:
    return drawn_above_w(values["held_power_w"], values["power_limit_w"], values["cap_ratio"])


def _saved_kwh(values: Values) -> Span:
    return _cut_w(values) / W_PER_KW * values["gpus"] * YEAR_H * values["held_ratio"]


def _lost_gpu_h(values: Values) -> Span:
    return values["gpus"] * YEAR_H * values["use_ratio"] * values["slowdown_ratio"]


def _per_watt(values: Values) -> Worked:
    slow, cap = values["slowdown_ratio"], values["cap_ratio"]
    found = (ONE - slow) / cap
    return found, f"(1 - {number(slow, 3)}) / {number(cap, 3)} = {number(found, 4)} x"


def _energy(values: Values) -> Worked:
    saved = _saved_kwh(values)
    return saved, (
        f"{number(_cut_w(values), 1)} W x {number(values['gpus'], 0)} x 8,760 h x "
        f"{number(values['held_ratio'], 3)} / 1,000 = {number(saved, 0)} kWh"
    )


def _electricity(values: Values) -> Worked:
    return priced(_saved_kwh(values), values["price_per_kwh"])


def _work(values: Values) -> Worked:
    lost = _lost_gpu_h(values)
    return lost, (
        f"{number(values['gpus'], 0)} x 8,760 h x {number(values['use_ratio'], 3)} x "
        f"{number(values['slowdown_ratio'], 3)} = {number(lost, 0)}"
    )


def _left(values: Values) -> Worked:
    saved, lost = _saved_kwh(values) * values["price_per_kwh"], _lost_gpu_h(values)
    worth = values["cost_per_productive_gpu_h"]
    left = saved - lost * worth
    return left, (
        f"{number(saved, 0)} - {number(lost, 0)} x {number(worth)} = {number(left, 0)} USD"
    )


POWER_CAP = scenario(
    "power-cap",
    "Power cap",
    "What does a lower power limit save, and what does it cost in work?",
    _per_watt,
    _energy,
    _electricity,
    _work,
    _left,
)
