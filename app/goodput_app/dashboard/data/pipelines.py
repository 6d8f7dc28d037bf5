"""Replayed steps of a run with data and pipeline parallelism: the ideal beside the real one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goodput_app.dashboard.data.marts import read

if TYPE_CHECKING:
    import polars as pl

    from goodput_queries.scope import Scope


def replay(scope: Scope) -> pl.DataFrame:
    """Return the replay of the scope's run: one row, or none where no trace of it was read."""
    return read("select * from marts.pipeline_replays where run_key = $1", scope, scope.run)


def workers(scope: Scope) -> pl.DataFrame:
    """Return what each worker alone adds to the ideal step, with its GPU time and cost in the run.

    The share of the step is of the trace; it is applied to all retained steps of the window.
    """
    return read(
        """with steps as (
            select sum(gpu_ms) as gpu_ms, sum(cost) as cost
            from marts.run_categories where run_key = $1 and is_kept_step(category)
        )
        select workers.dp_rank, workers.stage, workers.step_s, workers.slowdown_ratio,
            workers.excess_share * steps.gpu_ms as excess_gpu_ms,
            workers.excess_share * steps.cost as excess_cost
        from marts.pipeline_workers as workers cross join steps
        where workers.run_key = $1 order by workers.place""",
        scope,
        scope.run,
    )


def timeline(scope: Scope) -> pl.DataFrame:
    """Return the operations of one step of the scope's run, as recorded and in the ideal step."""
    return read(
        "select * from marts.pipeline_timeline where run_key = $1 order by stage, start_s",
        scope,
        scope.run,
    )
