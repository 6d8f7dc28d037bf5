"""The next five minutes of a fleet that is watched live: read what came, bring the ledger up.

A database is loaded with what the sources report until some minutes before T, in the
middle of the last hour, and built; then come slices of five minutes, each loaded and built.
"""

import contextlib
from datetime import timedelta

from tests import evidence_over_time
from tests.benchmarks.meter import Meter, median
from tests.benchmarks.table import Row, number
from tests.evidence_over_time import START, batches, load, reported_between, rows_of

from goodput_queries.database import LocalStore

SLICE = timedelta(minutes=5)
BUDGET_YARDSTICKS = 4.5


def measure(fleet, slices, yardstick_s, run):
    """Return the row, medians of the slices."""
    loading, building = zip(*run(_slices, fleet, slices), strict=True)
    both = median([load + build for load, build in zip(loading, building, strict=True)])
    yardsticks = both.wall_s / yardstick_s
    return Row(
        f"the next 5 minutes, loaded and built, {fleet.name}, median of {slices}",
        f"{number(both.wall_s)} s = {number(yardsticks)} yardsticks, of which the load "
        f"{number(median(loading).wall_s)} s",
        both,
        f"<= {BUDGET_YARDSTICKS} yardsticks",
        yardsticks <= BUDGET_YARDSTICKS if fleet.is_of_budget else None,
    )


def _slices(fleet, slices):
    """Return what loading and building took, slice by slice."""
    last = START + timedelta(hours=fleet.hours - 1, minutes=32)
    first = last - slices * SLICE
    path = fleet.folder / "live.duckdb"
    with (
        contextlib.closing(LocalStore(fleet.database)) as source,
        contextlib.closing(LocalStore(path)) as store,
    ):
        evidence = evidence_over_time.evidence_of(source, without={"gpu_samples"})
        for name, rows in evidence_over_time.reported_until(evidence, first).items():
            load(store, name, rows, first)
        moment = START - timedelta(hours=1)
        while moment < first:  # hour by hour, as a big fleet's readings are many
            until = min(moment + timedelta(hours=1), first)
            load(store, "gpu_samples", _readings(source, moment, until), until)
            moment = until
        store.build()
        return [_slice(store, _next(source, evidence, first + n * SLICE), n) for n in range(slices)]


def _readings(source, after, until):
    return rows_of(source, "gpu_samples", "ts > $1 and ts <= $2", [after, until])


def _next(source, evidence, after):
    """Return the evidence of the five minutes after a time."""
    until = after + SLICE
    readings = {"gpu_samples": _readings(source, after, until)}
    return {**reported_between(evidence, after, until), **readings}


def _slice(store, came, part):
    handed_over = [batch for name, rows in came.items() for batch in batches(name, rows, part)]
    with Meter() as loading:
        for batch in handed_over:
            store.load(batch)
    with Meter() as building:
        store.build()
    return loading.cost, building.cost
