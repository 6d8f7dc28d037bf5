"""What is to happen in a fleet: jobs, outages, silences and faults."""

from dataclasses import dataclass, field, replace

from goodput_synthetic.fleet.demand import Request, crowd
from goodput_synthetic.fleet.exhibits import declare, exhibits
from goodput_synthetic.fleet.fleet import Fleet
from goodput_synthetic.fleet.outages import Outage, Silence, planned, silences
from goodput_synthetic.fleet.stories import booked_gpu_s, scripted


@dataclass
class Plan:
    """What is to happen; `has_faults`: also Xids that mean nothing, and a link that is lost.

    hot_rack: its GPUs throttle in jobs that start after hot_from_s. is_shown: with evidence that
    a site has only where somebody set it up.
    """

    requests: list[Request]
    outages: list[Outage]
    silences: list[Silence] = field(default_factory=list)
    has_faults: bool = True
    hot_rack: int | None = None
    hot_from_s: int = 0
    is_shown: bool = False


def eventful(fleet: Fleet, hours: int, seed: int) -> Plan:
    """Return a day with stories, outages and failures."""
    requests = scripted(fleet, hours, seed)
    requests += crowd(fleet, hours, seed, booked_gpu_s(requests))
    return Plan(requests, planned(fleet, hours, seed), silences(fleet, hours, seed))


def shown(fleet: Fleet, hours: int, seed: int) -> Plan:
    """Return eventful days of which the last has what the demo shows besides."""
    plan = eventful(fleet, hours, seed)
    declare(plan.requests)
    plan.requests += exhibits(hours, seed)
    return replace(plan, is_shown=True)


def on_kubernetes(fleet: Fleet, hours: int, seed: int) -> Plan:
    """Return what can happen of it with Kubernetes: runs are NAMESPACE/JOB, none is suspended."""
    plan = eventful(fleet, hours, seed)
    requests = [request for request in plan.requests if request.story != "suspended"]
    for request in requests:
        request.run_id = f"{request.account}/{request.run_id}"
    return replace(plan, requests=requests)
