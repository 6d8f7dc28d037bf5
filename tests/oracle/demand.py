"""Waiting jobs: what listings of the controller have of them, and which GPUs they could have used.

Rules: amendment 16; docs: Telemetry and idle time, "Demand".
"""

import random
from dataclasses import dataclass

HELD = ("Dependency", "Licenses", "QOSMaxGRESPerUser")  # whatever is free, it does not start
PERIOD_MS = 600_000
COUNTS = ("Resources", "Priority", "None")


@dataclass(frozen=True)
class Listing:
    """What the controller lists of a waiting job; no named node: any of them."""

    at: int
    reason: str
    named: tuple[str, ...]
    excluded: tuple[str, ...]
    count: int


def add_listings(world, nodes):
    """List some jobs while they wait: some ask for named nodes, some may not start yet."""
    for job in world.jobs:
        dice = random.Random(f"{world.seed} demand {job.job_id} {job.submit}")  # noqa: S311 -- chance, and no secret
        until = job.end if job.start is None else job.start
        if job.submit < 0 or until - job.submit < 30_000 or dice.random() < 0.3:
            continue
        ran_on = sorted({gpu.node for gpu in job.gpus})
        named = dice.choice([ran_on or dice.sample(nodes, 1), ran_on, nodes[:1], ["elsewhere"]])
        excluded = dice.choice([[], [], nodes[:1]])
        count = dice.choice([1, 1, len(nodes)])
        moments = sorted(
            dice.sample(range(job.submit // 1000, until // 1000), dice.choice([1, 1, 2, 3]))
        )
        job.listings = [
            Listing(
                moment * 1000, dice.choice([*COUNTS, *HELD]), tuple(named), tuple(excluded), count
            )
            for moment in moments
        ]


def demand(node, jobs):
    """F4: while an eligible job waits that could run on the node; GPUs and partition are alike."""
    return [
        (begin, end, "idle_with_demand")
        for job in jobs
        if _could_use(node, job)
        for begin, end in _waits(job)
    ]


def _could_use(node, job):
    """Named nodes are the only ones, unless the job asks for more than it names."""
    if not job.listings:
        return True
    last = job.listings[-1]
    is_pinned = bool(last.named) and last.count <= len(last.named)
    return (not is_pinned or node in last.named) and node not in last.excluded


def _waits(job):
    """Each reason holds from the listing before, the first from the submission, the last on.

    Of listings in ten minutes of the clock those with one reason are one, the last of them.
    """
    until = job.end if job.start is None else job.start
    if not job.listings:
        return [(job.submit, until)]
    last_of = {(listing.at // PERIOD_MS, listing.reason): listing for listing in job.listings}
    kept = sorted(last_of.values(), key=lambda listing: listing.at)
    moments = [job.submit, *(listing.at for listing in kept[:-1]), until]
    return [
        (begin, min(end, until))  # one after the start ends nothing
        for begin, end, listing in zip(moments[:-1], moments[1:], kept, strict=True)
        if listing.reason not in HELD
    ]
