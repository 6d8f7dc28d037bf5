"""Rules about free, waiting and broken GPUs and about evidence: fires, and stays quiet."""

from datetime import UTC, datetime

import pytest
from tests.queries.conftest import built_together, durable, steps
from tests.queries.findings.conftest import found_together, rules_together
from tests.queries.findings.test_losses import GPUS, HOUR, run

from goodput_ingest.live import status
from goodput_ingest.live.status import Status


def fleet(cluster, *, until=2 * HOUR, **more):
    """Load a node of four GPUs with 16 cores, watched."""
    cluster.node("a", GPUS)
    cluster.add("nodes", node="a", cpus=16, partitions=["p"], **more)
    cluster.watched(until)


def working(cluster, gpus=GPUS, **more):
    """Load a job of the first GPUs of the node that is at work all the time."""
    cluster.job("1", 0, 2 * HOUR, ["a"], gpus, partition="p", **more)
    for rank in range(gpus):
        own = [*steps(1, 119, 60, 60.0), durable(119, 2 * HOUR)]
        cluster.events("1", own, rank=rank, gpu_uuid=f"{cluster.name}/a#{rank}")


@pytest.mark.fires("preempted")
@pytest.mark.quiet("job_failure", "infrastructure_failure", "time_limit")
@built_together
def test_what_a_preemption_lost_is_a_finding_of_its_own(cluster):
    run(cluster, steps(1, 60, 60, 60.0), state="PREEMPTED", end=HOUR + 360)
    yield
    rows = found_together(cluster, "rule, severity")
    assert ("preempted", "info") in rows
    assert not rules_together(cluster) & {"job_failure", "infrastructure_failure", "time_limit"}


@pytest.mark.fires("gang_wait")
@built_together
def test_a_gang_that_waits_for_its_last_part_is_found(cluster):
    fleet(cluster)
    cluster.job("1", 0, 2 * HOUR, ["a"], GPUS)
    cluster.load(
        "holds",
        [{"cluster": cluster.name, "job_id_raw": "1", "submit_at": cluster.at(0), "node": "a",
          "gpu_uuid": f"{cluster.name}/a#{gpu}", "method": "pod",
          "start_at": cluster.at(HOUR if gpu == 3 else 0)} for gpu in range(GPUS)],
    )  # fmt: skip
    yield
    assert "gang_wait" in rules_together(cluster)


@pytest.mark.fires("idle_with_demand")
@built_together
def test_gpus_that_are_free_while_a_job_could_run_are_found(cluster):
    fleet(cluster)
    cluster.job("1", None, None, ["a"], GPUS, "PENDING", partition="p")
    yield
    assert rules_together(cluster) == {"idle_with_demand"}


@pytest.mark.fires("stranded_gpus")
@built_together
def test_free_gpus_whose_cores_a_job_took_are_found(cluster):
    fleet(cluster)
    working(cluster, 1, cpus=16)
    yield
    ((rule, severity, gpu_ms),) = found_together(cluster, "rule, severity, gpu_ms")
    assert (rule, severity, gpu_ms) == ("stranded_gpus", "warning", 2 * HOUR * 1000 * (GPUS - 1))


@pytest.mark.fires("reservation_idle")
@built_together
def test_a_reservation_that_nobody_uses_is_found(cluster):
    fleet(cluster)
    reserved(cluster)
    yield
    assert rules_together(cluster) == {"reservation_idle"}


def reserved(cluster):
    cluster.add("reservations", name="r", nodes=["a"], owner="nlp", start_at=0, end_at=2 * HOUR)


@pytest.mark.quiet("gang_wait", "idle_with_demand", "stranded_gpus", "reservation_idle")
@pytest.mark.quiet("unclassified_time")
@built_together
def test_a_full_reserved_node_whose_queue_waits_has_no_finding(cluster):
    fleet(cluster)
    reserved(cluster)
    working(cluster, account="nlp", cpus=16)
    cluster.job("2", None, None, ["a"], GPUS, "PENDING", partition="p")
    yield
    assert rules_together(cluster) == set()


@pytest.mark.fires("node_drained")
@pytest.mark.quiet("node_down", "idle_with_demand")
@built_together
def test_a_drained_node_is_found_however_many_wait(cluster):
    fleet(cluster)
    cluster.job("1", None, None, ["a"], GPUS, "PENDING", partition="p")
    cluster.state("a", "drained", 0, 2 * HOUR)
    yield
    assert found_together(cluster, "rule, node, severity") == [("node_drained", "a", "info")]


@pytest.mark.quiet("node_drained", "node_down")
@built_together
def test_a_node_that_nobody_needs_is_neither_down_nor_drained(cluster):
    fleet(cluster)
    yield
    assert rules_together(cluster) == set()


def asked(store, source, *, failures):
    """Say that a live source was asked just now."""
    now = datetime.now(UTC).replace(tzinfo=None, microsecond=0)
    status.write(store, [Status(source, "here", now, 30, failures=failures)])


def of_evidence(store):
    sql = "select rule, subject, severity, evidence from marts.findings where kind = 'data quality'"
    return store.read(sql).rows()


@pytest.mark.fires("evidence_conflict", "source_failing")
@pytest.mark.quiet("evidence_conflict", "source_failing")
def test_contradictions_and_sources_that_fail_are_findings_while_they_are_there(evidence):
    evidence.node("a", 1)
    evidence.watched(HOUR)
    evidence.add("rates", price_per_gpu_h=2.0, cluster=None)
    asked(evidence.store, "slurm", failures=0)
    evidence.store.build()

    assert of_evidence(evidence.store) == []

    # two jobs claim one GPU
    for job, start in (("1", 0), ("2", 600)):
        evidence.job(job, start, HOUR, ["a"], 1)
    asked(evidence.store, "prometheus", failures=3)
    evidence.store.build()

    found = {row[1].split(":")[0]: row for row in of_evidence(evidence.store)}
    rule, _, severity, text = found["overlapping holds"]
    assert (rule, severity) == ("evidence_conflict", "info")
    assert text.endswith(": 1 case, for example c/1@1800000000 lost to c/2@1800000600")
    rule, _, severity, text = found["prometheus here"]
    assert (rule, severity) == ("source_failing", "warning")
    assert text == "prometheus at here is failing (3 failures in a row)"
