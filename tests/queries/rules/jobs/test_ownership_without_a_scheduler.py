"""Ownership without a scheduler: by job events, lists of processes, then activity."""

import pytest
from tests.queries.conftest import built_in, each, shown_by
from tests.queries.rules.jobs.unscheduled import holds, job, phases, processes, readings, steps


def inferred(cluster, columns):
    return cluster.own(columns, "intermediate.int_job_runs")


# what it shows: when the first and the second GPU of a node work, until when each is read, GPU-s
test_activity_alone = shown_by({
    "activity is somebody's and the rest of the observed time is idle": (
        [(100, 900), (1000, 1500)], 2000, [],
        {("busy_unclassified", "owner_unknown"): 1300, ("idle_held", "pause"): 100,
         ("idle_no_demand", "demand_unknown"): 600 + 2000}),
    "a pause of the idle minimum is nobody's": (
        [(100, 400), (700, 900)], 2000, [],
        {("busy_unclassified", "owner_unknown"): 500,
         ("idle_no_demand", "demand_unknown"): 100 + 300 + 1100 + 2000}),
    "time without a reading stays unknown": (
        [(0, 1000)], 1000, [(0, 2000)],
        {("busy_unclassified", "owner_unknown"): 3000, ("free_unknown", None): 1000}),
}, before=lambda c: c.telemetry("n", 2), read=phases, load=lambda c, first, until, second: [
    readings(c, "n-0", first, until), readings(c, "n-1", second)])  # fmt: skip


def test_a_process_holds_its_gpus_while_it_is_listed(cluster):
    cluster.telemetry("n", 2)
    for gpu in ("n-0", "n-1"):
        readings(cluster, gpu, [(100, 400)])
        processes(cluster, gpu, [4711], 100, 1500)
    yield
    listed = ("pid 4711 on n", 100, 1500, "process")
    assert holds(cluster) == [("n-0", *listed), ("n-1", *listed)]
    assert phases(cluster) == {
        ("busy_unclassified", None): 600, ("idle_held", "pause"): 600, ("idle_held", "idle"): 1600,
        ("idle_no_demand", "demand_unknown"): 1200,
    }  # fmt: skip
    (run,) = inferred(cluster, "is_inferred, ownership, gpus, outcome")
    assert run == (True, "process", 2, "limit")


@each({
    "from its start until it is gone": ({"start_at": 40, "gone_at": 1507}, 40, 1507),
    "as listed where it is long from either": ({"start_at": -700, "gone_at": 1561}, 100, 1500),
    "a recording that ends": ({"start_at": 40}, 40, 1500),
    "an earlier process of the same pid": ({"start_at": 10, "gone_at": 90}, 100, 1500),
})  # fmt: skip
def test_a_process_that_its_node_describes(cluster, described, start, end):
    cluster.telemetry("n", 1)
    readings(cluster, "n-0", [])
    processes(cluster, "n-0", [4711], 100, 1500)
    of_process = {"user_name": "ann", "process_name": "train.py", "last_seen_at": 80}
    cluster.add("processes", node="n", pid=4711, source="nvml", **of_process, **described)
    yield
    is_known = described.get("gone_at") != 90
    run = "train.py (pid 4711 on n)" if is_known else "pid 4711 on n"
    assert holds(cluster) == [("n-0", run, start, end, "process")]
    assert inferred(cluster, "job_name, user_name") == [
        ("train.py", "ann") if is_known else ("pid 4711 on n", "")
    ]
    assert cluster.own("run_name", "marts.runs") == [(run,)]


@each({
    "its UUID": ([{"gpu_uuid": "n-1"}], ["n-1"]),
    "its pid": ([{"pid": 4711, "local_rank": 0}], ["n-1"]),
    "its local rank": ([{"pid": 12, "local_rank": 1}], ["n-1"]),
    "local ranks": ([{"local_rank": 0}, {"local_rank": 1}], ["n-0", "n-1"]),
    "ranks": ([{}, {}], ["n-0", "n-1"]), "a rank by its process": ([{}], ["n-1"]),
})  # fmt: skip
def test_a_job_holds_the_gpus_that_its_ranks_name(cluster, ranks, held):
    cluster.telemetry("n", 2)
    for gpu in ("n-0", "n-1"):
        readings(cluster, gpu, [(50, 1000)])
    processes(cluster, "n-1", [4711], 50, 1000)

    job(cluster, "train", ranks)
    yield
    assert [row[0] for row in holds(cluster) if row[1] == "train"] == held
    assert {row[2:4] for row in holds(cluster) if row[1] == "train"} == {(100, 900)}


