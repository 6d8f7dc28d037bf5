"""`/metrics`: every metric is declared, both formats parse, Grafana's queries answer, exemplars."""

import json
import re
import time
from pathlib import Path

import polars as pl
import pytest
from msgspec import structs
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as plain
from tests.app.server.grafana import DASHBOARDS, asked, queries, scraping
from tests.tables import gives

from goodput_app.server.metrics import exposition, ledger
from goodput_app.server.metrics.exemplars import CHARS_MAX, COUNTER, add_exemplars
from goodput_app.server.metrics.exposition import Metrics
from goodput_app.server.metrics.families import FAMILIES, LABEL_MAX_CHARS, Samples
from goodput_app.server.metrics.open_findings import WINDOW_MS, OpenFindings
from goodput_app.server.metrics.otlp import NS, Request
from goodput_app.settings import MetricsSettings, Settings
from goodput_queries.catalog.rules import rules
from goodput_queries.counted_hours import OTHER
from goodput_queries.evidence.batch import Batch
from goodput_queries.scope import Scope

PAGE = Path(__file__).parents[3] / "docs" / "metrics.md"
ACCEPTS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"


@pytest.fixture(scope="module")
def answer(scraped_store):
    text, content_type = Metrics(scraped_store, first_wait_s=60).answer()
    assert content_type == "text/plain; version=0.0.4; charset=utf-8"
    return text.decode()


def samples(text, name):
    """Return the samples of a metric by label values, in the order of its declaration."""
    return {
        tuple(sample.labels[label] for label in FAMILIES[name].labels): sample.value
        for family in plain(text)
        for sample in family.samples
        if sample.name == name
    }


def test_every_sample_is_of_a_declared_metric_with_its_labels(answer):
    found = {
        (sample.name, frozenset(sample.labels))
        for family in plain(answer)
        for sample in family.samples
    }

    assert found <= {(name, frozenset(family.labels)) for name, family in FAMILIES.items()}
    unknown = {"goodput_program_ratio"}  # no step has a breakdown: it is left out
    assert {name for name, _ in found} == set(FAMILIES) - unknown


def test_the_documentation_lists_every_metric():
    row = re.compile(r"^\| `(goodput_\w+)` \| (\w+) \| ([\w, ]*) \| (.+) \|$", re.MULTILINE)
    assert row.findall(PAGE.read_text(encoding="utf-8")) == [
        (name, family.kind, ", ".join(family.labels), family.meaning)
        for name, family in FAMILIES.items()
    ]


def test_a_scraper_gets_openmetrics_where_it_asks_for_it(scraped_store, answer, monkeypatch):
    monkeypatch.setattr(OpenFindings, "add_to", lambda *_: None)
    text, content_type = Metrics(scraped_store).answer(ACCEPTS)

    def values(families):
        found = {(s.name, frozenset(s.labels.items())) for f in families for s in f.samples}
        return {(name, labels) for name, labels in found if "findings" not in name}

    assert content_type.startswith("application/openmetrics-text; version=1.0.0")
    assert values(openmetrics(text.decode())) == values(plain(answer))


def test_clusters_and_teams_have_ratios_of_their_own_and_one_without_gpus_has_none(answer):
    goodput = samples(answer, "goodput_ratio")
    high = samples(answer, "goodput_high_ratio")
    ratio, cost = samples(answer, "goodput_team_ratio"), samples(answer, "goodput_team_cost")

    assert set(goodput) == {("lab",), ("atlas",)}
    assert 0 < goodput["atlas",] <= high["atlas",] <= 1
    assert 'cluster="elsewhere"' not in answer
    assert {team for _, team in ratio} == {"nlp", "vision", "speech"}
    assert ratio["atlas", "nlp"] > ratio["atlas", "vision"] == 0
    assert all(labels[2] == "USD" for labels in cost)


def test_counters_and_gauges_add_up_to_the_capacity(answer):
    counted = samples(answer, "goodput_gpu_seconds_total")
    (until_s,) = samples(answer, "goodput_counted_until_timestamp_seconds").values()
    (from_s,) = samples(answer, "goodput_counted_from_timestamp_seconds").values()
    window = samples(answer, "goodput_window_gpu_seconds")
    capacity = samples(answer, "goodput_capacity_gpu_seconds")

    assert sum(counted.values()) == 8 * (until_s - from_s) >= 8 * 23 * 3600
    assert {labels[0] for labels in counted} == {"atlas"}
    assert sum(window.values()) == pytest.approx(sum(capacity.values()))
    assert capacity["atlas",] == 8 * 24 * 3600
    assert samples(answer, "goodput_gpus") == {
        ("atlas", "NVIDIA H200"): 8,
        ("lab", "NVIDIA H200"): 1,
    }


