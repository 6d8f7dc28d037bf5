"""Losses become findings by one rule each, put on what is named; small ones do not."""

import pytest
from tests.queries.conftest import built_together, durable, phase, steps
from tests.queries.findings.conftest import found_together, verdicts_together

from goodput_queries.scope import Scope

HOUR = 3600
GPUS = 4
STEPS = 119  # of a minute each


def found(cluster, columns="rule"):
    """Return the findings without those about evidence."""
    rows = found_together(cluster, f"kind, {columns}")
    return sorted((row[1:] for row in rows if row[0] != "data quality"), key=str)


def run(
    evidence, ran=None, *, end=2 * HOUR, state="COMPLETED", job_id="1", more=(),
    per_rank=None,
):  # fmt: skip
    """Load a run of two hours on node a; by default a healthy one."""
    evidence.node("a", GPUS)
    evidence.watched(2 * HOUR)
    if ran is None:
        ran = steps(1, STEPS, 60, 60.0)
    evidence.job(job_id, 0, end, ["a"], GPUS, state=state)
    for rank in range(GPUS):
        own = [{**event, **(per_rank(rank, event) if per_rank else {})} for event in ran]
        evidence.events(job_id, own, rank=rank, gpu_uuid=f"{evidence.name}/a#{rank}")
    evidence.events(job_id, [durable(STEPS, 7200), *more])


