"""The worked examples of the accounting rules, with the numbers given there (GPU-seconds)."""

import pytest
from tests.queries.conftest import durable, phase, steps


def test_example_1_a_fleet_hour(cluster):
    cluster.node("a", 8, partitions=("a",))
    cluster.node("b", 8, partitions=("b",), watched=3600)
    cluster.state("b", "down", 0, 600)
    cluster.job("1", 0, 3000, ["a"], 8, partition="a", qos="normal")
    losses = {"comm_s": 1.0, "straggler_s": 0.2}
    cluster.events("1",
                   [{"event": "job.start", "t": 100}, phase("restore", 120, 180),
                    *steps(1, 100, 200, **losses), phase("ckpt_save", 1200, 1220),
                    *steps(101, 200, 1220, **losses), phase("ckpt_save", 2220, 2240),
                    phase("eval", 2240, 2340), phase("ckpt_save", 2340, 2360),
                    *steps(201, 260, 2360, **losses), durable(260, 2959)])  # fmt: skip
    cluster.job("2", 600, 3600, ["b"], 4, partition="b", qos="normal")
    for gpu in range(4):
        cluster.samples(f"b#{gpu}", cluster.every(590, 3600), lambda s: not 1000 < s <= 2000)
    cluster.job("3", None, None, [], 0, "PENDING", eligible=600, partition="b", gpus_requested=8)
    yield
    assert cluster.gpu_s() == {"down": 4800, "idle_no_demand": 4800, "idle_with_demand": 12000,
                               "startup": 1120, "restore": 480, "checkpoint_save": 480,
                               "other_declared": 800, "straggler_wait": 416, "exposed_comm": 2080,
                               "teardown": 320, "productive": 18304, "idle_held": 4000,
                               "busy_unclassified": 8000}  # fmt: skip
    summary = cluster.summary()
    times = {"capacity_ms": 57_600_000, "held_ms": 36_000_000, "kept_step_ms": 20_800_000,
             "communication_step_ms": 20_800_000, "communication_runs": 1,
             "definition_version": 2}  # fmt: skip
    assert summary.items() >= times.items()
    expected = {"availability_ratio": 0.916667, "allocation_ratio": 0.681818,
                "scheduling_ratio": 0.625, "runtime_lo_ratio": 0.577778, "runtime_hi_ratio": 0.8,
                "program_ratio": 0.98, "goodput_ratio": 0.353889, "goodput_hi_ratio": 0.492778,
                "communication_ratio": 0.1, "coverage_ratio": 0.777778}  # fmt: skip
    assert {name: summary[name] for name in expected} == pytest.approx(expected, abs=1e-6)


def failure_hang_restart(cluster):
    """Load 16 GPUs, 10 s a step, a save every 100 steps, a hang, a restart (example 2)."""
    cluster.node("a", 8)
    cluster.node("b", 8)
    cluster.job("11", 0, 5530, ["a", "b"], 16, "FAILED", job_name="run7", eligible=0)
    cluster.job("12", 5830, 8180, ["a", "b"], 16, job_name="run7", submit=5530, eligible=5530)
    first = [{"event": "job.start", "t": 60}]
    for save in range(4):
        begin = 300 + save * 1020
        first += steps(save * 100 + 1, save * 100 + 100, begin)
        first += [phase("ckpt_save", begin + 1000, begin + 1020)]
        first += [durable(save * 100 + 100, begin + 1020)]
    first += steps(401, 455, 4380)
    second = [{"event": "job.start", "t": 5900}, phase("restore", 6070, 6130),
              *steps(401, 500, 6130), phase("ckpt_save", 7130, 7150), durable(500, 7150),
              *steps(501, 600, 7150), phase("ckpt_save", 8150, 8170),
              durable(600, 8170)]  # fmt: skip
    return first, second


def test_example_2_failure_hang_restart(cluster):
    first, second = failure_hang_restart(cluster)
    cluster.events("run7", first, attempt=1)
    cluster.events("run7", second, attempt=2)
    yield
    sql = """select attempts.attempt, category, sum(gpu_ms)::bigint // 1000 as gpu_s
        from marts.ledger_scoped join intermediate.int_attempts as attempts using (attempt_key)
        group by all"""
    by_attempt = cluster.read(sql)
    assert {tuple(key): gpu_s for *key, gpu_s in by_attempt.rows()} == {
        (0, "startup"): 4800, (0, "step_unsplit"): 64000, (0, "checkpoint_save"): 1280,
        (0, "lost_work"): 8800, (0, "fault_stall"): 9600, (1, "startup"): 3840, (1, "restore"): 960,
        (1, "step_unsplit"): 32000, (1, "checkpoint_save"): 640, (1, "teardown"): 160}  # fmt: skip
    run = cluster.read("select * from marts.runs").row(0, named=True)
    expected = {"held_ms": 126_080_000, "kept_step_ms": 96_000_000, "restarts": 1,
                "ettr_ratio": 0.733496, "runtime_lo_ratio": 0.761421, "runtime_hi_ratio": 0.761421,
                "goodput_of_held_ratio": 0.761421}  # fmt: skip
    assert {name: run[name] for name in expected} == pytest.approx(expected, abs=1e-6)
    summary = cluster.summary()
    assert (summary["program_ratio"], summary["communication_ratio"]) == (None, None)
    assert summary["program_reason"] == "not measured (coverage 0 %)"
    assert summary["goodput_ratio"] == summary["goodput_hi_ratio"]


def test_example_2b_without_a_log_nothing_is_booked_as_lost_or_productive(cluster):
    failure_hang_restart(cluster)
    for node in "ab":
        for gpu in range(8):
            cluster.samples(f"{node}#{gpu}", cluster.every(-10, 8180), lambda _: True)
    yield
    held = cluster.read("select category, sum(gpu_ms)::bigint as gpu_ms from marts.ledger_scoped "
                        "where job_run_key is not null group by all")  # fmt: skip
    assert held.rows() == [("busy_unclassified", 126_080_000)]
    summary = cluster.summary()
    expected = {"runtime_lo_ratio": None, "runtime_hi_ratio": None, "goodput_ratio": 0,
                "goodput_hi_ratio": 126_080_000 / summary["capacity_ms"], "coverage_ratio": 0,
                "runtime_reason": "not measured (coverage 0 %)"}  # fmt: skip
    assert {name: summary[name] for name in expected} == pytest.approx(expected)
