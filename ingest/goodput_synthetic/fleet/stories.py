"""Scripted jobs, one of each kind a day, so that every page has something to show."""

import numpy as np

from goodput_synthetic.fleet.demand import Request
from goodput_synthetic.fleet.fleet import CPUS_PER_NODE, GPUS_PER_NODE, Fleet
from goodput_synthetic.fleet.outages import OPENING_S, Outage, period_s

PRIORITY = 10
LARGEST = 256
STRAGGLER_S = 3_600
DRILL_S = 900
DRILL_FIRST_S = 120 - DRILL_S  # from the beginning of the clock: two minutes later it fails
DRILL_QUEUED_S = 60
DRILL_GPUS = 2 * GPUS_PER_NODE
DRILL_KEPT_S = 4 * 3_600  # before the first: most jobs have left two nodes by then


def scripted(fleet: Fleet, hours: int, seed: int) -> list[Request]:
    """Return the scripted jobs of all days; of a short recording one round of them."""
    rng = np.random.default_rng([seed, 4])
    length, total = period_s(hours), hours * 3_600
    found: list[Request] = []
    for day, begin in enumerate(range(0, total, length)):
        for request in _of_a_day(fleet, begin, length, day, rng):
            request.job_id = 1_000 + len(found)
            if request.run_id == "0":
                request.run_id = str(request.job_id)
            found.append(request)
    return found


def booked_gpu_s(requests: list[Request]) -> dict[str, float]:
    """Return the GPU time that the stories will take of each pool."""
    booked: dict[str, float] = {}
    for request in requests:
        times = 1 + request.requeues
        seconds = request.gpus * request.need_s * times
        booked[request.pool] = booked.get(request.pool, 0.0) + seconds
    return booked


def live_drills(begin_s: int, total_s: int, seed: int) -> list[Request]:
    """Return jobs one after the other on the same two nodes: each starts, slows and fails.

    The next waits in the queue when one ends, so that the nodes remain theirs.
    """
    rng = np.random.default_rng([seed, 14])
    starts = range(begin_s + DRILL_FIRST_S, total_s, DRILL_S)
    return [
        Request(
            job_id=2_000 + number,
            name=f"live-finetune-{number + 1:03}",
            user="goran",
            account="vision",
            pool="h100",
            gpus=DRILL_GPUS,
            submit_s=start - DRILL_QUEUED_S,
            need_s=DRILL_S,
            limit_s=2 * DRILL_S,
            ending="FAILED",
            kind="throttled",
            seed=int(rng.integers(2**31)),
            reports="all",
            priority=2 * PRIORITY,
            options={"step_ms": 6_000, "slow_from": 0.35, "slow_to": 0.9, "xid": 48},
        )
        for number, start in enumerate(starts)
    ]


