"""Episodes of throttling: by clock event reasons, else by counters of throttled time."""

import pytest
from tests.queries.conftest import built_together

POWER_CAP, HW_THERMAL = 0x4, 0x40


def read(evidence, **values):
    """Load readings of one H100 of 700 W and 1,980 MHz, every 10 s to 100 s."""
    evidence.add(
        "gpus", node="a", gpu_uuid="a#0", slurm_index=0, gpu_index=0, power_limit_w=700.0,
        sm_clock_max_hz=1.98e9, valid_from_at=0,
    )  # fmt: skip

    evidence.add(
        "gpu_samples", *({"ts": second} for second in evidence.every(0, 100)), source="dcgm",
        gpu_uuid=f"{evidence.name}/a#0", gpu_instance="", engine_active_ratio=0.9, **values,
    )  # fmt: skip


def counts(evidence, metric, values, step=10):
    """Load a counter of throttled seconds, a value every ten seconds."""
    readings = [(step * number, value) for number, value in enumerate(values)]
    evidence.counted(evidence.gpu("a#0"), metric, readings)


def episodes(evidence):
    """Return reason, length, whether it counts as loss, and evidence of each episode."""
    return evidence.read(
        "select reason, duration_s, counts_as_loss, evidence from marts.throttle_episodes "
        "order by start_at, reason"
    ).rows()


@pytest.mark.parametrize(
    ("reason", "power_w", "sm_clock_hz", "is_loss"),
    [
        pytest.param(HW_THERMAL, 170.0, 0.6e9, True, id="heat, whatever the GPU draws"),
        pytest.param(POWER_CAP, 690.0, 1.4e9, False, id="at its limit"),
        pytest.param(POWER_CAP, 170.0, 0.6e9, False, id="far below its limit"),
        pytest.param(POWER_CAP, 500.0, 1.9e9, False, id="at full clock"),
        pytest.param(POWER_CAP, 500.0, 1.0e9, True, id="low clock below its limit"),
        pytest.param(POWER_CAP, None, None, False, id="nothing known"),
    ],
)
@built_together
def test_a_power_cap_counts_as_loss_only_where_it_costs_clock_below_the_limit(
    cluster, reason, power_w, sm_clock_hz, is_loss
):
    read(cluster, clocks_event_reasons=reason, power_w=power_w, sm_clock_hz=sm_clock_hz)
    yield
    name = {POWER_CAP: "sw_power_cap", HW_THERMAL: "hw_thermal"}[reason]
    assert episodes(cluster) == [(name, 110.0, is_loss, "clock event reasons")]


@built_together
def test_without_reasons_an_episode_is_where_a_counter_goes_up(cluster):
    read(cluster)
    counts(cluster, "throttle_thermal_s", [5, 5, 9, 14, 14, 14, 20, 20, 20, 20, 20])
    yield
    assert episodes(cluster) == [
        ("thermal", 9.0, True, "throttle counters"),
        ("thermal", 6.0, True, "throttle counters"),
    ]
    spans = cluster.read(
        "select epoch(end_at - start_at) from marts.throttle_episodes order by start_at"
    )
    assert spans.rows() == [(20.0,), (10.0,)]


@pytest.mark.parametrize(
    "values",
    [
        pytest.param([5, 5, 0, 0], id="reset"),
        pytest.param([0, 0, 9000, 9000], id="microseconds read as nanoseconds"),
        pytest.param([0, 0.01, 0.02, 0.03], id="jitter of a busy GPU"),
    ],
)
@built_together
def test_a_counter_that_gained_nothing_believable_is_no_episode(cluster, values):
    read(cluster)
    counts(cluster, "throttle_power_s", values)
    yield
    assert episodes(cluster) == []


@built_together
def test_where_readings_carry_reasons_counters_add_nothing(cluster):
    read(cluster, clocks_event_reasons=0)
    counts(cluster, "throttle_thermal_s", [0, 9, 18])
    yield
    assert episodes(cluster) == []


@pytest.mark.parametrize(
    ("values", "metric", "expected"),
    [
        ({}, "other", (True, False, False)),
        ({"clocks_event_reasons": 0}, "other", (True, True, False)),
        ({}, "throttle_power_s", (True, False, True)),
    ],
)
@built_together
def test_it_is_known_whether_a_source_reports_throttling(cluster, values, metric, expected):
    read(cluster, **values)
    counts(cluster, metric, [0, 0])
    yield
    assert cluster.read("from marts.throttle_sources").rows() == [expected]


def slowed(evidence, hours, of_hours, limit=90.0):
    """Load a reading every ten minutes, which has a thermal reason in the first hours."""
    evidence.add(
        "gpus", node="a", gpu_uuid="a#0", slurm_index=0, gpu_index=0, valid_from_at=0,
        slowdown_temperature_c=limit,
    )  # fmt: skip
    rows = [
        {"ts": s, "clocks_event_reasons": HW_THERMAL if s < 3600 * hours else POWER_CAP}
        for s in range(0, 3600 * of_hours, 600)
    ]
    read = {"gpu_uuid": evidence.gpu("a#0"), "gpu_instance": "", "gpu_temperature_c": 84.0}
    evidence.add("gpu_samples", *rows, source="dcgm", **read)


@pytest.mark.parametrize(
    ("hours", "of_hours", "recurrence"),
    [
        pytest.param(3, 12, "chronic", id="a quarter of the hours"),
        pytest.param(2, 12, "passing", id="two of twelve hours"),
        pytest.param(3, 5, None, id="few hours read"),
    ],
)
@built_together
def test_throttling_is_chronic_by_its_share_of_the_hours_read(cluster, hours, of_hours, recurrence):
    slowed(cluster, hours, of_hours)
    yield
    found = cluster.read(
        "select reason, throttled_hours, read_hours, recurrence, slowdown_margin_c "
        "from marts.throttled_gpus"
    )
    assert found.rows() == [("hw_thermal", hours, of_hours, recurrence, 6.0)]


@pytest.mark.parametrize(
    ("limit", "reported", "margin"),
    [(90.0, [87, 87], 3.0), (None, [87, 87], 3.0), (None, [], None)],
    ids=["readings before inventory", "readings alone", "no limit"],
)
@built_together
def test_the_margin_is_to_the_limit_reported_last_or_unknown(cluster, limit, reported, margin):
    slowed(cluster, 3, 12, limit)
    counts(cluster, "slowdown_temperature_c", reported, 600)
    yield
    found = cluster.read("select slowdown_margin_c from marts.throttled_gpus")
    assert found.rows() == [(margin,)]


@built_together
def test_counters_of_throttled_time_count_where_there_are_no_reasons(cluster):
    read(cluster)
    counts(cluster, "throttle_thermal_s", [5, 5, 9, 14, 14])
    yield
    found = cluster.read(
        "select reason, throttled_hours, read_hours, recurrence, slowdown_margin_c "
        "from marts.throttled_gpus"
    )
    assert found.rows() == [("thermal", 1, 1, None, None)]
