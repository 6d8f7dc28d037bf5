"""The difference of two speeds with its 95 % interval, from steps whose times depend on each other.

The speed is work / time over all steps, so that a larger batch is no slower step. Noise of steps
has memory (clocks, inputs, neighbours), so that 200 of them know less than 200 independent ones:
the effective number of steps comes from their autocorrelations, summed as long as sums of
neighbouring ones are positive and fall (initial monotone sequence, Geyer 1992). Why this and no
batch means or bootstrap: docs/decisions/0133-interval-of-a-difference.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

CONFIDENCE = 0.95
RUNS_MIN = 4  # of each side, from where on runs are what is counted
FREEDOM_MIN = 2.0
_Z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)


@dataclass(frozen=True)
class Estimate:
    """The speed of one side: work per second of step time.

    spread_ratio: standard deviation over the mean, of single steps or of runs
    effective_count: how many independent steps (or runs) know as much
    variance: of the logarithm of the speed
    """

    speed: float
    count: int
    effective_count: float
    spread_ratio: float
    variance: float

    @property
    def freedom(self) -> float:
        """Degrees of freedom of the variance."""
        return max(self.effective_count - 1, FREEDOM_MIN)


@dataclass(frozen=True)
class Difference:
    """How much faster B is than A, as a share of A; low and high: its 95 % interval."""

    a: Estimate
    b: Estimate
    change_ratio: float
    low_ratio: float
    high_ratio: float


def of_steps(work: Numbers, time_s: Numbers) -> Estimate:
    """Return the speed of steps in the order in which they ran; raises ValueError for none."""
    if not len(time_s) or not time_s.sum() > 0 or not work.sum() > 0:
        raise ValueError("no step with work and time")
    speed = work.sum() / time_s.sum()
    # what each step adds to the relative error of the quotient
    errors = work / work.mean() - time_s / time_s.mean()
    effective = effective_count(errors)
    speeds = work / np.maximum(time_s, np.finfo(float).tiny)
    return Estimate(
        float(speed),
        len(time_s),
        effective,
        _spread(speeds),
        float(errors.var() / max(effective - 1, 1)),
    )


def of_runs(runs: Sequence[Estimate]) -> Estimate:
    """Return the speed of several runs of one workload, which vary more than the steps of one."""
    speeds = np.array([run.speed for run in runs])
    logs = np.log(speeds)
    count = len(runs)
    variance = float(logs.var(ddof=1) / count) if count > 1 else runs[0].variance
    speed = float(np.exp(logs.mean()))
    return Estimate(speed, count, float(count), _spread(speeds), variance)


def difference(a: Estimate, b: Estimate) -> Difference:
    """Return how the speed of B differs from that of A (Welch's interval, on logarithms)."""
    change = math.log(b.speed / a.speed)
    variance = a.variance + b.variance
    half = 0.0
    if variance > 0:
        parts = a.variance**2 / a.freedom + b.variance**2 / b.freedom
        half = _quantile(variance**2 / parts) * math.sqrt(variance)
    return Difference(
        a, b, math.expm1(change), math.expm1(change - half), math.expm1(change + half)
    )


def effective_count(errors: Numbers) -> float:
    """Return how many independent values have a mean as uncertain as that of these."""
    count = len(errors)
    centred = errors - errors.mean()
    power = np.abs(np.fft.rfft(centred, 2 * count)) ** 2
    covariances = np.fft.irfft(power)[:count]
    if count < 4 or covariances[0] <= 1e-18 * count:  # constant, but for the last bits
        return float(count)
    correlations = covariances / covariances[0]
    pairs = correlations[: count // 2 * 2].reshape(-1, 2).sum(axis=1)
    positive = np.cumprod(pairs > 0).astype(bool)
    falling = np.minimum.accumulate(np.where(positive, pairs, 0.0))
    return float(count / max(2 * falling.sum() - 1, 1.0))


def _spread(values: Numbers) -> float:
    mean = values.mean()
    return float(values.std(ddof=1) / mean) if len(values) > 1 and mean > 0 else 0.0


def _quantile(freedom: float) -> float:
    """Return the 97.5 % quantile of Student's t (Abramowitz and Stegun 26.7.5, within 1 %)."""
    z, d = _Z, freedom
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / d**power for power, term in enumerate(terms, 1))
