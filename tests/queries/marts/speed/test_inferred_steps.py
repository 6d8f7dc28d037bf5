"""The step rhythm of jobs that report no steps, from the starts of their collectives."""

import random

import pytest
from tests.queries.conftest import steps

LENGTH_S = 600


def collectives(evidence, starts):
    """Load operations of two ranks; starts: seconds of (operation, bytes)."""
    rows = []
    for (operation, size), seconds in starts.items():
        for number, second in enumerate(seconds):
            rows += [
                {
                    "cluster": "c", "node": "a", "pid": 100 + rank, "comm_id": "1", "rank": rank,
                    "ranks": 2, "nodes": 1, "operation": operation, "is_p2p": False,
                    "sequence_number": number, "message_bytes": size, "exec_time_s": 0.001,
                    "started_at": evidence.at(second), "dumped_at": evidence.at(second + 0.1),
                }
                for rank in (0, 1)
            ]  # fmt: skip
    evidence.load("collectives", rows)


def inferred(evidence, starts, events=None):
    evidence.node("a", 2)
    evidence.job("1", 0, LENGTH_S, ["a"], 2)
    if starts:
        collectives(evidence, starts)
    if events:
        evidence.events("1", events)
    evidence.store.build()
    return evidence.store.read("select * from marts.inferred_steps").row(0, named=True)


def steps_of(length_s, until=LENGTH_S):
    chance = random.Random(1)  # noqa: S311 -- noise, no secret
    at, found = 20.0, []
    while at < until - length_s:
        found.append(round(at, 3))
        at += length_s * chance.gauss(1, 0.01)
    return found


def training(length_s):
    """Return what a job of that step calls: six layers, one embedding, a mean every tenth step."""
    begins = steps_of(length_s)
    layers = [b + part * length_s / 8 for b in begins for part in (1, 2, 3, 4, 5, 6)]
    return {
        ("AllReduce", 50_000_000): layers,
        ("AllReduce", 200_000_000): [b + 0.9 * length_s for b in begins],
        ("AllReduce", 8): begins[::10],
    }


def test_the_rhythm_is_that_of_what_a_step_calls_once(evidence):
    found = inferred(evidence, training(2.0))

    assert found["period_ms"] == pytest.approx(2000, rel=0.01)
    assert 0 < found["error_ms"] < 30
    assert found["message_bytes"] == 200_000_000
    assert (found["confidence"], found["has_reported_steps"]) == ("Likely", False)
    assert found["method"] == "inferred from collectives"


def test_it_has_its_changes_over_time(evidence):
    begins = [*steps_of(1.0, until=300), *(300 + 2.0 * k for k in range(140))]

    periods = inferred(evidence, {("AllReduce", 1000): begins})["part_periods"]

    assert len(periods) == 20
    assert periods[5] == pytest.approx(1000, rel=0.03)
    assert periods[15] == pytest.approx(2000, rel=0.03)


def test_operations_without_rhythm_have_none(evidence):
    chance = random.Random(2)  # noqa: S311 -- noise, no secret
    starts = sorted(round(chance.uniform(20, 590), 3) for _ in range(300))

    found = inferred(evidence, {("AllReduce", 1000): starts})

    assert found["period_ms"] is found["confidence"] is None
    assert found["reason"] == "no collective comes at a steady distance"


def test_of_a_shared_node_nothing_is_inferred(evidence):
    """The Inspector does not say which job a process belongs to."""
    evidence.job("2", 100, LENGTH_S, ["a"], 1)
    evidence.job("1", 0, LENGTH_S, ["a"], 1)
    evidence.node("a", 2)
    collectives(evidence, training(2.0))
    evidence.store.build()

    found = evidence.store.read("select period_ms from marts.inferred_steps")
    assert found["period_ms"].to_list() == [None, None]


def test_without_collectives_nothing_is_inferred(evidence):
    found = inferred(evidence, None)

    assert found["period_ms"] is None
    assert found["reason"].startswith("no starts of its collectives are known")


def test_reported_steps_stay_the_only_ones_in_the_ledger(evidence):
    """The inferred rhythm is 2 s; the job says 10 s."""
    found = inferred(evidence, training(2.0), steps(1, 60, 0, 10.0))

    assert found["has_reported_steps"]
    ran = evidence.store.read("select count(*), median(step_s) from marts.train_steps").row(0)
    assert ran == (60, pytest.approx(10))


def test_a_rhythm_adds_nothing_to_the_ledger(evidence):
    inferred(evidence, training(2.0))

    assert evidence.store.read("select count(*) from marts.train_steps").item() == 0
    assert "step_unsplit" not in evidence.gpu_s()
