"""Parts of the node page: its incidents, its jobs as lanes, activity of its GPUs as small lines."""

from datetime import datetime, timedelta
from types import SimpleNamespace

import polars as pl
import pytest

from goodput_app.dashboard.components.fleet import node_axis, node_parts, node_verdict
from goodput_app.dashboard.data import health

AT = datetime(2026, 11, 20, 3)  # noqa: DTZ001 -- UTC, as the database has it


def after(minutes):
    return AT + timedelta(minutes=minutes)


def outages(*spans):
    rows = [
        {"cluster": "c", "node": "n", "state": "down", "start_at": after(start),
         "end_at": None if end is None else after(end), "out_at": None, "reason": None,
         "sources": "slurm"}
        for start, end in spans
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=health.NO_OUTAGES.schema)


def test_an_incident_is_shown_with_an_hour_around_it_up_to_what_is_known():
    found = node_verdict.incident_ranges(outages((60, 90), (300, None)), after(330))

    assert found == [(after(0), after(150)), (after(240), after(330))]


FIRST, SECOND, THIRD = [(after(start), after(start + 120)) for start in (0, 300, 600)]


@pytest.mark.parametrize(
    ("shown", "before", "later"),
    [
        ((after(-600), after(900)), THIRD, None),
        ((after(200), after(250)), FIRST, SECOND),
        (SECOND, FIRST, THIRD),
        (FIRST, None, SECOND),
    ],
    ids=["a range with all of them", "between two", "the second one", "the first one"],
)
def test_the_buttons_lead_to_the_incident_before_and_after_the_time_range(shown, before, later):
    assert node_verdict.beside([FIRST, SECOND, THIRD], shown) == (before, later)


def test_jobs_that_have_gpus_at_the_same_time_stand_in_lanes_of_their_own():
    rows = [
        {"job_run_key": key, "attempt": 0, "job_name": key, "run_id": key, "team": None,
         "user_name": "ada", "gpu_uuid": gpu, "gpu_instance": "", "start_at": after(start),
         "end_at": after(end)}
        for key, gpu, start, end in [
            ("a", "g0", 0, 60), ("a", "g1", 0, 60), ("b", "g2", 30, 90), ("c", "g0", 60, 90),
            ("never", "g0", 90, 90),
        ]
    ]  # fmt: skip

    found = node_axis.jobs(pl.DataFrame(rows, schema_overrides={"team": pl.String}))

    assert found.select("lane", "name", "hover").rows() == [
        ("Jobs", "a", "a / ada / 2 GPUs"),
        ("Jobs", "c", "c / ada / 1 GPU"),
        ("Jobs 2", "b", "b / ada / 1 GPU"),
    ]


def test_an_outage_that_lasts_is_drawn_to_the_end_of_what_is_known():
    view = SimpleNamespace(end=after(600), as_of=after(330))

    found = node_axis.states(outages((60, 90), (300, None)), view)

    assert found.select("label", "end_at").rows() == [("Down", after(90)), ("Down", after(330))]


def test_a_bin_without_a_reading_is_below_all_readings():
    view = SimpleNamespace(start=AT, end=AT + timedelta(minutes=node_parts.SPARK_BINS))
    activity = {"sm_active_ratio": [0.0, 0.5], "engine_active_ratio": None, "gpu_busy_ratio": None}
    series = pl.DataFrame({"gpu_uuid": ["g", "g"], "at": [after(0), after(2)], **activity})

    (found,) = node_parts.sparklines(series, view)["activity"].to_list()

    assert found[:4] == [0.0, node_parts.NO_READING, 0.5, node_parts.NO_READING]
    assert len(found) == node_parts.SPARK_BINS


def test_an_hour_that_the_ledger_has_not_is_below_all_shares():
    hours = pl.DataFrame(
        {"cluster": ["c"] * 3, "node": ["a", "a", "b"], "hour_ms": [0, 1, 1],
         "useful_ratio": [0.25, 0.5, 1.0]}
    )  # fmt: skip

    found = dict(node_parts.useful_by_hour(hours).select("node", "useful").iter_rows())

    assert found == {"a": [0.25, 0.5], "b": [node_parts.NO_READING, 1.0]}