def test_a_name_of_an_instance_is_no_gpu_beside_those_of_the_node(cluster):
    cluster.telemetry("n", 1)
    for instance in ("1", "2"):
        of = {"gpu_uuid": cluster.gpu("n-0"), "gpu_instance": instance, "valid_from_at": 0}
        cluster.add("gpu_instances", of, source="dcgm", profile="3g.40gb", compute_slices=3)
    named = {"rank": 0, "local_rank": 0, "gpu_uuid": "MIG-c6d4f1ef-42e4"}
    reported = [*steps(100, 900), {"t": 900, "event": "job.end"}]
    cluster.events("train", reported, attempt=None, host="n", **named)
    yield
    (held,) = holds(cluster)
    assert held[:2] == ("n-0", "train")
    assert cluster.gpu_s()["step_unsplit"] == pytest.approx(800 * 3 / 7, abs=0.1)
    assert cluster.own("distinct gpu_uuid", "intermediate.int_gpu_units") == [(cluster.gpu("n-0"),)]


@each({
    "its UUID": ([{"gpu_uuid": "GPU-1"}], ["GPU-1"], "job_event"),
    "local ranks": ([{"local_rank": 0}, {"local_rank": 1}], ["n#0", "n#1"], "job_event"),
    "a GPU for each rank of the host": ([{}, {}, {}], ["n#0", "n#1", "n#2"], "assumed"),
})  # fmt: skip
def test_job_events_alone_hold_the_gpus_that_they_name(cluster, ranks, held, method):
    job(cluster, "train", ranks)
    yield
    assert [(row[0], row[4]) for row in holds(cluster)] == [(gpu, method) for gpu in held]
    assert cluster.gpu_s() == {"step_unsplit": 800 * len(held)}


@each({
    "of its log": ("n", [{}], ["n#0", "n#1", "n#2", "n#3"]),
    "of a log a node": ("mn", [{}], ["m#0", "m#1", "n#0", "n#1"]),
    "of a rank that names its own": ("n", [{"local_rank": 0}], ["n#0"]),
    "of ranks that speak": ("n", [{}, {}], ["n#0", "n#1"]),
})  # fmt: skip
def test_a_log_holds_as_many_gpus_as_the_processes_that_it_prints(cluster, hosts, ranks, held):
    size = {"event": "metric", "kind": "world_size", "extra": '{"world_size": 4}'}
    for host in hosts:
        job(cluster, "train", ranks, host=host)
    cluster.events("train", [{"t": 110, **size}], attempt=None, host=hosts[0], **ranks[0])
    yield
    assert [(row[0], *row[2:4]) for row in holds(cluster)] == [(gpu, 100, 900) for gpu in held]


test_hosts_of_events = shown_by({
    "runs without a name are distinguished by their host": (
        lambda c: [job(c, "", [{"local_rank": 0}], host=host) for host in "nm"],
        "select run_id, held_ms from marts.runs order by run_id",
        [("unnamed on m", 800_000), ("unnamed on n", 800_000)]),
    # containers report host names of their own; they bring no capacity
    "beside a scheduler a host that nobody knows is no machine": (
        lambda c: [c.job_on_a_node("1", 0, 100, 1), c.events("other", steps(0, 90), host="pod-7")],
        lambda c: sum(c.gpu_s().values()), 100),
})  # fmt: skip


def two_processes(c):
    """Load two processes of a GPU, the second of which starts before it is listed."""
    listed = c.every(0, 2000)
    c.processes("n-0", lambda s: [1] if 200 <= s <= 400 else [2] if s >= 500 else [], listed)
    for pid, start in ((1, 190), (2, 100)):
        c.add("processes", node="n", pid=pid, start_at=start, last_seen_at=500)


def dies_and_starts_again(c):
    again = [*steps(560, 900, first=21), {"t": 900, "event": "job.end"}]
    for pid, events in ((1, steps(100, 500)), (2, again)):
        c.events("train", events, attempt=None, host="n", pid=pid, local_rank=0)


STEP = {"t": 2900, "event": "step", "step": 11, "dur_s": 10.0}
FIRST = [{"local_rank": 0}]


