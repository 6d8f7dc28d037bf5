"""Speeds of two sides against each other, workload by workload."""

from dataclasses import dataclass

import polars as pl

from goodput_scenarios.comparison import differences
from goodput_scenarios.comparison.differences import RUNS_MIN, Difference, Estimate
from goodput_scenarios.comparison.sides import Measured

WORKLOAD = ("workload", "params", "gpu_models", "gpus")
WORK = ("tokens", "samples")
STEPS_MIN = 2


@dataclass(frozen=True)
class Speed:
    """The speed of a workload on both sides.

    unit: what the speed is in, per second: tokens, samples or steps
    difference: of speeds, step_time: of steps per second; None: a side has too few steps
    basis: what was counted, steps or runs
    reason: why it is not comparable; None: it is
    left_out: runs that are not counted, each with its reason
    runs_a, runs_b: their keys
    """

    workload: str
    unit: str
    difference: Difference | None
    step_time: Difference | None
    basis: str
    reason: str | None
    left_out: tuple[str, ...]
    runs_a: tuple[str, ...]
    runs_b: tuple[str, ...]

    @property
    def change_ratio(self) -> float:
        """Speed of B over that of A, less 1."""
        return self._known.change_ratio

    @property
    def low_ratio(self) -> float:
        """Lower end of its interval."""
        return self._known.low_ratio

    @property
    def high_ratio(self) -> float:
        """Upper end of its interval."""
        return self._known.high_ratio

    @property
    def _known(self) -> Difference:
        if self.difference is None:
            raise ValueError("the speed of a side is not known")
        return self.difference


def speeds(a: Measured, b: Measured) -> list[Speed]:
    """Return the speed of each workload that both sides have, the one with most steps first.

    One run on each side is compared whatever it is; what differs of them is listed beside.
    """
    if a.runs.height == b.runs.height == 1:
        names = dict.fromkeys((a.runs["workload"][0], b.runs["workload"][0]))
        return [_speed(" / ".join(names), a, a.runs, b, b.runs)]
    found = []
    of_b = dict(b.runs.group_by(WORKLOAD, maintain_order=True))
    of_a = a.runs.group_by(WORKLOAD, maintain_order=True)
    for key, runs in sorted(of_a, key=lambda group: -int(group[1]["steps"].sum())):
        if key in of_b:
            found.append(_speed(workload_name(*key), a, runs, b, of_b[key]))
    return found


def workload_name(workload: object, params: object, gpu_models: object, gpus: object) -> str:
    """Return a workload as reports name it: llm, 8 x NVIDIA H100."""
    of_model = f", {params:.3g} parameters" if isinstance(params, float) else ""
    return f"{workload}{of_model}, {gpus} x {gpu_models or 'GPU'}"


def _speed(
    name: str, a: Measured, runs_a: pl.DataFrame, b: Measured, runs_b: pl.DataFrame
) -> Speed:
    sides = ((a, runs_a), (b, runs_b))
    good = [runs.filter(pl.col("not_comparable").is_null()) for _, runs in sides]
    reasons = [
        f"{side.side.name}: {runs['not_comparable'][0]}"
        for (side, runs), usable in zip(sides, good, strict=True)
        if usable.is_empty()
    ]
    counted = [
        runs if usable.is_empty() else usable for (_, runs), usable in zip(sides, good, strict=True)
    ]
    steps = [
        [side.steps.filter(pl.col("run_key") == key) for key in runs["run_key"]]
        for (side, _), runs in zip(sides, counted, strict=True)
    ]
    unit = _common_unit([of_run for of_side in steps for of_run in of_side])
    basis = "runs" if min(map(len, steps)) >= RUNS_MIN else "steps"
    is_enough = all(sum(one.height for one in of_side) >= STEPS_MIN for of_side in steps)
    by_unit = {
        wanted: differences.difference(*(_estimate(of_side, wanted, basis) for of_side in steps))
        for wanted in {unit, "steps"}
        if is_enough
    }
    left_out = [
        f"{run}: {reason}"
        for (_, runs), used in zip(sides, counted, strict=True)
        for key, run, reason in runs.select("run_key", "run_id", "not_comparable").iter_rows()
        if key not in set(used["run_key"])
    ]
    return Speed(
        name,
        unit,
        by_unit.get(unit),
        _inverse(by_unit.get("steps")),
        basis,
        "; ".join(reasons) or (None if is_enough else "too few steps"),
        tuple(left_out),
        *(tuple(runs["run_key"]) for runs in counted),
    )


def _common_unit(runs: list[pl.DataFrame]) -> str:
    """Return the work that all steps of both sides report; steps where there is none."""
    for unit in WORK:
        if all(steps.height and not steps[unit].null_count() for steps in runs):
            return unit
    return "steps"


def _estimate(runs: list[pl.DataFrame], unit: str, basis: str) -> Estimate:
    if basis == "runs":
        return differences.of_runs([_of_steps(steps, unit) for steps in runs])
    return _of_steps(pl.concat(runs), unit)


def _of_steps(steps: pl.DataFrame, unit: str) -> Estimate:
    time_s = steps["step_ms"].cast(pl.Float64) / 1000
    work = steps[unit].cast(pl.Float64) if unit in WORK else time_s * 0 + 1
    return differences.of_steps(work.to_numpy(), time_s.to_numpy())


def _inverse(steps_per_s: Difference | None) -> Difference | None:
    """Return the difference of step times from that of steps per second."""
    if steps_per_s is None:
        return None
    ends = [1 / (1 + ratio) - 1 for ratio in (steps_per_s.high_ratio, steps_per_s.low_ratio)]
    return Difference(steps_per_s.a, steps_per_s.b, 1 / (1 + steps_per_s.change_ratio) - 1, *ends)
