"""One load of known requests: what exporters of all products give of it, and its log."""

import math
import re
from collections import Counter

import polars as pl
import pytest

from goodput_ingest.formats.prometheus_text import exposition
from goodput_ingest.formats.prometheus_text.series import KnownSeries
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.registry import recognise
from goodput_queries.catalog import models
from goodput_serving.metrics import ALL_LABELS, Identity, serving_rows
from goodput_serving.sources.requests import ServingRequests
from goodput_synthetic import serving
from goodput_synthetic.serving import Engine, Life

BEGIN_MS, MINUTE_MS = 1_795_176_000_000, 60_000
END_MS = BEGIN_MS + 20 * MINUTE_MS
ONE_LIFE = (Life(BEGIN_MS, END_MS),)
SELDOM = {"preemptions", "engine_asleep"}
CACHE = {"prefix_cache_queries", "prefix_cache_hits", "kv_cache_ratio"}
PRODUCTS = {  # of the expected numbers, what a product's exporter says nothing of
    **{("vllm", release): set() for release in ("current", "earlier")},
    **{(product, "current"): SELDOM for product in ("sglang", "tensorrt-llm")},
    ("triton", "current"): SELDOM
    | CACHE - {"kv_cache_ratio"}
    | {"prompt_tokens", "generation_tokens"},
    ("tgi", "current"): SELDOM | CACHE,
    ("dynamo", "current"): SELDOM | {"kv_cache_ratio"},
    ("inference-gateway", "current"): SELDOM | CACHE | {"requests_waiting"},
}


@pytest.fixture(scope="module")
def sent():
    """Return a quarter of an hour of arrivals; whoever serves them has then five minutes left."""
    return serving.arrivals(
        seed=7, from_ms=BEGIN_MS, to_ms=END_MS - 5 * MINUTE_MS, per_s=lambda _: 0.7, per_s_max=1.0
    )


def served(sent, product, release="current", lives=ONE_LIFE):
    return serving.serve(
        Engine(product, "m", "gpu-a01:8000", release=release, slots=6), sent, lives
    )


def rows(load):
    text = serving.scrapes([load], BEGIN_MS, END_MS, step_ms=MINUTE_MS).encode()
    found = exposition.parse(text, KnownSeries(ALL_LABELS))
    parsed = serving_rows(found.points, found.series, found.label_sets, cluster="lab")
    assert found.rejects == [one.rejects for one in parsed if one.rejects] == []
    return {one.table: one.rows for one in parsed}


def at_end(frame):
    return frame.filter(pl.col("ts") == frame["ts"].max())


@pytest.mark.parametrize(("product", "release"), PRODUCTS)
def test_counters_are_the_sums_of_the_requests(sent, product, release):
    load = served(sent, product, release)
    tokens_in = sum(one.input_tokens for one in load.requests)
    expected = {
        "prompt_tokens": tokens_in,
        "generation_tokens": sum(one.output_tokens for one in load.requests),
        "prefix_cache_queries": tokens_in,
        "prefix_cache_hits": sum(one.cached_tokens for one in load.requests),
        "requests_finished": len(load.requests),
        "requests_failed": Counter(one.status for one in load.requests)["aborted"],
        **dict.fromkeys(("requests_running", "requests_waiting", "kv_cache_ratio"), 0),
        **dict.fromkeys(("preemptions", "engine_asleep"), 0),
    }

    found = rows(load)["serving_samples"]

    said = dict(at_end(found).select("metric", "value").rows())
    silent = PRODUCTS[product, release]
    assert {name: said.get(name) for name in expected} == {
        name: None if name in silent else value for name, value in expected.items()
    }
    assert found["product"].unique().to_list() == [product]
    assert found["role"].unique().to_list() == [
        "frontend" if product in ("dynamo", "inference-gateway")
        else "both" if product == "sglang" else ""
    ]  # fmt: skip


@pytest.mark.parametrize("product", ["vllm", "sglang", "inference-gateway"])
def test_buckets_count_the_requests_up_to_their_bound(sent, product):
    load = served(sent, product)
    waits_s = [(one.first_token_ms - one.arrival_ms) / 1000 for one in load.requests]

    found = rows(load)["serving_histograms"].filter(pl.col("metric") == "ttft_s")

    buckets = at_end(found).select("le_s", "observations").rows()
    assert buckets == [(le_s, sum(wait <= le_s for wait in waits_s)) for le_s, _ in buckets]
    assert buckets[-1] == (math.inf, len(load.requests))
    sums = at_end(found)["sum_s"].to_list()
    assert sums == [None] * (len(sums) - 1) + [pytest.approx(sum(waits_s))]


