"""What differs from what it should be: gaps of whole gangs, and those that come back regularly."""

from dataclasses import replace

import polars as pl

from goodput_app.dashboard.data.marts import in_order, read
from goodput_queries.scope import Scope

ROWS_SHOWN = 1_000


def gang_gaps(scope: Scope, least_s: float = 0.0) -> pl.DataFrame:
    """Return the gaps of gangs of at least this length, highest cost first, at most ROWS_SHOWN.

    all_gaps, all_gpu_ms: of all of them.
    """
    return read(
        f"""select *, count(*) over () as all_gaps, sum(gpu_ms) over ()::bigint as all_gpu_ms
        from marts.gang_gaps
        where gap_s >= $1
        order by cost desc nulls last, gpu_ms desc, start_at, job_run_key
        limit {ROWS_SHOWN}""",
        replace(scope, bucket_ms=None),
        least_s,
    )


def periodic_gaps(scope: Scope) -> pl.DataFrame:
    """Return the gaps that come back regularly, highest cost first: a row a job run and cause."""
    order_by = "cost desc nulls last, gpu_ms desc, job_run_key, coincides"
    return in_order("marts.periodic_gaps", scope, order_by, limit=ROWS_SHOWN)
