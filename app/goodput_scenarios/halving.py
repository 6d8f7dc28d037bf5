"""Half of one loss: what is gained, and how much faster the same work is done."""

from collections.abc import Callable
from decimal import Decimal

from goodput_scenarios.scenario import HOURS_PER_YEAR, Expression, Known, Worked, scenario, worked

HALF = Decimal("0.5")
DAY_H = 24
SHORT = "not known: the time range has less than a day of evidence, too little for a year"


def _of_a_year(expression: Expression, text: str) -> Callable[[Known], Worked]:
    """Return how a yearly number is worked, where the time range has a day or more."""
    work = worked(expression, text)
    return lambda v: (None, SHORT) if v.window_h.lo < DAY_H else work(v)


HALVING = scenario(
    "halve-a-loss",
    "Halve a loss",
    "What is gained if one loss is halved?",
    (lambda v: v.back, "{lost_gpu_h:1} / 2 = {it:1} GPU-h"),
    (
        lambda v: v.back / v.capacity_gpu_h * 100,
        "{back:1} / {capacity_gpu_h:1} x 100 = {it} points",
    ),
    (lambda v: v.time_left, "1 - {in_jobs_gpu_h:1} / {held_gpu_h:1} / 2 = {it:4}"),
    (lambda v: 1 / v.time_left, "1 / {time_left:4} = {it:3} x"),
    _of_a_year(lambda v: v.a_year, "{back:1} / {window_h:1} h x 8,760 h = {it:0} GPU-h"),
    _of_a_year(
        lambda v: v.a_year * v.price_per_gpu_h,
        "{a_year:0} GPU-h x {price_per_gpu_h} USD = {it:0} USD",
    ),
    parts={
        "back": lambda v: v.lost_gpu_h * HALF,
        "time_left": lambda v: 1 - (v.in_jobs_gpu_h / v.held_gpu_h).at_most(Decimal(1)) * HALF,
        "a_year": lambda v: v.back / v.window_h * HOURS_PER_YEAR,
    },
)
