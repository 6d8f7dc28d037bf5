"""One GPU that two sources read: DCGM and NVML on its node, each by its own name for the node."""

import pytest

from goodput_queries.check import check

GPU = "GPU-6f0c1c2e-3b7a-4d51-9a0e-0d1c2b3a4f50"
SHORT, LONG = "gpu-a01", "gpu-a01.cluster.example"


def read_by(evidence, source, node, first, until, active):
    """Load that a source reads the GPU on a node of that name, every ten seconds."""
    seen = {"node": node, "gpu_index": 0, "valid_from_at": first, "cluster": None}
    evidence.add("gpus", seen, source=source, gpu_uuid=GPU)
    rows = [{"ts": second} for second in evidence.every(first, until)]
    read = {"gpu_instance": "", "engine_active_ratio": 0.9 * active, "is_flagged": False}
    evidence.add("gpu_samples", *rows, source=source, gpu_uuid=GPU, **read)


@pytest.mark.parametrize("of_job", [SHORT, LONG])
@pytest.mark.parametrize("of_dcgm", [SHORT, LONG])
@pytest.mark.parametrize("of_nvml", [SHORT, LONG])
def test_a_gpu_that_two_sources_read_is_there_once(evidence, of_dcgm, of_nvml, of_job):
    read_by(evidence, "dcgm", of_dcgm, 0, 1000, active=True)
    read_by(evidence, "nvml", of_nvml, 5, 1005, active=True)
    evidence.job("1", 0, 1000, [of_job], 1)

    assert evidence.gpu_s() == {"busy_unclassified": 1000, "free_unknown": 5}
    assert check(evidence.store)["violations"].sum() == 0


def test_nodes_of_one_short_name_in_two_domains_are_two(evidence):
    """The GPU was taken from one to the other, as its names say."""
    read_by(evidence, "dcgm", "a.east", 0, 500, active=True)
    read_by(evidence, "nvml", "a.west", 600, 1000, active=True)
    evidence.store.build()

    nodes = evidence.store.read("select node from intermediate.int_gpu_units order by start_ms")
    assert nodes.to_series().to_list() == ["a.east", "a.west"]
