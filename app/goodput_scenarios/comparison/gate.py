"""The gate of a comparison: it fails where a difference lies wholly beyond its limit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from goodput_scenarios.comparison.speeds import Speed

Outcome = Literal["passed", "failed", "not comparable"]
SLOWER = "slower"
NAMES = (SLOWER,)


@dataclass(frozen=True)
class Limit:
    """What fails: NAME=SHARE. slower: the speed of B is lower than that of A by more."""

    name: str
    ratio: float

    def __str__(self) -> str:
        return f"{self.name}={self.ratio * 100:g}%"


@dataclass(frozen=True)
class Verdict:
    """What a gate says, with the reason in a sentence."""

    outcome: Outcome
    reason: str


def judged(limit: Limit, speeds: Sequence[Speed]) -> Verdict:
    """Return whether the gate passes, over all workloads that both sides have.

    What cannot be compared never passes: a gate that saw nothing has not passed.
    """
    known = [speed for speed in speeds if speed.difference is not None and speed.reason is None]
    if not known:
        reasons = list(dict.fromkeys(speed.reason for speed in speeds if speed.reason))
        return Verdict(
            "not comparable", "; ".join(reasons) or "no workload with steps is on both sides"
        )
    worst = min(known, key=lambda speed: speed.high_ratio)
    interval = f"{shown(worst.low_ratio)} to {shown(worst.high_ratio)}"
    of = f"{worst.workload}: " if len(speeds) > 1 else ""
    change = f"{of}speed {shown(worst.change_ratio)} ({interval} with 95 % confidence)"
    if worst.high_ratio < -limit.ratio:
        return Verdict("failed", f"{change}: wholly beyond {limit}")
    if any(speed.reason for speed in speeds):
        reason = next(speed.reason for speed in speeds if speed.reason)
        change = f"{change}; not compared: {reason}"
    if min(speed.low_ratio for speed in known) < -limit.ratio:
        return Verdict("passed", f"{change}: not wholly beyond {limit}, more steps are needed")
    return Verdict("passed", f"{change}: within {limit}")


def shown(ratio: float) -> str:
    """Return a change as people read it: -6.1 %."""
    return f"{ratio * 100:+.1f} %"
