"""Which GPUs an engine of a serving endpoint has, and who owns them."""

from tests.queries.conftest import each, shown_by
from tests.queries.serving.engines import busy, engine

PLACES = """select engine, endpoint, gpu_uuid, method, is_in_order,
        (start_ms - 1800000000000) // 1000 as start_s, (end_ms - 1800000000000) // 1000 as end_s
    from intermediate.int_serving_gpus where cluster = $1 order by all"""


def active(cluster, node, count):
    """Load GPUs of a node that are active for an hour; return their UUIDs."""
    cluster.telemetry(node, count, "test")
    names = [f"{node}-{index}" for index in range(count)]
    for name in names:
        cluster.samples(name, range(0, 3601, 30), lambda _: 1, "test")
    return [cluster.gpu(name) for name in names]


def places(cluster):
    """Return where the engines of a cluster are."""
    return cluster.store.read(PLACES, [cluster.name]).rows()


def time_of(cluster):
    """Return GPU-seconds by category, phase and whether a job run had the GPUs."""
    sql = """select category, coalesce(phase, ''), job_run_key is not null,
            sum(gpu_ms)::bigint // 1000
        from marts.ledger_scoped_by_node group by all"""
    rows = cluster.read(sql).rows()
    return {tuple(key): seconds for *key, seconds in rows}


OTHER = {"model": "other"}


def test_processes_on_the_gpus_own_them(cluster):
    """Without a scheduler the process that listens has the GPU on whose list its pid is."""
    pid = cluster.first_pid
    first, second = active(cluster, "n", 2)
    cluster.add("gpu_processes",
                *({"gpu_uuid": gpu, "ts": s, "processes": len(pids), "pids": pids}
                  for gpu, pids in ((first, []), (second, [pid]))
                  for s in range(0, 3601, 30)))  # fmt: skip
    busy(cluster, engine(cluster, "n", pid=pid, model="other"), 600, 3600, since=1800)
    yield
    (place,) = places(cluster)
    assert place[2:4] == (second, "process")
    assert {key: s for key, s in time_of(cluster).items() if key[2]} == {
        ("startup", "model_load", True): 600,
        ("idle_held", "standby", True): 1200,
        ("step_unsplit", "serving", True): 1800,
    }


def test_a_node_that_only_serves(cluster):
    """No scheduler, no label, no list: the series names the node; nobody is known to own it."""
    active(cluster, "n", 2)
    busy(cluster, engine(cluster, "n", **OTHER), 600, 3600, since=1800)
    yield
    assert [place[3] for place in places(cluster)] == ["node", "node"]
    assert time_of(cluster) == {
        ("busy_unclassified", "owner_unknown", False): 1200,
        ("idle_held", "standby", False): 2400,
        ("step_unsplit", "serving", False): 3600,
    }
    ladder = cluster.read("from marts.evidence_ladder").to_dicts()[0]
    assert (ladder["rung"], ladder["coverage"]) == ("goodput", 6000 / 7200)


def moved(cluster):
    (gpu,) = active(cluster, "n", 1)
    cluster.add("gpus", {"gpu_uuid": gpu, "gpu_index": 0}, node="a", valid_from_at=1800)
    busy(cluster, engine(cluster, "n", **OTHER), 0, 3600, since=1800)


def labelled(cluster):
    names = active(cluster, "n", 4)
    for index, labels in (("0", [names[3]]), ("1", ["0", "1"])):
        of = engine(cluster, "n", gpu_labels=labels, engine=index, **OTHER)
        busy(cluster, of, 0, 3600, since=1800)


PLACED = "engine, right(gpu_uuid, 3), method, node", "intermediate.int_serving_gpus"
# what it shows: what is loaded, which engine has which GPU by what
test_gpus_of_engines = shown_by({
    "a GPU that was moved is of the engine once, on its node": (moved, [("0", "n-0", "node", "n")]),
    "labels of the series name the GPUs of each engine": (
        labelled,
        [("0", "n-3", "label", "n"), ("1", "n-0", "label", "n"), ("1", "n-1", "label", "n")]),
}, read=lambda c: c.own(*PLACED))  # fmt: skip


def test_engines_of_one_pod_have_a_part_of_its_gpus_each(cluster):
    """Both engines of the pod have two of its four GPUs; the pod that came before had them all."""
    names = active(cluster, "n", 4)
    for owner, first, last in (("llm/before", 0, 900), ("llm/chat-0", 1000, 3600)):
        for name in names:
            cluster.label(name, owner, first, last, source="test")
    for index, since in (("0", 1500), ("1", 9000)):
        of_pod = {"pod": "chat-0", "namespace": "llm", "endpoint": "llm/chat-0:8000", **OTHER}
        busy(cluster, engine(cluster, "n", engine=index, **of_pod), 1300, 3600, since=since)
    yield
    assert [(engine, gpu, *rest) for engine, _, gpu, *rest in places(cluster)] == [
        (f"{place // 2}", name, "pod", True, 1000, 3600) for place, name in enumerate(names)
    ]
    assert time_of(cluster).items() >= {
        ("startup", "model_load", True): 4 * 300, ("step_unsplit", "serving", True): 2 * 2100,
        ("idle_held", "standby", True): 2 * 200 + 2 * 2300}.items()  # fmt: skip


# what it shows: job runs (start, nodes, GPUs), when engines of node a begin to work; how many
# places they have, GPU-seconds
@each({
    "a node with two job runs says nothing of the engine": (
        [(0, "a", 1), (1800, "a", 1)], [0], 0, {}),
    "the only engine of a job run has its GPUs on other nodes too": (
        [(0, "ab", 4)], [600], 4, {("step_unsplit", "serving", True): 4 * 3000}),
    # who has requests decides
    "three engines share two GPUs": (
        [(0, "a", 2)], [600, 1200, 9000], 6,
        {("idle_held", "standby", True): 2 * 600, ("step_unsplit", "serving", True): 2 * 3000}),
})  # fmt: skip
def test_engines_on_nodes_of_job_runs(cluster, jobs, sinces, count, expected):
    for node in {node for _, nodes, _ in jobs for node in nodes}:
        cluster.node(node, 2)
    cluster.watched(3600)
    for number, (start, nodes, gpus) in enumerate(jobs):
        cluster.job(str(number), start, 3600, [*nodes], gpus)
    for port, since in enumerate(sinces):
        of = engine(cluster, endpoint=f"a:800{port}", **OTHER)
        busy(cluster, of, 0, 3600, since=since)
    yield
    assert [place[3] for place in places(cluster)] == ["job_run"] * count
    assert time_of(cluster).items() >= expected.items()
    known = [(4,)] if count == 4 else [(None,)]  # of three engines on two nobody says
    assert cluster.read("select distinct gpus from marts.serving_engines").rows() == known
