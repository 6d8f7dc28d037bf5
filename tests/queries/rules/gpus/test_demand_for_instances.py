"""Free GPU time with demand: MIG instances and the GPUs that could give one."""

import pytest
from tests.queries.conftest import built_together

# what a job asks for that waits 70 s and never runs; are there other, whole GPUs; GPU-seconds
DEMANDS = {
    "its profile": ("3g.40gb", False, {"idle_with_demand": 60, "stranded": 10}),
    "its profile and model": (
        "nvidia_h100_3g.40gb", False, {"idle_with_demand": 60, "stranded": 10},
    ),
    "any": (None, False, {"idle_with_demand": 60, "stranded": 10}),
    "another profile": ("1g.10gb", False, {"idle_no_demand": 60, "stranded": 10}),
    "a whole GPU": ("h100", False, {"idle_no_demand": 60, "stranded": 10}),
    "a profile that another GPU could give": (
        "3g.40gb", True, {"idle_with_demand": 60 + 70, "stranded": 10, "idle_no_demand": 70},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("gpu_type", "has_others", "expected"), DEMANDS.values(), ids=DEMANDS)
@built_together
def test_demand_for_two_free_instances(cluster, gpu_type, has_others, expected):
    cluster.node("m", 1 + has_others, partitions=("p",))
    if has_others:
        cluster.node("other", 1, model="l40s", partitions=("p",))
    parts = [{"gpu_instance": f"3g.40gb.{n}", "slurm_index": n} for n in range(2)]
    cluster.add("gpu_instances", *parts, gpu_uuid="m#0", profile="3g.40gb", compute_slices=3)
    cluster.watched(70)
    asked = {"gpus_requested": 1, "gpu_type_requested": gpu_type, "partition": "p"}
    cluster.job("1", None, 70, [], 0, "CANCELLED", submit=0, **asked)
    yield
    assert cluster.gpu_s() == expected
