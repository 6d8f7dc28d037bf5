"""What a job says of itself, rule by rule, on the least evidence."""

from __future__ import annotations

import pytest
from tests.queries.conftest import built_together


@built_together
def test_saving_is_not_saved(cluster, job_events):
    cluster.node("a", 1)
    cluster.job("1", 0, 100, ["a"], 1, "FAILED")
    cluster.events("1", [
        {"event": "job.start", "t": 1}, *job_events.steps(1, 5, 10),
        job_events.phase("ckpt_save", 60, 70), job_events.durable(3, 41),
        *job_events.steps(6, 7, 70),
    ])  # fmt: skip

    yield

    found = cluster.gpu_s()

    assert found == {"startup": 10, "step_unsplit": 30, "lost_work": 40, "checkpoint_save": 10,
                     "fault_stall": 10}  # fmt: skip


@built_together
def test_steps_of_a_running_attempt_after_its_last_save_are_at_risk(cluster, job_events):
    cluster.node("a", 1)
    cluster.job("1", 0, None, ["a"], 1, "RUNNING")
    cluster.events("1", [*job_events.steps(1, 5, 10), job_events.durable(3, 40)])

    yield

    assert cluster.gpu_s() == {"startup": 10, "step_unsplit": 30, "at_risk": 20}


@built_together
def test_a_job_that_saves_but_never_reports_durable_saves_is_not_booked_as_lost(
    cluster, job_events
):
    cluster.node("a", 1)
    cluster.job("1", 0, 100, ["a"], 1, "FAILED")
    cluster.events("1", [*job_events.steps(1, 5, 10), job_events.phase("ckpt_save", 60, 70)])

    yield

    found = cluster.gpu_s()

    assert found["at_risk"] == 50
    assert "lost_work" not in found


@built_together
def test_steps_that_a_later_attempt_did_again_were_lost_whatever_was_saved(cluster, job_events):
    cluster.node("a", 1)
    cluster.job("1", 0, 100, ["a"], 1, "FAILED", job_name="r")
    cluster.job("2", 100, 200, ["a"], 1, job_name="r")
    cluster.events("r", [*job_events.steps(1, 8, 10), job_events.durable(8, 90)], attempt=0)
    cluster.events("r", job_events.steps(5, 12, 110), attempt=1)

    yield

    found = cluster.gpu_s()

    assert found["lost_work"] == 40
    assert found["step_unsplit"] == 40 + 80


@built_together
def test_a_timed_out_attempt_tears_down_for_three_steps_and_stalls_after(cluster, job_events):
    cluster.node("a", 1)
    cluster.job("1", 0, 200, ["a"], 1, "TIMEOUT")
    cluster.events("1", [*job_events.steps(1, 10, 0), job_events.durable(10, 100)])

    yield

    assert cluster.gpu_s() == {"step_unsplit": 100, "teardown": 30, "fault_stall": 70}


@built_together
def test_restore_inside_startup_is_restore(cluster, job_events):
    cluster.node("a", 1)
    cluster.job("1", 0, 60, ["a"], 1)
    cluster.events(
        "1",
        [
            job_events.phase("init", 5, 45),
            job_events.phase("restore", 20, 30),
            *job_events.steps(1, 1, 50),
        ],
    )

    yield

    assert cluster.gpu_s() == {"startup": 40, "restore": 10, "step_unsplit": 10}


@built_together
def test_of_two_phases_reported_from_before_the_hold_the_later_one_counts(cluster, job_events):
    cluster.node("a", 1)
    cluster.job("1", 100, 160, ["a"], 1)
    cluster.events(
        "1",
        [
            job_events.phase("init", 60, 120),
            job_events.phase("restore", 80, 140),
            *job_events.steps(1, 2, 140),
        ],
    )

    yield

    assert cluster.gpu_s() == {"free_unknown": 100, "restore": 40, "step_unsplit": 20}


@built_together
def test_a_phase_that_never_ends_ends_with_the_next_event(cluster, job_events):
    cluster.node("a", 1)
    cluster.job("1", 0, 100, ["a"], 1)
    cluster.events("1", [
        *job_events.steps(1, 3, 0), {"event": "phase.start", "phase": "eval", "t": 30},
        *job_events.steps(4, 9, 40),
    ])  # fmt: skip

    yield

    assert cluster.gpu_s() == {"step_unsplit": 80, "other_declared": 20}


@built_together
def test_a_phase_that_never_ends_on_silent_gpus_is_a_hang(cluster, job_events):
    cluster.node("a", 1)
    cluster.job("1", 0, 2000, ["a"], 1, "FAILED")
    cluster.events("1", [
        *job_events.steps(1, 10, 0), job_events.durable(10, 100),
        {"event": "phase.start", "phase": "ckpt_save", "t": 100},
    ])  # fmt: skip
    cluster.samples("a#0", cluster.every(-10, 2000), lambda s: s <= 200)

    yield

    assert cluster.gpu_s() == {"step_unsplit": 100, "checkpoint_save": 100, "fault_stall": 1800}


