"""A lower power limit: energy saved, work lost, and what is left of it."""

from decimal import Decimal

from goodput_scenarios.scenario import ELECTRICITY, HOURS_PER_YEAR, scenario
from goodput_scenarios.span import Span


def drawn_above_w(mean_w: Span, limit_w: Span, cap_ratio: Span) -> Span:
    """Return what a GPU draws on average above a cap, as far as its mean shows.

    At least mean - cap (it draws alike all the time), at most mean x (1 - cap / limit) (it is
    either at its limit or at rest).
    """
    least = (mean_w - limit_w * cap_ratio).at_least(Decimal(0))
    return Span.over(least.lo, (mean_w * (1 - cap_ratio)).hi)


POWER_CAP = scenario(
    "power-cap",
    "Power cap",
    "What does a lower power limit save, and what does it cost in work?",
    (
        lambda v: (1 - v.slowdown_ratio) / v.cap_ratio,
        "(1 - {slowdown_ratio:3}) / {cap_ratio:3} = {it:4} x",
    ),
    (
        lambda v: v.saved_kwh,
        "{cut_w:1} W x {gpus:0} x 8,760 h x {held_ratio:3} / 1,000 = {it:0} kWh",
    ),
    ELECTRICITY,
    (
        lambda v: v.lost_gpu_h,
        "{gpus:0} x 8,760 h x {use_ratio:3} x {slowdown_ratio:3} = {it:0}",
    ),
    (
        lambda v: v.saved_cost - v.lost_gpu_h * v.cost_per_productive_gpu_h,
        "{saved_cost:0} - {lost_gpu_h:0} x {cost_per_productive_gpu_h} = {it:0} USD",
    ),
    parts={
        "cut_w": lambda v: drawn_above_w(v.held_power_w, v.power_limit_w, v.cap_ratio),
        "saved_kwh": lambda v: v.cut_w / 1000 * v.gpus * HOURS_PER_YEAR * v.held_ratio,
        "saved_cost": lambda v: v.saved_kwh * v.price_per_kwh,
        "lost_gpu_h": lambda v: v.gpus * HOURS_PER_YEAR * v.use_ratio * v.slowdown_ratio,
    },
)
