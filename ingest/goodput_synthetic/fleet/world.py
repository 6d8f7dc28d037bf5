"""What happens in a fleet from its first to its last hour, before any source writes of it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from goodput_synthetic.fleet.fleet import NODES_PER_RACK, Fleet, build
from goodput_synthetic.fleet.habits import MEASURED_KINDS, SECOND
from goodput_synthetic.fleet.lives import Life, live
from goodput_synthetic.fleet.outages import Outage, Silence, period_s
from goodput_synthetic.fleet.plans import Plan, eventful
from goodput_synthetic.fleet.schedule import REPAIR_SHARE, JobRun, Schedule, Scheduler
from goodput_synthetic.fleet.scrapes import Scrapes, scrapes
from goodput_synthetic.fleet.stories import kept_for_drills, live_drills
from goodput_synthetic.fleet.written.kernels import Kernels, kernel_logs


@dataclass(frozen=True)
class World:
    """A fleet, what its jobs and nodes do in `total_s` seconds from `start`, and what is read."""

    fleet: Fleet
    schedule: Schedule
    lives: list[Life]
    quiet: list[Silence]
    scrapes: Scrapes
    kernels: Kernels
    seed: int
    start: datetime
    total_s: int
    has_faults: bool
    is_shown: bool = False

    @property
    def start_s(self) -> int:
        """Return the start in seconds since the epoch."""
        return int(self.start.timestamp())

    def known_at(self, now_s: int) -> tuple[Schedule, list[Life]]:
        """Return what schedulers know at a moment: jobs submitted by then, ends until then."""
        if now_s >= self.total_s:
            return self.schedule, self.lives
        runs = {id(run): _known_run(run, now_s) for run in self.schedule.runs}
        known = [run for run in runs.values() if run is not None]
        outages = [_known_outage(o, now_s) for o in self.schedule.outages if o.start_s <= now_s]
        lives = [
            replace(
                life,
                run=run,
                end=min(life.end, now_s * SECOND),
                suspended=max(0, min(life.end, now_s * SECOND) - life.end + life.suspended),
            )
            for life in self.lives
            if (run := runs[id(life.run)]) is not None and run.start_s is not None
        ]
        return Schedule(known, outages), lives


def imagine(
    *, gpus: int, hours: int, seed: int, start: datetime, interval_s: int,
    plan: Callable[[Fleet, int, int], Plan] = eventful, live_from_s: int | None = None,
) -> World:  # fmt: skip
    """Return a world of `hours` hours; from `live_from_s` on it has a drill after the other.

    plan: what is to happen.

    Raises ValueError for a fleet that cannot be: no whole nodes, no time, a start that is not a
    whole hour or has no zone.
    """
    if start.tzinfo is None or start.timestamp() % 3_600:
        raise ValueError(f"start {start} is not a whole hour with a zone")
    if hours < 1 or interval_s < 1 or 3_600 % interval_s:
        raise ValueError(f"{hours} h in steps of {interval_s} s cannot be generated")
    total_s = hours * 3_600
    fleet = build(gpus, seed)
    day = plan(fleet, hours, seed)
    if live_from_s is not None:
        day.requests += live_drills(live_from_s, total_s, seed)
        day.outages += kept_for_drills(fleet, day.outages, live_from_s)
    repair_s = int(REPAIR_SHARE * period_s(hours))
    schedule = Scheduler(fleet, total_s, repair_s, seed).play(day.requests, day.outages)
    _throttle(schedule, day)
    lives = live(schedule.runs, total_s)
    read = scrapes(fleet, schedule, day.silences, total_s, interval_s, seed)
    noise = max(1, len(fleet.nodes) // 16) if day.has_faults else 0
    kernels = kernel_logs(fleet, schedule, lives, start, total_s * SECOND, seed, noise)
    return World(
        fleet, schedule, lives, day.silences, read, kernels, seed, start, total_s, day.has_faults,
        day.is_shown,
    )  # fmt: skip


def _throttle(schedule: Schedule, plan: Plan) -> None:
    """Let training jobs that start on the hot rack while it is hot throttle there."""
    for run in schedule.runs:
        request, is_hot = run.request, [n // NODES_PER_RACK == plan.hot_rack for n in run.nodes]
        if any(is_hot) and (run.start_s or 0) >= plan.hot_from_s and request.kind in MEASURED_KINDS:
            request.kind = "throttled"
            request.options |= {"slow_from": 0.1, "slow_to": 0.9, "hot_rack": plan.hot_rack or 0}


def _known_run(run: JobRun, now_s: int) -> JobRun | None:
    """Return a job run as it is known at a moment; None: not submitted yet."""
    if run.submit_s > now_s:
        return None
    if run.end_s is not None and run.end_s <= now_s:
        return run
    if run.start_s is None or run.start_s > now_s:
        return replace(run, start_s=None, end_s=None, state="PENDING", nodes=[], units=[],
                       died_s=None, failed_node=None)  # fmt: skip
    return replace(run, end_s=None, state="RUNNING", died_s=None, failed_node=None)


def _known_outage(outage: Outage, now_s: int) -> Outage:
    is_announced = outage.state in ("maintenance", "reserved")
    is_over = outage.end_s is not None and outage.end_s <= now_s
    return outage if is_announced or is_over else replace(outage, end_s=None)