@built_together
def test_the_first_steps_excess_is_compilation(cluster, job_events):
    cluster.node("a", 1)
    cluster.job("1", 0, 170, ["a"], 1)
    cluster.events("1", [*job_events.steps(1, 1, 0, 60), *job_events.steps(2, 12, 60)])

    yield

    assert cluster.gpu_s() == {"startup": 50, "step_unsplit": 120}


@built_together
def test_an_undeclared_gap_is_idle_only_if_telemetry_saw_it_idle(cluster, job_events):
    cluster.node("a", 1)
    cluster.job("1", 0, 310, ["a"], 1)
    cluster.events(
        "1",
        [
            *job_events.steps(1, 10, 0),
            *job_events.steps(11, 20, 200),
            job_events.phase("eval", 300, 310),
        ],
    )
    cluster.samples("a#0", cluster.every(-10, 310), lambda s: not 100 < s <= 200)

    yield

    assert cluster.gpu_s()["idle_held"] == 100


def test_losses_in_a_step_are_cut_at_its_end_and_reported(evidence, job_events):
    evidence.node("a", 1)
    evidence.job("1", 0, 100, ["a"], 1)
    evidence.events("1", job_events.steps(1, 10, 0, data_s=4.0, straggler_s=4.0, comm_s=4.0))

    assert evidence.gpu_s() == {"data_stall": 40, "straggler_wait": 40, "exposed_comm": 20}
    quality = evidence.read("select kind, n from marts.data_quality").rows()
    assert ("splits that exceed their step", 2) not in quality
    assert any(kind == "splits that exceed their step" for kind, _ in quality)


@built_together
def test_a_step_is_productive_only_where_waiting_and_communication_were_measured(
    cluster, job_events
):
    cluster.node("a", 1)
    cluster.job("1", 0, 100, ["a"], 1)
    cluster.events("1", [
        *job_events.steps(1, 5, 0, straggler_s=1.0, comm_s=1.0),
        *job_events.steps(6, 10, 50, comm_s=1.0),
    ])  # fmt: skip

    yield

    assert cluster.gpu_s() == {"straggler_wait": 5, "exposed_comm": 10, "productive": 40,
                                "step_unsplit": 45}  # fmt: skip


@built_together
def test_one_throttled_gpu_costs_its_gang(cluster, job_events):
    """Two GPUs, steps of 10 s, 15 s while one is too hot: its own excess and the other's wait."""
    cluster.node("a", 2)
    cluster.job("1", 0, 250, ["a"], 2)
    for rank in (0, 1):
        cluster.events(
            "1", [*job_events.steps(1, 10, 0), *job_events.steps(11, 20, 100, 15)], rank=rank
        )
    for gpu in (0, 1):
        cluster.load(
            "gpu_samples",
            [{"gpu_uuid": f"{cluster.name}/a#{gpu}", "gpu_instance": "", "ts": cluster.at(s + 0.5),
              "engine_active_ratio": 0.9, "clocks_event_reasons": 0x40 if gpu and s > 100 else 0}
             for s in cluster.every(0, 249, 5)],
            f"dcgm{gpu}",
        )  # fmt: skip

    yield

    found = cluster.gpu_s()

    assert found == {"step_unsplit": 400, "throttled": 50, "straggler_wait": 50}
    booked = cluster.read("select reason, booked_gpu_ms, verdict from marts.throttle_episodes").row(
        0
    )
    assert booked[0] == "hw_thermal"
    assert booked[1] > 40_000
    assert "hot" in booked[2]


def test_events_that_fit_no_job_run_are_listed_not_guessed(evidence, job_events):
    evidence.node("a", 1)
    evidence.job("1", 0, 100, ["a"], 1)
    evidence.events("somebody-else", job_events.steps(1, 3, 0), host="b")

    assert evidence.gpu_s() == {"unknown": 100}
    found = evidence.read(
        "select example from marts.data_quality where kind = 'unmatched job events'"
    )
    assert found.rows() == [("somebody-else attempt 0",)]


@built_together
def test_a_requeued_job_is_one_run_and_its_lost_steps_count_once(cluster, job_events):
    cluster.node("a", 1)
    cluster.job("7", 0, 100, ["a"], 1, "PREEMPTED", submit=0)
    cluster.job("7", 150, 300, ["a"], 1, submit=100)
    cluster.events("7", [*job_events.steps(1, 9, 10), job_events.durable(4, 50)], attempt=0)
    cluster.events("7", job_events.steps(5, 18, 160), attempt=1)

    yield

    found = cluster.gpu_s()

    assert found["lost_work"] == 50
    runs = cluster.read("select run_id, attempts, job_runs, recompute_ms from marts.runs").rows()
    assert runs == [("7", 2, 2, 50_000)]


