"""Half of one loss: what is gained, and how much faster the same work is done."""

from decimal import Decimal

from goodput_scenarios.electricity import YEAR_H
from goodput_scenarios.scenario import Values, Worked, number, scenario
from goodput_scenarios.span import Span

ONE, HALF, PERCENT = Span.of(1), Span.of(Decimal("0.5")), Span.of(100)
DAY_H = 24
SHORT = "not known: the time range has less than a day of evidence, too little for a year"


def _back(values: Values) -> Span:
    return values["lost_gpu_h"] * HALF


def _time_left(values: Values) -> Span:
    share = (values["in_jobs_gpu_h"] / values["held_gpu_h"]).at_most(Decimal(1))
    return ONE - share * HALF


def _a_year(values: Values) -> Span:
    return _back(values) / values["window_h"] * YEAR_H


def _is_short(values: Values) -> bool:
    return values["window_h"].lo < DAY_H


def _in_window(values: Values) -> Worked:
    back = _back(values)
    return back, f"{number(values['lost_gpu_h'], 1)} / 2 = {number(back, 1)} GPU-h"


def _points(values: Values) -> Worked:
    points = _back(values) / values["capacity_gpu_h"] * PERCENT
    capacity = number(values["capacity_gpu_h"], 1)
    return points, f"{number(_back(values), 1)} / {capacity} x 100 = {number(points)} points"


def _time(values: Values) -> Worked:
    left = _time_left(values)
    return left, (
        f"1 - {number(values['in_jobs_gpu_h'], 1)} / {number(values['held_gpu_h'], 1)} / 2 = "
        f"{number(left, 4)}"
    )


def _speed_up(values: Values) -> Worked:
    left = _time_left(values)
    faster = ONE / left
    return faster, f"1 / {number(left, 4)} = {number(faster, 3)} x"


def _year(values: Values) -> Worked:
    if _is_short(values):
        return None, SHORT
    found = _a_year(values)
    window = number(values["window_h"], 1)
    back = number(_back(values), 1)
    return found, f"{back} / {window} h x 8,760 h = {number(found, 0)} GPU-h"


def _worth(values: Values) -> Worked:
    if _is_short(values):
        return None, SHORT
    worth = _a_year(values) * values["price_per_gpu_h"]
    price = number(values["price_per_gpu_h"])
    return worth, f"{number(_a_year(values), 0)} GPU-h x {price} USD = {number(worth, 0)} USD"


HALVING = scenario(
    "halve-a-loss",
    "Halve a loss",
    "What is gained if one loss is halved?",
    _in_window,
    _points,
    _time,
    _speed_up,
    _year,
    _worth,
)
