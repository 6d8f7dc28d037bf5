"""Job events find their node by its short and its full name, as exporters' names do."""

from __future__ import annotations

import pytest

SHORT, FULL = "gpu-a01", "gpu-a01.cluster.example"


@pytest.mark.parametrize("of_job", [SHORT, FULL])
@pytest.mark.parametrize("of_events", [SHORT, FULL])
def test_a_host_is_its_node_with_and_without_its_domain(evidence, job_events, of_job, of_events):
    """The run is known by its name, which needs the host, and each rank has its GPU."""
    evidence.node(of_job, 2)
    evidence.job("1", 0, 100, [of_job], 2, job_name="r")
    for rank in (0, 1):
        waits = {"data_s": 1.0 + rank}
        evidence.events(
            "r", job_events.steps(1, 8, 10, **waits), rank=rank, host=of_events, cluster=None
        )

    found = evidence.gpu_s()

    assert (found["step_unsplit"], found["data_stall"]) == (2 * 80 - 24, 24)
    assert evidence.store.read(
        "select kind from marts.data_quality where kind like 'unm%'"
    ).is_empty()


def why_unmatched(evidence):
    evidence.store.build()
    return evidence.store.read(
        "select what from marts.data_quality where kind = 'unmatched job events'"
    ).item()


def test_the_finding_says_that_the_host_is_not_known(evidence, job_events):
    evidence.node("a", 1)
    evidence.job("1", 0, 100, ["a"], 1)
    evidence.events("r", job_events.steps(1, 8, 10), host="elsewhere")

    assert "in no inventory" in why_unmatched(evidence)


def test_the_finding_says_that_no_job_was_there(evidence, job_events):
    evidence.node("a", 1)
    evidence.job("1", 0, 100, ["a"], 1)
    evidence.events("r", job_events.steps(1, 8, 1000), host="a")

    assert "no job held GPUs" in why_unmatched(evidence)


def test_the_finding_says_that_several_jobs_were_there(evidence, job_events):
    evidence.node("a", 2)
    for job in ("1", "2"):
        evidence.job(job, 0, 100, ["a"], 1)
    evidence.events("r", job_events.steps(1, 8, 10), host="a")

    assert "several jobs" in why_unmatched(evidence)


def test_the_finding_says_that_a_log_without_a_cluster_has_its_job_in_another(evidence, job_events):
    evidence.node("a", 1)
    evidence.job("7", 0, 100, ["a"], 1)
    evidence.log("7", job_events.steps(1, 8, 10), cluster=None)

    assert "job of another cluster" in why_unmatched(evidence)
    example = "select example from marts.data_quality where kind = 'unmatched job events'"
    assert evidence.store.read(example).item() == "7 attempt 0 (cluster c)"
