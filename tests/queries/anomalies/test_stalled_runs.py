"""Running jobs whose steps have stopped coming, before anything ends them."""

import pytest
from tests.queries.anomalies.conftest import BUSY, Gpus
from tests.queries.conftest import built_together, phase, steps

END = 1200
# as GPUs of the recorded session while they waited in a collective that hung
WAITING = {**BUSY, "sm_active_ratio": 0.09, "tensor_active_ratio": 0.0, "dram_active_ratio": 0.0,
           "power_w": 125.0}  # fmt: skip
UNREAD = {**BUSY, "power_w": None}


def job(gpus, last_step, *, events=(), first=1, others_until=END, then=WAITING, **ending):
    """Load a running job of a step every 2 s, beside one whose steps go on.

    then: what its GPUs do after the last step
    """
    gpus.node("a", 2)
    gpus.node("b", 1)
    gpus.evidence.job("1", 0, ending.pop("end", None), ["a"], 2, **{"state": "RUNNING", **ending})
    gpus.evidence.job("2", 0, None, ["b"], 1, state="RUNNING")
    ran = steps(first, last_step, 2.0 * (first - 1), 2.0)
    gpus.evidence.events("1", [*ran, *events], host="a")
    gpus.evidence.events("2", steps(1, int(others_until // 10), 0, 10.0), host="b")
    before = UNREAD if then is UNREAD else BUSY
    for i in range(2):
        gpus.read(f"a/{i}", END, lambda s: before if s <= 2 * last_step else then, exact=True)
    gpus.evidence.watched(END)


@pytest.mark.fires("no_step")
@built_together
def test_a_job_without_a_step_for_much_longer_than_usual_is_found(cluster):
    gpus = Gpus(cluster)
    job(gpus, 500)
    yield
    (row,) = gpus.found("stalled_runs")

    assert (row["rule"], row["confidence"], row["end_at"]) == ("no_step", "Likely", None)
    assert row["start_at"] == gpus.evidence.at(1000)
    assert (row["gpus"], row["gpu_ms"]) == (2, 2 * 200_000)
    assert row["evidence"] == (
        "no step for 200 s after step 500, usual one every 2.0 s (longest 2 s): hung or stalled; "
        "2 of 2 GPUs that are read still active, at 21 % of their power in steps"
    )
    of_run = "select rule, until_at, severity, title from marts.findings where run_key = $1"
    found = cluster.store.read(of_run, [row["run_key"]]).rows()
    assert ("no_step", None, "info", "No step comes any more") in found


@pytest.mark.parametrize(
    ("then", "last_step", "end_of_evidence"),
    [
        pytest.param(
            BUSY,
            140,
            "at 100 % of their power in steps: work that no event declares looks the same",
            id="they work for 15 minutes",
        ),
        pytest.param(UNREAD, 500, "that are read still active", id="power is not read"),
    ],
)
@built_together
def test_a_silence_in_which_gpus_may_work_is_not_confirmed(
    cluster, then, last_step, end_of_evidence
):
    gpus = Gpus(cluster)
    job(gpus, last_step, then=then)
    yield
    (row,) = gpus.found("stalled_runs")
    assert row["confidence"] == "Not confirmed"
    assert row["evidence"].endswith(end_of_evidence)


def two_paces():
    """Return steps of a job that paused for two minutes once before."""
    return steps(441, 500, 120 + 880, 2.0)


@pytest.mark.quiet("no_step")
@pytest.mark.parametrize(
    "load",
    [
        pytest.param({"last_step": 575}, id="under a minute"),
        pytest.param({"last_step": 15, "first": 1}, id="too few steps for a rhythm"),
        pytest.param({"last_step": 500, "others_until": 1040}, id="events are not followed"),
        pytest.param({"last_step": 500, "end": 1100, "state": "FAILED"}, id="it has ended"),
        pytest.param(
            {"last_step": 500, "events": [("phase", "evaluation", 1000, 1190)]}, id="a phase"
        ),
        pytest.param({"last_step": 500, "then": BUSY}, id="its GPUs work, as in an evaluation"),
        pytest.param({"last_step": 440, "events": "paused"}, id="as long as a pause before"),
    ],
)
@built_together
def test_other_silences_are_none(cluster, load):
    gpus = Gpus(cluster)
    given = dict(load)
    if given.get("events") == "paused":
        given["events"] = two_paces()
    elif "events" in given:
        given["events"] = [phase(*given["events"][0][1:])]
    job(gpus, given.pop("last_step"), **given)
    yield
    assert gpus.found("stalled_runs") == []
