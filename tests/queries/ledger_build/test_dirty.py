"""What of a stage depends on what is dirty, and which runs on readings of some hours."""

import dataclasses

import duckdb
import pytest

from goodput_queries.catalog import models
from goodput_queries.ledger_build.dirty import Change, DirtySet, bounded, close
from goodput_queries.ledger_build.dirty_hours import EVERY, HOUR_MS, NOTHING, DirtyHours
from goodput_queries.ledger_build.dirty_runs import in_hours

STAGES = {m.qualified_name: m for m in models.build_order()}
INVENTORY = "intermediate.int_gpu_stays"  # made of inventories and of what nodes there are
SEGMENTS = "intermediate.int_ledger_segments"
BY_HOST = "intermediate.int_host_hours"  # of readings
STATEMENT = "marts.statement_hourly"


def dirty(**fields):
    every = frozenset(range(2, 10))
    nothing = DirtySet(1, frozenset(), frozenset(), frozenset(), every, 0)
    return dataclasses.replace(nothing, **fields)


def closed(dirty_set, name):
    """Return the hours in which a stage is replaced."""
    return set(close(dirty_set, STAGES[name]).hours)


def test_a_dirty_set_does_not_change():
    begun = dirty()

    more = begun.after({INVENTORY: Change(is_none=True)})

    assert (begun.has_same([INVENTORY]), more.has_same([INVENTORY])) == (False, True)
    with pytest.raises(dataclasses.FrozenInstanceError):
        begun.since = 2


def test_a_stage_whose_evidence_and_inputs_are_as_they_were_stays():
    same = {"staging.stg_node_clusters": Change(is_none=True)}
    other = {"staging.stg_node_clusters": Change(hours=EVERY)}

    assert close(dirty(stages=same), STAGES[INVENTORY]) is NOTHING
    assert close(dirty(stages=other), STAGES[INVENTORY]) is EVERY
    loaded = dirty(stages=same, loaded=frozenset({"raw.gpus"}))
    assert close(loaded, STAGES[INVENTORY]) is EVERY
    assert close(dirty(stages=same, since=None), STAGES[INVENTORY]) is EVERY


def test_hours_follow_from_where_inputs_differ():
    stages = {
        "intermediate.int_run_timeline": Change(hours=DirtyHours(frozenset({4, 30}))),
        "intermediate.int_node_intervals": Change(hours=DirtyHours(frozenset({5}))),
        "intermediate.int_prices": Change(
            hours=DirtyHours(frozenset({7}))
        ),  # segments do not read it
    }

    assert closed(dirty(stages=stages), SEGMENTS) == {4, 5}


def test_an_input_that_differs_as_a_whole_makes_every_hour_dirty():
    stages = {"intermediate.int_gpu_units": Change(hours=EVERY)}

    assert closed(dirty(stages=stages), SEGMENTS) == set(range(2, 10))


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


def test_hours_whose_readings_were_dropped_stay_but_in_roll_ups_of_a_full_build():
    full = dirty(since=None, readings=frozenset({3, 8}), frozen_until=8)

    assert closed(full, BY_HOST) == {8}
    assert closed(full, SEGMENTS) == {8, 9}
    assert closed(full, STATEMENT) == set(range(2, 10))


START = 10 * HOUR_MS
# what it shows: hours, first and last ms of events from the tenth hour on, which are in the hours
EVENTS = {
    "within an hour, and around it": ({10}, [(5, 10), (-HOUR_MS, 2 * HOUR_MS)], [0, 1]),
    "in one of two hours": ({10, 13}, [(3 * HOUR_MS + 5, 3 * HOUR_MS + 6)], [0]),
    "an hour begins with its first millisecond": ({10}, [(-5, -1), (-5, 0)], [1]),
    "an hour ends before the next one": (
        {10}, [(HOUR_MS - 1, HOUR_MS), (HOUR_MS, HOUR_MS)], [0],
    ),
    "between two hours": ({10, 13}, [(HOUR_MS, 2 * HOUR_MS)], []),
    "without hours": (set(), [(0, HOUR_MS)], []),
}  # fmt: skip


@pytest.mark.parametrize(("hours", "events", "expected"), EVENTS.values(), ids=EVENTS)
def test_which_events_are_in_hours(hours, events, expected):
    relation = " union all ".join(
        f"select {n} as n, {START + first} as first_ms, {START + last} as last_ms"
        for n, (first, last) in enumerate(events)
    )
    rows = duckdb.execute(f"select n from ({relation}) where {in_hours(hours)} order by n")
    assert [n for (n,) in rows.fetchall()] == expected
