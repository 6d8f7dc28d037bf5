"""Lives, attempts, owners, holds and step splits of changed runs equal a full build's."""

from itertools import zip_longest

import pytest
from hypothesis import strategies as st
from tests.examples import drawn
from tests.queries.conftest import Cluster, build_together, built_in, durable, each, shown_by, steps
from tests.queries.ledger_build.full_rebuild import assert_equals_full_build


def two_nodes(cluster):
    for node in ("a", "b"):
        cluster.node(node, 2)
    cluster.watched(4000)


def runs(cluster):
    return cluster.own("run_id, attempt, job_id", "intermediate.int_attempts")


def started(cluster, *starts):
    """Load job runs of run `r`, as many as starts, the first of which may be reported later."""
    for job, start in starts:
        cluster.job(job, start, start + 100, ["a"], 2, job_name="r")
        cluster.events("r", steps(1, 8, start + 10), attempt=int(job))


def listed(cluster):
    cluster.telemetry("n", 1)
    cluster.samples("n-0", cluster.every(0, 600), lambda _second: True, "nvml")
    cluster.processes("n-0", lambda s: [7] if 100 <= s <= 400 else [], cluster.every(0, 600))


DESCRIBED = {"process_name": "t.py", "start_at": 95, "last_seen_at": 404, "gone_at": 405}
# what it shows: what is loaded before each of two builds; run, attempt and job after each
test_runs_of_two_builds = shown_by({
    "a job that gets another name leaves the lives of the old one": (
        [lambda c: [c.job("7", 0, None, ["a"], 2, state="RUNNING", job_name="r"),
                    c.events("r", steps(1, 8, 10))],
         lambda c: c.job("7", 0, 300, ["a"], 2, job_name="q")], [[("r", 0, "7")]] * 2),
    "an earlier job run that is reported late moves the numbers of later ones": (
        [lambda c: started(c, ("8", 200), ("9", 400)), lambda c: started(c, ("7", 0))],
        [[("r", 0, "8"), ("r", 1, "9")], [("r", 0, "7"), ("r", 1, "8"), ("r", 2, "9")]]),
    "a life known by its node has no owner once two jobs may have it": (
        [lambda c: [c.job("7", 0, 300, ["a"], 1), c.events("elsewhere", steps(1, 8, 10))],
         lambda c: c.job("8", 0, 300, ["a"], 1)],
        [[("elsewhere", 0, "7")], [("7", 0, "7"), ("8", 0, "8")]]),
    "a process that is described after it was listed is one run under its new name": (
        [listed, lambda c: c.add("processes", node="n", pid=7, **DESCRIBED)],
        [[("pid 7 on n", 0, "pid 7 on n")], [("t.py (pid 7 on n)", 0, "t.py (pid 7 on n)")]]),
}, before=two_nodes, read=runs, builds=2)  # fmt: skip


@built_in(2)
def test_what_was_built_bit_by_bit_has_the_rows_of_a_full_build(cluster):
    """In the clusters of all tests here that are built together."""
    two_nodes(cluster)
    for _ in range(2):
        yield
    assert_equals_full_build(cluster)


def job(number, start, length, node, name):
    """Return the call that loads a job run; with no length it runs."""
    end, state = (None, "RUNNING") if length is None else (start + length, "COMPLETED")
    return "job", (number, start, end, [node], 1, state), {"job_name": name}


def life(run, attempt, start, host):
    return "events", (run, steps(1, 8, start)), {"attempt": attempt, "host": host}


def hold(number, start, node, index):
    return "hold", (number,), {"node": node, "submit": start, "slurm_index": index}


STARTS, NODES = st.sampled_from([0, 200, 600]), st.sampled_from("ab")
CALLS = (
    st.builds(job, st.sampled_from("789"), STARTS, st.sampled_from([None, 150, 900]), NODES,
              st.sampled_from(["r", "q", "7"]))
    | st.builds(life, st.sampled_from(["r", "q", "7", "8", "", "elsewhere"]),
                st.sampled_from([0, 1, None]), st.sampled_from([10, 210, 610]), NODES)
    | st.builds(hold, st.sampled_from("789"), STARTS, NODES, st.integers(0, 2))
)  # fmt: skip
TWO_LIVES_THAT_BEGIN_TOGETHER = [[job("7", 0, None, "b", "r"), life("r", 0, 210, "b")],
                                 [life("", 0, 210, "b")]]  # fmt: skip
