"""A recorded session's hang: each source alone names the rank that was stopped."""

import json
from datetime import UTC

import pytest
from tests.external_data import CAPTURE, reading

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions

pytestmark = reading(CAPTURE)


@pytest.fixture(scope="module")
def stopped():
    """Return the truth: which rank stopped taking part, and when."""
    lines = (CAPTURE / "truth.jsonl").read_text().splitlines()
    (fault,) = (r for r in map(json.loads, lines) if r.get("fault") == "hang")
    return dict(fault)


def hangs(store, *parts):
    for part in parts:
        summary = ingest(store, "auto", [CAPTURE / part], ReadOptions())
        assert not summary.refused
    store.build()
    return store.read("from marts.hangs").rows(named=True)


@pytest.mark.slow
def test_the_dumps_alone_name_the_rank(store, stopped):
    (hang,) = hangs(store, "traces")  # the dumps of the healthy part are no hang

    assert hang["culprit_ranks"] == [stopped["rank"]]
    assert hang["waiting_ranks"] == [0, 2, 3]
    assert (hang["operation"], hang["sequence_number"]) == ("all_reduce", 45)
    assert abs(hang["since_at"].replace(tzinfo=UTC).timestamp() - stopped["t"]) < 1


def test_ras_alone_names_the_rank(store, stopped):
    (hang,) = hangs(store, "nccl_ras.jsonl.gz")

    assert hang["culprit_ranks"] == [stopped["rank"]]
    assert hang["culprit_node"] == "192.0.2.2"  # RAS knows addresses only


@pytest.fixture(scope="module")
def together(new_store):
    """Give RAS, the inspector and NVML in one database, built, and what each of them gave."""
    store = new_store()
    parts = ("nccl_ras.jsonl.gz", "nccl_inspector", "nvml.jsonl.gz")
    found = {part: ingest(store, "auto", [CAPTURE / part], ReadOptions()) for part in parts}
    store.build()
    yield store, found
    store.close()


def test_ras_inspector_and_nvml_name_node_and_gpu(together, stopped):
    (hang,) = together[0].read("from marts.hangs").rows(named=True)

    assert (hang["culprit_rank"], hang["culprit_node"]) == (stopped["rank"], "vm")
    assert hang["culprit_gpu_uuid"] == "GPU-905b6e58-a776-5f74-ab95-c06efaf0b635"


def test_the_log_of_nccl_itself_maps_every_rank_of_every_communicator(store):
    ingest(store, "auto", [CAPTURE / "nccl_debug"], ReadOptions())

    found = store.read(
        "select count(*), count(distinct comm_id), min(pci_bus_id) from raw.rank_map"
    )
    assert found.row(0) == (20, 5, "00000000:00:06.0")


def test_a_trace_reports_what_communication_was_exposed(store):
    ingest(store, "auto", [CAPTURE / "traces" / "kineto-fsdp-rank0.json.gz"], ReadOptions())

    found = store.read(
        "select count(*), sum(duration_s), sum(exposed_s) from raw.profiled_collectives"
    ).row(0)
    assert found == (150, pytest.approx(0.0990, abs=1e-4), pytest.approx(0.0360, abs=1e-4))


def test_the_recorded_logs_of_the_inspector_are_read_whole(together):
    store, summary = together[0], together[1]["nccl_inspector"]

    assert summary.rows_by_table == {"collectives": 22016, "collective_summaries": 168}
    assert summary.rejects == 0
    verbose = store.read("select count(started_at), count(kernel_stop_at) from raw.collectives")
    assert verbose.row(0)[0] == verbose.row(0)[1] > 0


def test_the_recorded_readings_of_nvml_are_read_whole(together):
    store, summary = together[0], together[1]["nvml.jsonl.gz"]

    assert summary.rejects == 0
    assert summary.rows_by_table == {
        "gpus": 4,
        "gpu_samples": 10698,
        "gpu_samples_other": 39840,
        "gpu_processes": 1328,
        "node_samples": 332,
    }
    flagged = store.read("select count(*) from raw.gpu_samples where is_flagged").item()
    assert flagged == 1139  # the readings without a DRAM share, one in ten
