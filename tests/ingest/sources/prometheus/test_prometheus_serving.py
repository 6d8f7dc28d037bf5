"""Serving engines out of Prometheus: a real server that scrapes a made-up engine, saved answers."""

import json
import time
from datetime import UTC, datetime

import pytest

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.prometheus import Prometheus
from goodput_ingest.sources.serving.live import ServingLive
from goodput_ingest.synthetic_serving import Engine, Life, arrivals, page, serve

T = 1_795_176_000
VALUES = "select metric, value from raw.serving_samples order by metric, ts"


def load_of_now():
    """Return an engine that has served since a minute ago and stays up."""
    now_ms = int(time.time() * 1000)
    sent = arrivals(
        seed=3, from_ms=now_ms - 60_000, to_ms=now_ms - 20_000, per_s=lambda _: 2, per_s_max=2
    )
    engine = Engine("vllm", "m", "gpu-a01:8000", inter_token_s=0.001)
    return serve(engine, sent, [Life(now_ms - 60_000, now_ms + 600_000)]), now_ms


def poll(store, source):
    now = datetime.now(UTC).replace(tzinfo=None)
    return sum(store.load(batch).rows_new for batch in source.poll({}, now))


@pytest.mark.machine
def test_a_real_server_and_the_page_itself_give_the_same_engine(store, prometheus_of, exporter):
    load, now_ms = load_of_now()
    exporter.text = page(load, now_ms)
    server = prometheus_of("vllm", exporter.url, interval="1s")
    server.until(lambda: len(server.samples("vllm:num_requests_running[1m]")) >= 3, "three scrapes")
    source = Prometheus(
        url=server.url, cluster="lab", settle_s=0, overlap_s=10, backfill_s=10,
        serving_interval_s=1, serving_histogram_interval_s=2,
    )  # fmt: skip
    poll(store, source)
    poll(store, ServingLive(urls=[f"http://{exporter.url}"], cluster="lab", node="gpu-a01"))

    finished = [one for one in load.requests if one.end_ms <= now_ms]
    tokens = store.read(
        "select source, cluster, endpoint, model, min(value), max(value) from raw.serving_samples "
        "where metric = 'generation_tokens' group by all order by source"
    )
    of_both = ["lab", exporter.url, "m", *[sum(one.output_tokens for one in finished)] * 2]
    assert [list(row) for row in tokens.rows()] == [
        ["prometheus", *of_both], ["serving-metrics", *of_both],
    ]  # fmt: skip
    assert len(finished) == len(load.requests)
    counts = store.read(
        "select source, max(observations) from raw.serving_histograms "
        "where metric = 'ttft_s' and isinf(le_s) group by source order by source"
    )
    assert counts.rows() == [
        ("prometheus", len(finished)), ("serving-metrics", len(finished)),
    ]  # fmt: skip
    assert store.read("select count(*) from raw.rejects").item() == 0


@pytest.mark.parametrize("colon", [":", "_"])  # which OpenMetrics does not have in names
def test_a_saved_answer_has_the_engines_of_all_products(store, tmp_path, reply_types, colon):
    names = {
        f"vllm{colon}num_requests_running": {"engine": "0", "model_name": "m"},
        f"sglang{colon}num_queue_reqs": {"model_name": "m"},
        "tgi_queue_size": {},
        "go_goroutines": {},
    }
    results = [
        {
            "metric": {"__name__": name, "instance": f"gpu-a0{at}:80", "job": "j", **labels},
            "values": [[T, "1"], [T + 17, "2"]],
        }
        for at, (name, labels) in enumerate(names.items())
    ]
    path = tmp_path / "engines.json"
    path.write_text(json.dumps(reply_types.matrix(*results)))

    ingest(store, "auto", [path], ReadOptions(cluster="lab"))

    assert store.read(VALUES).rows() == [
        *(("requests_running", 1.0), ("requests_running", 2.0)),
        *[("requests_waiting", 1.0)] * 2,
        *[("requests_waiting", 2.0)] * 2,
    ]
    assert store.read("select reason from raw.rejects").rows() == [
        ("1 metrics are not of an exporter that is read: go_goroutines",)
    ]
