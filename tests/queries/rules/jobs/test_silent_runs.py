"""Runs that only job events report, and whose events stop without an end."""

import pytest
from tests.queries.ledger_build.full_rebuild import assert_equals_full_build
from tests.queries.rules.jobs.without_a_scheduler import (
    holds,
    job,
    phases,
    processes,
    readings,
    steps,
)


def silent(evidence, start=100, last=500, run="train", **said):
    """Load a job with a step every ten seconds and no end, on the first GPU."""
    said = {"local_rank": 0, **said}
    evidence.events(run, steps(start, last), attempt=None, host="n", **said)


def of_run(evidence, run="train"):
    """Build; return begin, end and state of a run's holds, and what the ledger says of it."""
    times = {row[2:4] for row in holds(evidence) if row[1] == run}
    rows = evidence.store.read(
        """select category, sum(gpu_ms) / 1000 from marts.ledger_segments
        inner join intermediate.int_job_runs using (job_run_key)
        where job_id = $1 group by all""",
        [run],
    )
    return times, dict(rows.rows())


def state(evidence):
    return evidence.store.read(
        "select state from intermediate.int_job_runs where job_id = 'train'"
    ).item()


@pytest.fixture
def node(evidence):
    """Give a node of two GPUs that only telemetry reports."""
    evidence.telemetry("n", 2)
    return evidence


@pytest.mark.parametrize("active", [[(100, 3000)], [(100, 500)]], ids=["busy", "idle"])
def test_a_silent_run_whose_processes_go_on_stalls(node, active):
    readings(node, "n-0", active, until=3000)
    processes(node, "n-0", [7], 90, 3000, until=3000)
    silent(node, pid=7)

    assert of_run(node) == ({(100, None)}, {"at_risk": 400, "fault_stall": 2500})
    assert state(node) == "RUNNING"


def test_a_silent_run_without_lists_of_processes_stalls_while_its_gpu_is_active(node):
    readings(node, "n-0", [(90, 2000)], until=4000)
    silent(node)

    assert of_run(node) == ({(100, 2000)}, {"at_risk": 400, "fault_stall": 1500})
    assert state(node) == "UNKNOWN"
    assert phases(node)["idle_no_demand", "demand_unknown"] == 90 + 2000


def test_a_hung_run_ends_when_its_processes_do(node):
    readings(node, "n-0", [(90, 2000)], until=4000)
    processes(node, "n-0", [7], 90, 2000, until=4000)
    silent(node, pid=7)

    assert of_run(node) == ({(100, 2000)}, {"at_risk": 400, "fault_stall": 1500})


@pytest.mark.parametrize(("until", "end"), [(1390, None), (1400, 500)])
def test_a_run_without_a_sign_of_life_has_ended_after_15_minutes(node, until, end):
    readings(node, "n-0", [(90, 500)], until=until)
    silent(node)

    times, ledger = of_run(node)
    assert times == {(100, end)}
    assert ledger.keys() == ({"at_risk", "idle_held"} if end is None else {"at_risk"})
    assert state(node) == ("RUNNING" if end is None else "UNKNOWN")


def test_silence_of_less_than_15_minutes_is_no_stall(node):
    readings(node, "n-0", [(90, 1390)], until=1390)
    silent(node)

    assert of_run(node) == ({(100, None)}, {"at_risk": 400, "busy_unclassified": 890})


def test_a_run_with_events_again_was_not_stalled(node):
    readings(node, "n-0", [(90, 3000)], until=3000)
    silent(node)
    of_run(node)
    again = [*steps(2500, 2600, first=41)[1:], {"t": 2600, "event": "job.end"}]
    node.events("train", again, attempt=None, host="n", local_rank=0)

    times, ledger = of_run(node)
    assert times == {(100, 2600)}
    assert "fault_stall" not in ledger


def test_a_recorded_run_ends_with_its_last_event(node):
    """No reading of its GPUs comes after it: nobody watched it go on."""
    readings(node, "n-0", [(90, 500)], until=500)
    readings(node, "n-1", [], until=700)
    silent(node)

    assert of_run(node)[0] == {(100, 500)}


def test_processes_of_others_keep_no_run_alive(node):
    processes(node, "n-0", [7], 90, 500, until=510)
    node.processes("n-0", lambda _: [8], node.every(520, 3000))
    silent(node)

    assert [row[1:] for row in holds(node) if row[2] >= 100] == [
        ("pid 8 on n", 520, None, "process"),
        ("train", 100, 500, "job_event"),
    ]


def test_the_next_run_on_its_gpu_ends_a_silent_one(node):
    readings(node, "n-0", [(90, 4000)], until=4000)
    silent(node)
    job(node, "next", [{"local_rank": 0}], start=1000, end=2000)

    assert of_run(node)[0] == {(100, 1000)}
    assert of_run(node, "next")[0] == {(1000, 2000)}


def test_one_gpu_that_works_keeps_the_gang(node):
    readings(node, "n-0", [(90, 500)], until=3000)
    readings(node, "n-1", [(90, 3000)], until=3000)
    silent(node)
    reported = [{"t": 100, "event": "job.start"}]
    node.events("train", reported, attempt=None, host="n", rank=1, local_rank=1)

    times, ledger = of_run(node)
    assert times == {(100, None)}
    assert ledger["fault_stall"] == 2 * 2500


def test_a_scheduler_record_ends_a_silent_run(node):
    readings(node, "n-0", [(90, 3000)], until=3000)
    silent(node)
    node.job("77", 2000, 2500, ["n"], 1)

    assert of_run(node)[0] == {(100, 1990)}, "the last reading before it decides"


@pytest.mark.slow
@pytest.mark.parametrize("untils", [(1000, 2000, 4000), (4000, 1000)])
def test_builds_on_the_way_give_the_rows_of_a_full_build(new_evidence, untils):
    one = new_evidence()
    one.telemetry("n", 2)
    silent(one, pid=7)
    one.store.build()
    for until in untils:
        processes(one, "n-0", [7], 90, 1900, until=until)
        readings(one, "n-0", [(90, 3000)], until=until)
        of_run(one)

    assert_equals_full_build(one)
