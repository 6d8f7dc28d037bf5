"""What was read in by mistake goes, and the database is as if it had never seen it."""

import polars as pl
import pytest
from tests.queries.conftest import Evidence

from goodput_queries.catalog import models
from goodput_queries.errors import StoreError
from goodput_queries.evidence.batch import Batch, Reject
from goodput_queries.evidence.forgetting import forget
from goodput_queries.evidence.retention import Retention, drop_old

DAY_S = 86_400
BOOKS = {"built", "ingested", "kept_from", "source_status"}  # of loads, which differ by nature


def job(at, job_id, start, end, **more):
    return {"source": "slurm", "cluster": "c", "job_id": job_id, "job_id_raw": job_id,
            "submit_at": at(start), "eligible_at": at(start), "start_at": at(start),
            "end_at": at(end), "state": "RUNNING" if end is None else "COMPLETED", "nodes": ["a"],
            "gpus": 1, **more}  # fmt: skip


def readings(at, gpu, seconds, engine_active_ratio):
    return [{"source": "dcgm", "gpu_uuid": f"c/{gpu}", "gpu_instance": "", "ts": at(second),
             "engine_active_ratio": engine_active_ratio, "is_flagged": False}
            for second in seconds]  # fmt: skip


def load(evidence, table, rows, origin, *rejects):
    frame = pl.DataFrame(rows, infer_schema_length=None)
    digest = f"{origin} {table}"  # of one file
    batch = Batch(table, frame, rows[0]["source"], origin, digest, list(rejects))
    return evidence.store.load(batch).rows_new


def everything(evidence):
    """Return the rows of all tables, without the numbers of loads."""
    evidence.store.build()
    layers = (*models.BASE_LAYERS, "intermediate", "marts")
    every = [model for layer in layers for model in models.of_layer(layer).values()]
    kept = [m for m in every if m.name not in BOOKS]
    names = [m.qualified_name for m in kept if m.layer in models.BASE_LAYERS or m.is_stored]
    tables = {name: evidence.store.read(f"from {name} order by all") for name in names}
    return {name: rows.drop("load_sequence", strict=False).rows() for name, rows in tables.items()}


def the_right(evidence):
    evidence.node("a", 2)
    load(evidence, "job_runs", [job(evidence.at, "1", 0, 1000)], "right/sacct.txt")
    read = readings(evidence.at, "a#0", range(0, 1000, 10), 0.9)
    load(evidence, "gpu_samples", read, "right/dcgm")


def the_wrong(evidence):
    load(evidence, "job_runs", [job(evidence.at, "2", 200, 90_000)], "wrong/sacct.txt",
         Reject(7, "no job"))  # fmt: skip
    later = [*range(995, 2000, 10), *range(50_000, 60_000, 500)]
    load(evidence, "gpu_samples", readings(evidence.at, "a#1", later, 0.0), "wrong/dcgm")


@pytest.fixture(scope="module")
def unseen(module_store):
    """Return everything of a database that saw the right files alone."""
    evidence = Evidence(module_store())
    the_right(evidence)
    return everything(evidence)


@pytest.mark.parametrize("order", [(the_right, the_wrong), (the_wrong, the_right)])
def test_a_forgotten_folder_leaves_the_ledger_that_never_saw_it(evidence, unseen, order):
    for load_part in order:
        load_part(evidence)
        evidence.store.build()

    found = forget(evidence.store, ["wrong"])

    assert found.rows() == [("wrong/dcgm", 121, False), ("wrong/sacct.txt", 1, False)]
    assert everything(evidence) == unseen


def test_a_file_with_the_same_rows_can_be_read_again(evidence, unseen):
    """The wrong file was there first, so that the rows of both are its own."""
    seen = evidence
    seen.node("a", 2)
    both = [job(seen.at, "1", 0, 1000), job(seen.at, "2", 200, 300)]
    load(seen, "job_runs", both, "wrong/sacct.txt")
    load(seen, "gpu_samples", readings(seen.at, "a#0", range(500, 1500, 10), 0.9), "wrong/dcgm")
    the_right(seen)
    seen.store.build()

    found = forget(seen.store, ["wrong/sacct.txt", "wrong/dcgm"])
    again = found.filter(found["is_to_read_again"])["origin"].to_list()
    the_right(seen)

    assert again == ["right/dcgm", "right/sacct.txt"]
    assert everything(seen) == unseen


def test_what_a_later_record_replaced_can_be_read_again(new_evidence):
    """A wrong listing ended a job that ran; its row stands in the place of the right one's."""
    seen, unseen = new_evidence(), new_evidence()
    for one in (seen, unseen):
        one.node("a", 1)
        load(one, "job_runs", [job(one.at, "1", 0, None, elapsed_s=600)], "right")
    load(seen, "job_runs", [job(seen.at, "1", 0, 500)], "wrong")

    found = forget(seen.store, ["wrong"])
    load(seen, "job_runs", [job(seen.at, "1", 0, None, elapsed_s=600)], "right")

    assert found.rows() == [("wrong", 1, False), ("right", 0, True)]
    runs = "select * exclude (load_sequence) from raw.job_runs"
    assert seen.store.read(runs).rows() == unseen.store.read(runs).rows()


def test_an_origin_that_is_not_known_and_rows_of_an_earlier_version_are_not_guessed_at(evidence):
    load(evidence, "job_runs", [job(evidence.at, "1", 0, 10)], "logs/sacct.txt")

    nearest = r"nothing was ingested from 'logs/sact.txt'.*'logs/sacct.t"
    with pytest.raises(StoreError, match=nearest):
        forget(evidence.store, ["logs/sact.txt"])
    with evidence.store.writing() as cursor:
        cursor.execute("alter table raw.job_runs alter load_sequence drop not null")
        cursor.execute("update raw.job_runs set load_sequence = null")

    with pytest.raises(StoreError, match="rows of an earlier version"):
        forget(evidence.store, ["logs/sacct.txt"])


def test_readings_of_hours_that_are_settled_stay(evidence):
    evidence.node("a", 1)
    days = range(0, 5 * DAY_S, 600)
    load(evidence, "gpu_samples", readings(evidence.at, "a#0", days, 0.9), "dcgm")
    evidence.store.build()
    now = evidence.at(5 * DAY_S)
    drop_old(evidence.store, Retention(samples_days=2), is_confirmed=True, now=now)

    with pytest.raises(StoreError, match="hours that are frozen"):
        forget(evidence.store, ["dcgm"])
    late = range(4 * DAY_S, 4 * DAY_S + 100, 7)
    load(evidence, "gpu_samples", readings(evidence.at, "a#0", late, 0.9), "late")
    before = evidence.store.read("select first_ms from state.reading_series").rows()
    assert forget(evidence.store, ["late"])["is_to_read_again"].to_list() == [False]
    evidence.store.build()
    assert evidence.store.read("select first_ms from state.reading_series").rows() == before
