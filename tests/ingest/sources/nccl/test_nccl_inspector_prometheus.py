# ruff: noqa: DTZ001 -- moments are stored naive, in UTC
"""The Prometheus mode of the NCCL Inspector: means of windows, a file a GPU."""

from datetime import datetime

import pytest

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.nccl.inspector import NcclInspector
from goodput_ingest.sources.registry import recognise
from goodput_queries.errors import IngestError

GPU_FILE = "nccl_inspector_metrics_55aa8e95-02cb-59dd-8a6f-15cbd706e86e.prom"
LABELS = (
    'version="v5.1",slurm_job_id="91234",node="vm",gpu="GPU2",comm_name="unknown",n_nodes="1",'
    'nranks="4",collective="AllGather",message_size="6-7MB",algo_proto="RING_SIMPLE"'
)
SAMPLES = (
    f"nccl_bus_bandwidth_gbs{{{LABELS}}} 60.5\n"
    f"nccl_collective_exec_time_microseconds{{{LABELS}}} 533.5\n"
)
WRITTEN_AT = datetime(2026, 11, 20, 12, 32, 51)


def read_metrics(store, path, text, observed_at=WRITTEN_AT):
    path.write_text(text)
    assert recognise(path) is NcclInspector
    ingest(store, "nccl-inspector", [path], ReadOptions(observed_at=observed_at))
    return store.read(
        "select * exclude (load_sequence) from raw.collective_summaries order by ts, gpu_uuid"
    ).rows(named=True)


def test_files_of_the_prometheus_mode_put_into_one_keep_gpu_and_time(store, tmp_path):
    text = f"# file 1795177971-{GPU_FILE}\n{SAMPLES}# file 1795177975-{GPU_FILE}\n{SAMPLES}"

    rows = read_metrics(store, tmp_path / "all.txt", text, observed_at=None)

    assert [row["ts"].second for row in rows] == [51, 55]
    assert {row["gpu_uuid"] for row in rows} == {"GPU-55aa8e95-02cb-59dd-8a6f-15cbd706e86e"}


def test_the_prometheus_mode_needs_an_option_when_it_was_written(store, tmp_path):
    with pytest.raises(IngestError, match="--observed-at"):
        read_metrics(store, tmp_path / GPU_FILE, SAMPLES, observed_at=None)


def test_point_to_point_samples_name_their_operation(store, tmp_path):
    labels = LABELS.replace("collective=", "p2p_operation=").replace("AllGather", "Send")
    text = (
        f"nccl_p2p_bus_bandwidth_gbs{{{labels}}} 1\nnccl_p2p_exec_time_microseconds{{{labels}}} 2\n"
    )

    (row,) = read_metrics(store, tmp_path / GPU_FILE, text)

    assert (row["operation"], row["is_p2p"], row["exec_time_s"]) == ("Send", True, 2e-6)


@pytest.mark.parametrize(
    "broken",
    [
        "nccl_bus_bandwidth_gbs 5",
        'other{node="vm"} 5',
        'nccl_bus_bandwidth_gbs{node="vm"} 5',
        f"nccl_bus_bandwidth_gbs{{{LABELS}}} x",
        f"nccl_bus_bandwidth_gbs{{{LABELS}}} nan",
        f"nccl_bus_bandwidth_gbs{{{'x' * 5000}}} 5",
    ],
)
def test_a_sample_that_is_none_is_rejected(store, tmp_path, broken):
    rows = read_metrics(store, tmp_path / GPU_FILE, f"{SAMPLES}{broken}\n")

    assert len(rows) == 1
    assert store.read("select line from raw.rejects").rows() == [(3,)]
