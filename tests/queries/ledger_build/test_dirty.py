"""What of a stage depends on what is dirty, and which runs on readings of some hours."""

import dataclasses

import duckdb
import pytest

from goodput_queries.catalog import models
from goodput_queries.ledger_build.dirty import Change, DirtySet, bounded, close
from goodput_queries.ledger_build.dirty_runs import in_hours
from goodput_queries.ledger_build.node_hours import EVERY, HOUR_MS, NOTHING, NodeHours

A = ("c", "a")
STAGES = {m.qualified_name: m for m in models.build_order()}
INVENTORY = "intermediate.int_gpu_stays"  # made of inventories and of what nodes there are
SEGMENTS = "intermediate.int_ledger_segments"
BY_HOST = "intermediate.int_host_hours"  # of readings
STATEMENT = "marts.statement_hourly"  # of all nodes


def dirty(**fields):
    every = frozenset(range(2, 10))
    nothing = DirtySet(1, frozenset(), frozenset(), frozenset(), every, 0)
    return dataclasses.replace(nothing, **fields)


def closed(dirty_set, name):
    """Return the hours of all nodes, and those of some."""
    found = close(dirty_set, STAGES[name])
    return set(found.whole), {hour: set(nodes) for hour, nodes in found.of_nodes.items()}


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
        "intermediate.int_run_timeline": Change(hours=NodeHours(of_nodes=[(4, A), (30, A)])),
        "intermediate.int_node_intervals": Change(hours=NodeHours({5})),
        "intermediate.int_prices": Change(hours=NodeHours({7})),  # segments do not read it
    }

    assert closed(dirty(stages=stages), SEGMENTS) == ({5}, {4: {A}})


def test_a_stage_of_all_nodes_is_replaced_for_all_of_them():
    stages = {"marts.ledger_hourly_by_node": Change(hours=NodeHours(of_nodes=[(4, A)]))}

    assert closed(dirty(stages=stages), STATEMENT) == ({4}, {})


def test_an_input_that_differs_as_a_whole_makes_every_hour_dirty():
    stages = {"intermediate.int_gpu_units": Change(hours=EVERY)}

    assert closed(dirty(stages=stages), SEGMENTS) == (set(range(2, 10)), {})


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

    assert closed(full, BY_HOST) == ({8}, {})
    assert closed(full, SEGMENTS) == ({8, 9}, {})
    assert closed(full, STATEMENT) == (set(range(2, 10)), {})


START = 10 * HOUR_MS


def _found(hours, *spans):
    """Return which of the spans, given in ms from the tenth hour on, are in the hours."""
    relation = " union all ".join(
        f"select {n} as n, {START + first} as first_ms, {START + last} as last_ms"
        for n, (first, last) in enumerate(spans)
    )
    rows = duckdb.execute(f"select n from ({relation}) where {in_hours(hours)} order by n")
    return [n for (n,) in rows.fetchall()]


def test_events_in_one_of_the_hours_are_in_them():
    within, around = (5, 10), (-HOUR_MS, 2 * HOUR_MS)

    assert _found({10}, within, around) == [0, 1]
    assert _found({10, 13}, (3 * HOUR_MS + 5, 3 * HOUR_MS + 6)) == [0]


def test_an_hour_begins_with_its_first_millisecond_and_ends_before_the_next_hour():
    assert _found({10}, (-5, -1), (-5, 0), (HOUR_MS - 1, HOUR_MS), (HOUR_MS, HOUR_MS)) == [1, 2]


def test_events_between_the_hours_are_not_in_them():
    assert _found({10, 13}, (HOUR_MS, 2 * HOUR_MS)) == []


def test_no_hours_hold_no_events():
    assert _found(set(), (0, HOUR_MS)) == []
