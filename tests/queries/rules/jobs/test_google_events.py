"""Runs recorded by Google's ml-goodput-measurement: what their events prove of steps and saves."""

import random

import pytest
from tests.google_histories.history import make
from tests.google_histories.ours import measured
from tests.queries.conftest import built_together

SEEDS = (0, 4, 7)  # restarts inside a job run and by requeue, asynchronous saves, a hang


def record(evidence, *events, run="1"):
    """Add events as the source writes them: of process 0, which names no host."""
    given = [{"source": "goodput-events", "reports_durability": False, **e} for e in events]
    evidence.events(run, given, attempt=None, host=None)


def step(number, at):
    return {"event": "step.start", "t": at, "step": number}


def save(number, at, took):
    return {"event": "phase", "phase": "ckpt_save", "t": at + took, "dur_s": took, "step": number}


def job(evidence, state="COMPLETED", until=100, **more):
    evidence.node("a", 1)
    evidence.job("1", 0, until, ["a"], 1, state=state, **more)


def steps(evidence):
    evidence.build()
    return evidence.read(
        f"""select step, (end_ms - start_ms) / 1000, fate from intermediate.int_train_steps
        where starts_with(attempt_key, '{evidence.name}/') order by 1"""
    ).rows()


@built_together
def test_a_step_ends_where_the_next_one_starts(cluster):
    job(cluster)
    record(cluster, {"event": "job.start", "t": 0}, step(7, 10), step(8, 20), step(9, 32))
    yield
    assert [row[:2] for row in steps(cluster)] == [(7, 10), (8, 12)]


@built_together
def test_the_last_step_of_a_life_is_proven_by_its_save(cluster):
    job(cluster)
    record(cluster, step(7, 10), step(8, 20), save(8, 30, 5), {"event": "job.end", "t": 40})
    yield
    assert [row[:2] for row in steps(cluster)] == [(7, 10), (8, 10)]


@built_together
def test_the_last_step_of_a_life_is_proven_by_the_end_of_the_job(cluster):
    job(cluster)
    record(cluster, step(7, 10), step(8, 20), {"event": "job.end", "t": 31})
    yield
    assert [row[:2] for row in steps(cluster)] == [(7, 10), (8, 11)]


@built_together
def test_a_step_is_not_stretched_over_a_restart(cluster):
    job(cluster)
    start = {"event": "job.start", "t": 50}
    record(cluster, step(7, 10), step(8, 20), start, step(8, 60), step(9, 70))
    yield
    assert [row[:2] for row in steps(cluster)] == [(7, 10), (8, 10)]


@built_together
def test_a_save_proves_the_asynchronous_one_before_it(cluster):
    job(cluster, "FAILED")
    record(
        cluster, step(1, 10), step(2, 20), save(2, 30, 1), step(3, 31), step(4, 41),
        save(4, 51, 1), step(5, 52), step(6, 62),
    )  # fmt: skip
    yield
    kept = [number for number, _, fate in steps(cluster) if fate == "kept"]
    assert kept == [1, 2]


@built_together
def test_the_end_of_the_job_waits_for_its_saves(cluster):
    job(cluster, "TIMEOUT")
    record(cluster, step(1, 10), step(2, 20), save(2, 30, 1), {"event": "job.end", "t": 35})
    yield
    assert [fate for _, _, fate in steps(cluster)] == ["kept", "kept"]


@built_together
def test_the_last_asynchronous_save_of_a_killed_life_is_not_known_to_be_durable(cluster):
    job(cluster, "TIMEOUT")
    record(
        cluster, step(1, 10), step(2, 20), save(2, 30, 1), step(3, 31), save(3, 41, 1),
        step(4, 42), step(5, 52),
    )  # fmt: skip
    yield
    fates = {number: fate for number, _, fate in steps(cluster)}
    assert fates == {1: "kept", 2: "kept", 3: "durability_unknown", 4: "lost"}


@built_together
def test_only_the_first_load_of_data_of_a_life_blocks(cluster):
    job(cluster)
    loads = [
        {"event": f"phase.{side}", "t": at, "phase": "data_wait"}
        for side, at in (("start", 2), ("end", 10), ("start", 22), ("end", 28))
    ]
    record(cluster, *loads, step(1, 10), step(2, 20), step(3, 30), {"event": "job.end", "t": 40})
    yield
    assert cluster.gpu_s()["data_stall"] == 8


@built_together
def test_waiting_for_slices_is_gang_wait(cluster):
    job(cluster)
    wait = [
        {"event": f"phase.{s}", "t": t, "phase": "gang_wait"}
        for s, t in (("start", 20), ("end", 50))
    ]
    record(cluster, step(1, 10), *wait, step(2, 50), step(3, 60), {"event": "job.end", "t": 70})
    yield
    assert cluster.gpu_s()["gang_wait"] == 30


@built_together
def test_events_without_a_host_go_to_the_only_job_run_of_their_name(cluster):
    job(cluster, job_name="llm")
    record(cluster, step(1, 10), step(2, 20), {"event": "job.end", "t": 40}, run="llm")
    yield
    assert len(steps(cluster)) == 2


@built_together
def test_events_without_a_host_match_no_job_run_where_two_of_their_name_run(cluster):
    job(cluster, job_name="llm")
    cluster.node("b", 1)
    cluster.job("2", 0, 100, ["b"], 1, job_name="llm")
    record(cluster, step(1, 10), step(2, 20), {"event": "job.end", "t": 40}, run="llm")
    yield
    assert steps(cluster) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_the_ettr_of_a_made_up_history_is_near_the_truth(tmp_path, seed):
    history = make(seed)

    found = measured(history.write(tmp_path), tmp_path / "fleet.duckdb")

    assert found.is_matched
    assert found.restarts == history.truth.restarts
    assert found.ettr == pytest.approx(history.truth.ettr, abs=0.03)


def test_the_order_of_the_events_does_not_matter(tmp_path):
    history = make(SEEDS[0])
    shuffled = random.Random(1)  # noqa: S311 -- an order, no secret

    found = measured(history.write(tmp_path / "shuffled", shuffled), tmp_path / "shuffled.duckdb")

    in_order = history.write(tmp_path / "in order")
    assert found == measured(in_order, tmp_path / "in order.duckdb")
