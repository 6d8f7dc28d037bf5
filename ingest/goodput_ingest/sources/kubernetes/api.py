"""Kubernetes out of its own API: pods, Jobs, claims, queues and training jobs, listed at each poll.

Which kinds a cluster has, and in which version, its discovery says. Nodes and their states are not
read: the source `kubernetes` has them, of kube-state-metrics.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Final, NamedTuple

import msgspec

from goodput_ingest.formats import files
from goodput_ingest.formats.json_text.json_lines import EPOCH, FieldError
from goodput_ingest.prometheus_api.batches import batches
from goodput_ingest.prometheus_api.client import Client
from goodput_ingest.prometheus_api.endpoint import Endpoint
from goodput_ingest.source import Batch, Reject
from goodput_ingest.sources.kubernetes.gangs import Gang
from goodput_ingest.sources.kubernetes.memory import PodMemory
from goodput_ingest.sources.kubernetes.objects.fields import ApiObject, listed, part, word
from goodput_ingest.sources.kubernetes.objects.reading import Objects
from goodput_ingest.sources.kubernetes.pods import Pod
from goodput_ingest.sources.kubernetes.recorded import CLUSTER_UNKNOWN
from goodput_queries.errors import IngestError

API: Final = "the API of Kubernetes"
PAGE_OBJECTS: Final = 250  # of one answer: a pod has up to 30 kB
PODS: Final = ("", "Pod")


class _Resource(NamedTuple):
    """A kind that the server lists: its group and version, and the path of its list."""

    group: str
    version: str
    kind: str
    path: str


@dataclass
class _Memory:
    """What earlier polls of this process have seen, by uid of pods.

    ended: of gangs whose end is in the store; ending: of those that a poll at `polled_at` yielded.
    """

    pods: PodMemory = field(default_factory=PodMemory)
    ended: set[str] = field(default_factory=set)
    ending: set[str] = field(default_factory=set)
    polled_at: datetime | None = None

    def begin(self, stored: datetime | None, now: datetime) -> None:
        """Begin a poll; stored: the beginning of the last poll that is in the store."""
        if self.polled_at is not None and stored is not None and stored >= self.polled_at:
            self.ended |= self.ending
            for uid in self.ending:
                self.pods.pods.pop(uid, None)
        self.ending, self.polled_at = set(), now

    def with_earlier(self, pods: list[Pod], listed: Objects, now: datetime) -> list[Pod]:
        """Return the pods with those of earlier polls; one that is gone ended when it was seen.

        pods: those with GPUs. Of one that is listed without its claims, the GPUs are those of
        before; one that cannot be read goes on as it was.
        """
        unread = {
            uid
            for uid, pod in self.pods.pods.items()
            if {uid, f"{pod.namespace}/{pod.name}", None} & listed.unread
        }
        every = {**{uid: self.pods.pods[uid] for uid in unread}, **listed.pods}
        self.ended = {uid for uid in self.ended if uid in every or listed.unread}
        kept = [self.pods.pods[uid] for uid in self.pods.pods.keys() & every.keys()]
        found = {pod.uid: pod for pod in (*kept, *pods)}
        for uid, pod in found.items():
            pod.end_ms = every[uid].end_ms
            if pod.end_ms is None:
                pod.last_seen_ms = round((now - EPOCH).total_seconds() * 1000)
        return self.pods.with_earlier(lambda _: True, found.values())[0]

    def is_new(self, gang: Gang) -> bool:
        """Say whether a gang goes on, or has an end that the store does not have."""
        uids = {pod.uid for pod in gang.pods}
        if any(pod.end_ms is None for pod in gang.pods):
            return True
        self.ending |= uids
        return not uids <= self.ended


@dataclass(frozen=True, kw_only=True)
class KubernetesApi(Endpoint):
    """An API server, with a token that may list what is read.

    cluster: what to call the cluster.
    """

    name: ClassVar[str] = "kubernetes-api"

    cluster: str = CLUSTER_UNKNOWN
    interval_s: float = 60.0
    memory: _Memory = field(default_factory=_Memory, init=False, repr=False, compare=False)

    def poll(self, reached: Mapping[str, datetime], now: datetime) -> Iterator[Batch]:
        """Yield job runs, holds, waits and steps as all lists have them now.

        Raises IngestError where pods cannot be listed; another kind that cannot is a reject.
        """
        self.memory.begin(reached.get(self.origin), now)
        found = Objects(now=now)
        with Client(self, api=API) as client:
            for resource in _resources(client, found.kinds):
                try:
                    for one in _listed(client, resource, PAGE_OBJECTS):
                        found.accept(one)
                except IngestError as error:
                    if (resource.group, resource.kind) == PODS:
                        raise
                    found.rejects.append(Reject(None, f"{resource.kind}: {error}"))
        rows = found.parsed(
            self.cluster,
            now,
            lambda pods: self.memory.with_earlier(pods, found, now),
            self.memory.is_new,
        )
        kept = [one for one in rows if not one.rows.is_empty()]
        digest = files.digest_of(self.cluster, now)
        yield from batches(kept, found.rejects, self.name, self.origin, digest, table="job_runs")

    def probe(self) -> list[str]:
        """Return which kinds of the cluster the token may not list."""
        refused = []
        with Client(self, api=API) as client:
            for resource in _resources(client, Objects().kinds):
                try:
                    next(_listed(client, resource, 1), None)
                except IngestError as error:
                    refused.append(f"{resource.kind} of {resource.group or 'v1'}: {error}")
        return refused


def _resources(client: Client, kinds: set[tuple[str, str]]) -> Iterator[_Resource]:
    """Yield the kinds that are read and that the server has, in the version that it prefers."""
    versions = {"": "v1"}
    for found in _list_of(_get(client, "/apis"), "groups"):
        versions[word(found, "name")] = word(part(found, "preferredVersion"), "groupVersion")
    for group, version in versions.items():
        wanted = {kind for of, kind in kinds if of == group}
        path = f"/apis/{version}" if group else f"/api/{version}"
        for one in _list_of(_get(client, path), "resources") if wanted else ():
            kind, name = word(one, "kind"), word(one, "name")
            if kind in wanted and "/" not in name:
                yield _Resource(group, version, kind, f"{path}/{name}")


def _listed(client: Client, resource: _Resource, page: int) -> Iterator[ApiObject]:
    """Yield the objects of a kind, page after page."""
    of_list = {"apiVersion": resource.version, "kind": resource.kind}
    more = ""
    while True:
        params = {"limit": str(page)} | ({"continue": more} if more else {})
        answer = _get(client, resource.path, params)
        for item in _list_of(answer, "items"):
            yield ApiObject(resource.group, resource.kind, {**of_list, **item})
        if not (more := word(answer.get("metadata") or {}, "continue", 10_000)):
            return


def _get(client: Client, path: str, params: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return an answer; raises IngestError, also where it is not an object."""
    try:
        return msgspec.json.decode(client.get(path, params or {}), type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise IngestError(f"{path}: the answer is not an object of {API} ({error}).") from error


def _list_of(answer: dict[str, Any], name: str) -> list[dict[str, Any]]:
    try:
        return listed(answer, name)
    except FieldError as error:
        raise IngestError(f"{API}: {error}.") from error
