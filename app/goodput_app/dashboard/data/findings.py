"""Findings and fixes: what needs a person, what to do first, and what is lost now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goodput_app.dashboard.data.marts import read

if TYPE_CHECKING:
    import polars as pl

    from goodput_queries.scope import Scope

FINDINGS_SHOWN = 2_000
FIXES_SHOWN = 200
FINDINGS_OF_A_FIX = 50
ORDER = (
    "case severity when 'critical' then 1 when 'warning' then 2 else 3 end, "
    "cost desc nulls last, gpu_ms desc nulls last, since_at, finding_key"
)


def findings(scope: Scope) -> pl.DataFrame:
    """Return findings, the most severe and costly first."""
    return read(f"select * from marts.findings order by {ORDER} limit {FINDINGS_SHOWN}", scope)


def fixes(scope: Scope) -> pl.DataFrame:
    """Return what to do, what gives most GPU time back first."""
    return read(
        "select * from marts.fixes where back_ms > 0 or severity <> 'info' "
        f"order by back_ms desc, gpu_ms desc nulls last, fix, target limit {FIXES_SHOWN}",
        scope,
    )


def losing_now(scope: Scope) -> pl.DataFrame:
    """Return what is lost at the end of the window, by category."""
    return read("select * from marts.losing_now order by cost_per_h desc nulls last", scope)
