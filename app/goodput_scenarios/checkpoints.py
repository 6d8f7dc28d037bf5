"""How often to save: Young's and Daly's optimum from a run's own saves and failures.

J. W. Young, A first order approximation to the optimum checkpoint interval, CACM 17(9), 1974;
J. T. Daly, A higher order estimate of the optimum checkpoint interval for restart dumps, FGCS
22(3), 2006, equation 37. With C the time of a save that blocks and M the mean time between
failures: Young sqrt(2 C M); Daly sqrt(2 C M) (1 + sqrt(C / 2 M) / 3 + C / 18 M) - C, and M where
C >= 2 M. Both are the time between the end of a save and the begin of the next.
"""

from decimal import Decimal
from itertools import product

from goodput_scenarios.scenario import HOURS_PER_YEAR, Known, Worked, scenario, worked
from goodput_scenarios.span import Span

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


def _ends(v: Known) -> list[tuple[Decimal, Decimal]]:
    return list(product((v.save_s.lo, v.save_s.hi), (v.mtbf_s.lo, v.mtbf_s.hi)))


def _gain(v: Known) -> Span:
    """Return the share of time won; saves and failures are the same before and after.

    Below 0 where the present interval loses less than Daly's: his is the best of a model of higher
    order than `overhead`, and near the optimum both lose alike.
    """
    gains = [
        overhead(now, save, mtbf) - overhead(daly_s(save, mtbf), save, mtbf)
        for now in (v.interval_s.lo, v.interval_s.hi)
        for save, mtbf in _ends(v)
    ]
    return Span.over(*gains)


def _is_as_good(v: Known) -> bool:
    """Say whether the present interval, where it is known, loses no more than the best one."""
    return "interval_s" in v and v.gain.hi <= 0


def _daly(v: Known) -> Worked:
    as_good = f"; {AS_GOOD}" if _is_as_good(v) else ""
    return v.daly_s, f"C = {v.save_s} s, M = {v.mtbf_s:0} s: {v.daly_s:0} s{as_good}"


def _lost_now(v: Known) -> Span:
    ends = [(now, *end) for now in (v.interval_s.lo, v.interval_s.hi) for end in _ends(v)]
    return Span.over(*(overhead(*end) for end in ends)) * 100


def _lost_best(v: Known) -> Worked:
    if _is_as_good(v):
        lost, text = LOST_NOW(v)
        return lost, f"{text}; {AS_GOOD}"
    best = [overhead(daly_s(save, mtbf), save, mtbf) for save, mtbf in _ends(v)]
    return worked(lambda _: Span.over(*best) * 100, LOST.replace("interval_s", "daly_s"))(v)


LOST = (
    "({save_s} / ({interval_s:0} + {save_s}) + ({interval_s:0} + {save_s}) / (2 x {mtbf_s:0})) x "
    "100 = {it} %"
)
LOST_NOW = worked(_lost_now, LOST)
CHECKPOINTS = scenario(
    "checkpoints",
    "Checkpoint interval",
    "How often should this run save, given how long a save takes and how often it fails?",
    _daly,
    (
        lambda v: Span.over(*(young_s(save, mtbf) for save, mtbf in _ends(v))),
        "sqrt(2 x {save_s} x {mtbf_s:0}) = {it:0} s",
    ),
    LOST_NOW,
    _lost_best,
    (lambda v: v.won_gpu_h, "{won_percent} % x {gpus:0} x 8,760 h = {it:0} GPU-h"),
    (
        lambda v: v.won_gpu_h * v.price_per_gpu_h,
        "{won_gpu_h:0} GPU-h x {price_per_gpu_h} USD = {it:0} USD",
    ),
    parts={
        "daly_s": lambda v: Span.over(*(daly_s(save, mtbf) for save, mtbf in _ends(v))),
        "gain": _gain,
        "won_percent": lambda v: v.gain.at_least(Decimal(0)) * 100,
        "won_gpu_h": lambda v: v.gpus * HOURS_PER_YEAR * v.gain.at_least(Decimal(0)),
    },
)
