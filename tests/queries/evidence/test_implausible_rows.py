"""A database that has rows of implausible time already is built as if they had never come."""

from datetime import datetime, timedelta

import polars as pl
import pytest

from goodput_queries.check import check
from goodput_queries.evidence.batch import Batch

START = datetime(2026, 11, 16, 8)  # noqa: DTZ001 -- naive UTC
AT_1970, AT_2036 = datetime(1970, 2, 7), datetime(2036, 2, 7)  # noqa: DTZ001
READING = {"source": "nvml", "gpu_uuid": "GPU-0", "gpu_instance": "", "gpu_busy_ratio": 1.0}
JOB = {"source": "slurm", "cluster": "c", "job_id": "7", "job_id_raw": "7", "state": "COMPLETED"}
EVENT = {"source": "job-events", "cluster": "c", "run_id": "7", "host": "n", "event": "step"}
EVENT |= {"reports_durability": False}
STATE = {"source": "slurm", "cluster": "c", "node": "n", "state": "down"}
STRAYS = [
    ("gpu_samples", {**READING, "ts": AT_1970}),
    ("gpu_samples", {**READING, "ts": AT_2036}),
    ("gpu_processes", {"source": "nvml", "gpu_uuid": "GPU-0", "ts": AT_2036, "processes": 0}),
    ("job_events", {**EVENT, "ts": AT_1970, "step": 1, "rank": 0}),
    ("job_runs", {**JOB, "submit_at": AT_1970, "start_at": AT_1970, "end_at": START, "gpus": 1}),
    ("job_runs", {**JOB, "submit_at": START, "observed_at": AT_2036}),
    ("node_states", {**STATE, "start_at": AT_1970}),
    ("node_states", {**STATE, "start_at": START, "end_at": AT_2036}),
]


def load(store, table, rows, digest):
    frame = pl.DataFrame(rows, infer_schema_length=None)
    store.load(Batch(table, frame, str(rows[0]["source"]), f"{digest}.txt", digest))


def fill(store):
    """Load six hours of two GPUs and a job that holds one of them for an hour."""
    gpus = [{"source": "inventory", "cluster": "c", "node": "n", "gpu_uuid": f"GPU-{i}",
             "gpu_index": i, "slurm_index": i} for i in range(2)]  # fmt: skip
    load(store, "gpus", gpus, "gpus")
    moments = [START + timedelta(minutes=minute) for minute in range(360)]
    rows = [{**READING, "gpu_uuid": f"GPU-{i}", "ts": at} for i in range(2) for at in moments]
    load(store, "gpu_samples", rows, "readings")
    held = {"start_at": START, "end_at": START + timedelta(hours=1), "nodes": ["n"], "gpus": 1}
    job = {**JOB, "job_id": "1", "job_id_raw": "1", "submit_at": START, **held}
    load(store, "job_runs", [job], "jobs")


def ledger(store):
    return {
        table: store.read(f"from {table} order by all").rows()
        for table in ("intermediate.int_ledger_segments", "marts.clusters", "state.reading_series")
    }


@pytest.fixture(scope="module")
def expected(module_store):
    """Return the ledger of a database that never saw a stray."""
    store = module_store()
    fill(store)
    store.build()
    return ledger(store)


def test_strays_of_any_table_change_nothing_and_are_among_the_rejects(store, expected):
    fill(store)
    store.build()
    for number, (table, row) in enumerate(STRAYS):
        load(store, table, [row], f"stray-{number}")

    store.build()

    assert ledger(store) == expected
    rejected = store.read("select origin, reason, content from raw.rejects order by origin").rows()
    assert [origin for origin, _, _ in rejected] == [f"stray-{i}.txt" for i in range(len(STRAYS))]
    assert "ts is before 2000-01-01" in rejected[0][1]
    assert "1970-02-07" in rejected[0][2]
    assert check(store).filter(pl.col("violations") > 0).is_empty()
    assert store.read("select max(window_end_at) from state.ingested").item() < AT_2036


@pytest.mark.parametrize("stamp", ["2036-02-07", "2003-02-07"])
def test_a_stray_in_the_load_of_good_rows_goes_alone(store, expected, stamp):
    fill(store)
    with store.writing() as cursor:
        cursor.execute(
            "insert into raw.gpu_samples by name "
            f"select * replace ('{stamp}'::timestamp as ts) from raw.gpu_samples where ts = $1",
            [START])  # fmt: skip
        cursor.execute(
            f"update state.ingested set window_end_at = greatest(window_end_at, '{stamp}'), "
            f"window_start_at = least(window_start_at, '{stamp}') where origin = 'readings.txt'"
        )

    store.build()

    assert ledger(store) == expected


def test_hours_frozen_until_a_reading_of_the_future_count_again(store):
    fill(store)
    load(store, "gpu_samples", [{**READING, "ts": AT_2036}], "stray")
    with store.writing() as cursor:  # what `prune` did before
        cursor.execute("delete from raw.gpu_samples where ts < '2036-02-07'")
        cursor.execute("insert into state.kept_from values ('gpu_samples', 2085955200000)")
    again = [{**READING, "ts": START + timedelta(hours=6, minutes=m)} for m in range(180)]
    load(store, "gpu_samples", again, "later")

    store.build()

    hours = "select count(*) from intermediate.int_gpu_activity where is_active"
    assert store.read(hours).item() >= 3
    kept_from = store.read("select from_ms(kept_from_ms) from state.kept_from").item()
    assert kept_from == START + timedelta(hours=6)


def test_evidence_that_lies_ahead_as_a_whole_is_kept(evidence):
    evidence.node("a", 1)
    evidence.samples("c/a#0", evidence.every(0, 7_200, 60), lambda _: True)
    evidence.job("1", 0, 3_600, ["a"], 1)

    evidence.store.build()

    assert evidence.store.read("select count(*) from raw.rejects").item() == 0
    assert evidence.store.read("select count(*) from raw.gpu_samples").item() == 121
