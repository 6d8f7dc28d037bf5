"""A cluster as kube-state-metrics prints it, built up pod by pod and node by node."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions

START_S = 1_787_230_800  # 2026-08-20 13:00:00 UTC, a whole piece of ten minutes
START = datetime.fromtimestamp(START_S, UTC).replace(tzinfo=None)
K8S = ReadOptions(cluster="k8s")
EVERY_S = 30
OFFSET_S = 0.482


def at(seconds):
    return None if seconds is None else START + timedelta(seconds=seconds)


@dataclass
class Cluster:
    """Series by name and labels; times are seconds since `start_s`."""

    until_s: int = 3_600
    start_s: float = START_S
    series: list[dict[str, Any]] = field(default_factory=list)

    def add(self, name, value=1, first_s=0, last_s=None, **labels):
        """Add a series that is read every 30 s; `value` may be a function of the time."""
        last_s = self.until_s if last_s is None else last_s
        of_time = value if callable(value) else lambda _: value
        times = [t for t in range(0, self.until_s + 1, EVERY_S) if first_s <= t <= last_s]
        values = [[self.start_s + t + OFFSET_S, str(of_time(t))] for t in times]
        metric = {"__name__": name, "instance": "10.0.0.9:8080", **labels}
        self.series.append({"metric": metric, "values": values})
        return self

    def node(self, name, gpus=8, resource="nvidia_com_gpu", **said):
        """Add a node that is well, with GPUs, CPUs and memory."""
        for metric in ("kube_node_status_capacity", "kube_node_status_allocatable"):
            self.add(metric, gpus, node=name, resource=resource, unit="integer")
        self.add("kube_node_status_capacity", 96, node=name, resource="cpu", unit="core")
        self.add("kube_node_status_capacity", 2**40, node=name, resource="memory", unit="byte")
        if said:
            self.add("kube_node_labels", node=name, **said)
        return self

    def pod(
        self, name, node="gpu-a01", *, gpus=8, resource="nvidia_com_gpu", namespace="nlp",
        uid=None, created_s=0, bound_s=10, ended_s=None, gone_s=None, phase=None,
        owner=("Job", "train"), reason="", exit_code=None, restarts=0, **kube_labels,
    ):  # fmt: skip
        """Add a pod: created, bound to its node, ended, gone from the API."""
        own = {"namespace": namespace, "pod": name, "uid": uid or f"uid-{namespace}-{name}"}
        seen = {"first_s": created_s, "last_s": gone_s}
        where = {"node": node} if bound_s is not None else {}
        phase = phase or ("Running" if bound_s is not None else "Pending")

        def add(metric, value=1, **labels):
            self.add(metric, value, **seen, **own, **labels)

        add("kube_pod_created", self.start_s + created_s)
        add("kube_pod_info", **where, created_by_kind=owner[0], created_by_name=owner[1])
        add("kube_pod_owner", owner_kind=owner[0], owner_name=owner[1], owner_is_controller="true")
        asked = {"container": "main", "resource": resource, "unit": "integer", **where}
        add("kube_pod_container_resource_requests", gpus, **asked)
        if bound_s is not None:
            add("kube_pod_status_scheduled_time", self.start_s + bound_s)
        runs_until_s = ended_s if ended_s is not None and phase in ("Succeeded", "Failed") else 0
        for one in ("Pending", "Running", "Succeeded", "Failed", "Unknown"):
            add(
                "kube_pod_status_phase",
                lambda t, one=one: int(one == ("Running" if t < runs_until_s else phase)),
                phase=one,
            )
        if ended_s is not None:
            ended = {"first_s": ended_s, "last_s": gone_s}
            self.add("kube_pod_completion_time", self.start_s + ended_s, **ended, **own)
        if reason:
            add("kube_pod_container_status_terminated_reason", container="main", reason=reason)
        if exit_code is not None:
            add("kube_pod_container_status_last_terminated_exitcode", exit_code, container="main")
        add("kube_pod_container_status_restarts_total", restarts, container="main")
        if kube_labels:
            add("kube_pod_labels", **kube_labels)
        return self

    def answer(self):
        """Return what the server would answer."""
        return {"status": "success", "data": {"resultType": "matrix", "result": self.series}}

    def page(self):
        """Return what exporters print of the last values."""
        lines = []
        for one in self.series:
            name, _, *labels = one["metric"].items()
            said = ",".join(f'{label}="{value}"' for label, value in labels)
            lines.append(f"{name[1]}{{{said}}} {one['values'][-1][1]}\n")
        return "".join(lines)

    def save(self, folder):
        """Write the answer to a file."""
        file = folder / "kubernetes.json"
        file.write_text(json.dumps(self.answer()))
        return file


@pytest.fixture
def cluster():
    """Give a cluster with two nodes of 8 GPUs, watched for an hour."""
    return Cluster().node("gpu-a01").node("gpu-a02")


@pytest.fixture
def load(store, tmp_path):
    """Read a cluster into the store."""
    return lambda cluster: ingest(store, "kubernetes", [cluster.save(tmp_path)], K8S)


def read_once(cases):
    """Make the fixture of a database of the cluster that this loads, for all tests of a module."""

    @pytest.fixture(scope="module", name=cases.__name__)
    def opened(module_store, without_views, tmp_path_factory):
        store, cluster = module_store(copy_of=without_views), Cluster()
        cases(cluster)
        ingest(store, "kubernetes", [cluster.save(tmp_path_factory.mktemp("cases"))], K8S)
        return store

    return opened
