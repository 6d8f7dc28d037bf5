"""Queues of Kueue and Volcano: what waits in them and why, what they may have and what they use.

A wait of a Kueue Workload lasts from its creation, or its eviction, until it is admitted; one of a
Volcano PodGroup until its pods are scheduled. Quotas of other resources than GPUs are left out.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any, Final

from goodput_ingest.formats.json_text.json_lines import FieldError
from goodput_ingest.sources.kubernetes.objects.fields import (
    MESSAGE_MAX_CHARS,
    NUMBER_MAX,
    ApiObject,
    capped,
    gpus,
    listed,
    number,
    part,
    when,
    why_of,
    word,
)
from goodput_ingest.sources.kubernetes.pods import gpu_resource

# Kueue said `Pending` of every wait before it had a reason each
OF_QUOTA, QUOTA_TEXT = "WaitingForQuota", "insufficient unused quota"
WAITING: Final = ("", "Pending", "Inqueue")  # phases of a PodGroup
Row = dict[str, Any]
Amount = tuple[str, str, str, Any]  # flavor, resource, column, quantity


def workload(found: ApiObject) -> Iterator[Row]:
    """Yield the present or last wait of a Kueue Workload that asks for GPUs."""
    asked: Counter[str] = Counter()
    for one in listed(found.spec, "podSets"):
        for container in listed(one, "template", "spec", "containers"):
            for resource, amount in gpus(part(container, "resources", "requests")).items():
                asked[resource] += amount * (number(one, "count") or 0)
    evicted = found.conditions.get("Evicted", {})
    since, until = found.created, found.since("Admitted", "Finished") or _deleted(found)
    if evicted:  # once it is admitted again, it does not say any more when it was evicted
        since = until or found.since("Evicted") or since
    why = found.conditions.get("QuotaReserved", {})
    if found.since("QuotaReserved") is not None:
        why = found.conditions.get("Admitted", {"reason": "AdmissionChecks"})
    reason, message = word(why, "reason"), word(why, "message", MESSAGE_MAX_CHARS)
    if found.spec.get("active") is False:
        reason = "Deactivated"
    elif reason == "Pending" and QUOTA_TEXT in message:
        reason = OF_QUOTA
    stats = listed(found.status, "schedulingStats", "evictions")
    yield from _entry(
        found,
        asked,
        (since, until),
        (reason, message),
        is_admitted=found.since("Admitted") is not None,
        queue=word(found.spec, "queueName") or None,
        cluster_queue=word(part(found.status, "admission"), "clusterQueue") or None,
        qos=word(found.spec, "priorityClassName")
        or word(part(found.spec, "priorityClassRef"), "name")
        or None,
        evictions=capped(number(one, "count") for one in stats) or int(bool(evicted)),
        eviction_reason=why_of(evicted) if evicted.get("status") == "True" else None,
    )


def pod_group(found: ApiObject) -> Iterator[Row]:
    """Yield the wait of a Volcano PodGroup that asks for GPUs."""
    asked = Counter(gpus(part(found.spec, "minResources")))
    phase, until = word(found.status, "phase"), _deleted(found)
    if phase not in WAITING:
        until = until or found.since("Scheduled") or max(found.moments())
    why = found.conditions.get("Unschedulable", {})
    reason, message = word(why, "reason") or phase, word(why, "message", MESSAGE_MAX_CHARS)
    queue = word(found.spec, "queue") or None
    yield from _entry(
        found,
        asked,
        (found.created, until),
        (reason, message),
        is_admitted=phase not in WAITING,
        queue=queue,
        cluster_queue=queue,
        qos=word(found.spec, "priorityClassName") or None,
        min_pods=number(found.spec, "minMember"),
        evictions=0,
    )


def _deleted(found: ApiObject) -> datetime | None:
    """Return when it has gone, if it has."""
    if not found.is_deleted:
        return None
    return when(found.metadata, "deletionTimestamp") or max(found.moments())


def _entry(
    found: ApiObject,
    asked: Counter[str],
    wait: tuple[datetime, datetime | None],
    why: tuple[str, str],
    **more: object,
) -> Iterator[Row]:
    """Yield a wait from when to when, with reason and message, where GPUs were asked for."""
    if not asked.total():
        return
    if asked.total() > NUMBER_MAX:
        raise FieldError("the number of GPUs is out of range")
    kinds = {gpu_resource(resource) for resource, amount in asked.items() if amount}
    since, until = wait
    reason, message = why if until is None else ("", "")
    yield more | {
        "uid": word(found.metadata, "uid") or f"{found.namespace}/{found.name}",
        "kind": found.kind,
        "job_id_raw": found.job_id,
        "account": found.namespace,
        "gpus": asked.total(),
        "gpu_type": (kinds.pop() or None) if len(kinds) == 1 else None,
        "since_at": since,
        "until_at": until,
        "reason": reason or None,
        "message": message or None,
    }


def cluster_queue(found: ApiObject) -> Iterator[Row]:
    """Yield quota and use of a Kueue ClusterQueue by flavor and GPU resource."""
    flavors = [
        f for group in listed(found.spec, "resourceGroups") for f in listed(group, "flavors")
    ]
    active = found.conditions.get("Active", {})
    rows = _quotas(
        found,
        found.name,
        word(found.spec, "cohortName") or word(found.spec, "cohort"),
        (
            *_amounts(flavors, nominalQuota="quota_gpus", borrowingLimit="limit_gpus"),
            *_amounts(
                listed(found.status, "flavorsReservation"),
                total="reserved_gpus",
                borrowed="borrowed_gpus",
            ),
            *_amounts(listed(found.status, "flavorsUsage"), total="used_gpus"),
        ),
    )
    for row in rows:
        if "limit_gpus" in row:
            row["limit_gpus"] += row.get("quota_gpus", 0)
        is_active = active.get("status") != "False"
        yield row | {"state": None if is_active else word(active, "reason") or "Inactive"}


def local_queue(found: ApiObject) -> Iterator[Row]:
    """Yield of which ClusterQueue a Kueue LocalQueue is."""
    yield {
        "kind": found.kind,
        "queue": f"{found.namespace}/{found.name}",
        "parent": word(found.spec, "clusterQueue") or None,
        "flavor": "",
        "resource": "",
    }


def volcano_queue(found: ApiObject) -> Iterator[Row]:
    """Yield what a Volcano queue deserves, may have and was allocated, by GPU resource."""
    columns = (
        ("quota_gpus", part(found.spec, "deserved")),
        ("limit_gpus", part(found.spec, "capability")),
        ("used_gpus", part(found.status, "allocated")),
    )
    amounts = [("", name, column, of[name]) for column, of in columns for name in of]
    state = word(found.status, "state")
    for row in _quotas(found, found.name, word(found.spec, "parent"), amounts):
        yield row | {"state": None if state in ("", "Open") else state}


def _amounts(flavors: Iterable[Row], **columns: str) -> Iterator[Amount]:
    """Yield the amounts of the resources of flavors. columns: of a row, by the field's name."""
    for flavor in flavors:
        for one in listed(flavor, "resources"):
            for name, column in columns.items():
                if one.get(name) is not None:
                    yield word(flavor, "name"), word(one, "name"), column, one[name]


def _quotas(found: ApiObject, queue: str, parent: str, amounts: Iterable[Amount]) -> Iterator[Row]:
    rows: dict[tuple[str, str], Row] = defaultdict(dict)
    for flavor, name, column, amount in amounts:
        for resource, of_gpus in gpus({name: amount}).items():
            rows[flavor, resource][column] = of_gpus
    of = {"kind": found.kind, "queue": queue, "parent": parent or None}
    for (flavor, resource), row in rows.items():
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
