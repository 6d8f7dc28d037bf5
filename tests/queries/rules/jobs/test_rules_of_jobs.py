"""What a job says of itself, on the least evidence: what the worlds of the oracle do not have.

That attempts, steps, phases, saves and gaps have their categories: tests/oracle.
"""

import pytest
from tests.queries.conftest import Cluster, durable, shown_by, steps


def event(name, second, **more):
    return {"event": name, "t": second, **more}


# what it shows: (start, end, state) of the job run on the only GPU, its events, GPU-seconds
test_ledger_of_one_job_run = shown_by({
    "steps of a running attempt after its last save are at risk": (
        (0, None, "RUNNING"), [*steps(1, 5, 10), durable(3, 40)],
        {"startup": 10, "step_unsplit": 30, "at_risk": 20}),
    "events without a run id find the only hold that fits": (
        (0, 100, "COMPLETED"), [{**step, "run_id": ""} for step in steps(1, 8, 10)],
        {"startup": 10, "step_unsplit": 80, "teardown": 10}),
    "waits for data under 10 ms stay in the step": (
        (0, 100, "COMPLETED"), steps(1, 10, 0, data_s=0.009), {"step_unsplit": 100}),
    "waits for data of 10 ms are stalls": (
        (0, 100, "COMPLETED"), steps(1, 10, 0, data_s=0.010),
        {"data_stall": 0.1, "step_unsplit": 99.9}),
    "waits for data are measured by the median step and not by their own": (
        (0, 2.05, "COMPLETED"),
        [*steps(1, 9, 0, 0.1), *steps(10, 10, 0.9, 0.15, data_s=0.006), *steps(11, 20, 1.05, 0.1)],
        {"data_stall": 0.006, "step_unsplit": 2.044}),
}, read=Cluster.gpu_s, load=lambda c, job, events: [
    c.job_on_a_node("1", *job[:2], 1, job[2]), c.events("1", events)])  # fmt: skip


def test_a_run_that_shrank_and_kept_all_its_time_has_full_ettr(cluster):
    cluster.node("a", 4)
    for number, gpus in enumerate((4, 2)):
        start = 100 * number
        cluster.job(str(number), start, start + 100, ["a"], gpus, job_name="r")
        ran = steps(10 * number + 1, 10 * number + 10, start)
        cluster.events("r", [*ran, durable(10, 100)], attempt=number)
    yield
    assert cluster.gpu_s()["step_unsplit"] == 400 + 200
    assert cluster.read("select ettr_ratio from marts.runs").item() == pytest.approx(1)
