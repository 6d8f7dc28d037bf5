"""What of a stage depends on what is dirty."""

from __future__ import annotations

import dataclasses

import duckdb
import pytest

from goodput_queries.catalog import models
from goodput_queries.ledger_build.dirty import Change, DirtySet, close
from goodput_queries.ledger_build.node_hours import EVERY, HOUR_MS, NOTHING, NodeHours

A = ("c", "a")
STAGES = {m.qualified_name: m for m in models.build_order()}
INVENTORY = "intermediate.int_gpu_stays"  # made of inventories and of what nodes there are
SEGMENTS = "marts.ledger_segments"
BY_HOST = "intermediate.int_host_hours"  # of readings
STATEMENT = "marts.statement_hourly"  # of all nodes


@pytest.fixture(scope="module")
def cursor():
    """Return a database of one GPU from hour 2 on, whose evidence ends in hour 9 as it did."""
    with duckdb.connect() as connection:
        for schema in ("intermediate", "state"):
            connection.execute(f"create schema {schema}")
        units = f"select 'c' as cluster, 'a' as node, {2 * HOUR_MS} as start_ms"
        connection.execute(f"create table intermediate.int_gpu_units as {units}")
        ends = f"select 'c' as cluster, {2 * HOUR_MS} as first_ms, {9 * HOUR_MS} as as_of_ms"
        connection.execute(f"create table intermediate.int_clusters as {ends}")
        connection.execute(f"create table state.built as {ends}")
        yield connection


def dirty(**fields):
    nothing = DirtySet(1, frozenset(), frozenset(), frozenset(), frozenset(), 0)
    return dataclasses.replace(nothing, **fields)


def closed(cursor, dirty_set, name):
    """Return the hours of all nodes, and those of some."""
    found = close(cursor, dirty_set, STAGES[name])
    return set(found.whole), {hour: set(nodes) for hour, nodes in found.of_nodes.items()}


def test_a_dirty_set_does_not_change():
    begun = dirty()

    more = begun.after({INVENTORY: Change(is_none=True)})

    assert (begun.has_same([INVENTORY]), more.has_same([INVENTORY])) == (False, True)
    with pytest.raises(dataclasses.FrozenInstanceError):
        begun.since = 2


def test_a_stage_whose_evidence_and_inputs_are_as_they_were_stays(cursor):
    same = {"staging.stg_node_clusters": Change(is_none=True)}
    other = {"staging.stg_node_clusters": Change(hours=EVERY)}

    assert close(cursor, dirty(stages=same), STAGES[INVENTORY]) is NOTHING
    assert close(cursor, dirty(stages=other), STAGES[INVENTORY]) is EVERY
    loaded = dirty(stages=same, loaded=frozenset({"raw.gpus"}))
    assert close(cursor, loaded, STAGES[INVENTORY]) is EVERY
    assert close(cursor, dirty(stages=same, since=None), STAGES[INVENTORY]) is EVERY


def test_hours_follow_from_where_inputs_differ(cursor):
    stages = {
        "intermediate.int_run_timeline": Change(hours=NodeHours(of_nodes=[(4, A), (30, A)])),
        "intermediate.int_node_intervals": Change(hours=NodeHours({5})),
        "intermediate.int_prices": Change(hours=NodeHours({7})),  # segments do not read it
    }

    assert closed(cursor, dirty(stages=stages), SEGMENTS) == ({5}, {4: {A}})


def test_a_stage_of_all_nodes_is_replaced_for_all_of_them(cursor):
    stages = {"marts.ledger_hourly_by_node": Change(hours=NodeHours(of_nodes=[(4, A)]))}

    assert closed(cursor, dirty(stages=stages), STATEMENT) == ({4}, {})


def test_an_input_that_differs_as_a_whole_makes_every_hour_dirty(cursor):
    stages = {"intermediate.int_gpu_units": Change(hours=EVERY)}
    had = frozenset({11})  # of a GPU that left the inventory

    assert closed(cursor, dirty(stages=stages, ledger=had), SEGMENTS) == ({*range(2, 10), 11}, {})


def test_hours_whose_readings_were_dropped_stay_but_in_roll_ups_of_a_full_build(cursor):
    full = dirty(since=None, readings=frozenset({3, 8}), frozen_until=8)

    assert closed(cursor, full, BY_HOST) == ({8}, {})
    assert closed(cursor, full, SEGMENTS) == ({8, 9}, {})
    assert closed(cursor, full, STATEMENT) == (set(range(2, 10)), {})
