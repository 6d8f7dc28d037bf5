"""Figures of scrapes against those of the request log of the same load, ingested as files.

That histograms enclose quantiles and attainment of the log is shown of their rows, in
test_latencies and test_objective_bounds.
"""

import shutil
from pathlib import Path

import pytest

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_ingest.synthetic_serving import Engine, Life, arrivals, request_log, scrapes, serve

MINUTE_MS = 60_000
FROM_MS = 1_795_176_000_000
TO_MS = FROM_MS + 12 * MINUTE_MS
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
    options = ReadOptions(cluster="lab")
    ingest(store, "serving-metrics", [folder / "scrapes.txt"], options)
    ingest(store, "serving-requests", [folder / "requests.csv"], options)
    yield store, loads
    store.close()
    shutil.rmtree(Path(store.path).parent)


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
