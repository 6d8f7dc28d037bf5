"""Five minutes of a site whose nodes are shared and never empty, after a day and after many.

Each GPU is held by one job of one GPU after the other, of which the accounting says the node alone:
the harder case of placing holds, since no moment is there before which nothing matters.
"""

from __future__ import annotations

import contextlib
import random
import statistics
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import polars as pl
from tests.benchmarks.bench_fleet import GPUS_OF_NODE, START
from tests.benchmarks.bench_live import SLICE
from tests.benchmarks.meter import Cost, Meter
from tests.benchmarks.table import Row, number

from goodput_queries.evidence.batch import Batch
from goodput_queries.storage.store import LocalStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

SEED = 3
SHORTEST_S, LONGEST_S, PAUSE_S = 600, 21_600, 60


def measure(gpus: int, days: int, slices: int, run: Callable[..., Any]) -> Row:
    """Return the row: medians of so many slices of five minutes, after one day and after all."""
    (_, early), (job_runs, late) = (run(_after, gpus, d, slices) for d in (1, days))
    ratio = number(late.wall_s / early.wall_s)
    return Row(
        f"five minutes of {gpus} GPUs of shared nodes, never empty, after {days} days: "
        f"{job_runs:,} job runs",
        f"{number(late.wall_s)} s; after 1 day {number(early.wall_s)} s: {ratio} x "
        f"(CPU {number(late.cpu_s / early.cpu_s)} x)",
        late,
    )


def _after(gpus: int, days: int, slices: int) -> tuple[int, Cost]:
    """Return how many job runs there were by then, and what a build of five minutes cost."""
    begin = START.replace(tzinfo=None)
    now = begin + timedelta(days=days)
    jobs = pl.DataFrame(list(_jobs(gpus, begin, now + (slices + 1) * SLICE)))
    with contextlib.closing(LocalStore()) as store:
        store.load(Batch("gpus", _inventory(gpus, begin), "bench", "bench", "gpus"))
        before = _reported(jobs, now)
        store.load(Batch("job_runs", before, "bench", "bench", "job runs"))
        store.build()
        costs = []
        for part in range(slices):
            reported = _reported(jobs, now + (part + 1) * SLICE)
            ended = before.filter(pl.col("end_at").is_not_null())
            changed = reported.join(ended, on="job_id_raw", how="anti")
            store.load(Batch("job_runs", changed, "bench", "bench", f"job runs {part}"))
            with Meter() as meter:
                store.build()
            costs.append(meter.cost)
            before = reported
        return before.height, Cost(
            statistics.median(cost.wall_s for cost in costs),
            statistics.median(cost.cpu_s for cost in costs),
        )


def _inventory(gpus: int, begin: datetime) -> pl.DataFrame:
    return pl.DataFrame(
        [
            {
                "source": "bench", "cluster": "c", "node": f"n{gpu // GPUS_OF_NODE}",
                "gpu_uuid": f"n{gpu // GPUS_OF_NODE}#{gpu % GPUS_OF_NODE}",
                "slurm_index": gpu % GPUS_OF_NODE, "gpu_model": "h100", "valid_from_at": begin,
            }
            for gpu in range(gpus)
        ]
    )  # fmt: skip


def _jobs(gpus: int, begin: datetime, end: datetime) -> Iterator[dict[str, Any]]:
    chance = random.Random(SEED)  # noqa: S311 -- no secret
    for gpu in range(gpus):
        start = begin + timedelta(seconds=chance.randrange(SHORTEST_S))
        while start < end:
            until = start + timedelta(seconds=chance.randrange(SHORTEST_S, LONGEST_S))
            name = f"{gpu}.{start:%d%H%M%S}"
            yield {
                "source": "bench", "cluster": "c", "job_id": name, "job_id_raw": name,
                "submit_at": start, "eligible_at": start, "start_at": start, "end_at": until,
                "nodes": [f"n{gpu // GPUS_OF_NODE}"], "gpus": 1,
            }  # fmt: skip
            start = until + timedelta(seconds=PAUSE_S)


def _reported(jobs: pl.DataFrame, moment: datetime) -> pl.DataFrame:
    """Return what the accounting says at a moment."""
    is_over = pl.col("end_at") <= moment
    return jobs.filter(pl.col("start_at") <= moment).with_columns(
        end_at=pl.when(is_over).then("end_at"),
        state=pl.when(is_over).then(pl.lit("COMPLETED")).otherwise(pl.lit("RUNNING")),
        observed_at=pl.lit(moment),
    )
