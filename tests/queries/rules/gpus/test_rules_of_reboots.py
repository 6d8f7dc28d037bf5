"""What a reboot changes: numbers of GPUs, and GPUs themselves; UUIDs say which is which."""

from tests.queries.conftest import built_together


def inventory(cluster, second, **gpus):
    """Load which GPU has which number from a moment on: `a=0`, GPU a is number 0."""
    rows = [{"gpu_uuid": cluster.gpu(name), "gpu_index": index} for name, index in gpus.items()]
    placed = {"node": "n", "gpu_model": "h100", "valid_from_at": second}
    cluster.add("gpus", *rows, source="dcgm", **placed)


def read(cluster, gpu, first, until):
    cluster.samples(gpu, cluster.every(first, until), lambda _: True)


def gpu_s(cluster):
    """Return GPU-seconds in the inventory by GPU."""
    assert cluster.violations() == 0
    rows = cluster.read("select gpu_uuid, sum(gpu_ms) / 1000 from marts.ledger_scoped group by all")
    return {gpu.removeprefix(cluster.gpu("")): seconds for gpu, seconds in rows.rows()}


@built_together
def test_gpus_that_change_numbers_at_a_reboot_stay_two(cluster):
    inventory(cluster, 0, a=0, b=1)
    inventory(cluster, 500, a=1, b=0)
    cluster.watched(1000)
    cluster.job("1", 600, 1000, ["n"], 1)
    cluster.hold("1", submit=600, node="n", slurm_index=1)
    yield
    assert gpu_s(cluster) == {"a": 1000, "b": 1000}
    sql = f"select gpu_uuid from intermediate.int_holds where cluster = '{cluster.name}'"
    assert cluster.read(sql)["gpu_uuid"].to_list() == [cluster.gpu("a")]


@built_together
def test_a_gpu_that_another_one_was_put_in_place_of_has_left(cluster):
    inventory(cluster, 0, a=0, b=1)
    read(cluster, "a", 0, 490)
    read(cluster, "b", 0, 1000)
    inventory(cluster, 600, c=0)
    read(cluster, "c", 600, 1000)
    yield
    assert gpu_s(cluster) == {"a": 600, "b": 1000, "c": 400}


@built_together
def test_gpus_of_one_number_that_are_read_side_by_side_are_all_there(cluster):
    """Each of two exporters sees one GPU of the node, and calls it the first."""
    inventory(cluster, 0, a=0)
    inventory(cluster, 300, b=0)
    read(cluster, "a", 0, 1000)
    read(cluster, "b", 300, 1000)
    yield
    assert gpu_s(cluster) == {"a": 1000, "b": 700}


@built_together(builds=2)
def test_a_gpu_that_came_back_has_not_left(cluster):
    inventory(cluster, 0, a=0)
    read(cluster, "a", 0, 200)
    inventory(cluster, 300, c=0)
    read(cluster, "c", 300, 500)
    yield
    inventory(cluster, 600, a=1)
    read(cluster, "a", 600, 1000)
    yield
    assert gpu_s(cluster) == {"a": 1000, "c": 700}
