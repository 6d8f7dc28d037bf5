"""Precedence of categories, and stretches of steps that are amounts in the ledger."""

import pytest
from tests.queries.conftest import START_MS, durable, phase, steps
from tests.queries.rules.jobs.unscheduled import phases

from goodput_queries.scope import Scope


def test_free_time_takes_the_categories_in_the_order_of_their_precedence(cluster):
    """All facts hold at first, and each ends 100 s after the stronger one."""
    cluster.node("a", 2)
    cluster.node("b", 2, partitions=("p",))
    cluster.add("nodes", node="a", cpus=16, partitions=["p"])
    cluster.watched(1000)
    for place, state in enumerate(("down", "maintenance", "drained", "powered_off"), 1):
        cluster.state("a", state, 0, 100 * place)
    cluster.add("reservations", name="r", nodes=["a"], start_at=0, end_at=500)
    cluster.state("a", "planned", 0, 600)
    cluster.job("1", 0, 700, ["a"], 1, cpus=16)  # its CPUs strand the other GPU
    cluster.job("2", 800, 900, ["b"], 2, eligible=0, partition="p", gpus_requested=2)
    yield
    found = cluster.read("select category from marts.category_intervals order by start_at",
                         scope=Scope(gpu_uuid=cluster.gpu("a#1")))  # fmt: skip
    order = cluster.store.read(
        'select category, precedence from reference.gpu_second_categories where "group" in '
        "('not_available', 'free') and category <> 'free_unknown' order by precedence"
    )
    assert found["category"].to_list() == order["category"].to_list()
    every = cluster.store.read("select precedence from reference.gpu_second_categories")
    assert every.to_series().is_unique().all(), "each category has a precedence of its own"


def test_what_the_job_declares_wins_over_a_gpu_without_a_process(cluster):
    """A helper process may write the checkpoint: the GPU has none of its own meanwhile."""
    cluster.job_on_a_node("1", 0, 600, 1, watched=600)
    saving = [*steps(1, 20, 0), phase("ckpt_save", 200, 500)]
    cluster.events("1", [*saving, durable(20, 500)], gpu_uuid=cluster.gpu("a#0"))
    cluster.samples("a#0", cluster.every(0, 600), lambda second: second <= 200)
    none = {"processes": 0}
    cluster.series("gpu_processes", range(210, 601, 10), none, gpu_uuid=cluster.gpu("a#0"))
    yield
    found = cluster.gpu_s()

    assert found["checkpoint_save"] == 300
    assert phases(cluster)["checkpoint_save", "ckpt_save"] == 300


def test_an_allocation_with_no_process_is_idle_from_the_first_second(cluster):
    """Job 1 never has one; job 2 has none for less time than a pause may last."""
    for job, node in (("1", "a"), ("2", "b")):
        cluster.node(node, 1)
        cluster.job(job, 0, 100, [node], 1)
        gpu, works = f"{node}#0", lambda s, job=job: job == "2" and not 40 < s <= 60
        counts = {"processes": lambda s, works=works: int(works(s))}
        cluster.series("gpu_processes", range(0, 101, 10), counts, gpu_uuid=cluster.gpu(gpu))
        cluster.samples(gpu, cluster.every(-10, 100), works)
    yield
    assert cluster.gpu_s() == {"idle_held": 120, "busy_unclassified": 80}
    assert set(phases(cluster)) == {("busy_unclassified", None), ("idle_held", "no_process")}


def segments(cluster, category):
    """Return how many segments of a category there are by attempt."""
    sql = f"""select count(*) from intermediate.int_ledger_segments
        where category = '{category}' and cluster = '{cluster.name}' group by attempt_key"""
    return cluster.read(sql).to_series().to_list()


def test_a_stretch_of_steps_is_one_segment_an_hour_whatever_their_number(cluster):
    cluster.node("a", 2)
    for job, (count, length) in enumerate([(10, 60.0), (1000, 0.6)]):
        cluster.job(str(job), 0, 620, ["a"], 1)
        ran = steps(1, count, 10, length, comm_s=0.1)
        cluster.events(str(job), [*ran, durable(count, 610)])
    yield
    assert segments(cluster, "stepping") == [1, 1]


def test_nothing_that_people_read_has_a_category_stepping(cluster):
    cluster.job_on_a_node("1", 0, 1000, 1)
    waits = {"data_s": 0.5, "comm_s": 0.2, "straggler_s": 0.1}
    cluster.events("1", [*steps(1, 400, 100, 2.0, **waits), durable(400, 900)])
    yield
    scope = Scope(START_MS + 1, START_MS + 999_999, cluster.name, bucket_ms=60_000)
    sql = """select distinct schema_name || '.' || table_name from duckdb_columns()
        where schema_name = 'marts' and column_name = 'category'"""
    views = cluster.read(sql).to_series()
    assert len(views) > 10
    for view in views:
        found = cluster.store.read(f"from {view} where category = 'stepping'", scope=scope)
        assert found.is_empty(), view


def test_the_drill_down_of_a_stretch_is_a_row_for_each_category(cluster):
    cluster.job_on_a_node("1", 0, 1000, 1)
    cluster.events("1", [*steps(1, 400, 100, 2.0, data_s=0.5), durable(400, 900)])
    yield
    sql = """select category, is_amount, interval_s, gpu_ms from marts.category_intervals
        where category in ('data_stall', 'step_unsplit', 'teardown') order by category"""
    found = cluster.read(sql)
    assert found.rows() == [
        ("data_stall", True, 798.5, 200_000),
        ("step_unsplit", True, 800.0, 600_000),
        ("teardown", False, 100.0, 100_000),
    ]


@pytest.mark.parametrize(("length_s", "number"), [(59, 0), (60, 1), (61, 1)])
def test_a_save_of_a_minute_is_a_segment_of_its_own(cluster, length_s, number):
    cluster.job_on_a_node("1", 0, 1000, 1)
    saving = [phase("ckpt_save", 200, 200 + length_s), durable(20, 200 + length_s)]
    later = steps(21, 40, 200 + length_s)
    cluster.events("1", [*steps(1, 20, 0), *saving, *later, durable(40, 400 + length_s)])
    yield
    assert sum(segments(cluster, "checkpoint_save")) == number
    assert cluster.gpu_s()["checkpoint_save"] == length_s
