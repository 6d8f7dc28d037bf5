"""Losses become findings by one rule each, put on what is named; small ones do not."""

from __future__ import annotations

import pytest

from goodput_queries.scope import Scope

HOUR = 3600
GPUS = 4
STEPS = 119  # of a minute each


def found(evidence, columns="rule"):
    """Build, and return the findings without those about evidence."""
    evidence.store.build()
    return evidence.store.read(
        f"select {columns} from marts.findings where kind <> 'data quality' order by rule, since_at"
    ).rows()


@pytest.fixture
def run(evidence, job_events):
    """Return a loader of a run of two hours on node a; by default a healthy one."""

    def load(steps=None, *, end=2 * HOUR, state="COMPLETED", job_id="1", more=(), per_rank=None):
        if steps is None:
            steps = job_events.steps(1, STEPS, 60, 60.0)
        evidence.job(job_id, 0, end, ["a"], GPUS, state=state)
        for rank in range(GPUS):
            own = [{**event, **(per_rank(rank, event) if per_rank else {})} for event in steps]
            evidence.events(job_id, own, rank=rank, gpu_uuid=f"c/a#{rank}")
        evidence.events(job_id, [job_events.durable(STEPS, 7200), *more])

    evidence.node("a", GPUS)
    evidence.watched(2 * HOUR)
    return load


def test_a_healthy_run_has_no_finding(evidence, run):
    run()

    assert found(evidence) == []
    assert evidence.store.read("from marts.run_verdicts", scope=Scope(run="c/1")).is_empty()


def test_waiting_for_input_is_found_with_what_was_lost(evidence, run):
    run(per_rank=lambda _rank, _event: {"data_s": 12.0})

    row = found(evidence, "rule, run_key, severity, gpu_ms, back_ms, back_low_ms, evidence")
    lost = STEPS * 12 * GPUS * 1000
    sentence = "1.6 GPU-h lost, 19.8 % of the allocated time"
    assert row == [("input_stall", "c/1", "warning", lost, lost, lost, sentence)]


def test_a_small_share_of_waiting_for_input_is_no_finding(evidence, run):
    run(per_rank=lambda _rank, _event: {"data_s": 0.9})

    assert found(evidence) == []


def test_a_loss_of_less_than_a_gpu_hour_is_information(evidence, run):
    run(per_rank=lambda _rank, _event: {"data_s": 6.0})

    assert found(evidence, "rule, severity") == [("input_stall", "info")]


def test_a_late_rank_is_put_on_its_gpu(evidence, run):
    run(per_rank=lambda rank, _event: {"comm_s": 1 if rank == 3 else 10})

    rows = found(evidence, "rule, gpu_uuid, gpu_index, run_key, gpu_ms")
    waits = 3 * 9000
    assert rows == [("slow_rank", "c/a#3", 3, "c/1", (STEPS - 1) * waits)], "but for the first step"


def test_ranks_that_are_late_by_turns_are_put_on_nobody(evidence, run):
    run(per_rank=lambda rank, event: {"comm_s": 1 if event["step"] % GPUS == rank else 5.5})

    assert {row[0] for row in found(evidence)} == {"rank_skew"}


def test_saves_that_block_long_are_found_once_they_are_a_large_share(evidence, run, job_events):
    """What fewer would save goes by the failures of the run, not by those of the whole cluster."""
    saves = [job_events.phase("ckpt_save", 600 * k, 600 * k + 60) for k in range(1, 12)]
    steps = [s for s in job_events.steps(1, STEPS, 60, 60.0) if s["t"] % 600 != 60 or s["t"] < 600]
    evidence.node("b", GPUS)
    evidence.job("2", 0, 2 * HOUR, ["b"], GPUS)
    run(steps, more=saves, state="NODE_FAIL")
    best = (2 * 60 * 2 * HOUR) ** 0.5  # Young: save 60 s every 540 s, a failure in two hours
    back = 1 - 600 / (best + 60) - (best - 540) / 2 / (2 * HOUR) * 10

    rows = found(evidence, "rule, run_key, back_ms / gpu_ms")
    (row,) = [row for row in rows if row[0] == "checkpoint_overhead"]
    assert row == ("checkpoint_overhead", "c/1", pytest.approx(back, abs=0.001))


def test_a_long_start_is_found_on_a_long_run(evidence, run, job_events):
    run(job_events.steps(1, 60, 3540, 60.0))

    assert ("slow_start",) in found(evidence)


def test_the_start_of_a_short_run_is_no_finding(evidence, run, job_events):
    run(job_events.steps(1, 5, 600, 60.0), end=900)

    assert ("slow_start",) not in found(evidence)


def test_what_one_loss_explains_is_one_finding(evidence):
    evidence.node("a", GPUS)
    evidence.node("b", 1)
    evidence.watched(2 * HOUR)
    evidence.state("b", "down", HOUR, 2 * HOUR)
    evidence.samples("b#0", evidence.every(0, HOUR, 30), lambda _second: False)
    evidence.job("1", 0, 2 * HOUR, ["a"], GPUS)
    for gpu in range(GPUS):
        evidence.samples(f"a#{gpu}", evidence.every(0, 2 * HOUR, 30), lambda _second: False)

    idle, down = found(evidence, "rule, run_key, node, share_ratio, evidence")
    assert idle[:4] == ("idle_allocation", "c/1", None, pytest.approx(1.0))
    assert idle[4].endswith("4 of 4 GPUs were active in no reading"), "no finding of unused GPUs"
    assert down[:3] == ("node_down", None, "b")
    assert "no reading of any of 1 GPUs of the node" in down[4], "no finding of a silent node"


