"""How often to save: Young's and Daly's optimum from a run's own saves and failures.

J. W. Young, A first order approximation to the optimum checkpoint interval, CACM 17(9), 1974;
J. T. Daly, A higher order estimate of the optimum checkpoint interval for restart dumps, FGCS
22(3), 2006, equation 37. With C the time of a save that blocks and M the mean time between
failures: Young sqrt(2 C M); Daly sqrt(2 C M) (1 + sqrt(C / 2 M) / 3 + C / 18 M) - C, and M where
C >= 2 M. Both are the time between the end of a save and the begin of the next.
"""

from decimal import Decimal
from itertools import product

from goodput_scenarios.electricity import YEAR_H
from goodput_scenarios.scenario import Values, Worked, number, scenario
from goodput_scenarios.span import Span

PERCENT = Span.of(100)
AS_GOOD = "the present interval is as good"


def young_s(save_s: Decimal, mtbf_s: Decimal) -> Decimal:
    """Return Young's interval."""
    return (2 * save_s * mtbf_s).sqrt()


def daly_s(save_s: Decimal, mtbf_s: Decimal) -> Decimal:
    """Return Daly's interval."""
    if save_s >= 2 * mtbf_s:
        return mtbf_s
    half = save_s / (2 * mtbf_s)
    return (2 * save_s * mtbf_s).sqrt() * (1 + half.sqrt() / 3 + half / 9) - save_s


def overhead(interval_s: Decimal, save_s: Decimal, mtbf_s: Decimal) -> Decimal:
    """Return the share of time lost to saves and to work that a failure takes back (first order).

    A save an interval: C / (interval + C); a failure an M takes back half of both on average.
    """
    cycle = interval_s + save_s
    return save_s / cycle + cycle / (2 * mtbf_s)


def _ends(values: Values) -> list[tuple[Decimal, Decimal]]:
    save, mtbf = values["save_s"], values["mtbf_s"]
    return list(product((save.lo, save.hi), (mtbf.lo, mtbf.hi)))


def _daly_span(values: Values) -> Span:
    return Span.over(*(daly_s(save, mtbf) for save, mtbf in _ends(values)))


def _gain(values: Values) -> Span:
    """Return the share of time won; saves and failures are the same before and after.

    Below 0 where the present interval loses less than Daly's: his is the best of a model of higher
    order than `overhead`, and near the optimum both lose alike.
    """
    interval = values["interval_s"]
    gains = [
        overhead(now, save, mtbf) - overhead(daly_s(save, mtbf), save, mtbf)
        for now in (interval.lo, interval.hi)
        for save, mtbf in _ends(values)
    ]
    return Span.over(*gains)


def _is_as_good(values: Values) -> bool:
    """Say whether the present interval, where it is known, loses no more than the best one."""
    return "interval_s" in values and _gain(values).hi <= 0


def _daly(values: Values) -> Worked:
    found = _daly_span(values)
    save, mtbf = number(values["save_s"]), number(values["mtbf_s"], 0)
    as_good = f"; {AS_GOOD}" if _is_as_good(values) else ""
    return found, f"C = {save} s, M = {mtbf} s: {number(found, 0)} s{as_good}"


def _young(values: Values) -> Worked:
    found = Span.over(*(young_s(save, mtbf) for save, mtbf in _ends(values)))
    save, mtbf = number(values["save_s"]), number(values["mtbf_s"], 0)
    return found, f"sqrt(2 x {save} x {mtbf}) = {number(found, 0)} s"


def _lost_now(values: Values) -> Worked:
    interval = values["interval_s"]
    lost = [
        overhead(now, save, mtbf)
        for now in (interval.lo, interval.hi)
        for save, mtbf in _ends(values)
    ]
    return _lost(values, Span.over(*lost), interval)


def _lost_best(values: Values) -> Worked:
    if _is_as_good(values):
        lost, worked = _lost_now(values)
        return lost, f"{worked}; {AS_GOOD}"
    best = [overhead(daly_s(save, mtbf), save, mtbf) for save, mtbf in _ends(values)]
    return _lost(values, Span.over(*best), _daly_span(values))


def _lost(values: Values, lost: Span, interval: Span) -> Worked:
    percent = lost * PERCENT
    save, mtbf = number(values["save_s"]), number(values["mtbf_s"], 0)
    cycle = f"({number(interval, 0)} + {save})"
    return percent, (f"({save} / {cycle} + {cycle} / (2 x {mtbf})) x 100 = {number(percent)} %")


def _won_gpu_h(values: Values) -> Span:
    return values["gpus"] * YEAR_H * _gain(values).at_least(Decimal(0))


def _won(values: Values) -> Worked:
    gain, hours = _gain(values).at_least(Decimal(0)), _won_gpu_h(values)
    return hours, (
        f"{number(gain * PERCENT)} % x {number(values['gpus'], 0)} x 8,760 h = "
        f"{number(hours, 0)} GPU-h"
    )


def _worth(values: Values) -> Worked:
    hours = _won_gpu_h(values)
    worth = hours * values["price_per_gpu_h"]
    price = number(values["price_per_gpu_h"])
    return worth, f"{number(hours, 0)} GPU-h x {price} USD = {number(worth, 0)} USD"


_LOST = "(C / (interval + C) + (interval + C) / 2M) x 100: saves, and half a cycle for each failure"
CHECKPOINTS = scenario(
    "checkpoints",
    "Checkpoint interval",
    "How often should this run save, given how long a save takes and how often it fails?",
    _daly,
    _young,
    _lost_now,
    _lost_best,
    _won,
    _worth,
)