LOST = STEPS * 12 * GPUS * 1000
# what it shows: how a run of two hours differs from a healthy one, columns and rows of its findings
# (`c` is the cluster), rules that it fires and rules that stay quiet
RUNS = [
    pytest.param(
        {}, "rule", [], id="a healthy run has no finding",
        marks=pytest.mark.quiet(
            "infrastructure_failure", "job_failure", "preempted", "time_limit", "rank_skew",
            "slow_rank", "checkpoint_overhead", "idle_allocation", "hang", "input_stall",
            "slow_start", "gaps_between_steps",
        ),
    ),
    pytest.param(
        {"per_rank": lambda *_: {"data_s": 12.0}},
        "rule, run_key, severity, gpu_ms, back_ms, back_low_ms, evidence",
        [("input_stall", "c/1", "warning", LOST, LOST, LOST,
          "1.6 GPU-h lost, 19.8 % of the allocated time")],
        id="waiting for input is found with what was lost",
        marks=pytest.mark.fires("input_stall"),
    ),
    pytest.param(
        {"per_rank": lambda *_: {"data_s": 0.9}}, "rule", [],
        id="a small share of waiting for input is no finding",
        marks=pytest.mark.quiet("input_stall"),
    ),
    pytest.param(
        {"per_rank": lambda *_: {"data_s": 6.0}}, "rule, severity", [("input_stall", "info")],
        id="a loss of less than a GPU-hour is information",
    ),
    pytest.param(
        {"per_rank": lambda rank, _: {"comm_s": 1 if rank == 3 else 10}},
        "rule, gpu_uuid, gpu_index, run_key, gpu_ms",
        [("slow_rank", "c/a#3", 3, "c/1", (STEPS - 1) * 3 * 9000)],  # but for the first step
        id="a late rank is put on its GPU", marks=pytest.mark.fires("slow_rank"),
    ),
    pytest.param(
        {"per_rank": lambda rank, event: {"comm_s": 1 if event["step"] % GPUS == rank else 5.5}},
        "rule", [("rank_skew",)],
        id="ranks that are late by turns are put on nobody",
        marks=[pytest.mark.fires("rank_skew"), pytest.mark.quiet("slow_rank")],
    ),
    pytest.param(
        {"ran": steps(1, 60, 3540, 60.0)}, "rule", [("slow_start",)],
        id="a long start is found on a long run", marks=pytest.mark.fires("slow_start"),
    ),
    pytest.param(
        {"ran": steps(1, 5, 600, 60.0), "end": 900}, "rule", [],
        id="the start of a short run is no finding", marks=pytest.mark.quiet("slow_start"),
    ),
    pytest.param(
        {"ran": steps(1, 80, 60, 60.0), "state": "FAILED", "end": 5100}, "rule, run_key, node",
        [("job_failure", "c/1", None)],
        id="a run that fails for its own reasons is put on the run",
        marks=pytest.mark.fires("job_failure"),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("differs", "columns", "expected"), RUNS)
@built_together
def test_findings_of_a_run(cluster, differs, columns, expected):
    run(cluster, **differs)
    yield
    rows = {
        tuple(x.replace(f"{cluster.name}/", "c/") if isinstance(x, str) else x for x in row)
        for row in found(cluster, columns)
    }
    assert rows == set(expected)
    assert verdicts_together(cluster) == [f"{cluster.name}/1"] * bool(expected)


@pytest.mark.fires("checkpoint_overhead")
@built_together
def test_saves_that_block_long_are_found_once_they_are_a_large_share(cluster):
    """What fewer would save goes by the failures of the run, not by those of the whole cluster."""
    saves = [phase("ckpt_save", 600 * k, 600 * k + 60) for k in range(1, 12)]
    ran = [s for s in steps(1, STEPS, 60, 60.0) if s["t"] % 600 != 60 or s["t"] < 600]
    cluster.node("b", GPUS)
    cluster.job("2", 0, 2 * HOUR, ["b"], GPUS)
    run(cluster, ran, more=saves, state="NODE_FAIL")
    best = (2 * 60 * 2 * HOUR) ** 0.5  # Young: save 60 s every 540 s, a failure in two hours
    back = 1 - 600 / (best + 60) - (best - 540) / 2 / (2 * HOUR) * 10
    yield
    rows = found(cluster, "rule, run_key, back_ms, gpu_ms")
    ((run_key, back_ms, gpu_ms),) = [row[1:] for row in rows if row[0] == "checkpoint_overhead"]
    assert run_key == f"{cluster.name}/1"
    assert back_ms / gpu_ms == pytest.approx(back, abs=0.001)


@pytest.mark.fires("gaps_between_steps")
@built_together
def test_a_run_that_steps_is_not_advised_to_release_its_gpus(cluster):
    """Its GPUs are idle for three minutes after each seven steps."""
    ran = [step for step in steps(1, STEPS, 60, 60.0) if (step["t"] // 60) % 10 < 7]
    run(cluster, ran)
    for gpu in range(GPUS):
        cluster.samples(
            f"a#{gpu}", cluster.every(0, 2 * HOUR, 15), lambda s: s // 60 % 10 not in {6, 7, 8}
        )
    yield
    ((rule, run_key, what_to_do, evidence),) = found(cluster, "rule, run_key, what_to_do, evidence")
    assert (rule, run_key) == ("gaps_between_steps", f"{cluster.name}/1")
    assert what_to_do.startswith("See what the job does between steps")
    assert "every 600 s" in evidence, "its period is no finding of its own"
    fix = cluster.read("select fix from marts.losses where category = 'idle_held'").item()
    assert fix.startswith("See what the job does between steps")


@pytest.mark.fires("idle_allocation")
@built_together
def test_what_one_loss_explains_is_one_finding(cluster):
    cluster.node("a", GPUS)
    cluster.node("b", 1)
    cluster.watched(2 * HOUR)
    cluster.state("b", "down", HOUR, 2 * HOUR)
    cluster.samples("b#0", cluster.every(0, HOUR, 30), lambda _second: False)
    cluster.job("1", 0, 2 * HOUR, ["a"], GPUS)
    for gpu in range(GPUS):
        cluster.samples(f"a#{gpu}", cluster.every(0, 2 * HOUR, 30), lambda _second: False)
    yield
    idle, down = found(cluster, "rule, run_key, node, share_ratio, evidence")
    after_the_pause = pytest.approx(1 - 300 / (2 * HOUR))
    assert idle[:4] == ("idle_allocation", f"{cluster.name}/1", None, after_the_pause)
    assert idle[4].endswith("4 of 4 GPUs were active in no reading"), "no finding of unused GPUs"
    assert down[:3] == ("node_down", None, "b")
    assert "no reading of any of 1 GPUs of the node" in down[4], "no finding of a silent node"


@pytest.mark.fires("node_down")
@built_together
def test_a_node_that_is_down_is_found_however_small_its_share(cluster):
    run(cluster)
    for number in range(60):
        cluster.node(f"b{number}", 8)
    cluster.state("b7", "down", 600, 2 * HOUR)
    yield
    rows = [row for row in found(cluster, "rule, node, is_open") if row[0] == "node_down"]
    assert rows == [("node_down", "b7", True)]


@pytest.mark.fires("infrastructure_failure")
@built_together
def test_an_attempt_that_a_node_failure_ended_is_put_on_the_node(cluster):
    run(cluster, steps(1, 80, 60, 60.0), state="NODE_FAIL", end=5100)
    cluster.state("a", "down", 5090, 7000)
    yield
    rows = {row[0]: row[1:] for row in found(cluster, "rule, node, run_key, gpu_ms, finding_key")}
    node, of_run, lost, key = rows["infrastructure_failure"]
    assert (node, of_run) == ("a", None)
    assert lost > 0

    # it is the largest finding about the run, and so the verdict on it
    verdict = cluster.read("from marts.run_verdicts", scope=Scope(run=f"{cluster.name}/1")).row(
        0, named=True
    )
    assert (verdict["finding_key"], verdict["gpu_ms"]) == (key, lost)
    assert verdict["confidence"] == "Confirmed"
    assert verdict["cause"].startswith("NODE_FAIL")
    assert verdict["evidence"].endswith("of the allocated time, 1 attempt")
    assert verdict["verdict"] == f"{verdict['title']} ({verdict['cause']})"
    of_run = cluster.read("select verdict, verdict_confidence, verdict_evidence from marts.runs")
    assert of_run.row(0) == tuple(verdict[name] for name in ("verdict", "confidence", "evidence"))
    # the same among all runs
    assert cluster.read("from marts.run_verdicts").rows(named=True) == [verdict]


def failing_run(cluster, job_id, start, minutes, lost_s, nodes, gpus):
    """Load a run whose node a failed `lost_s` after its last save."""
    end = start + 60 * minutes
    cluster.job(job_id, start, end, nodes, gpus, state="NODE_FAIL")
    ran = steps(1, minutes, start, 60.0)
    kept = [step for step in ran if step["t"] <= end - lost_s]
    cluster.events(job_id, [*kept, durable(len(kept), kept[-1]["t"])])
    cluster.state("a", "down", end - 1, end + 300)


@built_together
def test_what_a_node_cost_a_small_run_is_not_hidden_by_a_large_one(cluster):
    """Of both together it is a percent, of the small run a fifth."""
    cluster.node("a", GPUS)
    cluster.node("b", 20)
    cluster.watched(3 * HOUR)
    failing_run(cluster, "large", 0, 120, 60, ["a", "b"], 24)
    failing_run(cluster, "small", 7600, 10, 120, ["a"], GPUS)
    yield
    rows = found(cluster, "rule, node, share_ratio")
    ((node, share),) = [row[1:] for row in rows if row[0] == "infrastructure_failure"]
    assert node == "a"
    assert share < 0.02
    verdicts = cluster.read("select run_key, finding_key from marts.run_verdicts").rows()
    keys = {key for (key,) in cluster.read("select finding_key from marts.findings").rows()}
    assert [(run, key in keys) for run, key in verdicts] == [(f"{cluster.name}/small", True)]


@built_together
def test_an_end_that_cost_a_gpu_hour_is_found_however_large_its_run(cluster):
    cluster.node("a", GPUS)
    cluster.node("b", 60)
    cluster.watched(3 * HOUR)
    failing_run(cluster, "1", 0, 120, 60, ["a", "b"], 64)
    yield
    rows = found(cluster, "rule, gpu_ms, share_ratio")
    ((lost, share),) = [row[1:] for row in rows if row[0] == "infrastructure_failure"]
    assert lost == 64 * 60_000
    assert share < 0.01


@pytest.mark.fires("hang")
def test_a_hang_that_the_scheduler_ended_is_put_on_the_rank_that_held_up_the_others(evidence):
    """The job run was preempted, but had done nothing since."""
    run(evidence, steps(1, 80, 60, 60.0), state="PREEMPTED", end=7000)
    group = {"dump_set": "job/rank_*", "group_name": "dp", "group_description": "dp"}
    came = {rank: 44 if rank == 1 else 45 for rank in range(GPUS)}
    groups = [
        {"rank": rank, "last_enqueued": last, "ranks": list(range(GPUS))}
        for rank, last in came.items()
    ]
    records = [{"rank": rank} for rank, last in came.items() if last == 45]
    evidence.add(
        "flight_groups", *groups, source="flight-recorder", cluster=None, last_completed=44,
        last_moment_at=5500, **group,
    )  # fmt: skip
    evidence.add(
        "flight_records", *records, source="flight-recorder", cluster=None, record_id=45,
        sequence_number=45, is_p2p=False, operation="all_reduce", state="started",
        created_at=4900, timeout_s=14.0, input_dtype="Float", input_elements=8, **group,
    )  # fmt: skip
    evidence.build()

    rows = evidence.read(
        "select rule, run_key, gpu_uuid from marts.loss_claims "
        "where rule in ('hang', 'preempted') and gpu_ms > 0"
    ).rows()
    assert rows == [("hang", "c/1", "c/a#1")]
    verdicts = evidence.store.read("select run_key, rule, evidence from marts.run_verdicts")
    ((run_key, rule, text),) = verdicts.rows()
    assert (run_key, rule) == ("c/1", "hang")
    assert evidence.store.read("select hangs, verdict_evidence from marts.runs").row(0) == (1, text)
    assert text.startswith("rank 1 has not launched all_reduce 45 of dp")


@pytest.mark.fires("time_limit")
@built_together
def test_work_lost_at_the_time_limit_has_a_rule_of_its_own(cluster):
    cluster.job("1", 0, 2 * HOUR, ["a"], GPUS, state="TIMEOUT")
    cluster.node("a", GPUS)
    cluster.events("1", [*steps(1, STEPS, 60, 60.0), durable(60, 3660)])

    lost = (STEPS - 60) * 60 * GPUS * 1000
    yield
    assert ("time_limit", f"{cluster.name}/1", lost) in found(cluster, "rule, run_key, gpu_ms")


@pytest.mark.fires("unclassified_time")
@built_together
def test_what_nothing_classifies_is_no_loss_and_named_by_team(cluster):
    cluster.node("a", GPUS)
    cluster.watched(2 * HOUR)
    for job in ("1", "2"):
        start = (int(job) - 1) * HOUR
        cluster.job(job, start, start + HOUR, ["a"], GPUS)
    yield
    rows = found_together(cluster, "rule, subject, run_key, gpu_ms, back_ms, evidence")
    ((*row, evidence),) = [row[1:] for row in rows if row[0] == "unclassified_time"]
    assert row == ["team", None, 2 * HOUR * GPUS * 1000, 0]
    assert "lost" not in evidence


@built_together
def test_the_parts_of_a_loss_add_up_to_the_ledger(cluster):
    run(
        cluster,
        steps(1, 80, 600, 60.0),
        state="FAILED",
        end=6000,
        per_rank=lambda rank, _event: {"data_s": 5, "comm_s": 1 if rank == 3 else 10},
    )
    cluster.state("a", "drained", 6500, 2 * HOUR)
    yield
    claimed, lost = cluster.read(
        """select
            (select sum(gpu_ms) from marts.loss_claims),
            (
                select sum(gpu_ms) from marts.ledger_blamed_by_node
                inner join reference.gpu_second_categories using (category)
                where
                    kind in ('badput', 'unavailable', 'unknown', 'unsettled')
                    and category not in (
                        'idle_no_demand', 'planned', 'free_unknown', 'at_risk', 'teardown',
                        'maintenance', 'powered_off'
                    )
            )"""
    ).row(0)
    assert claimed == lost > 0
