"""Answers of Prometheus's API as files and in parts; points, doubles, bad series: golden cases."""

import gzip
import json
import random

import numpy as np
import pytest
from tests.ingest.sources.prometheus.fake_server import matrix, series
from tests.tables import refuses

from goodput_ingest.gpu_metrics import Memory
from goodput_ingest.prometheus_api import gpu_series, recorded
from goodput_ingest.prometheus_api.answer import AnswerError, Series, is_on_a_grid, parse
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


def of_target(name, target, gpu, *values, **labels):
    times_ms = round(T * 1000) + 30_000 * np.arange(len(values), dtype=np.int64) + target
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
    ordered = {one.table: one.rows.select(sorted(one.rows.columns)) for one in parsed}
    return {table: rows.sort(rows.columns).to_dicts() for table, rows in ordered.items()}


def test_parts_give_the_rows_that_one_part_gives(three_targets, monkeypatch):
    whole = rows_of(three_targets)
    monkeypatch.setattr(gpu_series, "POINTS_PER_PART", 1)

    assert rows_of(three_targets) == whole
    assert len(whole["gpu_samples"]) == 12
    assert {"gpu_samples", "gpu_samples_other", "gpus", "gpu_owners"} <= set(whole)


def body(*results, kind="matrix", **more):
    data = {"resultType": kind, "result": list(results)}
    return json.dumps({"status": "success", "data": data, **more}).encode()


def result(*points, **labels):
    return {"metric": {"__name__": "m", **labels}, "values": [list(p) for p in points]}


test_what_is_no_answer_is_refused_in_words = refuses(
    AnswerError, parse, *((text, "not JSON") for text in (b"", b"<html>", b"\xff\xfe\x00")),
    (b'{"status":"success","data":{"resultType":"matrix","result":[{"metric"', "truncated"),
    (b"[" * 100_000, "Expected `object`"),
    (b'{"data":{"result":[' + b"[" * 100_000, "nested too deeply"),
    *((text, "not an answer to a query") for text in (b'{"status":"success","data":["a"]}',
        b'{"status":"success"}', b"{}",
        b'{"status":"success","data":{"resultType":"matrix","result":7}}')),
    (b'{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}', "is scalar"),
    (b'{"status":"error","errorType":"timeout","error":"too slow"}', "said timeout: too slow"),
)  # fmt: skip


def test_a_long_label_is_cut():
    (one,) = parse(body(result((T, "2"), long="x" * 100_000))).series
    assert len(one.labels["long"]) == 4096
    assert not parse(body(result((T, "2"), **{"x" * 201: "a"}))).series


def test_points_on_a_grid_are_distinguished_from_scrapes():
    """query_range repeats the last sample for up to five minutes: its gaps do not show."""
    grid = [(1_787_234_520 + 60 * i, "1") for i in range(10)]
    scraped = [(at + 0.217, value) for at, value in grid]
    of_scrapes = ([scraped], [grid, scraped], [grid[:2]], [])

    assert is_on_a_grid(parse(body(result(*grid), result(*grid[3:6]))).series)
    assert not any(
        is_on_a_grid(parse(body(*(result(*points) for points in one))).series) for one in of_scrapes
    )
