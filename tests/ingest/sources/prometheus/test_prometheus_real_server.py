"""A real Prometheus that scrapes exporters, and one that writes to us: what it has is stored."""

import platform
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise

import pytest
from tests.app.served import receiving
from tests.ingest.fake_live import reached
from tests.ingest.received.writers import POWER, UTIL

from goodput_ingest.live.config import Collector
from goodput_ingest.prometheus_api.answer import NAME
from goodput_ingest.received.remote_write import RemoteWrite
from goodput_ingest.received.spool import Spool
from goodput_ingest.sources.prometheus import Prometheus

pytestmark = pytest.mark.machine
LABELS = (
    '{gpu="0",UUID="GPU-6f0c1c2e-3b7a-4d51-9a0e-0d1c2b3a4f50",pci_bus_id="00000000:19:00.0",'
    'device="nvidia0",modelName="NVIDIA H100 80GB HBM3",Hostname="gpu-a01"}'
)
SELECTOR = f'{{__name__=~"{UTIL}|{POWER}"}}[1h]'


def let_scrape(prometheus, exporter, times):
    """Let the exporter be scraped so many times more, each time with another value."""
    for _ in range(times):
        before = len(exporter.asked)
        exporter.text = f"{UTIL}{LABELS} {before % 101}\n{POWER}{LABELS} {70 + before}.5\n"
        prometheus.until(lambda before=before: len(exporter.asked) > before, "it scrapes again")


@pytest.fixture
def scraped(prometheus, exporter):
    return partial(let_scrape, prometheus, exporter)


def poll(store, server):
    """Poll as the loop does, from what the store has; the clock is the real one."""
    now = datetime.now(UTC).replace(tzinfo=None)
    return sum(store.load(batch).rows_new for batch in server.poll(reached(store), now))


def stored(store):
    """Return (name, time, value) as the server would say it."""
    rows = store.read(
        "select epoch_ms(ts), gpu_busy_ratio, power_w from raw.gpu_samples where not is_flagged"
    ).rows()
    return sorted(
        [(UTIL, ms / 1000, round(busy * 100)) for ms, busy, _ in rows if busy is not None]
        + [(POWER, ms / 1000, watts) for ms, _, watts in rows if watts is not None]
    )


def served(prometheus):
    return [(name, time_s, float(value)) for name, time_s, value in prometheus.samples(SELECTOR)]


def settled(prometheus, exporter):
    """Stop the scrapes for good, and wait until the server shows the last of them."""
    exporter.status = 500
    prometheus.until(
        lambda: b'"health":"down"' in (prometheus.get("/api/v1/targets") or b""), "it is down"
    )


def test_the_store_has_exactly_what_the_server_has(store, prometheus, exporter, scraped):
    """Polled while scrapes go on, then after an outage of ours, then once more for nothing."""
    server = Prometheus(url=prometheus.url, cluster="lab", backfill_s=600, overlap_s=1, settle_s=0)
    scraped(5)
    assert server.probe() == []
    poll(store, server)
    scraped(3)
    poll(store, server)
    scraped(12)  # nobody polls
    settled(prometheus, exporter)
    poll(store, server)

    assert stored(store) == served(prometheus)
    assert len(stored(store)) >= 40
    assert poll(store, server) == 0
    gpus = store.read("select cluster, node, gpu_index, pci_bus_id, gpu_model from raw.gpus")
    assert gpus.rows() == [("lab", "gpu-a01", 0, "00000000:19:00.0", "NVIDIA H100 80GB HBM3")]


def test_while_the_exporter_is_down_nothing_is_made_up(store, prometheus, exporter, scraped):
    """query_range would repeat the last value for five minutes; the raw samples end."""
    server = Prometheus(url=prometheus.url, backfill_s=600, settle_s=0)
    scraped(3)
    settled(prometheus, exporter)
    since_s = time.time()
    failed = len(exporter.asked)
    prometheus.until(lambda: len(exporter.asked) >= failed + 5, "it failed to scrape five times")
    poll(store, server)

    assert stored(store) == served(prometheus)
    assert all(time_s < since_s for _, time_s, _ in stored(store))
    (finding,) = server.probe()
    assert f"target http://{exporter.address}/metrics of job dcgm is down: " in finding


