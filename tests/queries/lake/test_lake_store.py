"""A lake as ingest and collect see a database: batches, statuses, and how far sources were read."""

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.queries.lake.conftest import START, readings

from goodput_ingest.live import status
from goodput_ingest.live.status import Status
from goodput_queries.errors import QueryError, StoreError
from goodput_queries.lake import statuses
from goodput_queries.lake.lake import Lake
from goodput_queries.lake.store import LakeStore

ORIGIN = "http://exporter"


def seconds(count):
    return START + timedelta(seconds=count)


def test_sources_go_on_where_an_earlier_process_ended(lake):
    first = LakeStore(lake)
    first.load(readings("d1", (0, 90)))
    first.load(readings("late", (30,)))
    first.load(replace(readings("d2", (60,)), origin="http://other"))
    for store in (first, LakeStore(Lake.open(lake.url, cluster="west"))):
        reached = status.reached(store, "dcgm", seconds(600))
        assert reached == {ORIGIN: seconds(90), "http://other": seconds(60)}
        store.load(readings("late too", (45,)))
        assert status.reached(store, "dcgm", seconds(600))[ORIGIN] == seconds(90)
    first.load(readings("d3", (120,)))
    assert status.reached(first, "dcgm", seconds(600))[ORIGIN] == seconds(120)


def test_clusters_with_equal_sources_are_kept_apart(lake):
    """Both may poll `localhost`, and both may have sent the very same rows."""
    west, east = LakeStore(lake), LakeStore(Lake.open(lake.url, cluster="east"))
    assert west.load(readings("d1")).rows_new == 4
    status.write(west, [Status("dcgm", ORIGIN, seconds(60), 30.0).answered(seconds(60))])
    assert status.reached(east, "dcgm", seconds(600)) == {}
    assert east.load(readings("d1")).rows_new == 4
    rows = lake.rows("gpu_samples", columns=["lake_cluster"]).read_all()["lake_cluster"].to_pylist()
    assert sorted(rows) == ["east"] * 4 + ["west"] * 4


def test_a_status_is_replaced_and_survives_its_process(lake):
    store = LakeStore(lake)
    asked = Status("slurm", "commands", seconds(0), 60.0)
    status.write(store, [asked.answered(seconds(0))])
    failed = asked.answered(seconds(0)).failed(seconds(60), "sacct: 'no' such cluster")
    status.write(store, [failed])
    again = LakeStore(Lake.open(lake.url, cluster="west"))
    assert status.read(again, asked) == replace(failed, asked_at=seconds(0))
    assert status.reached(again, "slurm", seconds(600)) == {"commands": seconds(0)}
    (row,) = statuses.read(lake).to_dicts()
    assert (row["cluster"], row["failures"], row["interval_s"]) == ("west", 1, 60.0)


def test_a_lake_answers_no_queries(lake):
    store = LakeStore(lake)
    with pytest.raises(QueryError, match="a lake answers no queries; build a database from it"):
        store.read("from marts.goodput_by_team")
    with pytest.raises(StoreError, match="a lake has no ledger"):
        store.build()


def test_a_broken_status_is_named(lake):
    lake.objects.write("status/x.json", "[]")
    with pytest.raises(StoreError, match=r"status/x\.json: this is not a status of a source"):
        statuses.read(lake)
