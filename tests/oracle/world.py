"""Random small worlds: nodes, jobs, job events, telemetry and node states, as native files.

Times are milliseconds after the world's start, a whole hour; the same seed gives the same
world again.
"""

import random
from dataclasses import dataclass, field
from typing import Any

from tests.oracle.clocks import local_text, set_local_times, step_clocks
from tests.oracle.demand import Listing, add_listings
from tests.oracle.readings import HOUR_MS
from tests.oracle.shares import SharedGpu, add_shared_gpus

START_MS = 1_795_003_200_000
STATES = ("COMPLETED", "COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "PREEMPTED", "NODE_FAIL")


@dataclass(frozen=True)
class Gpu:
    """A GPU by its node and its number there."""

    node: str
    index: int

    @property
    def uuid(self):
        """Return the name that telemetry and the inventory have for it."""
        return f"GPU-{self.node}-{self.index}"


@dataclass
class Job:
    """A record of the scheduler: one start of a job, or a job that never started."""

    job_id: int
    user: str
    state: str
    submit: int
    start: int | None
    end: int
    gpus: list[Gpu] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)  # `t` in ms; `dur` in ms
    listings: list[Listing] = field(default_factory=list)  # while it waits


@dataclass
class World:
    """All that is known of a cluster, and until when."""

    seed: int
    hours: int
    start_ms: int = START_MS
    is_local: bool = False  # the accounting prints local times
    gpus: list[Gpu] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    states: list[tuple[str, str, int, int]] = field(default_factory=list)  # node, state, from, to
    readings: dict[Gpu, list[tuple[int, bool]]] = field(default_factory=dict)  # moment, is active
    shared_gpus: list[SharedGpu] = field(default_factory=list)  # of another cluster

    @property
    def cluster(self):
        """Return its name, which no other world has."""
        return f"c{self.seed}"

    @property
    def shared_cluster(self):
        """Return the name of the cluster of its shared GPUs."""
        return f"k{self.seed}"

    @property
    def end(self):
        """Return the end of the time that is looked at."""
        return self.hours * HOUR_MS

    def epoch_s(self, moment):
        """Return a moment in epoch seconds."""
        return (self.start_ms + moment) // 1000

    def printed(self, moment):
        """Return a moment as the scheduler prints it."""
        return local_text(self.epoch_s(moment)) if self.is_local else str(self.epoch_s(moment))


# short steps: a twentieth of the length, with waits, saves and jitter; more phases: anywhere, over
# steps and other phases
EXTRA = ("short-steps", "more-phases")


