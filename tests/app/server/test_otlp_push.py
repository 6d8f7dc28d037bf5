"""Metrics are pushed by OTLP: the samples of `/metrics`, and what a server that fails does."""

import gzip
import re
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from tests.app.conftest import settings_of
from tests.app.receivers import free_port, web
from tests.app.served import receiving, serving
from tests.app.server.conftest import HOUR_S
from tests.tables import refuses
from tests.until import until

from goodput_app.cli import serve
from goodput_app.cli.doctor.reports import otlp_findings
from goodput_app.server.metrics.exposition import Metrics
from goodput_app.server.metrics.families import FAMILIES, Samples
from goodput_app.server.metrics.otlp import NS, Request
from goodput_app.server.metrics.push import Pusher, pushing, resource
from goodput_messages.otlp_settings import OtlpSettings
from goodput_queries.errors import GoodputError
from goodput_queries.evidence.plausible import utc_now

PAGE = Path(__file__).parents[3] / "docs" / "metrics.md"
AT_NS = 1_790_000_000 * NS
TOKEN = "s3cret-of-the-collector"  # noqa: S105 -- made up


def read(body):
    """Return the metrics of a request by name."""
    request = metrics_service_pb2.ExportMetricsServiceRequest.FromString(body)
    (of_resource,) = request.resource_metrics
    (scope,) = of_resource.scope_metrics
    return {metric.name: metric for metric in scope.metrics}


def plain(attributes):
    return {one.key: one.value.string_value for one in attributes}


def points(metric):
    return [
        (plain(one.attributes), one.as_double)
        for one in getattr(metric, metric.WhichOneof("data")).data_points
    ]


def counted(value, name="goodput_ingested_rows_total", **labels):
    """Return samples with one counter."""
    found = Samples()
    found.add(name, [(labels or {"source": "nvml"}, value)])
    return found


@pytest.fixture(scope="module")
def metrics(scraped_store):
    found = Metrics(scraped_store, first_wait_s=60)
    found.answer()
    return found


def test_a_request_has_each_sample_of_metrics_by_names_and_labels_of_opentelemetry(metrics):
    samples = metrics.samples()
    found = read(Request({}).of(samples, AT_NS))

    assert set(found) == {FAMILIES[name].otel_name for name in samples.metrics}
    for name, metric in samples.metrics.items():
        family, pushed = FAMILIES[name], found[FAMILIES[name].otel_name]
        assert (pushed.unit, pushed.description) == (family.otel_unit, family.meaning)
        assert [value for _, value in points(pushed)] == [s.value for s in metric.samples]
        assert pushed.WhichOneof("data") == ("sum" if family.kind == "counter" else "gauge")
    of_gpus = {"goodput.cluster": "atlas", "hw.model": "NVIDIA H200"}
    assert (of_gpus, 8.0) in points(found["goodput.gpu.count"])
    assert all("db.collection.name" in of for of, _ in points(found["goodput.table.row.count"]))
    time = found["goodput.gpu.time"].sum
    (start,) = samples.metrics["goodput_counted_from_timestamp_seconds"].samples
    assert (time.is_monotonic, time.aggregation_temporality) == (True, 2)
    assert {one.start_time_unix_nano for one in time.data_points} == {int(start.value) * NS}
    assert start.value % HOUR_S == 0, "it counts since the first counted hour"


def test_names_are_each_of_one_metric_and_units_are_of_ucum():
    names = [family.otel_name for family in FAMILIES.values()]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"goodput(\.[a-z][a-z_]*)+", name) for name in names)
    assert all(re.fullmatch(r"s|1|By|\{[a-z]+\}", one.otel_unit) for one in FAMILIES.values())


