"""Findings and fixes: what needs a person, what to do first, and what is lost now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from goodput_app.dashboard.data.marts import read

if TYPE_CHECKING:
    from goodput_queries.scope import Scope

FINDINGS_SHOWN = 2_000
FIXES_SHOWN = 200
ORDER = (
    "case severity when 'critical' then 1 when 'warning' then 2 else 3 end, "
    "cost desc nulls last, gpu_ms desc nulls last, since_at, finding_key"
)


def findings(scope: Scope) -> pl.DataFrame:
    """Return findings, the most severe and costly first."""
    return _both(scope).filter(~pl.col("is_fix")).head(FINDINGS_SHOWN)


def fixes(scope: Scope) -> pl.DataFrame:
    """Return what to do, what gives most GPU time back first."""
    worth = (pl.col("back_ms") > 0) | (pl.col("severity") != "info")
    return (
        _both(scope)
        .filter(pl.col("is_fix") & worth)
        .sort(
            "back_ms", "gpu_ms", "fix", "target",
            descending=[True, True, False, False], nulls_last=True,
        )
        .head(FIXES_SHOWN)
    )  # fmt: skip


def _both(scope: Scope) -> pl.DataFrame:
    """Return findings and fixes of one evaluation, which costs more than everything after it."""
    return read(
        f"""select false as is_fix, * from marts.findings
        union all by name
        select true as is_fix, * from marts.fixes
        order by {ORDER}""",
        scope,
    )


def losing_now(scope: Scope) -> pl.DataFrame:
    """Return what is lost at the end of the window, by category."""
    return read("select * from marts.losing_now order by cost_per_h desc nulls last", scope)


def run_verdicts(scope: Scope) -> pl.DataFrame:
    """Return the largest finding about each run of the scope; no row for a run without one."""
    return read("select * from marts.run_verdicts", scope)


def objectives(scope: Scope) -> pl.DataFrame:
    """Return the goodput objectives, those whose budget burns or is spent most first."""
    return read(
        "select * from marts.goodput_objectives "
        "order by is_burning desc, budget_spent_ratio desc nulls last, name",
        scope,
    )
