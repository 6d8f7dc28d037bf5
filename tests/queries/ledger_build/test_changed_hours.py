"""Which hours a build reopens when intervals differ from those of the build before."""

import duckdb
import pytest

from goodput_queries.ledger_build.differences import changed_hours
from goodput_queries.ledger_build.node_hours import HOUR_MS

MINUTE_MS = 60_000
END_OF_EVIDENCE_HOUR = 10
Interval = tuple[str, int, int | None]  # job, start, end in minutes


@pytest.fixture
def cursor():
    with duckdb.connect() as connection:
        connection.execute("create schema intermediate")
        connection.execute(
            "create table intermediate.int_clusters as select unnest($1) as as_of_ms",
            [[hour * HOUR_MS for hour in (0, END_OF_EVIDENCE_HOUR)]],  # one cluster has no more
        )
        yield connection


def _hours(cursor, new, old):
    for name, rows in (("new", new), ("old", old)):
        cursor.execute(f"create or replace table {name}_rows (job text, start bigint, stop bigint)")
        for job, start, end in rows:
            cursor.execute(
                f"insert into {name}_rows values ($1, $2, $3)",
                [job, start * MINUTE_MS, None if end is None else end * MINUTE_MS],
            )
    return sorted(changed_hours(cursor, "from new_rows", "from old_rows", ("start", "stop")).hours)


def test_a_job_seen_to_run_on_reopens_only_what_was_added(cursor):
    assert _hours(cursor, [("a", 0, 330)], [("a", 0, 320)]) == [5]


def test_a_job_that_is_new_reopens_every_hour_of_it(cursor):
    assert _hours(cursor, [("a", 10, 170)], []) == [0, 1, 2]


def test_a_difference_near_an_hour_reopens_the_hour_beside_it(cursor):
    assert _hours(cursor, [("a", 0, 358)], [("a", 0, 356)]) == [5, 6]
    assert _hours(cursor, [("a", 62, 100)], [("a", 64, 100)]) == [0, 1]


def test_an_open_end_is_compared_at_the_end_of_the_evidence(cursor):
    assert _hours(cursor, [("a", 0, None)], [("a", 0, 600)]) == []
    assert _hours(cursor, [("a", 0, None)], [("a", 0, 560)]) == [9, 10]


def test_an_interval_reported_in_pieces_is_the_same_time(cursor):
    assert _hours(cursor, [("a", 0, 90), ("a", 90, 200)], [("a", 0, 200)]) == []


def test_time_that_another_job_takes_over_differs(cursor):
    assert _hours(cursor, [("b", 10, 50)], [("a", 10, 50)]) == [0]


def test_two_equal_intervals_are_more_than_one(cursor):
    assert _hours(cursor, [("a", 10, 50), ("a", 10, 50)], [("a", 10, 50)]) == [0]


def test_a_plan_that_ends_after_the_evidence_reopens_no_later_hour(cursor):
    in_75_years = 75 * 365 * 24 * 60

    assert _hours(cursor, [("a", 8 * 60 + 10, in_75_years)], []) == [8, 9, 10]
    assert _hours(cursor, [("a", 0, in_75_years)], [("a", 0, in_75_years + 60)]) == []
    assert _hours(cursor, [("a", 0, 9 * 60 + 30)], [("a", 0, in_75_years)]) == [9, 10]
