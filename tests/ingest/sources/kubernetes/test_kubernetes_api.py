"""The source `kubernetes-api`: lists of an API server, page after page, poll after poll."""

import functools
import json
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.ingest.http_pages import send, serving
from tests.ingest.sources.kubernetes.test_kubernetes_objects import claimed, pod, queued

from goodput_ingest.sources.kubernetes import api
from goodput_queries.errors import IngestError

NOON = datetime(2026, 8, 20, 12)  # noqa: DTZ001 -- UTC
DRA = {"resourceclaims": "ResourceClaim", "resourceslices": "ResourceSlice"}
KINDS = {  # group and version: names of what it lists
    "v1": {"pods": "Pod", "pods/log": "Pod", "nodes": "Node"},
    "batch/v1": {"jobs": "Job", "cronjobs": "CronJob"},
    "resource.k8s.io/v1beta1": DRA,
    "kueue.x-k8s.io/v1beta1": {"workloads": "Workload"},
}  # fmt: skip


class Cluster:
    """An API server: objects that a test changes, kinds that nobody may list."""

    def __init__(self):
        self.objects = []
        self.forbidden = set()
        self.asked = []

    def answer(self, request):
        """Answer a request."""
        at = urlsplit(request.path)
        asked = {key: values[0] for key, values in parse_qs(at.query).items()}
        self.asked.append((at.path, asked, request.headers["Authorization"]))
        status, said = self._said(at.path, asked)
        send(request, json.dumps(said), status, kind="application/json")

    def _said(self, path, asked):
        if path == "/apis":
            return 200, {"kind": "APIGroupList", "groups": [
                {"name": version.split("/")[0], "preferredVersion": {"groupVersion": version}}
                for version in KINDS if "/" in version
            ]}  # fmt: skip
        version, _, name = path.removeprefix("/apis/").removeprefix("/api/").rpartition("/")
        if path in ("/api/v1", *(f"/apis/{one}" for one in KINDS)):
            kinds = KINDS[path.removeprefix("/apis/").removeprefix("/api/")]
            return 200, {"kind": "APIResourceList", "resources": [
                {"name": name, "kind": kind, "verbs": ["list"]} for name, kind in kinds.items()
            ]}  # fmt: skip
        if name in self.forbidden:
            return 403, {"kind": "Status", "message": f"{name} is forbidden"}
        kind = KINDS[version][name]
        found = [one for one in self.objects if (one["apiVersion"], one["kind"]) == (version, kind)]
        begin, size = int(asked.get("continue", 0)), int(asked["limit"])
        rest = str(begin + size) if begin + size < len(found) else ""
        bare = [
            {key: value for key, value in one.items() if key not in ("apiVersion", "kind")}
            for one in found[begin : begin + size]
        ]
        return 200, {"kind": f"{kind}List", "metadata": {"continue": rest}, "items": bare}


@pytest.fixture
def cluster():
    return Cluster()


@pytest.fixture
def source(cluster, monkeypatch):
    monkeypatch.setenv("K8S_TOKEN", "secret")
    with serving(cluster.answer) as address:
        yield api.KubernetesApi(url=f"http://{address}", cluster="k8s", token_env="K8S_TOKEN")


@pytest.fixture
def poll(source, store):
    """Return what polls at a minute, loads what comes unless the store is full, and its rejects."""
    reached = {}

    def poll(minute, *, is_stored=True, by=source, into=store):
        now = NOON + timedelta(minutes=minute)
        found = list(by.poll(reached, now))
        if is_stored:
            for batch in found:
                into.load(batch)
            reached[source.origin] = now
        return [reject.reason for batch in found for reject in batch.rejects]

    return poll


RUNS = "select job_id, state, gpus, end_at from raw.job_runs order by all"


def test_all_pages_are_read_in_the_version_the_server_prefers(cluster, poll, store, monkeypatch):
    monkeypatch.setattr(api, "PAGE_OBJECTS", 1)
    cluster.objects = [pod("llm-0", started=10), pod("llm-1", started=10), queued(reserved=5)]
    cluster.objects += claimed("absent")

    assert poll(20) == []

    assert store.read(RUNS).rows() == [("nlp/llm", "RUNNING", 16, None)]
    assert store.read("select uid, until_at from raw.queue_entries").rows()[0][0] == "w"
    paths = [path for path, _, _ in cluster.asked]
    assert paths.count("/api/v1/pods") == 2
    assert "/apis/resource.k8s.io/v1beta1/resourceclaims" in paths
    assert not {"/api/v1/nodes", "/api/v1/pods/log", "/apis/batch/v1/cronjobs"} & {*paths}
    assert {token for _, _, token in cluster.asked} == {"Bearer secret"}


