"""Who caused lost GPU time: one rule for the ledger, losses, statements and credits."""

import csv
from pathlib import Path

import pytest
from tests.queries.conftest import built_together, durable, steps

from goodput_queries.ledger import ledger
from goodput_queries.scope import Scope

REFERENCE = Path(__file__).parents[4] / "queries/goodput_queries/sql/reference"


def lines(cluster):
    """Return own waste, infrastructure waste and credit of each team in GPU-seconds."""
    found = cluster.read(
        """select team, sum(own_waste_ms) // 1000, sum(platform_waste_ms) // 1000,
            sum(credit_ms) // 1000
        from marts.statement_lines where line = 'usage' group by team"""
    )
    return {team: tuple(map(int, rest)) for team, *rest in found.rows()}


def ending(evidence, state, failure=None, **more):
    """Load one attempt of 200 s that saved nothing, with this state."""
    evidence.node("a", 1)
    evidence.job("1", 0, 200, ["a"], 1, state, **more)
    evidence.events("1", [*steps(1, 10, 0), *([failure] if failure else [])])


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("NODE_FAIL", (0, 200, 200)),
        ("PREEMPTED", (0, 200, 0)),
        ("REQUEUED", (0, 200, 0)),
        ("FAILED", (200, 0, 0)),
        ("TIMEOUT", (200, 0, 0)),
        ("CANCELLED", (200, 0, 0)),
    ],
)
@built_together
def test_the_cause_of_an_ending_decides_whose_waste_it_is(cluster, state, expected):
    """Credits are for failures of the infrastructure alone, not for an operator's policy."""
    ending(cluster, state)
    yield
    assert lines(cluster) == {"team": expected}


@built_together
def test_a_crash_before_a_requeue_is_the_jobs_own(cluster):
    ending(cluster, "REQUEUED", {"event": "failure", "kind": "exception", "t": 150})
    yield
    assert lines(cluster) == {"team": (200, 0, 0)}


@built_together
def test_a_requeue_that_the_job_asked_for_is_its_own(cluster):
    asked = {"event": "failure", "kind": "preempted", "msg": "Requeued SLURM job: 1", "t": 150}
    ending(cluster, "REQUEUED", asked)
    yield
    assert lines(cluster) == {"team": (200, 0, 0)}


@built_together
def test_sigterm_at_a_time_limit_is_not_preemption(cluster):
    ending(cluster, "TIMEOUT", {"event": "failure", "kind": "preempted", "t": 150})
    yield
    assert lines(cluster) == {"team": (200, 0, 0)}


@built_together
def test_a_nccl_timeout_without_an_infrastructure_cause_is_the_jobs_own(cluster):
    ending(cluster, "FAILED", {"event": "failure", "kind": "nccl_timeout", "t": 190})
    yield
    assert lines(cluster) == {"team": (200, 0, 0)}


def hung(evidence):
    """Load a job that steps for 100 s, hangs for 1,900 s and is ended by NCCL's watchdog."""
    evidence.node("a", 1)
    evidence.job("1", 0, 2000, ["a"], 1, "FAILED")
    evidence.events(
        "1",
        [
            *steps(1, 10, 0),
            durable(10, 100),
            {"event": "failure", "kind": "nccl_timeout", "t": 1990},
        ],
    )


@built_together
def test_a_hardware_xid_when_the_hang_began_is_the_cause_of_a_nccl_timeout(cluster):
    hung(cluster)
    cluster.add(
        "gpu_events", node="a", gpu_uuid=f"{cluster.name}/a#0", ts=110, kind="xid",
        ts_precision="exact", code=79,
    )  # fmt: skip
    yield
    assert lines(cluster) == {"team": (0, 1900, 1900)}


@built_together
def test_a_node_that_went_down_in_a_hang_is_the_cause_of_a_nccl_timeout(cluster):
    hung(cluster)
    cluster.state("a", "down", 200, None)
    yield
    assert lines(cluster) == {"team": (0, 1900, 1900)}
    assert cluster.read("select cause from marts.losses where category = 'fault_stall'")[
        "cause"
    ].to_list() == ["nccl_timeout on a node that went down"]


@built_together
def test_ledger_losses_and_statement_say_the_same_of_who_caused_it(cluster):
    cluster.node("a", 2)
    for job, start, state in (("1", 0, "PREEMPTED"), ("2", 300, "FAILED"), ("3", 600, "COMPLETED")):
        cluster.job(job, start, start + 200, ["a"], 2, state, job_name="r")
    for attempt, start in enumerate((0, 300, 600)):
        cluster.events(
            "r",
            [
                *steps(5 * attempt + 1, 5 * attempt + 10, start),
                durable(5 * attempt + 5, start + 50),
            ],
            attempt=attempt,
        )  # fmt: skip
    yield
    by_blame = ledger(cluster.store, by=["blame"], scope=Scope(cluster=cluster.name))
    losses = cluster.read(
        "select blame, sum(gpu_ms)::bigint as gpu_ms from marts.losses "
        "where blame in ('own', 'platform') group by blame"
    )
    by_category = cluster.read(
        "select blame, sum(gpu_ms)::bigint as gpu_ms from marts.ledger_by_blame group by blame"
    )

    own, platform, _ = lines(cluster)["team"]
    assert own > 0
    assert platform > 0
    expected = {"own": own * 1000, "platform": platform * 1000}
    assert dict(losses.rows()) == expected
    by_team = cluster.read(
        "select blame, sum(gpu_ms)::bigint as gpu_ms from marts.waste_by_team where team = 'team' "
        "group by blame"
    )
    for frame in (by_blame.select("blame", "gpu_ms"), by_category, by_team):
        assert {k: v for k, v in frame.iter_rows() if k in expected} == expected

    whole = cluster.read("select wasted_ms, capacity_ms from marts.goodput_summary").row(0)
    for view in ("marts.waste_by_team", "marts.goodput_over_time"):
        column = "gpu_ms" if view.endswith("team") else "wasted_ms"
        lost = cluster.read(f"select sum({column})::bigint from {view}").item()
        assert lost == whole[0] > own + platform, view
    over_time = "select sum(capacity_ms)::bigint from marts.goodput_over_time"
    assert cluster.read(over_time).item() == whole[1]


def test_every_cause_is_listed_once_with_a_reason():
    text = (REFERENCE / "blame_by_cause.csv").read_text()
    rows = list(csv.DictReader(text.splitlines()))

    keys = [(row["applies_to"], row["cause"]) for row in rows]
    assert len(keys) == len(set(keys))
    assert {row["blame"] for row in rows} <= {"own", "platform"}
    assert all(row["reason"] for row in rows)
