"""What senders post: OpenTelemetry's own exporter over HTTP, and who is refused."""

import contextlib
import gzip
import sys
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from tests.app.served import receiving
from tests.ingest.received.writers import POWER, UTIL, WRITE, gpu, packed, written
from tests.tables import each

from goodput_app.cli import serve
from goodput_app.server import asgi
from goodput_ingest.live.config import Collector
from goodput_ingest.live.store_lease import collector_lock
from goodput_ingest.received.otlp import OtlpMetrics
from goodput_ingest.sources.dcgm.live import DcgmLive
from goodput_queries.errors import GoodputError

TOKEN = "s3cret-of-senders"  # noqa: S105 -- made up
AUTHORIZED = {"authorization": f"Bearer {TOKEN}"}
GPU = {"hw.id": "GPU-6f0c1c2e-3b7a-4d51-9a0e-0d1c2b3a4f50", "hw.type": "gpu", "hw.model": "H100"}


@pytest.fixture
def site(tmp_path, monkeypatch, configured):
    """Give a folder with settings that receive."""
    monkeypatch.setenv("SENDERS", TOKEN)
    configured('[receive]\ntoken_env = "SENDERS"\n[ingest]\ncluster = "lab"\n')
    return tmp_path


@pytest.fixture
def sources(site):
    """Give what the server polls, by path."""
    return {one.origin: one for one in serve.received(str(site / "goodput.duckdb"))}


@pytest.fixture
def url(sources):
    """Give the address of a server with the routes of senders alone."""
    with receiving(sources.values()) as found:
        yield found


@contextlib.contextmanager
def meters(url, resource=None, **options):
    """Yield a meter whose instruments are exported once, at the end of the block."""
    exporter = OTLPMetricExporter(f"{url}/v1/metrics", headers=AUTHORIZED, timeout=20, **options)
    reader = PeriodicExportingMetricReader(exporter, export_interval_millis=1e9)
    provider = MeterProvider([reader], Resource(resource or {}))
    yield provider.get_meter("exporter")
    provider.shutdown()  # which exports


def load(store, source):
    """Load what has arrived as a poll of a minute later does."""
    later = datetime.now(UTC).replace(tzinfo=None) + timedelta(minutes=1)
    for batch in source.poll({}, later):
        store.load(batch)


@pytest.mark.parametrize("compression", [Compression.NoCompression, Compression.Gzip])
def test_the_exporter_of_opentelemetry_is_read(store, sources, url, compression):
    resource = {"host.name": "gpu-a01", "service.name": "openlit", "service.instance.id": "4f1c"}
    with meters(url, resource, compression=compression) as meter:
        meter.create_gauge("hw.gpu.utilization", "1").set(0.5, GPU)
        meter.create_up_down_counter("hw.gpu.memory.usage", "By").add(2**30, GPU)
        meter.create_counter("app.requests").add(1)
    load(store, sources["/v1/metrics"].source)

    columns = "source, gpu_uuid, gpu_busy_ratio, memory_used_bytes"
    samples = store.read(f"select {columns} from raw.gpu_samples").rows()
    gpus = store.read("select cluster, node, gpu_uuid from raw.gpus").rows()
    assert samples == [("otlp", GPU["hw.id"], 0.5, 2**30)]
    assert gpus == [("lab", "gpu-a01", GPU["hw.id"])]
    assert "of no exporter that is read (app.requests)" in sources["/v1/metrics"].source.skipped


def test_a_histogram_is_read_as_prometheus_has_it(store, sources, url):
    where = {"host.name": "gpu-a01", "service.instance.id": "10.0.0.1:8000"}
    with meters(url, where) as meter:
        found = meter.create_histogram(
            "vllm_time_to_first_token_seconds", explicit_bucket_boundaries_advisory=[0.1, 1.0]
        )
        for value in (0.05, 0.5, 0.5, 3.0):
            found.record(value, {"model_name": "llama", "engine": "0"})
    load(store, sources["/v1/metrics"].source)

    columns = "endpoint, engine, model, le_s, observations, sum_s"
    rows = store.read(f"select {columns} from raw.serving_histograms order by le_s").rows()
    of = ("10.0.0.1:8000", "0", "llama")
    assert rows == [(*of, 0.1, 1, None), (*of, 1.0, 3, None), (*of, float("inf"), 4, 4.05)]