# what it shows: when the first GPU of a node works, what else is loaded; owners of GPUs, begin, end
@each({
    "a process that starts has no GPU that another one is on": (
        [], two_processes, [("n-0", "pid 1 on n", 190, 400), ("n-0", "pid 2 on n", 400)]),
    "a process that dies and starts again is of one run": (
        [(100, 500), (560, 900)], dies_and_starts_again, [("n-0", "train", 100, 900)]),
    "a run that is started again an hour later is another job run": (
        None, lambda c: [job(c, "train", FIRST), job(c, "train", FIRST, start=4000, end=4800)],
        [("n-0", "train", 100, 900), ("n-0", "train", 4000, 4800)]),
    "a job that is silent for long keeps its GPUs": (
        None,
        lambda c: c.events("train", [*steps(100, 200), STEP], attempt=None, host="n", local_rank=0),
        [("n-0", "train", 100, 2900)]),
    "a job goes before the process that a list shows": (
        [(0, 2000)], lambda c: [processes(c, "n-0", [7], 50, 1000), job(c, "train", [{"pid": 7}])],
        [("n-0", "pid 7 on n", 50, 100), ("n-0", "pid 7 on n", 900, 1000),
         ("n-0", "train", 100, 900)]),
    "where labels exist nothing is inferred": (
        [(0, 2000)],
        lambda c: [processes(c, "n-0", [5], 0, 2000), c.label(c.gpu("n-1"), "nlp/a", 100, 900)],
        [("n-1", "nlp/a", 100, 900)]),
})  # fmt: skip
def test_owners_of_gpus(cluster, active, load, expected):
    cluster.telemetry("n", 2)
    if active is not None:
        readings(cluster, "n-0", active)
    load(cluster)
    yield
    found = zip(holds(cluster), expected, strict=True)
    assert [row[: len(owner)] for row, owner in found] == expected
    if load is dies_and_starts_again:
        attempts = cluster.own("attempt, outcome", "intermediate.int_attempts")
        assert attempts == [(0, "failed"), (1, "ok")]
    assert cluster.read("from marts.runs").height == len({owner for _, owner, *_ in expected})


@pytest.mark.parametrize("order", [1, -1])
@built_in(3)
def test_evidence_may_come_in_any_order(cluster, order):
    named = {"attempt": None, "host": "n", "pid": 7}
    parts = [
        lambda one: [readings(one, "n-0", [(60, 1000), (1200, 1900)]),
                     one.events("train", steps(100, 500), **named)],
        lambda one: [readings(one, "n-1", [(60, 300)]), processes(one, "n-0", [7], 50, 1900)],
        lambda one: [one.events("train", steps(520, 900, first=41), **named),
                     one.job("77", 1000, 1400, ["n"], 1)],
    ]  # fmt: skip
    cluster.telemetry("n", 2)
    for part in parts[::order]:
        part(cluster)
        yield
    assert [row[:4] for row in holds(cluster)] == [
        ("n-0", "77", 1000, 1400), ("n-0", "pid 7 on n", 50, 100), ("n-0", "train", 100, 1000),
    ]  # fmt: skip


def test_a_process_on_the_latest_list_goes_on(evidence):
    evidence.telemetry("n", 2)
    for gpu, until in (("n-0", 2000), ("n-1", 1990)):
        readings(evidence, gpu, [(100, until)])
        processes(evidence, gpu, [5], 100, until)

    assert [row[3] for row in holds(evidence)] == [None, 1990]


@pytest.mark.parametrize("named", ["at once", "later", "never"])
def test_an_inventory_file_that_names_the_host_otherwise_renames_it_and_no_more(cluster, named):
    """A recorder in a container is called after it; the file has the node's name."""
    host, node = f"pod-{cluster.name}", f"gpu-{cluster.name}"
    cluster.telemetry(host, 2)
    readings(cluster, f"{host}-0", [(100, 900)])
    readings(cluster, f"{host}-1", [(1200, 1500)])
    processes(cluster, f"{host}-0", [7], 100, 900)
    job(cluster, "r", [{"local_rank": 0}, {"local_rank": 1}], host=host, cluster=None)
    if named == "later":
        yield
    listed = [{"gpu_uuid": cluster.gpu(f"{host}-{index}"), "gpu_index": index} for index in (0, 1)]
    if named != "never":
        cluster.add("gpus", *listed, source="inventory", node=node, valid_from_at=0)
    yield
    assert phases(cluster) == {
        ("busy_unclassified", "owner_unknown"): 300,
        ("idle_no_demand", "demand_unknown"): 2100,
        ("step_unsplit", None): 1600,
    }
    expected = host if named == "never" else node
    assert cluster.own("distinct node", "marts.ledger_pieces") == [(expected,)]
