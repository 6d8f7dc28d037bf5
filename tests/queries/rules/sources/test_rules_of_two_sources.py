"""One GPU that two sources read: DCGM and NVML on its node, each by its own name for the node."""

import pytest
from tests.queries.conftest import built_together


def read_by(cluster, source, node, first, until):
    """Load that a source reads the GPU on a node of that name, every ten seconds."""
    gpu = {"gpu_uuid": cluster.gpu("gpu")}
    seen = {"node": node, "gpu_index": 0, "valid_from_at": first, "cluster": None}
    cluster.add("gpus", seen, source=source, **gpu)
    cluster.samples("gpu", cluster.every(first, until), lambda _: True, source)


@pytest.mark.parametrize("of_job", ["", ".cluster.example"])
@pytest.mark.parametrize("of_dcgm", ["", ".cluster.example"])
@pytest.mark.parametrize("of_nvml", ["", ".cluster.example"])
@built_together
def test_a_gpu_that_two_sources_read_is_there_once(cluster, of_dcgm, of_nvml, of_job):
    node = f"gpu-{cluster.name}"
    read_by(cluster, "dcgm", node + of_dcgm, 0, 1000)
    read_by(cluster, "nvml", node + of_nvml, 5, 1005)
    cluster.job("1", 0, 1000, [node + of_job], 1)
    yield
    assert cluster.gpu_s() == {"busy_unclassified": 1000, "free_unknown": 5}
    assert cluster.violations() == 0


@built_together
def test_nodes_of_one_short_name_in_two_domains_are_two(cluster):
    """The GPU was taken from one to the other, as its names say."""
    node = f"a-{cluster.name}"
    read_by(cluster, "dcgm", f"{node}.east", 0, 500)
    read_by(cluster, "nvml", f"{node}.west", 600, 1000)
    yield
    nodes = cluster.read(
        f"""select node from intermediate.int_gpu_units where gpu_uuid = '{cluster.gpu("gpu")}'
        order by start_ms"""
    )
    assert nodes["node"].to_list() == [f"{node}.east", f"{node}.west"]
