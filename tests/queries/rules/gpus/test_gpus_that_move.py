"""GPUs that move, are numbered again, or that evidence puts in two places at one time."""

import pytest
from tests.queries.conftest import START_MS, each, shown_by


def inventory(cluster, second, **gpus):
    """Load which GPU has which number from a moment on: `a=0`, GPU a is number 0."""
    rows = [{"gpu_uuid": cluster.gpu(name), "gpu_index": index} for name, index in gpus.items()]
    placed = {"node": "n", "gpu_model": "h100", "valid_from_at": second}
    cluster.add("gpus", *rows, source="dcgm", **placed)


def read(cluster, gpu, first, until):
    cluster.samples(gpu, cluster.every(first, until), lambda _: True)


def gpu_s(cluster):
    """Return GPU-seconds in the inventory by GPU."""
    rows = cluster.read("select gpu_uuid, sum(gpu_ms) / 1000 from marts.ledger_scoped group by all")
    return {gpu.removeprefix(cluster.gpu("")): seconds for gpu, seconds in rows.rows()}


# what it shows: numbers of GPUs by second, (GPU, first, last second) of readings, GPU-seconds
test_gpus_that_are_numbered_again = shown_by({
    "a GPU that another one was put in place of has left": (
        {0: {"a": 0, "b": 1}, 600: {"c": 0}}, [("a", 0, 490), ("b", 0, 1000), ("c", 600, 1000)],
        {"a": 600, "b": 1000, "c": 400}),
    # each of two exporters sees one GPU of the node, and calls it the first
    "GPUs of one number that are read side by side are all there": (
        {0: {"a": 0}, 300: {"b": 0}}, [("a", 0, 1000), ("b", 300, 1000)], {"a": 1000, "b": 700}),
}, read=gpu_s, load=lambda c, numbers, readings: [
    *(inventory(c, second, **gpus) for second, gpus in numbers.items()),
    *(read(c, *reading) for reading in readings)])  # fmt: skip


def places(cluster):
    """Return where its GPU was, and from when to when in seconds."""
    sql = f"""select node, (start_ms - {START_MS}) // 1000, (end_ms - {START_MS}) // 1000
        from intermediate.int_gpu_units where gpu_uuid = 'GPU-{cluster.name}' order by start_ms"""
    return cluster.read(sql).rows()


def listed(cluster, node, *, since=0, source="dcgm", of=None):
    """Say that a source lists one GPU in a node, of another cluster where `of` names it."""
    named = {"node": f"{cluster.name}-{node}", "gpu_uuid": f"GPU-{cluster.name}", "gpu_index": 0}
    of_cluster = {"cluster": of or cluster.name, "valid_from_at": since}
    cluster.add("gpus", source=source, **named, **of_cluster)


# what it shows: node and source of its listings, a second cluster by a star; whether it is cut into
# instances; its GPU-seconds
@each({
    "of two nodes from the same time on one counts": ("a dcgm, b nvml", False, 100),
    "of two clusters on one counts": ("a* dcgm, b nvml", True, 70),
    "sources that take turns over a GPU leave one stay in each node": (
        "a dcgm, b nvml, a prometheus", False, 100),
    "a MIG GPU in two nodes is one GPU": ("a dcgm, b nvml", True, 70),
})  # fmt: skip
def test_a_gpu_that_is_listed_in_two_nodes_at_one_time(cluster, listings, is_cut, gpu_s):
    for listing in listings.split(", "):
        node, source = listing.split()
        of = f"0{cluster.name}" if "*" in node else cluster.name
        listed(cluster, node, source=source, of=of)
        cluster.state("*", "up", 0, gpu_s, cluster=of)
    if is_cut:
        cluster.add("gpu_instances", {"gpu_instance": "1"}, {"gpu_instance": "2"}, source="dcgm",
                    gpu_uuid=f"GPU-{cluster.name}", profile="3g.40gb", compute_slices=3,
                    valid_from_at=0)  # fmt: skip
    yield
    assert sum(cluster.gpu_s().values()) == gpu_s
    named = "select example from marts.data_quality where kind = 'GPUs in two places'"
    nodes = {node for node, *_ in places(cluster)}
    assert (len(nodes), cluster.read(named).height) == (1, 1)


@pytest.mark.parametrize("since", [0, 40])
def test_an_inventory_comes_before_a_node_where_only_a_job_held_the_gpu(cluster, since):
    listed(cluster, "a")
    cluster.job("1", since, 100, [f"{cluster.name}-b"], 1)
    named = {"slurm_index": 0, "gpu_uuid": f"GPU-{cluster.name}", "method": "hpc_job"}
    cluster.hold("1", submit=since, node=f"{cluster.name}-b", **named)
    cluster.watched(100)
    yield
    assert [node for node, *_ in places(cluster)] == [f"{cluster.name}-a"]


test_gpus_that_move = shown_by({
    "GPUs that change numbers at a reboot stay two": (
        lambda c: [inventory(c, 0, a=0, b=1), inventory(c, 500, a=1, b=0), c.watched(1000),
                   c.job("1", 600, 1000, ["n"], 1),
                   c.hold("1", submit=600, node="n", slurm_index=1)],
        lambda c: (gpu_s(c), c.own("gpu_uuid", "intermediate.int_holds")),
        lambda c: ({"a": 1000, "b": 1000}, [(c.gpu("a"),)])),
    "a GPU that moves is in its new node from then on": (
        lambda c: [listed(c, "a"), listed(c, "b", since=60), c.watched(100)], places,
        lambda c: [(f"{c.name}-a", 0, 60), (f"{c.name}-b", 60, None)]),
})  # fmt: skip


test_a_gpu_that_came_back = shown_by({"a GPU that came back has not left": (
            [lambda c: [inventory(c, 0, a=0), read(c, "a", 0, 200), inventory(c, 300, c=0),
                        read(c, "c", 300, 500)],
             lambda c: [inventory(c, 600, a=1), read(c, "a", 600, 1000)]],
            [{"a": 300, "c": 200}, {"a": 1000, "c": 700}])}, read=gpu_s, builds=2)  # fmt: skip
