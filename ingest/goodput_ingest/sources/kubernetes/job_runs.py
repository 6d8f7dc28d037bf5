"""Turns gangs of pods into rows of raw.job_runs and raw.holds."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import polars as pl

from goodput_ingest.formats import raw_tables
from goodput_ingest.formats.json_text.json_lines import EPOCH
from goodput_ingest.formats.parsed import INSTANT, Parsed, frame
from goodput_ingest.prometheus_api.answer import Series
from goodput_ingest.prometheus_api.gpu_series import normalised
from goodput_ingest.sources.kubernetes.gangs import Gang, Job, gangs, parents_of_jobs, queue
from goodput_ingest.sources.kubernetes.memory import PodMemory
from goodput_ingest.sources.kubernetes.observation import Observation
from goodput_ingest.sources.kubernetes.pods import Pod, gpu_resource, pods


class GpuNames:
    """GPUs by pod and time: labels may linger half an hour after a pod has gone."""

    def __init__(self, series: Sequence[Series]) -> None:
        """Take the series of GPU exporters."""
        self._by_pod: dict[str, dict[tuple[str, str], tuple[int, int]]] = defaultdict(dict)
        for one, of in zip(series, normalised(series), strict=True):
            if of["pod"] and of["gpu_uuid"]:
                gpu = of["gpu_uuid"], of["gpu_instance"]
                first, last = int(one.times_ms[0]), int(one.times_ms[-1])
                seen = self._by_pod[of["pod"]].get(gpu, (first, last))
                self._by_pod[of["pod"]][gpu] = min(seen[0], first), max(seen[1], last)

    def of(self, pod: Pod) -> list[tuple[str, str]]:
        """Return (UUID, instance) of the pod's GPUs, seen while it ran; none unless all are named.

        Two pods of one name (a StatefulSet's, one after the other) differ in their time.
        """
        start_ms = pod.start_ms or 0
        end_ms = pod.end_ms if pod.end_ms is not None else float("inf")
        found = sorted(
            gpu
            for gpu, (first, last) in self._by_pod.get(f"{pod.namespace}/{pod.name}", {}).items()
            if last >= start_ms and first < end_ms
        )
        return found if len(found) == pod.gpu_count else []


METHOD = "pod"
CPUS_MAX = 2**31 - 1
COMPLETED, FAILED, RUNNING, PENDING, CANCELLED = (
    *("COMPLETED", "FAILED", "RUNNING", "PENDING", "CANCELLED"),
)
# Kubernetes' reasons as states of the ledger; the first that matches is used
STATES: dict[str, str] = {
    "OOMKilled": "OUT_OF_MEMORY",
    "DeadlineExceeded": "TIMEOUT",
    "PreemptionByScheduler": "PREEMPTED",
    "PreemptionByKubeScheduler": "PREEMPTED",
    "Preempting": "PREEMPTED",
    "EvictionByEvictionAPI": "PREEMPTED",
    "NodeLost": "NODE_FAIL",
    "NodeAffinity": "NODE_FAIL",
    "Shutdown": "NODE_FAIL",
    "NodeShutdown": "NODE_FAIL",
    "DeletionByTaintManager": "NODE_FAIL",
    "UnexpectedAdmissionError": "NODE_FAIL",
}
NOTHING_SPECIAL = ("Completed", "Error")

JOB_RUNS: dict[str, Any] = {
    "cluster": pl.String, "job_id": pl.String, "job_id_raw": pl.String, "submit_at": INSTANT,
    "eligible_at": INSTANT, "start_at": INSTANT, "end_at": INSTANT, "state": pl.String,
    "exit_code": pl.String, "reason": pl.String, "job_name": pl.String, "account": pl.String,
    "partition": pl.String, "qos": pl.String, "nodes": pl.List(pl.String), "gpus": pl.Int32,
    "gpu_type": pl.String, "gpus_requested": pl.Int32, "gpu_type_requested": pl.String,
    "cpus": pl.Int32, "cpus_requested": pl.Int32, "elapsed_s": pl.Int64, "restarts": pl.Int32,
    "comment": pl.String, "alloc_tres": pl.String, "req_tres": pl.String, "observed_at": INSTANT,
}  # fmt: skip
HOLDS = raw_tables.columns("holds", "source")
PARTS = raw_tables.columns("gpu_parts", "source")
Names = Callable[[Pod], list[tuple[str, str]]]  # UUID and instance of a pod's GPUs; [] unless all


def parsed_job_runs(seen: Observation, cluster: str, memory: PodMemory) -> list[Parsed]:
    """Return the job runs and holds of all pods that requested GPUs and have changed.

    memory: the pods of before; it is brought up to date. A share of a GPU (time-slicing) counts as
    one, as a MIG instance does; a percentage of its cores is a part.
    """
    known, news = memory.with_earlier(seen.has_ended, pods(seen))
    changed: list[Gang] = []
    for gang in gangs(parents_of_jobs(seen), known):
        if not news.isdisjoint(pod.uid for pod in gang.pods):
            changed.append(gang)
        elif all(pod.end_ms is not None for pod in gang.pods):
            memory.forget(gang.pods)
    observed = _at(int(seen.moments_ms[-1])) if len(seen.moments_ms) else None
    names = GpuNames(seen.gpu_series)
    return rows_of_gangs(changed, _ends_of_jobs(seen), names.of, cluster, observed)


def rows_of_gangs(
    found: Iterable[Gang],
    jobs: Mapping[Job, Job],
    names: Names,
    cluster: str,
    observed: datetime | None,
) -> list[Parsed]:
    """Return job runs, holds and parts of GPUs of gangs.

    jobs: state and reason of Jobs that have ended; observed: when the pods were seen, naive UTC.
    """
    runs: list[dict[str, Any]] = []
    holds: list[dict[str, Any]] = []
    parts: list[dict[str, Any]] = []
    for gang in found:
        run = _job_run(gang, cluster, jobs) | {"observed_at": observed}
        runs.append(run)
        if of_gpus := _parts(gang.pods, run):
            run["gpus"] = 0
            parts += of_gpus
        else:
            holds += _holds(gang.pods, run, names)
    return [
        Parsed("job_runs", frame(runs, JOB_RUNS)),
        Parsed("holds", frame(holds, HOLDS)),
        Parsed("gpu_parts", frame(parts, PARTS)),
    ]


def _job_run(gang: Gang, cluster: str, jobs: Mapping[Job, Job]) -> dict[str, Any]:
    held = [pod for pod in gang.pods if pod.start_ms is not None]
    started = min((pod.start_ms for pod in held if pod.start_ms is not None), default=None)
    ends = [pod.end_ms for pod in held]
    ended = max((end for end in ends if end is not None), default=None)
    if len(held) < len(gang.pods) or None in ends:
        ended = None
    state, reason = _ending(gang, jobs, has_ended=ended is not None, has_started=bool(held))
    submit = min(pod.submit_ms for pod in gang.pods)
    codes = [pod.exit_code for pod in gang.pods if pod.exit_code is not None]
    namespace, _, name = gang.name.partition("/")
    return {
        "cluster": cluster,
        "job_id": gang.name,
        "job_id_raw": gang.name,
        "submit_at": _at(submit),
        "eligible_at": _at(submit),
        "start_at": _at(started),
        "end_at": _at(ended),
        "state": state,
        "exit_code": None if not codes else str(max(codes, key=abs)),
        "reason": reason,
        "job_name": name,
        "account": namespace,
        "partition": queue(gang.pods),
        "qos": next((pod.priority_class for pod in gang.pods if pod.priority_class), None),
        "nodes": sorted({pod.node for pod in held if pod.node}),
        "gpus": _gpus(held),
        "gpu_type": _gpu_type(held),
        "gpus_requested": _gpus(gang.pods),
        "gpu_type_requested": _gpu_type(gang.pods),
        "cpus": _cpus(held),
        "cpus_requested": _cpus(gang.pods),
        "elapsed_s": None if started is None or ended is None else (ended - started) // 1000,
        "restarts": sum(pod.restarts for pod in gang.pods),
        "comment": gang.kind,
        "alloc_tres": _resources(held),
        "req_tres": _resources(gang.pods),
    }


def _ending(
    gang: Gang,
    jobs: Mapping[Job, Job],
    *,
    has_ended: bool,
    has_started: bool,
) -> tuple[str, str | None]:
    """Return the ledger's state and Kubernetes' reason."""
    if not has_started:
        return PENDING, None
    if not has_ended:
        return RUNNING, None
    reasons = [reason for pod in gang.pods for reason in pod.reasons if reason]
    of_jobs = [jobs[job] for job in gang.jobs if job in jobs]
    reasons += [reason for _, reason in of_jobs if reason]
    special = next((reason for reason in reasons if reason in STATES), None)
    is_failed = any(pod.phase == "Failed" for pod in gang.pods)
    is_failed = is_failed or any(state == FAILED for state, _ in of_jobs)
    is_done = any(pod.phase == "Succeeded" for pod in gang.pods)
    is_done = is_done or any(state == COMPLETED for state, _ in of_jobs)
    if is_done and not is_failed:
        return COMPLETED, None
    if special is not None:
        return STATES[special], special
    if is_failed:
        return FAILED, next((r for r in reasons if r not in NOTHING_SPECIAL), None)
    return CANCELLED, None  # it was running, and then somebody took it away


def _ends_of_jobs(seen: Observation) -> dict[Job, Job]:
    """Return how each Job ended, by the Job itself: its pods may be gone by then."""
    found: dict[Job, Job] = {}
    for name, state in (("kube_job_complete", COMPLETED), ("kube_job_failed", FAILED)):
        for one in seen.now(name):
            if one.labels.get("condition") == "true":
                namespace = one.labels.get("exported_namespace") or one.labels.get("namespace", "")
                job = namespace, one.labels.get("job_name", "")
                found[job] = state, one.labels.get("reason", "")
    return found


def _parts(members: Iterable[Pod], run: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return percentages of GPUs, where all pods that have started have only parts of GPUs."""
    held = [pod for pod in members if pod.start_ms is not None and pod.node]
    if not all(pod.parts for pod in held):
        return []
    amounts: Counter[tuple[str, str | None]] = Counter()
    for pod in held:
        for gpu_uuid, percent in pod.parts:
            amounts[pod.node, gpu_uuid] += percent
    of = {key: run[key] for key in ("cluster", "job_id_raw", "submit_at")}
    return [
        of | {"node": node, "kind": "mps", "amount": amount, "gpu_uuid": gpu_uuid}
        for (node, gpu_uuid), amount in amounts.items()
    ]


def _holds(members: Iterable[Pod], run: Mapping[str, Any], names: Names) -> list[dict[str, Any]]:
    """Return a row a GPU where telemetry names all of a pod's, else their number by node and start.

    A row lasts as long as its pod, since the pods of a gang do not begin together.
    """
    found: list[dict[str, Any]] = []
    unnamed: dict[tuple[str, int], list[Pod]] = defaultdict(list)
    for pod in members:
        if pod.start_ms is None or not pod.node:
            continue
        named = names(pod)
        if len(named) == pod.gpu_count:
            found += [
                _hold(run, [pod]) | {"gpu_uuid": uuid, "gpu_instance": instance}
                for uuid, instance in named
            ]
        else:
            unnamed[pod.node, pod.start_ms].append(pod)
    found += [
        _hold(run, there) | {"gpus": sum(pod.gpu_count for pod in there)}
        for there in unnamed.values()
    ]
    return found


def _hold(run: Mapping[str, Any], there: list[Pod]) -> dict[str, Any]:
    ends = [pod.end_ms for pod in there if pod.end_ms is not None]
    return {key: run[key] for key in ("cluster", "job_id_raw", "submit_at")} | {
        "node": there[0].node,
        "method": METHOD,
        "gpu_type": _gpu_type(there),
        "start_at": _at(there[0].start_ms),
        "end_at": _at(max(ends)) if len(ends) == len(there) else None,
    }


def _gpus(members: Iterable[Pod]) -> int | None:
    """Return the number of GPUs; None where the claims of a pod that has ended are gone."""
    found = list(members)
    return sum(pod.gpu_count for pod in found) if all(p.is_counted for p in found) else None


def _gpu_type(members: Iterable[Pod]) -> str | None:
    """Return the MIG profile that all request; None for whole GPUs or a mixture."""
    kinds = {gpu_resource(resource) for pod in members for resource in pod.gpus}
    return (kinds.pop() or None) if len(kinds) == 1 else None


def _cpus(members: Iterable[Pod]) -> int | None:
    asked = [pod.cpus for pod in members if pod.cpus is not None]
    return min(round(sum(asked)), CPUS_MAX) if asked else None


def _resources(members: Iterable[Pod]) -> str | None:
    counts: Counter[str] = Counter()
    for pod in members:
        counts.update(pod.gpus)
    return ",".join(f"{name}={count}" for name, count in sorted(counts.items())) or None


def _at(ms: int | None) -> datetime | None:
    return None if ms is None else EPOCH + timedelta(milliseconds=ms)
