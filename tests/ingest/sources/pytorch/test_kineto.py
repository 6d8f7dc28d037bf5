import json

import pytest

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.pytorch.kineto import Kineto
from goodput_queries.errors import IngestError


def trace(*names):
    """Return a trace of kernels with these names."""
    at = {"ph": "X", "cat": "kernel", "pid": 2, "tid": 24, "ts": 4320921365023.25, "dur": 5}
    return {
        "schemaVersion": 1, "deviceProperties": [], "baseTimeNanoseconds": 1790857026000000000,
        "traceEvents": [{"ph": "X", "cat": "cpu_op"}, *({**at, "name": name} for name in names)],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("kernels", "lack"),
    [
        (
            [],
            "the trace has no kernels of GPUs; record it with `activities=[ProfilerActivity.CPU, ",
        ),
        (["gemm"], "none of the trace's kernels is of NCCL"),
    ],
    ids=["of a CPU alone", "of one GPU"],
)
def test_a_trace_without_collectives_says_what_it_lacks(store, tmp_path, kernels, lack):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(trace(*kernels)))

    summary = ingest(store, "auto", [path], ReadOptions())

    (gap,) = summary.gaps
    assert gap.startswith(f"{path}: kineto: no row was read: {lack}")


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(trace("ncclDevKernel_AllGather"))[:-30],
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
