"""A recorded session with injected faults: what is found, and what each source alone says of it."""

import json
from datetime import UTC, datetime

import pytest
from tests.external_data import CAPTURE, reading

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions

PARTS = (
    *("sacct.txt", "nvml.jsonl.gz", "job_events.jsonl.gz", "joblog", "nccl_inspector"),
    *("nccl_debug", "nccl_ras.jsonl.gz", "traces", "collective_bench.jsonl.gz"),
)
GPUS = 4
pytestmark = reading(CAPTURE)


@pytest.fixture(scope="module")
def found(module_store):
    """Return the findings of the whole session, without those about evidence."""
    return findings(module_store(threads=None), PARTS)


@pytest.fixture(scope="module")
def found_by_events(module_store):
    """Return the findings by accounting, readings and job events alone."""
    return findings(module_store(threads=None), PARTS[:3])


def findings(store, parts):
    for part in parts:
        ingest(store, "auto", [CAPTURE / part], ReadOptions(cluster="lab"))
    store.build()
    return store.read("from marts.findings where kind <> 'data quality'").rows(named=True)


@pytest.fixture(scope="module")
def truth():
    """Return what was injected."""
    lines = (CAPTURE / "truth.jsonl").read_text().splitlines()
    return [row for row in map(json.loads, lines) if row["kind"] == "fault"]


def one(found, rule, **having):
    of = {"rule": rule, **having}
    (row,) = (row for row in found if of.items() <= row.items())
    return row


def began(truth, fault, **having):
    of = {"fault": fault, "phase": "begin", **having}
    return [row for row in truth if of.items() <= row.items()]


def moment(row):
    return datetime.fromtimestamp(row["t"], UTC).replace(tzinfo=None)


@pytest.mark.slow
def test_only_what_was_injected_is_found(found):
    """And the rank that is slow in steps that were rolled back: their time is lost work."""
    assert sorted(row["rule"] for row in found) == [
        *("checkpoint_overhead", "gaps_between_steps", "hang", "input_stall", "job_failure"),
        *("slow_link", "slow_rank", "slow_rank", "steps_slower"),
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("rank", "attempt", "origin"), [(1, 0, "host"), (3, 1, "GPU")])
def test_a_slow_rank_has_its_gpu_times_and_price_also_by_step_parts_alone(
    found, found_by_events, truth, rank, attempt, origin
):
    """Each has one finding: with rank, host, GPU, which of them it was, and the same price."""
    (injected,) = began(truth, "slow_rank", rank=rank, attempt=attempt)
    steps = injected["until"] - injected["step"] + 1
    waited_s = steps * injected["ms"] / 1000 * (GPUS - 1)
    row, by_events = (one(rows, "slow_rank", gpu_index=rank) for rows in (found, found_by_events))

    assert row["run_key"] == "lab/main"
    assert abs((row["since_at"] - moment(injected)).total_seconds()) < 1
    for gpu_ms in (row["gpu_ms"], by_events["gpu_ms"]):
        assert gpu_ms / 1000 == pytest.approx(waited_s, rel=0.1)
    assert by_events["subject"] == f"main, vm, GPU {rank}"
    assert f"rank {rank} spends " in by_events["evidence"]
    assert f" of {steps} steps outside" in by_events["evidence"]
    assert by_events["evidence"].endswith(f"the delay is on the {origin}")


SECONDS = {  # of all ranks, by rule; of stalls those of steps that were kept
    "input_stall": lambda truth: sum(
        {row["step"]: row["seconds"] for row in began(truth, "data_stall", rank=0)}.values()
    ),
    "gaps_between_steps": lambda truth: began(truth, "idle", rank=0)[0]["seconds"],
    "checkpoint_overhead": lambda _: 2.37 + 3.09 + 3.24,  # of blocking saves
}


@pytest.mark.slow
@pytest.mark.parametrize("rule", SECONDS)
def test_time_that_all_ranks_lost_has_its_price(found, truth, rule):
    row = one(found, rule, run_key="lab/main")

    assert row["gpu_ms"] / 1000 == pytest.approx(SECONDS[rule](truth) * GPUS, rel=0.05)


@pytest.mark.slow
def test_the_killed_rank_is_a_failure_of_the_job(found, truth):
    (crash,) = began(truth, "crash")
    row = one(found, "job_failure")

    assert row["run_key"] == "lab/main"
    assert row["since_at"] < moment(crash)
    assert 78 < row["gpu_ms"] / 1000 < 125, "lost work, the stall, and starting again"


@pytest.mark.slow
def test_the_hang_names_the_rank_that_did_not_take_part(found, truth):
    (hang,) = began(truth, "hang")
    row = one(found, "hang")

    assert (row["severity"], row["confidence"]) == ("ticket", "Confirmed")
    assert (row["run_key"], row["gpu_index"]) == ("lab/hang", hang["rank_hit"])
    assert row["evidence"].startswith(f"rank {hang['rank_hit']} ")


@pytest.mark.slow
def test_the_slow_link_is_a_link_and_the_power_cap_no_loss(found):
    row = one(found, "slow_link")
    assert (row["run_key"], row["severity"], row["confidence"]) == (
        "lab/slowlink", "ticket", "Likely")  # fmt: skip
    assert not [row for row in found if row["kind"] == "throttling"]


ALONE = {
    # the dumps of the healthy part are no hang
    "traces": {"waiting_ranks": [0, 2, 3], "operation": "all_reduce", "sequence_number": 45},
    "nccl_ras.jsonl.gz": {"culprit_node": "192.0.2.2"},  # RAS knows addresses only
}


@pytest.mark.parametrize(
    "part", [pytest.param("traces", marks=pytest.mark.slow), "nccl_ras.jsonl.gz"]
)
def test_dumps_or_ras_alone_name_the_rank(store, truth, part):
    (stopped,) = began(truth, "hang")
    assert not ingest(store, "auto", [CAPTURE / part], ReadOptions()).refused
    store.build()
    (hang,) = store.read("from marts.hangs").rows(named=True)

    assert hang["culprit_ranks"] == [stopped["rank"]]
    assert hang.items() >= ALONE[part].items()
    if part == "traces":
        assert abs((hang["since_at"] - moment(stopped)).total_seconds()) < 1


@pytest.fixture(scope="module")
def together(module_store):
    """Give RAS, the inspector and NVML in one database, built, and what each of them gave."""
    store = module_store()
    parts = ("nccl_ras.jsonl.gz", "nccl_inspector", "nvml.jsonl.gz")
    found = {part: ingest(store, "auto", [CAPTURE / part], ReadOptions()) for part in parts}
    store.build()
    return store, found


def test_ras_inspector_and_nvml_name_node_and_gpu(together, truth):
    (stopped,) = began(truth, "hang")
    (hang,) = together[0].read("from marts.hangs").rows(named=True)

    assert (hang["culprit_rank"], hang["culprit_node"]) == (stopped["rank"], "vm")
    assert hang["culprit_gpu_uuid"] == "GPU-905b6e58-a776-5f74-ab95-c06efaf0b635"


ROWS = {
    "nccl_inspector": {"collectives": 22_016, "collective_summaries": 168},
    "nvml.jsonl.gz": {"gpus": 4, "gpu_samples": 10_698, "gpu_samples_other": 39_840,
                      "gpu_processes": 1_328, "node_samples": 332},
}  # fmt: skip


@pytest.mark.parametrize("part", ROWS)
def test_a_part_of_the_recording_is_read_whole(together, part):
    found = together[1][part]

    assert (found.rows_by_table, found.rejects) == (ROWS[part], 0)