def test_teams_beyond_the_limit_are_one_series(scraped_store, monkeypatch):
    given = MetricsSettings(label_values=1)
    monkeypatch.setattr(OpenFindings, "add_to", lambda *_: None)
    monkeypatch.setattr(ledger, "settings", lambda: structs.replace(Settings(), metrics=given))
    text = Metrics(scraped_store).answer()[0].decode()

    assert len(samples(text, "goodput_team_ratio")) == 2
    assert OTHER in {team for _, team in samples(text, "goodput_team_ratio")}
    folded = samples(text, "goodput_folded_label_values")
    assert folded == {("atlas", "team"): 2, ("atlas", "partition"): 1, ("atlas", "model"): 0}


def test_the_ledger_is_read_once_a_build(scraped_store, monkeypatch):
    reads = []
    original = scraped_store.read

    def counting(sql, *given, **more):
        reads.append(sql)
        return original(sql, *given, **more)

    monkeypatch.setattr(scraped_store, "read", counting)
    metrics = Metrics(scraped_store)
    monkeypatch.setattr(OpenFindings, "add_to", lambda *_: None)
    first = samples(metrics.answer()[0].decode(), "goodput_ratio")
    begun = len(reads)
    assert first == samples(metrics.answer()[0].decode(), "goodput_ratio")
    assert len(reads) - begun == 5
    assert not any("ledger" in sql for sql in reads[begun:])


def test_names_that_are_cut_to_the_same_label_are_one_sample():
    found = Samples()
    long = "x" * LABEL_MAX_CHARS

    found.add("goodput_ingested_rows_total", [({"source": long + end}, 1) for end in "ab"])
    found.add("goodput_ratio", [({"cluster": "c"}, None), ({"cluster": "d"}, float("nan"))])

    (metric,) = found.collect()
    assert [(sample.labels["source"], sample.value) for sample in metric.samples] == [(long, 2)]
    with pytest.raises(KeyError):
        Samples().add("goodput_ratio", [({"cluster": "c", "node": "n"}, 1)])  # not declared so


def test_a_database_without_evidence_has_no_ratios(store):
    store.load(Batch("gpus", pl.DataFrame(), "inventory", "file", "1"))

    text = Metrics(store).answer()[0].decode()

    assert samples(text, "goodput_ingested_rows_total") == {("inventory",): 0}
    assert "goodput_ratio" not in text
    assert "goodput_data_timestamp_seconds" not in text


def test_origins_beyond_the_limit_are_one_series_with_the_worst(scraped_store, monkeypatch):
    monkeypatch.setattr(OpenFindings, "add_to", lambda *_: None)
    monkeypatch.setattr(exposition, "ORIGINS_MAX", 1)
    names = {"source": "job-log", "interval_s": 30.0, "rows_last_hour": 2}
    live = pl.DataFrame(
        [{**names, "origin": f"{n}.log", "age_s": 10.0 * n, "failures": n} for n in range(4)]
    )
    read = Metrics._read
    monkeypatch.setattr(Metrics, "_read", lambda it, sql: live if "live_" in sql else read(it, sql))

    text = Metrics(scraped_store).answer()[0].decode()

    for name, first, others in (
        ("age_seconds", 0, 30), ("failures", 0, 3), ("rows_last_hour", 2, 6),
    ):  # fmt: skip
        assert samples(text, f"goodput_live_source_{name}") == {
            ("job-log", "0.log"): first,
            ("job-log", "other"): others,
        }


@pytest.mark.parametrize("name", DASHBOARDS)
def test_queries_name_metrics_and_labels_that_there_are(name):
    for query in queries(name):
        found = set(re.findall(r"goodput_\w+", query))
        labels = {label for metric in found for label in FAMILIES[metric].labels}
        used = set(re.findall(r"(\w+)=~?\"", query))
        used |= {
            label
            for listed in re.findall(r"(?:by|on|group_left) \(([^)]*)\)", query)
            for label in listed.split(", ")
        }

        assert used - labels <= {"job", "instance"}, query


@pytest.mark.parametrize("name", DASHBOARDS)
def test_a_dashboard_is_of_grafanas_schema(name):
    """Its types read each field and write the same: none is unknown to them or of another kind."""
    pytest.importorskip("grafana_foundation_sdk", reason="grafana-foundation-sdk is not installed")
    from grafana_foundation_sdk.cog.encoder import JSONEncoder  # noqa: PLC0415 -- see above
    from grafana_foundation_sdk.cog.plugins import register_default_plugins  # noqa: PLC0415
    from grafana_foundation_sdk.models.dashboard import Dashboard  # noqa: PLC0415

    register_default_plugins()
    read = Dashboard.from_json(DASHBOARDS[name])

    assert list(lost(DASHBOARDS[name], json.loads(json.dumps(read, cls=JSONEncoder)))) == []


def lost(given, read, place=""):
    """Yield where what was read differs from what was given; more fields are defaults."""
    if isinstance(given, dict) and isinstance(read, dict):
        for key, value in given.items():
            yield from lost(value, read.get(key, "(unknown)"), f"{place}.{key}")
    elif isinstance(given, list) and isinstance(read, list) and len(given) == len(read):
        for number, (one, other) in enumerate(zip(given, read, strict=True)):
            yield from lost(one, other, f"{place}[{number}]")
    elif given != read:
        yield f"{place}: {given!r} is read as {read!r}"


