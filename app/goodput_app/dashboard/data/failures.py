"""Failures: ranked causes of attempts, what led to their end, and losses that were not finite."""

import polars as pl

from goodput_app.dashboard.data.marts import of_run, read
from goodput_queries.scope import Scope


def causes(scope: Scope) -> pl.DataFrame:
    """Return the ranked causes of the failed attempts of the scope's run."""
    return of_run("marts.attempt_causes", scope, "attempt, rank")


def failed_last(attempts: pl.DataFrame, scope: Scope) -> int | None:
    """Return the last attempt of the scope's run if it ended badly. `attempts`: marts.attempts."""
    if attempts.is_empty():
        return None
    last = attempts.sort("attempt").row(-1, named=True)
    if last["outcome"] in ("ok", "running") or last["attempt"] not in causes(scope)["attempt"]:
        return None
    return int(last["attempt"])


def chains(scope: Scope) -> pl.DataFrame:
    """Return what led to the end of the failed attempts of the scope's run, in order."""
    return of_run("marts.failure_chains", scope, "attempt, position")


def loss_anomalies(scope: Scope) -> pl.DataFrame:
    """Return where the training loss of the scope's run stopped being finite, or diverged."""
    return of_run("marts.loss_anomalies", scope, "attempt, step")


def by_cause(scope: Scope) -> pl.DataFrame:
    """Return the time between bad ends of attempts by failure reason, the most frequent first."""
    return read(
        "select * from marts.reliability_by_cause order by failures desc, cluster, cause", scope
    )
