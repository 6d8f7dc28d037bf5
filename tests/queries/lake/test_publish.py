"""Closed hours of a ledger in a lake."""

from datetime import date, timedelta

import polars as pl
import pytest
from deltalake import DeltaTable
from tests.queries.conftest import START_MS
from tests.queries.lake.conftest import START, readings

from goodput_queries.evidence.batch import Batch
from goodput_queries.lake import publish as publishing
from goodput_queries.lake.lake import Lake
from goodput_queries.lake.loads import EPOCH
from goodput_queries.lake.publish import LEDGER, METRICS, publish
from goodput_queries.lake.pull import attach
from goodput_queries.lake.upkeep import compact
from goodput_queries.ledger_build.distributed.lake_binding import LakeBinding, LakeOptions

HOUR_S, DAY_S = 3_600, 86_400
FIRST, SECOND = date(2027, 1, 15), date(2027, 1, 16)


def published(lake, table=LEDGER):
    found = pl.DataFrame(DeltaTable(f"{lake.url}/{table.path}").to_pyarrow_table())
    return found.drop("lake_cluster", "lake_day").sort(pl.all())


def ms(seconds):
    """Return a time so many seconds after the first reading."""
    return (START + timedelta(seconds=seconds) - EPOCH) // timedelta(milliseconds=1)


def closed(store, until_ms):
    found = store.read("from marts.ledger_hourly where hour_ms + 3600000 <= $1", [until_ms])
    return found.sort(pl.all())


def test_closed_hours_of_changed_days_are_replaced(lake, evidence):
    evidence.node("n1", 1)
    evidence.watched(DAY_S + HOUR_S / 2)  # the last hour is open
    evidence.job("1", 0, 7_200, ["n1"], 1)
    evidence.store.build()
    until_ms = START_MS + DAY_S * 1000

    written = publish(evidence.store, lake)
    days = written.filter(table=LEDGER.name).select("cluster", "day").rows()
    assert days == [("c", FIRST), ("c", SECOND)]
    assert published(lake).rows() == closed(evidence.store, until_ms).rows()
    assert publish(evidence.store, lake).is_empty()

    evidence.job("late", 9_000, 10_000, ["n1"], 1)  # late evidence of the first day
    evidence.store.build()
    again = publish(evidence.store, lake)
    assert again.select("table", "day").rows() == [(LEDGER.name, FIRST)]
    assert published(lake).rows() == closed(evidence.store, until_ms).rows()
    assert published(lake)["gpu_ms"].sum() == DAY_S * 1000

    compacted = dict(compact(lake).select("table", "files").rows())
    assert compacted[LEDGER.path] == 2
    assert publish(evidence.store, Lake.open(lake.url)).is_empty()


@pytest.mark.machine
def test_builds_of_a_lake_publish_what_they_changed(lake, new_store, monkeypatch):
    """A process that ends between two commits leaves the rest to the next one."""
    store = new_store()
    attach(store, lake.url)
    gpus = {"cluster": ["west", "east"], "node": ["w", "e"], "gpu_uuid": ["GPU-0", "GPU-1"]}
    rows = pl.DataFrame({"source": "inventory", **gpus})
    lake.append(Batch("gpus", rows, "inventory", "inventory", "gpus"))
    lake.append(readings("d0", range(0, DAY_S + 1800, 60)))

    def build():
        """Build as a new process does."""
        store.lake_binding = LakeBinding(store, LakeOptions(publishes=True))
        store.build()
        store.lake_binding.publish()

    with monkeypatch.context() as patch:
        patch.delitem(publishing.TABLES, METRICS.name)
        with pytest.raises(KeyError):
            build()
    build()

    first = START.date()
    noted = store.read("select * exclude (sequence) from state.unpublished_days order by all")
    second = first + timedelta(days=1)  # a day that is not over
    assert noted.rows() == [(METRICS.name, "east", second), (METRICS.name, "west", second)]
    assert published(lake).rows() == closed(store, ms(DAY_S)).rows()
    of_first_day = store.read("from marts.gpu_metrics where start_ms < $1", [ms(DAY_S / 2)])
    assert published(lake, METRICS).rows() == of_first_day.sort(pl.all()).rows()

    versions = [DeltaTable(f"{lake.url}/{one.path}").version() for one in (LEDGER, METRICS)]
    lake.append(readings("d1", (DAY_S + 1860, DAY_S + 1920)))
    build()
    assert [DeltaTable(f"{lake.url}/{one.path}").version() for one in (LEDGER, METRICS)] == versions
