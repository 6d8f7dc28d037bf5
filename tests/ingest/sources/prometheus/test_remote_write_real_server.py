"""A real Prometheus that writes to us: what it has is what the store has, after an outage, too."""

from datetime import UTC, datetime, timedelta

import pytest
from tests.app.receiving import receiving
from tests.ingest.received.writers import POWER, UTIL

from goodput_app.settings import settings
from goodput_ingest.live.config import Collector
from goodput_ingest.prometheus_api.answer import NAME
from goodput_ingest.received.remote_write import RemoteWrite
from goodput_ingest.received.spool import Spool

pytestmark = pytest.mark.machine
LABELS = '{gpu="0",UUID="GPU-6f0c1c2e-3b7a-4d51-9a0e-0d1c2b3a4f50",Hostname="gpu-a01"}'
SELECTOR = f'{{__name__=~"{UTIL}|{POWER}"}}[1h]'
WRITES = """remote_write:
  - url: {url}/api/v1/write
    authorization: {{credentials: s3cret}}
    queue_config: {{max_samples_per_send: 1, min_shards: 4}}  # each scrape in several requests
"""


@pytest.fixture
def source(tmp_path, monkeypatch):
    """Give the source behind the route, whose senders have a token."""
    (tmp_path / "goodput.toml").write_text('[receive]\ntoken_env = "SENDERS"\n')
    monkeypatch.setenv("SENDERS", "s3cret")
    monkeypatch.setenv("GOODPUT_CONFIG", str(tmp_path / "goodput.toml"))
    settings.cache_clear()
    yield RemoteWrite(Spool(tmp_path / "received"), cluster="lab")
    settings.cache_clear()


def arrived(source):
    """Return name, time and value of all samples that wait."""
    found = [source.spool.read(path) for path, _ in source.spool.waiting()]
    return sorted(
        (one.labels[NAME], at / 1000, value)
        for request in found
        for one in request.series
        for at, value in one.points
    )


def stored(store):
    """Return (name, time, value) as the server would say it."""
    rows = store.read("select epoch_ms(ts), gpu_busy_ratio, power_w from raw.gpu_samples").rows()
    return sorted(
        [(UTIL, ms / 1000, round(busy * 100)) for ms, busy, _ in rows if busy is not None]
        + [(POWER, ms / 1000, watts) for ms, _, watts in rows if watts is not None]
    )


def test_the_store_has_exactly_what_the_server_wrote(store, source, prometheus_of, exporter):
    """Written while scrapes go on, then while we refuse, then what was kept meanwhile."""
    exporter.text = f"{UTIL}{LABELS} 0\n{POWER}{LABELS} 70.5\n"
    with receiving([Collector(source, source.name)]) as url:
        prometheus = prometheus_of("dcgm", exporter.url, more=WRITES.format(url=url))

        def scraped(times):
            for _ in range(times):
                before = exporter.scrapes
                exporter.text = f"{UTIL}{LABELS} {before % 101}\n{POWER}{LABELS} {70 + before}.5\n"
                prometheus.until(lambda before=before: exporter.scrapes > before, "it scrapes")

        def served():
            return [(n, at, float(value)) for n, at, value in prometheus.samples(SELECTOR)]

        scraped(5)
        prometheus.until(lambda: arrived(source), "samples arrive")
        source.spool.max_bytes = 0
        scraped(10)
        source.spool.max_bytes = 1 << 26
        exporter.is_failing = True
        prometheus.until(lambda: arrived(source) == served() != [], "all samples have arrived")
        expected = served()
        prometheus.stop()  # while somebody takes what it writes at the end

    later = datetime.now(UTC).replace(tzinfo=None) + timedelta(minutes=1)
    for batch in source.poll({}, later):
        store.load(batch)
    assert stored(store) == expected
    assert len(expected) >= 30
    assert store.read("select * from raw.rejects").is_empty()
