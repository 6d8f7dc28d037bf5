"""The page of a run on one time axis: its lanes, the telemetry of its GPUs, lateness of ranks."""

from datetime import datetime, timedelta

import numpy as np
import polars as pl
import pytest
from tests.app.page_elements import sent
from tests.queries.conftest import Evidence
from tests.recorded_session import extent_ms

from goodput_app.dashboard.components.runs import run_axis as components
from goodput_app.dashboard.data import metrics, run_axis
from goodput_app.dashboard.figures import runs
from goodput_app.process.store import use_store
from goodput_queries.scope import Scope

START = datetime(2026, 11, 20, 12)  # noqa: DTZ001 -- UTC, as the database has it
RUN = "lab/main"


@pytest.fixture
def scope(capture):
    use_store(capture)
    from_ms, to_ms = extent_ms(capture)
    return Scope(from_ms=from_ms, to_ms=to_ms, run=RUN)


def test_telemetry_is_of_the_runs_gpus_while_it_had_them(capture, scope):
    read = metrics.Resolution(1000, is_raw=True)

    found = run_axis.telemetry(scope, read)

    sql = "select min(start_at), max(end_at) from marts.gpu_allocations where run_key = $1"
    first, last = capture.read(sql, [RUN]).row(0)
    assert found["gpus"].max() == run_axis.allocated(scope)["gpus"].item() == 4
    assert found["at"].min() >= first - timedelta(seconds=1)
    assert found["at"].max() < last


def test_of_a_long_window_the_roll_up_is_read(capture, scope):
    found = run_axis.telemetry(scope, metrics.Resolution(600_000, is_raw=False))

    # a bucket that began before the run is not its own
    sql = "select avg(power_w.mean) from intermediate.int_gpu_metrics group by start_ms"
    expected = capture.read(f"{sql} order by start_ms desc limit 1").item()
    assert found["gpus"].to_list() == [4]
    assert found["power_w"].to_list() == pytest.approx([expected])


@pytest.fixture(scope="module")
def world(new_store):
    """Give an hour with a run that waited a minute and says nothing."""
    made = Evidence(new_store())
    made.node("a", 1)
    made.job("silent", 100, 200, ["a"], 1, submit=40)
    made.watched(3_600)
    made.store.build()
    yield made.store
    made.store.close()


def run_key(store, job):
    return store.read("select run_key from marts.runs where run_id = $1", [job]).item()


def test_a_run_waits_from_when_it_could_start_until_it_starts(world):
    use_store(world)

    waits = run_axis.waits(Scope(from_ms=0, to_ms=2**52, run=run_key(world, "silent")))

    assert waits["wait_s"].to_list() == [60.0]
    assert waits["end_at"][0] - waits["start_at"][0] == timedelta(seconds=60)


def test_the_slow_rank_of_the_recorded_session_is_the_latest_one(capture, scope):
    late = run_axis.lateness(scope)

    named = capture.read("from marts.stragglers where run_key = $1", [RUN])
    worst = late.group_by("rank").agg(pl.col("late_s").sum()).sort("late_s")["rank"][-1]
    assert worst == named.sort("imposed_wait_gpu_s")["rank"][-1]


def test_the_gpu_of_each_rank_is_as_active_as_its_readings_say(capture, scope, visit):
    found, metric = run_axis.activity(scope, 4)

    mean = capture.read(
        """select avg(samples.sm_active_ratio) from staging.stg_gpu_samples as samples
        inner join intermediate.int_rank_gpus as ranks using (gpu_uuid)
        inner join marts.gpu_allocations as held using (gpu_uuid)
        where ranks.rank = 2 and held.run_key = $1 and ts >= start_at and ts < end_at""",
        [RUN],
    ).item()
    assert metric == "sm_active_ratio"
    assert found["rank"].unique().to_list() == [0, 1, 2, 3]
    assert found.filter(pl.col("rank") == 2)[metric].mean() == pytest.approx(mean, rel=0.05)
    assert "rank-activity" in sent(visit(capture, "one_run", run=RUN, ranks="active"))


def test_gpus_without_a_rank_are_called_by_their_node():
    cells = {
        "rank": None,
        "node": "<b>a",
        "gpu_uuid": "GPU-0123456789",
        "at": START,
        "gpu_busy_ratio": 0.5,
    }
    frame = pl.DataFrame([cells], schema_overrides={"rank": pl.Int64})

    drawn = runs.activity(frame, "gpu_busy_ratio", "GPU utilisation", (START, START)).data[0]

    assert drawn.y == ("&lt;b&gt;a GPU-01234567",)
    assert drawn.z.tolist() == [[50.0]]


def rows(*cells):
    """Give marts.rank_lateness: rank, minute, share."""
    found = [
        {"rank": rank, "bucket_at": START + timedelta(minutes=minute), "late_ratio": share}
        for rank, minute, share in cells
    ]
    return pl.DataFrame(found)


def test_a_cell_without_steps_is_empty_and_no_zero():
    drawn = runs.lateness(rows((0, 0, 0.0), (1, 0, 0.5), (1, 1, 0.25)), (START, START)).data[0]

    assert drawn.y == ("rank 0", "rank 1")
    assert np.array_equal(drawn.z, [[0, np.nan], [50, 25]], equal_nan=True)


def test_of_two_attempts_in_one_bucket_the_later_one_is_drawn():
    drawn = runs.lateness(rows((3, 0, 0.1), (3, 0, 0.4)), (START, START)).data[0]

    assert drawn.z.tolist() == [[pytest.approx(40)]]


def test_a_line_of_steps_breaks_between_attempts():
    steps = pl.DataFrame(
        {
            "attempt": [0, 0, 1],
            "end_at": [START + timedelta(seconds=s) for s in (1, 2, 9)],
            "step_s": [1.0, 1.0, 2.0],
            "median_step_s": [1.0, 1.0, 2.0],
        }
    )

    assert components.steps_in_order(steps)["step_s"].to_list() == [1.0, 1.0, None, 2.0]


def test_the_axis_is_the_time_of_the_run_within_the_window():
    hours = [START + timedelta(hours=h) for h in range(6)]
    frame = pl.DataFrame({"start_at": [hours[1], hours[2]], "end_at": [hours[2], hours[4]]})

    assert components.extent((hours[0], hours[5]), frame) == (hours[1], hours[4])
    assert components.extent((hours[2], hours[3]), frame) == (hours[2], hours[3])
    assert components.extent((hours[0], hours[5]), frame.clear()) == (hours[0], hours[5])


def test_a_run_that_says_nothing_has_a_page(visit, world):
    app = visit(world, "one_run", run=run_key(world, "silent"))

    captions = " ".join(str(c.value) for c in app.caption)
    assert "No job events received" in captions
    assert "No readings of its 1 GPU" in captions
    assert "How late each rank was is not known" in captions
