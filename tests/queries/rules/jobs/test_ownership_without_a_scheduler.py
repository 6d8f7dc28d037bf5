"""Ownership without a scheduler: by job events, lists of processes, then activity."""

import pytest
from tests.queries.conftest import Evidence, built_together
from tests.queries.ledger_build.full_rebuild import assert_equals_full_build

START_MS = 1_800_000_000_000


def gpus(cluster, node, count, source="nvml"):
    """Load GPUs of a node, named <node>-0 and so on, by telemetry."""
    rows = [
        {
            "cluster": cluster.name, "node": node, "gpu_index": index, "gpu_model": "h100",
            "gpu_uuid": f"{cluster.name}/{node}-{index}", "valid_from_at": cluster.at(0),
        }
        for index in range(count)
    ]  # fmt: skip
    cluster.load("gpus", rows, source)


def readings(cluster, gpu, active, until=2000, source="nvml"):
    """Read a GPU every ten seconds; `active` says from when to when it worked."""
    rows = [
        {
            "gpu_uuid": f"{cluster.name}/{gpu}", "gpu_instance": "",
            "ts": cluster.at(second), "is_flagged": False,
            "engine_active_ratio": 0.9 * any(a < second <= b for a, b in active),
        }
        for second in cluster.every(0, until)
    ]  # fmt: skip
    cluster.load("gpu_samples", rows, source)


def processes(cluster, gpu, pids, start, end, until=2000):
    """List the processes of a GPU every ten seconds: `pids` from start to end, else none."""
    rows = [
        {
            "gpu_uuid": f"{cluster.name}/{gpu}", "ts": cluster.at(second),
            "processes": len(pids) if start <= second <= end else 0,
            "pids": pids if start <= second <= end else [],
        }
        for second in cluster.every(0, until)
    ]  # fmt: skip
    cluster.load("gpu_processes", rows, "nvml")


def steps(start, end, each=10, first=1):
    """Return a start, steps of `each` seconds and no end."""
    reported = [{"t": start, "event": "job.start"}]
    count = (end - start) // each
    return reported + [
        {"t": start + each * (i + 1), "event": "step", "step": first + i, "dur_s": float(each)}
        for i in range(count)
    ]


def job(site, run, ranks, start=100, end=900, host="n", **more):
    """Load the events of a job: rank 0 its steps, the others their start, as `ranks` names them."""
    for rank, named in enumerate(ranks):
        said = dict(named)
        if "gpu_uuid" in said:
            said["gpu_uuid"] = f"{site.name}/{said['gpu_uuid']}"
        reported = steps(start, end) if rank == 0 else [{"t": start, "event": "job.start"}]
        if rank == 0:
            reported.append({"t": end, "event": "job.end"})
        site.events(run, reported, attempt=None, host=host, rank=rank, **said, **more)


def holds(cluster):
    """Build; return GPU, owner, begin, end and method of what was held, in seconds."""
    cluster.build()
    assert cluster.violations() == 0
    return cluster.read(
        f"""select replace(gpu_uuid, '{cluster.name}/', ''), job_id,
            (holds.start_ms - {START_MS}) / 1000, (holds.end_ms - {START_MS}) / 1000, method
        from intermediate.int_holds as holds
        inner join intermediate.int_job_runs using (job_run_key)
        where holds.cluster = '{cluster.name}'
        order by all"""
    ).rows()


def phases(cluster):
    """Build; return GPU-seconds by category and phase."""
    cluster.build()
    frame = cluster.read(
        f"""select category, phase, sum(gpu_ms) / 1000 as gpu_s
        from marts.ledger_segments where cluster = '{cluster.name}' group by all order by all"""
    )
    return {(category, phase): gpu_s for category, phase, gpu_s in frame.rows()}


def inferred(cluster, columns):
    sql = f"select {columns} from intermediate.int_job_runs where cluster = '{cluster.name}'"
    return cluster.read(sql).rows()


@built_together
def test_activity_is_somebodys_and_the_rest_of_the_observed_time_is_idle(cluster):
    gpus(cluster, "n", 2)
    readings(cluster, "n-0", [(100, 900), (1000, 1500)])
    readings(cluster, "n-1", [])
    yield
    assert phases(cluster) == {
        ("busy_unclassified", "owner_unknown"): 1300,
        ("busy_unclassified", "short_idle"): 100,
        ("idle_no_demand", "demand_unknown"): 600 + 2000,
    }
    assert cluster.violations() == 0


@built_together
def test_a_pause_of_the_idle_minimum_is_nobodys(cluster):
    gpus(cluster, "n", 2)
    readings(cluster, "n-0", [(100, 400), (700, 900)])
    yield
    assert phases(cluster)["idle_no_demand", "demand_unknown"] == 100 + 300 + 1100


