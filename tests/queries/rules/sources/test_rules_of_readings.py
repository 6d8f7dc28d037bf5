"""What readings of telemetry say of held and free GPUs, rule by rule."""

import pytest
from tests.queries.conftest import Cluster, durable, shown_by, steps
from tests.queries.rules.jobs.unscheduled import phases


def stepping(cluster):
    """Load a job that steps, on a GPU that works and one that does not for two times."""
    cluster.job_on_a_node("1", 0, 1000, 2)
    cluster.events("1", [*steps(1, 100, 0), durable(100, 1000)])
    cluster.samples("a#0", cluster.every(-10, 1000), lambda _: True)
    cluster.samples("a#1", cluster.every(-10, 1000), lambda s: not (50 < s <= 150 or s > 400))


def gaps(columns):
    """Return what reads the ledger and the gaps of held GPUs."""
    sql = f"select {columns} from marts.idle_gaps where is_held order by start_at"
    return lambda cluster: (cluster.gpu_s(), cluster.read(sql).rows())


PROOF = ("no activity in {} % of the gap, the part that readings cover; 100 % of it is "
         "Training step (communication not measured) in the ledger")  # fmt: skip
test_gaps_of_readings = shown_by({
    # five minutes of work, then ten hours of nothing
    "busy, then idle is one gap, not an average": (
        lambda c: [c.job_on_a_node("1", 0, 36_300, 1),
                   c.samples("a#0", c.every(-10, 36_300), lambda s: s <= 300)],
        gaps("gap_s, category"),
        ({"busy_unclassified": 300, "idle_held": 36_000}, [(36_000.0, "idle_held")])),
    # the ledger counts its time with the steps; less than 300 s may be a pause
    "a GPU that does nothing while its job steps is found": (
        stepping, gaps("gap_s, is_beside_work, cause, evidence"),
        ({"step_unsplit": 2000},
         [(110.0, False, None, PROOF.format(91)),
          (600.0, True, "Unused by its job", PROOF.format(100))])),
    "GPUs of a job that are read at two intervals are both idle": (
        lambda c: [c.job_on_a_node("1", 0, 3600, 2),
                   *(c.samples(f"a#{gpu}", c.every(0, 3600, interval), lambda _: False)
                     for gpu, interval in enumerate((10, 60)))],
        Cluster.gpu_s, {"idle_held": 7200}),
})  # fmt: skip


# what it shows: end of the job run, seconds of the readings, whether the GPU works, GPU-seconds
test_what_readings_cover = shown_by({
    # each reading covers back at most 2.5 intervals of 10 s
    "a hole in the readings is unknown, not idle": (
        1000, [*range(-10, 201, 10), *range(800, 1001, 10)], lambda _: False,
        {"idle_held": 200 + 225, "unknown": 1000 - 200 - 225}),
    # the reading after a broken one covers back over it; none comes after the last
    "a broken profiling share is no reading": (
        1000, range(-10, 1001, 10), lambda s: None if s % 100 == 0 else 1.0,
        {"busy_unclassified": 990, "unknown": 10}),
    # the only distance that ends in the second hour is the hole itself
    "one reading after a hole covers no more than its series' interval": (
        4200, [*range(-10, 3601, 10), 4000], lambda _: True,
        {"busy_unclassified": 3600 + 25, "unknown": 600 - 25}),
    "the first reading after an hour without one covers back into it": (
        7400, [*range(-60, 3001, 60), *range(7220, 7401, 60)], lambda _: True,
        {"busy_unclassified": 3000 + 150 + 180, "unknown": 4400 - 150 - 180}),
    "a first reading covers nothing": (
        100, range(40, 101, 10), lambda _: True, {"unknown": 40, "busy_unclassified": 60}),
}, read=Cluster.gpu_s, load=lambda c, end, seconds, active: [
    c.job_on_a_node("1", 0, end, 1), c.samples("a#0", seconds, active)])  # fmt: skip


ACTIVE = ("busy_unclassified", None)
SHORT = ("busy_unclassified", "short_idle")
PAUSE = ("idle_held", "pause")
IDLE = ("idle_held", "idle")


def inactive(start, end):
    return lambda second: not start < second <= end


