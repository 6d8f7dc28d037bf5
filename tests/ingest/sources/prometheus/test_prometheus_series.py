"""Answers of Prometheus's API: points, series, replicas, and what is broken in them."""

import gzip
import json
import random

import numpy as np
import pytest
from tests.ingest.sources.prometheus.fake_server import matrix, series

from goodput_ingest.gpu_metrics import Memory
from goodput_ingest.prometheus_api import gpu_series, recorded
from goodput_ingest.prometheus_api.answer import (
    LABELS_MAX,
    AnswerError,
    Series,
    is_on_a_grid,
    parse,
)
from goodput_ingest.prometheus_api.replicas import without_doubles
from goodput_queries.errors import IngestError

T = 1_787_234_539.482


def test_a_compressed_file_that_was_cut_is_refused(read_text):
    points = [(T + i, random.Random(i).random()) for i in range(999)]  # noqa: S311
    content = gzip.compress(json.dumps(matrix(series("DCGM_FI_DEV_GPU_UTIL", points))).encode())

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


def body(*results, kind="matrix", **more):
    data = {"resultType": kind, "result": list(results)}
    return json.dumps({"status": "success", "data": data, **more}).encode()


def result(*points, **labels):
    return {"metric": {"__name__": "m", **labels}, "values": [list(p) for p in points]}


@pytest.mark.parametrize(
    ("points", "values"),
    [
        ([(T, "NaN"), (T + 30, "4"), (T + 60, "nan")], [4.0]),
        ([(T, "+Inf"), (T + 1, "-Inf"), (T + 2, "1e+06")], [np.inf, -np.inf, 1e6]),
        ([(T + 30, "2"), (T, "1"), (T + 30, "2")], [1.0, 2.0]),
        ([(T, "900"), (T + 30, "950"), (T + 60, "10")], [900.0, 950.0, 10.0]),
    ],
    ids=["no stale marker", "infinities", "in order and once", "a counter that falls"],
)
def test_readings_of_a_series(points, values):
    answer = parse(body(result(*points)))

    assert answer.series[0].values.tolist() == values
    assert answer.notes() == []


def test_a_value_that_is_no_number_costs_only_its_point():
    """An old exporter's conversion error, seen as a value (dcgm-exporter issue 394)."""
    bad = result((T, "1"), (T + 30, "ERROR - FAILED TO CONVERT TO STRING"), (T + 60, "3"))

    answer = parse(body(bad, result((T, "9"))))

    assert [one.values.tolist() for one in answer.series] == [[1.0, 3.0], [9.0]]
    assert [note.reason for note in answer.notes()] == [
        "series 1 of the answer: a point is not a number: "
        '[1787234569.482, "ERROR - FAILED TO CONVERT TO STRING"]'
    ]


HISTOGRAM = {"metric": {"__name__": "h"}, "histograms": [[T, {"count": "1", "sum": "2"}]]}


@pytest.mark.parametrize(
    ("text", "noted"),
    [
        (body(), []),
        # Thanos says so when a store did not answer: the data has holes that nobody sees
        (body(result((T, "1")), warnings=["partial response"], infos=["no suffix"]),
         ["the server warned: partial response", "the server warned: no suffix"]),
        (body(HISTOGRAM), ["native histograms are not read"]),
        (body(result(*((T + i, "x") for i in range(1000)))),
         [*["a point is not a number"] * 5, "series 1 of the answer: 1000 of its points are not"]),
        (body(result((-1, "1"), (1e18, "2"), (T, "3"))), ["2 of its points have no valid time"]),
    ],
    ids=["nothing", "warnings", "native histograms", "many bad points", "points at no moment"],
)  # fmt: skip
def test_what_is_noted_of_an_answer(text, noted):
    found = [note.reason for note in parse(text).notes()]

    assert len(found) == len(noted)
    assert all(said in reason for said, reason in zip(noted, found, strict=True))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        *((text, "not JSON") for text in (b"", b"<html>", b"\xff\xfe\x00")),
        (b'{"status":"success","data":{"resultType":"matrix","result":[{"metric"', "truncated"),
        (b"[" * 100_000, "Expected `object`"),
        (b'{"data":{"result":[' + b"[" * 100_000, "nested too deeply"),
        *((text, "not an answer to a query") for text in (b'{"status":"success","data":["a"]}',
            b'{"status":"success"}', b"{}",
            b'{"status":"success","data":{"resultType":"matrix","result":7}}')),
        (b'{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}', "is scalar"),
        (b'{"status":"error","errorType":"timeout","error":"too slow"}', "said timeout: too slow"),
    ],
)  # fmt: skip
def test_what_is_no_answer_is_refused_in_words(text, said):
    with pytest.raises(AnswerError, match=said):
        parse(text)


def test_a_broken_series_does_not_cost_the_others():
    answer = parse(
        b'{"status":"success","data":{"resultType":"matrix","result":['
        b'{"metric":{"__name__":7},"values":[]},'
        b'{"metric":{"__name__":"deep"},"values":[[1,' + b"[" * 200 + b"]" * 200 + b"]]},"
        b'{"metric":{"__name__":"good"},"values":[[1787234539.482,"5"]]}]}}'
    )

    assert [one.name for one in answer.series if len(one.times_ms)] == ["good"]
    assert len(answer.notes()) == 2


def test_a_bomb_of_labels_is_rejected():
    bomb = result((T, "1"), **{f"l{i}": "x" for i in range(LABELS_MAX)})

    answer = parse(body(bomb, result((T, "2"), long="x" * 100_000)))

    assert "has 101 labels" in answer.notes()[0].reason
    assert [len(one.labels["long"]) for one in answer.series] == [4096]


def test_a_text_that_looks_like_values_stays_a_label():
    (one,) = parse(body(result((T, "1"), evil='","values":[[1,"2"]]'))).series

    assert one.values.tolist() == [1.0]
    assert one.labels["evil"] == '","values":[[1,"2"]]'


def test_points_on_a_grid_are_distinguished_from_scrapes():
    """query_range repeats the last sample for up to five minutes: its gaps do not show."""
    grid = [(1_787_234_520 + 60 * i, "1") for i in range(10)]
    scraped = [(1_787_234_520.217 + 60 * i, "1") for i in range(10)]

    assert is_on_a_grid(parse(body(result(*grid), result(*grid[3:6]))).series)
    assert not is_on_a_grid(parse(body(result(*scraped))).series)
    assert not is_on_a_grid(parse(body(result(*grid), result(*scraped))).series)
    assert not is_on_a_grid(parse(body(result(*grid[:2]))).series)
    assert not is_on_a_grid(parse(body()).series)
