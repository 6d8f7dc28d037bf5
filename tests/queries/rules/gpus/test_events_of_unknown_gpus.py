"""Events that name GPUs which no inventory knows belong to the job run on their host."""

import pytest
from tests.queries.conftest import steps
from tests.queries.ledger_build.full_rebuild import assert_equals_full_build

RUN, UUID = "exp-7", "GPU-0a"


def of_a_run():
    return [{"event": "job.start", "t": 4}, *steps(1, 27, 10)]


@pytest.fixture
def expected(new_evidence):
    """Return the ledger of the same events without a GPU."""
    plain = new_evidence()
    plain.node("a", 2)
    plain.job("7", 0, 300, ["a"], 2)
    plain.events(RUN, of_a_run())
    return plain.gpu_s()


@pytest.mark.parametrize("has_slots", [True, False])
def test_they_are_matched_by_their_host(evidence, expected, has_slots):
    if has_slots:
        evidence.node("a", 2)
    evidence.job("7", 0, 300, ["a"], 2)
    evidence.events(RUN, of_a_run(), gpu_uuid=UUID)

    assert evidence.gpu_s() == expected
    assert expected["step_unsplit"] == 540


def test_they_stay_matched_when_an_inventory_names_the_gpu_later(evidence):
    evidence.job("7", 0, 300, ["a"], 2)
    evidence.events(RUN, of_a_run(), gpu_uuid=UUID)
    evidence.store.build()
    named = [
        {"gpu_uuid": uuid, "slurm_index": i, "gpu_index": i}
        for i, uuid in enumerate((UUID, "GPU-0b"))
    ]
    evidence.add("gpus", *named, source="nvml", node="a")

    assert evidence.gpu_s()["step_unsplit"] == 540
    assert_equals_full_build(evidence)


def test_a_known_gpu_decides_between_two_jobs_of_a_host(evidence):
    evidence.node("a", 2)
    evidence.job("7", 0, 300, ["a"], 1)
    evidence.job("8", 0, 300, ["a"], 1)
    evidence.events(RUN, of_a_run(), gpu_uuid=UUID)

    assert "step_unsplit" not in {k for k, v in evidence.gpu_s().items() if v}  # nobody knows whose
