"""What an undeclared gap between two steps was: decided by what the gang's readings say of it."""

import pytest
from tests.queries.conftest import built_together, durable, phase, steps


def gap(evidence, gpus=1, seconds=100):
    """Load ten steps, a gap from second 100 on, ten steps."""
    end = 100 + seconds
    evidence.node("a", gpus)
    evidence.job("1", 0, end + 100, ["a"], gpus)
    evidence.events("1", [*steps(1, 10, 0), *steps(11, 20, end)])
    return end + 100


def of_gap(evidence):
    """Build and return the categories of the gap."""
    evidence.build()
    rows = evidence.read(
        f"""select distinct category from marts.ledger_segments
        where phase = 'undeclared_gap' and cluster = '{evidence.name}'"""
    )
    return set(rows["category"])


@built_together
def test_one_active_reading_of_one_gpu_does_not_make_a_gap_active(cluster):
    end = gap(cluster, gpus=4)
    for index in range(4):
        cluster.samples(
            f"a#{index}",
            cluster.every(-10, end),
            lambda s, odd=index == 0: not 100 < s <= 200 or (odd and s == 150),
        )
    yield
    assert of_gap(cluster) == {"idle_held"}


@built_together
def test_a_gap_in_which_more_than_a_tenth_of_the_readings_show_activity_is_not_idle(cluster):
    end = gap(cluster, gpus=4)
    for index in range(4):
        cluster.samples(
            f"a#{index}",
            cluster.every(-10, end),
            lambda s, odd=index == 0: not 100 < s <= 200 or (odd and s > 140),
        )
    yield
    assert of_gap(cluster) == {"busy_unclassified"}


@built_together
def test_readings_at_the_ends_of_a_gap_cover_the_steps_beside_it(cluster):
    end = gap(cluster)
    cluster.samples("a#0", cluster.every(-5, end, 10), lambda s: not 106 < s <= 196)
    yield
    assert of_gap(cluster) == {"idle_held"}


@built_together
def test_a_gap_shorter_than_two_sampling_intervals_is_not_called_idle(cluster):
    end = gap(cluster, seconds=15)
    cluster.samples("a#0", cluster.every(-10, end), lambda s: not 100 < s <= 115)
    yield
    assert of_gap(cluster) == {"busy_unclassified"}


@built_together
def test_a_gap_without_a_reading_is_unknown(cluster):
    gap(cluster)
    yield
    assert of_gap(cluster) == {"unknown"}


@pytest.mark.parametrize("measured", [True, False], ids=["split", "not split"])
@built_together
def test_a_few_milliseconds_between_two_steps_belong_to_the_step_before(cluster, measured):
    waits = {"straggler_s": 1.0, "comm_s": 1.0} if measured else {}
    cluster.node("a", 1)
    cluster.job("1", 0, 1000, ["a"], 1)
    cluster.events("1", [e for k in range(1, 100) for e in steps(k, k, 10.005 * (k - 1), **waits)])
    yield
    found = cluster.gpu_s()

    assert set(found) == (
        {"straggler_wait", "exposed_comm", "productive", "teardown"}
        if measured
        else {"step_unsplit", "teardown"}
    )


@built_together
def test_a_few_milliseconds_after_a_step_belong_to_it_however_short_steps_are(cluster):
    cluster.node("a", 1)
    cluster.job("1", 0, 100, ["a"], 1)
    cluster.events("1", [e for k in range(500) for e in steps(k, k, 0.108 * k, 0.1)])
    yield
    assert cluster.gpu_s() == {"step_unsplit": 53.992, "teardown": 46.008}


@built_together
def test_a_short_gap_after_a_phase_belongs_to_the_phase_however_short_the_phase_is(cluster):
    cluster.node("a", 1)
    cluster.job("1", 0, 1000, ["a"], 1)
    cluster.events(
        "1",
        [
            *steps(1, 50, 0),
            phase("ckpt_save", 500, 500.3),
            *steps(51, 90, 500.304),
            phase("eval", 900.304, 900.5),
            *steps(91, 99, 900.53),
        ],
    )
    yield
    assert cluster.gpu_s() == {
        "step_unsplit": 990, "checkpoint_save": 0.304, "other_declared": 0.226, "teardown": 9.47
    }  # fmt: skip


@built_together
def test_a_short_gap_after_a_step_of_waits_alone_is_productive(cluster):
    """Its waits were measured in full, so nothing of it or after it is left without a split."""
    waits = {"straggler_s": 4.0, "comm_s": 7.0}
    cluster.node("a", 1)
    cluster.job("1", 0, 100, ["a"], 1)
    cluster.events("1", [*steps(1, 5, 0, **waits), *steps(6, 9, 50.06, **waits)])
    yield
    assert cluster.gpu_s() == {
        "straggler_wait": 36, "exposed_comm": 54, "productive": 0.06, "teardown": 9.94
    }  # fmt: skip


@built_together
def test_a_short_gap_after_a_measured_step_is_productive_whatever_follows_it(cluster):
    waits = {"straggler_s": 1.0, "comm_s": 1.0}
    cluster.node("a", 1)
    cluster.job("1", 0, 100, ["a"], 1, "FAILED")
    reported = [*steps(1, 5, 0, **waits), *steps(6, 9, 50.06, **waits)]
    cluster.events("1", [*reported, durable(5, 50)])
    yield
    assert cluster.gpu_s() == {
        "straggler_wait": 5, "exposed_comm": 5, "productive": 40.06, "lost_work": 40,
        "fault_stall": 9.94,
    }  # fmt: skip


@built_together
def test_gpus_read_too_seldom_to_describe_a_gap_leave_it_to_those_read_often(cluster):
    end = gap(cluster, gpus=2, seconds=60)
    for index, interval in enumerate((10, 60)):
        readings = cluster.every(-60, end, interval)
        cluster.samples(f"a#{index}", readings, lambda s: not 100 < s <= 160)
    yield
    assert of_gap(cluster) == {"idle_held"}
