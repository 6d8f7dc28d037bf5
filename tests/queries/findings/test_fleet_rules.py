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


def pending(cluster, job="1"):
    cluster.job(job, None, None, ["a"], GPUS, "PENDING", partition="p")


def reserved(cluster):
    cluster.add("reservations", name="r", nodes=["a"], owner="nlp", start_at=0, end_at=2 * HOUR)


def waiting_for_its_last_gpu(cluster):
    cluster.job("1", 0, 2 * HOUR, ["a"], GPUS)
    for gpu in range(GPUS):
        cluster.hold("1", f"a#{gpu}", method="pod", start_at=HOUR if gpu == 3 else 0)


STRANDED_MS = 2 * HOUR * 1000 * (GPUS - 1)
# what it shows: what is loaded besides the node, columns and rows of the findings
FLEETS = [
    pytest.param(
        waiting_for_its_last_gpu, "rule", [("gang_wait",), ("unclassified_time",)],
        id="a gang waits for its last part", marks=pytest.mark.fires("gang_wait"),
    ),
    pytest.param(
        pending, "rule", [("idle_with_demand",)],
        id="GPUs are free while a job could run", marks=pytest.mark.fires("idle_with_demand"),
    ),
    pytest.param(
        lambda c: working(c, 1, cpus=16), "rule, severity, gpu_ms",
        [("stranded_gpus", "warning", STRANDED_MS)],
        id="a job took the cores of free GPUs", marks=pytest.mark.fires("stranded_gpus"),
    ),
    pytest.param(
        reserved, "rule", [("reservation_idle",)],
        id="nobody uses a reservation", marks=pytest.mark.fires("reservation_idle"),
    ),
    pytest.param(
        lambda c: [reserved(c), working(c, account="nlp", cpus=16), pending(c, "2")], "rule", [],
        id="a full reserved node whose queue waits",
        marks=pytest.mark.quiet(
            "gang_wait", "idle_with_demand", "stranded_gpus", "reservation_idle",
            "unclassified_time",
        ),
    ),
    pytest.param(
        lambda c: [pending(c), c.state("a", "drained", 0, 2 * HOUR)], "rule, node, severity",
        [("node_drained", "a", "info")],
        id="a drained node is found however many wait",
        marks=[
            pytest.mark.fires("node_drained"), pytest.mark.quiet("node_down", "idle_with_demand"),
        ],
    ),
    pytest.param(
        lambda _: None, "rule", [],
        id="a node that nobody needs", marks=pytest.mark.quiet("node_drained", "node_down"),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("load", "columns", "expected"), FLEETS)
@built_together
def test_findings_of_a_node(cluster, load, columns, expected):
    fleet(cluster)
    load(cluster)
    yield
    assert found_together(cluster, columns) == expected


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
