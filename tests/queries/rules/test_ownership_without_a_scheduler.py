"""Ownership without a scheduler: by job events, lists of processes, then activity."""

from __future__ import annotations

import pytest
from tests.queries.ledger_build.full_rebuild import assert_equals_full_build

from goodput_queries.check import check

START_MS = 1_800_000_000_000


def gpus(evidence, node, count, source="nvml"):
    """Load GPUs of a node, named <node>-0 and so on, by telemetry."""
    rows = [
        {
            "cluster": "c", "node": node, "gpu_uuid": f"{node}-{index}", "gpu_index": index,
            "gpu_model": "h100", "valid_from_at": evidence.at(0),
        }
        for index in range(count)
    ]  # fmt: skip
    evidence.load("gpus", rows, source)


def readings(evidence, gpu, active, until=2000, source="nvml"):
    """Read a GPU every ten seconds; `active` says from when to when it worked."""
    rows = [
        {
            "gpu_uuid": gpu, "gpu_instance": "", "ts": evidence.at(second), "is_flagged": False,
            "engine_active_ratio": 0.9 * any(a < second <= b for a, b in active),
        }
        for second in evidence.every(0, until)
    ]  # fmt: skip
    evidence.load("gpu_samples", rows, source)


def processes(evidence, gpu, pids, start, end, until=2000):
    """List the processes of a GPU every ten seconds: `pids` from start to end, else none."""
    rows = [
        {
            "gpu_uuid": gpu, "ts": evidence.at(second),
            "processes": len(pids) if start <= second <= end else 0,
            "pids": pids if start <= second <= end else [],
        }
        for second in evidence.every(0, until)
    ]  # fmt: skip
    evidence.load("gpu_processes", rows, "nvml")


def steps(start, end, each=10, first=1):
    """Return a start, steps of `each` seconds and no end."""
    reported = [{"t": start, "event": "job.start"}]
    count = (end - start) // each
    return reported + [
        {"t": start + each * (i + 1), "event": "step", "step": first + i, "dur_s": float(each)}
        for i in range(count)
    ]


def job(evidence, run, ranks, start=100, end=900, host="n", **more):
    """Load the events of a job: rank 0 its steps, the others their start, as `ranks` names them."""
    for rank, said in enumerate(ranks):
        reported = steps(start, end) if rank == 0 else [{"t": start, "event": "job.start"}]
        if rank == 0:
            reported.append({"t": end, "event": "job.end"})
        evidence.events(run, reported, attempt=None, host=host, rank=rank, **said, **more)


def holds(evidence):
    """Build; return GPU, owner, begin, end and method of what was held, in seconds."""
    evidence.store.build()
    assert check(evidence.store)["violations"].sum() == 0
    return evidence.store.read(
        """select gpu_uuid, job_id, (holds.start_ms - $1) / 1000, (holds.end_ms - $1) / 1000,
            method
        from intermediate.int_holds as holds
        inner join intermediate.int_job_runs using (job_run_key)
        order by all""",
        [START_MS],
    ).rows()


def phases(evidence):
    """Build; return GPU-seconds by category and phase."""
    evidence.store.build()
    frame = evidence.store.read(
        """select category, phase, sum(gpu_ms) / 1000 as gpu_s
        from marts.ledger_segments group by all order by all"""
    )
    return {(category, phase): gpu_s for category, phase, gpu_s in frame.rows()}


@pytest.fixture
def node(evidence):
    """Give a node of two GPUs that only telemetry reports."""
    gpus(evidence, "n", 2)
    return evidence


def test_activity_is_somebodys_and_the_rest_of_the_observed_time_is_idle(node):
    readings(node, "n-0", [(100, 900), (1000, 1500)])
    readings(node, "n-1", [])

    assert phases(node) == {
        ("busy_unclassified", "owner_unknown"): 1300,
        ("busy_unclassified", "short_idle"): 100,
        ("idle_no_demand", "demand_unknown"): 600 + 2000,
    }
    assert check(node.store)["violations"].sum() == 0


def test_a_pause_of_the_idle_minimum_is_nobodys(node):
    readings(node, "n-0", [(100, 400), (700, 900)])

    assert phases(node)["idle_no_demand", "demand_unknown"] == 100 + 300 + 1100


def test_time_without_a_reading_stays_unknown(node):
    readings(node, "n-0", [(0, 1000)], until=1000)
    readings(node, "n-1", [(0, 2000)])

    assert phases(node) == {
        ("busy_unclassified", "owner_unknown"): 3000,
        ("free_unknown", None): 1000,
    }