ENGINE = 'engine="0",model_name="m"'
PAGE = f"""\
vllm:num_requests_running{{{ENGINE}}} 3
vllm:time_to_first_token_seconds_bucket{{{ENGINE},le="+Inf"}} 5
vllm:time_to_first_token_seconds_count{{{ENGINE}}} 5
vllm:time_to_first_token_seconds_sum{{{ENGINE}}} 2
"""
SERVED = """select distinct endpoint, value, observations from raw.serving_samples
    inner join raw.serving_histograms using (endpoint)
    where serving_samples.metric = 'requests_running' and isinf(le_s)"""


def test_engines_are_those_of_the_page_that_the_server_scrapes(store, prometheus, exporter):
    exporter.text = PAGE
    failed = len(exporter.asked)
    prometheus.until(lambda: len(exporter.asked) >= failed + 15, "it scrapes for three seconds")

    poll(store, Prometheus(
        url=prometheus.url, cluster="lab", settle_s=0, overlap_s=10, backfill_s=10,
        serving_interval_s=1, serving_histogram_interval_s=1,
    ))  # fmt: skip

    assert store.read(SERVED).rows() == [(exporter.address, 3.0, 5)]
    assert store.read("from raw.rejects").is_empty()


def test_a_real_server_gives_the_host_of_a_real_exporter(store, prometheus_of, node_exporter):
    """Cores are added up by the server; the row has the host's own name, not its address."""
    server = prometheus_of("node", node_exporter, interval="1s")
    source = Prometheus(
        url=server.url, cluster="lab", settle_s=0, host_interval_s=1, overlap_s=10, backfill_s=10
    )
    server.until(lambda: len(server.samples("node_load1[1m]")) >= 4, "four scrapes")
    poll(store, source)

    hosts = store.read(
        "select distinct cluster, node, memory_total_bytes > memory_available_bytes "
        "from raw.node_samples"
    )
    assert hosts.rows() == [("lab", platform.node(), True)]
    counters = store.read(
        "select cpu_busy_s, cpu_total_s from raw.node_samples "
        "where cpu_total_s is not null order by ts"
    ).rows()
    assert len(counters) >= 3
    assert all(  # the kernel takes back a little of what it counted as waiting for disks
        -0.1 <= later[0] - before[0] <= later[1] - before[1] + 0.1
        for before, later in pairwise(counters)
    )
    assert store.read("select count(*) from raw.rejects").item() == 0


WRITES = """remote_write:
  - url: {url}/api/v1/write
    authorization: {{credentials: s3cret}}
    queue_config: {{max_samples_per_send: 1, min_shards: 4}}  # each scrape in several requests
"""


@pytest.fixture
def source(tmp_path, monkeypatch, configured):
    """Give the source behind the route, whose senders have a token."""
    monkeypatch.setenv("SENDERS", "s3cret")
    configured('[receive]\ntoken_env = "SENDERS"\n')
    return RemoteWrite(Spool(tmp_path / "received"), cluster="lab")


def arrived(source):
    """Return name, time and value of all samples that wait."""
    found = [source.spool.read(path) for path, _ in source.spool.waiting()]
    return sorted(
        (one.labels[NAME], at / 1000, value)
        for request in found
        for one in request.series
        for at, value in one.points
    )


def test_the_store_has_exactly_what_the_server_wrote(store, source, prometheus_of, exporter):
    """Written while scrapes go on, then while we refuse, then what was kept meanwhile."""
    with receiving([Collector(source, source.name)]) as url:
        prometheus = prometheus_of("dcgm", exporter.address, more=WRITES.format(url=url))

        scraped = partial(let_scrape, prometheus, exporter)
        scraped(5)
        prometheus.until(lambda: arrived(source), "samples arrive")
        source.spool.max_bytes = 0
        scraped(10)
        source.spool.max_bytes = 1 << 26
        exporter.status = 500
        prometheus.until(
            lambda: arrived(source) == served(prometheus) != [], "all samples have arrived"
        )
        expected = served(prometheus)
        prometheus.stop()  # while somebody takes what it writes at the end

    later = datetime.now(UTC).replace(tzinfo=None) + timedelta(minutes=1)
    for batch in source.poll({}, later):
        store.load(batch)
    assert stored(store) == expected
    assert len(expected) >= 30
    assert store.read("select * from raw.rejects").is_empty()