@built_together
def test_time_without_a_reading_stays_unknown(cluster):
    gpus(cluster, "n", 2)
    readings(cluster, "n-0", [(0, 1000)], until=1000)
    readings(cluster, "n-1", [(0, 2000)])
    yield
    assert phases(cluster) == {
        ("busy_unclassified", "owner_unknown"): 3000,
        ("free_unknown", None): 1000,
    }


@built_together
def test_a_process_holds_its_gpus_while_it_is_listed(cluster):
    gpus(cluster, "n", 2)
    for gpu in ("n-0", "n-1"):
        readings(cluster, gpu, [(100, 400)])
        processes(cluster, gpu, [4711], 100, 1500)
    yield
    assert holds(cluster) == [
        ("n-0", "pid 4711 on n", 100, 1500, "process"),
        ("n-1", "pid 4711 on n", 100, 1500, "process"),
    ]
    assert phases(cluster) == {
        ("busy_unclassified", None): 600,
        ("idle_held", None): 2200,
        ("idle_no_demand", "demand_unknown"): 1200,
    }
    (run,) = inferred(cluster, "is_inferred, ownership, gpus, outcome")
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
@built_together
def test_a_job_holds_the_gpus_that_its_ranks_name(cluster, ranks, held):
    gpus(cluster, "n", 2)
    for gpu in ("n-0", "n-1"):
        readings(cluster, gpu, [(50, 1000)])
    processes(cluster, "n-1", [4711], 50, 1000)

    job(cluster, "train", ranks)
    yield
    assert [row[0] for row in holds(cluster) if row[1] == "train"] == held
    assert {row[2:4] for row in holds(cluster) if row[1] == "train"} == {(100, 900)}


@built_together
def test_a_job_without_a_scheduler_has_steps_and_goodput(cluster):
    gpus(cluster, "n", 2)
    readings(cluster, "n-0", [(0, 2000)])
    job(cluster, "train", [{"local_rank": 0}])
    yield
    assert phases(cluster) == {
        ("busy_unclassified", "owner_unknown"): 1200,
        ("free_unknown", None): 2000,
        ("step_unsplit", None): 800,
    }
    (run,) = inferred(cluster, "job_id, is_inferred, ownership, outcome")
    assert run == ("train", True, "job_event", "ok")


@built_together
def test_job_events_alone_name_the_gpus_there_are(cluster):
    job(cluster, "train", [{"local_rank": 0}, {"local_rank": 1}])
    yield
    assert phases(cluster) == {("step_unsplit", None): 1600}
    assert [(row[0], row[4]) for row in holds(cluster)] == [
        ("n#0", "job_event"), ("n#1", "job_event"),
    ]  # fmt: skip
    named = cluster.read("select distinct gpu_uuid from marts.ledger_scoped order by 1")["gpu_uuid"]
    assert named.to_list() == [f"{cluster.name}/n#0", f"{cluster.name}/n#1"]


@built_together
def test_job_events_alone_that_name_a_gpu_are_of_that_gpu(cluster):
    job(cluster, "train", [{"gpu_uuid": "GPU-1"}])
    yield
    assert [row[0] for row in holds(cluster)] == ["GPU-1"]


@built_together
def test_job_events_that_name_only_their_host_hold_a_gpu_for_each_rank(cluster):
    job(cluster, "train", [{}, {}, {}])
    yield
    assert cluster.gpu_s() == {"step_unsplit": 2400}


@built_together
def test_runs_without_a_name_are_distinguished_by_their_host(cluster):
    job(cluster, "", [{"local_rank": 0}], host="n")
    job(cluster, "", [{"local_rank": 0}], host="m")
    yield
    assert cluster.gpu_s() == {"step_unsplit": 1600}
    runs = cluster.read("select run_id from marts.runs order by run_id")["run_id"]
    assert runs.to_list() == ["unnamed on m", "unnamed on n"]


@built_together
def test_a_process_that_dies_and_starts_again_is_two_attempts_of_a_run(cluster):
    gpus(cluster, "n", 2)
    cluster.events("train", steps(100, 500), attempt=None, host="n", pid=1, local_rank=0)
    again = [*steps(560, 900, first=21), {"t": 900, "event": "job.end"}]
    cluster.events("train", again, attempt=None, host="n", pid=2, local_rank=0)
    readings(cluster, "n-0", [(100, 500), (560, 900)])
    yield
    assert holds(cluster) == [("n-0", "train", 100, 900, "job_event")]
    attempts = cluster.read(
        f"""select attempt, outcome from intermediate.int_attempts
        where cluster = '{cluster.name}' order by attempt"""
    )
    assert attempts.rows() == [(0, "failed"), (1, "ok")]


@built_together
def test_a_run_that_is_started_again_an_hour_later_is_another_job_run(cluster):
    gpus(cluster, "n", 2)
    job(cluster, "train", [{"local_rank": 0}], start=100, end=900)
    job(cluster, "train", [{"local_rank": 0}], start=4000, end=4800)
    yield
    assert [row[2:4] for row in holds(cluster)] == [(100, 900), (4000, 4800)]
    assert cluster.read("from marts.runs").height == 1


