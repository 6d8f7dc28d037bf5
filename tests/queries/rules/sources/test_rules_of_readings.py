"""What readings of telemetry say of held and free GPUs, rule by rule."""

import pytest
from tests.queries.conftest import built_together, durable, steps


@built_together
def test_busy_then_idle_is_one_gap_not_an_average(cluster):
    """Five minutes of work, then ten hours of nothing."""
    cluster.node("a", 1)
    cluster.job("1", 0, 36_300, ["a"], 1)
    cluster.samples("a#0", cluster.every(-10, 36_300), lambda s: s <= 300)
    yield
    assert cluster.gpu_s() == {"busy_unclassified": 300, "idle_held": 36_000}
    gap = cluster.read("select gap_s, category from marts.idle_gaps where is_held").rows()
    assert gap == [(36_000.0, "idle_held")]


@built_together
def test_a_gpu_that_does_nothing_while_its_job_steps_is_found(cluster):
    """The ledger counts its time with the steps: job events cover all GPUs of the job."""
    cluster.node("a", 2)
    cluster.job("1", 0, 1000, ["a"], 2)
    cluster.events("1", [*steps(1, 100, 0), durable(100, 1000)])
    cluster.samples("a#0", cluster.every(-10, 1000), lambda _: True)
    cluster.samples("a#1", cluster.every(-10, 1000), lambda s: not (50 < s <= 150 or s > 400))
    yield
    assert cluster.gpu_s() == {"step_unsplit": 2000}
    found = cluster.read(
        "select gap_s, is_beside_work, cause, evidence from marts.idle_gaps where is_held "
        "order by start_at"
    )

    proof = (
        "no activity in {} % of the gap, the part that readings cover; 100 % of it is "
        "Training step (communication not measured) in the ledger"
    )
    # less than 300 s may be a pause
    assert found.rows() == [
        (110.0, False, None, proof.format(91)),
        (600.0, True, "Unused by its job", proof.format(100)),
    ]


@built_together
def test_less_than_300_s_of_no_activity_is_not_called_idle(cluster):
    cluster.node("a", 1)
    cluster.job("1", 0, 1000, ["a"], 1)
    cluster.samples("a#0", cluster.every(-10, 1000), lambda s: not 400 < s <= 690)
    yield
    found = cluster.gpu_s()

    assert found["busy_unclassified"] == 1000
    phases = cluster.read(
        "select phase, sum(gpu_ms)::bigint from marts.ledger_scoped "
        "where phase is not null group by all"
    )
    assert phases.rows() == [("short_idle", 290_000)]


@built_together
def test_a_hole_in_the_readings_is_unknown_not_idle(cluster):
    cluster.node("a", 1)
    cluster.job("1", 0, 1000, ["a"], 1)
    cluster.samples("a#0", [*cluster.every(-10, 200), *cluster.every(800, 1000)], lambda _: False)
    yield
    # each reading covers back at most 2.5 intervals of 10 s
    assert cluster.gpu_s()["unknown"] == 1000 - 200 - (200 + 25)


@built_together
def test_a_broken_profiling_share_is_no_reading(cluster):
    cluster.node("a", 1)
    cluster.job("1", 0, 1000, ["a"], 1)
    cluster.samples("a#0", cluster.every(-10, 1000), lambda s: None if s % 100 == 0 else 1.0)
    yield
    # the reading after a broken one covers back over it; none comes after the last
    assert cluster.gpu_s() == {"busy_unclassified": 990, "unknown": 10}


@built_together
def test_a_first_reading_covers_nothing(cluster):
    cluster.node("a", 1)
    cluster.job("1", 0, 100, ["a"], 1)
    cluster.samples("a#0", cluster.every(40, 100), lambda _: True)
    yield
    assert cluster.gpu_s() == {"unknown": 40, "busy_unclassified": 60}


def test_work_that_no_job_accounts_for_is_reported(evidence):
    evidence.node("a", 1)
    evidence.node("b", 1)
    evidence.job("1", 0, 100, ["b"], 1)  # without a scheduler the work would be somebody's
    evidence.samples("a#0", evidence.every(0, 100), lambda _: True)

    evidence.store.build()

    found = evidence.store.read(
        "select n, gpu_ms from marts.data_quality where kind = 'busy with no job'"
    )
    assert found.rows() == [(1, 100_000)]


@pytest.mark.parametrize("start", [105, 95], ids=["begins", "ends"])
def test_a_job_that_begins_or_ends_between_two_readings_is_no_work_without_a_job(evidence, start):
    evidence.node("a", 1)
    evidence.job("1", *((105, 200) if start == 105 else (0, 95)), ["a"], 1)
    evidence.samples("a#0", evidence.every(0, 200), lambda s: s > 100 if start == 105 else s <= 100)

    evidence.store.build()

    found = evidence.store.read("select n from marts.data_quality where kind = 'busy with no job'")
    assert found.rows() == []
