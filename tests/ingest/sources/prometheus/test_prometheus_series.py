"""Series of answers: saved ones, replicas of one, and many at once in parts."""

import gzip
import json
import random

import numpy as np
import pytest
from tests.ingest.sources.prometheus.fake_server import matrix, series

from goodput_ingest.gpu_metrics import Memory
from goodput_ingest.prometheus_api import gpu_series, recorded
from goodput_ingest.prometheus_api.answer import Series
from goodput_ingest.prometheus_api.replicas import without_doubles
from goodput_queries.errors import IngestError

UTIL = "DCGM_FI_DEV_GPU_UTIL"
T = 1_787_234_539.482


def test_a_compressed_file_that_was_cut_is_refused(read_text):
    points = [(T + i, random.Random(i).random()) for i in range(999)]  # noqa: S311
    content = gzip.compress(json.dumps(matrix(series(UTIL, points))).encode())

    with pytest.raises(IngestError, match="cut or damaged"):
        read_text("prometheus", content[: len(content) // 2], "answer.json.gz")


@pytest.mark.parametrize("name", ["answer.json", "bomb.json.gz"])
def test_a_file_too_large_for_memory_is_refused(read_text, monkeypatch, name):
    monkeypatch.setattr(recorded, "FILE_MAX_BYTES", 2**20)
    content = b'{"status":"success"' + b" " * 2**22

    with pytest.raises(IngestError, match="save a shorter time per file"):
        read_text("prometheus", gzip.compress(content) if ".gz" in name else content, name)


A, B = {"replica": "a"}, {"replica": "b"}
# series as (times in seconds, labels), and the times of those that are left
CASES = {
    "of two replicas the first is used": (
        [([11, 41, 71, 101], B), ([0, 30, 60, 90], A)], [[0, 30, 60, 90]],
    ),
    "the other replica fills the time in which the first was away": (
        [([0, 30, 150, 180], {"prometheus_replica": "a"}),
         ([11, 41, 71, 101, 131, 161], {"prometheus_replica": "b"})],
        [[0, 30, 71, 101, 131, 150, 180]],
    ),
    "a scrape that came late is no gap": (
        [([0, 30, 70, 100], A), ([20, 50, 80, 110], B)], [[0, 30, 70, 100]],
    ),
    "the other replica goes on where the first ended": (
        [([0, 30, 60], A), ([11, 41, 71, 101, 131, 161], B)], [[0, 30, 60, 101, 131, 161]],
    ),
    "a replica with nothing leaves it to the other": ([([], A), ([11, 41], B)], [[11, 41]]),
    "an exporter scraped by two jobs is one": (
        [([0, 30], {"job": "dcgm"}), ([5, 35], {"job": "pods"})], [[0, 30]],
    ),
    "series that differ in anything else are two": (
        [([0, 30], {**A, "gpu": "0"}), ([5, 35], {**B, "gpu": "1"})], [[0, 30], [5, 35]],
    ),
    "halves of an answer that was too much are one, with the sample between them once": (
        [([0, 30, 60], {"gpu": "0"}), ([60, 90], {"gpu": "0"})], [[0, 30, 60, 90]],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("given", "left"), CASES.values(), ids=CASES)
def test_doubles_go_and_gaps_are_filled(given, left):
    found = []
    for times_s, labels in given:
        times_ms = np.array([1000 * t for t in times_s], np.int64)
        found.append(Series({"__name__": "m", **labels}, times_ms, times_ms / 1000))

    assert [(one.times_ms / 1000).tolist() for one in without_doubles(found)] == left


T_MS = 1_787_234_539_482


def of_target(name, target, gpu, *values, **labels):
    times_ms = T_MS + 30_000 * np.arange(len(values), dtype=np.int64) + target
    own = {"UUID": f"GPU-{target}-{gpu}", "instance": f"10.0.0.{target}:9400", "gpu": str(gpu)}
    return Series({"__name__": name, **own, **labels}, times_ms, np.array(values, float))


@pytest.fixture
def three_targets():
    """Give three targets that have not all the same metrics."""
    found = [
        of_target("DCGM_FI_DEV_GPU_UTIL", target, gpu, 10 * target, 20 + gpu)
        for target in (1, 2, 3)
        for gpu in (0, 1)
    ]
    found.append(of_target("DCGM_FI_DEV_POWER_USAGE", 1, 0, 300, 310))
    found.append(of_target("DCGM_FI_DEV_POWER_USAGE", 3, 1, 500, 510, hpc_job="7"))
    found.append(of_target("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", 2, 0, 0, 1))
    found.append(of_target("DCGM_FI_DEV_ENFORCED_POWER_LIMIT", 3, 0, 700, 700))
    return found


def rows_of(three_targets):
    parsed = gpu_series.parsed_gpu_rows(three_targets, source="s", cluster="c", memory=Memory())
    return {
        one.table: one.rows.select(sorted(one.rows.columns))
        .sort(sorted(one.rows.columns))
        .to_dicts()
        for one in parsed
    }


def test_parts_give_the_rows_that_one_part_gives(three_targets, monkeypatch):
    whole = rows_of(three_targets)
    monkeypatch.setattr(gpu_series, "POINTS_PER_PART", 1)

    assert rows_of(three_targets) == whole
    assert len(whole["gpu_samples"]) == 12
    assert {"gpu_samples", "gpu_samples_other", "gpus", "gpu_owners"} <= set(whole)


def test_nothing_gives_nothing():
    assert gpu_series.parsed_gpu_rows([], source="s", cluster=None, memory=Memory()) == []
    assert gpu_series.normalised([]) == []


SERVED_S = 1_795_176_000
VALUES = "select metric, value from raw.serving_samples order by metric, ts"


@pytest.mark.parametrize("colon", [":", "_"])  # which OpenMetrics does not have in names
def test_a_saved_answer_has_the_engines_of_all_products(store, read_text, colon):
    names = {
        f"vllm{colon}num_requests_running": {"engine": "0", "model_name": "m"},
        f"sglang{colon}num_queue_reqs": {"model_name": "m"},
        "tgi_queue_size": {},
        "go_goroutines": {},
    }
    results = [
        {
            "metric": {"__name__": name, "instance": f"gpu-a0{at}:80", "job": "j", **labels},
            "values": [[SERVED_S, "1"], [SERVED_S + 17, "2"]],
        }
        for at, (name, labels) in enumerate(names.items())
    ]
    read_text("auto", json.dumps(matrix(*results)), "engines.json", cluster="lab")

    assert store.read(VALUES).rows() == [
        *(("requests_running", 1.0), ("requests_running", 2.0)),
        *[("requests_waiting", 1.0)] * 2,
        *[("requests_waiting", 2.0)] * 2,
    ]
    assert store.read("select reason from raw.rejects").rows() == [
        ("1 metrics are not of an exporter that is read: go_goroutines",)
    ]