A_GPU_ON_A_NODE_THAT_THE_RECORD_HAS_NOT = [[hold("8", 600, "b", 2)], [job("8", 600, 900, "a", "q")]]


@pytest.mark.machine
def test_any_evidence_in_any_order(own_store):
    """Of random clusters, in up to four builds."""
    part = st.lists(CALLS, min_size=1, max_size=3)
    reported = [TWO_LIVES_THAT_BEGIN_TOGETHER, A_GPU_ON_A_NODE_THAT_THE_RECORD_HAS_NOT]
    reported += drawn(st.lists(part, min_size=2, max_size=4), 8)
    store = own_store()
    clusters = [Cluster(store, f"c{n}") for n in range(len(reported))]
    for cluster in clusters:
        for node in ("a", "b"):
            cluster.node(node, 2)
    for number, together in enumerate(zip_longest(*reported, fillvalue=())):
        for cluster, part in zip(clusters, together, strict=True):
            cluster.call(*part)
        build_together(store, f"part {number}", clusters)

    assert_equals_full_build(clusters[0])


def test_collectives_that_come_late_split_the_steps_they_belong_to(cluster):
    """In the fifth of nine steps all wait 3 s for rank 1."""
    cluster.job_on_a_node("1", 0, 93, 2)
    ran = [*steps(0, 3, 0), *steps(4, 4, 40, 13.0), *steps(5, 8, 53), durable(8, 93)]
    for rank in range(2):
        named = {"gpu_uuid": cluster.gpu(f"a#{rank}"), "pid": cluster.first_pid + rank}
        cluster.events("1", ran, rank=rank, **named)
    cluster.job("2", 20_000, 20_100, ["a"], 2)  # hours later, so that theirs is closed
    yield
    for number in range(9):
        waited_s = [3.1 if number == 4 else 0.1, 0.1]
        cluster.all_reduces(waited_s, [10 * number + 5], first=number)
    yield
    assert cluster.gpu_s().get("straggler_wait", 0) > 2


def held_s(cluster):
    rows = cluster.read("select job_run_key, sum(gpu_ms) / 1000 from marts.ledger_scoped "
                        "where job_run_key is not null group by 1")  # fmt: skip
    return {key.split("/")[1].split("@")[0]: seconds for key, seconds in rows.rows()}


def two_jobs(cluster, second_start):
    """Load two jobs until 100 s, both of which had the first GPU of the node."""
    cluster.node("a", 1)
    for job, start in (("1", 0), ("2", second_start)):
        cluster.job(job, start, 100, ["a"], 1)
        cluster.hold(job, submit=start, slurm_index=0)


def test_a_job_run_that_lost_all_its_time_gets_back_what_the_other_gives_up(cluster):
    two_jobs(cluster, 0)
    yield
    (winner,) = held_s(cluster)
    cluster.job(winner, 0, 40, ["a"], 1, observed_at=cluster.at(200))
    yield
    assert held_s(cluster) == {winner: 40, "1" if winner == "2" else "2": 60}


@each({
    "the other ends earlier": ({"end": 60}, {"1": 90, "2": 10}, None),
    "the record of who kept the GPU moves nothing": ({"account": "b"}, {"1": 50, "2": 50}, 1),
})  # fmt: skip
def test_a_job_run_that_lost_the_end_of_its_time(cluster, record, held, conflicts):
    """It gets back what the other gives up; else its loss stays a conflict."""
    two_jobs(cluster, 50)
    yield
    assert held_s(cluster) == {"1": 50, "2": 50}
    again = {"submit": 50, "observed_at": cluster.at(200), **record}
    cluster.job("2", 50, again.pop("end", 100), ["a"], 1, **again)
    yield
    assert held_s(cluster) == held
    own = f"starts_with(job_run_key, '{cluster.name}/')"
    found = cluster.read(f"from intermediate.int_hold_conflicts where {own}")
    assert conflicts in (None, found.height)
