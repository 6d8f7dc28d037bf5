"""Scheduler records in several listings, and records missing from later listings."""

import pytest
from tests.queries.conftest import built_in, each, shown_by

INDEX = 2798573628995141632  # of a record in the accounting's database


def held(evidence):
    return evidence.own("job_run_key, (sum(gpu_ms) / 1000)::integer", "marts.ledger_hourly",
                        "job_run_key is not null group by job_run_key")  # fmt: skip


@pytest.mark.parametrize("indices", [[INDEX, None], [None, INDEX]])
@pytest.mark.parametrize("is_built_between", [True, False])
@built_in(3)
def test_a_record_with_and_without_its_index_is_one_job_run(cluster, indices, is_built_between):
    """JSON lacks the index; half a node, so that a second hold would find free GPUs."""
    cluster.node("a", 4)
    for index in indices:
        cluster.job("1", 0, 100, ["a"], 2, db_index=index)
        if is_built_between:
            yield
    yield
    assert held(cluster) == [(f"{cluster.name}/1@1800000000", 200)]
    assert cluster.own("db_index", "raw.job_runs") == [(INDEX,)]


def tell_of_a_running_job(evidence):
    evidence.node("a", 2, watched=20_000)
    evidence.job("1", 0, None, ["a"], 1, "RUNNING", elapsed_s=600, source="slurm")


def runs(evidence):
    return evidence.own("job_id, end_ms - start_ms, outcome", "intermediate.int_job_runs")


def keyed(*held_s):
    """Return what is held: job, second of its submission and GPU-seconds."""
    return lambda c: [(f"{c.name}/{job}@{1_800_000_000 + at}", s) for job, at, s in held_s]


def second_job(cluster):
    cluster.job("2", 9_000, 9_100, ["a"], 1, source="slurm")


def left_out(cluster):
    tell_of_a_running_job(cluster)
    second_job(cluster)


test_what_records_hold = shown_by({
    # a requeue and a resize give a new moment of submission
    "records of a job that was resubmitted stay apart": (
        lambda c: [c.job_on_a_node("1", 0, 40, 4, "RESIZING", db_index=73),
                   c.job("1", 0, 100, ["a"], 2, submit=40, db_index=76)], held,
        keyed(("1", 0, 160), ("1", 40, 120))),
    "a running record that later listings leave out holds up to when it was last reported": (
        left_out, lambda c: (runs(c), held(c)),
        lambda c: ([("1", 600_000, "running"), ("2", 100_000, "ok")],
                   keyed(("1", 0, 600), ("2", 9_000, 100))(c))),
})  # fmt: skip
# what is loaded before each of two builds
test_what_later_records_say = shown_by({
    "a record that listings leave out after a build": (
        [tell_of_a_running_job, second_job], [("1", None, "running"), ("1", 600_000, "running")]),
    "a running record ends when a late listing says so": (
        [left_out, lambda c: c.job("1", 0, 5_000, ["a"], 1, elapsed_s=5_000, source="slurm")],
        [("1", 600_000, "running"), ("1", 5_000_000, "ok")]),
}, read=lambda c: runs(c)[0], builds=2)  # fmt: skip


RUNS_ON = ("1", None, "running")
# what comes later
test_a_running_record_runs_on = shown_by({
    "listings name it": (
        lambda c: [c.job("1", 0, None, ["a"], 1, "RUNNING", elapsed_s=9_090, source="slurm"),
                   c.job("2", 9_000, 9_100, ["a"], 1, source="slurm")], RUNS_ON),
    "the next listing is not an hour later": (
        lambda c: c.job("2", 600, 4_100, ["a"], 1, source="slurm"), RUNS_ON),
    "only readings came later": (
        lambda c: c.samples("a#0", c.every(0, 20_000, 100), lambda _: True), RUNS_ON),
}, before=tell_of_a_running_job, read=lambda c: runs(c)[0])  # fmt: skip


# what it shows: (start, end, nodes, GPUs) of job runs, whether `a` is listed, what is held
@each({
    "of a node that the inventory lacks it holds the rest of its GPUs": (
        [(0, 100, ["a", "b"], 16)], True, [("a", 8, 800), ("b", 8, 800)]),
    "over nodes that the inventory lacks it is spread whoever else is there": (
        [(0, 100, ["a"], 1), (200, 300, ["a", "b"], 16)], False, [("a", 8, 900), ("b", 8, 800)]),
    "a node without GPUs has none where the others have enough": (
        [(0, 100, ["a", "login"], 8)], True, [("a", 8, 800)]),
})  # fmt: skip
def test_gpus_of_a_job_on_nodes_that_the_inventory_lacks(cluster, jobs, is_listed, expected):
    if is_listed:
        cluster.node("a", 8, watched=200)
    for number, (start, end, nodes, gpus) in enumerate(jobs):
        cluster.job(str(number), start, end, nodes, gpus)
    yield
    columns = "node, count(distinct gpu_uuid), (sum(gpu_ms) / 1000)::integer"
    where = "job_run_key is not null group by node"
    assert cluster.own(columns, "marts.ledger_hourly", where) == expected


# what it shows: (start, end, submission) of the records of job 1, whether they are reported
@each({
    "records read in two zones, an hour apart, differ in nothing but their times": (
        [(10, 100, 0), (3_610, 3_700, 3_600)], True),
    "a requeue lasts otherwise": ([(10, 100, 0), (3_610, 3_790, 3_600)], False),
    "a job of scrontab keeps its number and starts by the clock": (
        [(hour, hour + 60, hour) for hour in (0, 3_600, 7_200)], False),
})  # fmt: skip
def test_duplicate_records_are_reported(cluster, records, is_reported):
    cluster.node("a", 4)
    for start, end, submit in records:
        cluster.job("1", start, end, ["a"], 2, submit=submit)
    yield
    sql = f"""select n, example from marts.data_quality
        where kind = 'duplicate scheduler records' and example like '{cluster.name}/%'"""
    found = cluster.read(sql)
    assert found.rows() == ([(1, f"{cluster.name}/1")] if is_reported else [])