def test_a_pod_that_is_listed_no_more_ended_when_it_was_seen_last(cluster, poll, store):
    cluster.objects = [pod("llm-0", started=10), pod("llm-1", started=10)]
    poll(20)
    cluster.objects.pop()
    poll(21)

    assert store.read(RUNS).rows() == [("nlp/llm", "RUNNING", 16, None)]

    cluster.objects.clear()
    poll(22)

    seen = NOON + timedelta(minutes=21)
    assert store.read(RUNS).rows() == [("nlp/llm", "CANCELLED", 16, seen)]


def test_a_pod_whose_claims_cannot_be_listed_goes_on_with_its_gpus(cluster, poll, store):
    bare = pod(started=10)
    bare["spec"]["containers"] = [{}]
    cluster.objects = [bare, *claimed("llm-0")]
    poll(20)
    cluster.forbidden = {"resourceclaims"}

    poll(21)

    assert store.read(RUNS).rows() == [("nlp/llm", "RUNNING", 1, None)]


@pytest.mark.parametrize(
    "path", [("metadata", "labels"), ("metadata", "uid"), ("metadata", "name"), ("metadata",)]
)
def test_a_pod_that_cannot_be_read_any_more_goes_on_as_it_was(cluster, poll, store, path):
    """A number stands in place of what was at the path."""
    read, other = pod(started=10), pod("other", started=10)
    other["metadata"]["ownerReferences"] = []
    cluster.objects = [read, other]
    poll(20)
    broken = deepcopy(read)
    functools.reduce(dict.__getitem__, path[:-1], broken)[path[-1]] = 5
    cluster.objects = [broken]

    (reject,) = poll(21)

    assert reject.startswith("Pod")
    is_known = path != ("metadata",)  # by its uid or its name; else no pod is known to be gone
    ended = ("CANCELLED", NOON + timedelta(minutes=20)) if is_known else ("RUNNING", None)
    found = {job: (state, end) for job, state, _, end in store.read(RUNS).rows()}
    assert found == {"nlp/llm": ("RUNNING", None), "nlp/other": ended}

    cluster.objects = []
    poll(22)

    found = {job: (state, end) for job, state, _, end in store.read(RUNS).rows()}
    assert found["nlp/llm"] == ("CANCELLED", NOON + timedelta(minutes=21))


def test_an_end_is_said_again_until_it_is_in_the_store(cluster, poll, store):
    cluster.objects = [pod(started=10)]
    poll(20)
    cluster.objects.clear()

    poll(21, is_stored=False)
    poll(22)

    assert store.read(RUNS).rows() == [
        ("nlp/llm", "CANCELLED", 8, NOON + timedelta(minutes=20)),
    ]  # fmt: skip


def test_what_has_ended_is_loaded_once(cluster, poll, store):
    done = pod(started=10)
    done["status"] |= {"phase": "Succeeded"}
    cluster.objects = [done, pod("other", started=15)]
    for minute in (20, 21, 22):
        poll(minute)

    rows = store.read("select rows from state.ingested where table_name = 'job_runs' order by 1")
    assert rows["rows"].to_list() == [1, 1, 2]


def test_a_kind_that_may_not_be_listed_is_a_reject_and_pods_are_a_failure(cluster, poll, source):
    cluster.objects = [pod(started=10)]
    cluster.forbidden = {"workloads"}

    (said,) = poll(20)
    assert said.startswith("Workload: http://127.0.0.1:")
    assert "status 403 Forbidden" in said
    (probed,) = source.probe()
    assert probed.startswith("Workload of kueue.x-k8s.io: ")

    cluster.forbidden = {"pods"}
    with pytest.raises(IngestError, match="status 403 Forbidden"):
        poll(21)


def test_a_server_that_is_none_of_kubernetes_is_named(source, cluster):
    cluster._said = lambda *_: (200, {"groups": "none"})
    with pytest.raises(IngestError, match="groups is not a list of objects"):
        list(source.poll({}, NOON))


def test_after_a_restart_what_lists_lack_for_an_hour_has_gone(cluster, poll, source, whole_store):
    cluster.objects = [pod(started=10), queued()]
    poll(20, into=whole_store)
    cluster.objects = [pod("other", created=12, started=15), {**queued(), "metadata": {
        **queued()["metadata"], "uid": "v", "name": "job-cv"}}]  # fmt: skip
    restarted = replace(source)

    def ends():
        runs = "select end_ms from staging.stg_job_runs where start_ms > 0 order by start_ms"
        waits = "select until_ms from staging.stg_queue_entries order by uid desc"
        return [end for sql in (runs, waits) for (end,) in whole_store.read(sql).rows()]

    poll(80, by=restarted, into=whole_store)
    before = ends()
    poll(81, by=restarted, into=whole_store)

    assert before == [None] * 4
    gone = (NOON.replace(tzinfo=UTC) + timedelta(minutes=20)).timestamp() * 1000
    assert ends() == [gone, None, gone, None]
