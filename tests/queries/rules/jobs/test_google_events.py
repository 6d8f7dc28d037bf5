"""Runs recorded by Google's ml-goodput-measurement: what their events prove of steps and saves."""

import random

import pytest
from tests.google_histories.history import make, measured
from tests.queries.conftest import each, shown_by


def record(evidence, *events, run="1"):
    """Add events as the source writes them: of process 0, which names no host."""
    given = [{"source": "goodput-events", "reports_durability": False, **e} for e in events]
    evidence.events(run, given, attempt=None, host=None)


def step(number, at):
    return {"event": "step.start", "t": at, "step": number}


def save(number, at, took):
    return {"event": "phase", "phase": "ckpt_save", "t": at + took, "dur_s": took, "step": number}


def job(evidence, state="COMPLETED", until=100, **more):
    evidence.job_on_a_node("1", 0, until, 1, state=state, **more)


def steps(evidence):
    sql = f"""select step, (end_ms - start_ms) / 1000, fate from intermediate.int_train_steps
        where starts_with(attempt_key, '{evidence.name}/') order by 1"""
    return evidence.read(sql).rows()


START, END = ({"event": f"job.{side}", "t": 0} for side in ("start", "end"))
# what it shows: events, lengths of steps in seconds
test_lengths_of_steps = shown_by({
    "a step ends where the next one starts": (
        [START, step(7, 10), step(8, 20), step(9, 32)], [(7, 10), (8, 12)]),
    "the last step of a life is proven by its save": (
        [step(7, 10), step(8, 20), save(8, 30, 5), END | {"t": 40}], [(7, 10), (8, 10)]),
    "the last step of a life is proven by the end of the job": (
        [step(7, 10), step(8, 20), END | {"t": 31}], [(7, 10), (8, 11)]),
    "a step is not stretched over a restart": (
        [step(7, 10), step(8, 20), START | {"t": 50}, step(8, 60), step(9, 70)],
        [(7, 10), (8, 10)]),
}, before=job, load=lambda c, events: record(c, *events),
    read=lambda c: [row[:2] for row in steps(c)])  # fmt: skip


# what it shows: state of the job run, events, fates of its steps from the first on
test_fates_of_steps = shown_by({
    "a save proves the asynchronous one before it": (
        "FAILED",
        [step(1, 10), step(2, 20), save(2, 30, 1), step(3, 31), step(4, 41), save(4, 51, 1),
         step(5, 52), step(6, 62)],
        ["kept", "kept", "durability_unknown", "durability_unknown", "lost"]),
    "the end of the job waits for its saves": (
        "TIMEOUT", [step(1, 10), step(2, 20), save(2, 30, 1), END | {"t": 35}], ["kept", "kept"]),
    "the last asynchronous save of a killed life is not known to be durable": (
        "TIMEOUT",
        [step(1, 10), step(2, 20), save(2, 30, 1), step(3, 31), save(3, 41, 1), step(4, 42),
         step(5, 52)], ["kept", "kept", "durability_unknown", "lost"]),
}, load=lambda c, state, events: [job(c, state), record(c, *events)],
    read=lambda c: [fate for _, _, fate in steps(c)])  # fmt: skip


# what it shows: name and sides of phases, starts of steps and the end of the job, GPU-seconds
@each({
    "only the first load of data of a life blocks": (
        "data_wait", [("start", 2), ("end", 10), ("start", 22), ("end", 28)], [10, 20, 30], 40,
        {"data_stall": 8}),
    "waiting for slices is gang wait": (
        "gang_wait", [("start", 20), ("end", 50)], [10, 50, 60], 70, {"gang_wait": 30}),
})  # fmt: skip
def test_phases_outside_of_steps(cluster, phase, sides, starts, end, expected):
    job(cluster)
    spent = [{"event": f"phase.{side}", "t": at, "phase": phase} for side, at in sides]
    ran = [step(number, at) for number, at in enumerate(starts, 1)]
    record(cluster, *sorted([*spent, *ran], key=lambda event: event["t"]), END | {"t": end})
    yield
    assert cluster.gpu_s().items() >= expected.items()


@pytest.mark.parametrize(("others", "found"), [(0, 2), (1, 0)])
def test_events_without_a_host_go_to_the_only_job_run_of_their_name(cluster, others, found):
    job(cluster, job_name="llm")
    for _ in range(others):
        cluster.node("b", 1)
        cluster.job("2", 0, 100, ["b"], 1, job_name="llm")
    record(cluster, step(1, 10), step(2, 20), END | {"t": 40}, run="llm")
    yield
    assert len(steps(cluster)) == found


# restarts inside a job run and by requeue, asynchronous saves, a hang
@pytest.mark.parametrize("seed", [0, 4, 7])
def test_the_ettr_of_a_made_up_history_is_near_the_truth_in_any_order(seed, tmp_path):
    pytest.importorskip("goodput_formats_extra")
    history = make(seed)
    shuffled = random.Random(1)  # noqa: S311 -- an order, no secret

    found = measured(history.write(tmp_path / "files", shuffled), tmp_path / "fleet.duckdb")

    assert found.is_matched
    assert found.restarts == history.truth.restarts
    assert found.ettr == pytest.approx(history.truth.ettr, abs=0.03)
