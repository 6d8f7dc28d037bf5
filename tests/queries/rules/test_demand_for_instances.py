"""Free GPU time with demand: MIG instances and the GPUs that could give one."""

from __future__ import annotations

import pytest


def cut(evidence, gpu, profile="3g.40gb", slices=3, count=2):
    """Cut a GPU into instances of one profile."""
    evidence.load(
        "gpu_instances",
        [
            {
                "cluster": "c", "gpu_uuid": gpu, "gpu_instance": f"{profile}.{number}",
                "profile": profile, "compute_slices": slices, "slurm_index": number,
            }
            for number in range(count)
        ],
    )  # fmt: skip


def asks(evidence, gpu_type):
    """Let a job wait on node m for the first 70 s, and never run."""
    evidence.watched(70)
    evidence.job(
        "1", None, 70, [], 0, "CANCELLED",
        submit=0, partition="p", gpus_requested=1, gpu_type_requested=gpu_type,
    )  # fmt: skip


@pytest.mark.parametrize("gpu_type", ["3g.40gb", "nvidia_h100_3g.40gb", None])
def test_free_instances_of_the_profile_that_a_job_waits_for_are_idle_with_demand(
    evidence, gpu_type
):
    evidence.node("m", 1, partitions=("p",))
    cut(evidence, "m#0")
    asks(evidence, gpu_type)

    assert evidence.gpu_s() == {"idle_with_demand": 60, "stranded": 10}


@pytest.mark.parametrize("gpu_type", ["1g.10gb", "h100"])
def test_instances_of_another_profile_meet_no_demand(evidence, gpu_type):
    evidence.node("m", 1, partitions=("p",))
    cut(evidence, "m#0")
    asks(evidence, gpu_type)

    assert evidence.gpu_s() == {"idle_no_demand": 60, "stranded": 10}


def test_a_free_gpu_that_could_give_the_profile_meets_the_demand(evidence):
    evidence.node("m", 2, partitions=("p",))
    evidence.node("other", 1, model="l40s", partitions=("p",))
    cut(evidence, "m#0")
    asks(evidence, "3g.40gb")

    found = evidence.gpu_s()

    assert found == {"idle_with_demand": 60 + 70, "stranded": 10, "idle_no_demand": 70}
