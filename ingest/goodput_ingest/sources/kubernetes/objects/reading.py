"""Reads objects of the Kubernetes API: one, a List, or those that a watch prints one by one.

    kubectl get pods,jobs,resourceclaims,resourceslices -A -o json > objects.json

Objects of one file are looked at together: of several with one uid the last counts.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final

from goodput_ingest.formats import files, raw_tables
from goodput_ingest.formats.json_text import json_lines, json_stream
from goodput_ingest.formats.json_text.json_lines import EPOCH, FieldError
from goodput_ingest.formats.parsed import Parsed, frame
from goodput_ingest.source import Reject
from goodput_ingest.sources.kubernetes.gangs import NO_PARENTS, Gang, Job, gangs
from goodput_ingest.sources.kubernetes.job_runs import COMPLETED, FAILED, rows_of_gangs
from goodput_ingest.sources.kubernetes.objects.claims import GPU, Claims
from goodput_ingest.sources.kubernetes.objects.fields import ApiObject, word
from goodput_ingest.sources.kubernetes.objects.pod_objects import pod_of, with_claims
from goodput_ingest.sources.kubernetes.objects.queues import ENTRIES, QUOTAS, Row
from goodput_ingest.sources.kubernetes.objects.training import GROUPS, Training
from goodput_ingest.sources.kubernetes.pods import Pod
from goodput_queries.evidence.plausible import utc_now

HEAD: Final = re.compile(
    rb'\A\s*\{(?=.*"apiVersion"\s*:\s*"(?:v1|(?:batch|resource\.k8s\.io'
    rb"|kueue\.x-k8s\.io|scheduling\.volcano\.sh|(?:trainer\.)?kubeflow\.org)/v[12]\w*)\")"
    rb'(?=.*"kind"\s*:\s*"(?:\w*List|Pod|\w*Job|Resource(?:Claim|Slice)|Workload|\w*Queue|PodGroup)")',
    re.DOTALL,
)
# objects that have no fact of the ledger: what others of them become is in pods and workloads
SILENT: Final = {
    "": {"Node", "Event", "Namespace", "ConfigMap", "Service", "PersistentVolumeClaim"},
    "resource.k8s.io": {"DeviceClass", "ResourceClaimTemplate"},
    "batch": {"CronJob"},
    "apps": {"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"},
    "jobset.x-k8s.io": {"JobSet"},
    "kueue.x-k8s.io": {"ResourceFlavor", "AdmissionCheck", "WorkloadPriorityClass", "Cohort"},
    "batch.volcano.sh": {"Job"},
}
KEYS: Final = {
    "queue_entries": ("uid", "since_at"),
    "job_events": ("run_id", "ts", "event"),
    "queue_quotas": ("kind", "queue", "flavor", "resource"),
}
TABLES: Final = {
    name: raw_tables.columns(name, "source") for name in ("gpus", "gpu_instances", *KEYS)
}


def recognises(head: bytes) -> bool:
    """Say whether these are the first bytes of objects of the API."""
    return HEAD.match(head) is not None


@dataclass
class Objects:
    """What was read of a file. as_of: the latest time that an object has, naive UTC.

    silent: kinds that have no fact of the ledger.
    unread: uids, else names, of pods that could not be read; None: of one with neither.
    """

    pods: dict[str, Pod] = field(default_factory=dict)
    unread: set[str | None] = field(default_factory=set)
    silent: set[str] = field(default_factory=set)
    parents: dict[Job, Job] = field(default_factory=dict)
    ends: dict[Job, Job] = field(default_factory=dict)
    claims: Claims = field(default_factory=Claims)
    training: Training = field(default_factory=Training)
    rows: dict[str, dict[tuple[object, ...], Row]] = field(  # by table and key
        default_factory=lambda: defaultdict(dict)
    )
    rejects: list[Reject] = field(default_factory=list)
    as_of: datetime | None = None
    now: datetime = field(default_factory=utc_now)

    def take(self, found: ApiObject) -> None:
        """Take one object; FieldError says what is wrong with it, or that its kind is unknown."""
        handle = self._handlers.get((found.group, found.kind))
        if handle is not None:
            handle(found)
            self._seen_at(*found.moments())
        elif found.kind in SILENT.get(found.group, ()):
            self.silent.add(found.kind)
        else:
            raise FieldError("objects of this kind are not read")

    def accept(self, found: ApiObject, where: str = "") -> None:
        """Take one object; what is wrong with it is a reject."""
        try:
            self.take(found)
        except FieldError as error:
            self.rejects.append(Reject(None, f"{where}{_shown(found)}: {error}"))
            if (found.group, found.kind) == ("", "Pod"):
                self.unread.add(_identity(found))

    @property
    def kinds(self) -> set[tuple[str, str]]:
        """Group and name of each kind that is read."""
        return set(self._handlers)

    @cached_property
    def _handlers(self) -> dict[tuple[str, str], Callable[[ApiObject], None]]:
        return {
            **{key: partial(self._add, "queue_entries", take) for key, take in ENTRIES.items()},
            **{key: partial(self._add, "queue_quotas", take) for key, take in QUOTAS.items()},
            **{
                (group, kind): partial(self._add, "job_events", self.training.events)
                for group, kinds in GROUPS.items()
                for kind in kinds
            },
            ("", "Pod"): self._pod,
            ("batch", "Job"): self._job,
            ("resource.k8s.io", "ResourceClaim"): self.claims.add_claim,
            ("resource.k8s.io", "ResourceSlice"): self.claims.add_slice,
        }

    def _pod(self, found: ApiObject) -> None:
        pod = pod_of(found)
        self.pods[pod.uid] = pod
        self._seen_at(EPOCH + timedelta(milliseconds=pod.last_seen_ms))

    def _seen_at(self, *moments: datetime) -> None:
        known = [at for at in (*moments, self.as_of) if at is not None and at <= self.now]
        self.as_of = max(known, default=None)

    def _add(
        self, table: str, take: Callable[[ApiObject], Iterator[Row]], found: ApiObject
    ) -> None:
        for row in take(found):
            self.rows[table][tuple(row[name] for name in KEYS[table])] = row

    def _job(self, found: ApiObject) -> None:
        of = found.namespace, found.name
        if found.owners and word(found.owners[0], "kind") not in NO_PARENTS:
            self.parents[of] = word(found.owners[0], "kind"), word(found.owners[0], "name")
        for name, state in (("Complete", COMPLETED), ("Failed", FAILED)):
            if found.since(name) is not None:
                self.ends[of] = state, word(found.conditions[name], "reason")

    def parsed(
        self,
        cluster: str,
        observed: datetime | None,
        with_earlier: Callable[[list[Pod]], list[Pod]] = list,
        is_new: Callable[[Gang], bool] = lambda _: True,
    ) -> list[Parsed]:
        """Return the rows of all objects. observed: when they were listed, naive UTC, if known.

        with_earlier: adds pods that were listed before; is_new: which gangs have news.
        """
        observed = observed or self.as_of
        claimed, errors = self.claims.by_pod()
        self.rejects += [Reject(None, error) for error in errors]
        pods = with_earlier(with_claims(self.pods.values(), claimed))
        found = filter(is_new, gangs(self.parents, pods))
        rows = {
            **{table: list(of.values()) for table, of in self.rows.items()},
            "gpus": self._gpus(),
            "gpu_instances": self._gpu_instances(),
        }
        return [
            *rows_of_gangs(
                found,
                self.ends,
                lambda pod: list(pod.gpu_names),
                cluster,
                observed,
            ),
            *(
                Parsed(
                    table,
                    frame(
                        [{**of, "cluster": cluster, "observed_at": observed} for of in there],
                        columns,
                    ),
                )
                for table, columns in TABLES.items()
                if (there := rows.get(table))
            ),
        ]

    def _gpus(self) -> list[Row]:
        of_claims = {
            device.gpu_uuid: {
                "gpu_uuid": device.gpu_uuid,
                "node": device.node,
                "pci_bus_id": device.pci_bus_id,
                "gpu_model": device.model or None,
                "memory_bytes": device.memory_bytes or None,
                "driver_version": device.driver_version,
            }
            for device in self.claims.devices.values()
            if device.kind == GPU and device.gpu_uuid and device.node
        }
        # nodes whose other pods have GPUs that nobody names have more than these
        every = self.pods.values()
        unnamed = {pod.node for pod in every if pod.gpu_count and not (pod.gpu_names or pod.shares)}
        of_pods = {
            uuid: {"gpu_uuid": uuid, "node": pod.node}
            for pod in every
            for uuid, _ in (*pod.gpu_names, *pod.shares)
            if uuid and pod.node and pod.node not in unnamed
        }
        return list((of_pods | of_claims).values())

    def _gpu_instances(self) -> list[Row]:
        """Return the MIG instances of pods, which HAMi makes for them."""
        return [
            {
                "gpu_uuid": uuid,
                "gpu_instance": instance,
                "profile": profile,
                "compute_slices": int(profile[0]),
                "valid_from_at": EPOCH + timedelta(milliseconds=pod.start_ms),
                "valid_to_at": pod.end_ms and EPOCH + timedelta(milliseconds=pod.end_ms),
            }
            for pod in self.pods.values()
            for (uuid, instance), profile in zip(pod.gpu_names, pod.mig_profiles, strict=False)
            if pod.start_ms is not None and pod.node
        ]


def read(path: Path) -> Objects:
    """Return what a file says; what is wrong with an object is a reject."""
    found = Objects()
    with files.open_bytes(path) as file:
        try:
            for number, one in enumerate(_objects(json_stream.documents(file, ("items",))), 1):
                found.accept(one, f"object {number}: ")
        except json_stream.BrokenDocumentError as error:
            found.rejects.append(Reject(None, str(error)))
    return found


def _identity(found: ApiObject) -> str | None:
    """Return the uid of an object that could not be read, else its namespace and name."""
    match found.fields.get("metadata"):
        case {"uid": str(uid)}:
            return uid
        case {"namespace": str(namespace), "name": str(name)}:
            return f"{namespace}/{name}"
    return None


def _shown(found: ApiObject) -> str:
    name = found.fields.get("metadata", {})
    name = name.get("name", "") if isinstance(name, dict) else ""
    return json_lines.printable(f"{found.kind} {str(name)[:200]}".strip(), 300)


def _objects(documents: Iterator[tuple[int, str, Any]]) -> Iterator[ApiObject]:
    """Yield the objects of lists, watches and single documents."""
    fields: dict[str, Any] = {}
    current = 0
    for number, key, value in documents:
        if number != current:
            yield from _object(fields)
            fields, current = {}, number
        if key == "items":
            kind = str(fields.get("kind", "")).removesuffix("List")
            of_list = {"apiVersion": fields.get("apiVersion"), "kind": kind}
            yield from _object(of_list | value if isinstance(value, dict) else {"kind": "item"})
        else:
            fields[key] = value
    yield from _object(fields)


def _object(fields: dict[str, Any]) -> Iterator[ApiObject]:
    is_deleted = fields.get("type") == "DELETED"
    if isinstance(inner := fields.get("object"), dict) and "type" in fields:
        fields = inner
    kind, version = fields.get("kind"), fields.get("apiVersion")
    if not fields or (isinstance(kind, str) and kind.endswith("List")):
        return
    group = version.rpartition("/")[0] if isinstance(version, str) else ""
    yield ApiObject(group, kind if isinstance(kind, str) else "object", fields, is_deleted)
