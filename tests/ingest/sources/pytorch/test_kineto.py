import json

import pytest

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
        ([],
         "the trace has no kernels of GPUs; record it with `activities=[ProfilerActivity.CPU, "),
        (["gemm"], "none of the trace's kernels is of NCCL"),
    ],
    ids=["of a CPU alone", "of one GPU"],
)  # fmt: skip
def test_a_trace_without_collectives_says_what_it_lacks(read_text, tmp_path, kernels, lack):
    (gap,) = read_text("auto", json.dumps(trace(*kernels)), "trace.json").gaps

    assert gap.startswith(f"{tmp_path / 'trace.json'}: kineto: no row was read: {lack}")


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(trace("ncclDevKernel_AllGather"))[:-30],
        '{"schemaVersion": 1, "deviceProperties": [], "traceEvents": 5}',
        '{"schemaVersion": 1, "deviceProperties": ' + "[" * 200_000,
    ],
    ids=["cut", "no events", "deep"],
)
def test_a_document_that_is_no_trace_is_refused(read_text, text):
    with pytest.raises(IngestError, match="trace"):
        read_text("kineto", text, "trace.json")
