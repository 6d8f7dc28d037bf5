"""What a build does again where evidence differs: hours, stages and events; and in which parts."""

import dataclasses

import duckdb
import pytest
from tests.tables import each, gives

from goodput_queries.catalog import models
from goodput_queries.ledger_build.differences import changed_hours
from goodput_queries.ledger_build.dirty import (
    Change,
    DirtySet,
    bounded,
    close,
    has_new_engines_of_known_requests,
)
from goodput_queries.ledger_build.dirty_hours import EVERY, HOUR_MS, NOTHING, DirtyHours
from goodput_queries.ledger_build.dirty_runs import in_hours
from goodput_queries.ledger_build.passes import READINGS_OF_A_PART, borders_of_parts

STAGES = {m.qualified_name: m for m in models.build_order()}
INVENTORY = "intermediate.int_gpu_stays"  # made of inventories and of what nodes there are
SEGMENTS = "intermediate.int_ledger_segments"
BY_HOST = "intermediate.int_host_hours"  # of readings


def dirty(**fields):
    every = frozenset(range(2, 10))
    nothing = DirtySet(1, frozenset(), frozenset(), frozenset(), every, 0)
    return dataclasses.replace(nothing, **fields)


def hours(*found):
    return Change(hours=DirtyHours(frozenset(found)))


def test_a_dirty_set_does_not_change():
    begun = dirty()
    more = begun.after({INVENTORY: Change(is_none=True)})
    assert (begun.has_same([INVENTORY]), more.has_same([INVENTORY])) == (False, True)


# what it shows: a stage, what differs, whether the stage is replaced
@each({
    "evidence and inputs are as they were": (INVENTORY, {}, NOTHING),
    "and of all tables whose loads matter": ("intermediate.int_gpu_instances", {}, NOTHING),
    "but of other tables": ("intermediate.int_gpu_inventory", {}, EVERY),
    "an input differs": (
        INVENTORY, {"stages": {"staging.stg_node_clusters": Change(hours=EVERY)}}, EVERY),
    "evidence was loaded": (INVENTORY, {"loaded": frozenset({"raw.gpus"})}, EVERY),
    "a full build": (INVENTORY, {"since": None}, EVERY),
})  # fmt: skip
def test_a_stage_stays_where_nothing_that_it_reads_differs(stage, fields, expected):
    same = {name: Change(is_none=True) for name in models.evidence(stage)[1]}
    assert close(dirty(**{"stages": same} | fields), STAGES[stage]) is expected


FULL = {"since": None, "readings": frozenset({3, 8}), "frozen_until": 8}


# what it shows: what differs, a stage, the hours in which it is replaced
@each({
    "hours in which inputs differ, of which segments do not read one": (
        {"stages": {"intermediate.int_run_timeline": hours(4, 30),
                    "intermediate.int_node_intervals": hours(5),
                    "intermediate.int_prices": hours(7)}}, SEGMENTS, {4, 5}),
    "every hour, where an input differs as a whole": (
        {"stages": {"intermediate.int_gpu_units": Change(hours=EVERY)}}, SEGMENTS, {*range(2, 10)}),
    "and the next, where an allocation is young": (
        {"stages": {"intermediate.int_holds": hours(4)}}, "intermediate.int_held_hours", {4, 5}),
    # hours whose readings were dropped stay, but in roll-ups of a full build
    "of readings those that are there": (FULL, BY_HOST, {8}),
    "of segments those after frozen ones": (FULL, SEGMENTS, {8, 9}),
    "of roll-ups all": (FULL, "marts.statement_hourly", set(range(2, 10))),
})  # fmt: skip
def test_hours_in_which_a_stage_is_replaced(fields, stage, expected):
    assert set(close(dirty(**fields), STAGES[stage]).hours) == expected


def test_every_hour_is_one_of_the_ledger_or_of_gpus_and_the_moved_end_adds_hours():
    with duckdb.connect() as cursor:
        for schema in ("intermediate", "state"):
            cursor.execute(f"create schema {schema}")
        for table, columns in {
            "intermediate.int_gpu_units": {"start_ms": 2},
            "intermediate.int_clusters": {"first_ms": 2, "as_of_ms": 9},
            "state.built": {"as_of_ms": 8},
        }.items():
            values = ", ".join(f"{hour * HOUR_MS} as {name}" for name, hour in columns.items())
            cursor.execute(f"create table {table} as select 'c' as cluster, {values}")

        found = bounded(cursor, dirty(every=frozenset({11})))  # of a GPU that has left

    assert found.every == {*range(2, 10), 11}
    assert found.added == {7, 8, 9}


START = 10 * HOUR_MS


# what it shows: hours, first and last ms of events from the tenth hour on, which are in the hours
@each({
    "within an hour, and around it": ({10}, [(5, 10), (-HOUR_MS, 2 * HOUR_MS)], [0, 1]),
    "in one of two hours": ({10, 13}, [(3 * HOUR_MS + 5, 3 * HOUR_MS + 6)], [0]),
    "an hour begins with its first millisecond": ({10}, [(-5, -1), (-5, 0)], [1]),
    "an hour ends before the next one": ({10}, [(HOUR_MS - 1, HOUR_MS), (HOUR_MS, HOUR_MS)], [0]),
    "between two hours": ({10, 13}, [(HOUR_MS, 2 * HOUR_MS)], []),
    "without hours": (set(), [(0, HOUR_MS)], []),
})  # fmt: skip
def test_which_events_are_in_hours(hours, events, expected):
    relation = " union all ".join(
        f"select {n} as n, {START + first} as first_ms, {START + last} as last_ms"
        for n, (first, last) in enumerate(events)
    )
    rows = duckdb.execute(f"select n from ({relation}) where {in_hours(hours)} order by n")
    assert [n for (n,) in rows.fetchall()] == expected


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


def test_without_loads_of_samples_no_engine_is_new(cursor):
    """Nor where all is built; the database is not asked."""
    assert not has_new_engines_of_known_requests(cursor, {"raw.serving_samples"}, since=None)
    assert not has_new_engines_of_known_requests(cursor, set(), since=1)


IN_75_YEARS = 75 * 365 * 24 * 60


# what it shows: intervals in minutes, those of the build before, hours that are opened again
@each({
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
})  # fmt: skip
def test_hours_in_which_intervals_differ_are_opened_again(cursor, new, old, hours):
    for name, rows in (("new", new), ("old", old)):
        cursor.execute(f"create table {name}_rows (job text, start bigint, stop bigint)")
        for job, start, end in rows:
            row = [job, start * MINUTE_MS, None if end is None else end * MINUTE_MS]
            cursor.execute(f"insert into {name}_rows values ($1, $2, $3)", row)
    found = changed_hours(cursor, "from new_rows", "from old_rows", ("start", "stop"))
    assert sorted(found.hours) == hours


SIZE = READINGS_OF_A_PART
test_borders_of_parts = gives(
    lambda first, last, most: borders_of_parts(first, last, most=most),
    {
        "few are one part": (7, 7 + 2 * SIZE - 1, 8, [7, 7 + 2 * SIZE - 1]),
        "none": (0, 0, 8, [0, 0]),
        "many are parts of equal size": (
            7, 7 + 3 * SIZE, 8, [7, 7 + SIZE, 7 + 2 * SIZE, 7 + 3 * SIZE]),
        "no more than asked for": (0, 100 * SIZE, 2, [0, 50 * SIZE, 100 * SIZE]),
    },
)  # fmt: skip
