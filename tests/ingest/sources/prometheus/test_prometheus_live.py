"""Polling a server: what is asked for, what lands in the store, what a failure leaves behind."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.ingest.sources.prometheus.fake_server import Reply, matrix, remembering, series, vector

from goodput_ingest.live.config import collectors
from goodput_ingest.live.scheduler import Clock, Collection
from goodput_ingest.live.store_lease import Held
from goodput_ingest.sources.kubernetes import Kubernetes
from goodput_ingest.sources.prometheus import Prometheus
from goodput_queries.errors import IngestError

NOW = datetime(2026, 11, 20, 12, 0, 5)  # noqa: DTZ001 -- naive UTC, as in the store
HISTORY_S = 1_200
UTIL, POWER = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_POWER_USAGE"


def epoch_s(moment):
    return moment.replace(tzinfo=UTC).timestamp()


def poll(store, server, now=NOW, reached=None):
    """Load what one poll yields, as the collect loop does."""
    known = {} if reached is None else {server.origin: reached}
    return sum(store.load(batch).rows_new for batch in server.poll(known, now))


def samples(store):
    return store.read("select ts, gpu_busy_ratio, power_w from raw.gpu_samples order by 1").rows()


def scraped(history, limit=None):
    """Return the answers of a server that has these points of metrics."""
    return remembering([series(name, points) for name, points in history.items()], limit)


@pytest.fixture
def history():
    """Give twenty minutes of two metrics, read every 30 s at an odd moment."""
    first = epoch_s(NOW) - HISTORY_S + 0.217
    times = [first + 30 * i for i in range(HISTORY_S // 30)]
    return {
        UTIL: [(round(t, 3), i % 101) for i, t in enumerate(times)],
        POWER: [(round(t, 3), f"{300 + i}.5") for i, t in enumerate(times)],
    }


@pytest.fixture
def server(fake, history):
    """Give what polls a server that has them, from the first on."""
    fake.answer = scraped(history)
    return Prometheus(url=fake.url, settle_s=0, backfill_s=HISTORY_S)


def test_samples_that_come_late_are_found_in_the_overlap(store, fake, server, history):
    fake.answer = scraped({name: points[:-8] + points[-4:] for name, points in history.items()})
    poll(store, server)
    fake.answer = scraped(history)
    assert poll(store, server, NOW + timedelta(seconds=30), samples(store)[-1][0]) == 4


def test_no_answer_spans_more_than_the_overlap(store, fake, server):
    """Killed between two tables of an answer, the next poll begins before that answer."""
    poll(store, replace(server, overlap_s=300))

    lengths = [int(r.fields["query"].rsplit("[", 1)[1][:-3]) for r in fake.queries()]
    assert max(lengths) <= 300_001
    assert len(lengths) == 5


def test_too_many_samples_are_asked_for_in_halves(store, fake, server, history):
    fake.answer = scraped(history, limit=3)

    poll(store, server)

    assert [epoch_s(row[0]) for row in samples(store)] == [t for t, _ in history[UTIL]]
    assert all(row[1] is not None and row[2] is not None for row in samples(store))


def test_a_server_that_refuses_the_least_is_given_up(store, fake, server, history):
    fake.answer = scraped(history, limit=-1)

    with pytest.raises(IngestError, match="too many samples"):
        poll(store, replace(server, backfill_s=60))
    fake.answer = scraped(history)
    with pytest.raises(IngestError, match=r"series, over 0 \(answer_max_series\)"):
        poll(store, replace(server, answer_max_series=0))
    assert samples(store) == []


@pytest.mark.parametrize("trouble", [{"is_reset": True}, {"cut": 40}, {"status": 500}])
def test_what_came_before_a_failure_is_kept_the_rest_later(store, fake, server, history, trouble):
    whole = fake.answer

    def broken(request):
        return Reply(**trouble) if len(fake.queries()) > 2 else whole(request)

    fake.answer = broken
    with pytest.raises(IngestError):
        poll(store, server)
    kept = samples(store)
    fake.answer = whole
    poll(store, server, reached=kept[-1][0])

    assert 0 < len(kept) < 40
    assert [epoch_s(row[0]) for row in samples(store)] == [t for t, _ in history[UTIL]]


def test_a_server_without_gpu_metrics_is_asked_for_no_samples(store, fake):
    fake.names = ["up", "go_goroutines", 'evil"}[1d] or vector(1)#']
    assert poll(store, Prometheus(url=fake.url, backfill_s=600)) == 0
    assert fake.queries() == []


def test_a_clock_that_ran_ahead_does_not_stop_the_reading(store, server):
    """A reading of tomorrow was loaded once: from now on as if it had been of now."""
    poll(store, server, reached=NOW + timedelta(days=1))

    assert len(samples(store)) == 10


def test_scrapes_get_time_to_show(fake, store):
    poll(store, Prometheus(url=fake.url, settle_s=7, backfill_s=10))
    assert float(fake.queries()[-1].fields["time"]) == epoch_s(NOW) - 7


def test_a_warning_beside_an_empty_answer_is_kept_too(store, fake):
    fake.answer = lambda _: Reply(matrix(warnings=["no store answered"]))

    poll(store, Prometheus(url=fake.url, backfill_s=60))

    assert store.read("select reason from raw.rejects").item().endswith("no store answered")


DOWN = {"scrapePool": "nodes", "scrapeUrl": "http://a01:8080/metrics", "health": "down"}


def test_doctor_hears_nothing_of_targets_that_never_gave_metrics_of_gpus(fake):
    others = DOWN | {"scrapePool": "web", "scrapeUrl": "http://shop:8080/metrics"}
    labels = {"job": "nodes", "instance": "a01:8080"}
    one = {"metric": labels, "value": [1_000_000_000, "1"]}
    fake.targets = [others, DOWN | {"labels": labels}]
    fake.answer = lambda _: Reply(vector(one))

    (down,) = (text for text in Prometheus(url=fake.url).probe() if "is down" in text)

    assert down.endswith("http://a01:8080/metrics of job nodes is down: no reason given.")


def test_doctor_hears_of_targets_that_are_down_and_of_clocks(fake):
    target = DOWN | {"lastError": "connection refused"}
    late = {"metric": {}, "value": [1_000_000_000, "1000000000"]}
    fake.targets = [target, target | {"health": "up"}, "odd"]
    fake.answer, url = lambda _: Reply(vector(late)), fake.url

    down, clock = Prometheus(url=url).probe()

    assert down.endswith("/metrics of job nodes is down: connection refused.")
    assert "s off ours" in clock


def test_doctor_misses_gpu_metrics(fake):
    fake.names, fake.answer = ["up"], lambda _: Reply(vector())

    (finding,) = Prometheus(url=fake.url).probe()

    assert "no metric of a GPU exporter in the last hour" in finding


NOON = datetime(2026, 11, 20, 12)  # noqa: DTZ001 -- naive UTC
NOON_S = NOON.replace(tzinfo=UTC).timestamp()
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
