"""Which runs a build looks at again because of readings in some hours."""

from __future__ import annotations

import duckdb

from goodput_queries.ledger_build.dirty_runs import in_hours
from goodput_queries.ledger_build.node_hours import HOUR_MS

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
