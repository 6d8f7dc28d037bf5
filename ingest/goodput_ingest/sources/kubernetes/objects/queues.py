"""Queues of Kueue and Volcano: what waits in them and why, what they may have and what they use.

A wait of a Kueue Workload lasts from its creation, or its eviction, until it is admitted; one of a
Volcano PodGroup until its pods are scheduled. Quotas of other resources than GPUs are left out.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from goodput_ingest.sources.kubernetes.objects.fields import (
    MESSAGE_MAX_CHARS,
    ApiObject,
    gpus,
    listed,
    number,
    part,
    when,
    word,
)
from goodput_ingest.sources.kubernetes.pods import gpu_resource

# Kueue said `Pending` of every wait before it had a reason each
OF_QUOTA, QUOTA_TEXT = "WaitingForQuota", "insufficient unused quota"
WAITING: Final = ("", "Pending", "Inqueue")  # phases of a PodGroup
Row = dict[str, Any]


def workload(found: ApiObject) -> Iterator[Row]:
    """Yield the present or last wait of a Kueue Workload that asks for GPUs."""
    sets = listed(found.spec, "podSets")
    asked: Counter[str] = Counter()
    for one in sets:
        for container in listed(one, "template", "spec", "containers"):
            for resource, amount in gpus(part(container, "resources", "requests")).items():
                asked[resource] += amount * (number(one, "count") or 0)
    if not sum(asked.values()):
        return
    evicted = found.conditions.get("Evicted", {})
    since = found.created if not evicted else _eviction(found)
    until = found.since("Admitted") or found.since("Finished") or _deleted(found)
    # of a later admission the eviction before it is not said any more: it ends that wait
    is_ended = until is not None
    since = until if until is not None and (since is None or evicted) else since
    waits = found.conditions.get("QuotaReserved", {})
    if found.since("QuotaReserved") is not None:
        waits = found.conditions.get("Admitted", {"reason": "AdmissionChecks"})
    reason, message = word(waits, "reason"), word(waits, "message", MESSAGE_MAX_CHARS)
    if reason == "Pending" and QUOTA_TEXT in message:
        reason = OF_QUOTA
    stats = listed(found.status, "schedulingStats", "evictions")
    yield _entry(found, asked) | {
        "since_at": since or found.created,
        "until_at": until,
        "is_admitted": found.since("Admitted") is not None,
        "queue": word(found.spec, "queueName") or None,
        "cluster_queue": word(part(found.status, "admission"), "clusterQueue") or None,
        "qos": word(found.spec, "priorityClassName")
        or word(part(found.spec, "priorityClassRef"), "name")
        or None,
        "min_pods": sum(number(one, "minCount") or number(one, "count") or 0 for one in sets),
        "reason": None if is_ended else _reason(found, reason),
        "message": None if is_ended else message or None,
        "evictions": sum(number(one, "count") or 0 for one in stats) or int(bool(evicted)),
        "eviction_reason": word(evicted, "reason") if evicted.get("status") == "True" else None,
    }


def _reason(found: ApiObject, reason: str) -> str | None:
    return "Deactivated" if found.spec.get("active") is False else reason or None


def _eviction(found: ApiObject) -> datetime | None:
    """Return since when it waits again."""
    return found.since("Evicted") or found.since("QuotaReserved", status="False")


def _deleted(found: ApiObject) -> datetime | None:
    """Return when it has gone, if it has."""
    if not found.is_deleted:
        return None
    return when(found.metadata, "deletionTimestamp") or max(found.moments())


def pod_group(found: ApiObject) -> Iterator[Row]:
    """Yield the wait of a Volcano PodGroup that asks for GPUs."""
    asked = Counter(gpus(part(found.spec, "minResources")))
    if not sum(asked.values()):
        return
    phase = word(found.status, "phase")
    until = _deleted(found)
    if phase not in WAITING:
        until = until or found.since("Scheduled") or max(found.moments())
    condition = found.conditions.get("Unschedulable", {})
    yield _entry(found, asked) | {
        "since_at": found.created,
        "until_at": until,
        "is_admitted": phase not in WAITING,
        "queue": word(found.spec, "queue") or None,
        "cluster_queue": word(found.spec, "queue") or None,
        "qos": word(found.spec, "priorityClassName") or None,
        "min_pods": number(found.spec, "minMember"),
        "reason": (word(condition, "reason") or phase or None) if until is None else None,
        "message": (word(condition, "message", MESSAGE_MAX_CHARS) or None)
        if until is None
        else None,
        "evictions": 0,
    }


def _entry(found: ApiObject, asked: Counter[str]) -> Row:
    kinds = {gpu_resource(resource) for resource, amount in asked.items() if amount}
    return {
        "uid": word(found.metadata, "uid") or f"{found.namespace}/{found.name}",
        "kind": found.kind,
        "job_id": found.job_id,
        "account": found.namespace,
        "gpus": sum(asked.values()),
        "gpu_type": (kinds.pop() or None) if len(kinds) == 1 else None,
    }


def cluster_queue(found: ApiObject) -> Iterator[Row]:
    """Yield quota and use of a Kueue ClusterQueue by flavor and GPU resource."""
    quotas: dict[tuple[str, str], Row] = defaultdict(dict)
    for group in listed(found.spec, "resourceGroups"):
        for flavor in listed(group, "flavors"):
            for one in listed(flavor, "resources"):
                for resource, quota in _gpus_of(one, "nominalQuota"):
                    more = dict(_gpus_of(one, "borrowingLimit")).get(resource)
                    quotas[word(flavor, "name"), resource] = {
                        "quota_gpus": quota,
                        "limit_gpus": None if more is None else quota + more,
                    }
    for name, column in (("flavorsReservation", "reserved_gpus"), ("flavorsUsage", "used_gpus")):
        for key, one, resource in _usage(listed(found.status, name)):
            quotas[key] |= dict.fromkeys([column], dict(_gpus_of(one, "total")).get(resource))
            quotas[key] |= {"borrowed_gpus": dict(_gpus_of(one, "borrowed")).get(resource)}
    active = found.conditions.get("Active", {})
    yield from _quotas(
        found.kind,
        found.name,
        word(found.spec, "cohortName") or word(found.spec, "cohort"),
        quotas,
        pending_jobs=number(found.status, "pendingWorkloads"),
        state=(word(active, "reason") or "Inactive") if active.get("status") == "False" else None,
    )


def local_queue(found: ApiObject) -> Iterator[Row]:
    """Yield of which ClusterQueue a Kueue LocalQueue is, and what its workloads use."""
    quotas: dict[tuple[str, str], Row] = defaultdict(dict)
    for names, column in (
        (("flavorsReservation",), "reserved_gpus"),
        (("flavorsUsage", "flavorUsage"), "used_gpus"),
    ):
        flavors = [one for name in names for one in listed(found.status, name)]
        for key, one, resource in _usage(flavors):
            quotas[key][column] = dict(_gpus_of(one, "total")).get(resource)
    yield from _quotas(
        found.kind,
        f"{found.namespace}/{found.name}",
        word(found.spec, "clusterQueue"),
        quotas or {("", ""): {}},
        pending_jobs=number(found.status, "pendingWorkloads"),
    )


def volcano_queue(found: ApiObject) -> Iterator[Row]:
    """Yield what a Volcano queue deserves, may have and was allocated, by GPU resource."""
    quotas: dict[tuple[str, str], Row] = defaultdict(dict)
    for column, amounts in (
        ("quota_gpus", part(found.spec, "deserved")),
        ("limit_gpus", part(found.spec, "capability")),
        ("used_gpus", part(found.status, "allocated")),
    ):
        for resource, amount in gpus(amounts).items():
            quotas["", resource][column] = amount
    state = word(found.status, "state")
    groups = [number(found.status, name) for name in ("pending", "inqueue")]
    yield from _quotas(
        found.kind,
        found.name,
        word(found.spec, "parent"),
        quotas,
        pending_jobs=sum(filter(None, groups)) if any(n is not None for n in groups) else None,
        state=state if state not in ("", "Open") else None,
    )


def _gpus_of(one: Mapping[str, Any], name: str) -> Iterator[tuple[str, int]]:
    """Yield the GPU resource of a quota or usage and its amount, where it has one."""
    if one.get(name) is not None:
        yield from gpus({word(one, "name"): one[name]}).items()


def _usage(
    flavors: list[dict[str, Any]],
) -> Iterator[tuple[tuple[str, str], dict[str, Any], str]]:
    for flavor in flavors:
        for one in listed(flavor, "resources"):
            for resource, _ in _gpus_of(one, "total"):
                yield (word(flavor, "name"), resource), one, resource


def _quotas(
    kind: str, queue: str, parent: str, quotas: Mapping[tuple[str, str], Row], **more: object
) -> Iterator[Row]:
    of = {"kind": kind, "queue": queue, "parent": parent or None, **more}
    for (flavor, resource), row in quotas.items():
        yield of | {"flavor": flavor, "resource": resource} | row


ENTRIES: Final[dict[tuple[str, str], Callable[[ApiObject], Iterator[Row]]]] = {
    ("kueue.x-k8s.io", "Workload"): workload,
    ("scheduling.volcano.sh", "PodGroup"): pod_group,
}
QUOTAS: Final[dict[tuple[str, str], Callable[[ApiObject], Iterator[Row]]]] = {
    ("kueue.x-k8s.io", "ClusterQueue"): cluster_queue,
    ("kueue.x-k8s.io", "LocalQueue"): local_queue,
    ("scheduling.volcano.sh", "Queue"): volcano_queue,
}
