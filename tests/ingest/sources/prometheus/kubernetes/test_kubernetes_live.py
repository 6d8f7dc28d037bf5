"""Kubernetes polled through Prometheus: many polls give the rows of one query over all of it."""

import contextlib

import pytest
from tests.ingest.sources.prometheus.fake_server import Reply, remembering
from tests.ingest.sources.prometheus.kubernetes.conftest import K8S, Cluster, at
from tests.tables import each

from goodput_ingest.run.ingest import ingest
from goodput_ingest.sources.kubernetes import Kubernetes
from goodput_ingest.sources.kubernetes.live import NEEDED
from goodput_queries.errors import IngestError

RUNS = (
    "select job_id, submit_at, start_at, end_at, state, gpus, nodes from raw.job_runs order by all"
)
HOLDS = "select job_id_raw, submit_at, node, gpus, gpu_uuid from raw.holds order by all"
STATES = "select node, state, start_at, end_at from raw.node_states order by all"


def poll(store, source, minute, reached_minute=None):
    reached = {} if reached_minute is None else {source.origin: at(60 * reached_minute)}
    for batch in source.poll(reached, at(60 * minute)):
        store.load(batch)


@pytest.fixture
def source(fake):
    """Give what makes a source of the fake server, which has the series of a cluster."""

    def made(cluster, lookback_s=1_800):
        fake.answer = remembering(cluster.series)
        return Kubernetes(url=fake.url, cluster="k8s", settle_s=0, lookback_s=lookback_s)

    return made


@pytest.fixture
def busy(cluster):
    """Give an hour in which a gang restarts, a pod goes, a node is drained and comes back."""
    cluster.pod("train-a", ended_s=900, phase="Failed", reason="Error", gone_s=1_500)
    cluster.pod("train-b", created_s=930, bound_s=950, ended_s=3_000, phase="Succeeded")
    cluster.pod("side-0", "gpu-a02", gpus=2, owner=("Job", "side"), gone_s=1_230)
    cluster.pod("side-1", "gpu-a02", gpus=2, owner=("Job", "side"))
    cluster.add("kube_node_spec_unschedulable", lambda t: int(700 <= t < 2_000), node="gpu-a02")
    return cluster


@pytest.fixture
def whole(new_store, without_views, tmp_path):
    """Give what reads all series of a cluster at once; return the rows of a query."""
    with contextlib.closing(new_store(copy_of=without_views)) as opened:
        yield lambda cluster: rows(
            ingest(opened, "kubernetes", [cluster.save(tmp_path)], K8S) and opened
        )


def rows(store):
    return [store.read(sql).rows() for sql in (RUNS, HOLDS, STATES)]


def test_polls_over_outages_and_restarts_give_rows_of_one_look(store, busy, source, fake, whole):
    """A pod that has gone counts for its gang; outages leave no hole, a restart no double."""
    polled = source(busy)
    poll(store, polled, 5)
    poll(store, polled, 20, 5)
    good, fake.answer = fake.answer, lambda _: Reply(b"", 503, "text/plain")
    with pytest.raises(IngestError, match="status 503"):
        poll(store, polled, 40, 20)
    fake.answer = good
    poll(store, polled, 50, 20)
    poll(store, source(busy), 64, 50)

    found = rows(store)

    assert [row[0] for row in found[0]] == ["nlp/side", "nlp/train", "nlp/train"]
    assert found == whole(busy)


def test_hours_are_read_an_hour_at_a_time_and_reported_as_one(store, source, whole):
    """What holds at the end of one window has its end in the next."""
    cluster = Cluster(until_s=3 * 3_600).node("gpu-a01").node("gpu-a02")
    cluster.pod("train-a", ended_s=4_000, phase="Succeeded", gone_s=4_100)
    for node, drained in {"gpu-a01": range(3_300, 3_700), "gpu-a02": range(6_000, 9_000)}.items():
        cluster.add("kube_node_spec_unschedulable", lambda t, of=drained: int(t in of), node=node)

    poll(store, source(cluster, lookback_s=11_400), 190)

    assert rows(store) == whole(cluster)


@each({
    "series": (["kube_pod_container_resource_requests", "kube_pod_owner"],
               "kube_pod_labels is missing; allow JobSet, Kueue and Volcano labels"),
    "claims of GPUs": (
        [*NEEDED, "kube_pod_resourceclaim_info"], "by ResourceClaims (DRA) are in no job run"),
    "everything": (["up"], "there are no series of kube-state-metrics"),
})  # fmt: skip
def test_doctor_says_what_is_missing(fake, names, said):
    fake.names = names

    findings = " ".join(Kubernetes(url=fake.url).probe())

    assert said in findings
    assert "kube_pod_owner" not in findings
