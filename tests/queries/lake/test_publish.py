"""Closed hours of a ledger in a lake."""

from __future__ import annotations

from datetime import date
from typing import Any

import polars as pl
from deltalake import DeltaTable

from goodput_queries.lake.lake import Lake
from goodput_queries.lake.publish import TABLE, publish
from goodput_queries.lake.upkeep import compact

HOUR_S, DAY_S = 3_600, 86_400
FIRST, SECOND = date(2027, 1, 15), date(2027, 1, 16)


def published(lake: Lake) -> pl.DataFrame:
    found: Any = pl.DataFrame(DeltaTable(f"{lake.url}/{TABLE}").to_pyarrow_table())
    return found.drop("lake_cluster", "lake_day").sort(pl.all())


def closed(evidence: Any, until_ms: int) -> pl.DataFrame:
    found: pl.DataFrame = evidence.store.read(
        "from marts.ledger_hourly where hour_ms + 3600000 <= $1", [until_ms]
    )
    return found.sort(pl.all())


def test_closed_hours_of_changed_days_are_replaced(
    lake: Lake, evidence: Any, start_of_time_ms: int
) -> None:
    evidence.node("n1", 1)
    evidence.watched(DAY_S + HOUR_S / 2)  # the last hour is open
    evidence.job("1", 0, 7_200, ["n1"], 1)
    evidence.store.build()
    until_ms = start_of_time_ms + DAY_S * 1000

    days = publish(evidence.store, lake).select("cluster", "day").rows()
    assert days == [("c", FIRST), ("c", SECOND)]
    assert published(lake).rows() == closed(evidence, until_ms).rows()
    assert publish(evidence.store, lake).is_empty()

    evidence.job("late", 9_000, 10_000, ["n1"], 1)  # late evidence of the first day
    evidence.store.build()
    assert publish(evidence.store, lake)["day"].to_list() == [FIRST]
    assert published(lake).rows() == closed(evidence, until_ms).rows()
    assert published(lake)["gpu_ms"].sum() == DAY_S * 1000

    compacted = dict(compact(lake).select("table", "files").rows())
    assert compacted[TABLE] == 2
    assert publish(evidence.store, Lake.open(lake.url)).is_empty()
