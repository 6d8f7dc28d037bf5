"""Nodes with GPUs: what they have, and when they were down or drained."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import zip_longest
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from goodput_ingest.formats import raw_tables
from goodput_ingest.formats.json_text.json_lines import EPOCH, printable
from goodput_ingest.formats.parsed import INSTANT, Parsed, frame
from goodput_ingest.prometheus_api.answer import Series
from goodput_ingest.prometheus_api.gpu_series import normalised
from goodput_ingest.sources.kubernetes.observation import Observation, label
from goodput_ingest.sources.kubernetes.pods import GPU_CORES, GPUS_MAX, TEXT_MAX_CHARS, gpu_resource

PIECE_MS = 600_000  # states are cut here, so that each poll yields the same rows for the same time
EVERY_NODE = "*"
UP, DOWN, DRAINED = "up", "down", "drained"
# taints that say that a node is not to be used; many others only keep other workloads off GPUs
TAINTS = {
    "node.kubernetes.io/not-ready": DOWN,
    "node.kubernetes.io/unreachable": DOWN,
    "node.kubernetes.io/out-of-service": DOWN,
    "node.cloudprovider.kubernetes.io/shutdown": DOWN,
    "node.kubernetes.io/unschedulable": DRAINED,
    "ToBeDeletedByClusterAutoscaler": DRAINED,
    "karpenter.sh/disrupted": DRAINED,
    "karpenter.sh/disruption": DRAINED,
}
PRODUCT = "label_nvidia_com_gpu_product"
COUNT = "label_nvidia_com_gpu_count"
REPLICAS = "label_nvidia_com_gpu_replicas"
SHARED_SUFFIX = re.compile(
    r"-SHARED$"
)  # GPU feature discovery marks models that it allocates in shares

NODES: dict[str, Any] = {
    "cluster": pl.String, "node": pl.String, "cpus": pl.Int32, "memory_bytes": pl.Int64,
    "gpus": pl.Int32, "gres": pl.String, "observed_at": INSTANT,
}  # fmt: skip
STATES: dict[str, Any] = {
    "cluster": pl.String, "node": pl.String, "state": pl.String, "state_raw": pl.String,
    "start_at": INSTANT, "end_at": INSTANT, "reason": pl.String,
}  # fmt: skip
GPUS: dict[str, Any] = {
    "cluster": pl.String, "gpu_uuid": pl.String, "node": pl.String, "gpu_index": pl.Int32,
    "slurm_index": pl.Int32, "pci_bus_id": pl.String, "gpu_model": pl.String,
    "valid_to_at": INSTANT,
}  # fmt: skip

SHARES = raw_tables.columns("gpu_instances", "source")


def parsed_nodes(seen: Observation, cluster: str) -> list[Parsed]:
    """Return nodes with GPUs, their states, and their GPUs: numbered slots where none is named.

    Slots give way to named GPUs; of a node with GPUs that a GPU exporter's series name, no slot is
    made at all.
    """
    capacity = _resources(seen, "kube_node_status_capacity")
    nodes = {node for node, have in capacity.items() if _gpu_resources(have)}
    labels = _labels(seen)
    split = {  # where HAMi offers each GPU many times, and does not say how often
        label(one, "node")
        for one in seen.named("kube_pod_container_resource_requests")
        if GPU_CORES.fullmatch(one.labels.get("resource", ""))
    }
    named = {of["gpu_uuid"]: of for of in normalised(seen.gpu_series) if of["gpu_uuid"]}
    named_nodes = {of["node"] for of in named.values()}
    observed = _at(int(seen.moments_ms[-1])) if len(seen.moments_ms) else None
    rows: list[dict[str, Any]] = []
    shares: list[dict[str, Any]] = []
    slots = [
        of | {"cluster": cluster, "slurm_index": of["gpu_index"]}
        for of in named.values()
        if of["node"] in nodes
    ]
    for node in sorted(nodes):
        have, said = capacity[node], labels[node][-1].labels if node in labels else {}
        gpus = None if node in split and COUNT not in said else _physical(have, said)
        rows.append(
            {
                "cluster": cluster,
                "node": node,
                "cpus": _bounded(have.get("cpu"), 2**20),
                "memory_bytes": _bounded(have.get("memory"), 2**50),
                "gpus": gpus
                if node in split
                else sum(_gpu_resources(have).values()) // max(_replicas(said), 1),
                "gres": ",".join(f"{r}={n}" for r, n in sorted(_gpu_resources(have).items())),
                "observed_at": observed,
            }
        )
        if node not in named_nodes and gpus is not None:
            slots += _slots(seen, cluster, node, gpus, said)
    for slot in slots:
        shares += _shares(slot, labels.get(slot["node"], []))
    return [
        Parsed("nodes", frame(rows, NODES)),
        Parsed("gpus", frame(slots, GPUS)),
        Parsed("gpu_instances", frame(shares, SHARES)),
        Parsed("node_states", frame(_states(seen, cluster, nodes), STATES)),
    ]


def _labels(seen: Observation) -> dict[str, list[Series]]:
    """Return the labels of each node; where they changed, the earlier ones first."""
    found: dict[str, list[Series]] = defaultdict(list)
    for one in sorted(seen.named("kube_node_labels"), key=lambda one: int(one.times_ms[-1])):
        found[label(one, "node")].append(one)
    return found


def _resources(seen: Observation, name: str) -> dict[str, dict[str, float]]:
    """Return what each node has by resource; what it had before, it has no more."""
    of_nodes: dict[str, list[Series]] = defaultdict(list)
    for one in seen.named(name):
        if node := printable(label(one, "node"), TEXT_MAX_CHARS):
            of_nodes[node].append(one)
    found: dict[str, dict[str, float]] = {}
    for node, series in of_nodes.items():
        seen_last_ms = max(int(one.times_ms[-1]) for one in series)
        found[node] = {
            one.labels.get("resource", ""): float(one.values[-1])
            for one in series
            if seen_last_ms - int(one.times_ms[-1]) <= seen.hole_ms
        }
    return found


def _gpu_resources(have: Mapping[str, float]) -> dict[str, int]:
    return {
        resource: int(number)
        for resource, number in have.items()
        if gpu_resource(resource) is not None and 0 < number <= GPUS_MAX
    }


def _physical(have: Mapping[str, float], said: Mapping[str, str]) -> int | None:
    """Return how many GPUs the node really has; None where MIG instances hide it."""
    if said.get(COUNT, "").isdigit():
        return min(int(said[COUNT]), GPUS_MAX)
    resources = _gpu_resources(have)
    if any(gpu_resource(resource) not in ("", "shared") for resource in resources):
        return None
    return sum(resources.values()) // max(_replicas(said), 1)


def _replicas(said: Mapping[str, str]) -> int:
    text = said.get(REPLICAS, "")
    return min(int(text), GPUS_MAX) if text.isdigit() else 1


def _slots(
    seen: Observation, cluster: str, node: str, gpus: int, said: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return numbered slots of a node; where the node has gone, so have they."""
    there = [one for one in seen.named("kube_node_status_capacity") if label(one, "node") == node]
    last_ms = max(int(one.times_ms[-1]) for one in there)
    model = SHARED_SUFFIX.sub("", said.get(PRODUCT, ""))[:TEXT_MAX_CHARS]
    return [
        {
            "cluster": cluster,
            "gpu_uuid": f"{node}#{index}",
            "node": node,
            "slurm_index": index,
            "gpu_model": model or None,
            "valid_to_at": _at(last_ms) if seen.has_ended(last_ms) else None,
        }
        for index in range(gpus)
    ]


