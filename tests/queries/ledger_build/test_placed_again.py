"""Incremental placement gives the holds of a full placement of every job run.

Job runs share few GPUs, contradict each other, arrive late and change; a build places again only
what a change concerns, however long the GPUs of a node were held without a pause before.
"""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.queries.conftest import Evidence

from goodput_queries.ledger_build.placement import incremental, place

GPUS_OF_NODES = {"a": 4, "b": 4, "d": 2}
MOMENTS = st.integers(0, 40).map(lambda n: 5 * n)
NODES = st.sampled_from([*GPUS_OF_NODES, "unknown"])


@st.composite
def job_runs(draw):
    """Return a job run with its later evidence, in steps after the first."""
    is_spread = draw(st.integers(0, 3)) == 0
    return {
        "start": draw(MOMENTS),
        "length": draw(st.sampled_from([5, 10, 20, 50, 100, 500])),
        "nodes": draw(st.lists(NODES, min_size=1, max_size=1 + is_spread, unique=True)),
        "gpus": draw(st.integers(1, 8 if is_spread else 4)),
        "gpu_type": draw(st.sampled_from([None, None, "h100", "a100"])),
        "reported_after": draw(st.sampled_from([0, 0, 0, 1, 2])),
        "named_after": draw(st.sampled_from([None, None, 0, 1, 2])),
        "indexes": draw(st.lists(st.integers(0, 4), min_size=1, max_size=4)),
        "shrinks": draw(st.integers(0, 9)) == 0,
        "reported_too_short_by": draw(st.sampled_from([0, 0, 0, 5, 20])),
        "is_counted": draw(st.booleans()),
    }


def load_job_run(evidence, number, job, moment, step):
    """Load the evidence of a job run at a time; `step`: how often it was loaded before."""
    start, end = job["start"], job["start"] + job["length"]
    if step == 0:
        end = max(start + 1, end - job["reported_too_short_by"])
    gpus = max(1, job["gpus"] - (job["shrinks"] and step > 0))
    evidence.job(
        str(number), start, end if end <= moment else None, job["nodes"], gpus,
        "COMPLETED" if end <= moment else "RUNNING",
        gpu_type=job["gpu_type"], observed_at=evidence.at(moment),
    )  # fmt: skip
    if job["named_after"] is not None and step >= job["named_after"]:
        row = {"cluster": "c", "job_id_raw": str(number), "submit_at": evidence.at(start)}
        nodes = job["nodes"]
        if job["is_counted"]:
            reported = [{"node": node, "gpus": max(1, gpus // len(nodes))} for node in nodes]
        else:
            reported = [
                {"node": nodes[place % len(nodes)], "slurm_index": index}
                for place, index in enumerate(job["indexes"])
            ]
        evidence.load("holds", [{**row, **of_node, "method": "scontrol"} for of_node in reported])


def assert_placed_as_in_a_full_build(store):
    with store.cursor() as cursor:
        cursor.execute("begin")
        placed = place.place(cursor)
        cursor.execute("rollback")
    for name, full in (
        ("int_claims", placed.claims),
        ("int_holds", placed.holds),
        ("int_hold_conflicts", placed.conflicts),
    ):
        found = store.read(f"from intermediate.{name}")
        assert sorted(found.rows(), key=str) == sorted(full.rows(), key=str), name


@pytest.mark.slow
@settings(max_examples=examples(4), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    jobs=st.lists(job_runs(), min_size=2, max_size=12),
    moments=st.lists(MOMENTS.map(lambda t: t + 10), min_size=2, max_size=4, unique=True),
    down=st.none() | st.tuples(st.sampled_from([*GPUS_OF_NODES]), MOMENTS),
)
def test_after_every_build_holds_equal_a_full_placement(new_evidence, jobs, moments, down):
    evidence = new_evidence()
    for node, gpus in GPUS_OF_NODES.items():
        evidence.node(node, gpus, model="a100" if node == "b" else "h100")
    begun = {}
    for step, moment in enumerate(sorted(moments)):
        evidence.state("*", "up", 0, moment)
        if down and down[1] <= moment:
            evidence.state(down[0], "down", down[1], None)
        for number, job in enumerate(jobs):
            if job["start"] > moment:
                continue
            reported = step - begun.setdefault(number, step) - job["reported_after"]
            if reported >= 0:
                load_job_run(evidence, number, job, moment, reported)

        evidence.store.build()

        assert_placed_as_in_a_full_build(evidence.store)
    evidence.store.close()


@pytest.fixture(scope="module")
def built_nodes(new_store):
    """Build three nodes with jobs: the first was held without a pause for ten hours."""
    evidence = Evidence(new_store())
    evidence.node("never empty", 2)
    evidence.node("of three", 3)
    evidence.node("of two", 2)
    evidence.watched(36_000)
    for number in range(20):
        start = 1_800 * number
        evidence.job(str(number), start, start + 2_700, ["never empty"], 1)
    evidence.job("long", 35_200, None, ["never empty"], 1, "RUNNING",
                 observed_at=evidence.at(36_000))  # fmt: skip
    for job, start, end, node in (
        ("before", 0, 20, "of three"), ("beside", 10, 60, "of three"),
        ("much later", 70, 90, "of three"),
        ("first", 0, 50, "of two"), ("second", 10, 50, "of two"), ("elsewhere", 60, 90, "of two"),
    ):  # fmt: skip
        evidence.job(job, start, end, [node], 1)
    return evidence.built()


@pytest.fixture
def nodes(new_evidence, built_nodes):
    return new_evidence(copy_of=built_nodes)


def placed_again(evidence, monkeypatch):
    """Build and return which job runs were placed again."""
    seen = []
    claim = incremental.claim

    def spy(runs, *others):
        seen.append({run.job[0] for run in runs})
        claim(runs, *others)

    monkeypatch.setattr(incremental, "claim", spy)
    evidence.store.build()
    monkeypatch.undo()
    assert_placed_as_in_a_full_build(evidence.store)
    return seen[-1]


def test_a_new_job_on_a_node_that_is_never_empty_is_placed_alone(nodes, monkeypatch):
    nodes.job("new", 37_000, 38_000, ["never empty"], 1)

    assert placed_again(nodes, monkeypatch) == {"new"}


def test_a_job_that_ends_leaves_those_that_ran_with_it_where_they_are(nodes, monkeypatch):
    nodes.job("long", 35_200, 37_000, ["never empty"], 1, observed_at=nodes.at(37_100))

    assert placed_again(nodes, monkeypatch) == {"long"}


def slots(evidence, *jobs):
    found = evidence.store.read("select job_run_key, slurm_index from intermediate.int_holds")
    slot_of = {key.split("/")[1].split("@")[0]: index for key, index in found.rows()}
    return [slot_of[job] for job in jobs]


def test_a_job_reported_late_moves_those_that_began_after_it(nodes, monkeypatch):
    nodes.job("late", 5, 40, ["of three"], 1)

    assert placed_again(nodes, monkeypatch) == {"late", "beside", "much later"}
    assert slots(nodes, "before", "late", "beside", "much later") == [0, 1, 2, 0]


def test_naming_the_gpu_of_a_later_job_moves_an_earlier_one_that_was_assumed_there(
    nodes, monkeypatch
):
    nodes.add(
        "holds", job_id_raw="second", submit_at=10, node="of two", slurm_index=0,
        method="scontrol",
    )  # fmt: skip

    assert placed_again(nodes, monkeypatch) == {"first", "second", "elsewhere"}
    assert slots(nodes, "first", "second", "elsewhere") == [1, 0, 0]
