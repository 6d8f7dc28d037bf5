"""What differs from what it should be: gaps of whole gangs, and those that come back regularly."""

from goodput_app.dashboard.data.marts import reader

ROWS_SHOWN = 1_000


# all_gaps, all_gpu_ms: of all of them; $1: the least length in seconds
gang_gaps = reader(
    "gang_gaps",
    "cost desc nulls last, gpu_ms desc, start_at, job_run_key",
    columns="*, count(*) over () as all_gaps, sum(gpu_ms) over ()::bigint as all_gpu_ms",
    where="gap_s >= $1",
    limit=ROWS_SHOWN,
)
periodic_gaps = reader(
    "periodic_gaps", "cost desc nulls last, gpu_ms desc, job_run_key, coincides", limit=ROWS_SHOWN
)
