"""Events that name GPUs which no inventory knows belong to the job run on their host."""

import pytest
from tests.queries.conftest import built_together, steps

RUN, UNKNOWN = "exp-7", "GPU-0a"
RAN = [{"event": "job.start", "t": 4}, *steps(1, 27, 10)]
AS_WITHOUT_A_GPU = {"startup": 20, "step_unsplit": 540, "teardown": 40}


@pytest.mark.parametrize("named", [None, UNKNOWN])
@pytest.mark.parametrize("has_slots", [True, False])
@built_together
def test_they_are_matched_by_their_host(cluster, has_slots, named):
    if has_slots:
        cluster.node("a", 2)
    cluster.job("7", 0, 300, ["a"], 2)
    cluster.events(RUN, RAN, gpu_uuid=named and cluster.gpu(named))
    yield
    assert cluster.gpu_s() == AS_WITHOUT_A_GPU


@built_together(builds=2)
def test_they_stay_matched_when_an_inventory_names_the_gpu_later(cluster):
    cluster.job("7", 0, 300, ["a"], 2)
    cluster.events(RUN, RAN, gpu_uuid=cluster.gpu(UNKNOWN))
    yield
    named = [
        {"gpu_uuid": cluster.gpu(uuid), "slurm_index": i, "gpu_index": i}
        for i, uuid in enumerate((UNKNOWN, "GPU-0b"))
    ]
    cluster.add("gpus", *named, source="nvml", node="a")
    yield
    assert cluster.gpu_s()["step_unsplit"] == 540


@built_together
def test_of_two_jobs_on_their_host_they_belong_to_neither(cluster):
    cluster.node("a", 2)
    cluster.job("7", 0, 300, ["a"], 1)
    cluster.job("8", 0, 300, ["a"], 1)
    cluster.events(RUN, RAN, gpu_uuid=cluster.gpu(UNKNOWN))
    yield
    assert "step_unsplit" not in {k for k, v in cluster.gpu_s().items() if v}
