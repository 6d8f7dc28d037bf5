"""Clusters of job logs, which name none: that of the job whose id the log has.

Where the database has one cluster and its accounting one job of this id, the log is that job's.
That is likely, not certain: the note says so. The logs of an ingest are loaded after its other
files, which may be the accounting.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, TypeVar

import polars as pl

from goodput_queries.errors import GoodputError
from goodput_queries.evidence.batch import Batch
from goodput_queries.evidence.load import prepared

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from goodput_queries.storage.store import Store

Event = TypeVar("Event")
HELD_ROWS_MAX: Final = 1_000_000  # of logs that wait; more are loaded at once
CLUSTERS: Final = """select cluster from raw.job_runs union select cluster from raw.gpus
    union select cluster from raw.nodes where cluster is not null"""
JOBS: Final = """select distinct job_id from raw.job_runs
    where job_id in (select unnest($runs)) or job_id_raw in (select unnest($runs))"""


@dataclass
class LogClusters:
    """Gives batches of job logs the cluster of their job."""

    store: Store
    held: list[Batch] = field(default_factory=list)
    held_rows: int = 0

    def last(self, events: Iterable[Event]) -> Iterator[Event | Batch]:
        """Yield events in their order, batches of logs without a cluster after all others."""
        for event in events:
            if not (isinstance(event, Batch) and _is_without_cluster(event)):
                yield event
                continue
            self.held.append(event)
            self.held_rows += event.rows.height
            if self.held_rows > HELD_ROWS_MAX:
                yield from self._released()
        yield from self._released()

    def _released(self) -> Iterator[Batch]:
        held, self.held, self.held_rows = self.held, [], 0
        for batch in held:
            yield self._with_cluster(batch)

    def _with_cluster(self, batch: Batch) -> Batch:
        runs = batch.rows["run_id"].drop_nulls().unique().to_list()
        try:
            clusters = self.store.read(CLUSTERS)["cluster"].to_list()
            jobs = self.store.read(JOBS, {"runs": runs})["job_id"].to_list() if runs else []
        except GoodputError:  # a lake: its own configuration names the cluster
            return batch
        if len(clusters) != 1 or len(jobs) != 1 or len(runs) != 1:
            return batch
        rows = batch.rows.with_columns(pl.lit(clusters[0]).alias("cluster"))
        note = (
            f"Logs without a cluster are taken as of {clusters[0]}, the only one of the database, "
            "where it has a job of their id (Likely); --cluster says it for certain."
        )
        return prepared(replace(batch, rows=rows, keys=None, note=note))


def _is_without_cluster(batch: Batch) -> bool:
    return (
        batch.source == "job-log"
        and not batch.rows.is_empty()
        and (batch.rows["cluster"].null_count() == batch.rows.height)
    )
