"""Contradictions and gaps in the evidence are named once each, with the GPU time concerned.

Each case is a cluster of one database: one that is not to be named would raise the number.
"""

import pytest
from tests.queries.conftest import Evidence, built_together, durable, printed, steps

BUILT_ALONE = True


def named(cluster, kind, columns="n, example"):
    """Return what is said of a kind of contradiction in all clusters."""
    sql = f"select {columns} from marts.data_quality where kind = $1 order by all"
    return cluster.store.read(sql, [kind]).rows()


@built_together
def test_two_jobs_on_one_gpu_the_later_start_has_it_and_the_overlap_is_reported(cluster):
    cluster.job_on_a_node("1", 0, 100, 1)
    cluster.job("2", 60, 100, ["a"], 1)
    yield
    held = cluster.read("select job_id, sum(gpu_ms)::bigint from marts.ledger_scoped group by all")
    assert sorted(held.rows()) == [("1", 60_000), ("2", 40_000)]
    assert named(cluster, "overlapping holds", "n, gpu_ms") == [(1, 40_000)]


OFF = {0: 600, 1: 900, 2: -3600}  # seconds by which events of a host lie off their jobs


@built_together
def test_hosts_whose_events_all_lie_off_their_holds_by_a_like_amount_are_named(cluster):
    """Another one, whose job saves as it ends, is none whose clock disagrees."""
    for host, off in OFF.items():
        node = f"off{host}"
        cluster.node(node, 1)
        for job in range(3):
            start = 10_000 + job * 2000
            cluster.job(f"{host}-{job}", start, start + 1000, [node], 1)
            ran = steps(1, 98, start + 10 + off)
            cluster.events(f"{host}-{job}", ran, attempt=0, host=node)
    cluster.node("late", 1)
    cluster.job("late", 0, 600, ["late"], 1, "TIMEOUT")
    cluster.events("late", [*steps(1, 58, 10), durable(58, 625)], attempt=None, host="late")
    yield
    ((n, example),) = [
        row[:2]
        for row in named(cluster, "clocks that disagree", "n, example, what_to_do, what")
        if "chrony" in row[2] and "a host" in row[3]
    ]
    assert n == len(OFF)
    assert example.startswith("off2: ")
    assert abs(int(example.split(": ")[1].split(" s")[0]) - OFF[2]) <= 20


@built_together
def test_two_sources_whose_clocks_disagree_are_named(cluster):
    for job, off_s in (("1", 7200), ("2", 3)):
        cluster.node(job, 1)
        cluster.job(job, 0, 30_000, [job], 1)
        ran = steps(1, 12, 10_010)
        cluster.events(job, ran, host=job)
        cluster.log(job, [{**line, "t": line["t"] + off_s} for line in ran])
    yield
    assert (1, f"{cluster.name}/1#0: +7200 s") in named(cluster, "clocks that disagree")


@built_together
def test_a_log_under_another_name_whose_clock_is_off_is_named_with_its_offset(cluster):
    """Of jobs on other nodes, one starts again and the others say nothing twice."""
    for job, node in enumerate(("k7", "k8", "k9", "k10"), start=7):
        cluster.node(node, 2)
        cluster.job(str(job), 0, 1000, [node], 2, job_name="train.sh")
    ran = steps(1, 27, 10)
    cluster.events("exp-7", ran, host="k7")
    cluster.log("7", [{**row, "t": row["t"] + 400} for row in printed(ran)[::2]])
    first, second = steps(1, 11, 10), steps(9, 22, 140)
    cluster.events("exp-8", [*first, durable(8, 92)], attempt=0, host="k8")
    cluster.events("exp-8", second, attempt=1, host="k8")
    cluster.log("8", [*printed(first), {"event": "job.start", "t": 128}, *printed(second)])
    cluster.events("exp-9", steps(1, 18, 10), host="k9")  # another training
    cluster.log("9", printed(steps(1, 27, 410)))
    cluster.events("exp-10", ran, host="k10")  # the same one again, at its own pace
    again = [{**row, "t": 400 + 1.3 * row["t"]} for row in ran]
    cluster.log("10", printed(again))
    yield
    of_run = "7 (text log) +400 s from exp-7 (job events)"
    example = f"{cluster.name}/7@{1_800_000_000}: {of_run}"
    assert (1, example) in named(cluster, "clocks that disagree")


@built_together
def test_a_running_job_that_later_listings_leave_out_is_named(cluster):
    cluster.node("a", 2)
    cluster.job("1", 0, None, ["a"], 1, "RUNNING", elapsed_s=600, source="slurm")
    cluster.job("2", 9_000, 9_100, ["a"], 1, source="slurm")
    yield
    assert named(cluster, "running jobs that vanished") == [(1, f"{cluster.name}/1@1800000000")]


@built_together
def test_losses_in_a_step_are_cut_at_its_end_and_reported(cluster):
    cluster.job_on_a_node("1", 0, 100, 1)
    cluster.events("1", steps(1, 10, 0, data_s=4.0, straggler_s=4.0, comm_s=4.0))
    yield
    assert cluster.gpu_s() == {"data_stall": 40, "straggler_wait": 40, "exposed_comm": 20}
    found = named(cluster, "splits that exceed their step", "example")
    assert found == [(f"{cluster.name}/1#0",)]