@pytest.mark.parametrize("start", [1781, 3581])
def test_a_job_within_one_reading_of_a_long_pause_is_idle_at_any_time(cluster, start):
    cluster.job_on_a_node("1", start, start + 15, 1)
    cluster.samples("a#0", cluster.every(-20, 7200, 60), inactive(0, 7200))
    yield
    found = phases(cluster)
    assert (found.get(PAUSE), found.get(SHORT)) == (15, None)


# what it shows: shares of a reading, the phase of 100 GPU-seconds
test_activity_of_a_reading = shown_by({
    "a share of a thousandth": ({"engine_active_ratio": 0.001}, {ACTIVE: 100}),
    "each share under a thousandth": (
        {"engine_active_ratio": 0.0009, "sm_active_ratio": 0.0009, "gpu_busy_ratio": 1.0},
        {PAUSE: 100}),
    "memory is copied while no kernel runs": (
        {"engine_active_ratio": 0.0, "dram_active_ratio": 0.2}, {ACTIVE: 100}),
    "no share, and 1 % of utilisation": ({"gpu_busy_ratio": 0.01}, {ACTIVE: 100}),
    "no share, and no utilisation": ({"gpu_busy_ratio": 0.0}, {PAUSE: 100}),
    "the SM share alone": ({"sm_active_ratio": 0.0}, {PAUSE: 100}),
}, before=lambda c: c.job_on_a_node("1", 0, 100, 1), read=phases,
    load=lambda c, of: c.readings(c.gpu("a#0"), c.every(-10, 100), "test", **of))  # fmt: skip


FREE = ("idle_no_demand", "demand_unknown")
OWNER = ("busy_unclassified", "owner_unknown")
# what it shows: distance of the readings, when the GPU is active, GPU-seconds of a job of 1200 s
test_inactivity_of_a_job_without_events = shown_by({
    "20 s of readings every second are a pause": (1, inactive(400, 420), {ACTIVE: 1180, PAUSE: 20}),
    "291 s are a pause": (1, inactive(400, 691), {ACTIVE: 909, PAUSE: 291}),
    "400 s are a pause of 300 s and idle for 100 s": (
        10, inactive(400, 800), {ACTIVE: 800, PAUSE: 300, IDLE: 100}),
    "one reading between active ones is no pause": (
        10, inactive(400, 410), {ACTIVE: 1190, SHORT: 10}),
    "two readings are a pause": (60, inactive(360, 480), {ACTIVE: 1080, PAUSE: 120}),
    "readings over a minute apart show no pause": (
        100, inactive(400, 600), {ACTIVE: 1000, SHORT: 200}),
    "readings over a minute apart show idle time of 300 s from its first second": (
        100, inactive(400, 800), {ACTIVE: 800, IDLE: 400}),
}, before=lambda c: c.job_on_a_node("1", 0, 1200, 1), read=phases, load=lambda c, step_s, active:
    c.samples("a#0", c.every(-step_s, 1200, step_s), active))  # fmt: skip
# what it shows: distance of the readings, when the GPU is active, GPU-seconds of 1200 s
test_inactivity_of_no_owner = shown_by({
    "pauses under 300 s are inside an island": (
        10, lambda s: 100 < s <= 200 or 400 < s <= 1200, {FREE: 100, OWNER: 900, PAUSE: 200}),
    "an island ends at a pause of 300 s": (
        10, lambda s: 100 < s <= 200 or 500 < s <= 1000, {FREE: 600, OWNER: 600}),
    "one reading inside an island is no pause": (
        10, lambda s: not 400 < s <= 410, {OWNER: 1190, SHORT: 10}),
    "of no owner readings over a minute apart show no pause": (
        100, lambda s: s <= 400 or 600 < s <= 800, {OWNER: 600, SHORT: 200, FREE: 400}),
}, before=lambda c: c.telemetry("a", 1), read=phases, load=lambda c, step_s, active:
    c.samples("a-0", c.every(0, 1200, step_s), active, "nvml"))  # fmt: skip


# what is loaded before each of two builds
test_builds = shown_by({"builds before and after 300 s agree on the past": (
             [lambda c: [c.job_on_a_node("1", 0, None, 1, "RUNNING"),
                         c.samples("a#0", c.every(-1, 691, 1), lambda s: s <= 400)],
              lambda c: c.samples("a#0", c.every(692, 720, 1), lambda _: False)],
             [{ACTIVE: 400, PAUSE: 291}, {ACTIVE: 400, PAUSE: 300, IDLE: 20}])}, read=phases,
    builds=2)  # fmt: skip
