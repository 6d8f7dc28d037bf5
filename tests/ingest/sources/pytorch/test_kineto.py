import json

import pytest
from tests.tables import each

from goodput_queries.errors import IngestError

pytest.importorskip("goodput_formats_extra")


def trace(*names):
    """Return a trace of kernels with these names."""
    at = {"ph": "X", "cat": "kernel", "pid": 2, "tid": 24, "ts": 4320921365023.25, "dur": 5}
    return {
        "schemaVersion": 1, "deviceProperties": [], "baseTimeNanoseconds": 1790857026000000000,
        "traceEvents": [{"ph": "X", "cat": "cpu_op"}, *({**at, "name": name} for name in names)],
    }  # fmt: skip


@each({"of a CPU alone": ([],
     "the trace has no kernels of GPUs; record it with `activities=[ProfilerActivity.CPU, "),
"of one GPU": (["gemm"], "none of the trace's kernels is of NCCL"),
})  # fmt: skip
def test_a_trace_without_collectives_says_what_it_lacks(read_text, tmp_path, kernels, lack):
    (gap,) = read_text("auto", json.dumps(trace(*kernels)), "trace.json").gaps
    assert gap.startswith(f"{tmp_path / 'trace.json'}: kineto: no row was read: {lack}")


@each(
    {
        "cut": json.dumps(trace("ncclDevKernel_AllGather"))[:-30],
        "no events": '{"schemaVersion": 1, "deviceProperties": [], "traceEvents": 5}',
        "deep": '{"schemaVersion": 1, "deviceProperties": ' + "[" * 200_000,
    }
)
def test_a_document_that_is_no_trace_is_refused(read_text, text):
    with pytest.raises(IngestError, match="trace"):
        read_text("kineto", text, "trace.json")