def _shares(gpu: Mapping[str, Any], labels: Sequence[Series]) -> list[dict[str, Any]]:
    """Return the equal shares of a GPU with time-slicing; else nothing.

    labels: those of its node over time; a change of the number of replicas ends the shares
    """
    if gpu["slurm_index"] is None:
        return []
    found: list[dict[str, Any]] = []
    for said, after in zip_longest(labels, labels[1:]):
        replicas = _replicas(said.labels)
        is_over = after is not None and _replicas(after.labels) != replicas
        if replicas > 1:
            end_ms = int(after.times_ms[0]) if is_over else None
            found += _shares_of(gpu, replicas, int(said.times_ms[0]), end_ms)
    return found


def _shares_of(
    gpu: Mapping[str, Any], replicas: int, start_ms: int, end_ms: int | None
) -> list[dict[str, Any]]:
    return [
        {
            "cluster": gpu["cluster"],
            "gpu_uuid": gpu["gpu_uuid"],
            "gpu_instance": f"share.{number}/{replicas}",
            "profile": f"shared 1/{replicas}",
            "compute_slices": 1,
            "slices_of": replicas,
            "slurm_index": gpu["slurm_index"] * replicas + number,
            "valid_from_at": _at(start_ms),
            "valid_to_at": _at(end_ms),
        }
        for number in range(replicas)
    ]


