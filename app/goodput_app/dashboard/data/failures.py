"""Failures: ranked causes of attempts, what led to their end, and losses that were not finite."""

import polars as pl

from goodput_app.dashboard.data.marts import read, reader, run_reader
from goodput_queries.scope import Scope

ENDED_MAX = 10_000

causes = run_reader("attempt_causes", "attempt, rank")


def failed_last(attempts: pl.DataFrame, scope: Scope) -> int | None:
    """Return the last attempt of the scope's run if it ended badly. `attempts`: marts.attempts."""
    if attempts.is_empty():
        return None
    last = attempts.sort("attempt").row(-1, named=True)
    if last["outcome"] in ("ok", "running") or last["attempt"] not in causes(scope)["attempt"]:
        return None
    return int(last["attempt"])


chains = run_reader("failure_chains", "attempt, position")
loss_anomalies = run_reader("loss_anomalies", "attempt, step")
by_cause = reader("reliability_by_cause", "failures desc, cluster, cause")


def ended_badly(scope: Scope) -> pl.DataFrame:
    """Return attempts that ended badly in the window by what that cost, the most first.

    Columns: cluster, run_key, run_name, attempt, outcome, start_at (its end), reason, cost
    """
    return read(
        f"""select cluster, run_key, coalesce(job_name, run_id) as run_name, attempt, outcome,
            from_ms(end_ms) as start_at, concat_ws(': ', state, said_msg) as reason,
            lost_cost as cost
        from intermediate.int_failed_attempts_in_scope
        order by lost_gpu_ms desc, start_at desc, attempt_key limit {ENDED_MAX}""",
        scope,
    )
