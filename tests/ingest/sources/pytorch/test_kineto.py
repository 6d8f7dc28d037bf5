# ruff: noqa: DTZ001 -- moments are stored naive, in UTC
import json
from datetime import datetime

import pytest

from goodput_ingest.formats import files
from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.pytorch.kineto import Kineto
from goodput_queries.errors import IngestError

NCCL = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
BASE_NS = 1790857026000000000
START_US = 4320921365023.25


def kernel(start_us, length_us, name=NCCL, **fields):
    args = {
        "Collective name": "_allgather_base",
        "In msg nelems": 1000,
        "Out msg nelems": 4000,
        "Group size": 4,
        "dtype": "BFloat16",
        "Process Group Name": "0",
        "Process Group Description": "default_pg",
    }
    return {
        "ph": "X",
        "cat": "kernel",
        "name": name,
        "pid": 2,
        "tid": 24,
        "ts": START_US + start_us,
        "dur": length_us,
        "args": args if name == NCCL else {},
        **fields,
    }


def trace(*events, **fields):
    return {
        "schemaVersion": 1,
        "deviceProperties": [],
        "trace_id": "8B1D",
        "distributedInfo": {"rank": 2, "world_size": 4},
        "baseTimeNanoseconds": BASE_NS,
        "traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "x", "pid": 1344}, *events],
        **fields,
    }


def read(store, folder, document):
    path = folder / "trace.json"
    path.write_text(json.dumps(document))
    assert Kineto.recognises(path, files.head(path))
    for batch in Kineto(path, ReadOptions("lab")).extract():
        store.load(batch)
    return store.read(
        "select * exclude (load_sequence) from raw.profiled_collectives order by start_at"
    ).rows(named=True)


def test_what_other_kernels_run_beside_is_not_exposed(store, tmp_path):
    beside = [
        kernel(-50, 60, "gemm"),  # the first 10 us
        kernel(5, 10, "gemm", tid=7),  # 5 us more: the two overlap
        kernel(40, 20, "gemm"),
        kernel(0, 100, "gemm", pid=3),  # another GPU
        kernel(20, 5),  # another collective hides none
    ]
    found = read(store, tmp_path, trace(kernel(0, 100), *beside))

    assert found[0]["duration_s"] == pytest.approx(100e-6)
    assert found[0]["exposed_s"] == pytest.approx(65e-6)


@pytest.mark.parametrize(
    ("kernels", "lack"),
    [
        (
            [],
            "the trace has no kernels of GPUs; record it with `activities=[ProfilerActivity.CPU, ",
        ),
        ([kernel(0, 5, "gemm")], "none of the trace's kernels is of NCCL"),
    ],
    ids=["of a CPU alone", "of one GPU"],
)
def test_a_trace_without_collectives_says_what_it_lacks(store, tmp_path, kernels, lack):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(trace(*kernels)))

    summary = ingest(store, "auto", [path], ReadOptions())

    (gap,) = summary.gaps
    assert gap.startswith(f"{path}: kineto: no row was read: {lack}")


def test_a_trace_without_a_base_has_whole_times(store, tmp_path):
    old = trace(kernel(0, 1, ts=1795177947365023.25), baseTimeNanoseconds=None)

    (row,) = read(store, tmp_path, old)

    assert row["start_at"] == datetime(2026, 11, 20, 12, 32, 27, 365023)


def test_kernels_of_a_group_are_counted_where_pytorch_gives_no_number(store, tmp_path):
    found = read(store, tmp_path, trace(kernel(200, 1), kernel(0, 1), kernel(100, 1)))

    assert [row["place"] for row in found] == [0, 1, 2]


def test_a_kernel_without_record_of_its_collective_is_kept(store, tmp_path):
    (row,) = read(store, tmp_path, trace(kernel(0, 1, args={})))

    assert (row["operation"], row["group_name"], row["message_bytes"]) == (None, None, None)


def test_broken_kernels_are_rejected(store, tmp_path):
    broken = [
        kernel(0, 1, dur="x"),
        kernel(0, 1, ts=None),
        kernel(0, -1),
        kernel(0, 1, args=[1]),
        kernel(0, 1, pid="Traces"),
        kernel(0, 1, ts=1e30),
        kernel(0, 1, args={"dtype": 5}),
    ]
    found = read(store, tmp_path, trace(*broken, 5, kernel(0, 1)))

    assert len(found) == 1
    assert store.read("from raw.rejects").height == len(broken)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(trace(kernel(0, 1)))[:-30],
        '{"schemaVersion": 1, "deviceProperties": [], "traceEvents": 5}',
        '{"schemaVersion": 1, "deviceProperties": ' + "[" * 200_000,
    ],
    ids=["cut", "no events", "deep"],
)
def test_a_document_that_is_no_trace_is_refused(tmp_path, text):
    path = tmp_path / "trace.json"
    path.write_text(text)

    with pytest.raises(IngestError, match="trace"):
        list(Kineto(path, ReadOptions()).extract())