def make(seed, extra=()):
    """Make the world of a seed; extra: some of EXTRA."""
    dice = random.Random(seed)  # noqa: S311 -- chance, and no secret
    world = World(seed, dice.choice([1, 1, 2]))
    per_node = dice.choice([1, 2, 2, 4])
    nodes = [f"n{i + 1}" for i in range(dice.choice([1, 2, 3]))]
    world.gpus = [Gpu(node, i) for node in nodes for i in range(per_node)]
    # docs: a scheduler covers its cluster from its first record on
    world.jobs.append(Job(99, "ann", "CANCELLED", -100_000, None, -50_000))
    for _ in range(dice.randint(0, 6)):
        _add_job(world, dice, nodes, per_node)
    _requeue(world, dice)
    if dice.random() < 0.4:
        submit = dice.randrange(0, world.end // 1000 - 600) * 1000
        end = min(world.end, submit + dice.randrange(60, 2400) * 1000)
        world.jobs.append(Job(90, "pia", "CANCELLED", submit, None, end))
    _add_states(world, dice, nodes)
    saved = {}  # a job that was requeued goes on after its last save
    numbered = {}  # and numbers its attempts as before
    for job in world.jobs:
        if job.start is not None and dice.random() < 0.75:
            more = random.Random(f"{seed} {job.job_id} {job.start}")  # noqa: S311 -- leaves `dice` as it is
            is_numbered = numbered.setdefault(job.job_id, dice.random() < 0.5)
            saved_step = saved.get(job.job_id, 0)
            job.events = _events(job, dice, more, extra, saved_step, is_numbered=is_numbered)
            steps = [e["step"] for e in job.events if e["event"] == "ckpt.durable"]
            saved[job.job_id] = max([*steps, saved.get(job.job_id, 0)])
    if dice.random() < 0.75:
        _add_readings(world, dice, nodes)
    if "more-phases" in extra:
        for job in world.jobs:
            _add_phases(job, dice)
    add_listings(world, nodes)
    set_local_times(world)
    step_clocks(world)
    add_shared_gpus(world)
    return world


def _add_job(world, dice, nodes, per_node):
    """Add a job where GPUs are free; none where they are not."""
    latest = world.end // 1000
    ends = [job.end // 1000 for job in world.jobs if 0 < job.end // 1000 < latest - 120]
    start = dice.choice(ends) + dice.choice([0, 1, 5]) if ends and dice.random() < 0.4 else None
    if start is None:
        start = dice.randrange(0, latest - 120)
    end = min(latest, start + dice.choice([120, 300, 900, 1800, 3000]) + dice.randrange(0, 60))
    if per_node > 1 and dice.random() < 0.35:
        node = dice.choice(nodes)
        chosen = [Gpu(node, i) for i in sorted(dice.sample(range(per_node), per_node // 2))]
    else:
        count = dice.randint(1, len(nodes))
        wanted = sorted(dice.sample(nodes, count))
        chosen = [gpu for gpu in world.gpus if gpu.node in wanted]
    begin, stop = start * 1000, end * 1000
    for job in world.jobs:
        overlaps = job.start is not None and job.start < stop and begin < job.end
        if overlaps and set(job.gpus) & set(chosen):
            return
    number = len(world.jobs) + 1
    waited = dice.choice([0, 0, 60, 600]) * 1000
    state = dice.choice(STATES)
    user = dice.choice(["ann", "bob"])
    world.jobs.append(Job(number, user, state, max(0, begin - waited), begin, stop, chosen))


def _requeue(world, dice):
    """Start a job that lost its node or its place again, on the same GPUs if they are free."""
    for job in list(world.jobs):
        if job.state not in {"PREEMPTED", "NODE_FAIL"} or dice.random() < 0.5:
            continue
        begin = job.end + dice.choice([10, 120]) * 1000
        stop = min(world.end, begin + dice.randrange(200, 1500) * 1000)
        taken = any(
            other.start is not None
            and other.start < stop
            and begin < other.end
            and set(other.gpus) & set(job.gpus)
            for other in world.jobs
        )
        if begin + 60_000 < stop and not taken:
            again = Job(job.job_id, job.user, "COMPLETED", job.end, begin, stop, list(job.gpus))
            world.jobs.append(again)


def _add_states(world, dice, nodes):
    """Take nodes out of service for a while."""
    for _ in range(dice.choice([0, 0, 1, 2])):
        begin = dice.randrange(0, world.end // 1000 - 60)
        stop = min(world.end // 1000, begin + dice.randrange(30, 1500))
        state = dice.choice(["DOWN", "DRAIN", "MAINT"])
        world.states.append((dice.choice(nodes), state, begin * 1000, stop * 1000))


def _add_readings(world, dice, nodes):
    """Read the GPUs of some nodes, each node at an interval of its own, with holes."""
    for node in nodes:
        if dice.random() < 0.2:
            continue
        interval = dice.choice([10, 15, 30, 60]) * 1000
        moments = list(range(dice.randrange(0, interval, 10) - interval, world.end, interval))
        if dice.random() < 0.4:
            hole = dice.randrange(0, world.end)
            length = dice.choice([2, 5, 20, 100]) * interval
            moments = [moment for moment in moments if not hole < moment < hole + length]
        idle = [
            (begin, begin + dice.choice([30, 200, 290, 400, 1200]) * 1000)
            for begin in (dice.randrange(0, world.end) for _ in range(dice.choice([0, 1, 2, 4])))
        ]
        if dice.random() < 0.2:
            idle = [(0, world.end)]
        for gpu in world.gpus:
            if gpu.node == node:
                quiet = idle if dice.random() < 0.8 else []
                world.readings[gpu] = [
                    (moment, not any(begin < moment <= stop for begin, stop in quiet))
                    for moment in moments
                    if moment >= 0
                ]


def _add_phases(job, dice):
    """Declare phases at any time between the first and the last event of the hold."""
    for kind in ("data_wait", "compile", "custom:x"):
        moments = [event["t"] for event in job.events if event["t"] < job.end]
        if len(moments) < 3 or dice.random() < 0.3:
            continue
        moment = dice.randrange(moments[1], moments[-1] + 1)
        place = sum(event["t"] <= moment for event in job.events)
        span = {"event": "phase", "phase": kind, "t": moment}
        span["dur"] = dice.choice([7, 33, 333, 2_345, 30_011, 90_017])
        before = job.events[place - 1]
        job.events.insert(place, span | {k: before[k] for k in ("attempt",) if k in before})


def _events(job, dice, more, extra, saved, *, is_numbered):
    """Return the events of rank 0 of a job: lives of steps, phases, saves and an end."""
    reported = []
    is_async = more.random() < 0.3
    has_dur = dice.random() < 0.7
    scale = 20 if "short-steps" in extra else 1
    length = dice.choice([2_000, 5_000, 10_000, 20_000]) // scale
    every = dice.choice([0, 5, 10, 30])
    lives = dice.choice([1, 1, 1, 2, 3])
    waits = has_dur and dice.random() < 0.5
    splits = waits and dice.random() < 0.6
    now, first = job.start, saved + 1
    for life in range(lives):
        last_life = life == lives - 1 or job.end - now < 400_000
        common = {"attempt": life} if is_numbered else {}
        stop = job.end if last_life else now + (job.end - now) // 2
        now += dice.choice([1_000, 5_010, 30_000])
        reported.append({"event": "job.start", "t": now, **common})
        if dice.random() < 0.5:
            begin = now + dice.choice([0, 500, 2_000])
            now = begin + dice.choice([3_000, 20_000])
            reported.append({"event": "phase.start", "phase": "init", "t": begin, **common})
            reported.append({"event": "phase.end", "phase": "init", "t": now, **common})
        if dice.random() < 0.4:
            begin, now = now + 1_000, now + dice.choice([4_000, 25_000])
            span = {"event": "phase", "phase": "restore", "t": now, "dur": now - begin}
            reported.append({**span, **common})
        now += dice.choice([0, 2_000, 10_000])
        step, is_start = first, True
        saving = None  # when an asynchronous save ends, and its step
        silent = stop - dice.choice([0, 500, 15_000, 90_000])
        if dice.random() < 0.15:
            silent = now  # no step at all
        while True:
            took = length + dice.randrange(-50, 50) * 10 // scale
            took += length if is_start and dice.random() < 0.5 else 0
            if now + took > silent:
                break
            if not has_dur and is_start:
                reported.append({"event": "step.start", "step": step, "t": now, **common})
            now += took
            if saving is not None and saving[0] < now:
                reported += _saved(*saving, common)
                saved, saving = max(saved, saving[1]), None
            line = {"event": "step", "step": step, "t": now, **common}
            if has_dur:
                line["dur"] = took
            if waits and not is_start:
                line["data"] = dice.choice([0, 100, 500, 1_000]) // scale
                if splits:
                    line["straggler"] = dice.choice([0, 50, 300]) // scale
                    line["comm"] = dice.choice([100, 400, 1_000]) // scale
            reported.append(line)
            is_start = False
            if every and step % every == 0:
                took = dice.choice([300, 2_000, 5_000]) // scale
                if now + took > silent:
                    break
                name = dice.choice(["ckpt_save", "ckpt_save", "ckpt_save", "eval"])
                if is_async and saving is None:
                    span = {"event": "phase.start", "phase": "ckpt_save", "t": now}
                    reported.append(span | common)
                    saving = now + length + more.choice([500, length, 2 * length]), step
                    step += 1
                    continue
                reported.append({"event": "phase.start", "phase": name, "t": now, **common})
                if more.random() < 0.1:
                    break  # it is killed in the phase, or says no more of it
                now += took
                reported.append({"event": "phase.end", "phase": name, "t": now, **common})
                if name == "ckpt_save":
                    late = dice.choice([0, 0, 0, 4_000])
                    if now + late <= silent:
                        end = {"event": "ckpt.durable", "step": step, "t": now + late}
                        reported.append(end | common)
                        saved = max(saved, step)
                if not has_dur:
                    reported.append({"event": "step.start", "step": step + 1, "t": now, **common})
            if dice.random() < 0.03:
                now += dice.choice([4, 30, length // 30, length, 60_000, 200_000])
                if not has_dur and now <= silent:
                    reported.append({"event": "step.start", "step": step + 1, "t": now, **common})
            step += 1
        if last_life:
            if job.state == "COMPLETED" and dice.random() < 0.7:
                reported.append({"event": "job.end", "t": min(job.end, now + 500), **common})
            elif step > first and dice.random() < 0.3:
                late = job.end + dice.choice([500, 3_000, 20_000])
                reported.append({"event": "ckpt.durable", "step": step - 1, "t": late, **common})
        elif dice.random() < 0.5:
            failure = {"event": "failure", "kind": "exception", "t": min(stop, now + 100)}
            reported.append(failure | common)
        now, first = max(stop, now + 200), saved + 1
        if last_life:
            break
    if dice.random() < 0.15:
        reported[0]["t"] = job.start - dice.choice([300, 2_000])
    return sorted(reported, key=lambda event: event["t"])  # as they stand in the file


def _saved(moment, step, common):
    """Return the end of an asynchronous save, which makes its step durable."""
    end = {"event": "phase.end", "phase": "ckpt_save", "t": moment}
    return [end | common, {"event": "ckpt.durable", "step": step, "t": moment} | common]