def test_gauges_are_what_runs_and_waits_at_the_moment(sent):
    load = served(sent, "vllm")

    found = rows(load)["serving_samples"].select("metric", pl.col("ts").dt.epoch("ms"), "value")

    times = {
        "requests_running": [(one.start_ms, one.end_ms) for one in load.requests if one.start_ms],
        "requests_waiting": [(one.arrival_ms, one.start_ms) for one in load.requests
                             if one.start_ms],
    }  # fmt: skip
    gauges = found.filter(pl.col("metric").is_in([*times])).rows()
    assert gauges == [
        (metric, ms, sum(begin <= ms < end for begin, end in times[metric]))
        for metric, ms, _ in gauges
    ]
    assert max(value for metric, _, value in gauges if metric == "requests_waiting") > 0


def test_a_restart_counts_from_zero_and_the_pause_has_no_rows(sent):
    middle, up = BEGIN_MS + 6 * MINUTE_MS, BEGIN_MS + 9 * MINUTE_MS
    load = served(sent, "vllm", lives=(Life(BEGIN_MS, middle), Life(up, END_MS)))

    found = rows(load)["serving_samples"]

    counted = found.filter(pl.col("metric") == "generation_tokens").sort("ts")
    minutes = [(ms - BEGIN_MS) // MINUTE_MS for ms in counted["ts"].dt.epoch("ms")]
    assert minutes == [*range(6), *range(9, 20)]
    falls = [now < before for before, now in zip(counted["value"], counted["value"][1:])]  # noqa: B905
    assert [minutes[at + 1] for at, is_fall in enumerate(falls) if is_fall] == [9]
    cut = [one for one in load.requests if one.life == 0 and one.status == "error"]
    assert all(one.end_ms == middle for one in cut)
    assert len(cut) > 0


@pytest.fixture(scope="module")
def loads():
    """Return two engines, the second of which ends in the middle."""
    sent = serving.arrivals(
        seed=5, from_ms=BEGIN_MS, to_ms=BEGIN_MS + 60_000, per_s=lambda _: 3, per_s_max=3,
        tenants=("nlp", "search"),
    )  # fmt: skip
    pod = (("namespace", "llm"), ("pod", "chat-0"))
    return [
        serving.serve(Engine("vllm", "m", "gpu-a01:8000"), sent, [Life(BEGIN_MS, 2**62)], name="a"),
        serving.serve(Engine("vllm", "m", "10.0.0.7:8000", labels=pod), sent,
              [Life(BEGIN_MS, BEGIN_MS + 30_000)], name="b"),
    ]  # fmt: skip


@pytest.mark.parametrize("written", [serving.request_log, serving.request_log_lines])
def test_the_log_of_a_load_is_read_as_its_requests(loads, tmp_path, written):
    path = tmp_path / "requests"
    path.write_text(written(loads))

    assert recognise(path) is ServingRequests
    [batch] = ServingRequests(path, ReadOptions(cluster="lab")).extract()
    moments = pl.col("arrival_at", "first_token_at", "end_at").dt.epoch("ms")
    found = batch.rows.select(
        *("endpoint", "request_id", moments, "input_tokens", "output_tokens", "status", "tenant")
    )
    assert batch.rejects == []
    endpoints = ("gpu-a01:8000", "llm/chat-0:8000")
    assert sorted(found.rows()) == sorted(
        (endpoint, one.request_id, one.arrival_ms, one.first_token_ms, one.end_ms,
         one.input_tokens, one.output_tokens, one.status, one.tenant)
        for endpoint, load in zip(endpoints, loads, strict=True) for one in load.requests
    )  # fmt: skip
    assert set(batch.rows["status"]) == {"ok", "aborted", "error"}


REQUESTS = "vllm:num_requests_running 1\n"


def parsed(text, target="http://gpu-a01:8000/metrics", **given):
    lines = f"# scraped_at 2026-11-24T12:00:00Z {target}\n{text}"
    found = exposition.parse(lines.encode(), KnownSeries(ALL_LABELS))
    return serving_rows(found.points, found.series, found.label_sets, given=Identity(**given))


def test_the_reference_table_is_whole():
    rows = pl.read_csv(models.reference_files()["serving_metrics"])
    assert rows.filter(pl.col("source").is_null() | (pl.col("source") == "")).is_empty()
    assert rows.select("product", "name", "canonical").is_unique().all()
    assert rows.select("canonical", "kind").n_unique() == rows["canonical"].n_unique()


def test_what_a_person_says_of_an_engine_holds_where_no_label_does():
    text = 'vllm:num_requests_running{instance="10.0.0.7:8000"} 1\n'

    found = parsed(text, node="gpu-a03", gpus=("0", "1"), role="decode")[0].rows

    assert found.select("node", "gpu_labels", "role").rows() == [("gpu-a03", ["0", "1"], "decode")]


def test_series_of_no_endpoint_are_rejected_with_the_line_that_would_name_it(tmp_path):
    [found] = parsed(REQUESTS, target="")
    advised = re.search("`(# scraped_at .*)`", found.rejects[0].reason)[1]
    path = tmp_path / "metrics.prom"
    path.write_text(f"{advised}\n{REQUESTS}")

    (batch,) = recognise(path)(path, ReadOptions()).extract()

    assert found.rows.is_empty()
    assert batch.rows["endpoint"].to_list() == ["gpu-a01:8000"]
