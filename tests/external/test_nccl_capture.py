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


ROWS = {
    "nccl_inspector": {"collectives": 22_016, "collective_summaries": 168},
    "nvml.jsonl.gz": {
        "gpus": 4, "gpu_samples": 10_698, "gpu_samples_other": 39_840, "gpu_processes": 1_328,
        "node_samples": 332,
    },
}  # fmt: skip


@pytest.mark.parametrize("part", ROWS)
def test_a_part_of_the_recording_is_read_whole(together, part):
    found = together[1][part]

    assert (found.rows_by_table, found.rejects) == (ROWS[part], 0)
