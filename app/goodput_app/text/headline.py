"""Goodput in words: one number and its upper bound, the same on screen and in the terminal.

Where too few jobs report their steps for goodput, the headline is the best that the evidence bears:
the highest rung of marts.evidence_ladder. Rows are of marts.goodput_summary if not said otherwise.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from goodput_app.text import units
from goodput_queries.scope import Scope

RUNGS = {
    "goodput": "Goodput",
    "active_while_allocated": "Active while allocated",
    "gpu_activity": "GPU activity",
}
IF_ALL = "if all unclassified time was useful"
NOT_IN_STEPS = "waits inside steps not measured"
OF_ALL = "of all teams and runs"


def denominator(scope: Scope) -> str:
    """Return what goodput is a share of: an owner's time is what it had allocated."""
    is_owned = any((scope.team, scope.user, scope.run, scope.partition, scope.teams is not None))
    return "allocated" if is_owned else "capacity"


def value(row: Mapping[str, Any]) -> str:
    """Return goodput."""
    return units.percent(row["goodput_ratio"])


def upper(row: Mapping[str, Any]) -> str | None:
    """Return the upper bound where it reads otherwise than goodput itself."""
    shown = units.percent(row["goodput_hi_ratio"])
    return None if shown == value(row) else f"up to {shown} {IF_ALL}"


@dataclass(frozen=True)
class Headline:
    """The first number of a view: its name with the denominator, its value, what stands beside it.

    rung: of marts.evidence_ladder. ratio: None where it is not measured. bound: of goodput alone.
    """

    rung: str
    label: str
    ratio: float | None
    text: str
    bound: str | None
    notes: list[str]

    @property
    def sentence(self) -> str:
        """Return it as the terminal prints it."""
        shown = f"{self.label}: {self.text}" + (f" ({self.bound})" if self.bound else "")
        return f"{'; '.join([shown, *self.notes])}."


def headline(row: Mapping[str, Any], ladder: Mapping[str, Any], scope: Scope) -> Headline:
    """Return the headline of a view. ladder: the row of marts.evidence_ladder."""
    rung, share = ladder["rung"], units.percent(ladder["coverage"])
    name = RUNGS[rung]
    if rung == "goodput":
        label = f"{name} (% of {denominator(scope)})"
        notes = _not_in_steps(row)
        whose = "" if denominator(scope) == "capacity" else f" {OF_ALL}"
        notes.append(f"jobs report steps for {share} of allocated time{whose}")
        return Headline(rung, label, row["goodput_ratio"], value(row), upper(row), notes)
    is_allocated = rung == "active_while_allocated"
    of = "allocated time" if is_allocated else "the capacity"
    ratio = ladder["ratio"]
    text = units.NOT_MEASURED if ratio is None else units.percent(ratio)
    notes = [f"readings cover {share} of {of}", f"next: {ladder['next_step']}"]
    if denominator(scope) != "capacity":
        notes.insert(0, OF_ALL)
    label = name if is_allocated else f"{name} (% of observed time)"
    return Headline(rung, label, ratio, text, None, notes)


def precision(row: Mapping[str, Any]) -> str:
    """Return how exact active and idle time are by their readings. row: marts.reading_precision."""
    return (
        f"Readings at least every {units.duration(row['interval_s'])} place "
        f"{units.count(row['changes'], 'change')} between active and idle to ± "
        f"{units.gpu_time(row['gpu_ms'])}; idle time under {units.duration(row['unseen_s'])} may "
        "count as active."
    )


def _not_in_steps(row: Mapping[str, Any]) -> list[str]:
    """Return of which part of the step time waits are not measured, where there is such a part."""
    unsplit_ms, of_ms = row["step_unsplit_ms"], row["kept_step_ms"]
    if unsplit_ms in (0, of_ms):
        return [NOT_IN_STEPS] if unsplit_ms else []
    return [f"waits inside {units.percent(unsplit_ms / of_ms)} of step time not measured"]


def communication(row: Mapping[str, Any]) -> str | None:
    """Return communication's share of step time, and of which part of it that is known."""
    if row["communication_ratio"] is None:
        return None
    part = units.percent(row["communication_step_ms"] / row["kept_step_ms"])
    runs = units.count(row["communication_runs"], "run")
    return (
        f"Communication {units.percent(row['communication_ratio'])} of step time, measured in "
        f"{runs} with {part} of all step time."
    )


def executing_idle(idle_ms: int, held_ms: int) -> str | None:
    """Return how much of the allocated time programs were loaded and nothing ran, in a sentence.

    held_ms: of the time with readings of memory; None is returned where there is none.
    """
    if not held_ms:
        return None
    return (
        f"Executing idle: {units.gpu_time(idle_ms)}, {units.percent(idle_ms / held_ms)} of the "
        "allocated time with readings of memory: a program was loaded and nothing ran."
    )


def of_run(run: Mapping[str, Any]) -> tuple[str, str]:
    """Return a run's goodput, and its upper bound or nothing."""
    low, high = run["goodput_of_held_ratio"], run["goodput_of_held_hi_ratio"]
    if low is None:
        return units.NOT_MEASURED, ""
    shown, bound = units.percent(low), units.percent(high)
    return shown, "" if bound == shown else f"up to {bound}"
