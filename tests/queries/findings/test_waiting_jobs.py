"""Which jobs waited while GPUs were free, and whose job an idle allocation is."""

import pytest
from tests.queries.conftest import built_together
from tests.queries.findings.conftest import found_together

HOUR = 3600
TWO_H = 2 * HOUR
HOSTILE = "<img src=x>\x1b[31m [evil](https://evil.test)\u202e" + "w" * 1_000
SHOWN = "<img src=x>[31m [evil](https://evil.test"  # 40 characters


def fleet(cluster):
    """Load two nodes of four GPUs, watched and free for two hours."""
    for node in "ab":
        cluster.node(node, 4, partitions=("p",))
    cluster.watched(TWO_H)


def waits(cluster, job, start=0, end=None, *, request=None, **more):
    run = (None, None, [], 0, "PENDING") if end is None else (end, TWO_H, ["z"], 1)
    asked = {"gpus_requested": 4, "partition": "p", "submit": start, **more}
    cluster.job(job, *run, **asked)
    if request is not None:
        listed = {"job_id_raw": job, "submit_at": start, "observed_at": end or TWO_H}
        cluster.add("job_requests", **listed, reason="Resources", **request)


# what it shows: jobs, rows of (job, waited h, free GPU-h)
WAITING = {
    "one that could use all": ([("1", {})], [("1", 2.0, 16.0)]),
    "one that could use a node": (
        [("1", {"request": {"requested_nodes": ["a"]}})], [("1", 2.0, 8.0)],
    ),
    "one that another stands for elsewhere": (
        [("1", {"request": {"requested_nodes": ["a"]}}), ("2", {"end": HOUR, "partition": "q,p"})],
        [("1", 2.0, 8.0), ("2", 1.0, 8.0)],
    ),
    "one that a limit holds": ([("1", {"reason": "QOSGrpGRES"})], []),
    "one that asks for another model": ([("1", {"gpu_type_requested": "a100"})], []),
}  # fmt: skip


@pytest.mark.parametrize(("jobs", "expected"), WAITING.values(), ids=WAITING)
@built_together
def test_jobs_that_waited(cluster, jobs, expected):
    fleet(cluster)
    for job, said in jobs:
        waits(cluster, job, **said)
    yield
    found = cluster.read("""
        select job_id, waited_s / 3600, free_gpu_ms / 3600000
        from marts.waiting_jobs order by job_id
    """)
    assert found.rows() == expected


@built_together
def test_the_finding_names_three_jobs(cluster):
    fleet(cluster)
    for number in range(5):
        name = HOSTILE if number == 1 else f"train{number}"
        waits(cluster, f"{number + 1}", job_name=name, gpus_requested=8 - number)
    yield
    (evidence,) = (row[0] for row in found_together(cluster, "evidence"))
    assert evidence.endswith(f"; 5 jobs waiting: train0 (1), {SHOWN} (2), train2 (3) ...")


HOUR = 3600


@built_together
def test_an_idle_job_names_its_user_and_since_when_its_gpus_are_idle(cluster):
    """A running job whose GPUs went idle after 20 of 60 minutes."""
    cluster.job_on_a_node("7", 0, None, 4, state="RUNNING", job_name="train", user_name="ann")
    cluster.watched(HOUR)
    for gpu in range(4):
        cluster.samples(f"a#{gpu}", cluster.every(-10, HOUR), lambda second: second <= 1200)
    yield
    columns = "user_name, team, job_name, state, severity, owner, idle_gpus, idle_since_at"
    rows = cluster.read(
        f"select {columns} from marts.open_findings where rule = 'idle_allocation'"
    ).rows()
    of_job = ("ann", "team", "train", "open", "note", "team")
    assert rows == [(*of_job, 4, cluster.at(1200))]
