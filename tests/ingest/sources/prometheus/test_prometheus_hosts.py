"""Hosts: a real node_exporter, read through a real Prometheus."""

import platform
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from tests.ingest.fake_live import reached

from goodput_ingest.sources.prometheus import Prometheus


def now():
    return datetime.now(UTC).replace(tzinfo=None)


def poll(store, source):
    return sum(store.load(batch).rows_new for batch in source.poll(reached(store), now()))


def cpu_counters(store):
    return store.read(
        "select cpu_busy_s, cpu_total_s from raw.node_samples "
        "where cpu_total_s is not null order by ts"
    ).rows()


@pytest.mark.machine
def test_a_real_server_gives_the_host_that_a_real_exporter_reports(
    store, prometheus_of, node_exporter
):
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
    counters = cpu_counters(store)
    assert len(counters) >= 3
    assert all(  # the kernel takes back a little of what it counted as waiting for disks
        -0.1 <= later[0] - before[0] <= later[1] - before[1] + 0.1
        for before, later in pairwise(counters)
    )
    assert store.read("select count(*) from raw.rejects").item() == 0
