"""Scheduler records in several listings, and records missing from later listings."""

from __future__ import annotations

import pytest

INDEX = 2798573628995141632  # of a record in the accounting's database


def held(evidence) -> list[tuple[object, ...]]:
    evidence.store.build()
    return evidence.store.read(
        """select job_run_key, (sum(gpu_ms) / 1000)::integer as gpu_s
        from marts.ledger_hourly where job_run_key is not null group by all order by all"""
    ).rows()


@pytest.mark.parametrize("indices", [[INDEX, None], [None, INDEX]])
@pytest.mark.parametrize("is_built_between", [True, False])
def test_a_record_with_and_without_the_index_of_the_database_is_one_job_run(
    evidence, indices, is_built_between
):
    """JSON lacks the index; half a node, so that a second hold would find free GPUs."""
    evidence.node("a", 4)
    for index in indices:
        evidence.job("1", 0, 100, ["a"], 2, db_index=index)
        if is_built_between:
            evidence.store.build()

    assert held(evidence) == [("c/1@1800000000", 200)]
    (run,) = evidence.store.read("select db_index from raw.job_runs")["db_index"].to_list()
    assert run == INDEX


def test_records_of_a_job_that_was_resubmitted_stay_apart(evidence):
    """A requeue and a resize give a new moment of submission."""
    evidence.node("a", 4)
    evidence.job("1", 0, 40, ["a"], 4, "RESIZING", submit=0, db_index=73)
    evidence.job("1", 0, 100, ["a"], 2, submit=40, db_index=76)

    assert held(evidence) == [("c/1@1800000000", 160), ("c/1@1800000040", 120)]


def tell_of_a_running_job(evidence):
    evidence.node("a", 2)
    evidence.watched(20_000)
    evidence.job("1", 0, None, ["a"], 1, "RUNNING", elapsed_s=600, source="slurm")


def runs(evidence):
    evidence.store.build()
    return evidence.store.read(
        """select job_id, end_ms - start_ms as held_ms, outcome
        from intermediate.int_job_runs order by all"""
    ).rows()


@pytest.mark.parametrize("is_built_between", [True, False])
def test_a_running_record_that_later_listings_leave_out_holds_up_to_when_it_was_last_reported(
    evidence, is_built_between
):
    tell_of_a_running_job(evidence)
    if is_built_between:
        evidence.store.build()
    evidence.job("2", 9_000, 9_100, ["a"], 1, source="slurm")

    assert runs(evidence) == [("1", 600_000, "running"), ("2", 100_000, "ok")]
    assert held(evidence) == [("c/1@1800000000", 600), ("c/2@1800009000", 100)]
    (found,) = evidence.store.read(
        """select n, example from marts.data_quality
        where kind = 'running jobs that vanished'"""
    ).rows()
    assert found == (1, "c/1@1800000000")


def test_a_running_record_runs_on_while_listings_name_it(evidence):
    tell_of_a_running_job(evidence)
    evidence.job("1", 0, None, ["a"], 1, "RUNNING", elapsed_s=9_090, source="slurm")
    evidence.job("2", 9_000, 9_100, ["a"], 1, source="slurm")

    assert runs(evidence)[0] == ("1", None, "running")


def test_a_running_record_runs_on_while_the_next_listing_is_not_an_hour_later(evidence):
    tell_of_a_running_job(evidence)
    evidence.job("2", 600, 4_100, ["a"], 1, source="slurm")

    assert runs(evidence)[0] == ("1", None, "running")


def test_a_running_record_runs_on_where_only_readings_came_later(evidence):
    tell_of_a_running_job(evidence)
    evidence.samples("a#0", evidence.every(0, 20_000, 100), lambda _: True)

    assert runs(evidence) == [("1", None, "running")]


def test_a_running_record_ends_when_a_late_listing_says_so(evidence):
    tell_of_a_running_job(evidence)
    evidence.job("2", 9_000, 9_100, ["a"], 1, source="slurm")
    evidence.store.build()
    evidence.job("1", 0, 5_000, ["a"], 1, elapsed_s=5_000, source="slurm")

    assert runs(evidence)[0] == ("1", 5_000_000, "ok")
    assert held(evidence)[0] == ("c/1@1800000000", 5_000)


def by_node(evidence):
    evidence.store.build()
    return evidence.store.read(
        """select node, count(distinct gpu_uuid) as gpus, (sum(gpu_ms) / 1000)::integer as gpu_s
        from marts.ledger_hourly where job_run_key is not null group by node order by node"""
    ).rows()


def test_a_job_on_nodes_of_which_the_inventory_lacks_one_holds_its_gpus_on_all(evidence):
    evidence.node("a", 8)
    evidence.watched(200)
    evidence.job("1", 0, 100, ["a", "b"], 16)

    assert by_node(evidence) == [("a", 8, 800), ("b", 8, 800)]


def test_a_job_on_nodes_of_which_none_is_in_the_inventory_is_spread_whoever_else_is_there(evidence):
    evidence.job("1", 0, 100, ["a"], 1)
    evidence.job("2", 200, 300, ["a", "b"], 16)

    assert by_node(evidence) == [("a", 8, 900), ("b", 8, 800)]


def test_a_node_without_gpus_of_a_job_whose_others_have_enough_has_none(evidence):
    evidence.node("a", 8)
    evidence.watched(200)
    evidence.job("1", 0, 100, ["a", "login"], 8)

    assert by_node(evidence) == [("a", 8, 800)]


def told_twice(evidence):
    evidence.store.build()
    return evidence.store.read(
        "select n, example from marts.data_quality where kind = 'duplicate scheduler records'"
    ).rows()


def test_records_that_were_read_in_two_zones_are_reported(evidence):
    """Berlin is an hour ahead of UTC; the records differ in nothing but their times."""
    evidence.node("a", 4)
    for hour in (0, 3_600):
        evidence.job("1", hour + 10, hour + 100, ["a"], 2, submit=hour)

    assert told_twice(evidence) == [(1, "c/1")]


def test_a_requeue_that_lasts_otherwise_is_no_duplicate_record(evidence):
    evidence.node("a", 4)
    evidence.job("1", 10, 100, ["a"], 2, submit=0)
    evidence.job("1", 3_610, 3_790, ["a"], 2, submit=3_600)

    assert told_twice(evidence) == []


def test_a_job_that_starts_by_the_clock_is_no_duplicate_record(evidence):
    """A job of `scrontab` keeps its number."""
    evidence.node("a", 4)
    for hour in (0, 3_600, 7_200):
        evidence.job("1", hour, hour + 60, ["a"], 2, submit=hour)

    assert told_twice(evidence) == []
