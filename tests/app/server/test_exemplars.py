"""Counted GPU time names the largest open finding of its cluster and category as an exemplar."""

import time

import pytest
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from tests.app.server.grafana import asked, scraping
from tests.app.server.test_metrics import ACCEPTS
from tests.tables import gives

from goodput_app.server.metrics import ledger
from goodput_app.server.metrics.exemplars import CHARS_MAX, COUNTER, add_exemplars
from goodput_app.server.metrics.exposition import Metrics
from goodput_app.server.metrics.families import Samples
from goodput_app.server.metrics.open_findings import WINDOW_MS
from goodput_app.server.metrics.otlp import NS, Request
from goodput_queries.catalog.rules import rules
from goodput_queries.scope import Scope

LARGEST = """
    select finding_key, gpu_ms from marts.findings
    where cluster = 'atlas' and rule = 'idle_without_demand' and is_open
    order by gpu_ms desc limit 1
"""
SERIES = ("atlas", "idle_no_demand", "")  # other tests of the session may add series of their own


@pytest.fixture(scope="module")
def metrics(scraped_store):
    return Metrics(scraped_store, first_wait_s=60)


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
    longest = max(len(rule.name) for rule in rules())

    assert len("finding") + 12 + len("rule") + longest <= CHARS_MAX


def test_openmetrics_has_exemplars_and_the_text_format_has_none(metrics, scraped_store):
    began = time.time()
    text = metrics.answer(ACCEPTS)[0].decode()
    again = metrics.answer(ACCEPTS)[0].decode()
    end_ms = max(ledger.clusters(scraped_store).values())
    day = Scope(from_ms=end_ms - WINDOW_MS, to_ms=end_ms)
    ((key, gpu_ms),) = scraped_store.read(LARGEST, scope=day).rows()
    samples = [one for family in openmetrics(text) for one in family.samples]

    exemplar = exemplars(samples)[SERIES]
    assert exemplar.labels == {"finding": key, "rule": "idle_without_demand"}
    assert exemplar.value == gpu_ms / 1000
    assert began <= float(exemplar.timestamp) <= time.time()
    assert f'finding="{key}"' in again
    assert "# {" not in metrics.answer()[0].decode()


def test_a_push_has_them_too(metrics):
    body = Request({}).of(metrics.samples(), 1_790_000_000 * NS)
    (of_resource,) = metrics_service_pb2.ExportMetricsServiceRequest.FromString(
        body
    ).resource_metrics
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
