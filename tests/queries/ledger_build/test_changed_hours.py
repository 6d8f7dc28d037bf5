"""Which hours a build reopens when intervals differ from those of the build before."""

import duckdb
import pytest

from goodput_queries.ledger_build.differences import changed_hours
from goodput_queries.ledger_build.dirty_hours import HOUR_MS

MINUTE_MS = 60_000
END_OF_EVIDENCE_HOUR = 10


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


IN_75_YEARS = 75 * 365 * 24 * 60
# what it shows: intervals in minutes, those of the build before, hours that are opened again
DIFFERENCES = {
    "a job seen to run on": ([("a", 0, 330)], [("a", 0, 320)], [5]),
    "a job that is new": ([("a", 10, 170)], [], [0, 1, 2]),
    "near the end of an hour": ([("a", 0, 358)], [("a", 0, 356)], [5, 6]),
    "near the begin of an hour": ([("a", 62, 100)], [("a", 64, 100)], [0, 1]),
    "an open end is that of the evidence": ([("a", 0, None)], [("a", 0, 600)], []),
    "an open end after another one": ([("a", 0, None)], [("a", 0, 560)], [9, 10]),
    "the same time in pieces": ([("a", 0, 90), ("a", 90, 200)], [("a", 0, 200)], []),
    "another job takes over": ([("b", 10, 50)], [("a", 10, 50)], [0]),
    "two equal intervals": ([("a", 10, 50), ("a", 10, 50)], [("a", 10, 50)], [0]),
    "a plan that ends after the evidence": ([("a", 490, IN_75_YEARS)], [], [8, 9, 10]),
    "a plan that ends later": ([("a", 0, IN_75_YEARS)], [("a", 0, IN_75_YEARS + 60)], []),
    "a plan that is cut": ([("a", 0, 570)], [("a", 0, IN_75_YEARS)], [9, 10]),
}


@pytest.mark.parametrize(("new", "old", "hours"), DIFFERENCES.values(), ids=DIFFERENCES)
def test_hours_in_which_intervals_differ_are_opened_again(cursor, new, old, hours):
    assert _hours(cursor, new, old) == hours
