"""Failures: ranked causes of attempts, what led to their end, and losses that were not finite."""

import polars as pl

from goodput_app.dashboard.data.marts import reader, run_reader
from goodput_queries.scope import Scope

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
