"""Pods with GPU requests: their times, owners and outcomes."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from goodput_ingest.formats.json_text.json_lines import EPOCH_S_MAX, printable
from goodput_ingest.prometheus_api.answer import Series
from goodput_ingest.sources.kubernetes.observation import Observation, label

TEXT_MAX_CHARS = 253  # the longest name Kubernetes allows
GPUS_MAX = 1024
LABEL_PREFIX = "label_"
# kube-state-metrics prints a resource's dots, slashes and dashes as underscores
GPU_RESOURCE = re.compile(
    r"(?:nvidia|amd)_com_gpu(?P<shared>_shared)?|volcano_sh_(?P<virtual>vgpu)_number"
)
MIG_RESOURCE = re.compile(
    r"nvidia_com_mig_(?P<slices>\d)g_(?P<memory>\d+gb)(?:_(?P<more>\w+?))??(?:_shared)?"
)
GPU_CORES = re.compile(  # of each GPU, percent
    r"(?:nvidia|amd)_com_gpucores|volcano_sh_vgpu_cores"
)
ENDED = ("Succeeded", "Failed")
EQUAL_SHARE = "share"


@dataclass
class Pod:
    """A pod, known by its uid: names repeat.

    start_ms: bound to its node, from which on it has the GPUs; null: pending.
    end_ms: null: still there.
    gpus: number by resource, as `nvidia_com_gpu`; a MIG instance or a share counts as one.
    gpu_cores: percent of a GPU's cores that HAMi or Volcano let it have; 0: no limit.
    gpu_names, shares: its GPUs by UUID and instance, and percentages of them (UUID null: not said
    of which), where a ResourceClaim or an annotation says. The instance EQUAL_SHARE is of a GPU
    that other pods may have too. mig_profiles: of the instances.
    is_counted: false: it has ended, and so have the claims that said which GPUs it had.
    cpus: null: it asked for none.
    """

    uid: str
    namespace: str
    name: str
    first_seen_ms: int
    last_seen_ms: int
    node: str = ""
    created_ms: int | None = None
    start_ms: int | None = None
    end_ms: int | None = None
    phase: str = ""
    gpus: dict[str, int] = field(default_factory=dict)
    gpu_cores: int = 0
    gpu_names: tuple[tuple[str, str], ...] = ()
    mig_profiles: tuple[str, ...] = ()
    shares: tuple[tuple[str | None, int], ...] = ()
    is_counted: bool = True
    cpus: float | None = None
    owner_kind: str = ""
    owner_name: str = ""
    scheduler: str = ""
    priority_class: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    exit_code: int | None = None
    restarts: int = 0

    @property
    def submit_ms(self) -> int:
        """Return when it was made; where nobody says, when it was first seen."""
        return self.first_seen_ms if self.created_ms is None else self.created_ms

    @property
    def gpu_count(self) -> int:
        """Return the number of requested GPUs, instances or shares."""
        return sum(self.gpus.values())

    @property
    def parts(self) -> tuple[tuple[str | None, int], ...]:
        """Return name and percentage of its GPUs, where it has no more than a part of one."""
        is_part = self.gpu_count == 1 and 0 < self.gpu_cores < 100
        return self.shares or (((None, self.gpu_cores),) if is_part else ())

    def labelled(self, *names: str) -> str:
        """Return the first of these Kubernetes labels that it carries, else ''."""
        found = (self.labels.get(LABEL_PREFIX + printed(name), "") for name in names)
        return next((value for value in found if value), "")


def pods(seen: Observation) -> list[Pod]:
    """Return the pods that requested GPUs, oldest first.

    An observation that continues an earlier one skips pods without a reported end that had ended
    before it: the earlier one has them.
    """
    found = _asked(seen)
    _add_moments(seen, found)
    _add_words(seen, found)
    kept = [pod for pod in found.values() if _add_end(seen, pod)]
    return sorted(kept, key=lambda pod: (pod.submit_ms, pod.namespace, pod.name, pod.uid))


def gpu_resource(resource: str) -> str | None:
    """Return what kind of GPU a resource is: '' a whole one, a MIG profile, 'shared'; or None."""
    if plain := GPU_RESOURCE.fullmatch(resource):
        return "shared" if plain["shared"] or plain["virtual"] else ""
    if mig := MIG_RESOURCE.fullmatch(resource):
        more = f"+{mig['more']}" if mig["more"] else ""
        return f"{mig['slices']}g.{mig['memory']}{more}"
    return None


def _asked(seen: Observation) -> dict[str, Pod]:
    found: dict[str, Pod] = {}
    plain = list(_by_pod(seen.named("kube_pod_container_resource_requests"), found))
    initial = list(_by_pod(seen.named("kube_pod_init_container_resource_requests"), found))
    before: dict[tuple[str, str], int] = {}
    for pod, one in plain:
        resource = one.labels.get("resource", "")
        if resource == "cpu":
            pod.cpus = (pod.cpus or 0) + max(float(one.values[-1]), 0)
        elif GPU_CORES.fullmatch(resource):
            pod.gpu_cores += _whole(one)
        elif gpu_resource(resource) is not None:
            pod.gpus[resource] = pod.gpus.get(resource, 0) + _whole(one)
    for pod, one in initial:
        resource = one.labels.get("resource", "")
        if gpu_resource(resource) is not None:
            # init containers run one after the other, before the others: the larger need counts
            key = pod.uid, resource
            before[key] = max(before.get(key, 0), _whole(one))
            pod.gpus[resource] = max(pod.gpus.get(resource, 0), before[key])
    return {uid: pod for uid, pod in found.items() if pod.gpu_count > 0}


def _by_pod(series: Iterable[Series], found: dict[str, Pod]) -> Iterable[tuple[Pod, Series]]:
    """Yield the series with their pods, which are made where they are not known yet."""
    for one in series:
        uid = label(one, "uid")
        if not uid:
            continue
        first, last = int(one.times_ms[0]), int(one.times_ms[-1])
        if uid not in found:
            found[uid] = Pod(
                printable(uid, TEXT_MAX_CHARS),
                printable(label(one, "namespace"), TEXT_MAX_CHARS),
                printable(label(one, "pod"), TEXT_MAX_CHARS),
                first,
                last,
            )
        pod = found[uid]
        pod.first_seen_ms = min(pod.first_seen_ms, first)
        pod.last_seen_ms = max(pod.last_seen_ms, last)
        pod.node = pod.node or printable(label(one, "node"), TEXT_MAX_CHARS)
        yield pod, one


def _known(seen: Observation, name: str, found: dict[str, Pod]) -> Iterable[tuple[Pod, Series]]:
    return _by_pod((one for one in seen.named(name) if label(one, "uid") in found), found)


def _add_moments(seen: Observation, found: dict[str, Pod]) -> None:
    for pod, one in _known(seen, "kube_pod_created", found):
        pod.created_ms = _moment_ms(one)
    # bound to a node; the kubelet's start is later, and time with the image not there yet is held
    for name in ("kube_pod_start_time", "kube_pod_status_scheduled_time"):
        for pod, one in _known(seen, name, found):
            pod.start_ms = _moment_ms(one) or pod.start_ms
    for pod, one in _known(seen, "kube_pod_completion_time", found):
        pod.end_ms = _moment_ms(one)


def _add_words(seen: Observation, found: dict[str, Pod]) -> None:
    for pod, one in _known(seen, "kube_pod_info", found):
        pod.priority_class = printable(one.labels.get("priority_class", ""), TEXT_MAX_CHARS)
        if not pod.owner_kind:
            pod.owner_kind = _name(one, "created_by_kind")
            pod.owner_name = _name(one, "created_by_name")
    for pod, one in _known(seen, "kube_pod_owner", found):
        pod.owner_kind, pod.owner_name = _name(one, "owner_kind"), _name(one, "owner_name")
    for pod, one in _known(seen, "kube_pod_scheduler", found):
        pod.scheduler = _name(one, "name")
    for pod, one in _known(seen, "kube_pod_labels", found):
        pod.labels |= {
            name: printable(value, TEXT_MAX_CHARS)
            for name, value in one.labels.items()
            if name.startswith(LABEL_PREFIX)
        }
    for name in (
        "kube_pod_status_disruption_reason",
        "kube_pod_status_reason",
        "kube_pod_container_status_terminated_reason",
    ):
        for pod, one in _known(seen, name, found):
            if one.values[-1] != 0:
                pod.reasons.append(_name(one, "reason"))
    for pod, one in _known(seen, "kube_pod_container_status_last_terminated_exitcode", found):
        if pod.exit_code in (None, 0):
            pod.exit_code = int(one.values[-1]) if abs(one.values[-1]) < 2**31 else None
    for pod, one in _known(seen, "kube_pod_container_status_restarts_total", found):
        pod.restarts += _whole(one, 2**31 - 1)


def _add_end(seen: Observation, pod: Pod) -> bool:
    """Find phase and end of a pod; False where it had ended before and nobody says when."""
    terminal_ms: int | None = None
    for other, one in _known(seen, "kube_pod_status_phase", {pod.uid: pod}):
        holds = one.values != 0
        if holds[-1]:
            other.phase = _name(one, "phase")
            if other.phase in ENDED:
                terminal_ms = int(one.times_ms[holds.argmax()])
    if pod.end_ms is not None and pod.phase not in ENDED and not seen.has_ended(pod.last_seen_ms):
        pod.end_ms = None  # one container is done, others go on
    if pod.end_ms is None and terminal_ms is not None:
        if seen.is_continued and terminal_ms == pod.first_seen_ms:
            return False
        pod.end_ms = terminal_ms
    if pod.end_ms is None and pod.start_ms is not None and seen.has_ended(pod.last_seen_ms):
        pod.end_ms = pod.last_seen_ms
    if pod.start_ms is not None and pod.end_ms is not None:
        pod.end_ms = max(pod.end_ms, pod.start_ms)
    return True


def _moment_ms(one: Series) -> int | None:
    seconds = float(one.values[-1])
    return round(seconds * 1000) if 0 < seconds < EPOCH_S_MAX else None


def _whole(one: Series, most: int = GPUS_MAX) -> int:
    value = float(one.values[-1])
    return int(value) if 0 <= value <= most else 0


def _name(one: Series, of: str) -> str:
    return printable(one.labels.get(of, ""), TEXT_MAX_CHARS)


def printed(name: str) -> str:
    """Return the name of a resource or label as kube-state-metrics prints it."""
    return re.sub(r"[^a-zA-Z0-9_]", "_", name)
