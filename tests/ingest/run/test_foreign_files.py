"""A file of another format is refused by each source in a sentence that says what it expects."""

import re

import pytest

from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.registry import SOURCES, recognise
from goodput_queries.errors import IngestError

REFUSALS = {
    "slurm": "slurm: this is not a text of Slurm that can be read. Expected the output of sacct",
    **{
        name: f"{name}: column 'call Bob about node003' is not known; the columns are cluster, "
        for name in (
            *("inventory", "rates", "tariffs", "budgets", "power-feeds", "node-states", "carbon"),
            "node-tests",
        )
    },
    "prometheus": "this is not JSON",
    "kubernetes": "this is not JSON",
    "nvml": "this is not an NVML recording; expected JSON lines with a kind (meta, fast, slow, ",
    "dcgm": "these are not metrics of a GPU exporter; expected lines as DCGM_FI_DEV_GPU_UTIL{",
    "node-exporter": "these are not metrics of node_exporter; expected lines as node_cpu_seconds_",
    "serving-metrics": "these are not metrics of a serving engine; expected lines as vllm:num_",
    "serving-requests": "these are not requests; expected the fields arrival, first_token or end",
    "job-events": 'no line is a job event; expected {"v": 1, "ts": ..., "event": ...}.',
    "nccl-inspector": "no line is a record of the NCCL Inspector; expected {",
    "flight-recorder": "the rank of a Flight Recorder dump stands in its file name alone",
    "nccl-ras": "this is not an answer of NCCL RAS; expected what `ncclras -v` prints, its JSON",
    "nccl-tests": "there is no result of nccl-tests; expected its table (size, count, type, ...",
    "nccl-debug": "this is not a log of NCCL; expected lines `host:pid:thread [0] NCCL INFO",
    "kineto": "the trace is cut or not JSON",
    "bundle": "expected a table of a bundle of format 1, found none.",
    "telemetry-parquet": "this is not a Parquet file that can be read",
    "operation-trace": "this is not Parquet that can be read",
    "mlperf": "no line says init_start; expected an MLPerf training log.",
    "node-power": "no line is a power reading (:::MLLOG power_reading).",
    "goodput-events": "no line has a job_name and one of the library's times.",
    "otel-spans": "no line has a span named megatron.* or nvrx.*.",
    "torchtitan-structured": "no line has a log_type_name and a time_us.",
    "job-log": "no line has the log format of a known framework.",
    "kernel-log": "this is not a kernel log; expected `dmesg -T`, `journalctl -k -o short-iso-",
}


@pytest.mark.parametrize("name", SOURCES)
def test_a_file_of_another_format_is_refused(tmp_path, name):
    path = tmp_path / "notes.txt"
    path.write_text("call Bob about node003\n" * 3)

    assert recognise(path) is None
    with pytest.raises(IngestError, match=re.escape(f"{path}: {REFUSALS[name]}")):
        list(SOURCES[name](path, ReadOptions()).extract())