def test_another_counter_counts_since_it_was_first_pushed_or_went_back():
    request = Request({})
    starts = []
    for second, value in enumerate((5, 7, 3, 4)):
        (metric,) = read(request.of(counted(value), AT_NS + second * NS)).values()
        (point,) = metric.sum.data_points
        starts.append((point.start_time_unix_nano - AT_NS) // NS)

    assert starts == [0, 0, 1, 1]


def test_the_resource_is_the_same_after_a_restart_and_settings_add_to_it():
    own = resource(OtlpSettings("http://localhost"), "fleet.duckdb")
    given = OtlpSettings("http://localhost", attributes={"service.name": "gpus", "a": "b"})

    assert own == resource(OtlpSettings("http://localhost"), "fleet.duckdb")
    assert own["service.name"] == "goodput"
    assert resource(given, "fleet.duckdb") == own | given.attributes
    assert resource(given, "other.duckdb")["service.instance.id"] != own["service.instance.id"]


def test_goodput_takes_a_push(metrics, scraped_store, configured, monkeypatch, tmp_path):
    """It reads the request and says that these are of no exporter that it reads."""
    monkeypatch.setenv("SENDERS", TOKEN)
    configured('[receive]\ntoken_env = "SENDERS"\n[ingest]\ncluster = "lab"\n')
    sources = {one.origin: one for one in serve.received(str(tmp_path / "goodput.duckdb"))}
    with receiving(sources.values()) as url:
        to = OtlpSettings(f"{url}/v1/metrics", token_env="SENDERS")
        Pusher(scraped_store, metrics, to).push()
        wrong = OtlpSettings(f"{url}/v1/metrics")
        said = r"answered 401 .*Check token and secret of \[otlp\]"
        with pytest.raises(GoodputError, match=said):
            Pusher(scraped_store, metrics, wrong).push()

    source = sources["/v1/metrics"].source
    list(source.poll({}, utc_now() + timedelta(minutes=1)))
    series = sum(len(metric.samples) for metric in metrics.samples().collect())
    assert f"of {series} series in requests 0 were read, 0 rejected" in source.skipped
    assert "of no exporter that is read (goodput.allocation.ratio, " in source.skipped


def test_a_push_has_the_headers_of_the_settings(metrics, scraped_store, monkeypatch):
    monkeypatch.setenv("KEY", TOKEN)
    with web() as hook:
        to = OtlpSettings(
            f"{hook.url}/otlp/v1/metrics", token_env="KEY", token_header="api-key",
            headers={"X-Scope-OrgID": "hpc"},
        )  # fmt: skip
        Pusher(scraped_store, metrics, to).push()

    ((headers, body),) = hook.posts
    assert hook.paths == ["/otlp/v1/metrics"]
    assert headers["api-key"] == TOKEN
    assert (headers["x-scope-orgid"], headers["content-encoding"]) == ("hpc", "gzip")
    assert headers["content-type"] == "application/x-protobuf"
    assert "authorization" not in headers
    assert "webhook-id" not in headers
    assert "goodput.ratio" in read(gzip.decompress(body))


def test_a_failure_is_one_warning_and_is_shown_until_a_push_is_taken(site_to_push, caplog):
    with web() as hook:
        hook.answers = [(503, {"Retry-After": "900"}), (503, {}), (200, {})]
        pusher = Pusher(site_to_push, Metrics(site_to_push), OtlpSettings(f"{hook.url}/v1/metrics"))
        waits = [pusher.look(), pusher.look()]
        shown = Metrics(site_to_push).answer()[0].decode()
        waits.append(pusher.look())

    of_push = f'{{origin="{hook.url}",source="otlp-push"}}'
    assert f"goodput_live_source_failures{of_push} 2.0" in shown
    assert waits == [900, 60, 60]
    assert [one.getMessage() for one in caplog.records] == [
        f"metrics by OTLP: {hook.url} answered 503.",
        f"metrics are pushed to {hook.url} again.",
    ]
    assert "otlp-push" not in Metrics(site_to_push).answer()[0].decode()


def test_a_server_that_fails_for_weeks_or_asks_for_years_is_tried_again(site_to_push):
    with web() as hook:
        hook.answers = [(503, {"Retry-After": "9" * 20}), (503, {})]
        pusher = Pusher(site_to_push, Metrics(site_to_push), OtlpSettings(hook.url))
        asked = pusher.look()
        pusher._status = replace(pusher._status, failures=5000)
        assert (asked, pusher.look()) == (3600, 600)


def test_data_points_that_are_rejected_are_shown_and_hold_up_no_other(site_to_push, caplog):
    answer = metrics_service_pb2.ExportMetricsServiceResponse()
    answer.partial_success.rejected_data_points = 2
    answer.partial_success.error_message = "too many series"
    with web() as hook:
        hook.said = answer.SerializeToString()
        pusher = Pusher(site_to_push, Metrics(site_to_push), OtlpSettings(hook.url))
        waits = [pusher.look(), pusher.look()]

    (said,) = (one.getMessage() for one in caplog.records)
    assert waits == [60, 60]
    assert said == f"metrics by OTLP: {hook.url} rejected 2 data points (too many series)."
    assert site_to_push.read("select failures, error from marts.live_sources").rows() == [
        (2, said.removeprefix("metrics by OTLP: "))
    ]


def test_a_server_that_is_away_holds_up_nothing(site_to_push):
    to = OtlpSettings(f"http://127.0.0.1:{free_port()}/v1/metrics")
    with pushing(site_to_push, Metrics(site_to_push), to):
        assert site_to_push.build().is_empty()


@pytest.mark.machine
def test_the_server_pushes_while_it_serves(tmp_path):
    with web() as hook:
        config = tmp_path / "goodput.toml"
        config.write_text(f'[otlp]\nurl = "{hook.url}/v1/metrics"\nevery_s = 5\n')
        with serving(tmp_path / "fleet.duckdb", GOODPUT_CONFIG=str(config)):
            until(lambda: len(hook.posts) >= 2, "it pushed twice")

    assert "goodput.info" in read(gzip.decompress(hook.posts[-1][1]))


def test_doctor_says_whether_the_server_answers_and_which_packages_lack(configured, monkeypatch):
    with web() as hook:
        configured(f'[otlp]\nurl = "{hook.url}/v1/metrics"\n')
        assert list(otlp_findings()) == [("otlp", "ok", f"{hook.url} answers", "")]
    ((_, status, sentence, _),) = otlp_findings()
    assert (status, sentence) == ("problem", f"{hook.url}: no connection (Connection refused).")

    monkeypatch.setitem(sys.modules, "opentelemetry.proto.collector.metrics.v1", None)
    ((_, status, sentence, _),) = otlp_findings()
    assert status == "problem"
    assert sentence.startswith("OTLP needs packages that are not installed: ")


@pytest.fixture
def site_to_push(own_store, built_empty):
    return own_store(copy_of=built_empty)


OTLP = '[otlp]\nurl = "https://otel.example.org/v1/metrics"\n'
test_settings_that_make_no_sense_are_refused = refuses(
    GoodputError, settings_of, ("[otlp]", "'otlp.url' is not a URL"),
    (f"{OTLP}every_s = 1", "'otlp.every_s' is 1, expected 5 to 86400"),
    (f'{OTLP}token_env = "A"\ntoken_file = "B"', "'otlp' needs one of"),
    ('[otlp]\nurl = "http://otel.example.org"\ntoken_env = "A"', "send the token in the clear"),
    (f'{OTLP}[otlp.headers]\nAuthorization = "Basic 1"', "would be a secret in a settings file"),
    (f'{OTLP}[otlp.headers]\nContent-Type = "a"', "'content-type', which the protocol decides"),
    (f"{OTLP}[otlp.attributes]\nrack = 1", "expected a table of texts in quotes"),
    (f'{OTLP}endpoint = "a"', "there is no setting 'otlp.endpoint'; known: otlp.url"),
)  # fmt: skip


def test_the_documentation_lists_the_name_unit_and_type_of_each_metric():
    row = re.compile(
        r"^\| `(goodput_\w+)` \| `(goodput\.[\w.]+)` \| `(\S+)` \| (\w+) \|$", re.MULTILINE
    )

    assert row.findall(PAGE.read_text(encoding="utf-8")) == [
        (name, one.otel_name, one.otel_unit, "sum" if one.kind == "counter" else "gauge")
        for name, one in FAMILIES.items()
    ]
