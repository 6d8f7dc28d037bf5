"""Saved answers: one or many in a file, whole or cut, and what is not an answer."""

import gzip
import json
import random

import pytest
from tests.ingest.sources.prometheus.fake_server import matrix, series

from goodput_ingest.prometheus_api import recorded
from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries.errors import IngestError

UTIL = "DCGM_FI_DEV_GPU_UTIL"
T = 1_787_234_539.482


@pytest.fixture
def read(store, tmp_path):
    """Write bytes into a file and read it into the store."""

    def of(content, name="answer.json"):
        path = tmp_path / name
        path.write_bytes(content)
        return ingest(store, "prometheus", [path], ReadOptions())

    return of


@pytest.fixture
def answer():
    """Give the bytes of an answer with these points."""

    def of(*points, name=UTIL, **labels):
        return json.dumps(matrix(series(name, list(points), **labels))).encode()

    return of


def test_a_compressed_file_that_was_cut_is_refused(read, answer):
    content = gzip.compress(answer(*((T + i, random.Random(i).random()) for i in range(999))))  # noqa: S311

    with pytest.raises(IngestError, match="cut or damaged"):
        read(content[: len(content) // 2], "answer.json.gz")


@pytest.mark.parametrize("name", ["answer.json", "bomb.json.gz"])
def test_a_file_too_large_for_memory_is_refused(read, monkeypatch, name):
    monkeypatch.setattr(recorded, "FILE_MAX_BYTES", 2**20)
    content = b'{"status":"success"' + b" " * 2**22

    with pytest.raises(IngestError, match="save a shorter time per file"):
        read(gzip.compress(content) if name.endswith(".gz") else content, name)
