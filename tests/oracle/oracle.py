"""The GPU-second ledger by brute force, from the written rules alone.

Rule numbers are those of "Precedence when evidence overlaps" of the accounting specification;
"amendment" and "docs" name its amendments and docs/accounting-rules.md. Nothing here is fast: each
GPU's time is cut at every boundary, and each piece takes the first layer that covers it.

Left out: shares of a GPU (MIG), throttling, stragglers across ranks, reservations, suspended jobs,
serving.
"""

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from tests.oracle.clocks import as_read
from tests.oracle.demand import demand
from tests.oracle.lives import lives_of
from tests.oracle.readings import IDLE_MIN_MS, of_long_gap, quiet_from, telemetry
from tests.oracle.shares import add_cells
from tests.oracle.world import HOUR_MS

Interval = tuple[int, int, str]  # from, to (exclusive), category

STEP_GAP_MS = 10
SPLIT_MIN_MS = 10
MISSING_SHARE = 0.05
FAILED = {"FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL"}


@dataclass
class Step:
    """A step of an attempt: its time within the attempt and its number."""

    begin: int
    end: int
    number: int
    waits: dict[str, int] = field(default_factory=dict)


@dataclass
class Attempt:
    """One life of a job's processes inside a job run."""

    begin: int
    end: int
    events: list[dict[str, Any]]
    is_last: bool
    ending: str  # good, failed or cut
    steps: list[Step] = field(default_factory=list)
    phases: list[Interval] = field(default_factory=list)
    open_phase: Interval | None = None  # one that only the end of the attempt ended
    fates: dict[int, str] = field(default_factory=dict)  # step: kept, lost_work or at_risk