@pytest.mark.parametrize(
    ("node", "job", "active"),
    [
        # without a scheduler the work would be somebody's
        ("b", (0, 100), lambda s: s <= 100),
        ("a", (105, 200), lambda s: s > 100),
        ("a", (0, 95), lambda s: s <= 100),
    ],
    ids=[
        "no job was there",
        "a job begins between two readings",
        "a job ends between two readings",
    ],
)
@built_together
def test_work_that_no_job_accounts_for_is_reported(cluster, node, job, active):
    """That of the first of three: the others have a job but for less than a reading."""
    cluster.node("a", 1)
    cluster.node("b", 1)
    cluster.job("1", *job, [node], 1)
    cluster.samples("a#0", cluster.every(0, 200), active)
    yield
    assert named(cluster, "busy with no job", "n, gpu_ms") == [(1, 100_000)]


@built_together
def test_mig_instances_beyond_a_whole_gpu_are_named(cluster):
    gpu = {"gpu_uuid": cluster.gpu("g"), "source": "dcgm", "valid_from_at": 0}
    cluster.add("gpus", {"node": "m", "gpu_index": 0, "gpu_model": "h100", **gpu})
    profiles = ("9g.90gb", "4g.40gb", "3g.40gb", "2g.20gb")
    cluster.add("gpu_instances", *(
        {"gpu_instance": str(n), "profile": profile, "compute_slices": int(profile[0]), **gpu}
        for n, profile in enumerate(profiles)
    ))  # fmt: skip
    yield
    example = f"{cluster.gpu('g')}/0 (9g.90gb)"
    assert named(cluster, "instances beyond a whole GPU") == [(2, example)]


@built_together
def test_what_is_known_from_labels_alone_is_named(cluster):
    cluster.telemetry("n", 1, "dcgm")
    cluster.samples("n-0", cluster.every(0, 1000), lambda s: 100 < s <= 900)
    cluster.label(cluster.gpu("n-0"), "nlp/a", 100, 900)
    yield
    rows = cluster.read("select reason, job_runs, gpu_ms from marts.statement_differences")
    assert rows.rows() == [("known from labels of telemetry alone", 1, -800_000)]
    assert named(cluster, "job runs known from labels alone", "n") == [(1,)]


@built_together
def test_labels_whose_job_the_scheduler_does_not_have_are_named(cluster):
    """The exporter of one node writes more than the id."""
    for node in "ab":
        cluster.telemetry(node, 1, "dcgm")
        cluster.samples(f"{node}-0", cluster.every(0, 1000), lambda _: True)
    cluster.job("4711", 0, 1000, ["a", "b"], 2)
    for gpu, owner, start in (("a-0", "4711", 0), ("b-0", "4711.batch", 100)):
        cluster.add(
            "gpu_owners", source="dcgm", gpu_uuid=cluster.gpu(gpu), gpu_instance="",
            kind="hpc_job", owner=owner, container="", first_seen_at=start, last_seen_at=900,
        )  # fmt: skip
    yield
    found = named(cluster, "labels of unknown jobs", "n, gpu_ms, example")
    assert found == [(1, 800_000, "4711.batch on b")]


@built_together
def test_unplaced_time_is_named_with_its_gpu_hours(cluster):
    cluster.node("a", 2)
    cluster.job("1", 0, 5000, [], 2)
    cluster.job("2", 0, 1000, ["a"], 3)
    yield
    found = named(cluster, "allocated, GPUs not placed", "gpu_ms, n")
    assert found == [(1_000_000, 1), (10_000_000, 1)]


@built_together
def test_collectives_of_processes_that_no_run_has_are_named(cluster):
    cluster.job_on_a_node("1", 0, 5000, 2)
    operations = [
        {"sequence_number": n, "started_at": 100 + n, "dumped_at": 101 + n} for n in range(10)
    ]
    cluster.add(
        "collectives", *operations, node="a", pid=cluster.first_pid, comm_id="0x1", comm_name="",
        rank=0, ranks=2, operation="AllReduce", is_p2p=False, exec_time_s=0.1,
    )  # fmt: skip
    yield
    assert named(cluster, "collectives of unknown ranks", "n, gpu_ms") == [(1, 10_000)]


# what it shows: job runs, begin of the events and their host, why they match none of them
UNMATCHED = {
    "a host that nobody knows": (1, 10, "elsewhere", "in no inventory"),
    "a host without a job then": (1, 1000, "a", "no job was allocated GPUs"),
    "a host of several jobs": (2, 10, "a", "several jobs"),
    "no host, and a job of that id in two clusters": (1, 10, None, "job of another cluster"),
}


@pytest.mark.parametrize(("jobs", "start", "host", "why"), UNMATCHED.values(), ids=UNMATCHED)
def test_the_finding_says_why_events_match_no_job(evidence, jobs, start, host, why):
    evidence.node("a", 2)
    for job in range(jobs):
        evidence.job(str(job), 0, 100, ["a"], 1)
    if host is None:  # of the only cluster that has its job it would be
        Evidence(evidence.store, "d").job("0", 0, 100, ["a"], 1)
        evidence.log("0", steps(1, 8, start), cluster=None)
    else:
        evidence.events("r", steps(1, 8, start), host=host)
    evidence.build()

    ((what, example),) = named(evidence, "unmatched job events", "what, example")
    assert why in what
    assert example == ("0 attempt 0 (cluster c)" if host is None else "r attempt 0")
