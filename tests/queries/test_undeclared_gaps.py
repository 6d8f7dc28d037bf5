"""What an undeclared gap between two steps was: decided by what the gang's readings say of it."""

from __future__ import annotations

import pytest


def gap(evidence, tell, gpus=1, seconds=100):
    """Tell ten steps, a gap from second 100 on, ten steps."""
    end = 100 + seconds
    evidence.node("a", gpus)
    evidence.job("1", 0, end + 100, ["a"], gpus)
    evidence.events("1", [*tell.steps(1, 10, 0), *tell.steps(11, 20, end)])
    return end + 100


def of_gap(evidence):
    """Build and return the categories of the gap."""
    evidence.store.build()
    rows = evidence.store.read(
        "select distinct category from marts.ledger_segments where phase = 'undeclared_gap'"
    )
    return set(rows["category"])


def test_one_active_reading_of_one_gpu_does_not_make_a_gap_active(evidence, tell):
    end = gap(evidence, tell, gpus=4)
    for index in range(4):
        evidence.samples(
            f"a#{index}",
            evidence.every(-10, end),
            lambda s, odd=index == 0: not 100 < s <= 200 or (odd and s == 150),
        )

    assert of_gap(evidence) == {"idle_held"}


def test_a_gap_in_which_more_than_a_tenth_of_the_readings_show_activity_is_not_idle(evidence, tell):
    end = gap(evidence, tell, gpus=4)
    for index in range(4):
        evidence.samples(
            f"a#{index}",
            evidence.every(-10, end),
            lambda s, odd=index == 0: not 100 < s <= 200 or (odd and s > 140),
        )

    assert of_gap(evidence) == {"busy_unclassified"}


def test_readings_at_the_ends_of_a_gap_speak_of_the_steps_beside_it(evidence, tell):
    end = gap(evidence, tell)
    evidence.samples("a#0", evidence.every(-5, end, 10), lambda s: not 106 < s <= 196)

    assert of_gap(evidence) == {"idle_held"}


def test_a_gap_shorter_than_two_sampling_intervals_is_not_called_idle(evidence, tell):
    end = gap(evidence, tell, seconds=15)
    evidence.samples("a#0", evidence.every(-10, end), lambda s: not 100 < s <= 115)

    assert of_gap(evidence) == {"busy_unclassified"}


def test_a_gap_without_a_reading_is_unknown(evidence, tell):
    gap(evidence, tell)

    assert of_gap(evidence) == {"unknown"}


@pytest.mark.parametrize("measured", [True, False], ids=["split", "not split"])
def test_a_few_milliseconds_between_two_steps_belong_to_the_step_before(evidence, tell, measured):
    waits = {"straggler_s": 1.0, "comm_s": 1.0} if measured else {}
    evidence.node("a", 1)
    evidence.job("1", 0, 1000, ["a"], 1)
    evidence.events(
        "1", [e for k in range(1, 100) for e in tell.steps(k, k, 10.005 * (k - 1), **waits)]
    )

    found = evidence.gpu_s()

    assert set(found) == (
        {"straggler_wait", "exposed_comm", "productive", "teardown"}
        if measured
        else {"step_unsplit", "teardown"}
    )
