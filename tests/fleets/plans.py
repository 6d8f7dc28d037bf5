"""Days of made-up fleets for tests, beside the demo's (`eventful`).

`with_steps`: an event for each step, all of one length. `with_cases`: jobs for labelled anomalies,
and enough reserved and stranded GPUs to be findings. `quiet`: jobs that train and end well, and
nothing else happens. `better` and `worse`: with fewer failures; with the failure of one rack and
the throttling of another.
"""

from dataclasses import replace

from goodput_synthetic.fleet.demand import Request, crowd
from goodput_synthetic.fleet.fleet import CPUS_PER_NODE, GPUS_PER_NODE, NODES_PER_RACK, Fleet
from goodput_synthetic.fleet.outages import Outage, period_s, planned, silences
from goodput_synthetic.fleet.plans import Plan, eventful
from goodput_synthetic.fleet.stories import PRIORITY, booked_gpu_s, scripted

FIRST_CASE_ID = 5_000
QUIET_SAVE_MS = 6_000  # of ten minutes and more: under what a finding takes
QUIET_LEFT_OUT, QUIET_MAX_GPUS = 4, 4 * GPUS_PER_NODE  # so that jobs find room at once
# name, GPUs, share of a day that it runs, which ranks report, options
CASES: tuple[tuple[str, int, float, str, dict[str, float]], ...] = (
    ("case-gang", GPUS_PER_NODE, 0.44, "first", {}),
    ("case-hosts", GPUS_PER_NODE, 0.36, "first", {}),
    ("case-gaps", GPUS_PER_NODE, 0.20, "", {}),
    ("case-steps", GPUS_PER_NODE, 0.30, "first", {}),
    ("case-saves", GPUS_PER_NODE // 2, 0.15, "first", {"save_ms": 150_000.0}),
    ("case-use-drop", GPUS_PER_NODE // 2, 0.22, "first", {}),
    ("case-power-drop", GPUS_PER_NODE // 2, 0.22, "first", {}),
    ("case-low-use", GPUS_PER_NODE // 4, 0.15, "", {}),
    ("case-half-use", GPUS_PER_NODE // 4, 0.15, "", {}),
    ("case-hollow", GPUS_PER_NODE // 4, 0.15, "", {}),
)
STRANDING_JOBS, STRANDED_SHARE = 4, 0.22
CASES_AT, RESERVED_FROM, RESERVED_TO = 0.25, 0.50, 0.85
BETTER_LEFT_OUT, WORSE_STARVED = 4, 3  # each so many-th job of the crowd
LOST_RACK, LOST_FROM, LOST_TO = 2, 0.55, 0.75
HOT_RACK, HOT_FROM = 5, 0.30


def with_steps(step_ms: int, fleet: Fleet, hours: int, seed: int) -> Plan:
    """Return an eventful day on which every training job has steps of this length and logs each."""
    plan = eventful(fleet, hours, seed)
    steps = {"step_ms": step_ms}
    requests = [replace(one, options=one.options | steps) for one in plan.requests]
    return replace(plan, requests=requests)


def with_cases(fleet: Fleet, hours: int, seed: int) -> Plan:
    """Return an eventful day, and in it jobs that anomalies can be put on."""
    requests = scripted(fleet, hours, seed) + _case_jobs(hours, seed)
    requests += crowd(fleet, hours, seed, booked_gpu_s(requests))
    outages, length = planned(fleet, hours, seed), period_s(hours)
    usable = [n for n, node in enumerate(fleet.nodes) if node.pool != "mig"]
    # not where something is planned already
    free = [n for n in usable if not any(o.node == n and o.reason != "opening" for o in outages)]
    outages += [
        Outage(n, "reserved", int(RESERVED_FROM * length), int(RESERVED_TO * length), "course")
        for n in free[: max(1, len(usable) // 5)]
    ]
    return Plan(requests, outages, silences(fleet, hours, seed))


def quiet(fleet: Fleet, hours: int, seed: int) -> Plan:
    """Return a day on which jobs train and end well, with room for all of them.

    A part of the jobs reports nothing, as on other days.
    """
    requests = []
    for number, request in enumerate(crowd(fleet, hours, seed, {})):
        is_left_out = number % QUIET_LEFT_OUT == 0
        if request.pool == "mig" or request.gpus > QUIET_MAX_GPUS or is_left_out:
            continue
        request.kind = "plain" if request.reports else "dark"
        request.ending, request.fails_after_s, request.requeues = "COMPLETED", None, 0
        request.limit_s, request.wait_s, request.patience_s = 2 * request.need_s, 0, None
        request.options["save_ms"] = QUIET_SAVE_MS
        requests.append(request)
    return Plan(requests, [], [], has_faults=False)


def better(fleet: Fleet, hours: int, seed: int) -> Plan:
    """Return an eventful time in which most jobs of the crowd train, report it and end well."""
    plan = eventful(fleet, hours, seed)
    for number, request in enumerate(plan.requests):
        if request.story or request.pool == "mig" or number % BETTER_LEFT_OUT == 0:
            continue
        if request.gpus >= GPUS_PER_NODE:
            request.kind, request.reports = "plain", "first"
        request.ending, request.fails_after_s, request.requeues = "COMPLETED", None, 0
        request.limit_s = 2 * request.need_s
    return plan


def worse(fleet: Fleet, hours: int, seed: int) -> Plan:
    """Return an eventful time in which a rack fails, another throttles and many jobs starve."""
    plan, total = eventful(fleet, hours, seed), hours * 3_600
    crowd_of_trainers = [r for r in plan.requests if not r.story and r.reports]
    for request in crowd_of_trainers[::WORSE_STARVED]:
        request.kind, request.options["stalls"] = "starved", 0.5
    start, end = int(LOST_FROM * total), int(LOST_TO * total)
    first, last = LOST_RACK * NODES_PER_RACK, (LOST_RACK + 1) * NODES_PER_RACK
    plan.outages += [Outage(n, "down", start, end, "rack power") for n in range(first, last)]
    return replace(plan, hot_rack=HOT_RACK, hot_from_s=int(HOT_FROM * total))


def _case_jobs(hours: int, seed: int) -> list[Request]:
    length = period_s(hours)

    def job(number: int, name: str, gpus: int, share: float, reports: str, kind: str) -> Request:
        return Request(
            job_id=FIRST_CASE_ID + number, name=name, user="emre", account="nlp", pool="h100",
            gpus=gpus, submit_s=int(CASES_AT * length), need_s=int(share * length),
            limit_s=2 * int(share * length), ending="COMPLETED", kind=kind,
            seed=seed * 1_000 + number, reports=reports, priority=PRIORITY, story=name,
        )  # fmt: skip

    found = []
    for number, (name, gpus, share, reports, options) in enumerate(CASES):
        found.append(job(number, name, gpus, share, reports, "plain"))
        found[-1].options.update(options)
    for number in range(STRANDING_JOBS):
        made = job(len(CASES) + number, "case-stranding", 1, STRANDED_SHARE, "", "dark")
        made.cpus, made.pool, made.partition, made.gres_type = CPUS_PER_NODE, "h200", "h200", "h200"
        found.append(made)
    return found