def test_json_is_answered_in_json(sources, url):
    body = {"resourceMetrics": [{"scopeMetrics": [{"metrics": [{
        "name": "hw.gpu.io", "sum": {"aggregationTemporality": 1, "dataPoints": [{"asInt": "5"}]},
    }]}]}]}  # fmt: skip
    answer = httpx.post(f"{url}/v1/metrics", json=body, headers=AUTHORIZED, trust_env=False)

    assert answer.status_code == 200
    assert answer.json()["partialSuccess"]["rejectedDataPoints"] == "1"
    assert len(sources["/v1/metrics"].source.spool.waiting()) == 1
    said = "the bearer token is missing or not that of [receive]."
    refused = httpx.post(f"{url}/v1/metrics", json={}, trust_env=False)
    assert refused.json() == {"code": 16, "message": said}, "a status of gRPC"


@each(
    ({}, b"", 401), ({"authorization": "Bearer wrong"}, b"", 401),
    (AUTHORIZED | WRITE, bytes((16 << 20) + 1), 413), (AUTHORIZED, b"", 415),
    (AUTHORIZED | {"content-type": "application/x-protobuf"}, b"\xff", 400),
)  # fmt: skip
def test_who_or_what_is_not_taken_is_told(sources, url, headers, body, status):
    for path, one in sources.items():
        answer = httpx.post(url + path, content=body, headers=headers, trust_env=False)
        assert answer.status_code == status, path
        assert not one.source.spool.waiting()


def test_gzip_that_unpacks_to_too_much_is_refused(sources):
    source = sources["/v1/metrics"].source
    headers = {"content-type": "application/x-protobuf", "content-encoding": "gzip"}
    with pytest.raises(GoodputError, match="at most 16777216 bytes"):
        source.receive(headers, gzip.compress(bytes(1 << 25)))
    with pytest.raises(GoodputError, match="its gzip has no end"):
        source.receive(headers, gzip.compress(b"abc" * 99)[:-9])


def test_a_full_folder_is_answered_with_when_to_send_again(sources, url, monkeypatch):
    monkeypatch.setattr(sources["/api/v1/write"].source.spool, "max_bytes", 4_096)
    body = packed(written((gpu(UTIL), [(0, 50.0)]), (gpu(POWER), [(0, 400.0)])))
    answers = [
        httpx.post(f"{url}/api/v1/write", content=body, headers=AUTHORIZED | WRITE, trust_env=False)
        for _ in range(2)
    ]

    assert [one.status_code for one in answers] == [204, 503]
    assert answers[1].headers["retry-after"] == "5"


def test_nothing_is_received_without_a_token_or_a_place_to_wait(site, monkeypatch, configured):
    with pytest.raises(GoodputError, match="needs a database in a file"):
        serve.received(":memory:")

    configured("")
    assert serve.received(str(site / "goodput.duckdb")) == []
    configured('[receive]\ntoken_env = "SENDERS"\n')
    monkeypatch.delenv("SENDERS")
    with pytest.raises(GoodputError, match="SENDERS is empty or not set"):
        serve.received(str(site / "goodput.duckdb"))


def test_without_its_packages_otlp_says_what_to_install(sources, monkeypatch):
    monkeypatch.setitem(sys.modules, metrics_service_pb2.__package__, None)
    with pytest.raises(GoodputError, match="pip install"):
        sources["/v1/metrics"].source.probe()
    with pytest.raises(GoodputError) as refused:
        sources["/v1/metrics"].source.receive({"content-type": "application/json"}, b"{}")
    assert refused.value.status == 501
    assert isinstance(sources["/v1/metrics"].source, OtlpMetrics)


def test_what_is_received_is_loaded_though_another_process_collects(store, sources, caplog):
    asked = Collector(DcgmLive(urls=["http://127.0.0.1:9"]), "dcgm")
    with (
        collector_lock(store.path),
        asgi._collecting(store, [asked, *sources.values()]) as collection,
    ):
        names = [thread.name for thread in collection._threads]

    assert names == ["collect remote-write (/api/v1/write)", "collect otlp (/v1/metrics)"]
    assert "asks no live source" in caplog.text