@built_together
def test_a_job_that_is_silent_for_long_keeps_its_gpus(cluster):
    gpus(cluster, "n", 2)
    cluster.events(
        "train",
        [*steps(100, 200), {"t": 2900, "event": "step", "step": 11, "dur_s": 10.0}],
        attempt=None, host="n", local_rank=0,
    )  # fmt: skip
    yield
    assert [row[2:4] for row in holds(cluster)] == [(100, 2900)]


@built_together
def test_a_job_goes_before_the_process_that_a_list_shows(cluster):
    gpus(cluster, "n", 2)
    readings(cluster, "n-0", [(0, 2000)])
    processes(cluster, "n-0", [7], 50, 1000)
    job(cluster, "train", [{"pid": 7}])
    yield
    assert holds(cluster) == [
        ("n-0", "pid 7 on n", 50, 100, "process"),
        ("n-0", "pid 7 on n", 900, 1000, "process"),
        ("n-0", "train", 100, 900, "job_event"),
    ]


@built_together
def test_a_host_by_its_full_name_is_the_node_by_its_short_one(cluster):
    gpus(cluster, "n", 2)
    readings(cluster, "n-0", [(0, 2000)])
    job(cluster, "train", [{"local_rank": 0}], host="n.lab.example")
    yield
    assert [row[:2] for row in holds(cluster)] == [("n-0", "train")]


@built_together(builds=2)
def test_a_scheduler_takes_over_from_its_first_record_on(cluster):
    gpus(cluster, "n", 2)
    for gpu in ("n-0", "n-1"):
        readings(cluster, gpu, [(0, 2000)])
        processes(cluster, gpu, [5], 0, 2000)
    job(cluster, "train", [{"gpu_uuid": "n-0"}], start=100, end=1500)
    yield
    before = holds(cluster)
    cluster.job("77", 1000, 1400, ["n"], 1)

    assert {row[1] for row in before} == {"train", "pid 5 on n"}
    yield
    after = holds(cluster)
    assert [row[1:] for row in after if row[4] not in ("job_event", "process")] == [
        ("77", 1000, 1400, "assumed")
    ]
    assert all(row[3] is not None and row[3] <= 1000 for row in after if row[1] != "77")


def test_where_labels_exist_nothing_is_inferred(evidence):
    gpus(evidence, "n", 2)
    readings(evidence, "n-0", [(0, 2000)])
    processes(evidence, "n-0", [5], 0, 2000)
    evidence.load(
        "gpu_owners",
        [{
            "gpu_uuid": f"{evidence.name}/n-1", "gpu_instance": "", "kind": "pod", "owner": "nlp/a",
            "container": "", "first_seen_at": evidence.at(100), "last_seen_at": evidence.at(900),
        }],
        "dcgm",
    )  # fmt: skip

    assert {row[1] for row in holds(evidence)} == {"nlp/a"}
    assert "free_unknown" in evidence.gpu_s()


@pytest.mark.slow
def test_builds_on_the_way_give_the_rows_of_a_full_build(new_evidence):
    """Of two clusters in one database, each loaded in an order of its own."""

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

    store = new_evidence().store
    forwards, backwards = Evidence(store, "forwards"), Evidence(store, "backwards")
    gpus(forwards, "n", 2)
    gpus(backwards, "n", 2)
    parts = [tell_readings, tell_events, tell_processes, tell_more_events, tell_records]
    for part, other in zip(parts, reversed(parts), strict=True):
        part(forwards)
        other(backwards)
        store.build()

    assert forwards.violations() == 0
    assert_equals_full_build(forwards)


def test_a_process_on_the_latest_list_goes_on(evidence):
    gpus(evidence, "n", 2)
    for gpu, until in (("n-0", 2000), ("n-1", 1990)):
        readings(evidence, gpu, [(100, until)])
        processes(evidence, gpu, [5], 100, until)

    assert [row[3] for row in holds(evidence)] == [None, 1990]


def test_beside_a_scheduler_a_host_that_nobody_knows_is_no_machine(evidence):
    """Containers report host names of their own; they bring no capacity."""
    evidence.node("a", 1)
    evidence.job("1", 0, 100, ["a"], 1)
    evidence.events("other", steps(0, 90), host="pod-7f9c", cluster=None)

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
    listed = [{**dated, "gpu_uuid": f"c/n-{index}", "gpu_index": index} for index in range(2)]
    evidence.load("gpus", listed, "inventory")

    assert phases(evidence) == expected
    nodes = evidence.store.read("select distinct node from marts.ledger_segments")
    assert nodes.to_series().to_list() == ["gpu-a01"]
    assert_equals_full_build(evidence)
