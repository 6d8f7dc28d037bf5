"""Free GPU time with demand: MIG instances and the GPUs that could give one."""

import pytest
from tests.queries.conftest import built_together


def cut(cluster, gpu, profile="3g.40gb", slices=3, count=2):
    """Cut a GPU into instances of one profile."""
    cluster.load(
        "gpu_instances",
        [
            {
                "cluster": cluster.name, "gpu_uuid": gpu, "gpu_instance": f"{profile}.{number}",
                "profile": profile, "compute_slices": slices, "slurm_index": number,
            }
            for number in range(count)
        ],
    )  # fmt: skip


def asks(cluster, gpu_type):
    """Let a job wait on node m for the first 70 s, and never run."""
    cluster.watched(70)
    cluster.job(
        "1", None, 70, [], 0, "CANCELLED",
        submit=0, partition="p", gpus_requested=1, gpu_type_requested=gpu_type,
    )  # fmt: skip


@pytest.mark.parametrize("gpu_type", ["3g.40gb", "nvidia_h100_3g.40gb", None])
@built_together
def test_free_instances_of_the_profile_that_a_job_waits_for_are_idle_with_demand(cluster, gpu_type):
    cluster.node("m", 1, partitions=("p",))
    cut(cluster, "m#0")
    asks(cluster, gpu_type)
    yield
    assert cluster.gpu_s() == {"idle_with_demand": 60, "stranded": 10}


@pytest.mark.parametrize("gpu_type", ["1g.10gb", "h100"])
@built_together
def test_instances_of_another_profile_meet_no_demand(cluster, gpu_type):
    cluster.node("m", 1, partitions=("p",))
    cut(cluster, "m#0")
    asks(cluster, gpu_type)
    yield
    assert cluster.gpu_s() == {"idle_no_demand": 60, "stranded": 10}


@built_together
def test_a_free_gpu_that_could_give_the_profile_meets_the_demand(cluster):
    cluster.node("m", 2, partitions=("p",))
    cluster.node("other", 1, model="l40s", partitions=("p",))
    cut(cluster, "m#0")
    asks(cluster, "3g.40gb")
    yield
    assert cluster.gpu_s() == {"idle_with_demand": 60 + 70, "stranded": 10, "idle_no_demand": 70}
