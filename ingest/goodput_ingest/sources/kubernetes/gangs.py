"""Groups pods into job runs: gangs by the labels of their controller, split at their starts."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from goodput_ingest.sources.kubernetes.observation import Observation, label
from goodput_ingest.sources.kubernetes.pods import Pod

# kind, label with the gang's name, labels that make several gangs or attempts of one name
GANG_LABELS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("JobSet", "jobset.sigs.k8s.io/jobset-name", ("jobset.sigs.k8s.io/restart-attempt",)),
    ("Volcano job", "volcano.sh/job-name", ("volcano.sh/job-retry-count",)),
    ("LeaderWorkerSet", "leaderworkerset.sigs.k8s.io/name",
     ("leaderworkerset.sigs.k8s.io/group-index",)),
    ("training job", "training.kubeflow.org/job-name", ()),
    ("RayCluster", "ray.io/cluster", ()),
    ("pod group", "kueue.x-k8s.io/pod-group-name", ()),
)  # fmt: skip
QUEUE_LABELS = (
    "kueue.x-k8s.io/queue-name",
    "kueue.x-k8s.io/local-queue-name",
    "volcano.sh/queue-name",
)
NO_PARENTS = ("", "<none>", "CronJob")
Job = tuple[str, str]  # namespace and name; of what made it: kind and name
# pods of these are replicas that work each for itself, or have no owner at all
REPLICATED = (
    "",
    "ReplicaSet",
    "StatefulSet",
    "DaemonSet",
    "ReplicationController",
    "Node",
    "<none>",
)


@dataclass(frozen=True)
class Gang:
    """Pods that make one job run: one start of a job.

    kind: what made them; name: `<namespace>/<name>`; jobs: names of the Jobs between.
    """

    kind: str
    name: str
    jobs: frozenset[tuple[str, str]]
    pods: tuple[Pod, ...]


def gangs(parents: Mapping[Job, Job], pods: Iterable[Pod]) -> list[Gang]:
    """Return the pods in gangs, each gang cut into its starts.

    parents: kind and name of what made a Job, by its namespace and name. A pod that begins after
    one of the gang has ended belongs to the next start: a restart, or the next completions of a
    Job that works through a list.
    """
    groups: dict[tuple[str, str, tuple[str, ...]], list[Pod]] = defaultdict(list)
    for pod in pods:
        groups[_key(pod, parents)].append(pod)
    found: list[Gang] = []
    for (kind, name, _), members in groups.items():
        for start in _starts(members):
            jobs = frozenset(
                (pod.namespace, pod.owner_name) for pod in start if pod.owner_kind == "Job"
            )
            found.append(Gang(kind, name, jobs, tuple(start)))
    return found


def queue(pods: Iterable[Pod]) -> str | None:
    """Return the queue that the pods went through, else the scheduler that placed them."""
    members = list(pods)
    queues = (pod.labelled(*QUEUE_LABELS) or pod.scheduler for pod in members)
    return next((name for name in queues if name), None)


def _key(pod: Pod, parents: Mapping[Job, Job]) -> tuple[str, str, tuple[str, ...]]:
    for kind, name_label, parts in GANG_LABELS:
        if name := pod.labelled(name_label):
            return kind, f"{pod.namespace}/{name}", tuple(pod.labelled(part) for part in parts)
    if pod.owner_kind == "Job":
        kind, name = parents.get((pod.namespace, pod.owner_name), ("Job", pod.owner_name))
        return kind, f"{pod.namespace}/{name}", ()
    if pod.owner_kind not in REPLICATED:
        return pod.owner_kind, f"{pod.namespace}/{pod.owner_name}", ()
    return "Pod", f"{pod.namespace}/{pod.name}", (pod.uid,)


def parents_of_jobs(seen: Observation) -> dict[Job, Job]:
    """Return kind and name of what made each Job, where something did (a JobSet, an MPIJob)."""
    found: dict[Job, Job] = {}
    for one in seen.named("kube_job_owner"):
        kind, name = one.labels.get("owner_kind", ""), one.labels.get("owner_name", "")
        if kind not in NO_PARENTS and name:
            found[label(one, "namespace"), one.labels.get("job_name", "")] = kind, name
    return found


def _starts(members: list[Pod]) -> list[list[Pod]]:
    """Cut a gang's pods into its starts; those that wait still belong to the last one."""
    held = sorted((p for p in members if p.start_ms is not None), key=lambda p: p.start_ms or 0)
    waiting = [pod for pod in members if pod.start_ms is None]
    found: list[list[Pod]] = []
    first_end_ms: float = 0
    for pod in held:
        start_ms = pod.start_ms or 0
        if not found or start_ms >= first_end_ms:
            found.append([])
            first_end_ms = float("inf")
        found[-1].append(pod)
        if pod.end_ms is not None:
            first_end_ms = min(first_end_ms, pod.end_ms)
    if waiting and (not found or min(p.submit_ms for p in waiting) >= first_end_ms):
        found.append([])
    if waiting:
        found[-1] += waiting
    return found
