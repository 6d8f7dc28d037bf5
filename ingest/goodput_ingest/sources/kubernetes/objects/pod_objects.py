"""Pods as objects of the API, as kube-state-metrics would show them, with the names of GPUs."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from goodput_ingest.formats.json_text.json_lines import EPOCH, FieldError
from goodput_ingest.sources.kubernetes.objects.claims import Allocated
from goodput_ingest.sources.kubernetes.objects.fields import (
    ApiObject,
    capped,
    gpus,
    listed,
    number,
    part,
    quantity,
    when,
    word,
)
from goodput_ingest.sources.kubernetes.pods import (
    ENDED,
    EQUAL_SHARE,
    GPU_CORES,
    GPUS_MAX,
    LABEL_PREFIX,
    TEXT_MAX_CHARS,
    Pod,
    printed,
)

# what HAMi and Volcano write: `GPU-uuid,NVIDIA,3000,30:;`, of devices and containers
VGPU_ANNOTATIONS: Final = ("hami.io/vgpu-devices-allocated", "volcano.sh/vgpu-ids-new")
# of MIG instances older HAMi names layout and place: `GPU-uuid[0-1],NVIDIA,20480,42:;`
VGPU: Final = re.compile(
    r"([\w.-]{1,100})(?:\[[\d-]{1,20}\])?,[^,:;]{0,100},\d{1,12},(\d{1,3})(?::|$)"
)
GPU_UUID: Final = re.compile(r"[\w.-]{1,100}")
MIG_ANNOTATION: Final = "hami.io/vgpu-mig-allocations"
MIG_PROFILE: Final = re.compile(r"[1-7]g\.\d{1,4}gb(?:\+[\w.]{1,10})?")
VGPUS_MAX_CHARS: Final = 100_000


def pod_of(found: ApiObject) -> Pod:
    """Return a pod; the GPUs of its claims are added later."""
    containers = listed(found.status, "containerStatuses")
    created, started = found.created, found.since("PodScheduled")
    pod = Pod(
        word(found.metadata, "uid") or f"{found.namespace}/{found.name}",
        found.namespace,
        found.name,
        _ms(created),
        max(_ms(at) for at in found.moments()),
        node=word(found.spec, "nodeName"),
        created_ms=_ms(created),
        start_ms=None if started is None else _ms(started),
        phase=word(found.status, "phase"),
        gpus=_gpus(found.spec),
        gpu_cores=_gpu_cores(found.spec),
        cpus=_cpus(found.spec),
        scheduler=word(found.spec, "schedulerName"),
        priority_class=word(found.spec, "priorityClassName"),
        labels={
            LABEL_PREFIX + printed(name): word(part(found.metadata, "labels"), name)
            for name in part(found.metadata, "labels")
        },
        restarts=capped(number(one, "restartCount") for one in containers),
    )
    if found.owners:
        pod.owner_kind, pod.owner_name = (word(found.owners[0], of) for of in ("kind", "name"))
    _add_ending(pod, found, [part(one, "state", "terminated") for one in containers])
    _add_shares(pod, found)
    if listed(found.spec, "resourceClaims") and pod.phase in ENDED:
        pod.is_counted = bool(pod.gpus)
    return pod


def with_claims(pods: Iterable[Pod], claimed: Mapping[str, list[Allocated]]) -> list[Pod]:
    """Return the pods that have GPUs, with those of their claims, oldest first.

    Those of an extended resource are in the requests of the pod, too: the claim's names count.
    """
    found: list[Pod] = []
    for pod in pods:
        if claims := claimed.get(pod.uid):
            counts = dict(pod.gpus) if not any(one.resource in pod.gpus for one in claims) else {}
            for one in claims:
                counts[one.resource] = counts.get(one.resource, 0) + 1
            found.append(_named(replace(pod, gpus=counts, is_counted=True), claims))
        elif pod.gpu_count or not pod.is_counted:
            found.append(pod)
    return sorted(found, key=lambda pod: (pod.submit_ms, pod.namespace, pod.name, pod.uid))


def _named(pod: Pod, claims: list[Allocated]) -> Pod:
    percents = [one.percent for one in claims]
    if pod.gpu_count > len(claims) or None in percents:
        return pod
    if min(percent for percent in percents if percent is not None) < 100:
        pod.shares = tuple((one.gpu_uuid or None, one.percent or 0) for one in claims)
    elif all(one.gpu_uuid for one in claims):
        pod.gpu_names = tuple((one.gpu_uuid, "") for one in claims)
    return pod


def _requests(spec: Mapping[str, Any], containers: str) -> list[dict[str, Any]]:
    return [part(one, "resources", "requests") for one in listed(spec, containers)]


def _gpus(spec: Mapping[str, Any]) -> dict[str, int]:
    """Return the GPUs of a pod: its containers together, or the largest of those before them."""
    found: Counter[str] = Counter()
    for one in _requests(spec, "containers"):
        found.update(gpus(one))
    for one in _requests(spec, "initContainers"):
        found |= Counter(gpus(one))
    if found.total() > GPUS_MAX:
        raise FieldError("the number of GPUs is out of range")
    return dict(+found)


def _gpu_cores(spec: Mapping[str, Any]) -> int:
    return capped(
        int(quantity(one, name) or 0)
        for one in _requests(spec, "containers")
        for name in one
        if GPU_CORES.fullmatch(printed(name[:TEXT_MAX_CHARS]))
    )


def _cpus(spec: Mapping[str, Any]) -> float | None:
    asked = [quantity(one, "cpu") for one in _requests(spec, "containers")]
    return sum(filter(None, asked)) if any(cpus is not None for cpus in asked) else None


def _add_ending(pod: Pod, found: ApiObject, ended: list[dict[str, Any]]) -> None:
    pod.reasons = [
        word(of, "reason")
        for of in (found.conditions.get("DisruptionTarget", {}), found.status, *ended)
    ]
    codes = [code for one in ended if isinstance(code := one.get("exitCode"), int)]
    pod.exit_code = next((code for code in codes if 0 < abs(code) < 2**31), 0 if codes else None)
    ends = [_ms(at) for one in ended if (at := when(one, "finishedAt")) is not None]
    gone = when(found.metadata, "deletionTimestamp") if found.is_deleted else None
    if pod.phase in ENDED or gone is not None:
        ready = found.since("Ready", "ContainersReady", status="False")
        ends += [_ms(at) for at in (gone, ready) if at is not None and not ends]
        pod.end_ms = max([*ends, pod.start_ms or 0]) if ends else pod.last_seen_ms
        pod.last_seen_ms = max(pod.last_seen_ms, pod.end_ms)


def _add_shares(pod: Pod, found: ApiObject) -> None:
    """Take the GPUs, and the parts of them, that HAMi or Volcano wrote down.

    Without a limit of its cores (0) a pod may use the whole GPU beside others.
    """
    annotations = part(found.metadata, "annotations")
    instances = _instances(word(annotations, MIG_ANNOTATION, VGPUS_MAX_CHARS))
    if len(instances) == pod.gpu_count:
        pod.gpu_names = tuple((gpu_uuid, instance) for gpu_uuid, instance, _ in instances)
        pod.mig_profiles = tuple(profile for *_, profile in instances)
        return
    for name in VGPU_ANNOTATIONS:
        devices = VGPU.findall(word(annotations, name, VGPUS_MAX_CHARS))
        shares = tuple((gpu_uuid, int(percent)) for gpu_uuid, percent in devices)
        if len(shares) != pod.gpu_count or any(percent > 100 for _, percent in shares):
            continue
        if all(percent in {0, 100} for _, percent in shares):
            pod.gpu_names = tuple((of, "" if percent else EQUAL_SHARE) for of, percent in shares)
        elif all(percent for _, percent in shares):
            pod.shares = shares


def _instances(text: str) -> list[tuple[str, str, str]]:
    """Return UUID, instance and profile of the MIG instances that HAMi made; [] unless all."""
    found = []
    try:
        for one in listed({"items": json.loads(text or "[]")}, "items"):
            uuid, profile = word(one, "gpuUUID"), word(one, "profile")
            instance = number(one, "gpuInstanceID")
            is_cut = GPU_UUID.fullmatch(uuid) and MIG_PROFILE.fullmatch(profile)
            if not is_cut or instance is None:
                return []
            found.append((uuid, str(instance), profile))
    except (FieldError, ValueError, RecursionError):
        return []
    return found


def _ms(at: datetime) -> int:
    return round((at - EPOCH).total_seconds() * 1000)
