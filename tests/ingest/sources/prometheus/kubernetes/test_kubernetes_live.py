"""Kubernetes polled through Prometheus: many polls give the rows of one query over all of it."""

import contextlib
import itertools
from datetime import datetime, timedelta

import pytest

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.kubernetes import Kubernetes
from goodput_queries.errors import IngestError

START = datetime(2026, 8, 20, 13)  # noqa: DTZ001 -- naive UTC
RUNS = (
    "select job_id, submit_at, start_at, end_at, state, gpus, nodes from raw.job_runs order by 2, 1"
)
HOLDS = "select job_id_raw, submit_at, node, gpus, gpu_uuid from raw.holds order by all"
STATES = "select node, state, start_at, end_at from raw.node_states order by all"


@pytest.fixture
def served(fake, reply_types):
    """Let the fake server have a cluster's series."""

    def serve(cluster):
        def answer(request):
            query, at_s = request.fields["query"], float(request.fields["time"])
            selector, length = query.rsplit("[", 1)
            start_s = at_s - int(length.removesuffix("ms]")) / 1000
            results = [
                one | {"values": inside}
                for one in cluster.series
                if one["metric"]["__name__"] in selector
                and (inside := [v for v in one["values"] if start_s <= v[0] <= at_s])
            ]
            return reply_types.Reply(reply_types.matrix(*results))

        fake.answer = answer
        return fake.url

    return serve


def poll(store, source, minute, reached_minute=None):
    reached = {} if reached_minute is None else {source.origin: at(reached_minute)}
    for batch in source.poll(reached, at(minute)):
        store.load(batch)


def at(minute):
    return START + timedelta(minutes=minute)


def source(url, **settings):
    return Kubernetes(url=url, cluster="k8s", settle_s=0, lookback_s=1_800, **settings)


@pytest.fixture
def busy(cluster):
    """Give an hour in which a gang restarts, a pod goes, a node is drained and comes back."""
    cluster.pod("train-a", ended_s=900, phase="Failed", reason="Error", gone_s=1_500)
    cluster.pod("train-b", created_s=930, bound_s=950, ended_s=3_000, phase="Succeeded")
    cluster.pod("side-0", "gpu-a02", gpus=2, owner=("Job", "side"), gone_s=1_230)
    cluster.pod("side-1", "gpu-a02", gpus=2, owner=("Job", "side"))
    cluster.add("kube_node_spec_unschedulable", lambda t: int(700 <= t < 2_000), node="gpu-a02")
    return cluster


@pytest.mark.machine
def test_many_polls_give_the_rows_of_one_look(
    store, busy, served, tmp_path, new_store, without_views
):
    polled = source(served(busy))
    for minute in range(4, 65, 3):
        poll(store, polled, minute, minute - 3 if minute > 4 else None)

    with contextlib.closing(new_store(copy_of=without_views)) as whole:
        ingest(whole, "kubernetes", [busy.save(tmp_path)], ReadOptions(cluster="k8s"))
        for sql in (RUNS, HOLDS, STATES):
            assert store.read(sql).rows() == whole.read(sql).rows()


def test_a_process_that_restarts_doubles_nothing(store, busy, served):
    url = served(busy)
    poll(store, source(url), 30)
    poll(store, source(url), 60, 25)

    assert [row[0] for row in store.read(RUNS).rows()] == ["nlp/side", "nlp/train", "nlp/train"]
    assert {row[4] for row in store.read(RUNS).rows()} == {"RUNNING", "FAILED", "COMPLETED"}


def test_an_outage_of_an_hour_leaves_no_hole(store, busy, served):
    polled = source(served(busy))
    poll(store, polled, 5)
    poll(store, polled, 60, 5)

    watched = store.read(
        "select start_at, end_at from raw.node_states where node = '*' order by start_at"
    ).rows()
    assert all(a[1] >= b[0] for a, b in itertools.pairwise(watched))
    assert watched[0][0] == START
    assert len(store.read(RUNS)) == 3


def test_hours_are_read_an_hour_at_a_time_and_reported_as_one(
    new_cluster, store, served, tmp_path, new_store, without_views
):
    """What holds at the end of one window has its end in the next."""
    cluster = new_cluster(until_s=3 * 3_600).node("gpu-a01").node("gpu-a02")
    cluster.pod("train-a", ended_s=4_000, phase="Succeeded", gone_s=4_100)
    for node, since_s, until_s in (("gpu-a01", 3_300, 3_700), ("gpu-a02", 6_000, 9_000)):
        cluster.add(
            "kube_node_spec_unschedulable",
            lambda t, since_s=since_s, until_s=until_s: int(since_s <= t < until_s),
            node=node,
        )

    poll(store, Kubernetes(url=served(cluster), cluster="k8s", settle_s=0, lookback_s=11_400), 190)

    with contextlib.closing(new_store(copy_of=without_views)) as whole:
        ingest(whole, "kubernetes", [cluster.save(tmp_path)], ReadOptions(cluster="k8s"))
        for sql in (RUNS, HOLDS, STATES):
            assert store.read(sql).rows() == whole.read(sql).rows()


def test_a_pod_that_has_gone_still_counts_for_its_gang(store, busy, served):
    """Seen from the last minutes alone, side-0 was never there."""
    polled = source(served(busy))
    for minute in (20, 40, 60):
        poll(store, polled, minute, minute - 20 if minute > 20 else None)

    assert ("nlp/side", 4) in [(row[0], row[5]) for row in store.read(RUNS).rows()]


def test_a_failure_is_one_sentence_and_loses_nothing(store, busy, served, fake, reply_types):
    url = served(busy)
    polled = source(url)
    poll(store, polled, 20)
    good, fake.answer = fake.answer, lambda _: reply_types.Reply(b"", 503, "text/plain")
    with pytest.raises(IngestError, match="status 503"):
        poll(store, polled, 40, 20)
    fake.answer = good
    poll(store, polled, 60, 20)

    assert {row[4] for row in store.read(RUNS).rows()} == {"RUNNING", "FAILED", "COMPLETED"}


def test_doctor_says_which_series_are_missing(fake, monkeypatch):
    monkeypatch.setitem(
        fake.names, "data", ["kube_pod_container_resource_requests", "kube_pod_owner"]
    )

    findings = Kubernetes(url=fake.url).probe()

    assert f"{fake.url}: kube_pod_labels is missing; allow JobSet, Kueue and Volcano labels" in (
        " ".join(findings)
    )
    assert not any("kube_pod_owner" in finding for finding in findings)


def test_doctor_says_that_no_source_reports_kubernetes(fake):
    (finding,) = Kubernetes(url=fake.url).probe()

    assert "there are no series of kube-state-metrics" in finding