def test_a_process_holds_its_gpus_while_it_is_listed(node):
    for gpu in ("n-0", "n-1"):
        readings(node, gpu, [(100, 400)])
        processes(node, gpu, [4711], 100, 1500)

    assert holds(node) == [
        ("n-0", "pid 4711 on n", 100, 1500, "process"),
        ("n-1", "pid 4711 on n", 100, 1500, "process"),
    ]
    assert phases(node) == {
        ("busy_unclassified", None): 600,
        ("idle_held", None): 2200,
        ("idle_no_demand", "demand_unknown"): 1200,
    }
    (run,) = node.store.read(
        "select is_inferred, ownership, gpus, outcome from intermediate.int_job_runs"
    ).rows()
    assert run == (True, "process", 2, "limit")


@pytest.mark.parametrize(
    ("ranks", "held"),
    [
        ([{"gpu_uuid": "n-1"}], ["n-1"]),
        ([{"pid": 4711, "local_rank": 0}], ["n-1"]),
        ([{"pid": 12, "local_rank": 1}], ["n-1"]),
        ([{"local_rank": 0}, {"local_rank": 1}], ["n-0", "n-1"]),
        ([{}, {}], ["n-0", "n-1"]),
        ([{}], ["n-1"]),
    ],
    ids=["its UUID", "its pid", "its local rank", "local ranks", "ranks", "a rank by its process"],
)
def test_a_job_holds_the_gpus_that_its_ranks_name(node, ranks, held):
    for gpu in ("n-0", "n-1"):
        readings(node, gpu, [(50, 1000)])
    processes(node, "n-1", [4711], 50, 1000)

    job(node, "train", ranks)

    assert [row[0] for row in holds(node) if row[1] == "train"] == held
    assert {row[2:4] for row in holds(node) if row[1] == "train"} == {(100, 900)}


def test_a_job_without_a_scheduler_has_steps_and_goodput(node):
    readings(node, "n-0", [(0, 2000)])
    job(node, "train", [{"local_rank": 0}])

    assert phases(node) == {
        ("busy_unclassified", "owner_unknown"): 1200,
        ("free_unknown", None): 2000,
        ("step_unsplit", None): 800,
    }
    (run,) = node.store.read(
        "select job_id, is_inferred, ownership, outcome from intermediate.int_job_runs"
    ).rows()
    assert run == ("train", True, "job_event", "ok")


def test_job_events_alone_name_the_gpus_there_are(evidence):
    job(evidence, "train", [{"local_rank": 0}, {"local_rank": 1}])

    assert phases(evidence) == {("step_unsplit", None): 1600}
    assert [(row[0], row[4]) for row in holds(evidence)] == [
        ("c/n#0", "job_event"), ("c/n#1", "job_event"),
    ]  # fmt: skip


def test_job_events_alone_that_name_a_gpu_are_of_that_gpu(evidence):
    job(evidence, "train", [{"gpu_uuid": "GPU-1"}])

    assert [row[0] for row in holds(evidence)] == ["GPU-1"]


def test_job_events_that_name_only_their_host_hold_a_gpu_for_each_rank(evidence):
    job(evidence, "train", [{}, {}, {}])

    assert evidence.gpu_s() == {"step_unsplit": 2400}


def test_runs_without_a_name_are_distinguished_by_their_host(evidence):
    job(evidence, "", [{"local_rank": 0}], host="n")
    job(evidence, "", [{"local_rank": 0}], host="m")

    assert evidence.gpu_s() == {"step_unsplit": 1600}
    runs = evidence.store.read("select run_id from marts.runs order by run_id")["run_id"]
    assert runs.to_list() == ["unnamed on m", "unnamed on n"]


def test_a_process_that_dies_and_starts_again_is_two_attempts_of_a_run(node):
    node.events("train", steps(100, 500), attempt=None, host="n", pid=1, local_rank=0)
    again = [*steps(560, 900, first=21), {"t": 900, "event": "job.end"}]
    node.events("train", again, attempt=None, host="n", pid=2, local_rank=0)
    readings(node, "n-0", [(100, 500), (560, 900)])

    assert holds(node) == [("n-0", "train", 100, 900, "job_event")]
    attempts = node.store.read(
        "select attempt, outcome from intermediate.int_attempts order by attempt"
    )
    assert attempts.rows() == [(0, "failed"), (1, "ok")]


def test_a_run_that_is_started_again_an_hour_later_is_another_job_run(node):
    job(node, "train", [{"local_rank": 0}], start=100, end=900)
    job(node, "train", [{"local_rank": 0}], start=4000, end=4800)

    assert [row[2:4] for row in holds(node)] == [(100, 900), (4000, 4800)]
    assert node.store.read("from marts.runs").height == 1


def test_a_job_that_is_silent_for_long_keeps_its_gpus(node):
    node.events(
        "train",
        [*steps(100, 200), {"t": 2900, "event": "step", "step": 11, "dur_s": 10.0}],
        attempt=None, host="n", local_rank=0,
    )  # fmt: skip

    assert [row[2:4] for row in holds(node)] == [(100, 2900)]


