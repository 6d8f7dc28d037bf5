"""A server for many clusters: each is a part of it, which has read as far as it has."""

from datetime import UTC, datetime, timedelta

import pytest
from tests.ingest.sources.prometheus.fake_server import Reply, matrix, series, vector

from goodput_ingest.live.config import collectors
from goodput_ingest.live.scheduler import Clock, Collection
from goodput_ingest.live.store_lease import Held
from goodput_ingest.sources.kubernetes import Kubernetes
from goodput_ingest.sources.prometheus import Prometheus
from goodput_queries.errors import IngestError

NOON = datetime(2026, 11, 20, 12)  # noqa: DTZ001 -- naive UTC
NOON_S = NOON.replace(tzinfo=UTC).timestamp()
UTIL = "DCGM_FI_DEV_GPU_UTIL"
MATCHERS = {"east": 'cluster="east"', "west": 'cluster="west"'}
GPUS = {name: f"GPU-{name}" for name in MATCHERS}


@pytest.fixture
def shared(fake):
    """Let a server have a GPU of each of two clusters, on nodes of one name."""

    def answer(request):
        query = request.fields["query"]
        if query.startswith("group"):
            clusters = [{"metric": {"cluster": name}, "value": [NOON_S, "1"]} for name in MATCHERS]
            return Reply(vector(*clusters))
        if query.startswith("vector"):
            return Reply(vector())
        _, start_s, end_s = request.of_range()
        times = [t for t in range(round(NOON_S), round(NOON_S) + 3600, 30) if start_s <= t <= end_s]
        found = [
            series(UTIL, [(t, 50) for t in times], UUID=GPUS[name], cluster=name)
            for name, matchers in MATCHERS.items()
            if times and (matchers in query or "cluster=" not in query)
        ]
        return Reply(matrix(*found))

    fake.answer = answer
    return fake


def poll_at(store, minute, tables):
    now = NOON + timedelta(minutes=minute)
    found = collectors([{"settle_s": 0, "backfill_s": 600, **table} for table in tables])
    outcomes = Collection(found, Held(store), Clock(lambda: now)).ask_once()
    assert [outcome.error for outcome in outcomes] == [None] * len(tables)


def table(fake, name):
    return {
        "source": "prometheus", "url": fake.url, "matchers": MATCHERS[name], "cluster": name,
    }  # fmt: skip


def test_nodes_of_one_name_in_two_clusters_are_two_nodes(store, shared):
    poll_at(store, 5, [table(shared, "east"), table(shared, "west")])

    rows = store.read("select cluster, node, gpu_uuid from raw.gpus order by all").rows()
    assert rows == [("east", "gpu-a01", "GPU-east"), ("west", "gpu-a01", "GPU-west")]


def test_a_cluster_that_is_added_later_is_read_as_far_back_as_the_first_was(store, shared):
    """Were the server the origin, the second would begin where the first has come to."""
    for minute in (10, 20):
        poll_at(store, minute, [table(shared, "east")])
    poll_at(store, 20, [table(shared, "east"), table(shared, "west")])

    first = dict(store.read("select gpu_uuid, min(ts) from raw.gpu_samples group by all").rows())
    assert first == {"GPU-east": NOON, "GPU-west": NOON + timedelta(minutes=10)}


@pytest.mark.parametrize("kind", [Prometheus, Kubernetes])
def test_doctor_says_that_a_server_reports_several_clusters(shared, kind):
    shared.names = [UTIL, "kube_pod_owner"]

    assert (
        f"{shared.url}: its series are of 2 clusters (cluster: east, west); take one with matchers "
        '= \'cluster="east"\' and cluster = "east", and each other in a [[collect]] of its own.'
    ) in kind(url=shared.url).probe()


def test_matchers_are_written_without_braces():
    with pytest.raises(IngestError, match="write it without the braces"):
        Prometheus(url="http://a:9090", matchers='{cluster="a"}')