LARGEST = """
    select finding_key, gpu_ms from marts.findings
    where cluster = 'atlas' and rule = 'idle_without_demand' and is_open
    order by gpu_ms desc limit 1
"""
SERIES = ("atlas", "idle_no_demand", "")  # other tests of the session may add series of their own


@pytest.fixture(scope="module")
def metrics(scraped_store, kept):  # noqa: ARG001 -- findings are evaluated once
    """Give metrics, and a moment before their findings are evaluated."""
    return Metrics(scraped_store, first_wait_s=60), time.time()


def exemplars(samples):
    """Return the exemplars of the counter by cluster, category and team."""
    return {
        tuple(one.labels[label] for label in ("cluster", "category", "team")): one.exemplar
        for one in samples
        if one.exemplar is not None
    }


def counted(**seconds):
    """Return the counter with a series a team of the category idle_held."""
    found = Samples()
    common = {"cluster": "c", "category": "idle_held", "partition": "", "model": ""}
    found.add(COUNTER, [({**common, "team": team}, value) for team, value in seconds.items()])
    return found


def finding(key, gpu_ms, team=None, cluster="c", categories=("idle_held",)):
    return {
        "finding_key": key, "rule": "r", "cluster": cluster, "categories": categories,
        "team": team, "gpu_ms": gpu_ms,
    }  # fmt: skip


def of(samples, *findings):
    add_exemplars(samples, findings, 1_790_000_000.5)
    (metric,) = samples.collect()
    found = exemplars(metric.samples)
    return {team: (one.labels["finding"], one.value) for (_, _, team), one in found.items()}


test_a_cluster_and_category_have_the_largest_finding = gives(
    lambda seconds, *findings: of(counted(**seconds), *findings),
    {
        "at the series of its team": (
            {"red": 1, "blue": 9}, finding("a", 7000, "red"), finding("b", 5000, "blue"),
            {"red": ("a", 7.0)},
        ),
        "of no team at the largest series": (
            {"red": 1, "blue": 9}, finding("a", 7000), {"blue": ("a", 7.0)},
        ),
        "of a team without a series at the largest": (
            {"red": 9, "other": 1}, finding("a", 7000, "green"), {"red": ("a", 7.0)},
        ),
        "none without time, of another cluster or category": (
            {"red": 1}, finding("a", None), finding("b", 9, cluster="d"),
            finding("c", 9, categories=("startup",)), {},
        ),
        "none whose labels are too long": (
            {"red": 1}, finding("k" * CHARS_MAX, 7000), finding("b", 5), {"red": ("b", 0.005)},
        ),
    },
)  # fmt: skip


def test_labels_stay_within_the_limit_of_openmetrics():
    assert len("finding") + 12 + len("rule") + max(len(rule.name) for rule in rules()) <= CHARS_MAX


def test_openmetrics_has_exemplars_and_the_text_format_has_none(metrics, scraped_store):
    metrics, began = metrics
    text = metrics.answer(ACCEPTS)[0].decode()
    again = metrics.answer(ACCEPTS)[0].decode()
    end_ms = max(ledger.clusters(scraped_store).values())
    day = Scope(from_ms=end_ms - WINDOW_MS, to_ms=end_ms)
    ((key, gpu_ms),) = scraped_store.read(LARGEST, scope=day).rows()
    exemplar = exemplars([one for family in openmetrics(text) for one in family.samples])[SERIES]
    assert exemplar.labels == {"finding": key, "rule": "idle_without_demand"}
    assert exemplar.value == gpu_ms / 1000
    assert began <= float(exemplar.timestamp) <= time.time()
    assert f'finding="{key}"' in again
    assert "# {" not in metrics.answer()[0].decode()


def test_a_push_has_them_too(metrics):
    body = Request({}).of(metrics[0].samples(), 1_790_000_000 * NS)
    request = metrics_service_pb2.ExportMetricsServiceRequest.FromString(body)
    (of_resource,) = request.resource_metrics
    found = next(
        one
        for metric in of_resource.scope_metrics[0].metrics
        for point in metric.sum.data_points
        for one in point.exemplars
    )

    assert {one.key for one in found.filtered_attributes} == {"goodput.finding", "goodput.rule"}
    assert found.as_double > 0
    assert found.time_unix_nano > 0


@pytest.mark.machine
def test_a_prometheus_with_exemplar_storage_answers_them(scraped, tmp_path):
    with scraping(scraped, tmp_path, "--enable-feature=exemplar-storage") as prometheus:

        def found():
            now = time.time()
            return asked(
                prometheus, "query_exemplars", query=COUNTER, start=now - 3600, end=now + 60
            )

        prometheus.until(found, "it stored an exemplar")
        stored = {one["seriesLabels"]["category"]: one["exemplars"] for one in found()}

    assert {one["labels"]["rule"] for one in stored[SERIES[1]]} == {"idle_without_demand"}