@built_together
def test_attempts_are_distinguished_where_the_job_does_not_number_them(cluster, job_events):
    cluster.node("a", 1)
    cluster.job("1", 0, 300, ["a"], 1)
    cluster.events("1", [
        {"event": "job.start", "t": 1}, *job_events.steps(1, 9, 10), job_events.durable(5, 60),
        {"event": "job.start", "t": 150}, *job_events.steps(6, 15, 160),
    ], attempt=None)  # fmt: skip

    yield

    found = cluster.gpu_s()

    assert found == {
        "startup": 20,
        "step_unsplit": 150,
        "lost_work": 40,
        "fault_stall": 50,
        "teardown": 40,
    }


@built_together
def test_unnumbered_attempts_of_a_requeued_job_belong_to_their_own_job_runs(cluster, job_events):
    cluster.node("a", 1)
    cluster.node("b", 1)
    cluster.job("7", 0, 100, ["a"], 1, "NODE_FAIL")
    cluster.job("7", 200, 300, ["b"], 1, submit=150)
    for host, events in (
        (
            "a",
            [
                {"event": "job.start", "t": 1},
                *job_events.steps(1, 8, 10),
                job_events.durable(8, 90),
            ],
        ),
        ("b", [{"event": "job.start", "t": 201}, *job_events.steps(9, 16, 210)]),
    ):
        cluster.events("7", events, attempt=None, host=host)

    yield

    assert cluster.gpu_s()["step_unsplit"] == 160


@built_together
def test_events_without_a_run_id_find_the_only_hold_that_fits(cluster, job_events):
    cluster.node("a", 1)
    cluster.job("1", 0, 100, ["a"], 1)
    cluster.events("", job_events.steps(1, 8, 10))

    yield

    assert cluster.gpu_s() == {"startup": 10, "step_unsplit": 80, "teardown": 10}


@built_together
def test_a_short_restart_at_a_low_step_loses_only_what_it_did_again(cluster, job_events):
    cluster.node("a", 1)
    for job, start, state in (("1", 0, "FAILED"), ("2", 100, "FAILED"), ("3", 200, "COMPLETED")):
        cluster.job(job, start, start + 100, ["a"], 1, state, job_name="r")
    cluster.events("r", [*job_events.steps(1, 8, 10), job_events.durable(8, 90)], attempt=0)
    cluster.events("r", job_events.steps(1, 2, 110), attempt=1)
    cluster.events("r", job_events.steps(9, 16, 210), attempt=2)

    yield

    found = cluster.gpu_s()

    # steps 1 and 2 of the first attempt; their second execution is what the third one went on from
    assert (found["lost_work"], found["step_unsplit"]) == (20, 60 + 20 + 80)


@built_together
def test_a_run_that_shrank_and_kept_all_its_time_has_full_ettr(cluster, job_events):
    cluster.node("a", 4)
    cluster.job("1", 0, 100, ["a"], 4, job_name="r")
    cluster.job("2", 100, 200, ["a"], 2, job_name="r")
    cluster.events("r", [*job_events.steps(1, 10, 0), job_events.durable(10, 100)], attempt=0)
    cluster.events("r", job_events.steps(11, 20, 100), attempt=1)

    yield

    assert cluster.read("select ettr_ratio from marts.runs").item() == pytest.approx(1)


@pytest.mark.parametrize(("wait_s", "stalled_s"), [(0.009, None), (0.010, 0.1)])
@built_together
def test_waits_for_data_under_10_ms_stay_in_the_step(cluster, job_events, wait_s, stalled_s):
    cluster.node("a", 1)
    cluster.job("1", 0, 100, ["a"], 1)
    cluster.events("1", job_events.steps(1, 10, 0, data_s=wait_s))

    yield

    assert cluster.gpu_s().get("data_stall") == stalled_s


@built_together
def test_waits_for_data_are_measured_by_the_median_step_and_not_by_their_own(cluster, job_events):
    cluster.node("a", 1)
    cluster.job("1", 0, 100, ["a"], 1)
    long = job_events.steps(10, 10, 0.9, 0.15, data_s=0.006)
    cluster.events(
        "1", [*job_events.steps(1, 9, 0, 0.1), *long, *job_events.steps(11, 20, 1.05, 0.1)]
    )

    yield

    assert cluster.gpu_s().get("data_stall") == 0.006
