"""Runs that only job events report, and whose events stop without an end."""

from tests.queries.conftest import each, shown_by
from tests.queries.rules.jobs.unscheduled import holds, job, phases, processes, readings, steps

from goodput_queries.scope import Scope


def silent(evidence, start=100, last=500, run="train", **said):
    """Load a job with a step every ten seconds and no end, on the first GPU."""
    said = {"local_rank": 0, **said}
    evidence.events(run, steps(start, last), attempt=None, host="n", **said)


def of_run(cluster, run="train"):
    """Return begin, end and state of a run's holds, and what the ledger says of it."""
    times = {row[2:4] for row in holds(cluster) if row[1] == run}
    sql = "select category, sum(gpu_ms) / 1e3 from marts.ledger_scoped where job_id = $1 group by 1"
    scope = Scope(cluster=cluster.name)
    return times, dict(cluster.store.read(sql, [run], scope=scope).rows())


STALLED = {"at_risk": 400, "fault_stall": 2500}
GONE = {"at_risk": 400, "fault_stall": 1500}


# what it shows: when the first GPU works, until when it is read and its process is listed (None: no
# list of processes), end of the run, what the ledger says of it, its state
@each({
    "a busy run whose processes go on stalls": (
        [(100, 3000)], 3000, 3000, None, STALLED, "RUNNING"),
    "an idle run whose processes go on stalls": (
        [(100, 500)], 3000, 3000, None, STALLED, "RUNNING"),
    "without lists of processes it stalls while its GPU is active": (
        [(90, 2000)], 4000, None, 2000, GONE, "UNKNOWN"),
    "a hung run ends when its processes do": ([(90, 2000)], 4000, 2000, 2000, GONE, "UNKNOWN"),
    "without a sign of life it goes on for 15 minutes": (
        [(90, 500)], 1390, None, None, {"at_risk": 400, "idle_held": 890}, "RUNNING"),
    "without a sign of life it has ended after 15 minutes": (
        [(90, 500)], 1400, None, 500, {"at_risk": 400}, "UNKNOWN"),
    "silence of less than 15 minutes is no stall": (
        [(90, 1390)], 1390, None, None, {"at_risk": 400, "busy_unclassified": 890}, "RUNNING"),
})  # fmt: skip
def test_what_a_silent_run_does(cluster, active, until, listed, end, ledger, outcome):
    cluster.telemetry("n", 2)
    readings(cluster, "n-0", active, until=until)
    if listed:
        processes(cluster, "n-0", [7], 90, listed, until=until)
    silent(cluster, **({"pid": 7} if listed else {}))
    yield
    assert of_run(cluster) == ({(100, end)}, ledger)
    assert cluster.own("state", "intermediate.int_job_runs", "job_id = 'train'") == [(outcome,)]
    if not listed and end == 2000:
        assert phases(cluster)["idle_no_demand", "demand_unknown"] == 90 + 2000


def test_a_run_with_events_again_was_not_stalled(cluster):
    cluster.telemetry("n", 2)
    readings(cluster, "n-0", [(90, 3000)], until=3000)
    silent(cluster)
    yield
    again = [*steps(2500, 2600, first=41)[1:], {"t": 2600, "event": "job.end"}]
    cluster.events("train", again, attempt=None, host="n", local_rank=0)
    yield
    times, ledger = of_run(cluster)
    assert times == {(100, 2600)}
    assert "fault_stall" not in ledger


def two_gpus(*read):
    """Return what reads two GPUs (when each works, until when), of a silent run on the first."""

    def load(cluster):
        cluster.telemetry("n", 2)
        for number, (active, until) in enumerate(read):
            readings(cluster, f"n-{number}", active, until=until)
        silent(cluster)

    return load


def gang(cluster):
    two_gpus(([(90, 500)], 3000), ([(90, 3000)], 3000))(cluster)
    begun = [{"t": 100, "event": "job.start"}]
    cluster.events("train", begun, attempt=None, host="n", rank=1, local_rank=1)


test_when_silent_runs_end = shown_by({
    # no reading of its GPUs comes after it: nobody watched it go on
    "a recorded run ends with its last event": (
        two_gpus(([(90, 500)], 500), ([], 700)), lambda c: of_run(c)[0], {(100, 500)}),
    "the next run on its GPU ends a silent one": (
        lambda c: [two_gpus(([(90, 4000)], 4000))(c),
                   job(c, "next", [{"local_rank": 0}], start=1000, end=2000)],
        lambda c: (of_run(c)[0], of_run(c, "next")[0]), ({(100, 1000)}, {(1000, 2000)})),
    "one GPU that works keeps the gang": (
        gang, lambda c: (of_run(c)[0], of_run(c)[1]["fault_stall"]), ({(100, None)}, 2 * 2500)),
})  # fmt: skip


def test_processes_of_others_keep_no_run_alive(evidence):
    """In a database of its own, in which no list is later."""
    evidence.telemetry("n", 2)
    processes(evidence, "n-0", [7], 90, 500, until=510)
    evidence.processes("n-0", lambda _: [8], evidence.every(520, 3000))
    silent(evidence)

    assert [row[1:] for row in holds(evidence) if row[2] >= 100] == [
        ("pid 8 on n", 520, None, "process"),
        ("train", 100, 500, "job_event"),
    ]


def test_a_scheduler_record_ends_a_silent_run(evidence):
    """In a database of its own, which has no list of processes."""
    evidence.telemetry("n", 2)
    readings(evidence, "n-0", [(90, 3000)], until=3000)
    silent(evidence)
    evidence.job("77", 2000, 2500, ["n"], 1)

    assert of_run(evidence)[0] == {(100, 1990)}, "the last reading before it decides"
