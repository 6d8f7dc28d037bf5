"""Figures of scrapes against those of the request log of the same load, ingested as files."""

import math
import shutil
from collections import defaultdict
from pathlib import Path

import pytest
from tests.queries.serving.load import nearest_rank

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_ingest.synthetic_serving import Engine, Life, arrivals, request_log, scrapes, serve

MINUTE_MS = 60_000
FROM_MS = 1_795_176_000_000
TO_MS = FROM_MS + 12 * MINUTE_MS
QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
MODEL = "llama-3.1-8b"


@pytest.fixture(scope="module")
def recorded(new_store, tmp_path_factory):
    """Give the store and the loads of two engines of one model, whose buckets differ."""
    loads = []
    for number, (product, rate) in enumerate((("vllm", 0.6), ("sglang", 0.3))):
        sent = arrivals(
            seed=7 + number, from_ms=FROM_MS, to_ms=TO_MS - 4 * MINUTE_MS,
            per_s=lambda _, rate=rate: rate, per_s_max=rate, tenants=("a", "b"),
        )  # fmt: skip
        engine = Engine(product, MODEL, f"gpu-a0{number}:8000", slots=4)
        loads.append(serve(engine, sent, [Life(FROM_MS - MINUTE_MS, TO_MS + MINUTE_MS)]))
    folder = tmp_path_factory.mktemp("load")
    text = scrapes(loads, FROM_MS - MINUTE_MS, TO_MS, step_ms=MINUTE_MS)
    (folder / "scrapes.txt").write_text(text)
    (folder / "requests.csv").write_text(request_log(loads))
    store = new_store()
    with store.cursor() as cursor:
        cursor.execute(
            "insert into state.serving_objectives (place, model, ttft_s, e2e_s, target) "
            "values (0, '*', 1.0, 5.0, 0.95)"
        )
    options = ReadOptions(cluster="lab")
    ingest(store, "serving-metrics", [folder / "scrapes.txt"], options)
    ingest(store, "serving-requests", [folder / "requests.csv"], options)
    yield store, loads
    store.close()
    shutil.rmtree(Path(store.path).parent)


def values(requests, metric):
    """Return when a latency was observed, and how long it was in seconds."""
    ends = {"ttft_s": "first_token_ms", "e2e_s": "end_ms"}[metric]
    return [
        (getattr(one, ends), (getattr(one, ends) - one.arrival_ms) / 1000)
        for one in requests
        if getattr(one, ends) is not None
    ]


def test_quantiles_of_scrapes_enclose_those_of_the_log(recorded):
    """Of each engine and of the model, after the first requests and among them."""
    store, loads = recorded
    cold = dict(store.read("select endpoint, end_ms from marts.serving_cold_starts").rows())
    logged = defaultdict(list)
    for load in loads:
        for metric in ("ttft_s", "e2e_s"):
            for at_ms, value in values(load.requests, metric):
                is_cold = at_ms <= cold[load.engine.endpoint]
                logged[load.engine.endpoint, metric, is_cold].append(value)
                logged[None, metric, is_cold].append(value)

    found = store.read(
        "select * from marts.serving_latencies where method = 'histogram' and level <> 'role' "
        "and metric in ('ttft_s', 'e2e_s')"
    ).to_dicts()
    assert len(found) == 2 * 2 * 3
    for row in found:
        truth = logged[row["endpoint"], row["metric"], row["is_cold"]]
        assert row["observations"] == len(truth), row
        assert row["mean_s"] == pytest.approx(sum(truth) / len(truth))
        for name, q in QUANTILES.items():
            high = row[f"{name}_high_s"]
            exact = nearest_rank(truth, q)
            assert row[f"{name}_low_s"] < exact <= (math.inf if high is None else high)


def test_tokens_and_requests_of_counters_are_those_of_the_log(recorded):
    store, loads = recorded
    found = store.read(
        "select endpoint, requests_finished, output_tokens, prefix_hit_ratio "
        "from marts.serving_engines order by endpoint"
    ).rows()

    for (_, requests, tokens, hits), load in zip(found, loads, strict=True):
        assert requests == len(load.requests)
        assert tokens == sum(one.output_tokens for one in load.requests)
        looked_up = sum(one.input_tokens for one in load.requests)
        if hits is not None:
            assert hits == pytest.approx(sum(r.cached_tokens for r in load.requests) / looked_up)


def test_attainment_of_scrapes_encloses_that_of_the_log(recorded):
    """Failed requests included; both limits are between bounds of some of the buckets."""
    store, loads = recorded
    of_scrapes, of_log = store.read(
        "select * from marts.serving_attainment order by method"
    ).to_dicts()
    every = [one for load in loads for one in load.requests]
    within = [
        one.status == "ok"
        and one.first_token_ms - one.arrival_ms <= 1000
        and one.end_ms - one.arrival_ms <= 5000
        for one in every
    ]

    assert of_log["attained_low_ratio"] == pytest.approx(sum(within) / len(within))
    assert of_scrapes["attained_low_ratio"] <= of_log["attained_low_ratio"]
    assert of_log["attained_high_ratio"] <= of_scrapes["attained_high_ratio"] < 1


def test_the_log_itself_is_exact(recorded):
    store, loads = recorded
    rows = store.read(
        "select sum(requests), sum(output_tokens), sum(failed_requests) from marts.serving_tenants"
    ).rows()
    every = [one for load in loads for one in load.requests]

    failed = sum(one.status != "ok" for one in every)
    assert rows == [(len(every), sum(one.output_tokens for one in every), failed)]
