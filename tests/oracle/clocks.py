"""Clocks that change: accounting in local time over a change of clocks; a node's clock that steps.

Rules: docs: Holds and ownership, "A start or end in the hour that comes twice"; Attempts, steps and
phases, "Clocks that disagree are reported, not corrected".
"""

import random
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from zoneinfo import ZoneInfo

ZONE = ZoneInfo("Europe/Berlin")
# hours around 02:00 to 03:00 local time, which comes twice in October and never in March
HOURS = (
    "2026-10-24T23:00", "2026-10-25T00:00", "2026-10-25T00:00", "2026-10-25T01:00",
    "2026-03-29T00:00", "2026-03-29T01:00",
)  # fmt: skip
STEPS_MS = (-65_000, -7_000, -400, 400, 7_000, 65_000)


def local_text(epoch_s):
    """Return a moment as the accounting prints it in local time."""
    return datetime.fromtimestamp(epoch_s, ZONE).strftime("%Y-%m-%dT%H:%M:%S")


def set_local_times(world):
    """Let some worlds have their accounting in local time, most of them as clocks change."""
    dice = random.Random(f"{world.seed} local times")  # noqa: S311 -- chance, and no secret
    if dice.random() < 0.4:
        moment = datetime.fromisoformat(dice.choice(HOURS)).replace(tzinfo=UTC)
        world.start_ms = round(moment.timestamp() * 1000)
        world.is_local = True
    runs = Counter(job.job_id for job in world.jobs)
    for job, read in zip(world.jobs, as_read(world), strict=True):
        if job.gpus and not read.gpus and runs[job.job_id] > 1:
            job.events = []  # no rule says to which of the job's runs they belong


def step_clocks(world):
    """Set the clock of some nodes by some seconds: what their jobs write later is off by that.

    Not where a job was requeued: which of its runs an event is of goes by time.
    """
    dice = random.Random(f"{world.seed} clocks")  # noqa: S311 -- chance, and no secret
    runs = Counter(job.job_id for job in world.jobs)
    for node in sorted({gpu.node for gpu in world.gpus}):
        here = [job.events for job in world.jobs if job.events and job.gpus[0].node == node]
        # where it is set back to before a job's first steps, no rule says which came first
        steps = [[e["t"] for e in events if e["event"] == "step"][20:] for events in here]
        moments = [moment for of_job in steps for moment in of_job]
        if not moments or dice.random() < 0.6 or max(runs.values()) > 1:
            continue
        moment, by = dice.choice(moments), dice.choice(STEPS_MS)
        for events in here:
            for event in events:
                event["t"] += by if event["t"] > moment else 0
            events.sort(key=lambda event: event["t"])


def as_read(world):
    """Return the jobs by what the accounting's local times say of them.

    Of two possible pairs of start and end those count that are as far apart as the record says, and
    in which nothing starts or ends before it was submitted. Where two are left nobody knows when
    the job had its GPUs, so that it has none. A submission is the earlier of the two.
    """
    return [_as_read(job, world) for job in world.jobs] if world.is_local else world.jobs


def _as_read(job, world):
    submit = _possible(job.submit, world)[0]
    if job.start is None:
        ends = [end for end in _possible(job.end, world) if end >= submit]
        return replace(job, submit=submit, end=ends[0])
    fits = [
        (start, end)
        for start, end in product(_possible(job.start, world), _possible(job.end, world))
        if end - start == job.end - job.start and start >= submit
    ]
    start, end = fits[0]
    is_known = len(fits) == 1
    return replace(job, submit=submit, start=start, end=end, gpus=job.gpus if is_known else [])


def _possible(moment, world):
    """Return the moments that are printed alike, the earlier first."""
    text = local_text((world.start_ms + moment) // 1000)
    clock = datetime.fromisoformat(text)
    found = {round(clock.replace(tzinfo=ZONE, fold=fold).timestamp() * 1000) - world.start_ms
             for fold in (0, 1)}  # fmt: skip
    return sorted(found)
