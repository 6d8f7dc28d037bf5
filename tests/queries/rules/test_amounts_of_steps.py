"""Stretches of steps are amounts in the ledger, in whole hours and for each category.

That they are those of their intervals in any window: runs/test_run_timeline.py; to the millisecond
in any hour: the oracle.
"""

import pytest
from tests.queries.conftest import START_MS, built_together, durable, phase, steps

from goodput_queries.scope import Scope


def segments(cluster, category):
    """Return how many segments of a category there are by attempt."""
    sql = f"""select count(*) from intermediate.int_ledger_segments
        where category = '{category}' and cluster = '{cluster.name}' group by attempt_key"""
    return cluster.read(sql).to_series().to_list()


@built_together
def test_a_stretch_of_steps_is_one_segment_an_hour_whatever_their_number(cluster):
    cluster.node("a", 2)
    for job, (count, length) in enumerate([(10, 60.0), (1000, 0.6)]):
        cluster.job(str(job), 0, 620, ["a"], 1)
        ran = steps(1, count, 10, length, comm_s=0.1)
        cluster.events(str(job), [*ran, durable(count, 610)])
    yield
    assert segments(cluster, "stepping") == [1, 1]


@built_together
def test_nothing_that_people_read_has_a_category_stepping(cluster):
    cluster.job_on_a_node("1", 0, 1000, 1)
    waits = {"data_s": 0.5, "comm_s": 0.2, "straggler_s": 0.1}
    cluster.events("1", [*steps(1, 400, 100, 2.0, **waits), durable(400, 900)])
    yield
    scope = Scope(START_MS + 1, START_MS + 999_999, cluster.name, bucket_ms=60_000)
    views = cluster.read(
        """select distinct schema_name || '.' || table_name from duckdb_columns()
        where schema_name = 'marts' and column_name = 'category'"""
    ).to_series()
    shown = [
        view
        for view in views
        if cluster.store.read(f"from {view} where category = 'stepping'", scope=scope).height
    ]
    assert len(views) > 10
    assert shown == []


@built_together
def test_the_drill_down_of_a_stretch_is_a_row_for_each_category(cluster):
    cluster.job_on_a_node("1", 0, 1000, 1)
    cluster.events("1", [*steps(1, 400, 100, 2.0, data_s=0.5), durable(400, 900)])
    yield
    found = cluster.read(
        """select category, is_amount, interval_s, gpu_ms from marts.category_intervals
        where category in ('data_stall', 'step_unsplit', 'teardown') order by category"""
    )
    assert found.rows() == [
        ("data_stall", True, 798.5, 200_000),
        ("step_unsplit", True, 800.0, 600_000),
        ("teardown", False, 100.0, 100_000),
    ]


@pytest.mark.parametrize(("length_s", "number"), [(59, 0), (60, 1), (61, 1)])
@built_together
def test_a_save_of_a_minute_is_a_segment_of_its_own(cluster, length_s, number):
    cluster.job_on_a_node("1", 0, 1000, 1)
    saving = [phase("ckpt_save", 200, 200 + length_s), durable(20, 200 + length_s)]
    later = steps(21, 40, 200 + length_s)
    cluster.events("1", [*steps(1, 20, 0), *saving, *later, durable(40, 400 + length_s)])
    yield
    assert sum(segments(cluster, "checkpoint_save")) == number
    assert cluster.gpu_s()["checkpoint_save"] == length_s
