"""Serving engines in saved answers of Prometheus."""

import json

import pytest
from tests.ingest.sources.prometheus.fake_server import matrix

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions

T = 1_795_176_000
VALUES = "select metric, value from raw.serving_samples order by metric, ts"


@pytest.mark.parametrize("colon", [":", "_"])  # which OpenMetrics does not have in names
def test_a_saved_answer_has_the_engines_of_all_products(store, tmp_path, colon):
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
    path.write_text(json.dumps(matrix(*results)))

    ingest(store, "auto", [path], ReadOptions(cluster="lab"))

    assert store.read(VALUES).rows() == [
        *(("requests_running", 1.0), ("requests_running", 2.0)),
        *[("requests_waiting", 1.0)] * 2,
        *[("requests_waiting", 2.0)] * 2,
    ]
    assert store.read("select reason from raw.rejects").rows() == [
        ("1 metrics are not of an exporter that is read: go_goroutines",)
    ]
