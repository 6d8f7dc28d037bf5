"""What a reboot changes: numbers of GPUs, and GPUs themselves; UUIDs say which is which."""

import pytest
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
    assert cluster.own("gpu_uuid", "intermediate.int_holds") == [(cluster.gpu("a"),)]


# what it shows: numbers of GPUs by second, (GPU, first, last second) of readings, GPU-seconds
NUMBERED = {
    "a GPU that another one was put in place of has left": (
        {0: {"a": 0, "b": 1}, 600: {"c": 0}}, [("a", 0, 490), ("b", 0, 1000), ("c", 600, 1000)],
        {"a": 600, "b": 1000, "c": 400},
    ),
    # each of two exporters sees one GPU of the node, and calls it the first
    "GPUs of one number that are read side by side are all there": (
        {0: {"a": 0}, 300: {"b": 0}}, [("a", 0, 1000), ("b", 300, 1000)], {"a": 1000, "b": 700},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("numbers", "readings", "expected"), NUMBERED.values(), ids=NUMBERED)
@built_together
def test_gpus_that_are_numbered_again(cluster, numbers, readings, expected):
    for second, gpus in numbers.items():
        inventory(cluster, second, **gpus)
    for gpu, first, last in readings:
        read(cluster, gpu, first, last)
    yield
    assert gpu_s(cluster) == expected


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