def test_a_node_that_is_down_is_found_however_small_its_share(evidence, run):
    run()
    for number in range(60):
        evidence.node(f"b{number}", 8)
    evidence.state("b7", "down", 600, 2 * HOUR)

    rows = [row for row in found(evidence, "rule, node, is_open") if row[0] == "node_down"]
    assert rows == [("node_down", "b7", True)]


def test_a_run_that_fails_for_its_own_reasons_is_put_on_the_run(evidence, run, job_events):
    run(job_events.steps(1, 80, 60, 60.0), state="FAILED", end=5100)

    rows = found(evidence, "rule, run_key, node")
    assert [row for row in rows if row[0] == "job_failure"] == [("job_failure", "c/1", None)]


def test_an_attempt_that_a_node_failure_ended_is_put_on_the_node(evidence, run, job_events):
    run(job_events.steps(1, 80, 60, 60.0), state="NODE_FAIL", end=5100)
    evidence.state("a", "down", 5090, 7000)

    rows = {row[0]: row[1:] for row in found(evidence, "rule, node, run_key, gpu_ms, finding_key")}
    node, of_run, lost, key = rows["infrastructure_failure"]
    assert (node, of_run) == ("a", None)
    assert lost > 0

    # it is the largest finding about the run, and so the verdict on it
    verdict = evidence.store.read("from marts.run_verdicts", scope=Scope(run="c/1")).row(
        0, named=True
    )
    assert (verdict["finding_key"], verdict["gpu_ms"]) == (key, lost)
    assert verdict["confidence"] == "Confirmed"
    assert verdict["cause"].startswith("NODE_FAIL")
    assert verdict["evidence"].endswith("of the allocated time, 1 attempt")
    # the same among all runs
    assert evidence.store.read("from marts.run_verdicts").rows(named=True) == [verdict]


def test_a_hang_that_the_scheduler_ended_is_put_on_the_rank_that_held_up_the_others(
    evidence, run, job_events
):
    """The job run was preempted, but had done nothing since."""
    run(job_events.steps(1, 80, 60, 60.0), state="PREEMPTED", end=7000)
    group = {"dump_set": "job/rank_*", "group_name": "dp", "group_description": "dp"}
    came = {rank: 44 if rank == 1 else 45 for rank in range(GPUS)}
    evidence.load(
        "flight_groups",
        [
            {**group, "rank": rank, "ranks": list(range(GPUS)), "last_enqueued": last,
             "last_completed": 44, "last_moment_at": evidence.at(5500)}
            for rank, last in came.items()
        ],
        "flight-recorder",
    )  # fmt: skip
    evidence.load(
        "flight_records",
        [
            {**group, "rank": rank, "record_id": 45, "sequence_number": 45, "is_p2p": False,
             "operation": "all_reduce", "state": "started", "created_at": evidence.at(4900),
             "timeout_s": 14.0, "input_dtype": "Float", "input_elements": 8}
            for rank, last in came.items()
            if last == 45
        ],
        "flight-recorder",
    )  # fmt: skip

    evidence.store.build()
    rows = evidence.store.read(
        "select rule, run_key, gpu_uuid from marts.loss_claims "
        "where rule in ('hang', 'preempted') and gpu_ms > 0"
    ).rows()
    assert rows == [("hang", "c/1", "c/a#1")]
    verdicts = evidence.store.read("select run_key, rule, evidence from marts.run_verdicts")
    ((run_key, rule, text),) = verdicts.rows()
    assert (run_key, rule) == ("c/1", "hang")
    assert text.startswith("rank 1 has not launched all_reduce 45 of dp")


def test_work_lost_at_the_time_limit_has_a_rule_of_its_own(evidence, job_events):
    evidence.job("1", 0, 2 * HOUR, ["a"], GPUS, state="TIMEOUT")
    evidence.node("a", GPUS)
    evidence.events("1", [*job_events.steps(1, STEPS, 60, 60.0), job_events.durable(60, 3660)])

    lost = (STEPS - 60) * 60 * GPUS * 1000
    assert ("time_limit", "c/1", lost) in found(evidence, "rule, run_key, gpu_ms")


def test_what_nothing_classifies_is_no_loss_and_named_by_team(evidence):
    evidence.node("a", GPUS)
    evidence.watched(2 * HOUR)
    for job in ("1", "2"):
        start = (int(job) - 1) * HOUR
        evidence.job(job, start, start + HOUR, ["a"], GPUS)
    evidence.store.build()

    rows = evidence.store.read(
        "select subject, run_key, gpu_ms, back_ms from marts.findings "
        "where rule = 'unclassified_time'"
    ).rows()
    assert rows == [("team", None, 2 * HOUR * GPUS * 1000, 0)]


def test_the_parts_of_a_loss_add_up_to_the_ledger(evidence, run, job_events):
    run(
        job_events.steps(1, 80, 600, 60.0),
        state="FAILED",
        end=6000,
        per_rank=lambda rank, _event: {
            "data_s": 5,
            "comm_s": 1 if rank == 3 else 10,
        },
    )
    evidence.state("a", "drained", 6500, 2 * HOUR)
    evidence.store.build()

    claimed, lost = evidence.store.read(
        """select
            (select sum(gpu_ms) from marts.loss_claims),
            (
                select sum(gpu_ms) from marts.ledger_blamed
                inner join reference.gpu_second_categories using (category)
                where
                    is_by_node
                    and kind in ('badput', 'unavailable', 'unknown', 'unsettled')
                    and category not in (
                        'idle_no_demand', 'planned', 'free_unknown', 'at_risk', 'teardown',
                        'maintenance', 'powered_off'
                    )
            )"""
    ).row(0)
    assert claimed == lost > 0
