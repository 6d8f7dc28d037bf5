"""What a database takes over from a lake that others load into, compact and clean up."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import polars as pl

from goodput_queries.evidence.batch import Batch
from goodput_queries.lake.lake import Lake
from goodput_queries.lake.pull import attach, pull
from goodput_queries.lake.upkeep import Compaction, compact

if TYPE_CHECKING:
    from collections.abc import Callable

    from goodput_queries.storage.store import LocalStore


def inventory(cluster: str, gpu: str, digest: str) -> Batch:
    rows = pl.DataFrame(
        {"source": "inventory", "cluster": cluster, "gpu_uuid": gpu, "node": "node01"}
    )
    return Batch("gpus", rows, "inventory", "inventory.csv", digest)


def clusters_of(store: LocalStore) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = store.read(
        "select cluster, gpu_uuid from raw.gpus order by all"
    ).rows()
    return rows


def test_loads_from_before_a_compaction_are_taken_over(
    lake: Lake, new_store: Callable[[], LocalStore]
) -> None:
    """Their files are gone, their rows are in the merged ones."""
    for number in range(3):
        lake.append(inventory("west", f"GPU-{number}", f"d{number}"))
    compact(lake, Compaction(kept_h=0), today=date(2026, 11, 21))
    store = new_store()
    attach(store, lake.url)

    assert pull(store, lake).loads == 3
    assert clusters_of(store) == [("west", f"GPU-{number}") for number in range(3)]


def test_the_same_file_of_two_clusters_is_two_loads(
    lake: Lake, new_store: Callable[[], LocalStore]
) -> None:
    """It does not name its cluster, so that only `--cluster` tells its rows apart."""
    east = Lake.open(lake.url, cluster="east")
    store = new_store()
    attach(store, lake.url)
    lake.append(inventory("west", "GPU-1", "same file"))
    pull(store, lake)
    east.append(inventory("east", "GPU-1", "same file"))
    pull(store, lake)

    assert clusters_of(store) == [("east", "GPU-1"), ("west", "GPU-1")]
