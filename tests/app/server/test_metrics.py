"""`/metrics`: every metric is declared, both formats parse, and Grafana's queries answer."""

import json
import re
from pathlib import Path

import polars as pl
import pytest
from msgspec import structs
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as plain
from tests.app.server.grafana import DASHBOARDS, queries

from goodput_app.server.metrics import exposition, ledger
from goodput_app.server.metrics.exposition import Metrics
from goodput_app.server.metrics.families import FAMILIES, LABEL_MAX_CHARS, Samples
from goodput_app.server.metrics.open_findings import OpenFindings
from goodput_app.settings import MetricsSettings, Settings
from goodput_queries.counted_hours import OTHER
from goodput_queries.evidence.batch import Batch

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


def test_clusters_have_ratios_of_their_own_and_one_without_gpus_has_none(answer):
    goodput = samples(answer, "goodput_ratio")
    high = samples(answer, "goodput_high_ratio")

    assert set(goodput) == {("lab",), ("atlas",)}
    assert 0 < goodput["atlas",] <= high["atlas",] <= 1
    assert 'cluster="elsewhere"' not in answer


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


def test_teams_have_their_goodput_and_cost(answer):
    ratio, cost = samples(answer, "goodput_team_ratio"), samples(answer, "goodput_team_cost")

    assert {team for _, team in ratio} == {"nlp", "vision", "speech"}
    assert ratio["atlas", "nlp"] > ratio["atlas", "vision"] == 0
    assert all(labels[2] == "USD" for labels in cost)


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


def test_a_metric_that_is_not_declared_so_is_refused():
    with pytest.raises(KeyError):
        Samples().add("goodput_ratio", [({"cluster": "c", "node": "n"}, 1)])


def test_a_database_without_evidence_has_no_ratios(store):
    store.load(Batch("gpus", pl.DataFrame(), "inventory", "file", "1"))

    text = Metrics(store).answer()[0].decode()

    assert samples(text, "goodput_ingested_rows_total") == {("inventory",): 0}
    assert "goodput_ratio" not in text
    assert "goodput_data_timestamp_seconds" not in text


def test_origins_beyond_the_limit_are_one_series_a_source_with_the_worst_of_them(
    scraped_store, monkeypatch
):
    monkeypatch.setattr(OpenFindings, "add_to", lambda *_: None)
    monkeypatch.setattr(exposition, "ORIGINS_MAX", 1)
    names = {"source": "job-log", "interval_s": 30.0, "rows_last_hour": 2}
    live = pl.DataFrame(
        [{**names, "origin": f"{n}.log", "age_s": 10.0 * n, "failures": n} for n in range(4)]
    )
    read = Metrics._read
    monkeypatch.setattr(
        Metrics, "_read", lambda it, sql: live if "live_sources" in sql else read(it, sql)
    )

    text = Metrics(scraped_store).answer()[0].decode()

    for name, first, others in (
        ("age_seconds", 0, 30),
        ("failures", 0, 3),
        ("rows_last_hour", 2, 6),
    ):
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