def ledger(world):
    """Return the milliseconds of each GPU, hour, category, job and user."""
    cells = Counter()
    world = replace(world, jobs=as_read(world))
    layers_of = {id(job): _layers_of_job(job, world) for job in world.jobs if job.gpus}
    for gpu in world.gpus:
        holds = [job for job in world.jobs if job.start is not None and gpu in job.gpus]
        free = _free_layers(gpu, world)
        parts = []
        now = 0
        for job in sorted(holds, key=lambda job: job.start or 0):
            parts.append((now, job.start, None, free))
            own = [*layers_of[id(job)], telemetry(world.readings.get(gpu, []), job.start, job.end)]
            parts.append((job.start, job.end, job, own))
            now = job.end
        parts.append((now, world.end, None, free))
        for begin, end, job, layers in parts:
            otherwise = "unknown" if job else "idle_no_demand"
            for a, b, category in _paint(begin, min(end, world.end), layers, otherwise):
                who = (name_of(job, world), job.user) if job else ("", "")
                for hour in range(a // HOUR_MS, (b - 1) // HOUR_MS + 1):
                    ms = min(b, (hour + 1) * HOUR_MS) - max(a, hour * HOUR_MS)
                    cells[(gpu.uuid, world.start_ms + hour * HOUR_MS, category, *who)] += ms
    add_cells(cells, world)
    return dict(cells)


def name_of(job, world):
    """3.1: the key of a record is cluster, raw job id and submission."""
    return f"{world.cluster}/{job.job_id}@{world.epoch_s(job.submit)}"


def _paint(begin, end, layers, otherwise):
    """Cut [begin, end) at all boundaries; each piece has the first interval that covers it."""
    if begin >= end:
        return []
    cuts = {begin, end}
    for layer in layers:
        for a, b, _ in layer:
            cuts |= {moment for moment in (a, b) if begin < moment < end}
    moments = sorted(cuts)
    chosen = [otherwise] * (len(moments) - 1)
    taken = [False] * len(chosen)
    for layer in layers:
        for a, b, category in layer:
            first = bisect_right(moments, max(a, begin)) - 1
            for i in range(first, len(chosen)):
                if moments[i] >= b:
                    break
                if not taken[i] and moments[i] >= a:
                    chosen[i], taken[i] = category, True
    return [(a, b, c) for a, b, c in zip(moments, moments[1:], chosen, strict=False)]


def _free_layers(gpu, world):
    """Rule 3: U1 > U2 > U3 > F4 > F5 for time that nobody holds."""
    names = {"DOWN": "down", "MAINT": "maintenance", "DRAIN": "drained"}
    states = [
        [(a, b, category) for node, state, a, b in world.states if node == gpu.node and state == s]
        for s, category in names.items()
    ]
    return [*states, demand(gpu.node, world.jobs)]


def _layers_of_job(job, world):
    """Rule 4: the category of a held GPU by job events; strongest first."""
    if not job.events:
        return []
    attempts = attempts_of(job)
    requeued = [
        attempt
        for other in world.jobs
        if other.job_id == job.job_id and other.events and (other.start or 0) > (job.start or 0)
        for attempt in attempts_of(other)
    ]
    layers = [[], [], [], [], []]
    of_run = [event for other in world.jobs if other.job_id == job.job_id for event in other.events]
    for i, attempt in enumerate(attempts):
        hung_in_phase(attempt, [world.readings.get(gpu, []) for gpu in job.gpus])
        attempt.fates = fates_of(attempt, [*attempts[i + 1 :], *requeued], of_run)
        found = [
            failed_without_progress(attempt), attempt.phases, derived(attempt), steps(attempt),
            gaps(attempt, job, world),
        ]  # fmt: skip
        for layer, intervals in zip(layers, found, strict=True):
            layer += [(max(a, attempt.begin), min(b, attempt.end), c) for a, b, c in intervals]
    return layers


def attempts_of(job):
    """Words: a restart inside a job run ends one attempt and begins the next.

    Amendment 5: after the hold's end an event proves things and adds no time; a start there is no
    further attempt. Rule 4: an attempt lasts until the earliest start of any event of the next.
    """
    groups = lives_of(job)
    begins = [min(event["t"] - event.get("dur", 0) for event in group) for group in groups]
    begins = [job.start, *(max(begin, job.start) for begin in begins[1:])]
    ends = [*begins[1:], job.end]
    found = []
    for begin, end, events in zip(begins, ends, groups, strict=True):
        is_last = events is groups[-1]
        ending = "failed" if not is_last or job.state in FAILED else "cut"
        if is_last and job.state == "COMPLETED":
            ending = "good"
        attempt = Attempt(begin, end, events, is_last, ending)
        attempt.steps = steps_of(attempt)
        attempt.phases = phases_of(attempt)
        found.append(attempt)
    return found


def steps_of(attempt):
    """2.3: a step ended at its line and took `dur_s`, else the last step or `step.start` bounds it.

    Words: a step is cut at the end of the step before it.
    """
    found = []
    bound = None
    for event in attempt.events:
        if event["event"] == "step.start":
            bound = event["t"]
        if event["event"] != "step":
            continue
        begin = event["t"] - event["dur"] if "dur" in event else bound
        bound = event["t"]
        if begin is None:
            begin = event["t"]
        if begin >= attempt.end:
            break  # amendment 5: after the end of the hold nothing starts
        if event["t"] < attempt.begin:
            continue
        begin = max(begin, attempt.begin, found[-1].end if found else attempt.begin)
        waits = {name: event[name] for name in ("data", "straggler", "comm") if name in event}
        found.append(Step(begin, min(event["t"], attempt.end), event["step"], waits))
    return found


def phases_of(attempt):
    """Rules 4 and 5: declared phases, the one that started later first.

    Amendment 17: one without an end lasts to the next event, else to the end of the attempt.
    """
    names = {
        "init": "startup", "compile": "startup", "restore": "restore", "eval": "other_declared",
        "ckpt_save": "checkpoint_save", "data_wait": "data_stall",
        "custom:x": "other_declared",
    }  # fmt: skip
    found = []
    for i, event in enumerate(attempt.events):
        if event["event"] == "phase":
            found.append((event["t"] - event["dur"], event["t"], names[event["phase"]]))
        if event["event"] == "phase.start":
            rest = attempt.events[i + 1 :]
            same = (other for other in rest if other.get("phase") == event["phase"])
            mark = next((other for other in same if other["event"] != "phase"), None)
            if mark is None or mark["event"] == "phase.start":
                end = rest[0]["t"] if rest else attempt.end
                if not rest:
                    attempt.open_phase = (event["t"], end, names[event["phase"]])
            elif is_asynchronous(event, mark, attempt):
                continue
            else:
                end = mark["t"]
            found.append((event["t"], end, names[event["phase"]]))
    return sorted(found, key=lambda interval: -interval[0])


def hung_in_phase(attempt, gang):
    """docs: a phase that only its attempt's end ended hangs from when all GPUs are inactive."""
    if attempt.open_phase is None or attempt.open_phase[0] >= attempt.end:
        return
    begin, end, category = attempt.open_phase
    quiet = [quiet_from(readings, begin, end) for readings in gang]
    known = [moment for moment in quiet if moment is not None]
    if len(known) == len(quiet) and end - max(known) >= IDLE_MIN_MS:
        place = attempt.phases.index(attempt.open_phase)
        cut = [(begin, max(known), category)] if max(known) > begin else []
        attempt.phases[place : place + 1] = [(max(known), end, "fault_stall"), *cut]


def is_asynchronous(begin, end, attempt):
    """Amendment 18: a save in which a step ends has no length where nothing says what blocked."""
    ends = [event["t"] for event in attempt.events if event["event"] == "step"]
    return begin["phase"] == "ckpt_save" and any(begin["t"] < at < end["t"] for at in ends)


def fates_of(attempt, later, of_run):
    """Durable: a save of the attempt, a later attempt that starts higher, or COMPLETED.

    The first later attempt with steps decides: one after it may start higher because the steps
    were computed again in between ("the first execution of a lost step is A8"). A18: steps of a run
    that saves and never reports a durable save are at risk, unless they were done again.
    """
    saved = [event["step"] for event in attempt.events if event["event"] == "ckpt.durable"]
    following = next((other for other in later if other.steps), None)
    if following:
        saved.append(following.steps[0].number - 1)
    if attempt.ending == "good":
        saved += [step.number for step in attempt.steps]
    durable = max(saved, default=-1)
    again = {number for other in later for number in _numbers(other)}
    reported = {event["phase"] if "phase" in event else event["event"] for event in of_run}
    is_unknown = "ckpt_save" in reported and "ckpt.durable" not in reported
    fates = {}
    for step in attempt.steps:
        otherwise = "at_risk" if is_unknown and step.number not in again else "lost_work"
        is_kept = step.number <= durable and step.number not in again  # docs: none is kept twice
        fates[step.number] = "kept" if is_kept else otherwise
    return fates


def _numbers(attempt):
    """Return the steps that an attempt did: a log prints some of them."""
    numbers = [step.number for step in attempt.steps]
    return range(min(numbers), max(numbers) + 1) if numbers else ()


def failed_without_progress(attempt):
    """A10: a whole attempt that ended badly and kept nothing."""
    if attempt.ending == "good" or set(attempt.fates.values()) & {"kept", "at_risk"}:
        return []
    if attempt.ending == "cut" and not attempt.steps:
        return []
    return [(attempt.begin, attempt.end, "failed_without_progress")]


def derived(attempt):
    """Rules 4 and 8: start-up before the first step, fault stall or teardown after the last."""
    if not attempt.steps:
        starts = [event["t"] for event in attempt.events if event["event"] == "job.start"]
        stops = [event["t"] for event in attempt.events if event["event"] == "job.end"]
        inits = [b for _, b, category in attempt.phases if category == "startup"]
        until = starts[0] if starts else max(inits, default=attempt.begin)
        found = [(attempt.begin, until, "startup")]
        return found + [(stop, attempt.end, "teardown") for stop in stops[-1:]]
    first, last = attempt.steps[0], attempt.steps[-1]
    found = [(attempt.begin, first.begin + compile_ms(attempt), "startup")]
    if attempt.ending == "good":
        return [*found, (last.end, attempt.end, "teardown")]
    if attempt.ending == "failed":
        return [*found, (last.end, attempt.end, "fault_stall")]
    until = min(attempt.end, last.end + int(3 * median_step(attempt)))
    return [*found, (last.end, until, "teardown"), (until, attempt.end, "fault_stall")]


def median_step(attempt):
    """Return the median length of the attempt's steps; one that a clock left no time is none."""
    return median([s.end - s.begin for s in attempt.steps if s.end > s.begin] or [0])


def compile_ms(attempt):
    """First step: what it takes over the median of the next ten is start-up."""
    following = [step.end - step.begin for step in attempt.steps[1:11]]
    if not following:
        return 0
    first = attempt.steps[0]
    return max(0, int(first.end - first.begin - median(following)))


def steps(attempt):
    """Rules 4 and 7: lost steps whole; kept ones split from their start, A6, A12, A13, the rest.

    docs: waits for data under 10 ms, and under 5 % of the median step, are jitter.
    """
    found = []
    jitter = min(SPLIT_MIN_MS, MISSING_SHARE * median_step(attempt)) if attempt.steps else 0
    for step in attempt.steps:
        if attempt.fates[step.number] != "kept":
            found.append((step.begin, step.end, attempt.fates[step.number]))
            continue
        now = step.begin
        for name, category in (
            ("data", "data_stall"), ("straggler", "straggler_wait"), ("comm", "exposed_comm")
        ):  # fmt: skip
            wait = step.waits.get(name, 0)
            end = min(step.end, now + (0 if name == "data" and wait < jitter else wait))
            found.append((now, end, category))
            now = end
        found.append((now, step.end, _rest(step)))
    return found


def _rest(step):
    return "productive" if {"straggler", "comm"} <= set(step.waits) else "step_unsplit"


def gaps(attempt, job, world):
    """Rule 9, amendment 9, docs: undeclared time between steps and phases."""
    if not attempt.steps:
        return []
    begin, end = attempt.steps[0].begin, attempt.steps[-1].end
    declared = sorted(
        [(step.begin, step.end, step) for step in attempt.steps]
        + [(a, b, category) for a, b, category in attempt.phases if a < end and b > begin],
        key=lambda interval: interval[:2],
    )
    limit = MISSING_SHARE * median_step(attempt)
    found = []
    now, before = declared[0][1], declared[0][2]
    for a, b, what in declared[1:]:
        if a > now:
            found.append((now, a, _gap(now, a, before, limit, attempt, job, world)))
        if b >= now:
            now, before = b, what
    return found


def _gap(a, b, before, limit, attempt, job, world):
    is_step = isinstance(before, Step)
    if (is_step and b - a < STEP_GAP_MS) or b - a < limit:
        if isinstance(before, str):
            return before
        fate = attempt.fates[before.number]
        return _rest(before) if fate == "kept" else fate
    return of_long_gap(a, b, [world.readings.get(gpu, []) for gpu in job.gpus])
