"""Running jobs whose steps have stopped coming, before anything ends them."""

from __future__ import annotations

import pytest
from tests.queries.anomalies.conftest import BUSY, Gpus
from tests.queries.conftest import built_together

END = 1200


def job(gpus, job_events, last_step, *, events=(), first=1, others_until=END, **ending):
    """Load a running job of a step every 2 s, beside one whose steps go on."""
    gpus.node("a", 2)
    gpus.node("b", 1)
    gpus.evidence.job("1", 0, ending.pop("end", None), ["a"], 2, **{"state": "RUNNING", **ending})
    gpus.evidence.job("2", 0, None, ["b"], 1, state="RUNNING")
    steps = job_events.steps(first, last_step, 2.0 * (first - 1), 2.0)
    gpus.evidence.events("1", [*steps, *events], host="a")
    gpus.evidence.events("2", job_events.steps(1, int(others_until // 10), 0, 10.0), host="b")
    for i in range(2):
        gpus.read(f"a/{i}", END, BUSY)
    gpus.evidence.watched(END)


@built_together
def test_a_job_without_a_step_for_much_longer_than_usual_is_found(cluster, job_events):
    gpus = Gpus(cluster)
    job(gpus, job_events, 500)

    yield

    (row,) = gpus.found("stalled_runs")

    assert (row["rule"], row["confidence"], row["end_at"]) == ("no_step", "Likely", None)
    assert row["start_at"] == gpus.evidence.at(1000)
    assert (row["gpus"], row["gpu_ms"]) == (2, 2 * 200_000)
    assert row["evidence"] == (
        "no step for 200 s after step 500, usual one every 2.0 s (longest 2 s): hung or stalled; "
        "2 of 2 GPUs that are read still active"
    )
    of_run = "select rule, until_at, severity, title from marts.findings where run_key = $1"
    found = cluster.store.read(of_run, [row["run_key"]]).rows()
    assert ("no_step", None, "info", "No step comes any more") in found


def two_paces(job_events):
    """Return steps of a job that paused for two minutes once before."""
    return job_events.steps(441, 500, 120 + 880, 2.0)


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
        pytest.param({"last_step": 440, "events": "paused"}, id="as long as a pause before"),
    ],
)
@built_together
def test_other_silences_are_none(cluster, job_events, load):
    gpus = Gpus(cluster)
    given = dict(load)
    if given.get("events") == "paused":
        given["events"] = two_paces(job_events)
    elif "events" in given:
        given["events"] = [job_events.phase(*given["events"][0][1:])]
    job(gpus, job_events, given.pop("last_step"), **given)

    yield

    assert gpus.found("stalled_runs") == []