def test_a_job_goes_before_the_process_that_a_list_shows(node):
    readings(node, "n-0", [(0, 2000)])
    processes(node, "n-0", [7], 50, 1000)
    job(node, "train", [{"pid": 7}])

    assert holds(node) == [
        ("n-0", "pid 7 on n", 50, 100, "process"),
        ("n-0", "pid 7 on n", 900, 1000, "process"),
        ("n-0", "train", 100, 900, "job_event"),
    ]


def test_a_host_by_its_full_name_is_the_node_by_its_short_one(node):
    readings(node, "n-0", [(0, 2000)])
    job(node, "train", [{"local_rank": 0}], host="n.lab.example")

    assert [row[:2] for row in holds(node)] == [("n-0", "train")]


def test_a_scheduler_takes_over_from_its_first_record_on(node):
    for gpu in ("n-0", "n-1"):
        readings(node, gpu, [(0, 2000)])
        processes(node, gpu, [5], 0, 2000)
    job(node, "train", [{"gpu_uuid": "n-0"}], start=100, end=1500)
    before = holds(node)
    node.job("77", 1000, 1400, ["n"], 1)

    assert {row[1] for row in before} == {"train", "pid 5 on n"}
    after = holds(node)
    assert [row[1:] for row in after if row[4] not in ("job_event", "process")] == [
        ("77", 1000, 1400, "assumed")
    ]
    assert all(row[3] is not None and row[3] <= 1000 for row in after if row[1] != "77")


def test_where_labels_exist_nothing_is_inferred(node):
    readings(node, "n-0", [(0, 2000)])
    processes(node, "n-0", [5], 0, 2000)
    node.load(
        "gpu_owners",
        [{
            "gpu_uuid": "n-1", "gpu_instance": "", "kind": "pod", "owner": "nlp/a", "container": "",
            "first_seen_at": node.at(100), "last_seen_at": node.at(900),
        }],
        "dcgm",
    )  # fmt: skip

    assert {row[1] for row in holds(node)} == {"nlp/a"}
    assert "free_unknown" in node.gpu_s()


@pytest.mark.parametrize("order", ["forwards", "backwards"])
def test_builds_on_the_way_give_the_rows_of_a_full_build(new_evidence, order):
    def tell_processes(one):
        processes(one, "n-0", [7], 50, 1900)

    def tell_events(one):
        one.events("train", steps(100, 500), attempt=None, host="n", pid=7)

    def tell_more_events(one):
        one.events("train", steps(520, 900, first=41), attempt=None, host="n", pid=7)

    def tell_readings(one):
        readings(one, "n-0", [(60, 1000), (1200, 1900)])
        readings(one, "n-1", [(60, 300)])

    def tell_records(one):
        one.job("77", 1000, 1400, ["n"], 1)

    one = new_evidence()
    gpus(one, "n", 2)
    parts = [tell_readings, tell_events, tell_processes, tell_more_events, tell_records]
    for part in parts if order == "forwards" else reversed(parts):
        part(one)
        one.store.build()

    assert check(one.store)["violations"].sum() == 0
    assert_equals_full_build(one)


def test_a_process_on_the_latest_list_goes_on(node):
    for gpu, until in (("n-0", 2000), ("n-1", 1990)):
        readings(node, gpu, [(100, until)])
        processes(node, gpu, [5], 100, until)

    assert [row[3] for row in holds(node)] == [None, 1990]


def test_beside_a_scheduler_a_host_that_nobody_knows_is_no_machine(evidence, job_events):
    """Containers report host names of their own; they bring no capacity."""
    evidence.node("a", 1)
    evidence.job("1", 0, 100, ["a"], 1)
    evidence.events("other", job_events.steps(1, 9, 0), host="pod-7f9c", cluster=None)

    assert sum(evidence.gpu_s().values()) == 100


@pytest.mark.parametrize("is_late", [False, True])
def test_an_inventory_file_that_names_the_host_otherwise_renames_it_and_no_more(
    evidence, new_evidence, is_late
):
    """A recorder in a container is called after it; the file has the node's name."""
    alone = new_evidence()
    for site in (alone, evidence):
        gpus(site, "n", 2)
        readings(site, "n-0", [(100, 900)])
        readings(site, "n-1", [(1200, 1500)])
        processes(site, "n-0", [7], 100, 900)
        job(site, "r", [{"local_rank": 0}, {"local_rank": 1}], cluster=None)
    expected = phases(alone)
    if is_late:
        evidence.store.build()
    dated = {"cluster": "c", "node": "gpu-a01", "valid_from_at": evidence.at(0)}
    listed = [{**dated, "gpu_uuid": f"n-{index}", "gpu_index": index} for index in range(2)]
    evidence.load("gpus", listed, "inventory")

    assert phases(evidence) == expected
    nodes = evidence.store.read("select distinct node from marts.ledger_segments")
    assert nodes.to_series().to_list() == ["gpu-a01"]
    assert_equals_full_build(evidence)