def kept_for_drills(fleet: Fleet, planned: list[Outage], begin_s: int) -> list[Outage]:
    """Return a reservation of two nodes without other plans, until the first drill starts."""
    since, end = max(0, begin_s - DRILL_KEPT_S), begin_s + DRILL_FIRST_S
    taken = {o.node for o in planned if o.end_s is None or o.end_s > max(since, OPENING_S)}
    free = [int(n) for n in fleet.pool_nodes("h100") if int(n) not in taken]
    return [
        Outage(n, "reserved", since, end, "finetune-series", True, False)
        for n in free[-DRILL_GPUS // GPUS_PER_NODE :]
    ]


def _of_a_day(
    fleet: Fleet, begin: int, length: int, day: int, rng: np.random.Generator
) -> list[Request]:
    h100 = len(fleet.pool_nodes("h100"))
    big = _power_of_two(h100 * GPUS_PER_NODE * (0.85 if day == 0 else 0.25))
    pair = 2 * GPUS_PER_NODE
    start = begin + OPENING_S if day == 0 else begin + 900

    def job(
        story: str,
        pool: str,
        gpus: int,
        share: float,
        kind: str,
        ending: str,
        at: float,
        **more: object,
    ) -> Request:
        need = int(share * length)
        values: dict[str, object] = {
            "job_id": 0,
            "name": f"{story}-d{day + 1}",
            "user": "amara",
            "account": "nlp",
            "pool": pool,
            "gpus": gpus,
            "submit_s": (0 if day == 0 and at == 0 else start + int(at * length)),
            "need_s": need,
            "limit_s": need if ending == "TIMEOUT" else need * 2,
            "ending": ending,
            "kind": kind,
            "seed": int(rng.integers(2**31)),
            "reports": "first",
            "priority": PRIORITY,
            "story": story,
        }
        return Request(**(values | more))  # type: ignore[arg-type]

    first = job("llm-pretrain", "h100", big, 0.20, "plain", "REQUEUED", 0.0, qos="high",
                fails_after_s=int(0.14 * length), requeues=2, rest_s=int(0.12 * length),
                run_id=f"llm-pretrain-d{day + 1}", account="nlp",
                options={"measured": 1, "step_ms": 60_000})  # fmt: skip
    return [
        first,
        job("thermal-throttle", "h100", pair, 0.36, "throttled", "COMPLETED", 0.02, reports="all",
            account="vision", user="goran"),
        job("straggling-rank", "h200", pair, min(0.25, STRAGGLER_S / length), "straggler",
            "COMPLETED", 0.0, reports="all", account="speech", user="lucia"),
        job("periodic-gaps", "h200", GPUS_PER_NODE, 0.34, "gaps", "COMPLETED", 0.03,
            account="vision", user="hana"),
        job("data-starved", "h100", GPUS_PER_NODE, 0.30, "starved", "COMPLETED", 0.30,
            account="vision", user="ines", options={"stalls": 0.5}),
        job("unused-allocation", "h200", GPUS_PER_NODE // 2, 0.45, "unused", "TIMEOUT", 0.04,
            reports="", account="robotics", user="oskar"),
        job("idle-notebook", "h100", 1, 0.5, "notebook", "CANCELLED", 0.05, reports="",
            account="robotics", user="priya", name="jupyter"),
        job("all-cpus", "h200", 1, 0.08, "dark", "COMPLETED", 0.30, reports="",
            cpus=CPUS_PER_NODE, account="speech", user="nadia", name="feature-extraction"),
        job("suspended", "h100", 4, 0.15, "suspended", "CANCELLED", 0.25, reports="",
            account="platform", user="sven"),
        job("nccl-hang", "h200", GPUS_PER_NODE, 0.20, "hang", "FAILED", 0.40, account="nlp",
            user="chen"),
        job("out-of-memory", "h100", GPUS_PER_NODE, 0.03, "early", "OUT_OF_MEMORY", 0.55,
            account="vision", user="kalle"),
        job("restart-in-job", "h200", GPUS_PER_NODE, 0.22, "restart", "COMPLETED", 0.45,
            account="speech", user="mateo"),
        job("measured", "h100", GPUS_PER_NODE, 0.30, "measured", "COMPLETED", 0.35, account="nlp",
            user="dilnoza", **_cap_study(day)),
        job("saves-nobody-confirms", "h100", 4, 0.12, "unconfirmed", "FAILED", 0.50,
            account="robotics", user="quentin"),
        job("preempted", "h200", GPUS_PER_NODE, 0.12, "plain", "PREEMPTED", 0.10, requeues=1,
            rest_s=int(0.12 * length), partition="scavenge", qos="scavenger", account="platform",
            user="rosa"),
        job("ecc-then-xid", "h100", GPUS_PER_NODE, 0.16, "plain", "FAILED", 0.42, account="nlp",
            user="bo", options={"xid": 48}),
        job("long-finetune", "h200", GPUS_PER_NODE, 0.9, "spare", "COMPLETED", 0.62,
            account="nlp", user="emre"),
        job("never-started", "h100", 2 * big, 0.1, "plain", "CANCELLED", 0.5, account="nlp",
            user="farah", patience_s=int(0.06 * length), priority=-1),
    ]  # fmt: skip


def _cap_study(day: int) -> dict[str, object]:
    """Return one job under two power caps, a day each; on the first day it is another job."""
    caps = {1: {"cap_w": 400, "step_ms": 53_000}, 2: {"cap_w": 700, "step_ms": 46_000}}
    return {"name": "cap-study", "options": caps[day] | {"level": 0.9}} if day in caps else {}


def _power_of_two(gpus: float) -> int:
    size = GPUS_PER_NODE
    while size * 2 <= min(gpus, LARGEST):
        size *= 2
    return size