def _states(seen: Observation, cluster: str, nodes: Collection[str]) -> list[dict[str, Any]]:
    spans: list[tuple[str, str, str, int, int | None, int]] = [
        (EVERY_NODE, UP, "watched", start_ms, end_ms, end_ms)
        for start_ms, end_ms in seen.stretches()
    ]
    for node, state, why, one, holds in _signs(seen):
        if node in nodes:
            last_ms = int(one.times_ms[-1])
            spans += [(node, state, why, *span, last_ms) for span in _spans(seen, one, holds)]
    return [
        {
            "cluster": cluster,
            "node": node,
            "state": state,
            "state_raw": why,
            "start_at": _at(start_ms),
            "end_at": _at(end_ms),
            "reason": why,
        }
        for node, state, why, whole_start_ms, whole_end_ms, last_ms in spans
        for start_ms, end_ms in _pieces(seen, whole_start_ms, whole_end_ms, last_ms)
    ]


Sign = tuple[str, str, str, "Series", "NDArray[np.bool_]"]


def _signs(seen: Observation) -> Iterator[Sign]:
    """Yield node, state, why, and at which of a series's readings the state held."""
    for one in seen.named("kube_node_status_condition"):
        if one.labels.get("condition") == "Ready" and one.labels.get("status") == "true":
            yield label(one, "node"), DOWN, "NotReady", one, one.values == 0
    for one in seen.named("kube_node_spec_unschedulable"):
        yield label(one, "node"), DRAINED, "cordoned", one, one.values != 0
    for one in seen.named("kube_node_spec_taint"):
        taint = one.labels.get("key", "")
        if taint in TAINTS:
            yield label(one, "node"), TAINTS[taint], f"taint {taint}", one, one.values != 0
    for one in seen.named("kube_node_status_allocatable"):
        # GPUs that the device plugin calls unhealthy leave allocatable; which they are is not said
        if gpu_resource(one.labels.get("resource", "")) is not None:
            yield label(one, "node"), DOWN, "no GPU is allocatable", one, one.values == 0


def _spans(
    seen: Observation, one: Series, holds: NDArray[np.bool_]
) -> Iterator[tuple[int, int | None]]:
    """Yield from when to when a state held; no end while it still does."""
    start_ms: int | None = None
    for index, at_ms in enumerate(one.times_ms.tolist()):
        is_hole = index > 0 and at_ms - int(one.times_ms[index - 1]) > seen.hole_ms
        if start_ms is not None and (is_hole or not holds[index]):
            yield start_ms, int(one.times_ms[index - 1]) + seen.interval_ms if is_hole else at_ms
            start_ms = None
        if holds[index] and start_ms is None:
            start_ms = at_ms
    if start_ms is not None:
        last_ms = int(one.times_ms[-1])
        yield start_ms, last_ms + seen.interval_ms if seen.has_ended(last_ms) else None


def _pieces(
    seen: Observation, start_ms: int, end_ms: int | None, last_ms: int
) -> Iterator[tuple[int, int | None]]:
    """Yield a span cut at whole pieces of time, as far as it was watched: to `last_ms`.

    One that begins with the first reading of a piece begins with the piece: whether it went on
    from before then depends on where a poll began to read.
    """
    if start_ms % PIECE_MS <= seen.interval_ms:
        start_ms -= start_ms % PIECE_MS
    stop_ms = last_ms if end_ms is None else end_ms
    while (cut_ms := (start_ms // PIECE_MS + 1) * PIECE_MS) < stop_ms:
        yield start_ms, cut_ms
        start_ms = cut_ms
    yield start_ms, end_ms


def _bounded(value: float | None, most: int) -> int | None:
    return int(value) if value is not None and 0 <= value <= most else None


def _at(ms: int | None) -> datetime | None:
    return None if ms is None else EPOCH + timedelta(milliseconds=ms)
